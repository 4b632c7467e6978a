/* SPDX-License-Identifier: Apache-2.0 */
/* rank_text: see rank_text.h. */
#include "tui/view/rank_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define RANK_TEXT_FEW 4    /* ranks of a state that are listed */
#define RANK_TEXT_RANGES 6 /* of them */

const struct rank_text_sign rank_text_signs[FLEET_STATE_COUNT + 1] = {
    [FLEET_COMPUTES] = {'.', ROLE_STATE_RUN, "computes", 0},
    [FLEET_COLLECTIVE] = {'c', ROLE_STATE_SLEEP, "collective", 1},
    [FLEET_WAITS] = {'w', ROLE_STATE_SLEEP, "waits", 2},
    [FLEET_GPU] = {'s', ROLE_STATE_SLEEP, "gpu", 3},
    [FLEET_LOADER] = {'d', ROLE_GIL_WAITING, "loader", 4},
    [FLEET_GC] = {'g', ROLE_GIL_WAITING, "gc", 5},
    [FLEET_CHECKPOINT] = {'k', ROLE_GIL_WAITING, "checkpoint", 6},
    [FLEET_UNKNOWN] = {'?', ROLE_CONN_WAIT, "no news", 7},
    [FLEET_STOPPED] = {'T', ROLE_STATE_STOP, "stopped", 8},
    [FLEET_MISSING] = {'-', ROLE_CONN_LOST, "missing", 9},
    [FLEET_GONE] = {'x', ROLE_CONN_LOST, "ended", 10},
    [FLEET_STATE_COUNT] = {'!', ROLE_CONN_LOST, "awaited", 11},
};

const struct rank_text_sign *rank_text_sign(const struct job_shot_rank *r) {
    return &rank_text_signs[r->is_awaited ? FLEET_STATE_COUNT : r->state];
}

int rank_text_badness(const struct job_shot *f, const struct job_shot_rank *r) {
    if (r->is_awaited)
        return 5;
    switch ((int)r->state) {
    case FLEET_GONE:
    case FLEET_MISSING:
        return 4;
    case FLEET_STOPPED:
        return 3;
    case FLEET_UNKNOWN:
        return 2;
    default:
        break;
    }
    for (size_t i = 0; i < f->n_verdicts; i++)
        if (rank_set_has(&f->verdicts[i].ranks, r->rank))
            return 1;
    return r->is_late;
}

const char *rank_text_state(const struct job_shot_rank *r) {
    return r->what && *r->what ? r->what : rank_text_signs[r->state].word;
}

static void rank_text_put_place(const struct stack_node *n, struct strbuf *out) {
    const char *slash = strrchr(n->file, '/');
    strbuf_adds(out, slash && slash[1] ? slash + 1 : n->file);
    if (n->line > 0)
        strbuf_addf(out, ":%d", n->line);
}

void rank_text_put_call(const struct stack_node *n, struct strbuf *out) {
    strbuf_adds(out, *n->func ? n->func : "?");
    if (!n->own || !*n->file)
        return;
    strbuf_addc(out, ' ');
    rank_text_put_place(n, out);
}

/* A function that only calls another one. */
static bool rank_text_passes_on(const struct stack_node *n) {
    const char *dot = strrchr(n->func, '.'), *name = dot ? dot + 1 : n->func;
    return *name == '_' || strcmp(name, "wrapper") == 0 || strcmp(name, "inner") == 0;
}

uint32_t rank_text_called(const struct stack_classes *c, uint32_t node) {
    uint32_t own = stack_classes_own(c, node), called = node;
    for (uint32_t at = node; at != own && at != STACK_CLASSES_ROOT; at = c->nodes[at].parent)
        if (!rank_text_passes_on(&c->nodes[at]))
            called = at;
    return called;
}

