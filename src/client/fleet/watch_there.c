/* SPDX-License-Identifier: Apache-2.0 */
/* watch_there: see watch_there.h. */
#include "client/fleet/watch_there.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/fleet/fleet_open.h"
#include "client/fleet/report_reading.h"

#define WATCH_THERE_FIND_S 30.0
#define WATCH_THERE_READ_S 6.0 /* a reading takes 2 s at most, and the way */
#define WATCH_THERE_MISSING 1024

static int watch_there_compare(const void *a, const void *b) {
    const struct fleet_verdict_rank *x = a, *y = b;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

static ssize_t watch_there_find(const struct fleet_verdict_rank *ranks, size_t n, int64_t rank) {
    if (rank < 0 || rank >= RANK_SET_LIMIT)
        return -1;
    const struct fleet_verdict_rank key = {.rank = (int32_t)rank};
    const struct fleet_verdict_rank *r = bsearch(&key, ranks, n, sizeof *ranks, watch_there_compare);
    return r ? r - ranks : -1;
}

static void watch_there_add_group(struct rank_reading *r, const struct report_group *row) {
    struct rank_group *more =
        r->n_groups < RANK_GROUPS_MAX ? realloc(r->groups, (r->n_groups + 1) * sizeof *more) : NULL;
    if (!more)
        return;
    r->groups = more;
    report_reading_take_group(row, &r->groups[r->n_groups++]);
}

/* Whether its host has answered, and does not have the rank any longer: neither a reading of it, which is
 * looked for before, nor the rank among those that are there. */
static bool watch_there_is_gone(const struct watch_there *w, uint32_t host, int32_t rank) {
    struct fleet_states s;
    struct rank_set here = {.n = 0};
    bool has_answered = host != UINT32_MAX && fleet_source_states(w->source, host, &s) && s.n > 0 && s.job &&
                        !(s.job->unread > 0) && s.job->ranks &&
                        rank_set_parse(&here, s.job->ranks, NULL) == 0;
    bool has_ended = has_answered && !rank_set_has(&here, rank);
    rank_set_fini(&here);
    return has_ended;
}

/* What the hosts have answered. */
static void watch_there_take(const struct watch_there *w, const struct fleet_verdict_rank *ranks,
                             struct rank_reading *readings, size_t n) {
    struct fleet_states s;
    for (size_t i = 0; fleet_source_states(w->source, i, &s); i++) {
        for (size_t k = 0; k < s.n; k++) {
            ssize_t at = watch_there_find(ranks, n, s.states[k].rank);
            if (at < 0 || w->owners[at] != i)
                continue;
            rank_reading_fini(&readings[at]);
            report_reading_take(&s.states[k], s.seen_s, &readings[at]);
            /* another process has the rank now */
            if (s.states[k].pid != ranks[at].pid) {
                rank_state_init(&readings[at].state);
                readings[at].state.gone = true;
            }
        }
        for (size_t k = 0; k < s.n_groups; k++) {
            ssize_t at = watch_there_find(ranks, n, s.groups[k].rank);
            if (at >= 0 && w->owners[at] == i && readings[at].answer == RANK_ANSWERED)
                watch_there_add_group(&readings[at], &s.groups[k]);
        }
    }
    for (size_t i = 0; i < n; i++) {
        struct rank_state *state = &readings[i].state;
        bool is_read = state->at_s > 0 || state->gone;
        state->gone = is_read ? state->gone : watch_there_is_gone(w, w->owners[i], ranks[i].rank);
    }
}

/* What NCCL knows of the ranks, as each host has heard it. */
static void watch_there_take_ras(const struct watch_there *w) {
    struct ras_fact facts[RAS_FACTS], fact;
    struct fleet_states s;
    size_t n = 0;
    for (size_t i = 0; fleet_source_states(w->source, i, &s); i++)
        for (size_t k = 0; k < s.n_ras; k++) {
            report_reading_take_ras(&s.ras[k], &fact);
            if (fact.rank < 0 ? fact.note[0] != '\0'
                              : fact.state != RAS_ANSWERS && (!w->world || fact.rank < w->world))
                ras_fact_add(facts, &n, &fact);
        }
    fleet_watch_set_ras(w->watch, facts, n);
}

static int watch_there_read(void *arg, bool counters, const struct fleet_verdict_rank *ranks,
                            struct rank_reading *readings, size_t n, struct fleet_watch_time *time,
                            struct err *e) {
    struct watch_there *w = arg;
    if (counters || !w->is_read) {
        fleet_source_ask_states(w->source, counters);
        /* without an answer the ranks are unknown */
        if (fleet_source_fill(w->source, 1, WATCH_THERE_READ_S, NULL, NULL, e) != 0)
            *e = (struct err){.code = ERR_OK};
    }
    w->is_read = false;
    time->is_past = w->source->is_past;
    time->is_last = w->source->is_last;
    if (!isnan(w->source->read_s))
        time->at_s = w->source->read_s;
    watch_there_take(w, ranks, readings, n);
    watch_there_take_ras(w);
    return 0;
}

/* Add ranks of host `i` that no other has so far, if their processes have ended (`gone`) or live. How many there are
 * then, or -1 without memory. */
static ssize_t watch_there_add(struct watch_there *w, const struct fleet_states *s, size_t i, bool gone,
                               struct fleet_verdict_rank *list, uint32_t *hosts, size_t n, size_t cap) {
    for (size_t k = 0; k < s->n && n < cap; k++) {
        const struct report_state *row = &s->states[k];
        if ((row->gone == 1) != gone || row->rank < 0 || row->rank >= RANK_SET_LIMIT || row->pid <= 0 ||
            row->pid > INT32_MAX || rank_set_has(&w->ranks, (int32_t)row->rank))
            continue;
        if (rank_set_add(&w->ranks, (int32_t)row->rank, (int32_t)row->rank) != 0)
            return -1;
        hosts[n] = (uint32_t)i;
        list[n++] = (struct fleet_verdict_rank){
            .rank = (int32_t)row->rank, .pid = (pid_t)row->pid, .uptime_s = row->uptime_s};
    }
    return (ssize_t)n;
}

/* Add the ranks of the last reading to the first `n`: each is the host's that comes first, of those where it lives if
 * there are any: it may have been started again elsewhere. Their number, or -1 without memory. */
static ssize_t watch_there_list(struct watch_there *w, struct fleet_verdict_rank *list, uint32_t *hosts,
                                size_t n, size_t cap) {
    struct fleet_states s;
    ssize_t rc;
    for (size_t i = 0; fleet_source_states(w->source, i, &s); i++) {
        /* ranks that the host was promised, and nobody has */
        if (s.job && !(s.job->unread > 0) && rank_set_join_text(&w->missing, s.job->missing) != 0)
            return -1;
        if (s.job && !w->job[0]) {
            snprintf(w->job, sizeof w->job, "%s", s.job->name ? s.job->name : "");
            w->world = s.job->world > 0 && s.job->world <= RANK_SET_LIMIT ? (int32_t)s.job->world : 0;
        }
    }
    for (int gone = 0; gone < 2; gone++)
        for (size_t i = 0; fleet_source_states(w->source, i, &s); i++) {
            if ((rc = watch_there_add(w, &s, i, gone == 1, list, hosts, n, cap)) < 0)
                return -1;
            n = (size_t)rc;
        }
    if (rank_set_remove(&w->missing, &w->ranks) != 0)
        return -1;
    for (size_t i = 0; i < w->missing.n; i++)
        for (int32_t r = w->missing.ranges[i].first; r <= w->missing.ranges[i].last && n < cap; r++) {
            hosts[n] = UINT32_MAX;
            list[n++] = (struct fleet_verdict_rank){.rank = r, .uptime_s = NAN};
        }
    return (ssize_t)n;
}

/* No rank is known. */
static int watch_there_refuse(const struct watch_there *w, struct err *e) {
    struct strbuf silent;
    strbuf_init(&silent, 0);
    fleet_source_put_silent(w->source, &silent);
    if (silent.len)
        err_set(e, ERR_ATTACH, "there is no news of job %s: %.300s", w->job, strbuf_str(&silent));
    else
        err_set(e, ERR_ATTACH, "no process of these hosts is a rank of job %s", w->job);
    strbuf_fini(&silent);
    return -1;
}

/* What the ranks of a watch are, and whose. */
struct watch_there_found {
    struct fleet_verdict_rank *ranks;
    uint32_t *hosts; /* UINT32_MAX: none */
    ssize_t n;       /* -1 without memory */
};

/* Ranks of a host without an answer stay what they were, whoever claims them meanwhile. Their number, or -1
 * without memory. */
static ssize_t watch_there_keep_silent(struct watch_there *w, struct fleet_verdict_rank *list,
                                       uint32_t *hosts) {
    struct fleet_states s;
    size_t n = 0, n_ranks = 0;
    const struct fleet_verdict_rank *ranks = w->watch ? fleet_watch_ranks(w->watch, &n_ranks) : NULL;
    for (size_t i = 0; i < n_ranks; i++) {
        if (w->owners[i] == UINT32_MAX || !fleet_source_states(w->source, w->owners[i], &s) || s.n > 0)
            continue;
        if (rank_set_add(&w->ranks, ranks[i].rank, ranks[i].rank) != 0)
            return -1;
        hosts[n] = w->owners[i];
        list[n++] = (struct fleet_verdict_rank){
            .rank = ranks[i].rank, .pid = ranks[i].pid, .uptime_s = ranks[i].uptime_s};
    }
    return (ssize_t)n;
}

static struct watch_there_found watch_there_search(struct watch_there *w) {
    struct watch_there_found f = {.n = -1};
    struct fleet_states s;
    size_t cap = WATCH_THERE_MISSING, n_old = 0;
    if (w->watch)
        fleet_watch_ranks(w->watch, &n_old);
    for (size_t i = 0; fleet_source_states(w->source, i, &s); i++)
        cap += s.n;
    cap += n_old;
    rank_set_fini(&w->ranks);
    rank_set_fini(&w->missing);
    f.ranks = calloc(cap, sizeof *f.ranks);
    f.hosts = calloc(cap, sizeof *f.hosts);
    ssize_t kept = f.ranks && f.hosts ? watch_there_keep_silent(w, f.ranks, f.hosts) : -1;
    if (kept >= 0)
        f.n = watch_there_list(w, f.ranks, f.hosts, (size_t)kept, cap);
    return f;
}

static void watch_there_found_fini(struct watch_there_found *f) {
    free(f->ranks);
    free(f->hosts);
}

/* Watch them instead of others. 0, or -1 without memory: then it is as it was. */
static int watch_there_use(struct watch_there *w, const struct watch_there_found *f) {
    size_t n = 0;
    uint32_t *owners = calloc((size_t)f->n + 1, sizeof *owners);
    struct fleet_watch *watch =
        owners ? fleet_watch_new_there(f->ranks, (size_t)f->n, w->world, watch_there_read, w) : NULL;
    if (!watch) {
        free(owners);
        return -1;
    }
    const struct fleet_verdict_rank *ranks = fleet_watch_ranks(watch, &n);
    for (ssize_t i = 0; i < f->n; i++) {
        ssize_t at = watch_there_find(ranks, n, f->ranks[i].rank);
        if (at >= 0)
            owners[at] = f->hosts[i];
    }
    fleet_watch_free(w->watch);
    free(w->owners);
    w->watch = watch;
    w->owners = owners;
    return 0;
}

static int watch_there_begin(struct watch_there *w, struct err *e) {
    struct watch_there_found f = watch_there_search(w);
    int rc = f.n == 0                                 ? watch_there_refuse(w, e)
             : f.n < 0 || watch_there_use(w, &f) != 0 ? err_set(e, ERR_FAILED, "out of memory for the ranks")
                                                      : 0;
    watch_there_found_fini(&f);
    return rc;
}

/* Whether a process is a rank that was not one before. */
static bool watch_there_is_new(const struct watch_there *w, const struct watch_there_found *f) {
    size_t n;
    const struct fleet_verdict_rank *ranks = fleet_watch_ranks(w->watch, &n);
    for (ssize_t i = 0; i < f->n; i++) {
        ssize_t at = watch_there_find(ranks, n, f->ranks[i].rank);
        if (f->ranks[i].pid > 0 && (at < 0 || ranks[at].pid != f->ranks[i].pid))
            return true;
    }
    return false;
}

int watch_there_renew(struct watch_there *w, struct err *e) {
    struct watch_there_found f = watch_there_search(w);
    bool is_new = f.n >= 0 && watch_there_is_new(w, &f);
    int rc = f.n < 0 ? -1 : is_new ? watch_there_use(w, &f) : 0;
    watch_there_found_fini(&f);
    if (rc != 0)
        return err_set(e, ERR_FAILED, "out of memory for the ranks");
    return is_new;
}

int watch_there_ask(struct watch_there *w, double wait_s, bool (*stop)(void *arg), void *arg,
                    struct fleet_verdicts *out, struct err *e) {
    *out = (struct fleet_verdicts){.n = 0};
    int rc = watch_there_renew(w, e) < 0 ? -1 : fleet_watch_ask(w->watch, wait_s, stop, arg, out, e);
    int more = rc == 0 && !(stop && stop(arg)) ? watch_there_renew(w, e) : 0;
    if (rc == 0 && more == 0)
        return 0;
    fleet_verdicts_fini(out);
    return rc == 0 && more > 0 ? fleet_watch_ask(w->watch, wait_s, stop, arg, out, e) : -1;
}

int watch_there_open(struct watch_there *w, const char *job, const struct fleet_reach *reach, struct err *e) {
    *w = (struct watch_there){.is_read = true};
    w->source = fleet_open_work(job, reach, REPORT_STATES, e);
    if (!w->source || fleet_source_fill(w->source, 1, WATCH_THERE_FIND_S, NULL, NULL, e) != 0)
        return -1;
    return watch_there_begin(w, e);
}

void watch_there_close(struct watch_there *w) {
    fleet_watch_free(w->watch);
    fleet_source_close(w->source);
    rank_set_fini(&w->ranks);
    rank_set_fini(&w->missing);
    free(w->owners);
    *w = (struct watch_there){.source = NULL};
}
