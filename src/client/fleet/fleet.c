/* SPDX-License-Identifier: Apache-2.0 */
/* fleet: see fleet.h. */
#include "client/fleet/fleet.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "client/verdict/verdict_places.h"

#define FLEET_NEAR 5       /* innermost frames that show what it waits for */
#define FLEET_IDLE_PCT 5.0 /* of a core: a thread below that waits */
#define FLEET_TEXT 320

char fleet_state_glyph(enum fleet_state s) {
#define FLEET_GLYPH(id, glyph, word) glyph,
    static const char glyphs[FLEET_STATE_COUNT] = {FLEET_STATES(FLEET_GLYPH)};
    return s < FLEET_STATE_COUNT ? glyphs[s] : '?';
}

const char *fleet_state_word(enum fleet_state s) {
#define FLEET_WORD(id, glyph, word) word,
    static const char *const words[FLEET_STATE_COUNT] = {FLEET_STATES(FLEET_WORD)};
    return words[s < FLEET_STATE_COUNT ? s : 0];
}

const struct fleet_rank *fleet_find(const struct fleet *f, int32_t rank) {
    size_t low = 0, high = f->n_ranks;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (f->ranks[middle].rank < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low < f->n_ranks && f->ranks[low].rank == rank ? &f->ranks[low] : NULL;
}

double fleet_age_s(const struct fleet *f, double at) {
    double age = f->taken_at - at;
    return age < 0 ? 0 : age;
}

/* ---- what a rank does ---- */

void fleet_stack_describe(struct fleet_stack *s) {
    const char *innermost = s->n_frames ? verdict_places_find("phase", &s->frames[0]) : NULL;
    s->in_backward = innermost && strcmp(innermost, "backward") == 0;
    s->doing = s->phase = s->wait = NULL;
    s->own = (uint32_t)s->n_frames;
    for (size_t i = s->n_frames; i-- > 0;) {
        const struct model_frame *f = &s->frames[i];
        const char *doing = s->phase ? NULL : verdict_places_find("doing", f);
        s->doing = s->doing ? s->doing : doing;
        s->phase = s->phase ? s->phase : verdict_places_find("phase", f);
        if (f->file && f->file[0] && !path_is_library(f->file))
            s->own = (uint32_t)i;
        if (i < FLEET_NEAR) {
            const char *wait = verdict_places_find("wait", f);
            s->wait = wait ? wait : s->wait;
            s->is_gpu = s->is_gpu || (f->func && f->file && strcmp(f->func, "synchronize") == 0 &&
                                      strstr(f->file, "/torch/"));
        }
    }
}

static bool fleet_has_wait(const struct report_rank *r, const char *kind) {
    return r->wait_kind && strcmp(r->wait_kind, kind) == 0;
}

static enum fleet_state fleet_state_of(const struct fleet_report *report) {
    const struct report_rank *r = &report->row;
    const struct fleet_stack *s = report->stack;
    char letter = r->state ? r->state[0] : '?';
    if (report->is_silent)
        return FLEET_UNKNOWN;
    if (letter == 'X' || letter == 'Z')
        return FLEET_GONE;
    if (letter == 'T' || letter == 't')
        return FLEET_STOPPED;
    if (r->gc == 1)
        return FLEET_GC;
    if (s && s->doing && strcmp(s->doing, "SAVING") == 0)
        return FLEET_CHECKPOINT;
    if (fleet_has_wait(r, "collective") || (s && s->wait && strcmp(s->wait, "ranks") == 0))
        return FLEET_COLLECTIVE;
    if (fleet_has_wait(r, "loader") || (s && s->phase && strcmp(s->phase, "loader") == 0))
        return FLEET_LOADER;
    if (s && s->is_gpu)
        return FLEET_GPU;
    if (letter == '?' || (!s && letter != 'R'))
        return FLEET_UNKNOWN;
    /* below `backward` the main thread may wait for those of autograd */
    bool helped = s && s->phase && strcmp(s->phase, "backward") == 0 && r->cpu_pct > FLEET_IDLE_PCT;
    bool runs = letter == 'R' || r->thread_cpu_pct > FLEET_IDLE_PCT || helped;
    return runs ? FLEET_COMPUTES : FLEET_WAITS;
}

/* ---- putting it together ---- */

static int fleet_compare_ranks(const void *a, const void *b) {
    const struct fleet_rank *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->is_second != y->is_second)
        return x->is_second - y->is_second;
    return (x->node > y->node) - (x->node < y->node);
}

