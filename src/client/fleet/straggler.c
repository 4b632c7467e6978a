/* SPDX-License-Identifier: Apache-2.0 */
/* straggler: see straggler.h. */
#include "client/fleet/straggler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "client/fleet/step_align.h"
#include "client/sql/arrivals.h"

#define STRAGGLER_BYTES ((size_t)512 * 1024 * 1024)
#define STRAGGLER_STEPS 50       /* of a window, at least, */
#define STRAGGLER_SHORT_S 2.0    /* or more, until it takes so long, */
#define STRAGGLER_STEPS_MOST 100 /* and at most */
#define STRAGGLER_STEPS_LEAST 5  /* of one that takes STRAGGLER_WINDOW_S */
#define STRAGGLER_WINDOW_S 10.0
#define STRAGGLER_SPAN_S 10.0 /* of all windows, if they have fewer steps than that */
#define STRAGGLER_AGREE 4     /* windows in which a rank is slow */
#define STRAGGLER_DEVIATIONS 5.0
#define STRAGGLER_EXCESS 0.025 /* of a step */
#define STRAGGLER_LAST 0.20    /* of the way from how often chance makes them the last to always */
#define STRAGGLER_CHANCE 3.0   /* standard deviations of how often chance makes a rank the last */
#define STRAGGLER_COST 0.10    /* of a step, of an imbalance */
#define STRAGGLER_MOST 0.5     /* of the difference, of a part that is named */
#define STRAGGLER_OVERLAP 0.1  /* of the steps, in which what follows begins before it ends */
#define STRAGGLER_ALONE 16384  /* comparisons of ranks that fit no other: of thousands there are millions */
#define STRAGGLER_ERROR 0.25   /* of a step: what clocks may be off */
/* Steps in which a part has to be known, and how far its median may be off, in quartiles' distance by the root of
 * their number: in a few steps on a busy machine parts differ by chance. */
#define STRAGGLER_PART_STEPS 8
#define STRAGGLER_PART_ERROR 2.0
#define STRAGGLER_SLOTS 64 /* last collectives of a step that are judged one by one; the others block */

const char *straggler_part_name(enum straggler_part part) {
#define STRAGGLER_NAME(id, name) name,
    static const char *const names[] = {STRAGGLER_PARTS(STRAGGLER_NAME) "forward or backward"};
    return names[part <= STRAGGLER_COMPUTE ? part : STRAGGLER_COMPUTE];
}

/* A collective that is known of all ranks of the role. */
struct straggler_meeting {
    double last_begin;
    size_t last_row;
    int64_t step;       /* of the role's first rank */
    const size_t *rows; /* of each rank */
};

/* A step that all of them have. */
struct straggler_round {
    int64_t step;
    size_t first, n;  /* its meetings */
    float *own, *lag; /* of each rank, ms */
    const struct straggler_step **rows;
    uint32_t last;
    float cost;
};

struct straggler_role {
    struct arena *arena;
    struct straggler_rank **members;
    uint32_t n;
    int32_t number;
    double error_ms;
    struct arrival *rows;
    struct straggler_meeting *meetings; /* the oldest first */
    size_t n_meetings;
    struct straggler_round *rounds; /* the oldest first */
    size_t n_rounds;
    size_t window; /* rounds of one */
    bool has_windows;
    double *memory; /* for as many values as there are ranks, or rounds */
};

static int straggler_compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The lower one of the middle: half of the values may be far above. NAN: there are none. */
static double straggler_median(double *v, size_t n) {
    qsort(v, n, sizeof *v, straggler_compare);
    return n ? v[(n - 1) / 2] : NAN;
}

/* ---- roles ---- */

static size_t straggler_put_ends(const struct straggler_rank *r, struct step_end *out, size_t cap) {
    size_t n = r->n_steps < cap ? r->n_steps : cap, from = r->n_steps - n;
    for (size_t i = 0; i < n; i++)
        out[i] = (struct step_end){r->steps[from + i].step, r->steps[from + i].at - r->ahead_s};
    return n;
}

