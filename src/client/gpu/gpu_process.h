/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_process: the GPUs of a process of this host together, now (gpu_poller.h). Never waits for a driver:
 * what is not known yet comes with a later call. On a host without a GPU it does nothing.
 */
#ifndef CLIENT_GPU_GPU_PROCESS_H
#define CLIENT_GPU_GPU_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "client/gpu/gpu_poller.h"

#define GPU_PROCESS_DEVICES 48 /* bytes of a list of devices */

/* NAN and "": unknown, or it has none. */
struct gpu_use {
    double util_pct;                   /* the mean of its devices */
    double mem_used_mb;                /* of all processes there */
    double power_w;                    /* of all together */
    char devices[GPU_PROCESS_DEVICES]; /* "0,1": their numbers; ".." at the end: and more */
};

/* What they do now. Any thread. */
void gpu_process_read(pid_t pid, struct gpu_use *out);

/* Call `put` for each device that the process uses, as far as that is known; `is_assumed`: that follows from
 * numbers that may mean another one. Any thread. */
void gpu_process_each(pid_t pid, void (*put)(void *arg, const struct gpu_device *device, bool is_assumed),
                      void *arg);

#endif
