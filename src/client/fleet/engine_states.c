/* SPDX-License-Identifier: Apache-2.0 */
/* engine_states: see engine_states.h. */
#include "client/fleet/engine_states.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/model.h"

#define STATES_MAX ((size_t)32768)
#define STATES_GROUPS_MAX ((size_t)1 << 19)
#define STATES_TEXT_BYTES ((size_t)128 << 20)
#define STATES_CPU_PCT 5.0 /* of a core: a rank above that moves */

void engine_states_init(struct engine_states *s) {
    *s = (struct engine_states){.newest = -INFINITY};
    arena_init(&s->texts, STATES_TEXT_BYTES);
}

void engine_states_fini(struct engine_states *s) {
    arena_fini(&s->texts);
    free(s->items);
    free(s->groups);
    free(s->states);
    free(s->counters);
    free(s->first_state);
    free(s->first_counter);
    free(s->seen_s);
    *s = (struct engine_states){.newest = -INFINITY};
}

int engine_states_add(struct engine_states *s, uint32_t host, double ts, const struct report_state *row) {
    if (s->n == STATES_MAX || grow_array(&s->items, sizeof *s->items, s->n + 1, &s->cap) != 0)
        return -1;
    s->items[s->n++] = (struct engine_state){.host = host, .ts = ts, .row = *row};
    s->newest = fmax(s->newest, ts);
    return 0;
}

int engine_states_add_group(struct engine_states *s, uint32_t host, double ts,
                            const struct report_group *row) {
    if (s->n_groups == STATES_GROUPS_MAX ||
        grow_array(&s->groups, sizeof *s->groups, s->n_groups + 1, &s->cap_groups) != 0)
        return -1;
    s->groups[s->n_groups++] = (struct engine_group){.host = host, .ts = ts, .row = *row};
    return 0;
}

static int states_compare(const void *a, const void *b) {
    const struct engine_state *x = a, *y = b;
    if (x->host != y->host)
        return x->host < y->host ? -1 : 1;
    return (x->row.rank > y->row.rank) - (x->row.rank < y->row.rank);
}

static int states_compare_groups(const void *a, const void *b) {
    const struct engine_group *x = a, *y = b;
    if (x->host != y->host)
        return x->host < y->host ? -1 : 1;
    return (x->row.rank > y->row.rank) - (x->row.rank < y->row.rank);
}

/* ---- ranks without a reading ---- */

static void states_put_place(const struct model_frame *f, const char **func, const char **file,
                             int64_t *line) {
    *func = f->func;
    *file = f->file;
    *line = f->line;
}

/* A reading as far as a rank's row has one. */
static struct report_state states_of_rank(const struct report_rank *r, const struct fleet_stack *stack,
                                          double age_s) {
    struct report_state row;
    report_clear(&REPORT_TABLE_STATE, &row);
    char letter = r->state ? r->state[0] : '?';
    row.rank = r->rank;
    row.pid = r->pid;
    row.age_s = age_s;
    row.gone = letter == 'X' || letter == 'Z';
    row.state = r->state;
    row.traced = letter == 't';
    row.gc = r->gc;
    /* the time that it has run is not known; whether it runs is */
    bool runs = r->thread_cpu_pct > STATES_CPU_PCT || r->cpu_pct > STATES_CPU_PCT;
    row.thread_ns = row.cpu_ns = runs ? (int64_t)(r->taken_at * 1e9) : 1;
    row.has_stack = stack != NULL;
    row.stack = r->stack;
    if (!stack || !stack->n_frames)
        return row;
    const struct model_frame *own = &stack->frames[stack->own < stack->n_frames ? stack->own : 0];
    states_put_place(&stack->frames[0], &row.leaf_func, &row.leaf_file, &row.leaf_line);
    states_put_place(own, &row.own_func, &row.own_file, &row.own_line);
    states_put_place(own, &row.at_func, &row.at_file, &row.at_line);
    row.doing = stack->doing;
    row.phase = stack->phase;
    row.wait = MODEL_WAIT_UNKNOWN;
    if (r->wait_kind && strcmp(r->wait_kind, "collective") == 0)
        row.collective = r->wait_what;
    else if (stack->wait && strcmp(stack->wait, "ranks") == 0)
        row.collective = stack->frames[0].func;
    return row;
}

