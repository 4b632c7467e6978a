/* SPDX-License-Identifier: Apache-2.0 */
/* pace: see pace.h. */
#include "client/fleet/pace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/grow.h"
#include "base/hash.h"
#include "base/table.h"
#include "client/fleet/straggler.h"

#define PACE_RANKS 16384
#define PACE_NEW_NS (10 * CLOCK_NS_PER_S)   /* for which rows of a rank wait for it */
#define PACE_STEPS 512                      /* of a rank that are kept; twice as many at times, */
#define PACE_STEPS_LEAST 64                 /* with many ranks, */
#define PACE_STEPS_ALL (640 * 1024)         /* and of all ranks together */
#define PACE_MEETINGS 4096                  /* the same of collectives, with few ranks, */
#define PACE_MEETINGS_LEAST 128             /* with many, */
#define PACE_MEETINGS_ALL (2 * 1024 * 1024) /* and of all ranks together */
#define PACE_OPS 64
#define PACE_OP 32
#define PACE_SEQ_MAX ((int64_t)1 << 53)
#define PACE_SET_BACK_S 1.0 /* a step that ends so much before the last one: times are off by less */
#define PACE_COST 20        /* it is judged for this part of the time at most: a twentieth */
#define PACE_STANDS 5.0     /* steps of time without one: the job does not move, */
#define PACE_STANDS_S 10.0  /* and so long at least */
#define PACE_EVIDENCE 8

/* The newest row of a table that was taken. */
struct pace_row {
    int64_t seq;
    double at;
};

struct pace_rank {
    int32_t rank;
    uint32_t node;
    int64_t pid;
    struct pace_row newest_step, newest_meeting;
    struct straggler_step *steps;
    size_t n_steps, cap_steps;
    struct straggler_collective *meetings;
    size_t n_meetings, cap_meetings;
    /* as it was judged */
    bool is_judged;
    struct straggler_rank result;
    bool is_used;  /* it is in the newest fleet, */
    bool was_used; /* or was in one */
    uint64_t made_ns;
};

struct pace {
    struct pace_rank *ranks;
    size_t n, cap;
    size_t n_new;        /* that were in no fleet yet */
    bool is_dropped;     /* those, since the last fleet: there were too many */
    struct table by_key; /* numbers of `ranks` */
    char ops[PACE_OPS][PACE_OP];
    uint32_t n_ops;
    double delay_s;
    uint64_t next_ns; /* when it is judged again */
    struct straggler_verdict verdicts[STRAGGLER_ROLES];
    size_t n_verdicts;
    struct fleet_fan *fan;
    size_t n_fan, cap_fan;
};

struct pace *pace_new(void) {
    return calloc(1, sizeof(struct pace));
}

void pace_set_delay(struct pace *p, double delay_s) { p->delay_s = delay_s; }

static void pace_drop_rank(struct pace_rank *r) {
    free(r->steps);
    free(r->meetings);
}

void pace_free(struct pace *p) {
    if (!p)
        return;
    for (size_t i = 0; i < p->n; i++)
        pace_drop_rank(&p->ranks[i]);
    free(p->ranks);
    table_fini(&p->by_key);
    free(p->fan);
    free(p);
}

/* ---- rows ---- */

static uint64_t pace_hash(uint32_t node, int32_t rank, int64_t pid) {
    return hash_mix(hash_mix((uint64_t)node << 32 | (uint32_t)rank) ^ (uint64_t)pid);
}

static struct pace_rank *pace_find(struct pace *p, uint32_t node, int32_t rank, int64_t pid) {
    size_t at = TABLE_BEGIN;
    for (uint32_t i; (i = table_next(&p->by_key, pace_hash(node, rank, pid), &at)) != TABLE_NONE;) {
        struct pace_rank *r = &p->ranks[i];
        if (r->node == node && r->rank == rank && r->pid == pid)
            return r;
    }
    return NULL;
}

