/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_verdict: see fleet_verdict.h. */
#include "client/fleet/fleet_verdict.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/hash.h"
#include "base/text.h"
#include "client/fleet/hang.h"

#define FLEET_CPU_THREAD 0.05 /* of a core: a thread that uses more has moved */
#define FLEET_CPU_PROCESS 0.2 /* other threads of it work */
#define FLEET_BYTES 1048576.0 /* a second that it reads and writes */
#define FLEET_SLEEP_S 2.0     /* a sleep that ends by itself; shorter ones are a loop that asks */
#define FLEET_APART_SLACK_S 0.1
#define FLEET_GPU_BUSY 95.0 /* percent of the time: it spins */
#define FLEET_GPU_IDLE 50.0
#define FLEET_GPU_STEADY_W 5.0 /* by which the power of one that spins may move */
#define FLEET_GPU_STEADY 0.05
#define FLEET_GPU_MOST 3                    /* so many times those that differ are all others */
#define FLEET_RANGES 8                      /* of a set of ranks in a text */
#define FLEET_MEMBERS_MAX ((size_t)1 << 20) /* of all groups together */

const char *fleet_verdict_code_name(enum fleet_verdict_code code) {
    static const char *const names[FLEET_CODES] = {
        [FLEET_CODE_MOVING] = "MOVING",       [FLEET_CODE_WAITING] = "WAITING",
        [FLEET_CODE_UNKNOWN] = "UNKNOWN",     [FLEET_CODE_WAITS_FOR] = "WAITS FOR",
        [FLEET_CODE_HUNG] = "HUNG",           [FLEET_CODE_MISMATCH] = "MISMATCH",
        [FLEET_CODE_DEADLOCK] = "DEADLOCK",   [FLEET_CODE_ALL_ALIKE] = "ALL ALIKE",
        [FLEET_CODE_STRAGGLER] = "STRAGGLER", [FLEET_CODE_IMBALANCE] = "IMBALANCE",
    };
    return (unsigned)code < FLEET_CODES ? names[code] : NULL;
}

const char *fleet_verdict_cause_name(enum fleet_verdict_cause cause) {
    static const char *const names[FLEET_CAUSES] = {
        [FLEET_CAUSE_DEAD] = "DEAD",
        [FLEET_CAUSE_STOPPED] = "STOPPED",
        [FLEET_CAUSE_TRACED] = "TRACED",
        [FLEET_CAUSE_MISMATCH] = "OPERATION",
        [FLEET_CAUSE_ORDER] = "ORDER",
        [FLEET_CAUSE_GIL] = "GIL",
        [FLEET_CAUSE_GC] = "GC",
        [FLEET_CAUSE_COMPILE] = "COMPILE",
        [FLEET_CAUSE_LOADER] = "LOADER",
        [FLEET_CAUSE_CHECKPOINT] = "CHECKPOINT",
        [FLEET_CAUSE_LOADING] = "LOADING",
        [FLEET_CAUSE_EVALUATION] = "EVALUATION",
        [FLEET_CAUSE_PAUSED] = "PAUSED",
        [FLEET_CAUSE_SLEEP] = "SLEEP",
        [FLEET_CAUSE_DISK] = "DISK",
        [FLEET_CAUSE_WAIT] = "WAIT",
        [FLEET_CAUSE_CPU] = "CPU",
        [FLEET_CAUSE_NETWORK] = "NETWORK",
        [FLEET_CAUSE_DATA] = "DATA",
        [FLEET_CAUSE_FORWARD] = "FORWARD",
        [FLEET_CAUSE_BACKWARD] = "BACKWARD",
        [FLEET_CAUSE_COMPUTE] = "COMPUTE",
        [FLEET_CAUSE_OPTIMIZER] = "OPTIMIZER",
        [FLEET_CAUSE_OTHER] = "OTHER",
        [FLEET_CAUSE_UNKNOWN] = "UNKNOWN",
    };
    return (unsigned)cause < FLEET_CAUSES ? names[cause] : NULL;
}

/* ---- what is worked with ---- */

/* A group of the job: the same name, members and backend. */
struct fleet_union {
    const struct rank_group *row; /* of one of its members */
    struct hang_member *members;
    size_t n;
    bool p2p;   /* in one of its members: its numbers are not those of collectives */
    bool twice; /* all that is known of it was known in the reading before */
    struct fleet_verdict_group *out;
};

struct fleet_row {
    uint64_t key;
    size_t rank; /* index in the case */
    const struct rank_group *row;
};

struct fleet_work {
    const struct fleet_verdict_case *c;
    struct fleet_verdicts *out;
    int32_t n_ranks;           /* the highest, and one more */
    int32_t *index;            /* by rank: its index in the case; -1 */
    bool *waits;               /* by index: it waits for ranks, as its stack shows it */
    enum hang_answer *answers; /* by rank */
    struct fleet_row *rows;
    size_t n_rows, rows_cap;
    struct fleet_union *groups;
    struct hang_group *hang_groups;
    size_t n_groups;
    struct hang hang;
    size_t n_members; /* of all groups */
    bool by_stacks, young;
    bool doubtful; /* what stacks show proves nothing: a warning at most */
    double late_s, apart_s;
    int n_moved, n_answered, n_read, n_gone, n_stopped;
};

static const struct rank_state *fleet_state(const struct fleet_verdict_rank *r) {
    return r->now ? &r->now->state : NULL;
}

static bool fleet_is_stopped(const struct rank_state *s) { return s && (s->state == 'T' || s->state == 't'); }

static bool fleet_is_gone(const struct fleet_verdict_rank *r) {
    return r->pid == 0 || (r->now && r->now->state.gone);
}

static bool fleet_has_moved(const struct fleet_verdict_rank *r) {
    return r->now && r->before && !fleet_is_gone(r) &&
           fleet_verdict_has_moved(&r->before->state, &r->now->state);
}

/* By how much a counter has grown. A reading that could not be made has 0: that is unknown. */
static double fleet_grown(uint64_t before, uint64_t now) {
    return before && now > before ? (double)(now - before) : 0;
}

bool fleet_verdict_has_moved(const struct rank_state *before, const struct rank_state *now) {
    double s = now->at_s - before->at_s;
    if (now->gone || before->gone || s <= 0 || fleet_is_stopped(now))
        return false;
    if (now->has_stack && before->has_stack && now->stack != before->stack)
        return true;
    return fleet_grown(before->thread_ns, now->thread_ns) / 1e9 > FLEET_CPU_THREAD * s ||
           fleet_grown(before->cpu_ns, now->cpu_ns) / 1e9 > FLEET_CPU_PROCESS * s ||
           fleet_grown(before->bytes, now->bytes) > FLEET_BYTES * s;
}

/* For how long it has not moved: a wait that asks now and then runs for that. */
static double fleet_still_s(const struct fleet_verdict_rank *r) {
    return fmax(isnan(r->waits_s) ? 0 : r->waits_s, isnan(r->still_s) ? 0 : r->still_s);
}

/* For how long one that waits in a collective has stood there: it runs when that ends. */
static double fleet_waits_s(const struct fleet_verdict_rank *r) {
    return isnan(r->waits_s) ? fleet_still_s(r) : r->waits_s;
}

bool fleet_verdict_is_suspect(const struct fleet_verdict_rank *r) {
    const struct rank_state *s = fleet_state(r);
    return !s || fleet_is_gone(r) || !s->has_stack || fleet_is_stopped(s) ||
           r->waits_s >= FLEET_VERDICT_SUSPECT_S || r->stands_s >= FLEET_VERDICT_SUSPECT_S;
}

/* By its stack, it waits for others in both readings, and it has not moved. */
static bool fleet_waits_by_stack(const struct fleet_verdict_rank *r) {
    const struct rank_state *s = fleet_state(r);
    if (!s || s->gone || !s->has_stack || fleet_is_stopped(s) || fleet_has_moved(r))
        return false;
    /* the collectives of DistributedDataParallel are not in Python */
    return rank_state_waits_for_ranks(s) || (s->in_backward && s->state != 'R' && !s->needs_gil);
}

/* ---- groups ---- */

