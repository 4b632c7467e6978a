/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_hosts: see fleet_hosts.h. */
#include "client/fleet/fleet_hosts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/grow.h"
#include "client/fleet/pace.h"

#define HOSTS_STACKS_MAX 8192 /* kept; then those that no rank has are forgotten */
#define HOSTS_LATER_S 1.0     /* than now may be what a host says, beside the error of its clock, */
#define HOSTS_ERROR_S 2.0     /* which is this at most: one that answers slowly could have any */

int fleet_hosts_init(struct fleet_hosts *hs, size_t n) {
    *hs = (struct fleet_hosts){.latest = NAN};
    hs->fleet.taken_at = NAN;
    hs->pace = pace_new();
    if (!hs->pace)
        return -1;
    while (hs->n < n)
        if (!fleet_hosts_add(hs))
            return -1;
    return 0;
}

struct fleet_host *fleet_hosts_add(struct fleet_hosts *hs) {
    if (hs->n == 1 && !hs->owners)
        hs->owners = calloc(RANK_SET_LIMIT, sizeof *hs->owners);
    if (hs->n == FLEET_HOSTS_MAX || (hs->n == 1 && !hs->owners) ||
        grow_array(&hs->items, sizeof *hs->items, hs->n + 1, &hs->cap) != 0)
        return NULL;
    struct fleet_host *h = &hs->items[hs->n];
    *h = (struct fleet_host){.stacks = (uint32_t)hs->n,
                             .ahead_ms = NAN,
                             .error_ms = NAN,
                             .rtt_ms = NAN,
                             .lost = REPORT_NO_INT,
                             .seen_at = NAN};
    report_clear(&REPORT_TABLE_JOB, &h->job);
    hs->n++;
    return h;
}

void fleet_hosts_fini(struct fleet_hosts *hs) {
    fleet_fini(&hs->fleet);
    for (size_t i = 0; i < hs->n_stacks; i++)
        free(hs->stacks[i]);
    free(hs->stacks);
    free(hs->owners);
    free(hs->items);
    pace_free(hs->pace);
    *hs = (struct fleet_hosts){.latest = NAN};
    hs->fleet.taken_at = NAN;
}

/* ---- stacks ---- */

/* A stack with the memory of its frames, in one block. */
struct hosts_stack {
    struct fleet_stack stack; /* first */
    uint32_t stacks;
    bool is_used;
    struct model_frame frames[];
};

static struct hosts_stack *hosts_stack_of(struct fleet_stack *s) { return (struct hosts_stack *)(void *)s; }

static bool hosts_stack_is_before(const struct fleet_stack *s, uint32_t stacks, int64_t id) {
    uint32_t other = ((const struct hosts_stack *)(const void *)s)->stacks;
    return other != stacks ? other < stacks : s->id < id;
}