static bool pace_was_used(const struct pace_rank *r) { return r->was_used; }

/* Forget the ranks that are not to be kept. */
static void pace_drop(struct pace *p, bool (*keeps)(const struct pace_rank *r)) {
    size_t kept = 0;
    for (size_t i = 0; i < p->n; i++)
        if (keeps(&p->ranks[i])) {
            p->ranks[kept++] = p->ranks[i];
        } else {
            /* what was judged with it is of another time */
            p->n_verdicts = p->ranks[i].is_judged ? 0 : p->n_verdicts;
            p->n_new -= !p->ranks[i].was_used;
            pace_drop_rank(&p->ranks[i]);
        }
    if (kept == p->n)
        return;
    p->n = kept;
    table_clear(&p->by_key);
    /* there was room for more */
    for (size_t i = 0; i < kept; i++)
        table_add(&p->by_key, pace_hash(p->ranks[i].node, p->ranks[i].rank, p->ranks[i].pid), (uint32_t)i);
}

static struct pace_rank *pace_make(struct pace *p, uint32_t node, int32_t rank, int64_t pid) {
    struct pace_rank *r = pace_find(p, node, rank, pid);
    if (r)
        return r;
    /* a host that makes ranks up takes no room from those that there are */
    if (p->n == PACE_RANKS && p->n_new && !p->is_dropped) {
        p->is_dropped = true;
        pace_drop(p, pace_was_used);
    }
    if (p->n == PACE_RANKS || grow_array(&p->ranks, sizeof *p->ranks, p->n + 1, &p->cap) != 0 ||
        table_add(&p->by_key, pace_hash(node, rank, pid), (uint32_t)p->n) != 0)
        return NULL;
    r = &p->ranks[p->n++];
    *r = (struct pace_rank){.node = node,
                            .rank = rank,
                            .pid = pid,
                            .newest_step = {.seq = -1},
                            .newest_meeting = {.seq = -1},
                            .made_ns = clock_mono_ns()};
    p->n_new++;
    return r;
}

/* Room for one more: of twice `most` items the older half is dropped. False without memory. */
static bool pace_grow(void *items, size_t size, size_t *n, size_t *cap, size_t most) {
    if (*n >= 2 * most) {
        char *data;
        memcpy(&data, items, sizeof data);
        memmove(data, data + (*n - most) * size, most * size);
        *n = most;
    }
    return grow_array(items, size, *n + 1, cap) == 0;
}

/* How many items of a rank are kept, of all that there may be. Ranks that may be made up take nothing from those that
 * there are. */
static size_t pace_share(const struct pace *p, const struct pace_rank *r, size_t all, size_t least,
                         size_t most) {
    size_t share = all / (r->was_used ? p->n - p->n_new : p->n);
    return share > most ? most : share < least ? least : share;
}

/* True: the clock was set back. */
static bool pace_add_step(const struct pace *p, struct pace_rank *r, const struct report_time *row) {
    double at = r->n_steps ? r->steps[r->n_steps - 1].at : -INFINITY;
    bool is_set_back = row->at < at - PACE_SET_BACK_S;
    if (row->step < 0 || row->step > PACE_SEQ_MAX || (!(row->at > at) && !is_set_back))
        return false;
    /* what was before is of another clock */
    if (is_set_back)
        r->n_steps = r->n_meetings = 0;
    /* the agent counts again from the beginning */
    if (r->n_steps && row->step <= r->steps[r->n_steps - 1].step)
        r->n_steps = 0;
    if (!pace_grow(&r->steps, sizeof *r->steps, &r->n_steps, &r->cap_steps,
                   pace_share(p, r, PACE_STEPS_ALL, PACE_STEPS_LEAST, PACE_STEPS)))
        return is_set_back;
    r->steps[r->n_steps++] =
        (struct straggler_step){.step = row->step,
                                .at = row->at,
                                .ms = (float)row->ms,
                                .parts = {[STRAGGLER_DATA] = (float)row->data_ms,
                                          [STRAGGLER_FORWARD] = (float)row->forward_ms,
                                          [STRAGGLER_BACKWARD] = (float)row->backward_ms,
                                          [STRAGGLER_OPTIMIZER] = (float)row->optimizer_ms,
                                          [STRAGGLER_GC] = (float)row->gc_ms,
                                          [STRAGGLER_OTHER] = (float)row->other_ms}};
    return is_set_back;
}