/* Ranks of which the first is the reference of their role. */
static int32_t straggler_put_roles(struct straggler_rank *ranks, size_t n) {
    enum { ENDS = 2 * STEP_ALIGN_STEPS };
    struct step_end first[ENDS], other[ENDS];
    int32_t roles = 0;
    size_t alone = 0;
    for (size_t i = 0; i < n && roles < STRAGGLER_ROLES && alone < STRAGGLER_ALONE; i++) {
        size_t n_first = straggler_put_ends(&ranks[i], first, ENDS), members = 1;
        if (ranks[i].role >= 0 || n_first < STEP_ALIGN_LEAST)
            continue;
        for (size_t k = i + 1; k < n; k++)
            if (ranks[k].role < 0 && step_align_find(other, straggler_put_ends(&ranks[k], other, ENDS), first,
                                                     n_first, &ranks[k].shift)) {
                ranks[k].role = roles;
                members++;
            }
        if (members > 1)
            ranks[i].role = roles++;
        else
            alone += n - i;
    }
    return roles;
}

/* ---- collectives ---- */

static int straggler_compare_meetings(const void *a, const void *b) {
    const struct straggler_meeting *x = a, *y = b;
    if (x->last_begin != y->last_begin)
        return x->last_begin < y->last_begin ? -1 : 1;
    return (x->last_row > y->last_row) - (x->last_row < y->last_row);
}

/* The step in which that rank was at that time, as the role numbers it. False: it has not ended yet. */
static bool straggler_step_at(const struct straggler_rank *r, double at, int64_t *step) {
    size_t low = 0, high = r->n_steps;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (r->steps[middle].at - r->ahead_s < at)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == r->n_steps)
        return false;
    *step = r->steps[low].step + r->shift;
    return true;
}

/* 0, or -1 without memory. */
static int straggler_match(struct straggler_role *role) {
    size_t n = 0, at = 0;
    for (uint32_t i = 0; i < role->n; i++)
        n += role->members[i]->n_collectives;
    role->rows = arena_calloc(role->arena, n + 1, sizeof *role->rows);
    if (!role->rows)
        return -1;
    for (uint32_t i = 0; i < role->n; i++) {
        const struct straggler_rank *r = role->members[i];
        for (size_t k = 0; k < r->n_collectives; k++) {
            const struct straggler_collective *c = &r->collectives[k];
            role->rows[at++] = (struct arrival){
                .rank = i, .op = c->op, .begin = c->begin - r->ahead_s, .end = c->end - r->ahead_s};
        }
    }
    if (arrivals_match(role->rows, n, role->n) != 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        role->n_meetings += role->rows[i].last == (int64_t)i;
    role->meetings = arena_calloc(role->arena, role->n_meetings + 1, sizeof *role->meetings);
    size_t *table = arena_calloc(role->arena, role->n_meetings * role->n + 1, sizeof *table);
    size_t *meeting_of = arena_calloc(role->arena, n + 1, sizeof *meeting_of);
    if (!role->meetings || !table || !meeting_of)
        return -1;
    at = 0;
    for (size_t i = 0; i < n; i++)
        if (role->rows[i].last == (int64_t)i) {
            meeting_of[i] = at;
            role->meetings[at] = (struct straggler_meeting){
                .last_begin = role->rows[i].begin, .last_row = i, .rows = table + at * role->n};
            at++;
        }
    for (size_t i = 0; i < n; i++)
        if (role->rows[i].last >= 0)
            table[meeting_of[role->rows[i].last] * role->n + role->rows[i].rank] = i;
    qsort(role->meetings, role->n_meetings, sizeof *role->meetings, straggler_compare_meetings);
    return 0;
}

/* ---- steps ---- */

const struct straggler_step *straggler_find_step(const struct straggler_rank *r, int64_t step) {
    size_t low = 0, high = r->n_steps;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (r->steps[middle].step + r->shift < step)
            low = middle + 1;
        else
            high = middle;
    }
    return low < r->n_steps && r->steps[low].step + r->shift == step ? &r->steps[low] : NULL;
}