static int fleet_compare_rows(const void *a, const void *b) {
    const struct fleet_row *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

static uint64_t fleet_key(const struct rank_group *g) {
    return hash_fnv_text(hash_fnv_text(hash_fnv_text(HASH_FNV_START, g->pg), g->ranks), g->backend);
}

/* Whether it has given counters of any group. */
static bool fleet_has_counters(const struct fleet_verdict_rank *r) {
    for (size_t i = 0; r->now && r->now->answer == RANK_ANSWERED && i < r->now->n_groups; i++)
        if (r->now->groups[i].enqueued >= 0 && r->now->groups[i].completed >= 0)
            return true;
    return false;
}

static int fleet_collect_rows(struct fleet_work *w) {
    for (size_t i = 0; i < w->c->n; i++) {
        const struct rank_reading *r = w->c->ranks[i].now;
        if (!fleet_has_counters(&w->c->ranks[i]) || fleet_is_gone(&w->c->ranks[i]))
            continue;
        w->n_answered++;
        for (size_t g = 0; g < r->n_groups; g++) {
            if (grow_array(&w->rows, sizeof *w->rows, w->n_rows + 1, &w->rows_cap) != 0)
                return -1;
            w->rows[w->n_rows++] = (struct fleet_row){fleet_key(&r->groups[g]), i, &r->groups[g]};
        }
    }
    if (w->n_rows)
        qsort(w->rows, w->n_rows, sizeof *w->rows, fleet_compare_rows);
    return 0;
}

/* The same group in the reading before; NULL. */
static const struct rank_group *fleet_row_before(const struct fleet_verdict_rank *r,
                                                 const struct rank_group *row) {
    if (!r->before || r->before->answer != RANK_ANSWERED)
        return NULL;
    return rank_group_find(r->before->groups, r->before->n_groups, row);
}

static void fleet_widen(int64_t *min, int64_t *max, int64_t v) {
    if (v < 0)
        return;
    *min = *min < 0 || v < *min ? v : *min;
    *max = v > *max ? v : *max;
}

/* Take the row of one member. */
static int fleet_add_row(struct fleet_work *w, struct fleet_union *u, const struct fleet_row *row) {
    const struct fleet_verdict_rank *rank = &w->c->ranks[row->rank];
    const struct rank_group *g = row->row, *before = fleet_row_before(rank, g);
    struct fleet_verdict_group *out = u->out;
    u->members[u->n++] = (struct hang_member){.rank = rank->rank,
                                              .known = g->enqueued >= 0,
                                              .enqueued = g->enqueued,
                                              .completed = g->completed,
                                              .what = rank_group_what(g)};
    u->p2p |= g->p2p;
    u->twice &= before != NULL;
    if (before && (before->enqueued != g->enqueued || before->completed != g->completed))
        out->moves = true;
    fleet_widen(&out->enqueued_min, &out->enqueued_max, g->enqueued);
    fleet_widen(&out->completed_min, &out->completed_max, g->completed);
    if (g->enqueued > g->completed && g->completed >= 0) {
        out->since_s = fmax(isnan(out->since_s) ? 0 : out->since_s, isnan(g->since_s) ? 0 : g->since_s);
        if (w->waits[row->rank])
            out->since_s = fmax(out->since_s, fleet_waits_s(rank));
    }
    return rank_set_add(&out->members, rank->rank, rank->rank);
}

/* Members that have given no row: those without a process, and those that do not answer. Without those for
 * which there is no room the group is not whole. */
static int fleet_add_absent(struct fleet_work *w, struct fleet_union *u, const struct rank_set *expected,
                            size_t room) {
    for (size_t i = 0; i < expected->n; i++)
        for (int32_t rank = expected->ranges[i].first; rank <= expected->ranges[i].last && rank < w->n_ranks;
             rank++) {
            if (w->index[rank] < 0 || u->n == room || rank_set_has(&u->out->members, rank))
                continue;
            u->members[u->n++] = (struct hang_member){.rank = rank, .known = false};
            if (rank_set_add(&u->out->members, rank, rank) != 0)
                return -1;
        }
    return 0;
}

static int fleet_add_group(struct fleet_work *w, size_t first, size_t n) {
    struct fleet_union *u = &w->groups[w->n_groups];
    struct fleet_verdict_group *out = &w->out->groups[w->n_groups];
    const struct rank_group *row = w->rows[first].row;
    struct rank_set expected = {.n = 0};
    struct err ignored;
    *u = (struct fleet_union){.row = row, .out = out, .twice = true};
    *out = (struct fleet_verdict_group){.size = row->size,
                                        .enqueued_min = -1,
                                        .enqueued_max = -1,
                                        .completed_min = -1,
                                        .completed_max = -1,
                                        .bytes = -1,
                                        .since_s = NAN};
    snprintf(out->pg, sizeof out->pg, "%s", row->pg);
    snprintf(out->desc, sizeof out->desc, "%s", row->desc);
    w->out->n_groups = ++w->n_groups;
    if (row->ranks[0] && rank_set_parse(&expected, row->ranks, &ignored) != 0)
        expected.n = 0;
    /* many groups that claim to have all ranks are a lie */
    size_t absent = (size_t)rank_set_count(&expected), room = absent < w->c->n ? absent : w->c->n;
    room = n + (w->n_members + n + room <= FLEET_MEMBERS_MAX ? room : 0);
    u->members = calloc(room, sizeof *u->members);
    int rc = u->members ? 0 : -1;
    for (size_t i = first; rc == 0 && i < first + n; i++)
        if (i == first || w->rows[i].rank != w->rows[i - 1].rank)
            rc = fleet_add_row(w, u, &w->rows[i]);
    if (rc == 0)
        rc = fleet_add_absent(w, u, &expected, room);
    w->n_members += u->n;
    rank_set_fini(&expected);
    return rc;
}

/* Without counters: one group of all, in which those wait that stand in a collective. */
static int fleet_add_stacks(struct fleet_work *w) {
    struct fleet_union *u = &w->groups[0];
    struct fleet_verdict_group *out = &w->out->groups[0];
    *u = (struct fleet_union){.out = out};
    *out = (struct fleet_verdict_group){.size = w->c->world ? w->c->world : -1,
                                        .enqueued_min = -1,
                                        .enqueued_max = -1,
                                        .completed_min = -1,
                                        .completed_max = -1,
                                        .bytes = -1,
                                        .since_s = NAN};
    size_t waiting = 0, others = 0;
    u->members = calloc(w->c->n + 1, sizeof *u->members);
    if (!u->members)
        return -1;
    for (size_t i = 0; i < w->c->n; i++) {
        const struct fleet_verdict_rank *r = &w->c->ranks[i];
        const struct rank_state *s = fleet_state(r);
        u->members[u->n++] =
            (struct hang_member){.rank = r->rank,
                                 .known = w->waits[i] || (s && (s->has_stack || fleet_is_stopped(s))),
                                 .enqueued = w->waits[i]};
        if (rank_set_add(&out->members, r->rank, r->rank) != 0)
            return -1;
        waiting += w->waits[i];
        others += !w->waits[i];
        if (w->waits[i])
            out->since_s = fmax(isnan(out->since_s) ? 0 : out->since_s, fleet_waits_s(r));
    }
    /* a few that wait say little: they may be a group of their own */
    w->n_groups = w->out->n_groups = waiting >= others && waiting > 0;
    if (!w->n_groups) {
        free(u->members);
        rank_set_fini(&out->members);
    }
    return 0;
}

static int fleet_find_groups(struct fleet_work *w) {
    w->groups = calloc(w->n_rows + 1, sizeof *w->groups);
    w->hang_groups = calloc(w->n_rows + 1, sizeof *w->hang_groups);
    w->out->groups = calloc(w->n_rows + 1, sizeof *w->out->groups);
    if (!w->groups || !w->hang_groups || !w->out->groups)
        return -1;
    w->by_stacks = w->n_rows == 0;
    if (w->by_stacks)
        return fleet_add_stacks(w);
    for (size_t i = 0, n; i < w->n_rows; i += n) {
        for (n = 1; i + n < w->n_rows && w->rows[i + n].key == w->rows[i].key; n++)
            ;
        if (fleet_add_group(w, i, n) != 0)
            return -1;
    }
    return 0;
}

/* ---- who answers ---- */

static int fleet_begin(struct fleet_work *w) {
    const struct fleet_verdict_case *c = w->c;
    for (size_t i = 0; i < c->n; i++)
        w->n_ranks = c->ranks[i].rank >= w->n_ranks ? c->ranks[i].rank + 1 : w->n_ranks;
    w->index = malloc(((size_t)w->n_ranks + 1) * sizeof *w->index);
    w->answers = calloc((size_t)w->n_ranks + 1, sizeof *w->answers);
    w->waits = calloc(c->n + 1, sizeof *w->waits);
    if (!w->index || !w->answers || !w->waits)
        return -1;
    memset(w->index, 0xff, ((size_t)w->n_ranks + 1) * sizeof *w->index);
    for (size_t i = 0; i < c->n; i++) {
        const struct fleet_verdict_rank *r = &c->ranks[i];
        const struct rank_state *s = fleet_state(r);
        w->index[r->rank] = (int32_t)i;
        w->waits[i] = fleet_waits_by_stack(r);
        w->n_moved += fleet_has_moved(r);
        w->n_read += s && s->has_stack;
        w->n_gone += fleet_is_gone(r);
        w->n_stopped += fleet_is_stopped(s);
        if (r->now && r->before)
            w->apart_s = fmax(w->apart_s, r->now->state.at_s - r->before->state.at_s);
    }
    return 0;
}

static bool fleet_is_place(const struct rank_place *a, const struct rank_place *b) {
    return a->line == b->line && strcmp(a->func, b->func) == 0 && strcmp(a->file, b->file) == 0;
}

/* On the same line of the job, and at the same place within that: one line of the job may be all that a trainer of a
 * library leaves to see. */
static bool fleet_stands_alike(const struct rank_state *a, const struct rank_state *b) {
    return a->has_stack && b->has_stack && fleet_is_place(&a->own, &b->own) &&
           fleet_is_place(&a->leaf, &b->leaf);
}

/* One of those that stand where most stand that have a collective open: with NCCL that is where they need its result,
 * outside of torch.distributed. NULL: most stand nowhere. */
static const struct rank_state *fleet_find_stand(const struct fleet_work *w) {
    const struct rank_state *most = NULL;
    size_t votes = 0, count = 0, n = 0;
    /* as in hang_find_mismatch */
    for (int pass = 0; pass < 2; pass++)
        for (size_t g = 0; g < w->n_groups; g++)
            for (size_t m = 0; !w->by_stacks && !w->groups[g].p2p && m < w->groups[g].n; m++) {
                const struct hang_member *member = &w->groups[g].members[m];
                const struct rank_state *s = fleet_state(&w->c->ranks[w->index[member->rank]]);
                if (!hang_is_open(member) || !s || !s->has_stack)
                    continue;
                bool is_same = most && fleet_stands_alike(most, s);
                n += (size_t)pass;
                count += pass && is_same;
                if (!pass && votes == 0)
                    most = s;
                if (!pass)
                    votes = votes == 0 || is_same ? votes + 1 : votes - 1;
            }
    return 2 * count > n ? most : NULL;
}

static void fleet_set_answers(struct fleet_work *w) {
    const struct rank_state *stand = fleet_find_stand(w);
    int64_t collectives = 0;
    double uptime_s = INFINITY;
    for (size_t i = 0; i < w->c->n; i++) {
        const struct fleet_verdict_rank *r = &w->c->ranks[i];
        bool answers = fleet_has_counters(r);
        uptime_s = r->uptime_s < uptime_s ? r->uptime_s : uptime_s;
        /* one that gives no counters and waits, as its stack shows, or stands where those do that wait, is
         * nobody's cause */
        const struct rank_state *s = fleet_state(r);
        bool waits = w->waits[i] || (stand && s && !fleet_is_stopped(s) && !s->needs_gil && !s->has_gil &&
                                     fleet_stands_alike(stand, s));
        w->answers[r->rank] = fleet_is_gone(r)                   ? HANG_GONE
                              : answers || waits || w->by_stacks ? HANG_ANSWERS
                                                                 : HANG_SILENT;
    }
    for (size_t g = 0; g < w->n_groups; g++) {
        struct fleet_verdict_group *out = w->groups[g].out;
        collectives += out->completed_max > 0 ? out->completed_max : 0;
        w->hang_groups[g] = (struct hang_group){
            .members = w->groups[g].members, .n = w->groups[g].n, .p2p = out->moves || w->groups[g].p2p};
    }
    w->young = w->by_stacks ? uptime_s < FLEET_VERDICT_YOUNG_S : collectives < FLEET_VERDICT_YOUNG;
}

/* What those that wait with the fewest completed ones have completed. */
static int64_t fleet_find_least(const struct fleet_work *w, size_t g) {
    int64_t least = w->hang.groups[g].front;
    for (size_t m = 0; m < w->groups[g].n; m++) {
        const struct hang_member *member = &w->groups[g].members[m];
        if (hang_is_open(member) && member->completed < least)
            least = member->completed;
    }
    return least;
}

/* Some stand alike in what most of their group have completed, and these wait for them: it is they who do not
 * finish it. */
static int fleet_name_few(struct fleet_work *w) {
    struct hang *h = &w->hang;
    bool *named = calloc((size_t)w->n_ranks + 1, sizeof *named);
    if (!named)
        return -1;
    for (size_t i = 0; i < h->n_culprits; i++)
        named[h->culprits[i].rank] = true;
    for (size_t g = 0; g < w->n_groups; g++) {
        const struct fleet_union *u = &w->groups[g];
        int64_t least = fleet_find_least(w, g);
        size_t few = 0, ahead = 0;
        for (size_t m = 0; h->groups[g].alike && m < u->n; m++) {
            few += hang_is_open(&u->members[m]) && u->members[m].completed == least;
            ahead += u->members[m].known && u->members[m].completed > least;
        }
        if (ahead <= few || least == h->groups[g].front)
            continue;
        h->groups[g].alike = false;
        for (size_t m = 0; m < u->n; m++) {
            int32_t rank = u->members[m].rank;
            if (!hang_is_open(&u->members[m]) || u->members[m].completed != least || named[rank])
                continue;
            named[rank] = true;
            h->culprits[h->n_culprits++] = (struct hang_culprit){
                .rank = rank, .role = HANG_STUCK, .group = g, .number = least + 1, .root = UINT32_MAX};
        }
    }
    free(named);
    return 0;
}

static int fleet_describe_groups(struct fleet_work *w) {
    for (size_t g = 0; g < w->n_groups; g++) {
        struct fleet_union *u = &w->groups[g];
        const struct hang_group_state *state = &w->hang.groups[g];
        for (size_t m = 0; m < u->n; m++) {
            int32_t rank = u->members[m].rank;
            enum hang_role role = (enum hang_role)w->hang.roles[state->first + m];
            struct rank_set *set = role == HANG_MISSING || role == HANG_STUCK          ? &u->out->behind
                                   : role == HANG_NO_ANSWER || role == HANG_NO_PROCESS ? &u->out->silent
                                   : role == HANG_MISMATCH                             ? &u->out->mismatch
                                                                                       : NULL;
            if (set && state->front >= 0 && rank_set_add(set, rank, rank) != 0)
                return -1;
        }
    }
    return 0;
}

/* ---- words ---- */

void fleet_verdict_say(struct fleet_verdict *v, const char *fmt, ...) {
    size_t n = strlen(v->text);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(v->text + n, sizeof v->text - n, fmt, ap);
    va_end(ap);
}

int fleet_verdict_prove(struct fleet_verdict *v, int32_t rank, const char *witness, const char *fmt, ...) {
    if (grow_array(&v->evidence, sizeof *v->evidence, v->n_evidence + 1, &v->cap_evidence) != 0)
        return -1;
    struct fleet_verdict_evidence *e = &v->evidence[v->n_evidence++];
    *e = (struct fleet_verdict_evidence){.rank = rank, .witness = witness};
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(e->text, sizeof e->text, fmt, ap);
    va_end(ap);
    return 0;
}

static const char *fleet_base(const char *file) {
    const char *slash = strrchr(file, '/');
    return slash ? slash + 1 : file;
}

static const char *fleet_put_place(const struct rank_place *p, char *buf, size_t cap) {
    if (!p->func[0])
        snprintf(buf, cap, "an unknown function");
    else if (p->line > 0)
        snprintf(buf, cap, "%s (%s:%d)", p->func, fleet_base(p->file), (int)p->line);
    else
        snprintf(buf, cap, "%s (%s)", p->func, fleet_base(p->file));
    return buf;
}

static const char *fleet_put_ranks(const struct rank_set *s, char *buf, size_t cap) {
    struct strbuf text;
    strbuf_init(&text, 0);
    rank_set_put(s, FLEET_RANGES, &text);
    snprintf(buf, cap, "%s %s", rank_set_count(s) == 1 ? "rank" : "ranks", strbuf_str(&text));
    strbuf_fini(&text);
    return buf;
}

static const char *fleet_op(const char *op) {
    const char *colon = strrchr(op, ':');
    return colon ? colon + 1 : op;
}

/* The operation that is open in the group, as the ranks that wait have it. */
static const struct rank_group *fleet_open_row(const struct fleet_work *w, size_t g, int64_t number) {
    const struct rank_group *found = NULL;
    if (w->by_stacks)
        return NULL;
    uint64_t key = fleet_key(w->groups[g].row);
    for (size_t i = 0; i < w->n_rows; i++) {
        const struct rank_group *row = w->rows[i].row;
        if (w->rows[i].key == key && row->enqueued > row->completed && row->completed + 1 == number &&
            w->hang.roles[w->hang.groups[g].first] != HANG_OUT) {
            found = row;
            if (row->op[0])
                return row;
        }
    }
    return found;
}

/* Where they wait: "all_reduce #412 of default_pg (4 bytes)". */
static void fleet_put_where(const struct fleet_work *w, struct fleet_verdict *v, size_t g, char *buf,
                            size_t cap) {
    char op[128] = "", size[48] = "";
    const struct rank_group *row = fleet_open_row(w, g, v->number);
    for (size_t i = 0; i < w->c->n && !row; i++)
        if (w->waits[i] && !op[0] && fleet_state(&w->c->ranks[i])->collective[0])
            snprintf(op, sizeof op, "%s", fleet_state(&w->c->ranks[i])->collective);
    if (row && row->op[0])
        snprintf(op, sizeof op, "%s", fleet_op(row->op));
    if (w->by_stacks) {
        snprintf(buf, cap, "%s", op[0] ? op : "a backward pass, for other ranks");
        snprintf(v->op, sizeof v->op, "%.31s", op);
        return;
    }
    const struct fleet_verdict_group *out = w->groups[g].out;
    if (row && row->bytes > 0) {
        char bytes[32];
        text_human_bytes(bytes, sizeof bytes, (double)row->bytes);
        snprintf(size, sizeof size, ", %s", bytes);
    }
    snprintf(v->op, sizeof v->op, "%.31s", op);
    snprintf(v->pg, sizeof v->pg, "%s", out->pg);
    snprintf(buf, cap, "%s #%lld (group %.40s%s)", op[0] ? op : "collective", (long long)v->number,
             out->desc[0] && strcmp(out->desc, "undefined") != 0 ? out->desc : out->pg, size);
}

/* What keeps a rank, as a clause: "is stopped in train (train.py:3)". `beyond` as of fleet_waits_beyond. */
static void fleet_put_cause(const struct fleet_verdict *v, const struct fleet_verdict_rank *r,
                            const char *beyond, struct strbuf *out) {
    static const char *const words[FLEET_CAUSES] = {
        [FLEET_CAUSE_STOPPED] = "is stopped by a signal",
        [FLEET_CAUSE_TRACED] = "is stopped by a debugger",
        [FLEET_CAUSE_GC] = "collects garbage",
        [FLEET_CAUSE_COMPILE] = "compiles",
        [FLEET_CAUSE_LOADER] = "waits for its data",
        [FLEET_CAUSE_CHECKPOINT] = "saves",
        [FLEET_CAUSE_LOADING] = "loads",
        [FLEET_CAUSE_EVALUATION] = "evaluates",
        [FLEET_CAUSE_PAUSED] = "is paused by probing",
        [FLEET_CAUSE_SLEEP] = "sleeps",
        [FLEET_CAUSE_DISK] = "waits for a device",
        [FLEET_CAUSE_WAIT] = "waits",
        [FLEET_CAUSE_CPU] = "works",
        [FLEET_CAUSE_NETWORK] = "has entered it, and does not finish what others have finished",
        [FLEET_CAUSE_UNKNOWN] = "stands",
    };
    char place[320], other[320];
    const struct rank_state *s = fleet_state(r);
    if (v->cause == FLEET_CAUSE_DEAD) {
        strbuf_adds(out, r->pid ? "has ended" : "has no process");
        if (r->pid && s && s->why[0])
            strbuf_addf(out, " (process %d: %s)", (int)r->pid, s->why);
        else if (r->pid)
            strbuf_addf(out, " (process %d)", (int)r->pid);
        return;
    }
    if (!s) {
        strbuf_adds(out, "could not be read");
        return;
    }
    const struct rank_place *at = &s->at;
    if (v->cause == FLEET_CAUSE_GIL && s->needs_gil) {
        strbuf_addf(out, "waits for the GIL, which %s holds in %s", s->holder[0] ? s->holder : "a thread",
                    fleet_put_place(&s->holder_at, place, sizeof place));
        return;
    }
    if (v->cause == FLEET_CAUSE_GIL)
        strbuf_adds(out, "keeps the GIL, which its agent does not get,");
    else if (beyond)
        strbuf_addf(out, "itself waits %s", beyond);
    else if (v->cause == FLEET_CAUSE_ORDER)
        strbuf_addf(out, "waits in another collective, %s,", s->collective[0] ? s->collective : "unknown");
    else if (v->cause == FLEET_CAUSE_MISMATCH)
        strbuf_adds(out, "is");
    else
        strbuf_adds(out, words[v->cause]);
    if (!s->has_stack) {
        strbuf_adds(out, "; its stack cannot be read");
        return;
    }
    strbuf_addf(out, " in %s", fleet_put_place(at, place, sizeof place));
    if (s->leaf.func[0] && strcmp(s->leaf.func, at->func) != 0 && v->cause != FLEET_CAUSE_ORDER) {
        fleet_put_place(&s->leaf, other, sizeof other);
        strbuf_addf(out, ", there in %s", other);
    }
    if (s->waits_for[0] && !s->collective[0] && v->cause != FLEET_CAUSE_STOPPED &&
        s->wait != MODEL_WAIT_SLEEP && !fleet_has_moved(r))
        strbuf_addf(out, ", for %s", s->waits_for);
}

/* ---- what is wrong with a rank ---- */

static enum fleet_verdict_cause fleet_find_cause(const struct fleet_verdict_rank *r,
                                                 const struct hang_culprit *h) {
    const struct rank_state *s = fleet_state(r);
    if (fleet_is_gone(r))
        return FLEET_CAUSE_DEAD;
    if (!s)
        return FLEET_CAUSE_UNKNOWN;
    if (s->state == 't' || (s->traced && s->state == 'T'))
        return FLEET_CAUSE_TRACED;
    if (s->state == 'T')
        return FLEET_CAUSE_STOPPED;
    if (h->role == HANG_MISMATCH)
        return FLEET_CAUSE_MISMATCH;
    if (h->deadlock)
        return FLEET_CAUSE_ORDER;
    if (strcmp(s->leaf.file, "<probing>") == 0)
        return FLEET_CAUSE_PAUSED;
    if (s->gc == 1)
        return FLEET_CAUSE_GC;
    /* its agent asks for the GIL, and does not get it */
    if (s->needs_gil || (s->has_gil && h->role == HANG_NO_ANSWER && r->now->answer != RANK_NOT_ASKED))
        return FLEET_CAUSE_GIL;
    /* what it has entered does not end, whatever its thread does meanwhile */
    if (h->role == HANG_STUCK)
        return FLEET_CAUSE_NETWORK;
    if (strcmp(s->doing, "COMPILING") == 0)
        return FLEET_CAUSE_COMPILE;
    if (strcmp(s->phase, "loader") == 0 || s->wait == MODEL_WAIT_LOADER)
        return FLEET_CAUSE_LOADER;
    if (strcmp(s->doing, "SAVING") == 0)
        return FLEET_CAUSE_CHECKPOINT;
    if (strcmp(s->doing, "LOADING") == 0)
        return FLEET_CAUSE_LOADING;
    if (strcmp(s->doing, "EVALUATING") == 0)
        return FLEET_CAUSE_EVALUATION;
    if (s->collective[0])
        return FLEET_CAUSE_ORDER;
    if (s->wait == MODEL_WAIT_SLEEP)
        return FLEET_CAUSE_SLEEP;
    if (s->state == 'D')
        return FLEET_CAUSE_DISK;
    if (fleet_has_moved(r) || s->state == 'R')
        return FLEET_CAUSE_CPU;
    return s->state == '?' ? FLEET_CAUSE_UNKNOWN : FLEET_CAUSE_WAIT;
}

/* Whether members of the group are not known: they may be behind. */
static bool fleet_is_part(const struct fleet_work *w, size_t g) {
    const struct fleet_union *u = &w->groups[g];
    return u->out->size > 0 && u->n < (size_t)u->out->size;
}

static const struct fleet_verdict_rank *fleet_rank_of(const struct fleet_work *w, int32_t rank) {
    return &w->c->ranks[w->index[rank]];
}

/* Whether a rank stands where one does that has something open in the group. */
static bool fleet_stands_in(const struct fleet_work *w, size_t g, int32_t rank) {
    const struct rank_state *s = fleet_state(fleet_rank_of(w, rank));
    for (size_t m = 0; s && m < w->groups[g].n; m++) {
        const struct hang_member *member = &w->groups[g].members[m];
        const struct rank_state *other =
            hang_is_open(member) ? fleet_state(fleet_rank_of(w, member->rank)) : NULL;
        if (other && fleet_stands_alike(other, s))
            return true;
    }
    return false;
}

/* A member of which nothing is known, and that does not wait itself, as its stack shows: it may be behind. -1: there is
 * none. */
static int32_t fleet_find_unknown(const struct fleet_work *w, size_t g) {
    for (size_t m = 0; m < w->groups[g].n; m++) {
        int32_t rank = w->groups[g].members[m].rank;
        if (!w->groups[g].members[m].known && !w->waits[w->index[rank]])
            return rank;
    }
    return -1;
}

/* The same where nobody is behind: one that waits, but not where the others do, may wait in something else; and where
 * a rank is accused, any may be waiting for it. */
static int32_t fleet_find_unlike(const struct fleet_work *w, size_t g) {
    for (size_t m = 0; m < w->groups[g].n; m++) {
        int32_t rank = w->groups[g].members[m].rank;
        if (!w->groups[g].members[m].known &&
            (w->hang.n_culprits > 0 || !w->waits[w->index[rank]] || !fleet_stands_in(w, g, rank)))
            return rank;
    }
    return -1;
}

/* The group of a row; SIZE_MAX: none. */
static size_t fleet_find_group(const struct fleet_work *w, const struct rank_group *row) {
    uint64_t key = fleet_key(row);
    size_t low = 0, high = w->n_groups;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (fleet_key(w->groups[mid].row) < key)
            low = mid + 1;
        else
            high = mid;
    }
    return low < w->n_groups && fleet_key(w->groups[low].row) == key ? low : SIZE_MAX;
}