/* The number of an operation; PACE_OPS: there are too many. */
static uint32_t pace_find_op(struct pace *p, const char *op) {
    uint32_t i = 0;
    while (i < p->n_ops && strncmp(p->ops[i], op, PACE_OP - 1) != 0)
        i++;
    if (i == p->n_ops && i < PACE_OPS)
        snprintf(p->ops[p->n_ops++], PACE_OP, "%s", op);
    return i;
}

static void pace_add_meeting(struct pace *p, struct pace_rank *r, const struct report_time *row) {
    uint32_t op = pace_find_op(p, row->op);
    size_t most = pace_share(p, r, PACE_MEETINGS_ALL, PACE_MEETINGS_LEAST, PACE_MEETINGS);
    if (op == PACE_OPS || !(row->ms >= 0) ||
        !pace_grow(&r->meetings, sizeof *r->meetings, &r->n_meetings, &r->cap_meetings, most))
        return;
    r->meetings[r->n_meetings++] =
        (struct straggler_collective){.begin = row->at, .end = row->at + row->ms / 1e3, .op = op};
}

bool pace_add(struct pace *p, uint32_t node, const struct report_time *row) {
    if (row->rank < 0 || row->rank >= RANK_SET_LIMIT || row->seq < 0 || row->seq > PACE_SEQ_MAX ||
        !isfinite(row->at))
        return false;
    struct pace_rank *r = pace_make(p, node, (int32_t)row->rank, row->pid);
    struct pace_row *newest = !r ? NULL : row->op ? &r->newest_meeting : &r->newest_step;
    /* an agent that was loaded again counts its rows from the beginning: only these are newer */
    if (!r || (row->seq <= newest->seq && row->at <= newest->at))
        return false;
    newest->at = fmax(newest->at, row->at);
    newest->seq = row->seq;
    if (!row->op)
        return pace_add_step(p, r, row);
    pace_add_meeting(p, r, row);
    return false;
}

void pace_forget(struct pace *p, uint32_t node) {
    for (size_t i = 0; i < p->n; i++) {
        struct pace_rank *r = &p->ranks[i];
        if (r->node != node)
            continue;
        r->n_steps = r->n_meetings = 0;
        /* what was judged with it may have been by the wrong clock */
        p->n_verdicts = r->is_judged ? 0 : p->n_verdicts;
        r->is_judged = false;
    }
}

/* ---- judging ---- */

/* It is in the fleet; or it may be in the next one: the history of a host's ranks comes before its first round is
 * complete, and is sent once. */
static bool pace_is_kept(const struct pace_rank *r) {
    return r->is_used || (!r->was_used && clock_mono_ns() - r->made_ns < PACE_NEW_NS);
}

