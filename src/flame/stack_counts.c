/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stack_counts: see stack_counts.h. Four tables (frames, stacks, entries, threads), each an
 * array with an open-addressing index of positions (linear probing, grown at half full).
 */
#include "flame/stack_counts.h"

#include <stdbool.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/hash.h"
#include "base/text.h"

#define STACK_COUNTS_STRINGS_MAX ((size_t)32 * 1024 * 1024)

enum stack_counts_kind {
    STACK_COUNTS_FRAMES,
    STACK_COUNTS_STACKS,
    STACK_COUNTS_ENTRIES,
    STACK_COUNTS_THREADS,
    STACK_COUNTS_KINDS
};

struct stack_counts_stack {
    uint32_t parent; /* 1 + position; 0 root */
    uint32_t frame;  /* position */
    uint32_t depth;  /* of the chain down to this stack */
};

struct stack_counts_thread {
    int64_t tid;
    const char *name;
};

/* items; they never move, because screens keep pointers to frames between two batches */
#define STACK_COUNTS_BLOCK 256

struct stack_counts_table {
    char **blocks;
    size_t item_size, n, n_blocks, cap_blocks;
    uint32_t *slots; /* 1 + position; 0 free */
    size_t n_slots;
};

/* Ids of the epoch to 1 + our position; 0 undefined. */
struct stack_counts_map {
    uint32_t *to;
    size_t n;
};

struct stack_counts {
    struct stack_counts_limits limits;
    bool leaves_out; /* items without room are omitted, and adding does not fail */
    struct stack_counts_table tables[STACK_COUNTS_KINDS];
    struct stack_counts_map frame_ids, stack_ids;
    uint32_t *changed; /* entries, each once */
    size_t n_changed, cap_changed;
    uint32_t *batch_entries; /* per sample of the newest batch */
    size_t cap_batch_entries;
    bool has_epoch, tells_apart;
    uint32_t epoch;
    uint64_t dropped_before; /* dropped in earlier sessions */
    size_t bytes;            /* of the tables */
    struct stack_counts_totals totals;
    struct arena strings;
};

/* ---- sums ---- */

void stack_counts_sums_count(struct stack_counts_sums *to, struct stack_counts_state state, uint64_t n,
                             double us) {
    to->samples += n;
    to->us += us;
    to->on_cpu += state.on_cpu ? n : 0;
    to->on_cpu_us += state.on_cpu ? us : 0;
    to->gc += state.gc ? n : 0;
    to->gc_us += state.gc ? us : 0;
    to->gc_on_cpu += state.gc && state.on_cpu ? n : 0;
    to->gc_on_cpu_us += state.gc && state.on_cpu ? us : 0;
    to->gil += state.gil ? n : 0;
    to->gil_us += state.gil ? us : 0;
}

void stack_counts_sums_add(struct stack_counts_sums *to, const struct stack_counts_sums *more) {
    to->samples += more->samples;
    to->on_cpu += more->on_cpu;
    to->us += more->us;
    to->on_cpu_us += more->on_cpu_us;
    to->gc += more->gc;
    to->gc_us += more->gc_us;
    to->gc_on_cpu += more->gc_on_cpu;
    to->gc_on_cpu_us += more->gc_on_cpu_us;
    to->gil += more->gil;
    to->gil_us += more->gil_us;
}

struct stack_counts_sums stack_counts_sums_since(const struct stack_counts_sums *now,
                                                 const struct stack_counts_sums *before) {
    return (struct stack_counts_sums){.samples = now->samples - before->samples,
                                      .on_cpu = now->on_cpu - before->on_cpu,
                                      .us = now->us - before->us,
                                      .on_cpu_us = now->on_cpu_us - before->on_cpu_us,
                                      .gc = now->gc - before->gc,
                                      .gc_us = now->gc_us - before->gc_us,
                                      .gc_on_cpu = now->gc_on_cpu - before->gc_on_cpu,
                                      .gc_on_cpu_us = now->gc_on_cpu_us - before->gc_on_cpu_us,
                                      .gil = now->gil - before->gil,
                                      .gil_us = now->gil_us - before->gil_us};
}

/* ---- tables ---- */

static uint64_t stack_counts_mix(uint64_t h, uint64_t v) {
    h ^= v;
    h *= 0x9E3779B97F4A7C15ULL;
    return h ^ (h >> 29);
}

