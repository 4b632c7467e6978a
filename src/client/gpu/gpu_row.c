/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_row: see gpu_row.h. */
#include "client/gpu/gpu_row.h"

#include <stdio.h>

static const char *gpu_row_throttle(int64_t reasons, char *buf, size_t cap) {
    static const char *const names[] = {"power", "heat", "hardware", "clock limit"};
    size_t at = 0;
    buf[0] = '\0';
    for (size_t i = 0; reasons > 0 && i < sizeof names / sizeof names[0]; i++)
        if (reasons >> i & 1)
            at += (size_t)snprintf(buf + at, cap - at, "%s%s", at ? "," : "", names[i]);
    return reasons < 0 ? NULL : buf;
}

static int64_t gpu_row_int(int64_t v) { return v < 0 ? RING_INT_NULL : v; }

static const char *gpu_row_text(const char *s) { return s[0] ? s : NULL; }

void gpu_row_fill(union ring_value *row, const struct gpu_facts *f, const struct gpu_values *v,
                  bool is_assumed, char *reasons) {
    row[RING_GPU_TIMESTAMP].f = v->timestamp;
    row[RING_GPU_DEVICE].i = f->device;
    row[RING_GPU_UUID].s = gpu_row_text(f->uuid);
    row[RING_GPU_NAME].s = gpu_row_text(f->name);
    row[RING_GPU_SLICE].i = gpu_row_int(f->slice);
    row[RING_GPU_UTIL].f = v->util_pct;
    row[RING_GPU_SM_ACTIVE].f = v->sm_active_pct;
    row[RING_GPU_TENSOR_ACTIVE].f = v->tensor_active_pct;
    row[RING_GPU_DRAM_ACTIVE].f = v->dram_active_pct;
    row[RING_GPU_MEM_USED].f = v->mem_used_mb;
    row[RING_GPU_MEM_TOTAL].f = v->mem_total_mb;
    row[RING_GPU_POWER].f = v->power_w;
    row[RING_GPU_POWER_LIMIT].f = v->power_limit_w;
    row[RING_GPU_TEMPERATURE].f = v->temperature_c;
    row[RING_GPU_SM_CLOCK].f = v->sm_clock_mhz;
    row[RING_GPU_THROTTLE].s = gpu_row_throttle(v->throttle, reasons, GPU_ROW_REASONS);
    row[RING_GPU_ECC].i = gpu_row_int(v->ecc);
    row[RING_GPU_XID].i = gpu_row_int(v->xid);
    row[RING_GPU_STATE].i = v->state;
    row[RING_GPU_SILENT_S].f = v->silent_s;
    row[RING_GPU_ASSUMED].i = is_assumed;
}