static struct fleet_rank fleet_rank_of(struct fleet *f, const struct fleet_report *report) {
    const struct report_rank *r = &report->row;
    const struct fleet_stack *s = report->stack;
    struct fleet_rank out = {
        .rank = (int32_t)r->rank,
        .local_rank = r->local_rank >= 0 && r->local_rank < RANK_SET_LIMIT ? (int32_t)r->local_rank : -1,
        .node = report->node,
        .is_second = report->is_second,
        .is_silent = report->is_silent,
        .pid = r->pid > 0 && r->pid <= INT32_MAX ? (pid_t)r->pid : 0,
        .state = fleet_state_of(report),
        .taken_at = r->taken_at,
        .since = r->since,
        .step = r->step,
        .step_at = r->step_at,
        .step_ms = r->step_ms,
        .data_ms = r->data_ms,
        .gc_ms = r->gc_ms,
        .comm_ms = r->comm_ms,
        .own_ms = NAN,
        .lag_ms = NAN,
        .last = NAN,
        .role = -1,
        .cpu_pct = r->cpu_pct,
        .thread_cpu_pct = r->thread_cpu_pct,
        .rss_bytes = r->rss_bytes,
        .gpu_util = r->gpu_util,
        .gpu_mem_mb = r->gpu_mem_mb,
        .gpu_power_w = r->gpu_power_w,
        .gpu_devices = r->gpu_devices,
        .agent = r->agent == 1,
        .letter = r->state && r->state[0] ? r->state[0] : '?',
        .wait_what = r->wait_what,
        .stack = s,
        .class_number = STACK_CLASSES_NONE,
        .note = r->note};
    if (s && s->n_frames > 0)
        out.at = &s->frames[s->own < s->n_frames ? s->own : 0];
    if (report->is_silent) {
        char text[FLEET_TEXT];
        snprintf(text, sizeof text, "no news from its host for %.0f s", report->silent_s);
        out.note = arena_strdup(&f->arena, text);
    }
    return out;
}

static void fleet_add_note(struct fleet *f, const char *text) {
    if (!f->note)
        f->note = arena_strdup(&f->arena, text);
}

/* Of two that claim one rank the first stays. */
static void fleet_drop_doubles(struct fleet *f) {
    char text[FLEET_TEXT];
    size_t kept = 0;
    for (size_t i = 0; i < f->n_ranks; i++) {
        const struct fleet_rank *before = kept ? &f->ranks[kept - 1] : NULL;
        if (!before || before->rank != f->ranks[i].rank) {
            f->ranks[kept++] = f->ranks[i];
            continue;
        }
        snprintf(text, sizeof text, "rank %d is claimed by process %d of %.100s and by process %d of %.100s",
                 (int)before->rank, (int)before->pid, f->nodes[before->node].host, (int)f->ranks[i].pid,
                 f->nodes[f->ranks[i].node].host);
        fleet_add_note(f, text);
    }
    f->n_ranks = kept;
}

/* The sets, and the missing ranks as rows. 0, or -1 without memory. */
static int fleet_put_sets(struct fleet *f) {
    int rc = 0;
    for (size_t i = 0; i < f->n_ranks; i++)
        rc |= rank_set_add(&f->present, f->ranks[i].rank, f->ranks[i].rank);
    for (size_t i = 0; i < f->n_nodes; i++) {
        const struct report_job *job = &f->nodes[i].job;
        rc |= rank_set_join_text(&f->missing, job->missing);
        rc |= rank_set_join_text(&f->elsewhere, job->elsewhere);
        if (f->world == 0 && job->world > 0 && job->world <= RANK_SET_LIMIT)
            f->world = (int32_t)job->world;
        if (!f->job[0] && job->name)
            snprintf(f->job, sizeof f->job, "%s", job->name);
    }
    rc |= rank_set_remove(&f->missing, &f->present);
    rc |= rank_set_remove(&f->elsewhere, &f->present);
    return rc;
}

static int32_t fleet_count_missing(const struct fleet *f) {
    int32_t n = rank_set_count(&f->missing);
    return n < FLEET_MISSING_MAX ? n : FLEET_MISSING_MAX;
}

