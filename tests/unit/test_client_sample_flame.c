/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree of calls: after random samples, through windows that slide, it is what adding up all samples anew gives; in cells
 * it loses no column and adds none; a node's number stays.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/samples/sample_filter.h"
#include "client/samples/sample_flame.h"
#include "flame/flame_layout.h"

#define N_FRAMES 12
#define MAX_STACKS 160
#define MAX_SAMPLES 60000
#define MAX_PATHS 1024
#define PATH 512

/* Two lines of `work`, two functions of a name, two modules that call each other, names that sort before others. */
static struct model_frame_def frames[N_FRAMES] = {
    {1, {MODEL_FRAME_PYTHON, "main", "/job/a.py", 1}},
    {2, {MODEL_FRAME_PYTHON, "work", "/job/a.py", 2}},
    {3, {MODEL_FRAME_PYTHON, "work", "/job/a.py", 3}},
    {4, {MODEL_FRAME_PYTHON, "fact", "/job/a.py", 5}},
    {5, {MODEL_FRAME_PYTHON, "fact", "/job/b.py", 5}},
    {6, {MODEL_FRAME_PYTHON, "leaf", "/job/b.py", 6}},
    {7, {MODEL_FRAME_PYTHON, "leaf", "/job/b.py", 7}},
    {8, {MODEL_FRAME_NATIVE, "Zebra", "/job/c.py", 1}},
    {9, {MODEL_FRAME_PYTHON, "ask", "/job/c.py", 2}},
    {10, {MODEL_FRAME_PYTHON, NULL, NULL, 0}},
    {11, {MODEL_FRAME_PYTHON, "訓練する", "/job/訓練.py", 9}},
    {12, {MODEL_FRAME_PYTHON, "main", "/job/c.py", 1}},
};

struct sample {
    int64_t second, tid;
    uint32_t stack;
    double us;
    bool on_cpu, gil;
};

/* All that was ever sampled, and what it was made of. */
struct world {
    struct model_stack_def stacks[MAX_STACKS];
    size_t n_stacks, n_sent;
    struct sample samples[MAX_SAMPLES];
    size_t n_samples, reset_at;
    double now_s;
    uint64_t random;
};

struct path {
    char text[PATH];
    struct flame_weight self, total;
};

struct paths {
    struct path items[MAX_PATHS];
    size_t n;
};

static uint32_t roll(struct world *w, uint32_t n) {
    w->random = w->random * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)(w->random >> 33) % n;
}

static struct world *world_new(uint64_t seed) {
    struct world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->random = seed;
    w->now_s = 100;
    return w;
}

/* A batch that comes `after_s` later: stacks that are new now and then, samples of four threads. */
static void step(struct world *w, struct sample_store *t, double after_s, size_t n) {
    static const double periods[] = {10000, 10416, 7333.25, 31250.5};
    struct model_sample samples[256];
    for (uint32_t more = roll(w, 4); more > 0 && w->n_stacks < MAX_STACKS; more--) {
        uint32_t id = (uint32_t)++w->n_stacks, parent = id == 1 ? 0 : roll(w, id);
        w->stacks[id - 1] = (struct model_stack_def){id, parent, 1 + roll(w, N_FRAMES)};
    }
    w->now_s += after_s;
    struct model_sample_batch b = {.epoch = 1, .period_us = periods[roll(w, 4)], .frames = frames};
    b.n_frames = w->n_sent ? 0 : N_FRAMES;
    b.stacks = w->stacks + w->n_sent;
    b.n_stacks = w->n_stacks - w->n_sent;
    w->n_sent = w->n_stacks;
    b.samples = samples;
    for (size_t i = 0; i < n; i++) {
        struct sample s = {
            (int64_t)floor(w->now_s), 7 + roll(w, 4), roll(w, (uint32_t)w->n_stacks + 1), b.period_us,
            roll(w, 3) > 0,           roll(w, 4) == 0};
        bool torn = roll(w, 20) == 0;
        samples[b.n_samples++] = (struct model_sample){.tid = s.tid,
                                                       .stack_id = s.stack,
                                                       .on_cpu = s.on_cpu,
                                                       .torn = torn,
                                                       .gil = s.gil ? MODEL_GIL_HOLDING : MODEL_GIL_NONE};
        assert_true(w->n_samples < MAX_SAMPLES);
        if (!torn)
            w->samples[w->n_samples++] = s;
    }
    assert_true(sample_store_add(t, &b, w->now_s));
}