static bool fleet_is_p2p(const char *op) {
    static const char *const ops[] = {
        "send", "recv", "isend", "irecv", "batch_isend_irecv", "send_object_list", "recv_object_list"};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (strcmp(op, ops[i]) == 0)
            return true;
    return false;
}

/* Where a rank for which others wait waits itself, for a rank of which too little is known to say who: so
 * nobody knows that it is the last. NULL: nowhere. */
static const char *fleet_waits_beyond(const struct fleet_work *w, const struct fleet_verdict_rank *r,
                                      enum fleet_verdict_cause cause) {
    const struct rank_state *s = fleet_state(r);
    bool same = r->before && s && r->before->state.stack == s->stack;
    /* one that does something of its own has that as its cause, whatever it has begun before */
    if (w->by_stacks ||
        (cause != FLEET_CAUSE_ORDER && !(same && (cause == FLEET_CAUSE_WAIT || cause == FLEET_CAUSE_CPU))))
        return NULL;
    /* that something is open point to point says nothing: it may have been sent on the way */
    if (fleet_is_p2p(s->collective))
        return "point to point, for a rank that is not known,";
    for (size_t i = 0; fleet_has_counters(r) && i < r->now->n_groups; i++) {
        const struct rank_group *row = &r->now->groups[i];
        if (row->completed < 0 || row->completed >= row->enqueued)
            continue;
        size_t g = fleet_find_group(w, row);
        if (g == SIZE_MAX || w->hang_groups[g].p2p || w->hang.groups[g].behind)
            continue;
        if (fleet_is_part(w, g) || fleet_find_unknown(w, g) >= 0)
            return w->c->elsewhere ? "in another group, perhaps for a rank of another host,"
                                   : "in another group, perhaps for a rank whose counters are not known,";
    }
    return NULL;
}

