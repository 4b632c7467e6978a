/* SPDX-License-Identifier: Apache-2.0 */
/* host_proc_stats: see host_proc_stats.h. */
#include "tui/host/host_proc_stats.h"

void host_proc_stats_poll(struct proc_stats_reader *r, struct app *a, struct session *s) {
    struct events *q = &a->data.pulse;
    if (app_wants_proc_stats(a) && a->pid > 0 &&
        !(q->vitals_at_s > 0 && a->now_s - q->vitals_at_s < HOST_PROC_STATS_S)) {
        struct proc_stats v;
        proc_stats_read(r, a->pid, &v);
        app_take_proc_stats(a, &v);
    }
    if (s && app_wants_status(a)) {
        q->status_at_s = a->now_s; /* whatever comes of it: it is asked again in time */
        (void)session_request(s, WIRE_STATUS, NULL);
    }
}