static int pace_compare(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* The durations of each step of a role, in all its ranks. `ranks` are in the order in which roles are made. */
static void pace_put_fan(struct pace *p, const struct straggler_rank *ranks, size_t n) {
    float *ms = malloc((n + 1) * sizeof *ms);
    p->n_fan = 0;
    for (int32_t role = 0; ms && role < STRAGGLER_ROLES; role++) {
        size_t first = 0;
        while (first < n && ranks[first].role != role)
            first++;
        size_t from = first < n && ranks[first].n_steps > PACE_STEPS ? ranks[first].n_steps - PACE_STEPS : 0;
        for (size_t i = from; first < n && i < ranks[first].n_steps; i++) {
            const struct straggler_step *own = &ranks[first].steps[i];
            size_t found = 0;
            for (size_t k = first; k < n; k++) {
                const struct straggler_step *s =
                    ranks[k].role == role ? straggler_find_step(&ranks[k], own->step) : NULL;
                if (s && isfinite(s->ms))
                    ms[found++] = s->ms;
            }
            if (!found || grow_array(&p->fan, sizeof *p->fan, p->n_fan + 1, &p->cap_fan) != 0)
                continue;
            qsort(ms, found, sizeof *ms, pace_compare);
            p->fan[p->n_fan++] = (struct fleet_fan){.role = role,
                                                    .step = own->step,
                                                    .n = (uint32_t)found,
                                                    .least = ms[0],
                                                    .median = ms[(found - 1) / 2],
                                                    .most = ms[found - 1]};
        }
    }
    free(ms);
}

/* Ranks that are in no fleet yet are not judged, and nobody is compared with them. */
static void pace_judge(struct pace *p, const struct fleet *f) {
    struct straggler_rank *ranks = calloc(p->n + 1, sizeof *ranks);
    double error_s = 0;
    size_t n = 0;
    for (size_t i = 0; ranks && i < p->n; i++) {
        const struct pace_rank *r = &p->ranks[i];
        if (!r->is_used)
            continue;
        const struct fleet_node *node = &f->nodes[r->node];
        bool has_clock = !isnan(node->clock_offset_ms);
        /* without its clock it is compared with nobody */
        ranks[n++] = (struct straggler_rank){.host = (int32_t)r->node,
                                             .ahead_s = has_clock ? node->clock_offset_ms / 1e3 : 0,
                                             .steps = r->steps,
                                             .n_steps = has_clock ? r->n_steps : 0,
                                             .collectives = r->meetings,
                                             .n_collectives = r->n_meetings};
        error_s = fmax(error_s, node->clock_error_ms / 1e3);
    }
    /* an error of each of two clocks */
    bool ok = ranks && straggler_find(ranks, n, 2 * error_s, p->verdicts, &p->n_verdicts) == 0;
    if (ok)
        pace_put_fan(p, ranks, n);
    else
        p->n_verdicts = p->n_fan = 0;
    n = 0;
    for (size_t i = 0; i < p->n; i++) {
        struct pace_rank *r = &p->ranks[i];
        r->is_judged = ok && r->is_used;
        if (r->is_judged)
            r->result = ranks[n++];
        r->result.steps = NULL;
        r->result.collectives = NULL;
    }
    free(ranks);
}

/* Whether steps end: else what was judged is of another time. */
static bool pace_moves(const struct pace *p, const struct fleet *f) {
    for (size_t i = 0; i < p->n; i++) {
        const struct pace_rank *r = &p->ranks[i];
        if (!r->n_steps || !r->is_used)
            continue;
        const struct straggler_step *newest = &r->steps[r->n_steps - 1];
        double offset_ms = f->nodes[r->node].clock_offset_ms;
        double age = f->taken_at - newest->at + (isnan(offset_ms) ? 0 : offset_ms / 1e3);
        if (age < p->delay_s + fmax(PACE_STANDS_S, PACE_STANDS * newest->ms / 1e3))
            return true;
    }
    return false;
}

void pace_put(struct pace *p, struct fleet *f) {
    uint64_t now = clock_mono_ns();
    f->fan = NULL;
    f->n_fan = f->n_slow = 0;
    p->is_dropped = false;
    for (size_t i = 0; i < p->n; i++)
        p->ranks[i].is_used = false;
    for (size_t i = 0; i < f->n_ranks; i++) {
        const struct fleet_rank *r = &f->ranks[i];
        struct pace_rank *mine = r->pid ? pace_find(p, r->node, r->rank, r->pid) : NULL;
        if (!mine)
            continue;
        p->n_new -= !mine->was_used;
        mine->is_used = mine->was_used = true;
    }
    pace_drop(p, pace_is_kept);
    if (now >= p->next_ns) {
        /* of a processor: on a busy machine a wait for one costs nobody anything */
        uint64_t before = clock_self_cpu_ns();
        pace_judge(p, f);
        uint64_t took = clock_self_cpu_ns() - before;
        p->next_ns = now + (PACE_COST * took > CLOCK_NS_PER_S ? PACE_COST * took : 0);
    }
    bool moves = pace_moves(p, f);
    for (size_t i = 0; i < f->n_ranks; i++) {
        struct fleet_rank *r = &f->ranks[i];
        const struct pace_rank *mine = r->pid ? pace_find(p, r->node, r->rank, r->pid) : NULL;
        if (!mine || !mine->is_judged)
            continue;
        r->own_ms = mine->result.own_ms;
        r->lag_ms = mine->result.lag_ms;
        r->last = mine->result.last;
        r->role = mine->result.role;
        r->shift = mine->result.shift;
        r->is_slow = moves && mine->result.is_named;
    }
    f->fan = arena_calloc(&f->arena, p->n_fan + 1, sizeof *f->fan);
    f->slow = arena_calloc(&f->arena, p->n_verdicts + 1, sizeof *f->slow);
    if (f->fan && p->n_fan) {
        memcpy(f->fan, p->fan, p->n_fan * sizeof *f->fan);
        f->n_fan = p->n_fan;
    }
    if (f->slow && moves && p->n_verdicts) {
        memcpy(f->slow, p->verdicts, p->n_verdicts * sizeof *f->slow);
        f->n_slow = p->n_verdicts;
    }
}

/* ---- in words ---- */

#define PACE_LEAST_MS 0.05 /* what is less is printed as 0.0: nothing is a share of that */

static int pace_places(double ms) { return ms < 99.95 ? 1 : 0; }

/* Those that are named, or of an imbalance those that come last most often. */
static int pace_put_evidence(const struct fleet *f, const struct straggler_verdict *s,
                             struct fleet_verdict *v) {
    for (size_t i = 0; i < f->n_ranks && v->n_evidence < PACE_EVIDENCE; i++) {
        const struct fleet_rank *r = &f->ranks[i];
        char lag[48] = ""; /* unknown if it is smaller than the error of the clocks */
        bool counts = s->code == STRAGGLER_SLOW ? r->is_slow : r->last >= s->last / 2;
        if (r->role != s->role || !counts)
            continue;
        if (!isnan(r->lag_ms))
            snprintf(lag, sizeof lag, ", %.*f ms later than the first", pace_places(r->lag_ms), r->lag_ms);
        if (fleet_verdict_prove(v, r->rank, "arrivals",
                                "%.*f ms of its own in a step%s, last in %.0f %% of %zu steps",
                                pace_places(r->own_ms), r->own_ms, lag, 100 * r->last, s->steps) != 0)
            return -1;
    }
    return 0;
}

static enum fleet_verdict_cause pace_cause(const struct straggler_verdict *s) {
    static const enum fleet_verdict_cause causes[] = {
        [STRAGGLER_DATA] = FLEET_CAUSE_DATA,
        [STRAGGLER_FORWARD] = FLEET_CAUSE_FORWARD,
        [STRAGGLER_BACKWARD] = FLEET_CAUSE_BACKWARD,
        [STRAGGLER_OPTIMIZER] = FLEET_CAUSE_OPTIMIZER,
        [STRAGGLER_GC] = FLEET_CAUSE_GC,
        [STRAGGLER_OTHER] = FLEET_CAUSE_OTHER,
        [STRAGGLER_COMPUTE] = FLEET_CAUSE_COMPUTE,
    };
    return s->has_part ? causes[s->part] : s->code == STRAGGLER_SLOW ? FLEET_CAUSE_UNKNOWN : FLEET_CAUSE_NONE;
}

static void pace_say_slow(const struct fleet *f, const struct straggler_verdict *s, struct fleet_verdict *v) {
    struct strbuf ranks;
    int places = pace_places(s->others_ms), n = rank_set_count(&v->ranks);
    const char *host = s->host >= 0 && (size_t)s->host < f->n_nodes ? f->nodes[s->host].host : NULL;
    char more[32] = "";
    strbuf_init(&ranks, 0);
    rank_set_put(&v->ranks, 8, &ranks);
    if (s->others_ms >= PACE_LEAST_MS)
        snprintf(more, sizeof more, " (+%.0f %%)", 100 * (s->own_ms / s->others_ms - 1));
    if (host)
        snprintf(v->brief, sizeof v->brief, "STRAGGLER HOST %.60s", host);
    else
        snprintf(v->brief, sizeof v->brief, "STRAGGLER RANK%s %.60s", n > 1 ? "S" : "", strbuf_str(&ranks));
    fleet_verdict_say(v,
                      "%s%.100s%srank%s %s need%s %.*f ms of %s own for a step, the others %.*f ms%s; last "
                      "in %.0f %% of %zu steps",
                      host ? "all ranks of host " : "", host ? host : "", host ? ": " : "", n > 1 ? "s" : "",
                      strbuf_str(&ranks), n > 1 ? "" : "s", places, s->own_ms, n > 1 ? "their" : "its",
                      places, s->others_ms, more, 100 * s->last, s->steps);
    if (s->has_part)
        fleet_verdict_say(v, "; %s takes %.*f ms longer", straggler_part_name(s->part),
                          pace_places(s->part_ms), s->part_ms);
    strbuf_fini(&ranks);
}

static int pace_put_verdict(const struct fleet *f, const struct straggler_verdict *s,
                            struct fleet_verdict *v) {
    double least = INFINITY, most = -INFINITY;
    int rc = 0;
    bool is_slow = s->code == STRAGGLER_SLOW;
    *v = (struct fleet_verdict){.code = is_slow ? FLEET_CODE_STRAGGLER : FLEET_CODE_IMBALANCE,
                                .level = VERDICT_WARN,
                                .cause = pace_cause(s),
                                .since_s = NAN,
                                .settled = true};
    for (size_t i = 0; i < f->n_ranks; i++) {
        const struct fleet_rank *r = &f->ranks[i];
        if (r->role != s->role)
            continue;
        if (!r->is_slow) {
            least = fmin(least, r->own_ms);
            most = fmax(most, r->own_ms);
        }
        rc |= rank_set_add(r->is_slow ? &v->ranks : &v->waiting, r->rank, r->rank);
    }
    if (is_slow)
        pace_say_slow(f, s, v);
    else {
        snprintf(v->brief, sizeof v->brief, "IMBALANCE");
        fleet_verdict_say(
            v,
            "the last rank comes %.*f ms after the others in a step of %.*f ms, and it is not always "
            "the same one (%.0f %% of %zu steps at most)",
            pace_places(s->cost_ms), s->cost_ms, pace_places(s->step_ms), s->step_ms, 100 * s->last,
            s->steps);
    }
    snprintf(v->denied, sizeof v->denied, "steps end in all ranks; %.*f to %.*f ms of their own in %s ranks",
             pace_places(least), least, pace_places(most), most, is_slow ? "the other" : "all");
    return rc | pace_put_evidence(f, s, v);
}

int pace_put_verdicts(const struct fleet *f, struct fleet_verdicts *out) {
    if (!f->n_slow)
        return 0;
    struct fleet_verdict *items = calloc(out->n + f->n_slow, sizeof *items);
    size_t n = 0, at = 0;
    int rc = 0;
    if (!items)
        return -1;
    while (at < out->n && out->items[at].level >= VERDICT_WARN)
        items[n++] = out->items[at++];
    for (size_t i = 0; i < f->n_slow; i++)
        rc |= pace_put_verdict(f, &f->slow[i], &items[n++]);
    while (at < out->n)
        items[n++] = out->items[at++];
    free(out->items);
    out->items = items;
    out->n = n;
    return rc;
}