/* Steps that all ranks have, and of which collectives are known. 0, or -1 without memory. */
static int straggler_put_rounds(struct straggler_role *role) {
    const struct straggler_rank *first = role->members[0];
    size_t at = 0;
    role->rounds = arena_calloc(role->arena, first->n_steps + 1, sizeof *role->rounds);
    if (!role->rounds)
        return -1;
    /* the step of the one that came last; those of the current step are left out */
    size_t n = 0;
    for (size_t i = 0; i < role->n_meetings; i++) {
        struct straggler_meeting *m = &role->meetings[i];
        if (!straggler_step_at(role->members[role->rows[m->last_row].rank], m->last_begin, &m->step))
            break;
        if (i > 0 && m->step < m[-1].step)
            m->step = m[-1].step;
        n++;
    }
    role->n_meetings = n;
    /* the oldest step may lack some */
    while (at < n && role->meetings[at].step == role->meetings[0].step)
        at++;
    for (size_t i = 0; i < first->n_steps; i++) {
        struct straggler_round *round = &role->rounds[role->n_rounds];
        bool whole = true;
        while (at < n && role->meetings[at].step < first->steps[i].step)
            at++;
        *round = (struct straggler_round){.step = first->steps[i].step, .first = at};
        while (at < n && role->meetings[at].step == round->step)
            at++;
        round->n = at - round->first;
        if (!round->n)
            continue;
        round->rows = arena_calloc(role->arena, role->n, sizeof(*round->rows));
        round->own = arena_calloc(role->arena, role->n, sizeof *round->own);
        round->lag = arena_calloc(role->arena, role->n, sizeof *round->lag);
        if (!round->rows || !round->own || !round->lag)
            return -1;
        for (uint32_t k = 0; whole && k < role->n; k++) {
            round->rows[k] = straggler_find_step(role->members[k], round->step);
            whole = round->rows[k] && isfinite(round->rows[k]->ms);
        }
        role->n_rounds += whole;
    }
    return 0;
}

/* ---- waits ---- */

static const struct arrival *straggler_row(const struct straggler_role *role, size_t meeting, uint32_t rank) {
    return &role->rows[role->meetings[meeting].rows[rank]];
}

/* The median distance from the median. */
static double straggler_spread(double *v, size_t n) {
    double middle = straggler_median(v, n);
    for (size_t i = 0; i < n; i++)
        v[i] = fabs(v[i] - middle);
    return n ? straggler_median(v, n) : 0;
}

/* Whether the collective at that place of a step, counted from its end, blocks the rank. Buckets of
 * DistributedDataParallel do not, but for the last: the backward pass goes on. What follows a
 * collective begins at a regular time after its end if that has been waited for, and else after its
 * begin. In steps in which the rank itself comes last this does not show: it does not wait. */
static bool straggler_blocks(const struct straggler_role *role, size_t slot) {
    double *from_begin = role->memory, *from_end = role->memory + role->n_rounds;
    double begins = 0, ends = 0;
    size_t seen = 0, overlap = 0;
    for (uint32_t k = 0; k < role->n; k++) {
        size_t n = 0;
        for (size_t i = 0; i < role->n_rounds; i++) {
            const struct straggler_round *round = &role->rounds[i];
            size_t at = round->first + round->n - 1 - slot;
            if (slot >= round->n || at + 1 >= role->n_meetings ||
                role->rows[role->meetings[at].last_row].rank == k)
                continue;
            const struct arrival *row = straggler_row(role, at, k), *next = straggler_row(role, at + 1, k);
            from_begin[n] = next->begin - row->begin;
            from_end[n++] = next->begin - row->end;
            overlap += next->begin < row->end;
        }
        seen += n;
        begins += straggler_spread(from_begin, n);
        ends += straggler_spread(from_end, n);
    }
    return ends <= begins && overlap <= STRAGGLER_OVERLAP * (double)seen;
}

