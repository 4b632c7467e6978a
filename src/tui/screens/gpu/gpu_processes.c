/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_processes: see gpu_processes.h. */
#include "tui/screens/gpu/gpu_processes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "tui/core/app_feed.h"
#include "tui/view/pick.h"
#include "tui/view/table.h"

#define GPU_PROCESSES_MIB 1048576.0

static const struct gpu_process_row *gpu_process_of(const void *node) {
    return ((const struct outline_node *)node)->row;
}

/* ---- cells ---- */

static void gpu_process_put_text(struct table_cell *c, const char *text, enum theme_role role) {
    c->role = text ? role : ROLE_MUTED;
    snprintf(c->text, sizeof c->text, "%s", text ? text : "?");
}

static void gpu_process_cell_pid(const void *node, struct table_cell *c) {
    char text[32];
    snprintf(text, sizeof text, "%.0f", gpu_process_of(node)->pid);
    outline_put_name(node, text, c->text, sizeof c->text);
    c->role = ROLE_VALUE;
}

static void gpu_process_cell_device(const void *node, struct table_cell *c) {
    const struct gpu_process_row *r = gpu_process_of(node);
    c->role = ROLE_TEXT;
    if (isnan(r->slice))
        snprintf(c->text, sizeof c->text, "%.0f", r->device);
    else
        snprintf(c->text, sizeof c->text, "%.0f.%.0f", r->device, r->slice);
}

static void gpu_process_cell_rank(const void *node, struct table_cell *c) {
    double rank = gpu_process_of(node)->rank;
    c->role = isnan(rank) ? ROLE_MUTED : ROLE_VALUE;
    snprintf(c->text, sizeof c->text, "%.0f", rank);
    if (isnan(rank))
        snprintf(c->text, sizeof c->text, "-");
}

static void gpu_process_cell_mem(const void *node, struct table_cell *c) {
    double mb = gpu_process_of(node)->mem_mb;
    c->role = isnan(mb) ? ROLE_MUTED : ROLE_VALUE;
    text_human_bytes(c->text, sizeof c->text, mb * GPU_PROCESSES_MIB);
}

static void gpu_process_cell_share(const void *node, struct table_cell *c) {
    double share = gpu_process_of(node)->share_pct;
    c->role = share >= 20 ? ROLE_CPU_HIGH : share >= 5 ? ROLE_CPU_MID : ROLE_CPU_LOW;
    if (isnan(share))
        gpu_process_put_text(c, NULL, ROLE_MUTED);
    else
        snprintf(c->text, sizeof c->text, "%.1f", share);
}

static void gpu_process_cell_user(const void *node, struct table_cell *c) {
    gpu_process_put_text(c, gpu_process_of(node)->user, ROLE_TEXT);
}

static void gpu_process_cell_command(const void *node, struct table_cell *c) {
    const struct gpu_process_row *r = gpu_process_of(node);
    gpu_process_put_text(c, r->command, r->is_own ? ROLE_STATUS_ON : ROLE_TEXT);
    if (r->is_own && r->command)
        snprintf(c->text, sizeof c->text, "%s, the target", r->command);
}

#define GPU_PROCESS_COMPARE(field, how)                                                                      \
    static int gpu_process_compare_##field(const void *a, const void *b) {                                   \
        return how(gpu_process_of(a)->field, gpu_process_of(b)->field);                                      \
    }
GPU_PROCESS_COMPARE(pid, table_compare_number)
GPU_PROCESS_COMPARE(rank, table_compare_number)
GPU_PROCESS_COMPARE(mem_mb, table_compare_number)
GPU_PROCESS_COMPARE(share_pct, table_compare_number)
GPU_PROCESS_COMPARE(user, text_compare)
GPU_PROCESS_COMPARE(command, text_compare)

static int gpu_process_compare_device(const void *a, const void *b) {
    const struct gpu_process_row *x = gpu_process_of(a), *y = gpu_process_of(b);
    int order = table_compare_number(x->device, y->device);
    return order ? order : table_compare_number(x->slice, y->slice);
}

static bool gpu_process_matches(const void *node, const struct match *m) {
    const struct gpu_process_row *r = ((const struct outline_node *)node)->row;
    char pid[32];
    snprintf(pid, sizeof pid, "%.0f", r->pid);
    return match_text(m, pid) || match_text(m, r->command) || match_text(m, r->user);
}

static void gpu_process_put_name(const void *row, struct strbuf *out) {
    strbuf_addf(out, "%.0f", ((const struct gpu_process_row *)row)->pid);
}

enum { GPU_PROCESSES_COLUMN_MEM = 3 };