static enum fleet_verdict_cause fleet_judge_cause(const struct fleet_work *w,
                                                  const struct fleet_verdict_rank *r,
                                                  const struct hang_culprit *h) {
    enum fleet_verdict_cause cause = fleet_find_cause(r, h);
    return fleet_waits_beyond(w, r, cause) ? FLEET_CAUSE_ORDER : cause;
}

static bool fleet_is_fact(enum fleet_verdict_cause cause) {
    return cause == FLEET_CAUSE_DEAD || cause == FLEET_CAUSE_STOPPED || cause == FLEET_CAUSE_MISMATCH;
}

/* The readings are far enough apart to conclude something from counters that are equal. */
static bool fleet_is_apart(const struct fleet_work *w) {
    return w->apart_s >= FLEET_VERDICT_APART_S - FLEET_APART_SLACK_S;
}

/* The code, its level, and whether another reading may change it. */
static void fleet_rate(const struct fleet_work *w, struct fleet_verdict *v,
                       const struct fleet_verdict_rank *r, bool deadlock) {
    const struct rank_state *s = fleet_state(r);
    double late_s = w->young ? fmax(FLEET_VERDICT_YOUNG_S, w->late_s) : w->late_s;
    bool fact = fleet_is_fact(v->cause) || deadlock, moved = fleet_has_moved(r), two = fleet_is_apart(w);
    bool sleeps = v->cause == FLEET_CAUSE_SLEEP && s->left_s > FLEET_SLEEP_S;
    /* one that is ready to run waits for a CPU */
    bool still = two && !moved && (!s || s->state != 'R') && fleet_still_s(r) >= w->late_s;
    v->settled = true;
    v->code = FLEET_CODE_WAITS_FOR;
    v->level = VERDICT_WARN;
    if (!(v->since_s >= w->late_s)) {
        v->code = FLEET_CODE_WAITING;
        v->level = VERDICT_NOTE;
        v->settled = two && moved;
    } else if (v->cause == FLEET_CAUSE_COMPILE || v->cause == FLEET_CAUSE_PAUSED ||
               (!deadlock && fleet_waits_beyond(w, r, v->cause)))
        v->level = VERDICT_NOTE;
    else if (v->since_s >= late_s && two &&
             (fact || (still && !sleeps && !w->doubtful && v->cause != FLEET_CAUSE_UNKNOWN))) {
        v->code = v->cause == FLEET_CAUSE_MISMATCH ? FLEET_CODE_MISMATCH
                  : deadlock                       ? FLEET_CODE_DEADLOCK
                                                   : FLEET_CODE_HUNG;
        v->level = VERDICT_BAD;
    } else
        v->settled = two && (w->young || moved || sleeps || (w->doubtful && still));
}

/* ---- verdicts ---- */

static struct fleet_verdict *fleet_add_verdict(struct fleet_work *w) {
    struct fleet_verdict *more = realloc(w->out->items, (w->out->n + 1) * sizeof *more);
    if (!more)
        return NULL;
    w->out->items = more;
    struct fleet_verdict *v = &w->out->items[w->out->n++];
    *v = (struct fleet_verdict){.since_s = NAN, .settled = true, .by_stacks = w->by_stacks};
    return v;
}

/* Ranks that wait in the group for those that are behind. */
static int fleet_add_waiting(const struct fleet_work *w, size_t g, struct rank_set *out) {
    for (size_t m = 0; m < w->groups[g].n; m++) {
        enum hang_role role = (enum hang_role)w->hang.roles[w->hang.groups[g].first + m];
        int32_t rank = w->groups[g].members[m].rank;
        if ((role == HANG_WAITS || role == HANG_ALIKE) && rank_set_add(out, rank, rank) != 0)
            return -1;
    }
    /* those that gave no counters, and stand in a collective */
    for (size_t i = 0; i < w->c->n && !w->by_stacks; i++) {
        int32_t rank = w->c->ranks[i].rank;
        if (w->waits[i] && !fleet_has_counters(&w->c->ranks[i]) &&
            rank_set_has(&w->groups[g].out->members, rank) && rank_set_add(out, rank, rank) != 0)
            return -1;
    }
    return 0;
}

