/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpus: the GPUs of the target with their last minutes, from rows of the table gpu_metrics. Pure.
 *
 * Made again from each answer. On a machine without a GPU there are none, and nothing of them is shown.
 */
#ifndef TUI_MODEL_GPUS_H
#define TUI_MODEL_GPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/sql/result.h"
#include "tui/model/meter.h"

#define GPUS_MAX 64

/* The rows of the last minutes, those of a device one after another. */
#define GPUS_QUERY                                                                                           \
    "SELECT * FROM gpu_metrics WHERE timestamp > now() - interval '4 minutes' ORDER BY device, "             \
    "coalesce(slice, -1), timestamp"

/* A device, or a slice of one. Texts belong to the result; NULL and NAN: unknown. */
struct gpus_row {
    int64_t device, slice; /* slice -1: the whole device */
    const char *uuid, *name, *throttle, *state;
    double timestamp, util_pct, sm_active_pct, tensor_active_pct, dram_active_pct, mem_used_mb, mem_total_mb,
        power_w, power_limit_w, temperature_c, sm_clock_mhz;
    double ecc, silent_s;
    double xid; /* the last one of the time that is shown */
    bool is_assumed;
    struct meter *utils, *mems, *powers; /* a value for each of its rows */
    size_t line;                         /* its newest row in the result */
};

struct gpus {
    struct result *rows; /* one reference */
    struct gpus_row items[GPUS_MAX];
    struct meter *meters; /* owned */
    size_t n;
    bool has_sm_active; /* known of one of them, at some time */
};

/* Replace what is there by the rows of an answer, which may be NULL. */
void gpus_build(struct gpus *g, struct result *rows);
void gpus_fini(struct gpus *g);

/* Of all that answer: the mean of their utilisation, their memory in MiB; NAN unknown. */
double gpus_util(const struct gpus *g);
double gpus_mem_used(const struct gpus *g);
double gpus_mem_total(const struct gpus *g);

/* The first one that does not answer, has had an error, or is slowed by heat; NULL: all are well. */
const struct gpus_row *gpus_worst(const struct gpus *g);

/* In a few words what is the matter with one: "no answer for 12 s", "Xid 79", "slowed by heat"; "": nothing. */
void gpus_put_trouble(const struct gpus_row *r, char *buf, size_t cap);

/* "0", or "0.2" for a slice. */
void gpus_put_name(const struct gpus_row *r, char *buf, size_t cap);

#endif
