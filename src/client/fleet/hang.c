/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hang: see hang.h.
 *
 * Between a rank that waits and those it waits for stands a node for each group and count, because
 * who waits with a higher count waits for all that those with a lower one wait for. So there are as
 * many edges as members, not as pairs of them.
 */
#include "client/fleet/hang.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

#define HANG_NONE UINT32_MAX

struct hang_edge {
    uint32_t from, to;
    bool behind; /* `to` is a rank that is behind; otherwise it waits, or stands alike */
};

/* A member while its group is read. */
struct hang_place {
    size_t member;
    int64_t behind_from; /* those with so many completed wait for it */
    bool open;
};

struct hang_work {
    const enum hang_answer *answers;
    int32_t n_ranks;
    const struct hang_group *groups;
    size_t n_groups;
    struct hang *out;
    size_t *seen; /* by rank: the group that had it last, and one more */
    bool *open;   /* by rank: in some group */
    struct hang_place *places;
    size_t places_cap;
    struct hang_edge *edges; /* by `from`, after hang_order */
    size_t n_edges, edges_cap;
    size_t *first; /* of a node's edges */
    uint32_t n_nodes;
    uint32_t *component; /* by node */
    uint32_t n_components;
    struct hang_culprit *accused; /* by rank; HANG_OUT: nowhere */
};

/* ---- a group ---- */

/* How far it has come for certain: what it has not entered it has not completed. */
static int64_t hang_completed(const struct hang_member *m) {
    return m->completed < 0 || m->completed > m->enqueued ? m->enqueued : m->completed;
}

static int hang_add_edge(struct hang_work *w, uint32_t from, uint32_t to, bool behind) {
    if (grow_array(&w->edges, sizeof *w->edges, w->n_edges + 1, &w->edges_cap) != 0)
        return -1;
    w->edges[w->n_edges++] = (struct hang_edge){from, to, behind};
    return 0;
}

static int hang_compare_place(const void *a, const void *b) {
    const struct hang_place *x = a, *y = b;
    if (x->behind_from != y->behind_from)
        return x->behind_from < y->behind_from ? -1 : 1;
    return (x->member > y->member) - (x->member < y->member);
}

/* The members that count, by how far they have come. */
static size_t hang_read_members(struct hang_work *w, size_t g) {
    const struct hang_group *group = &w->groups[g];
    uint8_t *roles = w->out->roles + w->out->groups[g].first;
    size_t n = 0;
    for (size_t i = 0; i < group->n; i++) {
        const struct hang_member *m = &group->members[i];
        if (m->rank < 0 || m->rank >= w->n_ranks || w->seen[m->rank] == g + 1)
            continue;
        w->seen[m->rank] = g + 1;
        enum hang_answer answer = w->answers[m->rank];
        struct hang_place *p = &w->places[n];
        *p = (struct hang_place){.member = i, .behind_from = INT64_MIN};
        if (answer != HANG_ANSWERS)
            roles[i] = answer == HANG_GONE ? HANG_NO_PROCESS : HANG_NO_ANSWER;
        else if (!m->known || m->enqueued < 0)
            continue;
        else {
            p->open = hang_is_open(m);
            p->behind_from = hang_completed(m) + p->open;
            roles[i] = p->open ? HANG_ALIKE : HANG_DONE;
        }
        n++;
    }
    return n;
}

/* Of those that stand at the front, mark those that entered another operation than most. */
static void hang_find_mismatch(struct hang_work *w, size_t g, size_t n) {
    struct hang_group_state *s = &w->out->groups[g];
    const struct hang_member *members = w->groups[g].members;
    uint64_t most = 0;
    size_t votes = 0, count = 0, known = 0;
    /* the majority vote of Boyer and Moore, and then a count */
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < n; i++) {
            uint64_t what = members[w->places[i].member].what;
            if (!w->places[i].open || w->places[i].behind_from != s->front + 1 || !what)
                continue;
            known += pass;
            count += pass && what == most;
            if (!pass && votes == 0)
                most = what;
            if (!pass)
                votes = what == most ? votes + 1 : votes - 1;
        }
    if (count == known)
        return;
    if (2 * count <= known) {
        s->split = true;
        return;
    }
    for (size_t i = 0; i < n; i++) {
        struct hang_place *p = &w->places[i];
        uint64_t what = members[p->member].what;
        if (p->open && p->behind_from == s->front + 1 && what && what != most) {
            p->open = false;
            p->behind_from = s->front;
            w->out->roles[s->first + p->member] = HANG_MISMATCH;
        }
    }
}