static uint64_t stack_counts_hash_string(uint64_t h, const char *s) {
    if (!s)
        return stack_counts_mix(h, 1);
    return stack_counts_mix(hash_fnv_text(h, s), 2);
}

static uint64_t stack_counts_hash(enum stack_counts_kind kind, const void *item) {
    const struct model_frame *frame = item;
    const struct stack_counts_stack *stack = item;
    const struct stack_counts_entry *entry = item;
    const struct stack_counts_thread *thread = item;
    switch (kind) {
    case STACK_COUNTS_FRAMES:
        return stack_counts_hash_string(
            stack_counts_hash_string(
                stack_counts_mix((uint64_t)frame->kind + frame->address, (uint64_t)(unsigned)frame->line),
                frame->func),
            frame->file ? frame->file : frame->module);
    case STACK_COUNTS_STACKS:
        return stack_counts_mix(stack_counts_mix(3, stack->parent), stack->frame);
    case STACK_COUNTS_ENTRIES:
        return stack_counts_mix(
            stack_counts_mix(5 + 8 * (uint64_t)entry->gil_state + 64 * (uint64_t)(uint8_t)entry->gc_state,
                             (uint64_t)entry->tid),
            entry->stack);
    default:
        return stack_counts_mix(7, (uint64_t)thread->tid);
    }
}

static bool stack_counts_same(enum stack_counts_kind kind, const void *a, const void *b) {
    const struct model_frame *f = a, *g = b;
    const struct stack_counts_stack *s = a, *t = b;
    const struct stack_counts_entry *x = a, *y = b;
    const struct stack_counts_thread *p = a, *q = b;
    switch (kind) {
    case STACK_COUNTS_FRAMES:
        return f->line == g->line && f->kind == g->kind && f->address == g->address &&
               text_same(f->func, g->func) && text_same(f->file, g->file) && text_same(f->module, g->module);
    case STACK_COUNTS_STACKS:
        return s->parent == t->parent && s->frame == t->frame;
    case STACK_COUNTS_ENTRIES:
        return x->tid == y->tid && x->stack == y->stack && x->gil_state == y->gil_state &&
               x->gc_state == y->gc_state;
    default:
        return p->tid == q->tid;
    }
}

static void *stack_counts_item(const struct stack_counts *f, enum stack_counts_kind kind, size_t i) {
    const struct stack_counts_table *t = &f->tables[kind];
    return t->blocks[i / STACK_COUNTS_BLOCK] + i % STACK_COUNTS_BLOCK * t->item_size;
}

/* The slot of an equal item, or the free one for it. */
static uint32_t *stack_counts_slot(const struct stack_counts *f, enum stack_counts_kind kind,
                                   const void *item) {
    const struct stack_counts_table *t = &f->tables[kind];
    for (size_t i = stack_counts_hash(kind, item);; i++) {
        uint32_t *slot = &t->slots[i & (t->n_slots - 1)];
        if (!*slot || stack_counts_same(kind, stack_counts_item(f, kind, *slot - 1), item))
            return slot;
    }
}

size_t stack_counts_bytes(const struct stack_counts *f) {
    return f->bytes + f->strings.used + (f->frame_ids.n + f->stack_ids.n) * sizeof *f->frame_ids.to +
           f->cap_changed * sizeof *f->changed + f->cap_batch_entries * sizeof *f->batch_entries;
}

static int stack_counts_grow(struct stack_counts *f, enum stack_counts_kind kind) {
    struct stack_counts_table *t = &f->tables[kind];
    if (t->n >= f->limits.items || stack_counts_bytes(f) > f->limits.bytes || f->strings.failed)
        return -1;
    if (t->n == t->n_blocks * STACK_COUNTS_BLOCK) {
        if (grow_array(&t->blocks, sizeof *t->blocks, t->n_blocks + 1, &t->cap_blocks) != 0)
            return -1;
        t->blocks[t->n_blocks] = calloc(STACK_COUNTS_BLOCK, t->item_size);
        if (!t->blocks[t->n_blocks])
            return -1;
        t->n_blocks++;
        f->bytes += STACK_COUNTS_BLOCK * t->item_size;
    }
    if (t->n * 2 < t->n_slots)
        return 0;
    size_t n_slots = t->n_slots ? t->n_slots * 2 : 256;
    uint32_t *slots = calloc(n_slots, sizeof *slots);
    if (!slots)
        return -1;
    f->bytes += (n_slots - t->n_slots) * sizeof *slots;
    free(t->slots);
    t->slots = slots;
    t->n_slots = n_slots;
    for (size_t i = 0; i < t->n; i++)
        *stack_counts_slot(f, kind, stack_counts_item(f, kind, i)) = (uint32_t)(i + 1);
    return 0;
}

