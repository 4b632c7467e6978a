/* SPDX-License-Identifier: Apache-2.0 */
/* rank_states: see rank_states.h. */
#include "relay/rank_states.h"

#include "base/clock.h"
#include "client/fleet/fleet_watch.h"
#include "client/fleet/report_reading.h"

int rank_states_read(struct fleet_watch **w, const struct jobs_here *h, const struct job *job, bool counters,
                     rank_states_fn add, void *arg, struct err *e) {
    size_t n;
    if (!*w)
        *w = fleet_watch_new(h, job, &job->here, e);
    if (!*w || fleet_watch_read(*w, counters, e) != 0)
        return -1;
    const struct fleet_verdict_rank *ranks = fleet_watch_ranks(*w, &n);
    double now_s = (double)clock_mono_ns() / 1e9;
    for (size_t i = 0; i < n; i++) {
        if (ranks[i].pid <= 0 || !ranks[i].now)
            continue;
        struct report_state row = report_reading_put(ranks[i].now, now_s);
        row.rank = ranks[i].rank;
        row.pid = ranks[i].pid;
        row.uptime_s = ranks[i].uptime_s;
        add(arg, &row);
    }
    return 0;
}

void rank_states_groups(const struct fleet_watch *w, size_t from, rank_states_fn add, void *arg) {
    size_t n = 0, at = 0;
    const struct fleet_verdict_rank *ranks = w ? fleet_watch_ranks(w, &n) : NULL;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; ranks[i].pid > 0 && ranks[i].now && k < ranks[i].now->n_groups; k++) {
            if (at++ < from)
                continue;
            struct report_group row = report_reading_put_group(&ranks[i].now->groups[k]);
            row.rank = ranks[i].rank;
            add(arg, &row);
        }
}

void rank_states_ras(struct fleet_watch *w, rank_states_fn add, void *arg) {
    size_t n = 0;
    const struct ras_fact *facts = w ? fleet_watch_ask_ras(w, &n) : NULL;
    for (size_t i = 0; i < n; i++) {
        struct report_ras row = report_reading_put_ras(&facts[i]);
        add(arg, &row);
    }
}

bool rank_states_is_suspect(const struct fleet_watch *w) {
    size_t n = 0;
    const struct fleet_verdict_rank *ranks = w ? fleet_watch_ranks(w, &n) : NULL;
    for (size_t i = 0; i < n; i++)
        if (ranks[i].pid > 0 && !(ranks[i].now && ranks[i].now->state.gone) &&
            fleet_verdict_is_suspect(&ranks[i]))
            return true;
    return false;
}

bool rank_states_has_gone(const struct fleet_watch *w) { return w && fleet_watch_gone(w) > 0; }

void rank_states_keep(struct fleet_watch **w, const struct job *job) {
    if (*w && !fleet_watch_has(*w, job, &job->here))
        rank_states_end(w);
}

void rank_states_end(struct fleet_watch **w) {
    fleet_watch_free(*w);
    *w = NULL;
}
