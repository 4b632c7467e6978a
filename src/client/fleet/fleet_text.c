/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_text: see fleet_text.h. */
#include "client/fleet/fleet_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/path.h"
#include "base/text.h"

#define FLEET_TEXT_RANGES 8 /* of a set of ranks in a line */
#define FLEET_TEXT_RANKS 16 /* columns of it */
#define FLEET_TEXT_LINE 4096
#define FLEET_TEXT_ANSWER UINT32_MAX /* in place of a host: all that answer */

static void fleet_put_call(const struct stack_node *s, bool first, struct strbuf *out) {
    const char *dot = strrchr(s->func, '.');
    /* "Queue.get" keeps its class, "train.<locals>.step" not what is around it */
    const char *name = dot && strstr(s->func, "<locals>") ? dot + 1 : s->func;
    strbuf_addf(out, "%s%s", first ? "" : " > ", name[0] ? name : "?");
    if (s->line)
        strbuf_addf(out, " %s:%d", path_short(s->file), s->line);
}

void fleet_put_calls(const struct stack_classes *c, uint32_t node, uint32_t end, struct strbuf *out) {
    bool any = false;
    for (uint32_t i = node;; i = c->nodes[i].child) {
        const struct stack_node *s = &c->nodes[i];
        bool last = i == end;
        if (s->own || (last && (!any || s->n_here > 0))) {
            fleet_put_call(s, !any, out);
            any = true;
        }
        if (last)
            return;
    }
}

void fleet_put_where(const struct fleet_rank *r, struct strbuf *out) {
    if (!r->at)
        return;
    const struct model_frame *leaf = &r->stack->frames[0];
    if (leaf != r->at && leaf->func)
        strbuf_addf(out, "%s < ", leaf->func);
    strbuf_addf(out, "%s (%s", r->at->func ? r->at->func : "?", r->at->file ? path_short(r->at->file) : "?");
    strbuf_addf(out, r->at->line > 0 ? ":%d)" : ")", r->at->line);
}

/* One line; `depth` lines of the tree are above it. */
static void fleet_put_line(uint32_t n, const struct rank_set *ranks, double since_s, int depth,
                           const char *calls, int width, struct strbuf *out) {
    char line[FLEET_TEXT_LINE], since[32] = "";
    struct strbuf set;
    strbuf_init(&set, 0);
    rank_set_put(ranks, FLEET_TEXT_RANGES, &set);
    if (!isnan(since_s) && since_s >= 0.5)
        text_human_duration(since, sizeof since, since_s);
    snprintf(line, sizeof line, "%6u  %-*s %6s  %*s%s%s", n, FLEET_TEXT_RANKS, strbuf_str(&set), since,
             2 * depth, "", depth ? "> " : "", calls);
    strbuf_fini(&set);
    if (width > 0)
        line[text_fit(line, width)] = '\0';
    strbuf_addf(out, "%s\n", line);
}

/* Since when the ranks of a class have its stack, which belongs to the line of these ranks alone; NAN: unknown, or no
 * stack ends there. That they are the majority is added to the calls. */
static double fleet_put_class(const struct fleet *f, uint32_t class_number, struct strbuf *calls) {
    if (class_number == STACK_CLASSES_NONE)
        return NAN;
    if (f->classes[class_number].is_majority && f->stacks.n_classes > 1)
        strbuf_adds(calls, "  (majority)");
    return fleet_age_s(f, f->classes[class_number].since);
}

/* The ranks whose stack ends in a node from which others go on. */
static void fleet_put_here(const struct fleet *f, uint32_t node, const char *what, int depth, int width,
                           struct strbuf *out) {
    const struct stack_node *s = &f->stacks.nodes[node];
    struct rank_set ranks = {.n = 0};
    struct strbuf calls;
    strbuf_init(&calls, FLEET_TEXT_LINE);
    strbuf_adds(&calls, what);
    double since = fleet_put_class(f, s->class_number, &calls);
    if (stack_classes_ranks(&f->stacks, node, true, &ranks) == 0)
        fleet_put_line(s->n_here, &ranks, since, depth, strbuf_str(&calls), width, out);
    rank_set_fini(&ranks);
    strbuf_fini(&calls);
}

/* The branches below the root. */
static void fleet_put_branches(const struct fleet *f, int width, struct strbuf *out) {
    const struct stack_classes *c = &f->stacks;
    struct strbuf calls;
    /* how many lines are above a node, which is not its depth */
    int depth = 0;
    uint32_t above[STACK_CLASSES_DEPTH + 2];
    strbuf_init(&calls, FLEET_TEXT_LINE);
    for (uint32_t i = stack_classes_walk(c, STACK_CLASSES_ROOT, false); i != STACK_CLASSES_NONE;) {
        struct rank_set ranks = {.n = 0};
        uint32_t end = stack_classes_line_end(c, i);
        const struct stack_node *s = &c->nodes[end];
        bool is_leaf = s->child == STACK_CLASSES_NONE;
        while (depth > 0 && above[depth - 1] != c->nodes[i].parent)
            depth--;
        strbuf_clear(&calls);
        fleet_put_calls(c, i, end, &calls);
        double since = is_leaf ? fleet_put_class(f, s->class_number, &calls) : NAN;
        if (stack_classes_ranks(c, end, false, &ranks) == 0)
            fleet_put_line(s->n, &ranks, since, depth, strbuf_str(&calls), width, out);
        rank_set_fini(&ranks);
        above[depth++] = end;
        if (!is_leaf && s->n_here > 0)
            fleet_put_here(f, end, "(here)", depth, width, out);
        i = stack_classes_walk(c, end, false);
    }
    if (c->nodes[STACK_CLASSES_ROOT].n_here > 0)
        fleet_put_here(f, STACK_CLASSES_ROOT, "(no stack)", 0, width, out);
    strbuf_fini(&calls);
}