/* What it has entered and does not finish keeps it from entering what comes after. */
static bool hang_is_inside(enum hang_role role) { return role == HANG_STUCK || role == HANG_MISMATCH; }

static void hang_accuse(struct hang_work *w, size_t g, const struct hang_place *p, int64_t number) {
    struct hang_group_state *s = &w->out->groups[g];
    uint8_t *role = &w->out->roles[s->first + p->member];
    int32_t rank = w->groups[g].members[p->member].rank;
    if (*role == HANG_DONE)
        *role = HANG_MISSING;
    else if (*role == HANG_ALIKE || *role == HANG_WAITS)
        *role = HANG_STUCK;
    s->behind++;
    struct hang_culprit *accused = &w->accused[rank];
    if (accused->role == HANG_OUT || (hang_is_inside(*role) && !hang_is_inside(accused->role)))
        *accused = (struct hang_culprit){.rank = rank, .role = *role, .group = g, .number = number};
}

/* Edges from those that wait with `count` completed, which are places[from] to places[to - 1];
 * places[behind] and those after it are not accused yet. */
static int hang_add_level(struct hang_work *w, size_t g, int64_t count, size_t from, size_t to, size_t n,
                          size_t *behind, uint32_t *below) {
    const struct hang_member *members = w->groups[g].members;
    uint8_t *roles = w->out->roles + w->out->groups[g].first;
    uint32_t node = w->n_nodes++;
    if (*below != HANG_NONE && hang_add_edge(w, node, *below, false) != 0)
        return -1;
    for (; *behind < n && w->places[*behind].behind_from <= count; (*behind)++) {
        const struct hang_place *p = &w->places[*behind];
        hang_accuse(w, g, p, count + 1);
        if (hang_add_edge(w, node, (uint32_t)members[p->member].rank, true) != 0)
            return -1;
    }
    for (size_t i = from; i < to; i++) {
        const struct hang_place *p = &w->places[i];
        uint32_t rank = (uint32_t)members[p->member].rank;
        if (!p->open)
            continue;
        if (*behind > 0)
            roles[p->member] = HANG_WAITS;
        if (hang_add_edge(w, rank, node, false) != 0 ||
            (*behind == 0 && hang_add_edge(w, node, rank, false) != 0))
            return -1;
    }
    /* where nobody is behind, those further on wait for these as for others that are behind */
    *below = *behind > 0 ? node : HANG_NONE;
    return 0;
}

static int hang_add_group(struct hang_work *w, size_t g) {
    struct hang_group_state *s = &w->out->groups[g];
    s->front = -1;
    if (w->groups[g].p2p)
        return 0;
    if (grow_array(&w->places, sizeof *w->places, w->groups[g].n + 1, &w->places_cap) != 0)
        return -1;
    size_t n = hang_read_members(w, g), behind = 0;
    for (size_t i = 0; i < n; i++) {
        const struct hang_place *p = &w->places[i];
        if (!p->open)
            continue;
        s->front = p->behind_from - 1 > s->front ? p->behind_from - 1 : s->front;
        s->open++;
        w->open[w->groups[g].members[p->member].rank] = true;
    }
    if (s->front < 0)
        return 0;
    hang_find_mismatch(w, g, n);
    qsort(w->places, n, sizeof *w->places, hang_compare_place);
    uint32_t below = HANG_NONE;
    for (size_t from = 0, to; from < n; from = to) {
        bool open = false;
        for (to = from; to < n && w->places[to].behind_from == w->places[from].behind_from; to++)
            open |= w->places[to].open;
        if (open && hang_add_level(w, g, w->places[from].behind_from - 1, from, to, n, &behind, &below) != 0)
            return -1;
    }
    return 0;
}