/* ---- the same, the long way ---- */

static void key_of(const struct model_frame *f, enum flame_by by, char *buf, size_t cap) {
    const char *file = f->file ? f->file : "-", *func = f->func ? f->func : "-";
    if (by == FLAME_BY_MODULE)
        (void)snprintf(buf, cap, ";%s", file);
    else if (by == FLAME_BY_LINE)
        (void)snprintf(buf, cap, ";%s@%s:%d", func, file, f->line);
    else
        (void)snprintf(buf, cap, ";%s@%s", func, file);
}

static struct path *path_at(struct paths *p, const char *text) {
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->items[i].text, text) == 0)
            return &p->items[i];
    assert_true(p->n < MAX_PATHS);
    (void)snprintf(p->items[p->n].text, PATH, "%s", text);
    p->items[p->n].self = p->items[p->n].total = (struct flame_weight){0, 0};
    return &p->items[p->n++];
}

static void weight_add(struct flame_weight *w, struct flame_weight more) {
    w->ns += more.ns;
    w->samples += more.samples;
}

/* Frames of a stack, root first. */
static size_t frames_of(const struct world *w, uint32_t stack, const struct model_frame **out) {
    size_t n = 0;
    for (; stack; stack = w->stacks[stack - 1].parent_id)
        out[n++] = &frames[w->stacks[stack - 1].frame_id - 1].frame;
    for (size_t i = 0; i < n / 2; i++) {
        const struct model_frame *f = out[i];
        out[i] = out[n - 1 - i];
        out[n - 1 - i] = f;
    }
    return n;
}

static bool is_named(const void *name, const struct model_frame *f) {
    return f->func && strcmp(f->func, name) == 0;
}

static bool is_filtered(const struct flame_query *q, const struct model_frame **path, size_t n) {
    bool found = false;
    for (size_t i = 0; i < n; i++)
        found = found || (q->filter.matches && q->filter.matches(q->filter.arg, path[i]));
    return q->filter.matches && found == q->filter.negated;
}

/* The first frame of the module that alone is looked at; `n`: there is none. Frames have in the fold the number they have here. */
static size_t module_begins(const struct flame_query *q, const struct model_frame **path, size_t n) {
    const char *wanted = q->module ? frames[q->module - 1].frame.file : NULL;
    size_t first = 0;
    for (; q->module && first < n; first++)
        if (path[first]->file == wanted ||
            (path[first]->file && wanted && strcmp(path[first]->file, wanted) == 0))
            break;
    return first;
}

static void add_stack(const struct world *w, const struct flame_query *q, struct paths *p, uint32_t stack,
                      struct flame_weight weight) {
    const struct model_frame *path[MAX_STACKS];
    char text[PATH] = "", last[PATH] = "";
    size_t n = frames_of(w, stack, path), used = 0;
    size_t first = module_begins(q, path, n);
    if (!weight.samples || is_filtered(q, path, n) || (q->module && first == n))
        return;
    weight_add(&path_at(p, "")->total, weight);
    for (size_t i = first; i < n; i++) {
        char key[PATH];
        if (q->hides_native && path[i]->kind == MODEL_FRAME_NATIVE)
            continue;
        key_of(path[i], q->by, key, sizeof key);
        if (q->by == FLAME_BY_MODULE && strcmp(key, last) == 0)
            continue;
        (void)snprintf(last, sizeof last, "%s", key);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s", key);
        assert_true(used < sizeof text);
        weight_add(&path_at(p, text)->total, weight);
    }
    if (!*text) {
        (void)snprintf(text, sizeof text, ";(none)");
        weight_add(&path_at(p, text)->total, weight);
    }
    weight_add(&path_at(p, text)->self, weight);
}

static void add_up(const struct world *w, const struct flame_query *q, struct paths *p) {
    static const int64_t seconds[] = {[SAMPLE_STORE_10S] = 10, [SAMPLE_STORE_60S] = 60};
    struct flame_weight of[MAX_STACKS + 1] = {{0, 0}};
    int64_t now = (int64_t)floor(w->now_s);
    for (size_t i = w->reset_at; i < w->n_samples; i++) {
        const struct sample *s = &w->samples[i];
        if ((q->tid && q->tid != s->tid) || (q->time == FLAME_ON_CPU && !s->on_cpu) ||
            (q->time == FLAME_GIL_HOLDING && !s->gil) || (q->window && s->second <= now - seconds[q->window]))
            continue;
        weight_add(&of[s->stack], (struct flame_weight){llround(s->us * 1000), 1});
    }
    p->n = 0;
    for (uint32_t i = 0; i <= w->n_stacks; i++)
        add_stack(w, q, p, i, of[i]);
}