/* Position of an equal item; a new one is added and sets `*added`. -1 without memory. */
static int64_t stack_counts_put(struct stack_counts *f, enum stack_counts_kind kind, const void *item,
                                bool *added) {
    struct stack_counts_table *t = &f->tables[kind];
    *added = false;
    uint32_t *slot = t->n_slots ? stack_counts_slot(f, kind, item) : NULL;
    if (slot && *slot)
        return (int64_t)*slot - 1;
    if (stack_counts_grow(f, kind) != 0)
        return -1;
    slot = stack_counts_slot(f, kind, item);
    memcpy(stack_counts_item(f, kind, t->n), item, t->item_size);
    *slot = (uint32_t)++t->n;
    *added = true;
    return (int64_t)t->n - 1;
}

struct stack_counts *stack_counts_new_limited(const struct stack_counts_limits *limits) {
    static const size_t sizes[STACK_COUNTS_KINDS] = {
        [STACK_COUNTS_FRAMES] = sizeof(struct model_frame),
        [STACK_COUNTS_STACKS] = sizeof(struct stack_counts_stack),
        [STACK_COUNTS_ENTRIES] = sizeof(struct stack_counts_entry),
        [STACK_COUNTS_THREADS] = sizeof(struct stack_counts_thread),
    };
    struct stack_counts *f = calloc(1, sizeof *f);
    if (!f)
        return NULL;
    for (int i = 0; i < STACK_COUNTS_KINDS; i++)
        f->tables[i].item_size = sizes[i];
    f->limits = *limits;
    f->leaves_out = true;
    arena_init(&f->strings,
               limits->bytes < STACK_COUNTS_STRINGS_MAX ? limits->bytes : STACK_COUNTS_STRINGS_MAX);
    f->totals.kept_hz = f->totals.cost_pct = f->totals.budget_pct = NAN;
    f->totals.first_s = f->totals.last_s = NAN;
    return f;
}

struct stack_counts *stack_counts_new(void) {
    static const struct stack_counts_limits limits = {.items = STACK_COUNTS_MAX_ENTRIES,
                                                      .bytes = STACK_COUNTS_MAX_BYTES};
    struct stack_counts *f = stack_counts_new_limited(&limits);
    if (f)
        f->leaves_out = false;
    return f;
}

void stack_counts_free(struct stack_counts *f) {
    if (!f)
        return;
    for (int i = 0; i < STACK_COUNTS_KINDS; i++) {
        for (size_t k = 0; k < f->tables[i].n_blocks; k++)
            free(f->tables[i].blocks[k]);
        free(f->tables[i].blocks);
        free(f->tables[i].slots);
    }
    free(f->frame_ids.to);
    free(f->stack_ids.to);
    free(f->changed);
    free(f->batch_entries);
    arena_fini(&f->strings);
    free(f);
}

int64_t stack_counts_put_frame(struct stack_counts *f, const struct model_frame *frame) {
    bool added;
    int64_t at = stack_counts_put(f, STACK_COUNTS_FRAMES, frame, &added);
    if (!added)
        return at;
    struct model_frame *mine = stack_counts_item(f, STACK_COUNTS_FRAMES, (size_t)at);
    mine->func = arena_strdup(&f->strings, frame->func);
    mine->file = arena_strdup(&f->strings, frame->file);
    mine->module = arena_strdup(&f->strings, frame->module);
    return f->strings.failed ? -1 : at;
}

int64_t stack_counts_put_stack(struct stack_counts *f, uint32_t parent, uint32_t frame) {
    bool added;
    const struct stack_counts_stack *above =
        parent ? stack_counts_item(f, STACK_COUNTS_STACKS, parent - 1) : NULL;
    struct stack_counts_stack s = {.parent = parent, .frame = frame, .depth = above ? above->depth + 1 : 1};
    return stack_counts_put(f, STACK_COUNTS_STACKS, &s, &added);
}