static int fleet_prove_counters(const struct fleet_work *w, struct fleet_verdict *v, size_t g,
                                const char *where) {
    char waiting[160];
    if (w->by_stacks)
        return fleet_verdict_prove(v, -1, "stack", "%s: their stacks end in %s, and they have not run",
                                   fleet_put_ranks(&v->waiting, waiting, sizeof waiting), where);
    const struct fleet_verdict_group *out = w->groups[g].out;
    return fleet_verdict_prove(
        v, -1, "counters", "group %.40s: %s in %s; entered %lld to %lld, over %lld to %lld%s", out->pg,
        fleet_put_ranks(&v->waiting, waiting, sizeof waiting), where, (long long)out->enqueued_min,
        (long long)out->enqueued_max, (long long)out->completed_min, (long long)out->completed_max,
        w->apart_s > 0 && w->groups[g].twice ? "; the same in both readings" : "");
}

static int fleet_prove_rank(const struct fleet_work *w, struct fleet_verdict *v,
                            const struct fleet_verdict_rank *r) {
    const struct rank_state *s = fleet_state(r);
    char leaf[320], own[320];
    int rc = 0;
    if (fleet_is_gone(r) && !r->pid)
        return fleet_verdict_prove(v, r->rank, "kernel", "no process of this host is this rank");
    if (fleet_is_gone(r))
        return fleet_verdict_prove(v, r->rank, "kernel", "process %d has ended%s%s", (int)r->pid,
                                   s->why[0] ? ": " : "", s->why);
    if (!s)
        return fleet_verdict_prove(v, r->rank, "kernel", "it could not be read");
    bool is_own = s->leaf.line == s->own.line && strcmp(s->leaf.func, s->own.func) == 0;
    if (s->has_stack)
        rc = fleet_verdict_prove(
            v, r->rank, "stack", "%s%s%s%s", fleet_put_place(&s->leaf, leaf, sizeof leaf),
            is_own ? "" : ", called in ", is_own ? "" : fleet_put_place(&s->own, own, sizeof own),
            !r->before || !r->before->state.has_stack ? ""
            : s->stack == r->before->state.stack      ? "; the same in both readings"
                                                      : "; another one in the reading before");
    else
        rc = fleet_verdict_prove(v, r->rank, "stack", "unknown: %s", s->why);
    if (rc == 0 && !fleet_has_counters(r) && !w->by_stacks)
        rc = fleet_verdict_prove(v, r->rank, "counters", "none: %s",
                                 r->now->answer == RANK_SILENT      ? "its agent did not answer in time"
                                 : r->now->answer == RANK_NOT_ASKED ? "there is no agent in it"
                                 : r->now->why[0]                   ? r->now->why
                                                                    : "its agent could not read them");
    if (rc != 0)
        return rc;
    char cpu[64] = "";
    if (r->before)
        snprintf(cpu, sizeof cpu, ", %.0f ms of CPU in %.1f s",
                 fleet_grown(r->before->state.cpu_ns, s->cpu_ns) / 1e6, s->at_s - r->before->state.at_s);
    return fleet_verdict_prove(v, r->rank, "kernel", "state %c%s%.40s%s, has not run for %.1f s", s->state,
                               s->wchan[0] ? " in " : "", s->wchan, cpu, fleet_still_s(r));
}

/* One that waits, as an example. */
static int fleet_prove_waiting(const struct fleet_work *w, struct fleet_verdict *v) {
    char own[320];
    if (!v->waiting.n)
        return 0;
    const struct fleet_verdict_rank *r = fleet_rank_of(w, v->waiting.ranges[0].first);
    const struct rank_state *s = fleet_state(r);
    if (!s || !s->has_stack)
        return 0;
    return fleet_verdict_prove(v, r->rank, "stack", "waits in %s%s%s",
                               fleet_put_place(&s->own, own, sizeof own), s->collective[0] ? ", in " : "",
                               s->collective);
}

/* Whether a rank has more groups than are read. */
static bool fleet_is_partial(const struct fleet_work *w) {
    for (size_t i = 0; i < w->c->n; i++)
        if (w->c->ranks[i].now && w->c->ranks[i].now->n_groups == RANK_GROUPS_MAX)
            return true;
    return false;
}

/* Whose counters are not known, and why not of the first of them. */
static void fleet_put_unanswered(const struct fleet_work *w, struct strbuf *out) {
    struct rank_set set = {.n = 0};
    const char *why = NULL;
    char ranks[160];
    for (size_t i = 0; i < w->c->n; i++) {
        const struct fleet_verdict_rank *r = &w->c->ranks[i];
        if (fleet_is_gone(r) || !r->now || r->now->answer == RANK_ANSWERED ||
            rank_set_add(&set, r->rank, r->rank) != 0)
            continue;
        why = why ? why : r->now->answer == RANK_SILENT ? "no answer" : r->now->why;
    }
    if (why)
        strbuf_addf(out, " (not of %s%s%.160s)", fleet_put_ranks(&set, ranks, sizeof ranks), *why ? ": " : "",
                    why);
    rank_set_fini(&set);
}

/* Of all that are open. */
static bool fleet_knows_operations(const struct fleet_work *w) {
    for (size_t i = 0; i < w->n_rows; i++) {
        const struct rank_group *row = w->rows[i].row;
        if (row->completed >= 0 && row->completed < row->enqueued && !row->op[0])
            return false;
    }
    return true;
}

/* What was checked. */
static void fleet_put_denied(const struct fleet_work *w, struct fleet_verdict *v) {
    struct strbuf text;
    int mismatches = 0;
    strbuf_init(&text, sizeof v->denied - 1);
    for (size_t g = 0; g < w->n_groups; g++)
        mismatches += w->groups[g].out->mismatch.n > 0 || w->hang.groups[g].split;
    if (!w->n_gone)
        strbuf_addf(&text, "no rank has ended; ");
    if (!w->n_stopped)
        strbuf_addf(&text, "none is stopped; ");
    if (!mismatches && !w->by_stacks && v->cause != FLEET_CAUSE_MISMATCH && fleet_knows_operations(w))
        strbuf_addf(&text, "no other operation; ");
    if (!w->by_stacks) {
        strbuf_addf(&text, "counters of %d of %zu ranks", w->n_answered, w->c->n);
        fleet_put_unanswered(w, &text);
        strbuf_addf(&text, " in %zu groups%s; ", w->n_groups,
                    fleet_is_partial(w) ? " (of a rank the first 512 alone)" : "");
    }
    strbuf_addf(&text, "stacks of %d of %zu ranks", w->n_read, w->c->n);
    if (w->apart_s > 0)
        strbuf_addf(&text, ", read twice, %.1f s apart", w->apart_s);
    snprintf(v->denied, sizeof v->denied, "%s", strbuf_str(&text));
    strbuf_fini(&text);
}

static void fleet_put_time(double s, char *buf, size_t cap) {
    if (isnan(s))
        snprintf(buf, cap, "an unknown time");
    else
        text_human_duration(buf, cap, s);
}

