/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_source: what is known of a GPU, and who reads it: the driver's library of NVIDIA (nvml.c), the
 * kernel's files of AMD (amdgpu.c).
 *
 * Sources run in the children of gpu_poller.h and gpu_holders.h alone: any of their calls may block without
 * end. What they read is not the target's, but a driver may be broken: numbers may be anything, texts are cut.
 */
#ifndef CLIENT_GPU_GPU_SOURCE_H
#define CLIENT_GPU_GPU_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPU_MAX 64 /* devices and slices of them */
#define GPU_WHY 160
#define GPU_NO_NUMBER (-1) /* of a slice, of reasons and counters: none, or unknown */

/* How a device answers. The column `state` of gpu_metrics has these names, in this order. */
enum gpu_state { GPU_OK = 0, GPU_SILENT, GPU_LOST, GPU_NEEDS_RESET, GPU_NO_ACCESS };

/* Why its clock is lower than it could be; the driver's many reasons in a few. */
enum gpu_throttle {
    GPU_THROTTLE_POWER = 1, /* its power limit, as most GPUs under full load */
    GPU_THROTTLE_HEAT = 2,  /* its temperature */
    GPU_THROTTLE_HARDWARE =
        4, /* the board: too hot, or too little power arrives; the clock is halved at least */
    GPU_THROTTLE_CLOCK = 8, /* a limit that somebody has set, or that of a slower GPU beside it */
};

/* What stays. */
struct gpu_facts {
    char vendor[8];          /* "nvidia", "amd" */
    int32_t device;          /* its number, as its driver counts */
    int32_t slice;           /* of a device that is divided (MIG), from 0; GPU_NO_NUMBER: the whole device */
    bool is_divided;         /* its slices follow */
    char uuid[96], name[96]; /* "" unknown */
};

/* A reading. NAN and GPU_NO_NUMBER: unknown. */
struct gpu_values {
    double timestamp; /* seconds since the epoch */
    double util_pct;  /* of the time since the reading before in which it ran something */
    /* Shares over the same time: of its multiprocessors that had work, of the time in which those used
     * tensor cores, and of what its memory can move. */
    double sm_active_pct, tensor_active_pct, dram_active_pct;
    double mem_used_mb, mem_total_mb;
    double power_w, power_limit_w;
    double temperature_c;
    double sm_clock_mhz;
    int64_t throttle; /* enum gpu_throttle, several together */
    int64_t ecc;      /* memory errors that could not be corrected, since the driver was loaded */
    int64_t xid;      /* number of the last error that the driver reported since the reading before */
    int64_t state;    /* enum gpu_state */
    double silent_s;  /* GPU_SILENT: for how long it has not answered */
};

void gpu_values_clear(struct gpu_values *v);

/* What a process has of a device's memory. */
struct gpu_holding {
    int32_t place;      /* of the device in the source's list */
    int32_t pid;        /* as its driver numbers processes */
    double mem_used_mb; /* NAN: unknown */
};

/* What a source calls before each device that it may wait for, so that one which blocks is known. */
typedef void gpu_enter_fn(void *arg, int32_t device);

/* Devices that have blocked before, by their number: they are not asked anything. */
struct gpu_skipped {
    bool is_skipped[GPU_MAX];
};

struct gpu_source {
    const char *vendor;
    /* Find the devices, slices behind theirs, GPU_MAX at most; one that is skipped is listed, too. Their
     * number, or -1 with the reason: there is no driver, or it refuses. */
    int (*open)(const struct gpu_skipped *skipped, gpu_enter_fn *enter, void *arg, struct gpu_facts *list,
                size_t cap, char *why);
    /* Read number `i` of that list; `rare`: what is expensive and changes slowly, too. */
    void (*read)(size_t i, bool rare, struct gpu_values *out);
    /* Which processes have memory on the devices of that list; one has a row for each device. It may take
     * the driver long, and keep others from it: only for who asks. Their number, `cap` at most; `why` is
     * set where some are missing. */
    size_t (*list_holdings)(struct gpu_holding *list, size_t cap, char *why);
    bool counts_as_host; /* its pids are those of the host, which a container numbers otherwise */
};

extern const struct gpu_source gpu_source_nvml, gpu_source_amd;

#endif