/* Where the stack is, or belongs. */
static size_t hosts_place_stack(const struct fleet_hosts *hs, uint32_t stacks, int64_t id) {
    size_t low = 0, high = hs->n_stacks;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (hosts_stack_is_before(hs->stacks[middle], stacks, id))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct fleet_stack *fleet_hosts_find_stack(const struct fleet_hosts *hs, uint32_t stacks, int64_t id) {
    size_t at = hosts_place_stack(hs, stacks, id);
    struct fleet_stack *s = at < hs->n_stacks ? hs->stacks[at] : NULL;
    return s && s->id == id && hosts_stack_of(s)->stacks == stacks ? s : NULL;
}

static size_t hosts_text_size(const char *text) { return text ? strlen(text) + 1 : 0; }

static const char *hosts_copy_text(char **to, const char *text) {
    size_t size = hosts_text_size(text);
    char *copy = *to;
    if (!text)
        return NULL;
    memcpy(copy, text, size);
    *to += size;
    return copy;
}

int fleet_hosts_put_stack(struct fleet_hosts *hs, uint32_t stacks, int64_t id,
                          const struct model_frame *frames, size_t n) {
    size_t bytes = sizeof(struct hosts_stack) + n * sizeof *frames;
    char *texts;
    if (fleet_hosts_find_stack(hs, stacks, id))
        return 0;
    for (size_t i = 0; i < n; i++)
        bytes += hosts_text_size(frames[i].func) + hosts_text_size(frames[i].file);
    struct hosts_stack *s = malloc(bytes);
    if (!s || grow_array(&hs->stacks, sizeof(*hs->stacks), hs->n_stacks + 1, &hs->cap_stacks) != 0) {
        free(s);
        return -1;
    }
    *s = (struct hosts_stack){.stacks = stacks, .stack = {.id = id, .frames = s->frames, .n_frames = n}};
    texts = (char *)(s->frames + n);
    for (size_t i = 0; i < n; i++) {
        s->frames[i] = frames[i];
        s->frames[i].func = hosts_copy_text(&texts, frames[i].func);
        s->frames[i].file = hosts_copy_text(&texts, frames[i].file);
    }
    fleet_stack_describe(&s->stack);
    size_t at = hosts_place_stack(hs, stacks, id);
    memmove(hs->stacks + at + 1, hs->stacks + at, (hs->n_stacks++ - at) * sizeof(*hs->stacks));
    hs->stacks[at] = &s->stack;
    return 0;
}

static void hosts_use_stacks(const struct fleet_hosts *hs, const struct fleet_host *h,
                             const struct report_rank *ranks, size_t n) {
    for (size_t i = 0; i < n; i++) {
        struct fleet_stack *s = fleet_hosts_find_stack(hs, h->stacks, ranks[i].stack);
        if (s)
            hosts_stack_of(s)->is_used = true;
    }
}

/* Forget the stacks that no rank has, once there are many. The fleet is made again after this. */
static void hosts_drop_stacks(struct fleet_hosts *hs) {
    size_t kept = 0;
    if (hs->n_stacks < HOSTS_STACKS_MAX)
        return;
    for (size_t i = 0; i < hs->n; i++) {
        hosts_use_stacks(hs, &hs->items[i], hs->items[i].ranks, hs->items[i].n_ranks);
        hosts_use_stacks(hs, &hs->items[i], hs->items[i].next, hs->items[i].n_next);
    }
    for (size_t i = 0; i < hs->n_stacks; i++) {
        struct hosts_stack *s = hosts_stack_of(hs->stacks[i]);
        if (s->is_used)
            hs->stacks[kept++] = hs->stacks[i];
        else
            free(s);
        if (kept && hs->stacks[kept - 1] == &s->stack)
            s->is_used = false;
    }
    hs->n_stacks = kept;
}

bool fleet_hosts_add_time(struct fleet_hosts *hs, size_t i, const struct report_time *row) {
    return pace_add(hs->pace, (uint32_t)i, row);
}

void fleet_hosts_forget_times(struct fleet_hosts *hs, size_t i) { pace_forget(hs->pace, (uint32_t)i); }

/* ---- whose a rank is ---- */

/* A rank as a host has it. */
struct hosts_claim {
    int32_t rank;
    uint32_t host, report;
    bool lives, is_silent;
    int64_t restarts;
};

static int hosts_compare_claims(const void *a, const void *b) {
    const struct hosts_claim *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->host != y->host ? (x->host < y->host ? -1 : 1)
                              : (x->report > y->report) - (x->report < y->report);
}

/* Who has a rank that these claim: who had it, unless its process has ended and another's lives, or its
 * host is silent and another was started by a later restart. */
static uint32_t hosts_choose_owner(const struct hosts_claim *claims, size_t n, uint32_t before) {
    const struct hosts_claim *best = NULL;
    for (size_t i = 0; i < n; i++)
        if (claims[i].host + 1 == before)
            best = &claims[i];
    for (size_t i = 0; i < n; i++)
        if (!best ||
            (claims[i].lives && (!best->lives || (best->is_silent && claims[i].restarts > best->restarts))))
            best = &claims[i];
    return best->host + 1;
}

/* Mark the reports about ranks that another host has. */
static void hosts_judge_claims(struct fleet_hosts *hs, struct hosts_claim *claims, size_t n,
                               struct fleet_report *reports) {
    for (size_t i = 0; i < hs->n; i++)
        hs->items[i].claims[0] = '\0';
    qsort(claims, n, sizeof *claims, hosts_compare_claims);
    for (size_t from = 0, to; from < n; from = to) {
        for (to = from + 1; to < n && claims[to].rank == claims[from].rank; to++)
            ;
        uint16_t *owner = &hs->owners[claims[from].rank];
        *owner = (uint16_t)hosts_choose_owner(claims + from, to - from, *owner);
        for (size_t i = from; i < to; i++) {
            struct fleet_host *h = &hs->items[claims[i].host];
            if (claims[i].host + 1 == *owner)
                continue;
            reports[claims[i].report].is_second = true;
            if (claims[i].lives && !h->claims[0])
                snprintf(h->claims, sizeof h->claims, "it claims rank %d, which %.96s has", claims[from].rank,
                         hs->items[*owner - 1].host);
        }
    }
}

/* ---- the fleet ---- */

static const char *hosts_state(const struct fleet_host *h) {
    return h->is_absent                      ? "no such job"
           : h->is_silent                    ? "no answer"
           : isnan(h->seen_at) && h->note[0] ? "no answer"
           : !h->has_job                     ? "starting"
           : h->job.missing                  ? "ranks missing"
                                             : "ok";
}

static struct fleet_node hosts_node(const struct fleet_host *h) {
    return (struct fleet_node){.host = h->host,
                               .via = h->via,
                               .state = hosts_state(h),
                               .job = h->job,
                               .rtt_ms = h->rtt_ms,
                               .clock_offset_ms = h->ahead_ms,
                               .clock_error_ms = h->error_ms,
                               .lost = h->lost,
                               .cost_pct = h->n_ranks ? h->ranks[0].cost_pct : NAN,
                               .seen_at = h->seen_at,
                               .is_silent = h->is_silent || !h->has_job || !h->n_ranks,
                               .note = h->note[0]     ? h->note
                                       : h->claims[0] ? h->claims
                                                      : NULL};
}

static double hosts_correct_time(double at, double ahead_s, double latest) {
    at -= ahead_s;
    return at >= 0 && at <= latest ? at : NAN;
}

/* The times of a row by the clock of this host, as far as the other's is known. A time that has not come yet is
 * unknown: the newest one is that from which the ages of all ranks count, so that one host could make all others
 * old. */
static void hosts_correct_clock(const struct fleet_host *h, double latest, struct report_rank *row) {
    double ahead_s = isnan(h->ahead_ms) ? 0 : h->ahead_ms / 1e3;
    latest += fmin(h->error_ms / 1e3, HOSTS_ERROR_S);
    row->taken_at = hosts_correct_time(row->taken_at, ahead_s, latest);
    row->since = hosts_correct_time(row->since, ahead_s, latest);
    row->step_at = hosts_correct_time(row->step_at, ahead_s, latest);
}

/* Without memory for another one: what it was made of is freed next. */
static void hosts_empty_fleet(struct fleet_hosts *hs) {
    uint64_t rounds = hs->fleet.round;
    fleet_fini(&hs->fleet);
    hs->fleet.round = rounds;
}

void fleet_hosts_build(struct fleet_hosts *hs, bool round) {
    size_t n = 0, at = 0, n_claims = 0;
    double latest = isnan(hs->latest) ? clock_epoch_s() + HOSTS_LATER_S : hs->latest;
    for (size_t i = 0; i < hs->n; i++)
        n += hs->items[i].n_ranks;
    struct fleet_report *reports = calloc(n + 1, sizeof *reports);
    struct fleet_node *nodes = calloc(hs->n + 1, sizeof *nodes);
    struct hosts_claim *claims = calloc(n + 1, sizeof *claims);
    if (reports && nodes && claims) {
        hosts_drop_stacks(hs);
        for (size_t i = 0; i < hs->n; i++) {
            const struct fleet_host *h = &hs->items[i];
            for (size_t r = 0; r < h->n_ranks; r++, at++) {
                const struct report_rank *row = &h->ranks[r];
                reports[at] = (struct fleet_report){
                    .row = *row,
                    .node = (uint32_t)i,
                    .stack = row->stack == REPORT_NO_INT ? NULL
                                                         : fleet_hosts_find_stack(hs, h->stacks, row->stack),
                    .is_silent = h->is_silent,
                    .silent_s = h->silent_s};
                hosts_correct_clock(h, latest, &reports[at].row);
                if (row->rank >= 0 && row->rank < RANK_SET_LIMIT)
                    claims[n_claims++] =
                        (struct hosts_claim){.rank = (int32_t)row->rank,
                                             .host = (uint32_t)i,
                                             .report = (uint32_t)at,
                                             .lives = !row->state || !strchr("XZ", row->state[0]),
                                             .is_silent = h->is_silent,
                                             .restarts = h->job.restarts};
            }
        }
        if (hs->owners)
            hosts_judge_claims(hs, claims, n_claims, reports);
        for (size_t i = 0; i < hs->n; i++)
            nodes[i] = hosts_node(&hs->items[i]);
        if (fleet_build(&hs->fleet, nodes, hs->n, reports, n) == 0) {
            hs->fleet.round += round;
            pace_put(hs->pace, &hs->fleet);
        }
    } else
        hosts_empty_fleet(hs);
    hs->built_ns = clock_mono_ns();
    free(reports);
    free(nodes);
    free(claims);
}
