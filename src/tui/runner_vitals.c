/* SPDX-License-Identifier: Apache-2.0 */
/* runner_vitals: see runner_vitals.h. */
#include "tui/runner_vitals.h"

void runner_vitals_look(struct vitals_reader *r, struct app *a, struct session *s) {
    struct pulse *q = &a->data.pulse;
    if (app_wants_vitals(a) && a->pid > 0 &&
        !(q->vitals_at_s > 0 && a->now_s - q->vitals_at_s < RUNNER_VITALS_S)) {
        struct vitals v;
        vitals_read(r, a->pid, &v);
        app_take_vitals(a, &v);
    }
    if (s && app_wants_status(a)) {
        q->status_at_s = a->now_s; /* whatever comes of it: it is asked again in time */
        (void)session_request(s, WIRE_STATUS, NULL);
    }
}