/* "ranks 0-2,4-7 wait in all_reduce #5 (...) for rank 3, for 12 s: ..." */
static void fleet_put_text(const struct fleet_work *w, struct fleet_verdict *v, const char *where,
                           const char *clause) {
    char accused[160], waiting[160], time[32];
    fleet_put_ranks(&v->ranks, accused, sizeof accused);
    fleet_put_ranks(&v->waiting, waiting, sizeof waiting);
    fleet_put_time(v->since_s, time, sizeof time);
    bool one = rank_set_count(&v->waiting) == 1;
    if (clause && v->ranks.n)
        fleet_verdict_say(v, "%s %s for %s in %s, for %s: %s", waiting, one ? "waits" : "wait", accused,
                          where, time, clause);
    else if (clause)
        fleet_verdict_say(v, "%s", clause);
    if (v->by_stacks && v->level != VERDICT_FINE)
        fleet_verdict_say(v, " (by stacks alone)");
    if (w->young && v->level != VERDICT_BAD && v->level != VERDICT_FINE)
        fleet_verdict_say(v, "; the job has just begun");
    snprintf(v->brief, sizeof v->brief, v->ranks.n ? "%s %s" : "%s", fleet_verdict_code_name(v->code),
             accused);
    for (char *c = v->brief; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    fleet_put_denied(w, v);
}

/* What the rank has entered, where most have entered something else. */
static void fleet_put_mismatch(const struct fleet_work *w, const struct fleet_verdict_rank *r, size_t g,
                               struct strbuf *out) {
    const struct rank_group *mine = NULL;
    for (size_t i = 0; i < r->now->n_groups; i++)
        if (fleet_key(&r->now->groups[i]) == fleet_key(w->groups[g].row))
            mine = &r->now->groups[i];
    strbuf_addf(out, "has entered %s", mine && mine->op[0] ? fleet_op(mine->op) : "another operation");
    if (mine && mine->bytes >= 0)
        strbuf_addf(out, " of %lld bytes", (long long)mine->bytes);
    strbuf_adds(out, " under the same number, and ");
}

static void fleet_put_clause(const struct fleet_work *w, const struct fleet_verdict *v,
                             const struct fleet_verdict_rank *r, size_t g, struct strbuf *out) {
    bool moved = fleet_has_moved(r);
    double still_s = fleet_still_s(r);
    if (v->cause == FLEET_CAUSE_MISMATCH)
        fleet_put_mismatch(w, r, g, out);
    fleet_put_cause(v, r, fleet_waits_beyond(w, r, v->cause), out);
    if (moved)
        strbuf_adds(out, ", and moves");
    else if (v->cause != FLEET_CAUSE_DEAD && fleet_state(r) && still_s >= 1)
        strbuf_addf(out, ", has not moved for %.0f s", still_s);
}

/* ---- what GPUs do ---- */

/*
 * A GPU that waits in a collective spins: it is always busy, at a power that does not change. One that does
 * not spin where the others do has not got there, or has a reason of its own. That supports an accusation,
 * or names a suspect where nobody is accused; by itself it accuses nobody.
 */
enum fleet_gpu { FLEET_GPU_UNKNOWN, FLEET_GPU_SPINS, FLEET_GPU_RESTS, FLEET_GPU_OTHER };

static bool fleet_knows_gpu(const struct rank_reading *r) {
    return r && r->has_gpu && r->gpu_util_pct >= 0 && r->gpu_util_pct <= 100;
}

static enum fleet_gpu fleet_gpu_of(const struct fleet_verdict_rank *r) {
    if (fleet_is_gone(r) || !fleet_knows_gpu(r->now) || !fleet_knows_gpu(r->before))
        return FLEET_GPU_UNKNOWN;
    double w = r->now->gpu_power_w, moved_w = fabs(w - r->before->gpu_power_w);
    double least = fmin(r->now->gpu_util_pct, r->before->gpu_util_pct),
           most = fmax(r->now->gpu_util_pct, r->before->gpu_util_pct);
    /* power that is unknown says nothing against it */
    if (least >= FLEET_GPU_BUSY && !(moved_w > fmax(FLEET_GPU_STEADY_W, FLEET_GPU_STEADY * w)))
        return FLEET_GPU_SPINS;
    return most <= FLEET_GPU_IDLE ? FLEET_GPU_RESTS : FLEET_GPU_OTHER;
}

/* The ranks whose GPU does that, without `but`; their number. */
static int fleet_find_gpus(const struct fleet_work *w, enum fleet_gpu what, const struct rank_set *but,
                           struct rank_set *out) {
    int n = 0;
    for (size_t i = 0; i < w->c->n; i++) {
        const struct fleet_verdict_rank *r = &w->c->ranks[i];
        if (fleet_gpu_of(r) != what || (but && rank_set_has(but, r->rank)))
            continue;
        if (rank_set_add(out, r->rank, r->rank) != 0)
            return -1;
        n++;
    }
    return n;
}

/* "3 % busy at 75 W", the mean of these ranks. */
static const char *fleet_put_gpus(const struct fleet_work *w, const struct rank_set *of, char *buf,
                                  size_t cap) {
    double util = 0, power_w = 0;
    int n = 0, n_power = 0;
    for (size_t i = 0; i < w->c->n; i++) {
        const struct fleet_verdict_rank *r = &w->c->ranks[i];
        if (!rank_set_has(of, r->rank) || !fleet_knows_gpu(r->now))
            continue;
        util += r->now->gpu_util_pct;
        n++;
        if (r->now->gpu_power_w >= 0) {
            power_w += r->now->gpu_power_w;
            n_power++;
        }
    }
    size_t at = (size_t)snprintf(buf, cap, "%.0f %% busy", n ? util / n : 0);
    if (n_power)
        snprintf(buf + at, cap - at, " at %.0f W", power_w / n_power);
    return buf;
}

/* What the GPUs of those that are accused do, beside those that wait for them. */
static int fleet_prove_gpus(const struct fleet_work *w, struct fleet_verdict *v) {
    struct rank_set spin = {.n = 0};
    char own[64], others[64], names[160];
    int n = fleet_find_gpus(w, FLEET_GPU_SPINS, &v->ranks, &spin), rc = n < 0 ? -1 : 0, proved = 0;
    for (size_t i = 0; rc == 0 && n > 0 && i < w->c->n && proved < FLEET_RANGES; i++) {
        const struct fleet_verdict_rank *r = &w->c->ranks[i];
        struct rank_set one = {.n = 0};
        if (!rank_set_has(&v->ranks, r->rank) || fleet_gpu_of(r) == FLEET_GPU_UNKNOWN)
            continue;
        rc = rank_set_add(&one, r->rank, r->rank);
        if (rc == 0)
            rc = fleet_verdict_prove(
                v, r->rank, "gpu", "its GPU is %s; %s of %s are %s", fleet_put_gpus(w, &one, own, sizeof own),
                fleet_gpu_of(r) == FLEET_GPU_SPINS ? "those, too," : "those",
                fleet_put_ranks(&spin, names, sizeof names), fleet_put_gpus(w, &spin, others, sizeof others));
        proved++;
        rank_set_fini(&one);
    }
    rank_set_fini(&spin);
    return rc;
}

/* Where nobody is accused: the few whose GPU rests while all others spin, or that all spin. */
static int fleet_suspect_gpus(const struct fleet_work *w, struct fleet_verdict *v) {
    struct rank_set spin = {.n = 0}, rest = {.n = 0}, other = {.n = 0};
    char odd[64], most[64], names[160];
    int n_spin = fleet_find_gpus(w, FLEET_GPU_SPINS, NULL, &spin),
        n_rest = fleet_find_gpus(w, FLEET_GPU_RESTS, NULL, &rest),
        n_other = fleet_find_gpus(w, FLEET_GPU_OTHER, NULL, &other);
    int rc = n_spin < 0 || n_rest < 0 || n_other < 0 ? -1 : 0;
    fleet_put_gpus(w, &spin, most, sizeof most);
    if (rc == 0 && n_rest > 0 && n_other == 0 && n_spin >= FLEET_GPU_MOST * n_rest) {
        fleet_put_ranks(&rest, names, sizeof names);
        fleet_put_gpus(w, &rest, odd, sizeof odd);
        fleet_verdict_say(v, "; a suspect by its GPU: %s (%s, the others %s)", names, odd, most);
        rc = fleet_verdict_prove(v, -1, "gpu", "GPUs of %d ranks are %s, those of %s %s", n_spin, most, names,
                                 odd);
    } else if (rc == 0 && n_spin > 1 && n_rest == 0 && n_other == 0)
        rc = fleet_verdict_prove(
            v, -1, "gpu", "GPUs of all %d ranks are %s, which does not change: they spin", n_spin, most);
    rank_set_fini(&spin);
    rank_set_fini(&rest);
    rank_set_fini(&other);
    return rc;
}

/* ---- a rank ---- */

/* A verdict about a rank for which others wait, and about those of which the same is true; `done`
 * marks them. */
static int fleet_judge_rank(struct fleet_work *w, size_t first, bool *done) {
    const struct hang_culprit *h = &w->hang.culprits[first];
    const struct fleet_verdict_rank *r = fleet_rank_of(w, h->rank);
    struct fleet_verdict *v = fleet_add_verdict(w);
    struct strbuf clause;
    char where[192];
    if (!v)
        return -1;
    v->cause = fleet_judge_cause(w, r, h);
    v->since_s = w->groups[h->group].out->since_s;
    v->number = w->by_stacks ? 0 : h->number;
    fleet_rate(w, v, r, false);
    if (fleet_state(r))
        v->at = v->cause == FLEET_CAUSE_GIL && fleet_state(r)->needs_gil ? fleet_state(r)->holder_at
                                                                         : fleet_state(r)->at;
    fleet_put_where(w, v, h->group, where, sizeof where);
    int rc = fleet_add_waiting(w, h->group, &v->waiting);
    if (rc == 0)
        rc = fleet_prove_counters(w, v, h->group, where);
    for (size_t i = first; rc == 0 && i < w->hang.n_culprits; i++) {
        const struct hang_culprit *other = &w->hang.culprits[i];
        const struct fleet_verdict_rank *also = fleet_rank_of(w, other->rank);
        struct fleet_verdict rated = {.cause = v->cause, .since_s = v->since_s};
        if (done[i] || other->deadlock || other->group != h->group || other->number != h->number ||
            fleet_judge_cause(w, also, other) != v->cause)
            continue;
        fleet_rate(w, &rated, also, false);
        if (rated.code != v->code || rated.level != v->level)
            continue;
        done[i] = true;
        v->settled &= rated.settled;
        rc = rank_set_add(&v->ranks, other->rank, other->rank) != 0 || fleet_prove_rank(w, v, also) != 0 ? -1
                                                                                                         : 0;
    }
    if (rc != 0 || rank_set_remove(&v->waiting, &v->ranks) != 0 || fleet_prove_waiting(w, v) != 0 ||
        fleet_prove_gpus(w, v) != 0)
        return -1;
    strbuf_init(&clause, 0);
    if (rank_set_count(&v->ranks) > 1)
        strbuf_addf(&clause, "rank %d ", r->rank);
    else
        strbuf_adds(&clause, "it ");
    fleet_put_clause(w, v, r, h->group, &clause);
    fleet_put_text(w, v, where, strbuf_str(&clause));
    strbuf_fini(&clause);
    return 0;
}

/* ---- a circle ---- */

/* The group in which a rank of a circle waits; SIZE_MAX: in none. */
static size_t fleet_waits_in(const struct fleet_work *w, int32_t rank) {
    for (size_t g = 0; g < w->n_groups; g++)
        for (size_t m = 0; m < w->groups[g].n; m++)
            if (w->groups[g].members[m].rank == rank &&
                w->hang.roles[w->hang.groups[g].first + m] == HANG_WAITS)
                return g;
    return SIZE_MAX;
}

/* Its stack is another one in the reading before. CPU alone says nothing: with NCCL who waits spins. */
static bool fleet_has_other_stack(const struct fleet_verdict_rank *r) {
    return r->now && r->before && r->now->state.has_stack && r->before->state.has_stack &&
           r->now->state.stack != r->before->state.stack;
}

/* It does something of its own, and it is another thread of it that waits in a circle. */
static bool fleet_is_elsewhere(const struct fleet_verdict_rank *r, const struct hang_culprit *h) {
    const struct rank_state *s = fleet_state(r);
    const struct hang_culprit alone = {.rank = h->rank, .role = h->role};
    switch (fleet_find_cause(r, &alone)) {
    case FLEET_CAUSE_STOPPED:
    case FLEET_CAUSE_TRACED:
        return true;
    case FLEET_CAUSE_CPU:
        return fleet_has_other_stack(r) && !s->collective[0] && !s->in_backward;
    case FLEET_CAUSE_GC:
    case FLEET_CAUSE_COMPILE:
    case FLEET_CAUSE_LOADER:
    case FLEET_CAUSE_CHECKPOINT:
    case FLEET_CAUSE_LOADING:
    case FLEET_CAUSE_EVALUATION:
    case FLEET_CAUSE_PAUSED:
        return !s->collective[0] && !s->in_backward;
    default:
        return false;
    }
}

/* Of a circle those are accused that wait in the group with the fewest: as a rule one rank has
 * another order than all others. */
static int fleet_judge_circle(struct fleet_work *w, size_t from, bool *done) {
    struct hang_culprit *of = &w->hang.culprits[from];
    size_t n = w->hang.n_culprits - from;
    struct fleet_verdict *v = fleet_add_verdict(w);
    size_t *counts = calloc(w->n_groups + 1, sizeof *counts), fewest = SIZE_MAX, most = SIZE_MAX;
    struct strbuf clause;
    char where[192], there[192], accused[160], place[320];
    int rc = v && counts ? 0 : -1;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        size_t g = of[i].root == of[0].root ? fleet_waits_in(w, of[i].rank) : SIZE_MAX;
        done[from + i] |= of[i].root == of[0].root;
        if (g != SIZE_MAX)
            counts[g]++;
    }
    for (size_t g = 0; rc == 0 && g < w->n_groups; g++)
        if (counts[g]) {
            fewest = fewest == SIZE_MAX || counts[g] < counts[fewest] ? g : fewest;
            most = most == SIZE_MAX || counts[g] >= counts[most] ? g : most;
        }
    if (rc == 0 && fewest == SIZE_MAX) {
        w->out->n--;
        free(counts);
        return 0;
    }
    bool all = rc == 0 && counts[fewest] == counts[most], moves = false;
    const struct fleet_verdict_rank *first = NULL;
    size_t elsewhere = 0;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        if (of[i].root != of[0].root || (!all && fleet_waits_in(w, of[i].rank) != fewest))
            continue;
        const struct fleet_verdict_rank *r = fleet_rank_of(w, of[i].rank);
        if (fleet_is_elsewhere(r, &of[i])) {
            of[i].deadlock = done[from + i] = false;
            elsewhere++;
        }
        first = first ? first : r;
        moves |= fleet_has_other_stack(r);
        v->number = v->number ? v->number : of[i].number;
        rc = rank_set_add(&v->ranks, of[i].rank, of[i].rank);
    }
    free(counts);
    if (rc != 0 || !first)
        return -1;
    if (elsewhere) {
        rank_set_fini(&v->ranks);
        w->out->n--;
        for (size_t i = 0; rc == 0 && i < n; i++)
            if (!done[from + i] && of[i].root == of[0].root)
                rc = fleet_judge_rank(w, from + i, done);
        return rc;
    }
    v->cause = FLEET_CAUSE_ORDER;
    v->since_s = fmin(w->groups[most].out->since_s, w->groups[fewest].out->since_s);
    fleet_rate(w, v, first, true);
    if (moves && v->level == VERDICT_BAD) {
        v->code = FLEET_CODE_WAITS_FOR;
        v->level = VERDICT_WARN;
    }
    if (fleet_state(first))
        v->at = fleet_state(first)->at;
    struct fleet_verdict other = {.number = w->groups[fewest].out->completed_max + 1};
    fleet_put_where(w, &other, fewest, there, sizeof there);
    v->number = w->groups[most].out->completed_max + 1;
    fleet_put_where(w, v, most, where, sizeof where);
    if (fleet_add_waiting(w, most, &v->waiting) != 0 || rank_set_remove(&v->waiting, &v->ranks) != 0 ||
        fleet_prove_counters(w, v, most, where) != 0)
        return -1;
    struct rank_set kept = v->waiting;
    v->waiting = (struct rank_set){.n = 0};
    rc = fleet_add_waiting(w, fewest, &v->waiting);
    if (rc == 0)
        rc = fleet_prove_counters(w, v, fewest, there);
    rank_set_fini(&v->waiting);
    v->waiting = kept;
    if (rc != 0 || fleet_prove_rank(w, v, first) != 0 || fleet_prove_waiting(w, v) != 0)
        return -1;
    strbuf_init(&clause, 0);
    if (all)
        strbuf_addf(&clause, "%s wait for each other, in %s and in %s",
                    fleet_put_ranks(&v->ranks, accused, sizeof accused), where, there);
    else
        strbuf_addf(&clause, "%s in %s for them", rank_set_count(&v->ranks) == 1 ? "it waits" : "they wait",
                    there);
    if (fleet_state(first) && fleet_state(first)->has_stack)
        strbuf_addf(&clause, "; rank %d is in %s", first->rank, fleet_put_place(&v->at, place, sizeof place));
    struct rank_set ranks = v->ranks;
    if (all)
        v->ranks = (struct rank_set){.n = 0};
    fleet_put_text(w, v, where, strbuf_str(&clause));
    v->ranks = ranks;
    strbuf_fini(&clause);
    return 0;
}

