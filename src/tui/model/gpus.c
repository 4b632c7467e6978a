/* SPDX-License-Identifier: Apache-2.0 */
/* gpus: see gpus.h. */
#include "tui/model/gpus.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define GPUS_METERS 3 /* of each */

static double gpus_number(const struct result *rows, size_t i, const char *name) {
    int column = result_find_column(rows, name);
    return column >= 0 ? result_number(rows, i, (size_t)column) : NAN;
}

static double gpus_share(const struct result *rows, size_t i, const char *name) {
    double v = gpus_number(rows, i, name);
    return v >= 0 && v <= 100 ? v : NAN;
}

static const char *gpus_text(const struct result *rows, size_t i, const char *name) {
    int column = result_find_column(rows, name);
    bool is_text = column >= 0 && result_kind(rows, i, (size_t)column) == SQL_TEXT;
    return is_text ? rows->columns[column].values[i].s : NULL;
}

static int64_t gpus_int(const struct result *rows, size_t i, const char *name, int64_t missing) {
    double v = gpus_number(rows, i, name);
    return isnan(v) || fabs(v) > 1e6 ? missing : (int64_t)v;
}

static struct gpus_row *gpus_find(struct gpus *g, int64_t device, int64_t slice) {
    for (size_t i = 0; i < g->n; i++)
        if (g->items[i].device == device && g->items[i].slice == slice)
            return &g->items[i];
    if (g->n == GPUS_MAX)
        return NULL;
    struct meter *m = &g->meters[g->n * GPUS_METERS];
    struct gpus_row *r = &g->items[g->n++];
    *r = (struct gpus_row){
        .device = device, .slice = slice, .xid = NAN, .utils = m, .mems = m + 1, .powers = m + 2};
    return r;
}

/* The newest values, and one more of its past. A row without values says only that it does not answer. */
static void gpus_read(struct gpus *g, const struct result *rows, size_t i) {
    struct gpus_row *r = gpus_find(g, gpus_int(rows, i, "device", -1), gpus_int(rows, i, "slice", -1));
    double xid = gpus_number(rows, i, "xid");
    if (!r)
        return;
    r->line = i;
    r->timestamp = gpus_number(rows, i, "timestamp");
    r->uuid = gpus_text(rows, i, "uuid");
    r->name = gpus_text(rows, i, "name");
    r->throttle = gpus_text(rows, i, "throttle");
    r->state = gpus_text(rows, i, "state");
    r->util_pct = gpus_share(rows, i, "gpu_util");
    r->sm_active_pct = gpus_share(rows, i, "sm_active");
    g->has_sm_active = g->has_sm_active || !isnan(r->sm_active_pct);
    r->tensor_active_pct = gpus_share(rows, i, "tensor_active");
    r->dram_active_pct = gpus_share(rows, i, "dram_active");
    r->mem_used_mb = gpus_number(rows, i, "mem_used_mb");
    r->mem_total_mb = gpus_number(rows, i, "mem_total_mb");
    r->power_w = gpus_number(rows, i, "power_w");
    r->power_limit_w = gpus_number(rows, i, "power_limit_w");
    r->temperature_c = gpus_number(rows, i, "temperature_c");
    r->sm_clock_mhz = gpus_number(rows, i, "sm_clock_mhz");
    r->ecc = gpus_number(rows, i, "ecc");
    r->silent_s = gpus_number(rows, i, "silent_s");
    r->xid = isnan(xid) ? r->xid : xid;
    r->is_assumed = gpus_number(rows, i, "assumed") > 0;
    meter_add(r->utils, r->util_pct);
    meter_add(r->mems, r->mem_used_mb);
    meter_add(r->powers, r->power_w);
}

void gpus_fini(struct gpus *g) {
    result_unref(g->rows);
    free(g->meters);
    memset(g, 0, sizeof *g);
}

void gpus_build(struct gpus *g, struct result *rows) {
    struct gpus before = *g;
    *g = (struct gpus){.rows = NULL};
    if (rows && rows->n_rows)
        g->meters = calloc((size_t)GPUS_MAX * GPUS_METERS, sizeof *g->meters);
    if (g->meters) {
        g->rows = result_ref(rows);
        for (size_t i = 0; i < rows->n_rows; i++)
            gpus_read(g, rows, i);
    }
    gpus_fini(&before);
}

double gpus_util(const struct gpus *g) {
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < g->n; i++)
        if (!isnan(g->items[i].util_pct)) {
            sum += g->items[i].util_pct;
            n++;
        }
    return n ? sum / (double)n : NAN;
}

/* Memory of those that answer; of a divided device that of the whole. */
static double gpus_sum(const struct gpus *g, bool total) {
    double sum = NAN;
    for (size_t i = 0; i < g->n; i++) {
        const struct gpus_row *r = &g->items[i];
        bool is_part = r->slice >= 0 && i > 0 && g->items[i - 1].device == r->device;
        if (!is_part && r->mem_used_mb >= 0 && r->mem_total_mb >= 0)
            sum = (isnan(sum) ? 0 : sum) + (total ? r->mem_total_mb : r->mem_used_mb);
    }
    return sum;
}

double gpus_mem_used(const struct gpus *g) { return gpus_sum(g, false); }

double gpus_mem_total(const struct gpus *g) { return gpus_sum(g, true); }

/* Power alone is the rule under full load. */
static bool gpus_is_slowed(const struct gpus_row *r) {
    return r->throttle && (strstr(r->throttle, "heat") || strstr(r->throttle, "hardware"));
}

void gpus_put_trouble(const struct gpus_row *r, char *buf, size_t cap) {
    char state[32];
    buf[0] = '\0';
    if (r->state && strcmp(r->state, "ok") != 0) {
        text_sanitize(state, sizeof state, r->state);
        if (r->silent_s > 0)
            snprintf(buf, cap, "%s for %.0f s", state, r->silent_s);
        else
            snprintf(buf, cap, "%s", state);
    } else if (r->xid > 0)
        snprintf(buf, cap, "Xid %.0f", r->xid);
    else if (r->ecc > 0)
        snprintf(buf, cap, "%.0f memory error%s", r->ecc, r->ecc > 1 ? "s" : "");
    else if (gpus_is_slowed(r))
        snprintf(buf, cap, "slowed by %s", strstr(r->throttle, "heat") ? "heat" : "its board");
}

const struct gpus_row *gpus_worst(const struct gpus *g) {
    char text[64];
    for (size_t i = 0; i < g->n; i++) {
        gpus_put_trouble(&g->items[i], text, sizeof text);
        if (text[0])
            return &g->items[i];
    }
    return NULL;
}

void gpus_put_name(const struct gpus_row *r, char *buf, size_t cap) {
    if (r->slice >= 0)
        snprintf(buf, cap, "%lld.%lld", (long long)r->device, (long long)r->slice);
    else
        snprintf(buf, cap, "%lld", (long long)r->device);
}