void engine_states_add_ranks(struct engine_states *s, const struct fleet_hosts *hosts, double from) {
    size_t n = s->n;
    qsort(s->items, n, sizeof *s->items, states_compare);
    for (size_t i = 0; i < hosts->n; i++) {
        const struct fleet_host *h = &hosts->items[i];
        double ahead_s = isnan(h->ahead_ms) ? 0 : h->ahead_ms / 1e3;
        for (size_t k = 0; k < h->n_ranks; k++) {
            const struct report_rank *r = &h->ranks[k];
            const struct engine_state key = {.host = (uint32_t)i, .row.rank = r->rank};
            if (h->is_silent || r->taken_at - ahead_s < from ||
                (n && bsearch(&key, s->items, n, sizeof *s->items, states_compare)))
                continue;
            const struct fleet_stack *stack =
                r->stack == REPORT_NO_INT ? NULL : fleet_hosts_find_stack(hosts, h->stacks, r->stack);
            double newest = s->newest;
            struct report_state row = states_of_rank(r, stack, 0);
            if (engine_states_add(s, (uint32_t)i, r->taken_at, &row) != 0)
                return;
            s->newest = newest;
        }
    }
}

/* ---- by host ---- */

/* Of the rank's newest reading. */
static bool states_is_of(const struct engine_states *s, const struct engine_group *g) {
    const struct engine_state key = {.host = g->host, .row.rank = g->row.rank};
    const struct engine_state *state =
        s->n ? bsearch(&key, s->items, s->n, sizeof *s->items, states_compare) : NULL;
    return state && state->ts == g->ts;
}

void engine_states_sort(struct engine_states *s, size_t n_hosts, double at, double at_s) {
    s->states = calloc(s->n + 1, sizeof *s->states);
    s->counters = calloc(s->n_groups + 1, sizeof *s->counters);
    s->first_state = calloc(n_hosts + 1, sizeof *s->first_state);
    s->first_counter = calloc(n_hosts + 1, sizeof *s->first_counter);
    s->seen_s = calloc(n_hosts + 1, sizeof *s->seen_s);
    if (!s->states || !s->counters || !s->first_state || !s->first_counter || !s->seen_s)
        return;
    qsort(s->items, s->n, sizeof *s->items, states_compare);
    qsort(s->groups, s->n_groups, sizeof *s->groups, states_compare_groups);
    size_t state = 0, group = 0, counter = 0;
    for (size_t i = 0; i < n_hosts; i++) {
        double newest = -INFINITY;
        s->first_state[i] = state;
        s->first_counter[i] = counter;
        for (; state < s->n && s->items[state].host == i; state++) {
            s->states[state] = s->items[state].row;
            newest = fmax(newest, s->items[state].ts);
        }
        for (; group < s->n_groups && s->groups[group].host == i; group++)
            if (states_is_of(s, &s->groups[group]))
                s->counters[counter++] = s->groups[group].row;
        s->seen_s[i] = isfinite(newest) ? at_s - fmax(0, at - newest) : at_s;
    }
    s->first_state[n_hosts] = state;
    s->first_counter[n_hosts] = counter;
    s->n_hosts = n_hosts;
}

void engine_states_get(const struct engine_states *s, size_t host, struct fleet_states *out) {
    if (host >= s->n_hosts)
        return;
    out->states = s->states + s->first_state[host];
    out->n = s->first_state[host + 1] - s->first_state[host];
    out->groups = s->counters + s->first_counter[host];
    out->n_groups = s->first_counter[host + 1] - s->first_counter[host];
    out->seen_s = s->seen_s[host];
}