static int stack_counts_put_thread(struct stack_counts *f, int64_t tid, const char *name,
                                   const char *native_name) {
    bool added;
    struct stack_counts_thread t = {.tid = tid};
    int64_t at = stack_counts_put(f, STACK_COUNTS_THREADS, &t, &added);
    if (at < 0)
        return -1;
    struct stack_counts_thread *mine = stack_counts_item(f, STACK_COUNTS_THREADS, (size_t)at);
    const char *now = name ? name : native_name;
    if (now && !text_same(mine->name, now))
        mine->name = arena_strdup(&f->strings, now);
    return f->strings.failed ? -1 : 0;
}

static int stack_counts_note_change(struct stack_counts *f, size_t entry) {
    struct stack_counts_entry *e = stack_counts_item(f, STACK_COUNTS_ENTRIES, entry);
    if (e->is_changed)
        return 0;
    if (f->n_changed == f->cap_changed) {
        size_t cap = f->cap_changed ? f->cap_changed * 2 : 64;
        uint32_t *changed = realloc(f->changed, cap * sizeof *changed);
        if (!changed)
            return -1;
        f->changed = changed;
        f->cap_changed = cap;
    }
    f->changed[f->n_changed++] = (uint32_t)entry;
    e->is_changed = true;
    return 0;
}

/* The facts of a sample beside its thread and stack. */
struct stack_counts_tick {
    double us;
    int8_t on_cpu, gc;
    enum model_gil gil;
};

void stack_counts_split(struct stack_counts *f) { f->tells_apart = true; }

/* The entry that counts it, or -1. */
static int64_t stack_counts_count_sample(struct stack_counts *f, int64_t tid, uint32_t stack,
                                         struct stack_counts_tick look) {
    bool added;
    struct stack_counts_entry e = {.tid = tid, .stack = stack, .gc_state = MODEL_UNKNOWN};
    if (f->tells_apart) {
        e.gil_state = (uint8_t)look.gil;
        e.gc_state = look.gc;
    }
    int64_t at = stack_counts_put(f, STACK_COUNTS_ENTRIES, &e, &added);
    if (at < 0 || stack_counts_note_change(f, (size_t)at) != 0)
        return -1;
    struct stack_counts_entry *mine = stack_counts_item(f, STACK_COUNTS_ENTRIES, (size_t)at);
    stack_counts_sums_count(
        &mine->sums,
        (struct stack_counts_state){look.on_cpu == 1, look.gc == 1, look.gil == MODEL_GIL_HOLDING}, 1,
        look.us);
    f->totals.samples++;
    return at;
}

/* ---- batches ---- */

static uint32_t stack_counts_map_get(const struct stack_counts_map *m, uint32_t id) {
    return id < m->n ? m->to[id] : 0;
}

/* 0, or -1 without memory or for an id that is too large. */
static int stack_counts_map_set(struct stack_counts *f, struct stack_counts_map *m, uint32_t id,
                                uint32_t to) {
    if (id >= STACK_COUNTS_MAX_ENTRIES)
        return -1;
    if (id >= m->n) {
        size_t n = m->n ? m->n : 256;
        while (n <= id)
            n *= 2;
        if (f->leaves_out && stack_counts_bytes(f) + (n - m->n) * sizeof *m->to > f->limits.bytes)
            return -1;
        uint32_t *grown = realloc(m->to, n * sizeof *grown);
        if (!grown)
            return -1;
        memset(grown + m->n, 0, (n - m->n) * sizeof *grown);
        m->to = grown;
        m->n = n;
    }
    m->to[id] = to;
    return 0;
}

static void stack_counts_map_clear(struct stack_counts_map *m) {
    if (m->n)
        memset(m->to, 0, m->n * sizeof *m->to);
}

/* Read the definitions of a batch. 0, or -1. If items without room are omitted, so are the
 * samples that use them. */
static int stack_counts_define(struct stack_counts *f, const struct model_sample_batch *b) {
    for (size_t i = 0; i < b->n_frames; i++) {
        struct model_frame frame = b->frames[i].frame;
        if (f->limits.by_function)
            frame.line = 0;
        int64_t at = stack_counts_put_frame(f, &frame);
        if (stack_counts_map_set(f, &f->frame_ids, b->frames[i].frame_id, (uint32_t)(at + 1)) != 0)
            at = -1;
        if (at < 0 && !f->leaves_out)
            return -1;
    }
    for (size_t i = 0; i < b->n_stacks; i++) {
        const struct model_stack_def *d = &b->stacks[i];
        uint32_t frame = stack_counts_map_get(&f->frame_ids, d->frame_id);
        uint32_t parent = d->parent_id ? stack_counts_map_get(&f->stack_ids, d->parent_id) : 0;
        /* samples that use it count as undefined, or are omitted */
        if (!frame || (d->parent_id && !parent))
            continue;
        int64_t at = stack_counts_put_stack(f, parent, frame - 1);
        if (stack_counts_map_set(f, &f->stack_ids, d->stack_id, (uint32_t)(at + 1)) != 0)
            at = -1;
        if (at < 0 && !f->leaves_out)
            return -1;
    }
    for (size_t i = 0; i < b->n_threads; i++)
        if (stack_counts_put_thread(f, b->threads[i].tid, b->threads[i].name, b->threads[i].native_name) !=
                0 &&
            !f->leaves_out)
            return -1;
    return 0;
}