/* How long each rank waited in a step. Who waits least is the one for whom the others wait. */
static void straggler_put_round(const struct straggler_role *role, struct straggler_round *round,
                                const bool *blocks) {
    double least = INFINITY, next = INFINITY, most = 0;
    for (size_t i = round->first; i < round->first + round->n; i++) {
        size_t slot = round->first + round->n - 1 - i;
        if (slot < STRAGGLER_SLOTS && !blocks[slot])
            continue;
        for (uint32_t k = 0; k < role->n; k++)
            round->lag[k] += (float)((role->meetings[i].last_begin - straggler_row(role, i, k)->begin) * 1e3);
    }
    for (uint32_t k = 0; k < role->n; k++) {
        double wait = round->lag[k];
        most = fmax(most, wait);
        if (wait < least) {
            next = least;
            least = wait;
            round->last = k;
        } else
            next = fmin(next, wait);
        round->own[k] = (float)fmax(round->rows[k]->ms - wait, 0);
    }
    round->cost = (float)(next - least);
    for (uint32_t k = 0; k < role->n; k++)
        round->lag[k] = (float)(most - round->lag[k]);
}

static void straggler_put_waits(struct straggler_role *role) {
    bool blocks[STRAGGLER_SLOTS];
    size_t most = 0;
    for (size_t i = 0; i < role->n_rounds; i++)
        most = role->rounds[i].n > most ? role->rounds[i].n : most;
    for (size_t slot = 0; slot < STRAGGLER_SLOTS && slot < most; slot++)
        blocks[slot] = straggler_blocks(role, slot);
    for (size_t i = 0; i < role->n_rounds; i++)
        straggler_put_round(role, &role->rounds[i], blocks);
}

/* ---- windows ---- */

/* The rounds of a window; the newest has number 0. */
static struct straggler_round *straggler_window(const struct straggler_role *role, size_t number) {
    return role->rounds + role->n_rounds - (number + 1) * role->window;
}

static double straggler_step_ms(const struct straggler_role *role, const struct straggler_round *rounds,
                                size_t n) {
    double *v = role->memory;
    for (size_t i = 0; i < n; i++)
        v[i] = rounds[i].rows[0]->ms;
    return straggler_median(v, n);
}

static void straggler_plan_windows(struct straggler_role *role) {
    double step_s = straggler_step_ms(role, role->rounds, role->n_rounds) / 1e3;
    size_t n = role->n_rounds / STRAGGLER_WINDOWS;
    double most = fmin(fmax(STRAGGLER_STEPS, STRAGGLER_SHORT_S / step_s), STRAGGLER_STEPS_MOST);
    n = (double)n < most ? n : (size_t)most;
    if ((double)n * step_s > STRAGGLER_WINDOW_S) {
        size_t fit = (size_t)(STRAGGLER_WINDOW_S / step_s);
        fit = fit > STRAGGLER_STEPS_LEAST ? fit : STRAGGLER_STEPS_LEAST;
        n = fit < n ? fit : n; /* so many there may not be yet */
    }
    role->has_windows = n >= STRAGGLER_STEPS || (n >= STRAGGLER_STEPS_LEAST &&
                                                 STRAGGLER_WINDOWS * (double)n * step_s >= STRAGGLER_SPAN_S);
    /* what is shown of each rank needs no five of them */
    role->window = role->has_windows                  ? n
                   : role->n_rounds < STRAGGLER_STEPS ? role->n_rounds
                                                      : STRAGGLER_STEPS;
}

static double straggler_median_of(const struct straggler_role *role, const struct straggler_round *rounds,
                                  size_t n, uint32_t member, bool lag) {
    double *v = role->memory;
    for (size_t i = 0; i < n; i++)
        v[i] = lag ? rounds[i].lag[member] : rounds[i].own[member];
    return straggler_median(v, n);
}

/* Share of the rounds in which one of the slow ranks came last; of rank `only` alone, unless it is < 0. */
static double straggler_last(const struct straggler_round *rounds, size_t n, const bool *slow, int64_t only) {
    size_t found = 0;
    for (size_t i = 0; i < n; i++)
        found += only >= 0 ? rounds[i].last == only : slow[rounds[i].last];
    return n ? (double)found / (double)n : 0;
}

/* How often chance makes one of the slow ranks the last. */
static double straggler_chance(const struct straggler_role *role, const bool *slow) {
    uint32_t found = 0;
    for (uint32_t k = 0; k < role->n; k++)
        found += slow[k];
    return (double)found / role->n;
}