static void fleet_put_missing(struct fleet *f) {
    int32_t left = fleet_count_missing(f);
    for (size_t i = 0; i < f->missing.n; i++)
        for (int32_t r = f->missing.ranges[i].first; r <= f->missing.ranges[i].last && left > 0; r++, left--)
            f->ranks[f->n_ranks++] =
                (struct fleet_rank){.rank = r,
                                    .local_rank = -1,
                                    .state = FLEET_MISSING,
                                    .taken_at = NAN,
                                    .since = NAN,
                                    .step = REPORT_NO_INT,
                                    .step_at = NAN,
                                    .step_ms = NAN,
                                    .data_ms = NAN,
                                    .gc_ms = NAN,
                                    .comm_ms = NAN,
                                    .own_ms = NAN,
                                    .lag_ms = NAN,
                                    .last = NAN,
                                    .role = -1,
                                    .cpu_pct = NAN,
                                    .thread_cpu_pct = NAN,
                                    .rss_bytes = REPORT_NO_INT,
                                    .gpu_util = NAN,
                                    .gpu_mem_mb = NAN,
                                    .gpu_power_w = NAN,
                                    .letter = '?',
                                    .class_number = STACK_CLASSES_NONE,
                                    .note = "WORLD_SIZE promises it, and no process of this host is it"};
    qsort(f->ranks, f->n_ranks, sizeof *f->ranks, fleet_compare_ranks);
}

/* Its stack is one that was sampled with those of the others. */
static bool fleet_has_sample(const struct fleet_rank *r) {
    return r->stack && r->state != FLEET_GONE && !r->is_silent;
}

/* The classes of the ranks with a stack. 0, or -1 without memory. */
static int fleet_put_classes(struct fleet *f) {
    struct rank_stack *list = arena_calloc(&f->arena, f->n_ranks + 1, sizeof *list);
    struct fleet_rank **from = arena_calloc(&f->arena, f->n_ranks + 1, sizeof *from);
    size_t n = 0;
    if (!list || !from)
        return -1;
    for (size_t i = 0; i < f->n_ranks; i++)
        if (fleet_has_sample(&f->ranks[i])) {
            list[n] =
                (struct rank_stack){f->ranks[i].rank, f->ranks[i].stack->frames, f->ranks[i].stack->n_frames};
            from[n++] = &f->ranks[i];
        }
    if (stack_classes_build(&f->stacks, list, n) != 0)
        return -1;
    f->classes = arena_calloc(&f->arena, f->stacks.n_classes + 1, sizeof *f->classes);
    if (!f->classes)
        return -1;
    for (size_t i = 0; i < f->stacks.n_classes; i++) {
        const struct stack_node *node = &f->stacks.nodes[f->stacks.classes[i]];
        struct fleet_class *c = &f->classes[i];
        size_t collective = 0;
        c->since = NAN;
        for (uint32_t k = node->first; k < node->first + node->n_here; k++) {
            struct fleet_rank *r = from[f->stacks.inputs[k]];
            r->class_number = (uint32_t)i;
            c->since = r->since > c->since || isnan(c->since) ? r->since : c->since;
            collective += r->state == FLEET_COLLECTIVE;
        }
        c->in_collective = 2 * collective > node->n_here;
        c->is_majority = 2 * (size_t)node->n_here > n;
    }
    return 0;
}

int fleet_build(struct fleet *f, const struct fleet_node *nodes, size_t n_nodes,
                const struct fleet_report *reports, size_t n) {
    uint64_t round = f->round;
    fleet_fini(f);
    arena_init(&f->arena, FLEET_BYTES);
    f->round = round;
    f->nodes = arena_calloc(&f->arena, n_nodes + 1, sizeof *f->nodes);
    f->ranks = arena_calloc(&f->arena, n + FLEET_MISSING_MAX + 1, sizeof *f->ranks);
    bool ok = f->nodes && f->ranks;
    if (ok && n_nodes)
        memcpy(f->nodes, nodes, n_nodes * sizeof *nodes);
    f->n_nodes = ok ? n_nodes : 0;
    for (size_t i = 0; ok && i < n; i++) {
        const struct report_rank *r = &reports[i].row;
        if (r->rank < 0 || r->rank >= RANK_SET_LIMIT || reports[i].node >= n_nodes)
            continue;
        f->ranks[f->n_ranks++] = fleet_rank_of(f, &reports[i]);
        if (r->taken_at > f->taken_at || isnan(f->taken_at))
            f->taken_at = r->taken_at;
    }
    if (ok) {
        qsort(f->ranks, f->n_ranks, sizeof *f->ranks, fleet_compare_ranks);
        fleet_drop_doubles(f);
        ok = fleet_put_sets(f) == 0;
    }
    if (ok)
        fleet_put_missing(f);
    if (ok && fleet_put_classes(f) == 0)
        return 0;
    fleet_fini(f);
    f->round = round;
    return -1;
}

void fleet_fini(struct fleet *f) {
    rank_set_fini(&f->present);
    rank_set_fini(&f->missing);
    rank_set_fini(&f->elsewhere);
    stack_classes_fini(&f->stacks);
    arena_fini(&f->arena);
    *f = (struct fleet){.taken_at = NAN};
}