/* clang-format off */
static const struct table_column gpu_processes_columns[] = {
    {"PID", "as the driver numbers it; in a container that may be its number on the host", {9, 0, 0}, GRID_LEFT, true, gpu_process_cell_pid, gpu_process_compare_pid},
    {"GPU", "number of the device, as its driver counts; of a slice (MIG) behind a dot", {4, 0, 0}, GRID_LEFT, false, gpu_process_cell_device, gpu_process_compare_device},
    {"RANK", "its rank in its job; -: none, or not known", {6, 0, 1}, GRID_RIGHT, true, gpu_process_cell_rank, gpu_process_compare_rank},
    {"MEM", "memory that the process has there", {10, 0, 0}, GRID_RIGHT, true, gpu_process_cell_mem, gpu_process_compare_mem_mb},
    {"%OF GPU", "that, of all memory of the device", {8, 0, 2}, GRID_RIGHT, true, gpu_process_cell_share, gpu_process_compare_share_pct},
    {"USER", "whose process it is", {12, 0, 3}, GRID_LEFT, false, gpu_process_cell_user, gpu_process_compare_user},
    {"COMMAND", "its name; ?: it has ended, or its number may be that of the host", {18, 3, 0}, GRID_LEFT, false, gpu_process_cell_command, gpu_process_compare_command},
};
/* clang-format on */

const struct outline_def gpu_processes_outline = {
    gpu_processes_columns, (int)(sizeof gpu_processes_columns / sizeof gpu_processes_columns[0]),
    gpu_process_matches, gpu_process_put_name};

int gpu_processes_column_mem(void) { return GPU_PROCESSES_COLUMN_MEM; }

/* ---- reading ---- */

static double gpu_process_value(const struct result *rows, size_t i, const char *name) {
    return app_feed_number(rows, i, app_feed_column(rows, name));
}

static const char *gpu_process_text(const struct result *rows, size_t i, const char *name) {
    return app_feed_text(rows, i, app_feed_column(rows, name));
}

void gpu_processes_fini(struct gpu_processes *p) {
    result_unref(p->rows);
    free(p->items);
    memset(p, 0, sizeof *p);
}

static uint64_t gpu_process_key(const struct gpu_process_row *r) {
    uint64_t key = hash_mix((uint64_t)(int64_t)r->pid);
    key = hash_mix(key ^ (uint64_t)(int64_t)r->device);
    return hash_mix(key ^ (isnan(r->slice) ? 0 : (uint64_t)(int64_t)r->slice + 1)) | 1;
}

/* NAN unless it can be. */
static double gpu_process_amount(const struct result *rows, size_t i, const char *name, double most) {
    double v = gpu_process_value(rows, i, name);
    return v >= 0 && v <= most ? v : NAN;
}

/* A row of a table; false: it names no process. */
static bool gpu_process_read(struct gpu_process_row *r, const struct result *rows, size_t i) {
    *r = (struct gpu_process_row){.device = gpu_process_value(rows, i, "device"),
                                  .slice = gpu_process_value(rows, i, "slice"),
                                  .pid = gpu_process_value(rows, i, "process_pid"),
                                  .rank = gpu_process_amount(rows, i, "process_rank", 1e9),
                                  .mem_mb = gpu_process_amount(rows, i, "mem_used_mb", 1e9),
                                  .share_pct = gpu_process_amount(rows, i, "mem_share", 100),
                                  .command = gpu_process_text(rows, i, "command"),
                                  .user = gpu_process_text(rows, i, "user"),
                                  .is_own = gpu_process_value(rows, i, "own") > 0,
                                  .line = i};
    return fabs(r->pid) < 1e10 && fabs(r->device) < 1e6 && (isnan(r->slice) || fabs(r->slice) < 1e6);
}

/* True if no row before it is of the same process. */
static bool gpu_process_is_first(const struct gpu_processes *p, const struct gpu_process_row *r) {
    for (size_t i = 0; i < p->n; i++)
        if (p->items[i].pid == r->pid)
            return false;
    return true;
}

void gpu_processes_build(struct gpu_processes *p, struct result *rows, struct outline *out) {
    struct gpu_processes before = *p;
    size_t n = rows ? rows->n_rows : 0;
    struct outline_node *nodes = calloc(n + 1, sizeof *nodes);
    *p = (struct gpu_processes){.items = calloc(n + 1, sizeof *p->items), .mem_mb = NAN};
    if (nodes && p->items && rows)
        p->rows = result_ref(rows);
    for (size_t i = 0; p->rows && i < n; i++) {
        struct gpu_process_row *r = &p->items[p->n];
        if (!gpu_process_read(r, rows, i))
            continue;
        if (isnan(r->mem_mb))
            p->is_partial = true;
        else
            p->mem_mb = (isnan(p->mem_mb) ? 0 : p->mem_mb) + r->mem_mb;
        p->pids += gpu_process_is_first(p, r);
        nodes[p->n] = (struct outline_node){.row = r, .parent = -1, .key = gpu_process_key(r)};
        p->n++;
    }
    outline_take(out, nodes, p->n);
    gpu_processes_fini(&before);
}