/* Whether chance explains how often the slow ranks came last: of two ranks that are alike, one is the last in three
 * steps of five half of the time. */
static bool straggler_is_chance(const struct straggler_role *role, const struct straggler_round *rounds,
                                size_t n, const bool *slow) {
    double part = straggler_chance(role, slow);
    return straggler_last(rounds, n, slow, -1) <
           part + STRAGGLER_CHANCE * sqrt(fmax(0, part * (1 - part)) / (double)n);
}

/* Whether all ranks of that host are slow, more than one, and the role has others. */
static bool straggler_is_host(const struct straggler_role *role, const bool *slow, int32_t host) {
    uint32_t here = 0;
    for (uint32_t k = 0; k < role->n; k++) {
        if (role->members[k]->host == host && !slow[k])
            return false;
        here += role->members[k]->host == host;
    }
    return here > 1 && here < role->n;
}

/* The ranks that are slow in a window. False: none. */
static bool straggler_judge_window(const struct straggler_role *role, const struct straggler_round *rounds,
                                   double *own, double *sorted, bool *slow) {
    size_t n = role->window;
    uint32_t found = 0;
    double step_ms = straggler_step_ms(role, rounds, n);
    for (uint32_t k = 0; k < role->n; k++)
        sorted[k] = own[k] = straggler_median_of(role, rounds, n, k, false);
    double middle = straggler_median(sorted, role->n);
    for (uint32_t k = 0; k < role->n; k++)
        sorted[k] = fabs(own[k] - middle);
    double deviation = straggler_median(sorted, role->n);
    double limit = fmax(fmax(STRAGGLER_DEVIATIONS * deviation, STRAGGLER_EXCESS * step_ms), role->error_ms);
    for (uint32_t k = 0; k < role->n; k++) {
        slow[k] = own[k] - middle > limit;
        found += slow[k];
    }
    /* who is slow, but never the last, costs nothing: others are slower. On a slow host one is the last
     * now and then. */
    double chance = straggler_chance(role, slow), most = chance + STRAGGLER_LAST * (1 - chance);
    double least = most / (found ? found : 1);
    bool drops[ARRIVALS_RANKS] = {false};
    for (uint32_t k = 0; k < role->n; k++)
        drops[k] = slow[k] && straggler_last(rounds, n, slow, k) < least &&
                   !straggler_is_host(role, slow, role->members[k]->host);
    for (uint32_t k = 0; k < role->n; k++)
        slow[k] = slow[k] && !drops[k];
    return straggler_last(rounds, n, slow, -1) >= most;
}

/* ---- verdicts ---- */

/* A part of a step in a rank, without its waits. NAN unknown. */
static double straggler_part_ms(const struct straggler_round *round, uint32_t member,
                                enum straggler_part part) {
    const float *p = round->rows[member]->parts;
    double known = 0;
    if (part < STRAGGLER_PART_COUNT && part != STRAGGLER_BACKWARD)
        return p[part];
    if ((part == STRAGGLER_BACKWARD) != isfinite(p[STRAGGLER_BACKWARD]))
        return NAN;
    /* the waits are in it: it is what is left of the own time */
    static const enum straggler_part others[] = {STRAGGLER_DATA, STRAGGLER_FORWARD, STRAGGLER_OPTIMIZER,
                                                 STRAGGLER_OTHER};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        known += isfinite(p[others[i]]) ? p[others[i]] : 0;
    return round->own[member] - known;
}

/* The own time of the named ranks and of the others, in `n` rounds. */
static void straggler_compare_own(const struct straggler_role *role, const bool *named,
                                  const struct straggler_round *rounds, size_t n, double *named_ms,
                                  double *others_ms) {
    double *sides[2] = {role->memory + role->n_rounds, role->memory + role->n_rounds + role->n};
    size_t of[2] = {0, 0};
    for (uint32_t k = 0; k < role->n; k++)
        sides[named[k]][of[named[k]]++] = straggler_median_of(role, rounds, n, k, false);
    *named_ms = straggler_median(sides[1], of[1]);
    *others_ms = straggler_median(sides[0], of[0]);
}