/* ---- nobody ---- */

/* The few that have completed what most have entered and do not complete, of an operation that ends for
 * nobody before all have entered it: it was another one there. 0, or -1 without memory. */
static int fleet_find_ahead(const struct fleet_work *w, size_t g, const char *op, int64_t number,
                            struct rank_set *out) {
    static const char *const whole[] = {"all_reduce", "allreduce",      "all_gather", "allgather",
                                        "barrier",    "reduce_scatter", "all_to_all", "alltoall"};
    bool is_whole = false;
    size_t n = 0, waiting = 0;
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++)
        is_whole |= strncmp(op, whole[i], strlen(whole[i])) == 0;
    for (size_t m = 0; is_whole && m < w->groups[g].n; m++) {
        const struct hang_member *member = &w->groups[g].members[m];
        bool is_ahead = member->known && member->completed >= number;
        waiting += hang_is_open(member) && !is_ahead;
        n += is_ahead;
        if (is_ahead && rank_set_add(out, member->rank, member->rank) != 0)
            return -1;
    }
    if (n == waiting)
        rank_set_fini(out);
    return 0;
}

/* Where those stand that do not stand where the first of them does: by stacks alone nobody is accused
 * for that, as ranks of a pipeline stand in different places. */
static void fleet_put_elsewhere(const struct fleet_work *w, struct fleet_verdict *v) {
    char place[320];
    int n = 0;
    for (size_t i = 0; i < w->c->n; i++) {
        const struct rank_state *s = fleet_state(&w->c->ranks[i]);
        size_t same = 0, waiting = 0;
        for (size_t k = 0; k < w->c->n && w->waits[i]; k++) {
            waiting += w->waits[k];
            same += w->waits[k] && fleet_is_place(&fleet_state(&w->c->ranks[k])->own, &s->own);
        }
        if (!waiting || 2 * same > waiting || ++n > 4)
            continue;
        fleet_verdict_say(v, "; rank %d is in %s%s%s", w->c->ranks[i].rank, s->collective,
                          s->collective[0] ? ", " : "", fleet_put_place(&s->own, place, sizeof place));
    }
}

/* NCCL and its like: a collective need not end on all devices at the same time. */
static bool fleet_is_on_devices(const struct fleet_work *w, size_t g) {
    return w->groups[g].row && strstr(w->groups[g].row->backend, "ccl");
}

static void fleet_put_alike(const struct fleet_work *w, struct fleet_verdict *v, size_t g,
                            const char *where) {
    char waiting[160], ahead[160], time[32], own[320];
    const struct hang_group_state *state = &w->hang.groups[g];
    const struct rank_state *s =
        v->waiting.n ? fleet_state(fleet_rank_of(w, v->waiting.ranges[0].first)) : NULL;
    int32_t unknown = fleet_find_unlike(w, g);
    fleet_put_time(v->since_s, time, sizeof time);
    fleet_put_ranks(&v->waiting, waiting, sizeof waiting);
    if (s && s->has_stack && !v->ranks.n)
        v->at = s->at;
    if (v->ranks.n)
        fleet_verdict_say(
            v,
            "%s wait in %s, for %s, which %s alone has completed: %sthere it was another operation or size",
            waiting, where, time, fleet_put_ranks(&v->ranks, ahead, sizeof ahead),
            fleet_is_on_devices(w, g) ? "perhaps " : "");
    else if (state->split)
        fleet_verdict_say(v, "%s have entered different operations as number %lld of group %s, for %s",
                          waiting, (long long)v->number, w->groups[g].out->pg, time);
    else if (w->c->elsewhere)
        fleet_verdict_say(v, "%s wait in %s, for %s: perhaps for ranks of other hosts", waiting, where, time);
    else if (fleet_is_part(w, g))
        fleet_verdict_say(v, "%s wait in %s, for %s: perhaps for others of its %d ranks, which are not known",
                          waiting, where, time, (int)w->groups[g].out->size);
    else if (unknown >= 0)
        fleet_verdict_say(v, "%s wait in %s, for %s: perhaps for rank %d, whose %s not known", waiting, where,
                          time, (int)unknown, w->by_stacks ? "stack is" : "counters are");
    else if (w->by_stacks)
        fleet_verdict_say(v, "%s wait in %s, for %s; without counters it is not known who is behind", waiting,
                          where, time);
    else
        fleet_verdict_say(
            v, "%s have entered %s, and it does not end, for %s; nobody is behind: a network, or a device",
            waiting, where, time);
    if (s && s->has_stack)
        fleet_verdict_say(v, "; rank %d is in %s", v->waiting.ranges[0].first,
                          fleet_put_place(&s->at, own, sizeof own));
    if (w->by_stacks)
        fleet_put_elsewhere(w, v);
}