static void path_of(const struct flame *f, uint32_t node, enum flame_by by, char *buf, size_t cap) {
    char key[PATH] = ";(none)";
    buf[0] = '\0';
    if (node == FLAME_ROOT)
        return;
    path_of(f, flame_node(f, node)->parent, by, buf, cap);
    if (flame_frame(f, node))
        key_of(flame_frame(f, node), by, key, sizeof key);
    size_t used = strlen(buf);
    assert_true(used + strlen(key) < cap);
    (void)snprintf(buf + used, cap - used, "%s", key);
}

static bool same(struct flame_weight a, struct flame_weight b) {
    return a.ns == b.ns && a.samples == b.samples;
}

/* Every node has what its path has, every path has a node, and what is below a node adds up. */
static void check(const struct world *w, struct flame *f, const struct flame_query *q) {
    static struct paths p;
    size_t seen = 0;
    add_up(w, q, &p);
    for (uint32_t i = 0; i < flame_count(f); i++) {
        const struct flame_node *n = flame_node(f, i);
        char text[PATH];
        struct flame_weight sum = n->self;
        path_of(f, i, q->by, text, sizeof text);
        for (uint32_t c = n->child; c != FLAME_NO_NODE; c = flame_node(f, c)->next) {
            assert_int_equal(flame_node(f, c)->parent, i);
            weight_add(&sum, flame_node(f, c)->total);
        }
        assert_true(same(sum, n->total));
        if (!n->total.samples) {
            assert_int_equal(n->total.ns, 0);
            continue;
        }
        const struct path *want = path_at(&p, text);
        if (!same(want->total, n->total) || !same(want->self, n->self))
            fail_msg("%s: %lld ns, %lld samples; not %lld, %lld", text, (long long)n->total.ns,
                     (long long)n->total.samples, (long long)want->total.ns, (long long)want->total.samples);
        seen++;
    }
    assert_int_equal(seen, p.n);
}

static void name_module(const struct model_frame *f, char *buf, size_t cap) {
    (void)snprintf(buf, cap, "module %s", f->file ? f->file : "-");
}

/* The samples cut out for an export are the same: each path has what it has alone. */
static void check_cut(const struct world *w, const struct sample_store *t, const struct flame_query *q) {
    static struct paths want, got;
    const struct model_frame *path[MAX_STACKS];
    struct sample_filter_query sample_filter_query = {.samples = *q, .name_module = name_module};
    struct sample_filter cut;
    uint64_t samples = 0;
    assert_int_equal(sample_filter_make(&cut, t, &sample_filter_query), 0);
    assert_null(cut.runs);
    add_up(w, q, &want);
    got.n = 0;
    for (size_t i = 0; i < stack_counts_count(cut.counts); i++) {
        const struct stack_counts_entry *e = stack_counts_get(cut.counts, i);
        char text[PATH] = "";
        size_t n = stack_counts_path(cut.counts, e->stack, path, MAX_STACKS), used = 0;
        for (size_t k = 0; k < n; k++) {
            char key[PATH];
            key_of(path[k], q->by, key, sizeof key);
            used += (size_t)snprintf(text + used, sizeof text - used, "%s", key);
            assert_true(q->by != FLAME_BY_MODULE || strncmp(path[k]->func, "module ", 7) == 0);
        }
        weight_add(&path_at(&got, n ? text : ";(none)")->self,
                   (struct flame_weight){llround(e->sums.us * 1000), (int64_t)e->sums.samples});
        assert_true(e->sums.samples > 0 && (!q->tid || e->tid == q->tid));
        samples += e->sums.samples;
    }
    for (size_t i = 0; i < want.n; i++) {
        struct flame_weight a = want.items[i].self, b = {0, 0};
        if (a.samples)
            b = path_at(&got, want.items[i].text)->self;
        assert_int_equal(a.samples, b.samples);
        assert_true(llabs(a.ns - b.ns) <= 1000);
    }
    assert_int_equal(samples, path_at(&want, "")->total.samples);
    assert_int_equal(samples, stack_counts_get_totals(cut.counts)->samples);
    sample_filter_fini(&cut);
}