/* The part with most of what the named ranks take longer in the newest `steps`, if each of them certainly takes
 * longer for it than any other rank. */
static void straggler_put_part(const struct straggler_role *role, const bool *named, size_t steps,
                               struct straggler_verdict *v) {
    const struct straggler_round *rounds = role->rounds + role->n_rounds - steps;
    double *values = role->memory, *sides[2] = {values + steps, values + steps + role->n};
    double own_ms, others_ms;
    straggler_compare_own(role, named, rounds, steps, &own_ms, &others_ms);
    for (int part = 0; part <= STRAGGLER_COMPUTE; part++) {
        size_t n[2] = {0, 0};
        bool is_known = v->has_part && (v->part == STRAGGLER_FORWARD || v->part == STRAGGLER_BACKWARD ||
                                        v->part == STRAGGLER_GC);
        if (part == STRAGGLER_COMPUTE && is_known) /* which of it */
            break;
        double least = INFINITY, most = -INFINITY;
        for (uint32_t k = 0; k < role->n; k++) {
            size_t known = 0;
            for (size_t i = 0; i < steps; i++) {
                double ms = straggler_part_ms(&rounds[i], k, (enum straggler_part)part);
                if (isfinite(ms))
                    values[known++] = ms;
            }
            if (known < STRAGGLER_PART_STEPS)
                continue;
            double middle = straggler_median(values, known);
            double error = STRAGGLER_PART_ERROR * (values[known - 1 - known / 4] - values[known / 4]) /
                           sqrt((double)known);
            sides[named[k]][n[named[k]]++] = middle;
            if (named[k])
                least = fmin(least, middle - error);
            else
                most = fmax(most, middle + error);
        }
        double more = straggler_median(sides[1], n[1]) - straggler_median(sides[0], n[0]);
        if (more > v->part_ms && more >= STRAGGLER_MOST * (own_ms - others_ms) && least > most) {
            v->has_part = true;
            v->part = (enum straggler_part)part;
            v->part_ms = more;
        }
    }
}

/* `steps`: since when the named ones are slow. */
static void straggler_name(struct straggler_role *role, const bool *named, size_t steps,
                           struct straggler_verdict *v) {
    const struct straggler_round *newest = straggler_window(role, 0);
    int32_t host = -1;
    for (uint32_t k = 0; k < role->n; k++) {
        role->members[k]->is_named = named[k];
        host = named[k] ? role->members[k]->host : host;
    }
    v->host = straggler_is_host(role, named, host) ? host : -1;
    for (uint32_t k = 0; k < role->n; k++)
        v->host = named[k] && role->members[k]->host != host ? -1 : v->host;
    straggler_compare_own(role, named, newest, role->window, &v->own_ms, &v->others_ms);
    v->last = straggler_last(role->rounds + role->n_rounds - v->steps, v->steps, named, -1);
    straggler_put_part(role, named, steps, v);
}

static double straggler_cost(const struct straggler_role *role, const struct straggler_round *rounds,
                             size_t n) {
    for (size_t i = 0; i < n; i++)
        role->memory[i] = rounds[i].cost;
    return straggler_median(role->memory, n);
}

