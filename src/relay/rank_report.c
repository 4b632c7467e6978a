/* SPDX-License-Identifier: Apache-2.0 */
/* rank_report: see rank_report.h. */
#include "relay/rank_report.h"

#include <math.h>
#include <stdio.h>

void rank_report_take(struct rank_report *r, const struct rank_reading *got, int64_t stack) {
    struct report_rank before = r->row;
    struct gpu_use use;
    r->row = got->report;
    gpu_process_read((pid_t)r->row.pid, &use);
    r->row.gpu_util = use.util_pct;
    r->row.gpu_mem_mb = use.mem_used_mb;
    r->row.gpu_power_w = use.power_w;
    snprintf(r->devices, sizeof r->devices, "%s", use.devices);
    r->row.gpu_devices = r->devices[0] ? r->devices : NULL;
    snprintf(r->what, sizeof r->what, "%s", got->report.wait_what ? got->report.wait_what : "");
    snprintf(r->note, sizeof r->note, "%s", got->report.note ? got->report.note : "");
    r->row.wait_what = r->what[0] ? r->what : NULL;
    r->row.note = r->note[0] ? r->note : NULL;
    if (got->is_gone)
        r->row.state = "X";
    r->row.stack = stack;
    bool same = r->row.stack == before.stack && !isnan(before.since) &&
                (!got->is_gone || (before.state && before.state[0] == 'X'));
    r->row.since = same ? before.since : r->row.taken_at;
}