/* ---- tests ---- */

static struct flame_query some_query(struct world *w) {
    struct flame_query q = {.window = (enum sample_store_window)roll(w, SAMPLE_STORE_MARK),
                            .by = (enum flame_by)roll(w, FLAME_BYS),
                            .time = (enum flame_time)roll(w, FLAME_TIMES),
                            .tid = roll(w, 3) ? 0 : 7 + roll(w, 5)};
    if (roll(w, 3) == 0)
        q.filter = (struct flame_filter){is_named, roll(w, 2) ? "work" : "leaf", roll(w, 2) == 0, 0};
    q.module = roll(w, 3) == 0 ? 1 + roll(w, N_FRAMES) : 0;
    q.hides_native = roll(w, 2);
    return q;
}

static void test_random_samples(void **state) {
    static const double gaps[] = {0, 0.05, 0.25, 0.25, 0.9, 1.3, 3};
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct world *w = world_new(seed);
        struct sample_store *t = sample_store_new();
        struct sample_flame *follower = sample_flame_new();
        struct flame *f = sample_flame_tree(follower);
        struct flame_query q = {0};
        for (int i = 0; i < 400; i++) {
            bool is_long = roll(w, 60) == 0;
            step(w, t, is_long ? 5 + roll(w, 90) : gaps[roll(w, 7)], roll(w, 24));
            if (roll(w, 25) == 0)
                q = some_query(w);
            if (roll(w, 150) == 0) {
                sample_store_reset(t, w->now_s);
                w->reset_at = w->n_samples;
            }
            if (roll(w, 3))
                continue;
            assert_int_equal(sample_flame_update(follower, t, &q), 0);
            check(w, f, &q);
            if (roll(w, 4) == 0)
                check_cut(w, t, &q);
        }
        sample_flame_free(follower);
        sample_store_free(t);
        free(w);
    }
}

/* What is held stands still, whatever comes and goes; let go, it is the newest. */
static void test_held(void **state) {
    struct world *w = world_new(77), *then;
    struct sample_store *t = sample_store_new();
    struct sample_flame *follower = sample_flame_new();
    struct flame *f = sample_flame_tree(follower);
    struct flame_query q = {.window = SAMPLE_STORE_10S};
    (void)state;
    for (int i = 0; i < 60; i++)
        step(w, t, 0.25, 20);
    then = malloc(sizeof *then);
    assert_non_null(then);
    memcpy(then, w, sizeof *w);
    assert_int_equal(sample_store_freeze(t, true), 0);
    for (int i = 0; i < 90; i++) {
        step(w, t, 0.25, 20);
        q.window = (enum sample_store_window)(i % SAMPLE_STORE_MARK);
        q.by = (enum flame_by)(i / 7 % FLAME_BYS);
        assert_int_equal(sample_flame_update(follower, t, &q), 0);
        check(then, f, &q);
    }
    assert_int_equal(sample_store_freeze(t, false), 0);
    assert_int_equal(sample_flame_update(follower, t, &q), 0);
    check(w, f, &q);
    sample_flame_free(follower);
    sample_store_free(t);
    free(then);
    free(w);
}

/* More changes than are kept: then all is counted again. And a tree that nobody looked at for long. */
static void test_a_late_reader(void **state) {
    struct world *w = world_new(5);
    struct sample_store *t = sample_store_new();
    struct sample_flame *follower = sample_flame_new();
    struct flame *f = sample_flame_tree(follower);
    struct flame_query q = {.window = SAMPLE_STORE_60S, .time = FLAME_ALL_TIME};
    (void)state;
    step(w, t, 0.1, 100);
    assert_int_equal(sample_flame_update(follower, t, &q), 0);
    uint64_t before = sample_store_get_mark(t).changes, identity = flame_identity(f);
    while (sample_store_get_mark(t).changes - before <= 2 * SAMPLE_STORE_CHANGES) {
        step(w, t, 0.5, 250);
        if (w->n_samples > MAX_SAMPLES - 1000) { /* what has left every window need not be remembered */
            size_t gone = MAX_SAMPLES / 4;
            assert_true(w->samples[gone].second < (int64_t)w->now_s - 61);
            memmove(w->samples, w->samples + gone, (w->n_samples - gone) * sizeof *w->samples);
            w->n_samples -= gone;
        }
    }
    assert_int_equal(sample_flame_update(follower, t, &q), 0);
    assert_int_equal(flame_identity(f), identity);
    check(w, f, &q);
    sample_flame_free(follower);
    sample_store_free(t);
    free(w);
}