/* True: there is something to say. */
static bool straggler_judge(struct straggler_role *role, struct straggler_verdict *v) {
    double *own = arena_calloc(role->arena, 2 * (size_t)role->n, sizeof *own);
    bool *slow = arena_calloc(role->arena, role->n, sizeof *slow);
    unsigned *held = arena_calloc(role->arena, role->n, sizeof *held);
    size_t *since = arena_calloc(role->arena, role->n, sizeof *since);
    size_t steps = 0;
    unsigned costly = 0;
    bool any = false;
    if (!own || !slow || !held || !since || !role->has_windows)
        return false;
    *v = (struct straggler_verdict){.role = role->number,
                                    .host = -1,
                                    .own_ms = NAN,
                                    .others_ms = NAN,
                                    .part_ms = 0,
                                    .steps = STRAGGLER_WINDOWS * role->window};
    const struct straggler_round *all = role->rounds + role->n_rounds - v->steps;
    v->step_ms = straggler_step_ms(role, all, v->steps);
    v->cost_ms = straggler_cost(role, all, v->steps);
    for (size_t w = 0; w < STRAGGLER_WINDOWS; w++) {
        const struct straggler_round *rounds = straggler_window(role, w);
        double least = fmax(STRAGGLER_COST * straggler_step_ms(role, rounds, role->window), role->error_ms);
        costly += straggler_cost(role, rounds, role->window) > least;
        if (straggler_judge_window(role, rounds, own, own + role->n, slow))
            for (uint32_t k = 0; k < role->n; k++) {
                held[k] += slow[k];
                since[k] = slow[k] ? (w + 1) * role->window : since[k];
            }
    }
    for (uint32_t k = 0; k < role->n; k++) {
        slow[k] = held[k] >= STRAGGLER_AGREE;
        any |= slow[k];
        steps = slow[k] && since[k] > steps ? since[k] : steps;
        role->members[k]->last = straggler_last(all, v->steps, slow, k);
        if (role->members[k]->last > v->last)
            v->last = role->members[k]->last;
    }
    any = any && !straggler_is_chance(role, all, v->steps, slow);
    v->code = any ? STRAGGLER_SLOW : STRAGGLER_IMBALANCE;
    if (any)
        straggler_name(role, slow, steps, v);
    return any || costly >= STRAGGLER_AGREE;
}

/* 1: there is a verdict; 0: none; -1 without memory. */
static int straggler_find_role(struct straggler_role *role, struct straggler_verdict *v) {
    if (straggler_match(role) != 0 || straggler_put_rounds(role) != 0)
        return -1;
    role->memory =
        arena_calloc(role->arena, 2 * (role->n_rounds + (size_t)role->n) + 1, sizeof *role->memory);
    if (!role->memory)
        return -1;
    if (role->n_rounds < STRAGGLER_STEPS_LEAST)
        return 0;
    straggler_put_waits(role);
    straggler_plan_windows(role);
    const struct straggler_round *newest = straggler_window(role, 0);
    if (role->error_ms > STRAGGLER_ERROR * straggler_step_ms(role, newest, role->window))
        return 0;
    for (uint32_t k = 0; k < role->n; k++) {
        role->members[k]->own_ms = straggler_median_of(role, newest, role->window, k, false);
        double lag_ms = straggler_median_of(role, newest, role->window, k, true);
        role->members[k]->lag_ms = lag_ms < role->error_ms ? NAN : lag_ms;
    }
    return straggler_judge(role, v);
}

int straggler_find(struct straggler_rank *ranks, size_t n, double error_s,
                   struct straggler_verdict out[STRAGGLER_ROLES], size_t *n_out) {
    struct arena arena;
    int rc = 0;
    *n_out = 0;
    for (size_t i = 0; i < n; i++) {
        ranks[i].role = -1;
        ranks[i].shift = 0;
        ranks[i].own_ms = ranks[i].lag_ms = ranks[i].last = NAN;
        ranks[i].is_named = false;
    }
    if (n > ARRIVALS_RANKS)
        return 0;
    int32_t roles = straggler_put_roles(ranks, n);
    for (int32_t i = 0; rc >= 0 && i < roles; i++) {
        arena_init(&arena, STRAGGLER_BYTES);
        struct straggler_role role = {.arena = &arena, .number = i, .error_ms = error_s * 1e3};
        role.members = arena_calloc(&arena, n, sizeof(*role.members));
        bool several_hosts = false;
        for (size_t k = 0; role.members && k < n; k++)
            if (ranks[k].role == i) {
                several_hosts |= role.n > 0 && ranks[k].host != role.members[0]->host;
                role.members[role.n++] = &ranks[k];
            }
        if (!several_hosts)
            role.error_ms = 0;
        rc = role.members ? straggler_find_role(&role, &out[*n_out]) : -1;
        *n_out += rc == 1;
        arena_fini(&arena);
    }
    if (rc < 0)
        *n_out = 0;
    return rc < 0 ? -1 : 0;
}