static void stack_counts_note_time(struct stack_counts *f, double s) {
    if (!isfinite(s))
        return;
    if (!(f->totals.first_s <= s))
        f->totals.first_s = s;
    if (!(f->totals.last_s >= s))
        f->totals.last_s = s;
}

double stack_counts_sample_us(const struct model_sample_batch *b, size_t i) {
    double us = b->us ? b->us[i] : b->period_us;
    return us > 0 && us < STACK_COUNTS_MAX_PERIOD_US ? us : 0;
}

int stack_counts_add_batch(struct stack_counts *f, const struct model_sample_batch *b) {
    if (!f->has_epoch || f->epoch != b->epoch) {
        stack_counts_map_clear(&f->frame_ids);
        stack_counts_map_clear(&f->stack_ids);
        f->has_epoch = true;
        f->epoch = b->epoch;
    }
    if (stack_counts_define(f, b) != 0)
        return -1;
    /* a new subscription counts from 0 */
    if (b->dropped < f->totals.dropped - f->dropped_before)
        f->dropped_before = f->totals.dropped;
    f->totals.dropped = f->dropped_before + b->dropped;
    f->totals.mode = b->mode;
    f->totals.cost_pct = b->cost_pct;
    f->totals.budget_pct = b->budget_pct;
    if (b->n_samples)
        f->totals.kept_hz = b->period_us > 0 ? 1e6 / b->period_us : NAN;
    if (grow_array(&f->batch_entries, sizeof *f->batch_entries, b->n_samples, &f->cap_batch_entries) != 0)
        return -1;
    for (size_t i = 0; i < b->n_samples; i++) {
        const struct model_sample *s = &b->samples[i];
        uint32_t stack =
            s->stack_id ? stack_counts_map_get(&f->stack_ids, s->stack_id) : STACK_COUNTS_NO_STACK;
        f->batch_entries[i] = STACK_COUNTS_NO_ENTRY;
        if (f->limits.tid && s->tid != f->limits.tid)
            continue;
        if (s->torn || (s->stack_id && !stack)) {
            f->totals.torn += s->torn;
            f->totals.undefined += !s->torn && !f->leaves_out;
            f->totals.left_out += !s->torn && f->leaves_out;
            continue;
        }
        int64_t at = stack_counts_count_sample(
            f, s->tid, stack,
            (struct stack_counts_tick){stack_counts_sample_us(b, i), s->on_cpu, s->gc, s->gil});
        if (at < 0 && !f->leaves_out)
            return -1;
        f->totals.left_out += at < 0;
        f->batch_entries[i] = at < 0 ? STACK_COUNTS_NO_ENTRY : (uint32_t)at;
        stack_counts_note_time(f, s->timestamp);
    }
    return 0;
}

int stack_counts_add_snapshot(struct stack_counts *f, const struct model_snapshot *s) {
    for (size_t i = 0; i < s->n_threads; i++) {
        const struct model_thread *t = &s->threads[i];
        uint32_t stack = STACK_COUNTS_NO_STACK;
        for (size_t k = t->n_frames; k-- > 0;) {
            int64_t frame = stack_counts_put_frame(f, &t->frames[k]);
            int64_t at = frame < 0 ? -1 : stack_counts_put_stack(f, stack, (uint32_t)frame);
            if (at < 0)
                return -1;
            stack = (uint32_t)at + 1;
        }
        if (stack_counts_put_thread(f, t->tid, t->name, t->native_name) != 0)
            return -1;
        f->totals.mode = s->sampling;
        if (t->torn)
            f->totals.torn++;
        else if (stack_counts_count_sample(f, t->tid, stack,
                                           (struct stack_counts_tick){0, t->on_cpu, t->gc, t->gil}) < 0)
            return -1;
    }
    stack_counts_note_time(f, s->timestamp);
    return 0;
}

