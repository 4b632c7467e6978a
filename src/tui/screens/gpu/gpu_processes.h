/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_processes: the rows of the GPU screen that are processes: who has memory there. Pure. */
#ifndef TUI_SCREENS_GPU_GPU_PROCESSES_H
#define TUI_SCREENS_GPU_GPU_PROCESSES_H

#include "client/sql/result.h"
#include "tui/view/outline.h"

/* The driver is asked with each of these: it keeps others waiting. */
#define GPU_PROCESSES_QUERY "SELECT * FROM gpu_processes ORDER BY mem_used_mb DESC"

/* Texts belong to the result; NULL and NAN: unknown. */
struct gpu_process_row {
    double device, slice; /* slice NAN: the whole device */
    double pid, rank, mem_mb, share_pct;
    const char *command, *user;
    bool is_own; /* the target */
    size_t line; /* in the result */
};

struct gpu_processes {
    struct result *rows; /* one reference */
    struct gpu_process_row *items;
    size_t n;
    size_t pids;     /* different ones */
    double mem_mb;   /* of all of them; NAN: known of none */
    bool is_partial; /* of some it is not known */
};

/* The rows of nodes are struct gpu_process_row. */
extern const struct outline_def gpu_processes_outline;
int gpu_processes_column_mem(void);

/* Make nodes from a result (NULL: none) and give them to the outline. Replaces the earlier ones. */
void gpu_processes_build(struct gpu_processes *p, struct result *rows, struct outline *out);
void gpu_processes_fini(struct gpu_processes *p);

#endif