/* A node keeps its number and its place among its siblings, also when it is empty for a while. */
static void test_numbers_stay(void **state) {
    struct world *w = world_new(12);
    struct sample_store *t = sample_store_new();
    struct sample_flame *follower = sample_flame_new();
    struct flame *f = sample_flame_tree(follower);
    struct flame_query q = {.time = FLAME_ALL_TIME};
    static char paths[MAX_PATHS][PATH];
    size_t known = 0;
    (void)state;
    for (int i = 0; i < 200; i++) {
        step(w, t, roll(w, 40) == 0 ? 70 : 0.3, 10);
        q.window = (enum sample_store_window)(i % SAMPLE_STORE_MARK);
        q.tid = i % 5 == 0 ? 8 : 0;
        assert_int_equal(sample_flame_update(follower, t, &q), 0);
        for (uint32_t k = 0; k < flame_count(f); k++) {
            char text[PATH];
            path_of(f, k, q.by, text, sizeof text);
            if (k < known)
                assert_string_equal(text, paths[k]);
            (void)snprintf(paths[k], PATH, "%s", text);
            const char *before = NULL;
            for (uint32_t c = flame_first_child(f, k); c != FLAME_NO_NODE; c = flame_node(f, c)->next) {
                const struct model_frame *frame = flame_frame(f, c);
                const char *name = frame && frame->func ? frame->func : "";
                if (before)
                    assert_true(strcmp(before, name) <= 0);
                before = name;
            }
        }
        known = flame_count(f);
    }
    uint64_t identity = flame_identity(f);
    q.by = FLAME_BY_LINE;
    assert_int_equal(sample_flame_update(follower, t, &q), 0);
    assert_int_not_equal(flame_identity(f), identity);
    sample_flame_free(follower);
    sample_store_free(t);
    free(w);
}

/* Another tally at the same place in memory is another one all the same. */
static void test_another_tally(void **state) {
    struct world *w = world_new(3), *other = world_new(4);
    struct sample_store *t = sample_store_new();
    struct sample_flame *follower = sample_flame_new();
    struct flame *f = sample_flame_tree(follower);
    struct flame_query q = {.time = FLAME_ALL_TIME};
    (void)state;
    for (int i = 0; i < 20; i++)
        step(w, t, 0.2, 20);
    assert_int_equal(sample_flame_update(follower, t, &q), 0);
    check(w, f, &q);
    sample_store_free(t);
    t = sample_store_new();
    for (int i = 0; i < 20; i++)
        step(other, t, 0.2, 20);
    assert_int_equal(sample_flame_update(follower, t, &q), 0);
    check(other, f, &q);
    sample_flame_free(follower);
    sample_store_free(t);
    free(w);
    free(other);
}

/* ---- cells ---- */

static const struct flame_cell *cell_of(const struct flame_layout *l, uint32_t node) {
    for (size_t i = 0; i < l->n; i++)
        if (l->cells[i].node == node)
            return &l->cells[i];
    return NULL;
}

/* Callees lie side by side within their caller, each as wide as it should be but for less than a column, none of them is
 * lost, and where the caller has no time of its own they fill it. */
static void check_callees(struct flame *f, const struct flame_layout *l, const struct flame_cell *caller) {
    const struct flame_node *n = flame_node(f, caller->node);
    double whole = (double)flame_amount(f, flame_node(f, l->view.zoom)->total);
    int col = caller->col, used = 0;
    uint32_t shown = 0, hidden = 0, wanted = 0;
    for (size_t i = 0; i < l->n; i++) {
        const struct flame_cell *c = &l->cells[i];
        if (c->parent != caller->node || c->row != caller->row + 1)
            continue;
        assert_true(c->width > 0 && c->col == col);
        col += c->width;
        used += c->width;
        if (c->node == FLAME_NO_NODE) {
            hidden += c->n;
            continue;
        }
        shown++;
        assert_true(fabs(c->width - (double)flame_amount(f, c->weight) * l->view.cols / whole) < 1);
    }
    for (uint32_t c = n->child; c != FLAME_NO_NODE; c = flame_node(f, c)->next)
        wanted += flame_amount(f, flame_node(f, c)->total) > 0;
    assert_true(used <= caller->width);
    assert_true(shown + hidden == wanted || (shown + hidden < wanted && used == caller->width));
    if (flame_amount(f, n->self) == 0 && wanted)
        assert_int_equal(used, caller->width);
}