/* ---- reading ---- */

const struct stack_counts_totals *stack_counts_get_totals(const struct stack_counts *f) { return &f->totals; }

size_t stack_counts_count(const struct stack_counts *f) { return f->tables[STACK_COUNTS_ENTRIES].n; }

const struct stack_counts_entry *stack_counts_get(const struct stack_counts *f, size_t i) {
    return stack_counts_item(f, STACK_COUNTS_ENTRIES, i);
}

size_t stack_counts_changed(const struct stack_counts *f, const uint32_t **entries) {
    *entries = f->changed;
    return f->n_changed;
}

void stack_counts_forget_changed(struct stack_counts *f) {
    for (size_t i = 0; i < f->n_changed; i++)
        ((struct stack_counts_entry *)stack_counts_item(f, STACK_COUNTS_ENTRIES, f->changed[i]))->is_changed =
            false;
    f->n_changed = 0;
}

const uint32_t *stack_counts_batch_entries(const struct stack_counts *f) { return f->batch_entries; }

size_t stack_counts_stacks(const struct stack_counts *f) { return f->tables[STACK_COUNTS_STACKS].n; }

size_t stack_counts_frames(const struct stack_counts *f) { return f->tables[STACK_COUNTS_FRAMES].n; }

const struct model_frame *stack_counts_frame(const struct stack_counts *f, size_t frame) {
    return frame < stack_counts_frames(f) ? stack_counts_item(f, STACK_COUNTS_FRAMES, frame) : NULL;
}

uint32_t stack_counts_stack_frame(const struct stack_counts *f, uint32_t stack, uint32_t *above) {
    const struct stack_counts_stack *s = stack_counts_item(f, STACK_COUNTS_STACKS, stack - 1);
    *above = s->parent;
    return s->frame;
}

size_t stack_counts_path(const struct stack_counts *f, uint32_t stack, const struct model_frame **out,
                         size_t cap) {
    if (stack == STACK_COUNTS_NO_STACK)
        return 0;
    const struct stack_counts_stack *s = stack_counts_item(f, STACK_COUNTS_STACKS, stack - 1);
    size_t depth = s->depth;
    for (size_t i = depth; i-- > 0;) {
        if (i < cap)
            out[i] = stack_counts_item(f, STACK_COUNTS_FRAMES, s->frame);
        if (s->parent)
            s = stack_counts_item(f, STACK_COUNTS_STACKS, s->parent - 1);
    }
    return depth;
}

const char *stack_counts_thread_name(const struct stack_counts *f, int64_t tid) {
    struct stack_counts_thread t = {.tid = tid};
    if (!f->tables[STACK_COUNTS_THREADS].n_slots)
        return NULL;
    const uint32_t *slot = stack_counts_slot(f, STACK_COUNTS_THREADS, &t);
    return *slot ? ((const struct stack_counts_thread *)stack_counts_item(f, STACK_COUNTS_THREADS, *slot - 1))
                       ->name
                 : NULL;
}

/* ---- counts made of parts of others ---- */

struct stack_counts *stack_counts_new_like(const struct stack_counts *f) {
    struct stack_counts *out = stack_counts_new();
    for (size_t i = 0; out && i < f->tables[STACK_COUNTS_THREADS].n; i++) {
        const struct stack_counts_thread *t = stack_counts_item(f, STACK_COUNTS_THREADS, i);
        if (stack_counts_put_thread(out, t->tid, t->name, NULL) != 0) {
            stack_counts_free(out);
            return NULL;
        }
    }
    if (out) {
        out->totals = f->totals;
        out->totals.samples = 0;
    }
    return out;
}

int64_t stack_counts_put_counts(struct stack_counts *f, const struct stack_counts_entry *counts) {
    struct stack_counts_entry e = *counts;
    bool added;
    e.is_changed = false;
    int64_t at = stack_counts_put(f, STACK_COUNTS_ENTRIES, &e, &added);
    if (at < 0)
        return -1;
    f->totals.samples += e.sums.samples;
    if (added)
        return at;
    struct stack_counts_entry *mine = stack_counts_item(f, STACK_COUNTS_ENTRIES, (size_t)at);
    stack_counts_sums_add(&mine->sums, &e.sums);
    return at;
}