/* A line of the ranks in that state, without a stack: of the host, if it is silent, or of those that answer. */
static void fleet_put_other(const struct fleet *f, enum fleet_state state, uint32_t silent, int width,
                            struct strbuf *out) {
    struct rank_set ranks = {.n = 0};
    char what[512];
    const char *note = NULL;
    double since = NAN;
    uint32_t n = 0;
    for (size_t i = 0; i < f->n_ranks; i++) {
        const struct fleet_rank *r = &f->ranks[i];
        if (r->class_number != STACK_CLASSES_NONE || r->state != state ||
            (r->is_silent ? r->node : FLEET_TEXT_ANSWER) != silent)
            continue;
        rank_set_add(&ranks, r->rank, r->rank);
        /* nobody has seen since when it does what it does now */
        if (!r->is_silent)
            since = r->since > since || isnan(since) ? r->since : since;
        note = note ? note : r->note;
        n++;
    }
    if (silent != FLEET_TEXT_ANSWER && note)
        snprintf(what, sizeof what, "(%s)", note);
    else
        snprintf(what, sizeof what, "(%s%s%s)", fleet_state_word(state), note ? ": " : "", note ? note : "");
    if (n > 0)
        fleet_put_line(n, &ranks, fleet_age_s(f, since), 0, what, width, out);
    rank_set_fini(&ranks);
}

/* Ranks without a stack, by what is known of them: they are a class of their own, never left out. Those of a host
 * without news are a line for each host. */
static void fleet_put_others(const struct fleet *f, int width, struct strbuf *out) {
    bool *silent = calloc(f->n_nodes + 1, sizeof *silent);
    for (int state = 0; state < FLEET_STATE_COUNT; state++)
        fleet_put_other(f, (enum fleet_state)state, FLEET_TEXT_ANSWER, width, out);
    for (size_t i = 0; silent && i < f->n_ranks; i++)
        silent[f->ranks[i].node] |= f->ranks[i].is_silent;
    for (uint32_t i = 0; silent && i < f->n_nodes; i++)
        if (silent[i])
            fleet_put_other(f, FLEET_UNKNOWN, i, width, out);
    free(silent);
}

void fleet_put_tree(const struct fleet *f, int width, struct strbuf *out) {
    char at[32] = "";
    struct tm tm;
    time_t taken = isnan(f->taken_at) ? 0 : (time_t)f->taken_at;
    if (taken && localtime_r(&taken, &tm))
        strftime(at, sizeof at, ", at %H:%M:%S", &tm);
    strbuf_addf(out, "job %s: %zu of %d ranks, %llu samples%s\n", f->job, (size_t)rank_set_count(&f->present),
                f->world ? (int)f->world : (int)rank_set_count(&f->present), (unsigned long long)f->round,
                at);
    strbuf_addf(out, "%6s  %-*s %6s  %s\n", "N", FLEET_TEXT_RANKS, "RANKS", "SINCE",
                "CALLS (outermost first; lines of the job's own code)");
    if (f->stacks.n_nodes > 0)
        fleet_put_branches(f, width, out);
    fleet_put_others(f, width, out);
    if (f->note)
        strbuf_addf(out, "%s\n", f->note);
}

int fleet_count_stacks(const struct fleet *f, struct stack_counts *counts) {
    struct model_snapshot s = {.timestamp = f->taken_at, .threads = NULL};
    char name[32];
    arena_init(&s.arena, FLEET_BYTES);
    s.threads = arena_calloc(&s.arena, f->n_ranks + 1, sizeof *s.threads);
    for (size_t i = 0; s.threads && i < f->n_ranks; i++) {
        const struct fleet_rank *r = &f->ranks[i];
        if (r->class_number == STACK_CLASSES_NONE)
            continue;
        struct model_thread *t = &s.threads[s.n_threads];
        *t = (struct model_thread){
            .tid = r->rank, .state = r->letter, .on_cpu = MODEL_UNKNOWN, .has_python = true};
        t->frames = arena_calloc(&s.arena, r->stack->n_frames + 1, sizeof *t->frames);
        if (!t->frames)
            break;
        for (size_t k = 0; k < r->stack->n_frames; k++) {
            t->frames[k] = r->stack->frames[k];
            if (t->frames[k].file && path_is_library(t->frames[k].file))
                t->frames[k].line = 0;
        }
        snprintf(name, sizeof name, "rank %d", (int)r->rank);
        t->frames[r->stack->n_frames] =
            (struct model_frame){.func = arena_strdup(&s.arena, name), .kind = MODEL_FRAME_NATIVE};
        t->n_frames = r->stack->n_frames + 1;
        s.n_threads++;
    }
    int rc = s.arena.failed || !s.threads ? -1 : stack_counts_add_snapshot(counts, &s);
    arena_fini(&s.arena);
    return rc;
}