/* ---- the graph ---- */

/* Order the edges by where they begin. */
static int hang_order(struct hang_work *w) {
    struct hang_edge *ordered = calloc(w->n_edges + 1, sizeof *ordered);
    w->first = calloc((size_t)w->n_nodes + 2, sizeof *w->first);
    if (!ordered || !w->first) {
        free(ordered);
        return -1;
    }
    for (size_t i = 0; i < w->n_edges; i++)
        w->first[w->edges[i].from + 2]++;
    for (size_t i = 2; i < (size_t)w->n_nodes + 2; i++)
        w->first[i] += w->first[i - 1];
    for (size_t i = 0; i < w->n_edges; i++)
        ordered[w->first[w->edges[i].from + 1]++] = w->edges[i];
    free(w->edges);
    w->edges = ordered;
    return 0;
}

/* Strongly connected components (Tarjan 1972), without recursion: a job may be one long chain. */
struct hang_tarjan {
    uint32_t *number, *low; /* by node; number 0: not visited */
    uint32_t *stack, *path; /* nodes without a component; nodes from the root to here */
    size_t *next;           /* by node: the edge that is next */
    uint32_t n_stack, n_path, count;
};

static void hang_visit(const struct hang_work *w, struct hang_tarjan *t, uint32_t node) {
    t->number[node] = t->low[node] = ++t->count;
    t->next[node] = w->first[node];
    t->stack[t->n_stack++] = node;
    t->path[t->n_path++] = node;
}

static void hang_leave(struct hang_work *w, struct hang_tarjan *t, uint32_t node) {
    t->n_path--;
    if (t->n_path > 0) {
        uint32_t above = t->path[t->n_path - 1];
        t->low[above] = t->low[node] < t->low[above] ? t->low[node] : t->low[above];
    }
    if (t->low[node] != t->number[node])
        return;
    uint32_t member;
    do {
        member = t->stack[--t->n_stack];
        w->component[member] = w->n_components;
    } while (member != node);
    w->n_components++;
}

static void hang_walk(struct hang_work *w, struct hang_tarjan *t, uint32_t root) {
    hang_visit(w, t, root);
    while (t->n_path > 0) {
        uint32_t node = t->path[t->n_path - 1];
        if (t->next[node] == w->first[node + 1]) {
            hang_leave(w, t, node);
            continue;
        }
        uint32_t to = w->edges[t->next[node]++].to;
        if (!t->number[to])
            hang_visit(w, t, to);
        else if (w->component[to] == HANG_NONE && t->number[to] < t->low[node])
            t->low[node] = t->number[to];
    }
}

static int hang_find_components(struct hang_work *w) {
    size_t n = (size_t)w->n_nodes + 1;
    struct hang_tarjan t = {.number = calloc(n, sizeof *t.number),
                            .low = calloc(n, sizeof *t.low),
                            .stack = calloc(n, sizeof *t.stack),
                            .path = calloc(n, sizeof *t.path),
                            .next = calloc(n, sizeof *t.next)};
    w->component = malloc(n * sizeof *w->component);
    int rc = t.number && t.low && t.stack && t.path && t.next && w->component ? 0 : -1;
    if (rc == 0) {
        memset(w->component, 0xff, n * sizeof *w->component);
        for (uint32_t node = 0; node < w->n_nodes; node++)
            if (!t.number[node])
                hang_walk(w, &t, node);
    }
    free(t.number);
    free(t.low);
    free(t.stack);
    free(t.path);
    free(t.next);
    return rc;
}

/* ---- culprits ---- */

/* What is known of a component. */
struct hang_sink {
    bool leaves; /* somebody in it waits for others */
    bool behind; /* somebody in it is behind another of it */
    bool waits;  /* it has edges: somebody in it waits */
    int32_t ranks;
};