static void test_cells(void **state) {
    (void)state;
    for (uint64_t seed = 20; seed < 40; seed++) {
        struct world *w = world_new(seed);
        struct sample_store *t = sample_store_new();
        struct sample_flame *follower = sample_flame_new();
        struct flame *f = sample_flame_tree(follower);
        struct flame_layout l = {0};
        struct flame_query q = {.time = FLAME_ALL_TIME};
        for (int i = 0; i < 60; i++)
            step(w, t, 0.25, 30);
        assert_int_equal(sample_flame_update(follower, t, &q), 0);
        for (int i = 0; i < 60; i++) {
            uint32_t zoom = roll(w, 3) ? FLAME_ROOT : roll(w, (uint32_t)flame_count(f));
            struct flame_view v = {
                .zoom = zoom, .cols = 1 + (int)roll(w, 220), .rows = 400, .permille = (int)roll(w, 2) * 30};
            assert_int_equal(flame_layout_build(&l, f, &v), 0);
            assert_false(l.has_more);
            for (size_t k = 0; k < l.n; k++)
                if (l.cells[k].node != FLAME_NO_NODE && flame_is_above(f, zoom, l.cells[k].node))
                    check_callees(f, &l, &l.cells[k]);
            const struct flame_cell *zoomed = cell_of(&l, zoom);
            assert_true(zoomed && zoomed->col == 0 && zoomed->width == v.cols);
            assert_int_equal(zoomed->row, flame_node(f, zoom)->depth);
        }
        flame_layout_fini(&l);
        sample_flame_free(follower);
        sample_store_free(t);
        free(w);
    }
}

/* Part of the rows is the same as all of them, cut; every place and every node is found again. */
static void test_scrolled_cells(void **state) {
    struct world *w = world_new(50);
    struct sample_store *t = sample_store_new();
    struct sample_flame *follower = sample_flame_new();
    struct flame *f = sample_flame_tree(follower);
    struct flame_layout all = {0}, part = {0};
    struct flame_query q = {.time = FLAME_ALL_TIME};
    (void)state;
    for (int i = 0; i < 60; i++)
        step(w, t, 0.25, 30);
    assert_int_equal(sample_flame_update(follower, t, &q), 0);
    assert_int_equal(flame_layout_build(&all, f, &(struct flame_view){.cols = 60, .rows = 400}), 0);
    assert_int_equal(flame_layout_build(&part, f, &(struct flame_view){.cols = 60, .top = 2, .rows = 2}), 0);
    size_t k = 0;
    for (size_t i = 0; i < all.n; i++) {
        const struct flame_cell *c = &all.cells[i];
        assert_ptr_equal(flame_layout_at(&all, c->row, c->col + c->width - 1), c);
        if (c->node != FLAME_NO_NODE)
            assert_ptr_equal(flame_layout_find(&all, f, c->node), c);
        if (c->row < 2 || c->row > 3)
            continue;
        assert_true(k < part.n && part.cells[k].node == c->node && part.cells[k].col == c->col);
        assert_true(part.cells[k].row == c->row - 2 && part.cells[k].width == c->width);
        k++;
    }
    assert_int_equal(k, part.n);
    assert_true(part.has_more);
    assert_null(flame_layout_at(&all, 399, 0));
    /* A node that has no cell of its own is in one that is shared. */
    assert_int_equal(flame_layout_build(&all, f, &(struct flame_view){.cols = 6, .rows = 400}), 0);
    size_t shared = 0;
    for (uint32_t i = 0; i < flame_count(f); i++) {
        const struct flame_cell *c = flame_layout_find(&all, f, i);
        if (!c || c->node == i)
            continue;
        assert_int_equal(c->node, FLAME_NO_NODE);
        assert_true(flame_is_above(f, c->parent, i) && c->parent != i);
        shared++;
    }
    assert_true(shared > 0);
    flame_layout_fini(&all);
    flame_layout_fini(&part);
    sample_flame_free(follower);
    sample_store_free(t);
    free(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_samples), cmocka_unit_test(test_held),
        cmocka_unit_test(test_a_late_reader),  cmocka_unit_test(test_numbers_stay),
        cmocka_unit_test(test_another_tally),  cmocka_unit_test(test_cells),
        cmocka_unit_test(test_scrolled_cells),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