void rank_text_put_where(const struct job_shot *f, const struct job_shot_rank *r, struct strbuf *out) {
    const struct stack_classes *c = &f->stacks;
    if (r->leaf == STACK_CLASSES_ROOT || r->leaf >= c->n_nodes)
        return;
    const struct stack_node *own = &c->nodes[stack_classes_own(c, r->leaf)],
                            *called = &c->nodes[rank_text_called(c, r->leaf)];
    if (called == own) {
        rank_text_put_call(own, out);
        return;
    }
    strbuf_adds(out, *called->func ? called->func : "?");
    strbuf_adds(out, " < ");
    rank_text_put_place(own, out);
}

/* ---- how many are in which state ---- */

struct rank_text_count {
    int32_t n;
    struct rank_set ranks; /* while they are few */
};

static void rank_text_put_count(const struct rank_text_count *c, int state, size_t n_ranks,
                                struct strbuf *out) {
    strbuf_addf(out, "%s%" PRId32 " %c ", out->len ? "  " : "", c->n, rank_text_signs[state].sign);
    if (c->n <= RANK_TEXT_FEW && 2 * (size_t)c->n < n_ranks && rank_text_signs[state].weight > 0)
        rank_set_put(&c->ranks, RANK_TEXT_RANGES, out);
    else
        strbuf_adds(out, rank_text_signs[state].word);
}

void rank_text_put_states(const struct job_shot *f, struct strbuf *out) {
    struct rank_text_count counts[FLEET_STATE_COUNT + 1] = {{0}};
    for (size_t i = 0; i < f->n_ranks; i++) {
        const struct job_shot_rank *r = &f->ranks[i];
        struct rank_text_count *c = &counts[r->is_awaited ? FLEET_STATE_COUNT : r->state];
        if (c->n++ < RANK_TEXT_FEW) /* without memory there is no text */
            rank_set_add(&c->ranks, r->rank, r->rank);
    }
    for (;;) {
        int most = -1;
        for (int i = 0; i <= FLEET_STATE_COUNT; i++)
            if (counts[i].n > 0 && (most < 0 || counts[i].n > counts[most].n))
                most = i;
        if (most < 0)
            break;
        rank_text_put_count(&counts[most], most, f->n_ranks, out);
        counts[most].n = 0;
    }
    for (int i = 0; i <= FLEET_STATE_COUNT; i++)
        rank_set_fini(&counts[i].ranks);
}

/* ---- hosts ---- */

void rank_text_put_silent(const struct job_shot *f, size_t from, bool with_reasons, struct strbuf *out) {
    size_t len = out->len;
    for (size_t i = from; i < f->n_hosts; i++) {
        const struct job_shot_host *h = &f->hosts[i];
        if (!h->silent)
            continue;
        if (out->len > len)
            strbuf_adds(out, with_reasons ? "; " : ", ");
        strbuf_adds(out, *h->name ? h->name : "this host");
        if (with_reasons)
            strbuf_addf(out, " (%s)", h->silent);
    }
}

/* ---- numbers ---- */

void rank_text_since(double seconds, char *buf, size_t cap) {
    static const struct {
        double seconds;
        char unit;
    } units[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}};
    buf[0] = '\0';
    for (size_t i = 0; !isnan(seconds) && i < sizeof units / sizeof units[0]; i++)
        if (seconds >= units[i].seconds) {
            double n = seconds / units[i].seconds;
            snprintf(buf, cap, "%.0f%c", floor(n < 999 ? n : 999), units[i].unit);
            return;
        }
}

void rank_text_bytes(int64_t bytes, char *buf, size_t cap) {
    double mb = (double)bytes / (1 << 20);
    if (bytes < 0)
        snprintf(buf, cap, "-");
    else if (mb < 999.5)
        snprintf(buf, cap, "%.0fM", mb);
    else if (mb < 99.95 * 1024)
        snprintf(buf, cap, "%.1fG", mb / 1024);
    else if (mb < 9999.5 * 1024)
        snprintf(buf, cap, "%.0fG", mb / 1024);
    else
        snprintf(buf, cap, "%.0fT", fmin(mb / 1024 / 1024, 9999));
}