static bool hang_is_alike(const struct hang_sink *s) {
    return !s->leaves && s->waits && !s->behind && s->ranks > 1;
}

static void hang_mark_alike(struct hang_work *w, const struct hang_sink *sinks) {
    for (size_t g = 0; g < w->n_groups; g++) {
        struct hang_group_state *s = &w->out->groups[g];
        for (size_t i = 0; i < w->groups[g].n && s->open && !s->alike; i++) {
            const struct hang_member *m = &w->groups[g].members[i];
            s->alike = m->rank >= 0 && m->rank < w->n_ranks && hang_is_open(m) &&
                       hang_is_alike(&sinks[w->component[m->rank]]);
        }
        w->out->alike |= s->alike;
    }
}

static int hang_name_culprits(struct hang_work *w) {
    struct hang_sink *sinks = calloc((size_t)w->n_components + 1, sizeof *sinks);
    struct hang *out = w->out;
    out->culprits = calloc((size_t)w->n_ranks + 1, sizeof *out->culprits);
    if (!sinks || !out->culprits) {
        free(sinks);
        return -1;
    }
    for (size_t i = 0; i < w->n_edges; i++) {
        const struct hang_edge *edge = &w->edges[i];
        struct hang_sink *sink = &sinks[w->component[edge->from]];
        bool inside = w->component[edge->from] == w->component[edge->to];
        sink->waits = true;
        sink->leaves |= !inside;
        sink->behind |= inside && edge->behind;
    }
    for (int32_t rank = 0; rank < w->n_ranks; rank++)
        sinks[w->component[rank]].ranks++;
    for (int32_t rank = 0; rank < w->n_ranks; rank++) {
        const struct hang_sink *sink = &sinks[w->component[rank]];
        if (sink->leaves || hang_is_alike(sink) || w->accused[rank].role == HANG_OUT)
            continue;
        struct hang_culprit *culprit = &out->culprits[out->n_culprits++];
        *culprit = w->accused[rank];
        culprit->root = w->component[rank];
        culprit->deadlock = sink->behind;
    }
    hang_mark_alike(w, sinks);
    free(sinks);
    return 0;
}

static int hang_begin(struct hang_work *w) {
    struct hang *out = w->out;
    size_t n = (size_t)w->n_ranks + 1, members = 0;
    out->groups = calloc(w->n_groups + 1, sizeof *out->groups);
    w->seen = calloc(n, sizeof *w->seen);
    w->open = calloc(n, sizeof *w->open);
    w->accused = calloc(n, sizeof *w->accused);
    if (!out->groups || !w->seen || !w->open || !w->accused)
        return -1;
    for (size_t g = 0; g < w->n_groups; g++) {
        out->groups[g].first = members;
        members += w->groups[g].n;
    }
    out->roles = calloc(members + 1, sizeof *out->roles);
    w->n_nodes = (uint32_t)w->n_ranks;
    return out->roles ? 0 : -1;
}

int hang_find(const enum hang_answer *answers, int32_t n_ranks, const struct hang_group *groups, size_t n,
              struct hang *out) {
    struct hang_work w = {
        .answers = answers, .n_ranks = n_ranks, .groups = groups, .n_groups = n, .out = out};
    *out = (struct hang){.n_culprits = 0};
    int rc = hang_begin(&w);
    for (size_t g = 0; g < n && rc == 0; g++)
        rc = hang_add_group(&w, g);
    if (rc == 0)
        rc = hang_order(&w) != 0 || hang_find_components(&w) != 0 || hang_name_culprits(&w) != 0 ? -1 : 0;
    for (int32_t rank = 0; rank < n_ranks && rc == 0; rank++)
        out->n_open += w.open[rank];
    free(w.seen);
    free(w.open);
    free(w.accused);
    free(w.places);
    free(w.edges);
    free(w.first);
    free(w.component);
    if (rc != 0)
        hang_fini(out);
    return rc;
}

void hang_fini(struct hang *h) {
    free(h->culprits);
    free(h->groups);
    free(h->roles);
    *h = (struct hang){.n_culprits = 0};
}