/* All have entered the same, or several operations under one number without a majority. */
static int fleet_judge_alike(struct fleet_work *w) {
    double late_s = w->young ? fmax(FLEET_VERDICT_YOUNG_S, w->late_s) : w->late_s;
    for (size_t g = 0; g < w->n_groups; g++) {
        const struct hang_group_state *state = &w->hang.groups[g];
        struct fleet_verdict *v;
        char where[192];
        if (!state->alike)
            continue;
        /* those that are ahead are not at the front of the others */
        int64_t least = fleet_find_least(w, g);
        v = fleet_add_verdict(w);
        if (!v)
            return -1;
        v->number = w->by_stacks ? 0 : least + 1;
        v->since_s = w->groups[g].out->since_s;
        v->cause = state->split ? FLEET_CAUSE_MISMATCH : FLEET_CAUSE_NETWORK;
        fleet_put_where(w, v, g, where, sizeof where);
        if (least < state->front && fleet_find_ahead(w, g, v->op, v->number, &v->ranks) != 0)
            return -1;
        for (size_t m = 0; m < w->groups[g].n; m++) {
            const struct hang_member *member = &w->groups[g].members[m];
            if (hang_is_open(member) && member->completed == least &&
                rank_set_add(&v->waiting, member->rank, member->rank) != 0)
                return -1;
        }
        if (fleet_prove_counters(w, v, g, where) != 0 || fleet_prove_waiting(w, v) != 0)
            return -1;
        v->code = state->split || v->ranks.n ? FLEET_CODE_MISMATCH : FLEET_CODE_ALL_ALIKE;
        v->level = w->c->elsewhere || fleet_is_part(w, g) || fleet_find_unlike(w, g) >= 0 ? VERDICT_NOTE
                   : w->doubtful || (v->ranks.n && fleet_is_on_devices(w, g))             ? VERDICT_WARN
                                                                                          : VERDICT_BAD;
        if (v->ranks.n) {
            const struct fleet_verdict_rank *r = fleet_rank_of(w, v->ranks.ranges[0].first);
            v->cause = FLEET_CAUSE_MISMATCH;
            v->at = fleet_state(r)->at;
            if (fleet_prove_rank(w, v, r) != 0)
                return -1;
        }
        if (!(v->since_s >= late_s) || !fleet_is_apart(w)) {
            v->code = FLEET_CODE_WAITING;
            v->level = VERDICT_NOTE;
            v->settled = w->young && v->since_s >= w->late_s && fleet_is_apart(w);
        }
        fleet_put_alike(w, v, g, where);
        if (v->code == FLEET_CODE_ALL_ALIKE && fleet_suspect_gpus(w, v) != 0)
            return -1;
        fleet_put_text(w, v, where, NULL);
    }
    return 0;
}

static int fleet_judge_moving(struct fleet_work *w) {
    struct fleet_verdict *v = fleet_add_verdict(w);
    int64_t collectives = 0;
    int moving = 0, suspects = 0;
    char waiting[160], time[32];
    if (!v)
        return -1;
    for (size_t i = 0; i < w->c->n; i++) {
        const struct fleet_verdict_rank *r = &w->c->ranks[i];
        suspects += fleet_verdict_is_suspect(r);
        if (!w->waits[i] || !(fleet_waits_s(r) >= w->late_s))
            continue;
        if (!v->waiting.n)
            snprintf(v->op, sizeof v->op, "%.31s", fleet_state(r)->collective);
        v->since_s = fmax(isnan(v->since_s) ? 0 : v->since_s, fleet_waits_s(r));
        if (rank_set_add(&v->waiting, r->rank, r->rank) != 0)
            return -1;
    }
    for (size_t g = 0; g < w->n_groups; g++) {
        moving += w->groups[g].out->moves;
        collectives =
            w->groups[g].out->completed_max > collectives ? w->groups[g].out->completed_max : collectives;
    }
    bool late = !moving && v->waiting.n;
    v->code =
        (w->n_moved && !late) || moving || (w->c->n && !suspects) ? FLEET_CODE_MOVING : FLEET_CODE_UNKNOWN;
    v->level = v->code == FLEET_CODE_MOVING ? VERDICT_FINE : VERDICT_NOTE;
    if (moving)
        fleet_verdict_say(v, "collectives end in %d of %zu process groups, %lld so far in the busiest",
                          moving, w->n_groups, (long long)collectives);
    else if (!suspects && w->c->n)
        fleet_verdict_say(v, "all ranks move: none stands still for %.0f s or more", FLEET_VERDICT_SUSPECT_S);
    else if (late) {
        fleet_put_time(v->since_s, time, sizeof time);
        fleet_verdict_say(v, "%s stand in %s, for %s: for whom they wait is not known",
                          fleet_put_ranks(&v->waiting, waiting, sizeof waiting),
                          v->op[0] ? v->op : "a backward pass", time);
        v->settled = fleet_is_apart(w);
    } else if (w->n_moved)
        fleet_verdict_say(v, "%d of %zu ranks move, and nobody waits for another for long", w->n_moved,
                          w->c->n);
    else if (w->n_stopped && w->n_stopped + w->n_gone == (int)w->c->n)
        fleet_verdict_say(v, "all ranks are stopped by a signal");
    else if (!w->n_read && !w->n_answered)
        fleet_verdict_say(v, "no rank could be read");
    else {
        fleet_verdict_say(v, "no rank moves, and none is known to wait for another");
        v->settled = fleet_is_apart(w);
    }
    fleet_put_text(w, v, "", NULL);
    return 0;
}

/* ---- what NCCL knows ---- */

/* A line of evidence for each rank of which it knows something: of those that are accused in each verdict,
 * of all others in the worst. Whoever listens at that port may have said anything, so that it changes
 * nothing else, and that all is well says nothing (NCCL #1730). */
static int fleet_prove_ras(const struct fleet_work *w) {
    bool is_first = true;
    char words[256];
    for (size_t i = 0; i < w->out->n; i++) {
        struct fleet_verdict *v = &w->out->items[i];
        size_t n = 0;
        if (v->code == FLEET_CODE_MOVING || v->code == FLEET_CODE_WAITING)
            continue;
        for (int accused = 1; accused >= 0; accused--)
            for (size_t k = 0; k < w->c->n_ras && n < FLEET_RANGES; k++) {
                const struct ras_fact *f = &w->c->ras[k];
                if (rank_set_has(&v->ranks, f->rank) != accused || (!accused && !is_first))
                    continue;
                ras_fact_put(f, words, sizeof words);
                if (fleet_verdict_prove(v, f->rank, "ras", "%s", words) != 0)
                    return -1;
                n++;
            }
        is_first = false;
    }
    return 0;
}

/* ---- all of it ---- */

static int fleet_compare_verdicts(const void *a, const void *b) {
    const struct fleet_verdict *x = a, *y = b;
    if (x->level != y->level)
        return x->level > y->level ? -1 : 1;
    return (y->since_s > x->since_s) - (x->since_s > y->since_s);
}

static int fleet_judge(struct fleet_work *w) {
    int rc = 0, suspects = 0;
    const struct hang *h = &w->hang;
    for (size_t i = 0; i < w->c->n; i++)
        suspects += fleet_verdict_is_suspect(&w->c->ranks[i]);
    if (w->by_stacks && w->c->n && !suspects)
        return fleet_judge_moving(w);
    bool *done = calloc(h->n_culprits + 1, sizeof *done);
    if (!done)
        return -1;
    for (size_t i = 0; rc == 0 && i < h->n_culprits; i++) {
        if (done[i])
            continue;
        rc = h->culprits[i].deadlock ? fleet_judge_circle(w, i, done) : fleet_judge_rank(w, i, done);
    }
    free(done);
    if (rc == 0 && h->alike)
        rc = fleet_judge_alike(w);
    if (rc == 0 && w->out->n == 0)
        rc = fleet_judge_moving(w);
    if (rc == 0)
        qsort(w->out->items, w->out->n, sizeof *w->out->items, fleet_compare_verdicts);
    return rc == 0 ? fleet_prove_ras(w) : rc;
}

/* `*idle`: by its counters nobody waits, and nothing ends; who waits by its stack, waits in what need not have
 * counters. */
static int fleet_find(const struct fleet_verdict_case *c, bool by_stacks, struct fleet_verdicts *out,
                      bool *idle) {
    struct fleet_work w = {.c = c, .out = out, .late_s = c->late_s > 0 ? c->late_s : FLEET_VERDICT_LATE_S};
    *out = (struct fleet_verdicts){.n = 0};
    int rc = fleet_begin(&w) != 0 || (!by_stacks && fleet_collect_rows(&w) != 0) || fleet_find_groups(&w) != 0
                 ? -1
                 : 0;
    if (rc == 0) {
        fleet_set_answers(&w);
        rc = hang_find(w.answers, w.n_ranks, w.hang_groups, w.n_groups, &w.hang);
    }
    if (rc == 0) {
        *idle = !w.by_stacks && !w.hang.n_open;
        for (size_t g = 0; g < w.n_groups; g++)
            *idle &= !out->groups[g].moves;
        for (size_t i = 0; i < c->n; i++) {
            const char *op = w.waits[i] ? fleet_state(&c->ranks[i])->collective : "barrier";
            *idle &= fleet_is_p2p(op) || strcmp(op, "barrier") == 0 || strcmp(op, "monitored_barrier") == 0;
            w.doubtful |= by_stacks && fleet_is_p2p(op);
        }
        rc = fleet_name_few(&w) != 0 || fleet_describe_groups(&w) != 0 || fleet_judge(&w) != 0 ? -1 : 0;
        hang_fini(&w.hang);
    }
    for (size_t g = 0; g < w.n_groups; g++)
        free(w.groups[g].members);
    free(w.groups);
    free(w.hang_groups);
    free(w.rows);
    free(w.index);
    free(w.answers);
    free(w.waits);
    if (rc != 0)
        fleet_verdicts_fini(out);
    return rc;
}

/* Not all that ranks wait in has counters: where most stand in it, and by their counters nobody waits, their
 * stacks are asked. Those that wait point to point wait for one another, and not all for one. */
int fleet_verdict_find(const struct fleet_verdict_case *c, struct fleet_verdicts *out) {
    struct fleet_verdicts stacks;
    bool idle = false;
    int rc = fleet_find(c, false, out, &idle);
    if (rc != 0 || !idle)
        return rc;
    if (fleet_find(c, true, &stacks, &idle) != 0) {
        fleet_verdicts_fini(out);
        return -1;
    }
    if (stacks.n_groups) {
        const struct fleet_verdicts counted = *out;
        out->items = stacks.items;
        out->n = stacks.n;
        stacks.items = counted.items;
        stacks.n = counted.n;
    }
    fleet_verdicts_fini(&stacks);
    return 0;
}

void fleet_verdicts_fini(struct fleet_verdicts *v) {
    for (size_t i = 0; i < v->n; i++) {
        rank_set_fini(&v->items[i].ranks);
        rank_set_fini(&v->items[i].waiting);
        free(v->items[i].evidence);
    }
    for (size_t g = 0; g < v->n_groups; g++) {
        rank_set_fini(&v->groups[g].members);
        rank_set_fini(&v->groups[g].behind);
        rank_set_fini(&v->groups[g].silent);
        rank_set_fini(&v->groups[g].mismatch);
    }
    free(v->items);
    free(v->groups);
    *v = (struct fleet_verdicts){.n = 0};
}
