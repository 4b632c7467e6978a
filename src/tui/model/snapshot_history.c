/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot_history: see snapshot_history.h. What a thread did in a moment is a row of 32 bytes;
 * rows are grouped in blocks, and a block without a change is shared with the moment before.
 */
#include "tui/model/snapshot_history.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/text.h"
#include "base/trie.h"

#define HISTORY_BLOCK_ROWS 8
#define HISTORY_MAX_STACKS ((size_t)1 << 20) /* nodes; their memory is the real limit */
#define HISTORY_MAX_THREADS 16384            /* of a moment */
#define HISTORY_SHOT_MEMORY ((size_t)64 * 1024 * 1024)
#define HISTORY_WHO 1024          /* threads that have ended but are still in some moments */
#define HISTORY_TEXT (128 * 1024) /* bytes of names of threads */
#define HISTORY_WAITS 2048        /* different things that threads wait for */
#define HISTORY_WAIT_TEXT (256 * 1024)
#define HISTORY_WAITS_REST 64 /* moments between two times at which they are sorted out */
#define HISTORY_NEAR_S 1.0    /* what is younger counts as now */

/* A thread, as long as its name stays the same. */
struct history_who {
    int64_t tid;
    uint64_t ident;
    char *name, *native_name; /* owned; NULL: unknown */
    bool has_python;
};

/* What a thread waited for. How long and until when is not kept: it changes all the time. */
struct history_wait {
    enum model_wait_kind kind;
    uint32_t flags;
    uint64_t tid, pid;
    char *what, *detail; /* owned; NULL: unknown */
};

/* A thread in a moment. Compared as bytes: all of them are set. */
struct history_row {
    double since; /* its stack is unchanged since then; NAN: unknown */
    uint32_t stack;
    uint16_t who;
    uint16_t wait; /* 1 + its number; 0: it did not wait, or for what is not known */
    float cpu_pct, gil_for_us;
    char state;
    int8_t on_cpu, gc;
    uint8_t gil;
    uint8_t known, held, waiting; /* how many of the newest observations of the GIL */
    uint8_t is_torn : 1, is_truncated : 1;
};

_Static_assert(HISTORY_WHO + 3 * HISTORY_MAX_THREADS < UINT16_MAX && HISTORY_WAITS < UINT16_MAX,
               "numbers of a row");

struct history_block {
    uint32_t refs; /* moments that share it */
    struct history_row rows[HISTORY_BLOCK_ROWS];
};

struct history_snapshot {
    uint64_t number;
    struct model_snapshot head; /* without threads and arena */
    double arrived_s;
    struct history_block **blocks;
    size_t n_threads;
};

struct snapshot_history {
    size_t row_bytes, stack_bytes;
    struct history_snapshot **moments; /* oldest first */
    size_t n, cap;
    size_t n_blocks, bytes;  /* of moments, without blocks */
    struct history_who *who; /* only grows, until the stacks are sorted out */
    size_t n_who, cap_who;
    size_t text_bytes;          /* of names */
    struct history_wait *waits; /* at most HISTORY_WAITS; only grows, until it is sorted out */
    size_t n_waits, cap_waits, wait_bytes;
    size_t waits_full; /* moments until it may be sorted out again */
    struct trie stacks;
};

struct snapshot_history *snapshot_history_new(size_t row_bytes, size_t stack_bytes) {
    struct snapshot_history *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->row_bytes = row_bytes ? row_bytes : SNAPSHOT_HISTORY_ROW_BYTES;
    p->stack_bytes = stack_bytes ? stack_bytes : SNAPSHOT_HISTORY_STACK_BYTES;
    trie_init(&p->stacks, HISTORY_MAX_STACKS, p->stack_bytes);
    return p;
}

/* ---- moments ---- */

static size_t history_blocks(size_t n_threads) {
    return (n_threads + HISTORY_BLOCK_ROWS - 1) / HISTORY_BLOCK_ROWS;
}

static size_t history_snapshot_bytes(const struct history_snapshot *m) {
    return sizeof *m + history_blocks(m->n_threads) * sizeof *m->blocks;
}

static void history_release(struct snapshot_history *p, struct history_snapshot *m) {
    for (size_t i = 0; i < history_blocks(m->n_threads); i++)
        if (m->blocks[i] && --m->blocks[i]->refs == 0) {
            free(m->blocks[i]);
            p->n_blocks--;
        }
    free(m->blocks);
    free(m);
}

static void history_drop(struct snapshot_history *p, size_t at) {
    p->bytes -= history_snapshot_bytes(p->moments[at]);
    history_release(p, p->moments[at]);
    p->n--;
    memmove(p->moments + at, p->moments + at + 1, (p->n - at) * sizeof *p->moments);
}

static void history_free_wait(struct history_wait *w) {
    free(w->what);
    free(w->detail);
}

void snapshot_history_free(struct snapshot_history *p) {
    if (!p)
        return;
    while (p->n > 0)
        history_drop(p, p->n - 1);
    free(p->moments);
    for (size_t i = 0; i < p->n_who; i++) {
        free(p->who[i].name);
        free(p->who[i].native_name);
    }
    free(p->who);
    for (size_t i = 0; i < p->n_waits; i++)
        history_free_wait(&p->waits[i]);
    free(p->waits);
    trie_reset(&p->stacks);
    free(p);
}

size_t snapshot_history_bytes(const struct snapshot_history *p) {
    return sizeof *p + p->bytes + p->cap * sizeof *p->moments + p->n_blocks * sizeof(struct history_block) +
           p->cap_who * sizeof *p->who + p->text_bytes + p->cap_waits * sizeof *p->waits + p->wait_bytes +
           trie_bytes(&p->stacks);
}

size_t snapshot_history_count(const struct snapshot_history *p) { return p->n; }

double snapshot_history_oldest(const struct snapshot_history *p) {
    return p->n ? p->moments[0]->head.timestamp : NAN;
}

/* The moment to drop: the nearest to both its neighbours for its age. The first and the last
 * stay. */
static size_t history_least(const struct snapshot_history *p) {
    double newest = p->moments[p->n - 1]->head.timestamp, least = INFINITY;
    size_t found = 1;
    for (size_t i = 1; i + 1 < p->n; i++) {
        double gap = fabs(p->moments[i + 1]->head.timestamp - p->moments[i - 1]->head.timestamp);
        double age = fabs(newest - p->moments[i]->head.timestamp) + HISTORY_NEAR_S;
        if (gap / age < least) {
            least = gap / age;
            found = i;
        }
    }
    return found;
}

/* Drop moments until their memory is within the limit, but keep two. */
static void history_thin(struct snapshot_history *p) {
    while (p->n > 2 && (p->n > SNAPSHOT_HISTORY_MAX ||
                        p->bytes + p->n_blocks * sizeof(struct history_block) > p->row_bytes))
        history_drop(p, history_least(p));
}

/* ---- threads and stacks ---- */

static bool history_is_who(const struct history_who *w, const struct model_thread *t) {
    return w->tid == t->tid && w->ident == t->ident && w->has_python == t->has_python &&
           text_same(w->name, t->name) && text_same(w->native_name, t->native_name);
}

static int history_copy_text(struct snapshot_history *p, const char *text, char **out) {
    *out = text ? strdup(text) : NULL;
    p->text_bytes += *out ? strlen(*out) + 1 : 0;
    return text && !*out ? -1 : 0;
}

/* Number of a thread, searched from `*hint` (threads keep their order); UINT32_MAX: out of
 * memory. */
static uint32_t history_find_who(struct snapshot_history *p, const struct model_thread *t, size_t *hint) {
    for (size_t i = 0; i < p->n_who; i++) {
        size_t at = (*hint + i) % p->n_who;
        if (history_is_who(&p->who[at], t)) {
            *hint = at + 1;
            return (uint32_t)at;
        }
    }
    if (grow_array(&p->who, sizeof *p->who, p->n_who + 1, &p->cap_who) != 0)
        return UINT32_MAX;
    struct history_who w = {.tid = t->tid, .ident = t->ident, .has_python = t->has_python};
    if (history_copy_text(p, t->name, &w.name) != 0 ||
        history_copy_text(p, t->native_name, &w.native_name) != 0) {
        free(w.name);
        return UINT32_MAX;
    }
    p->who[p->n_who] = w;
    *hint = p->n_who + 1;
    return (uint32_t)p->n_who++;
}

/* Is a block the same as in the moment before? Then it has been counted. */
static bool history_is_shared(const struct snapshot_history *p, size_t moment, size_t block) {
    const struct history_snapshot *m = p->moments[moment], *before = moment ? p->moments[moment - 1] : NULL;
    return before && block < history_blocks(before->n_threads) && before->blocks[block] == m->blocks[block];
}

static size_t history_wait_text(const struct history_wait *w) {
    return (w->what ? strlen(w->what) + 1 : 0) + (w->detail ? strlen(w->detail) + 1 : 0);
}

static bool history_is_wait(const struct history_wait *w, const struct model_wait *wait) {
    return w->kind == wait->kind && w->tid == wait->tid && w->pid == wait->pid && w->flags == wait->flags &&
           text_same(w->what, wait->what) && text_same(w->detail, wait->detail);
}

/* Forget what no moment needs. Out of memory nothing is forgotten. */
static void history_sort_waits(struct snapshot_history *p) {
    uint32_t *moved = calloc(p->n_waits + 1, sizeof *moved);
    size_t kept = 0;
    p->waits_full = HISTORY_WAITS_REST;
    if (!moved)
        return;
    for (size_t i = 0; i < p->n; i++)
        for (size_t k = 0; k < p->moments[i]->n_threads; k++)
            moved[p->moments[i]->blocks[k / HISTORY_BLOCK_ROWS]->rows[k % HISTORY_BLOCK_ROWS].wait] = 1;
    p->wait_bytes = 0;
    for (size_t i = 0; i < p->n_waits; i++) {
        if (!moved[i + 1]) {
            history_free_wait(&p->waits[i]);
            continue;
        }
        p->waits[kept] = p->waits[i];
        p->wait_bytes += history_wait_text(&p->waits[kept]);
        moved[i + 1] = (uint32_t)++kept;
    }
    moved[0] = 0;
    p->n_waits = kept;
    for (size_t i = 0; i < p->n; i++)
        for (size_t k = 0; k < p->moments[i]->n_threads; k++)
            if (!history_is_shared(p, i, k / HISTORY_BLOCK_ROWS)) {
                struct history_row *r =
                    &p->moments[i]->blocks[k / HISTORY_BLOCK_ROWS]->rows[k % HISTORY_BLOCK_ROWS];
                r->wait = (uint16_t)moved[r->wait];
            }
    free(moved);
}

/* Make room for what threads wait for, before a moment is taken. */
static void history_tidy_waits(struct snapshot_history *p) {
    bool is_full = p->n_waits >= HISTORY_WAITS || p->wait_bytes >= HISTORY_WAIT_TEXT;
    if (is_full && p->waits_full == 0)
        history_sort_waits(p);
    else if (p->waits_full > 0)
        p->waits_full--;
}

/* 1 + the number of what a thread waits for; 0: nothing, or there is no room: unknown. */
static uint32_t history_find_wait(struct snapshot_history *p, const struct model_wait *wait, uint32_t hint) {
    if (wait->kind == MODEL_WAIT_UNKNOWN)
        return 0;
    if (hint && history_is_wait(&p->waits[hint - 1], wait))
        return hint;
    for (size_t i = 0; i < p->n_waits; i++)
        if (history_is_wait(&p->waits[i], wait))
            return (uint32_t)i + 1;
    if (p->n_waits >= HISTORY_WAITS || p->wait_bytes >= HISTORY_WAIT_TEXT ||
        grow_array(&p->waits, sizeof *p->waits, p->n_waits + 1, &p->cap_waits) != 0)
        return 0;
    struct history_wait w = {.kind = wait->kind,
                             .flags = wait->flags,
                             .tid = wait->tid,
                             .pid = wait->pid,
                             .what = wait->what ? strdup(wait->what) : NULL,
                             .detail = wait->detail ? strdup(wait->detail) : NULL};
    if ((wait->what && !w.what) || (wait->detail && !w.detail)) {
        history_free_wait(&w);
        return 0;
    }
    p->waits[p->n_waits] = w;
    p->wait_bytes += history_wait_text(&w);
    return (uint32_t)++p->n_waits;
}

/* Frames of a stack, innermost first, as many as fit into `frames`; returns the depth of the
 * stack. */
static size_t history_walk(const struct trie *stacks, uint32_t stack, struct model_frame *frames,
                           size_t cap) {
    size_t n = 0;
    for (; stack; stack = stacks->stacks[stack - 1].parent_id, n++)
        if (n < cap)
            frames[n] = stacks->frames[stacks->stacks[stack - 1].frame_id - 1].frame;
    return n;
}

/* The same stack in `to`; TRIE_FULL: that is full. */
static uint32_t history_move_stack(const struct trie *from, uint32_t stack, struct trie *to,
                                   uint32_t *moved) {
    if (!stack || moved[stack])
        return stack ? moved[stack] : 0;
    size_t n = history_walk(from, stack, NULL, 0);
    struct model_frame *frames = calloc(n, sizeof *frames);
    if (!frames)
        return TRIE_FULL;
    history_walk(from, stack, frames, n);
    uint32_t number = trie_add(to, frames, n);
    free(frames);
    if (number != TRIE_FULL)
        moved[stack] = number;
    return number;
}

/* New numbers for what rows name; `who` holds 1 + the new number, 0: none yet. */
struct history_moved {
    struct trie stacks;
    uint32_t *stack;
    uint32_t *who;
    size_t n_who;
};

static int history_move_row(const struct snapshot_history *p, struct history_row *r,
                            struct history_moved *moved) {
    uint32_t stack = history_move_stack(&p->stacks, r->stack, &moved->stacks, moved->stack);
    if (stack == TRIE_FULL)
        return -1;
    if (!moved->who[r->who])
        moved->who[r->who] = (uint32_t)++moved->n_who;
    r->stack = stack;
    r->who = (uint16_t)(moved->who[r->who] - 1);
    return 0;
}

static int history_move_rows(struct snapshot_history *p, struct history_moved *moved) {
    for (size_t i = 0; i < p->n; i++) {
        const struct history_snapshot *m = p->moments[i];
        for (size_t k = 0; k < m->n_threads; k++)
            if (!history_is_shared(p, i, k / HISTORY_BLOCK_ROWS) &&
                history_move_row(p, &m->blocks[k / HISTORY_BLOCK_ROWS]->rows[k % HISTORY_BLOCK_ROWS],
                                 moved) != 0)
                return -1;
    }
    return 0;
}

/* Move threads to their new numbers; drop those without one. */
static void history_move_who(struct snapshot_history *p, const struct history_moved *moved,
                             struct history_who *to) {
    p->text_bytes = 0;
    for (size_t i = 0; i < p->n_who; i++) {
        struct history_who *w = &p->who[i];
        if (!moved->who || !moved->who[i]) {
            free(w->name);
            free(w->native_name);
            continue;
        }
        p->text_bytes +=
            (w->name ? strlen(w->name) + 1 : 0) + (w->native_name ? strlen(w->native_name) + 1 : 0);
        to[moved->who[i] - 1] = *w;
    }
    free(p->who);
    p->who = to;
    p->n_who = moved->n_who;
}

/* Drop stacks and threads that no moment uses. Out of memory everything is dropped. */
static void history_sort_out(struct snapshot_history *p) {
    struct history_moved moved = {.stack = calloc(p->stacks.n_stacks + 1, sizeof *moved.stack),
                                  .who = calloc(p->n_who + 1, sizeof *moved.who)};
    struct history_who *who = calloc(p->n_who + 1, sizeof *who);
    trie_init(&moved.stacks, HISTORY_MAX_STACKS, p->stack_bytes);
    if (!moved.stack || !moved.who || !who || history_move_rows(p, &moved) != 0) {
        while (p->n > 0)
            history_drop(p, p->n - 1);
        free(moved.who);
        moved.who = NULL;
        moved.n_who = 0;
        trie_reset(&moved.stacks);
    }
    p->cap_who = who ? p->n_who + 1 : 0;
    history_move_who(p, &moved, who);
    trie_reset(&p->stacks);
    p->stacks = moved.stacks;
    free(moved.stack);
    free(moved.who);
}

/* Drop half of the moments, and everything that only they use. */
static void history_halve(struct snapshot_history *p) {
    for (size_t left = p->n > 2 ? (p->n + 1) / 2 : 0; p->n > left;)
        history_drop(p, p->n > 2 ? history_least(p) : 0);
    history_sort_out(p);
}

/* Names of threads that have ended are kept as long as they are few. */
static bool history_is_crowded(const struct snapshot_history *p, size_t n_threads) {
    return p->n_who > HISTORY_WHO + 2 * n_threads || p->text_bytes > HISTORY_TEXT;
}

/* ---- taking a snapshot ---- */

static void history_fill_row(struct history_row *r, const struct data_shot *shot, size_t i) {
    const struct model_thread *t = &shot->snapshot.threads[i];
    r->since = shot->stack_since && shot->stack_hash && shot->stack_hash[i] ? shot->stack_since[i] : NAN;
    r->cpu_pct = (float)t->cpu_pct;
    r->gil_for_us = (float)t->gil_for_us;
    r->state = t->state;
    r->on_cpu = t->on_cpu;
    r->gc = t->gc;
    r->gil = (uint8_t)t->gil;
    r->is_torn = t->torn;
    r->is_truncated = t->truncated;
    if (!shot->gil)
        return;
    const uint64_t mask = DATA_GIL_TICKS < 64 ? (1ULL << (DATA_GIL_TICKS % 64)) - 1 : ~0ULL;
    r->known = (uint8_t)__builtin_popcountll(shot->gil[i].known & mask);
    r->held = (uint8_t)__builtin_popcountll(shot->gil[i].held & mask);
    r->waiting = (uint8_t)__builtin_popcountll(shot->gil[i].waiting & mask);
}

/* The rows of one block; -1: no room for a stack or a thread. */
static int history_fill_block(struct snapshot_history *p, const struct data_shot *shot, size_t first,
                              const struct history_block *like, struct history_block *b, size_t *hint) {
    memset(b, 0, sizeof *b);
    for (size_t i = first; i < shot->snapshot.n_threads && i < first + HISTORY_BLOCK_ROWS; i++) {
        const struct model_thread *t = &shot->snapshot.threads[i];
        struct history_row *r = &b->rows[i - first];
        uint32_t before = like ? like->rows[i - first].stack : 0;
        uint32_t who = history_find_who(p, t, hint);
        r->who = (uint16_t)who;
        r->stack = trie_add_like(&p->stacks, before, t->frames, t->n_frames);
        if (who == UINT32_MAX || r->stack == TRIE_FULL)
            return -1;
        r->wait = (uint16_t)history_find_wait(p, &t->wait, like ? like->rows[i - first].wait : 0);
        history_fill_row(r, shot, i);
    }
    return 0;
}

/* The block equal to `b`: that of the moment before, or a new one; NULL: out of memory. */
static struct history_block *history_take_block(struct snapshot_history *p, struct history_block *like,
                                                const struct history_block *b) {
    if (like && memcmp(like->rows, b->rows, sizeof b->rows) == 0) {
        like->refs++;
        return like;
    }
    struct history_block *taken = malloc(sizeof *taken);
    if (!taken)
        return NULL;
    *taken = *b;
    taken->refs = 1;
    p->n_blocks++;
    return taken;
}

/* A moment with all its blocks; NULL: no room or memory. */
static struct history_snapshot *history_make(struct snapshot_history *p, const struct data_shot *shot) {
    const struct history_snapshot *before = p->n ? p->moments[p->n - 1] : NULL;
    struct history_snapshot *m = calloc(1, sizeof *m);
    size_t n = shot->snapshot.n_threads, hint = 0;
    if (!m)
        return NULL;
    m->number = shot->number;
    m->arrived_s = shot->arrived_s;
    m->head = shot->snapshot;
    m->head.threads = NULL;
    m->head.tasks = NULL;
    m->head.note = NULL;
    m->head.n_threads = m->head.n_tasks = 0;
    memset(&m->head.arena, 0, sizeof m->head.arena);
    m->blocks = calloc(history_blocks(n) + 1, sizeof *m->blocks);
    for (size_t i = 0; m->blocks && i < n; i += HISTORY_BLOCK_ROWS) {
        struct history_block b,
            *like = before && i < before->n_threads ? before->blocks[i / HISTORY_BLOCK_ROWS] : NULL;
        if (history_fill_block(p, shot, i, like, &b, &hint) != 0)
            break;
        m->blocks[i / HISTORY_BLOCK_ROWS] = history_take_block(p, like, &b);
        if (!m->blocks[i / HISTORY_BLOCK_ROWS])
            break;
        m->n_threads = i + HISTORY_BLOCK_ROWS < n ? i + HISTORY_BLOCK_ROWS : n;
    }
    if (m->blocks && m->n_threads == n)
        return m;
    history_release(p, m);
    return NULL;
}

void snapshot_history_add(struct snapshot_history *p, const struct data_shot *shot) {
    if (shot->snapshot.n_threads > HISTORY_MAX_THREADS ||
        grow_array(&p->moments, sizeof *p->moments, p->n + 1, &p->cap) != 0)
        return;
    history_tidy_waits(p);
    if (history_is_crowded(p, shot->snapshot.n_threads))
        history_sort_out(p);
    while (history_is_crowded(p, shot->snapshot.n_threads) && p->n > 0)
        history_halve(p);
    struct history_snapshot *m = history_make(p, shot);
    while (!m && p->n > 0) {
        history_halve(p);
        m = history_make(p, shot);
    }
    if (!m)
        return;
    p->bytes += history_snapshot_bytes(m);
    p->moments[p->n++] = m;
    history_thin(p);
}

/* ---- looking back ---- */

/* The place of the first moment whose number is at least that. */
static size_t history_place(const struct snapshot_history *p, uint64_t number) {
    size_t low = 0, high = p->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (p->moments[middle]->number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint64_t snapshot_history_step(const struct snapshot_history *p, uint64_t number, int step) {
    size_t at = history_place(p, step < 0 ? number : number + 1);
    if (step < 0)
        return at > 0 ? p->moments[at - 1]->number : 0;
    return at < p->n ? p->moments[at]->number : 0;
}

uint64_t snapshot_history_find(const struct snapshot_history *p, double time_s) {
    size_t low = 0, high = p->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (p->moments[middle]->head.timestamp <= time_s)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? p->moments[low - 1]->number : 0;
}

/* Frames by their numbers, copied on request: texts go into the snapshot's own memory, because the
 * stacks may be sorted out while it is shown. */
struct history_clone {
    struct model_frame *frames;
    bool *is_copied;
};

static void history_put_frames(const struct trie *stacks, uint32_t stack, struct history_clone *copies,
                               struct arena *a, struct model_thread *t) {
    size_t n = history_walk(stacks, stack, NULL, 0);
    t->frames = n ? arena_calloc(a, n, sizeof *t->frames) : NULL;
    for (; t->frames && stack; stack = stacks->stacks[stack - 1].parent_id) {
        uint32_t frame = stacks->stacks[stack - 1].frame_id - 1;
        struct model_frame *copy = &copies->frames[frame];
        if (!copies->is_copied[frame]) {
            *copy = stacks->frames[frame].frame;
            copy->func = arena_strdup(a, copy->func);
            copy->file = arena_strdup(a, copy->file);
            copy->module = arena_strdup(a, copy->module);
            copies->is_copied[frame] = true;
        }
        t->frames[t->n_frames++] = *copy;
    }
}

static void history_put_thread(const struct snapshot_history *p, const struct history_row *r,
                               struct history_clone *copies, struct data_shot *out, size_t i) {
    const struct history_who *w = &p->who[r->who];
    struct model_thread *t = &out->snapshot.threads[i];
    *t = (struct model_thread){.tid = w->tid,
                               .ident = w->ident,
                               .state = r->state,
                               .on_cpu = r->on_cpu,
                               .gil = (enum model_gil)r->gil,
                               .gil_for_us = (double)r->gil_for_us,
                               .gc = r->gc,
                               .cpu_pct = (double)r->cpu_pct,
                               .has_python = w->has_python,
                               .torn = r->is_torn,
                               .truncated = r->is_truncated};
    t->name = arena_strdup(&out->snapshot.arena, w->name);
    t->native_name = arena_strdup(&out->snapshot.arena, w->native_name);
    if (r->wait) {
        const struct history_wait *wait = &p->waits[r->wait - 1];
        t->wait = (struct model_wait){.kind = wait->kind,
                                      .flags = wait->flags,
                                      .tid = wait->tid,
                                      .pid = wait->pid,
                                      .what = arena_strdup(&out->snapshot.arena, wait->what),
                                      .detail = arena_strdup(&out->snapshot.arena, wait->detail)};
    }
    history_put_frames(&p->stacks, r->stack, copies, &out->snapshot.arena, t);
    out->stack_hash[i] = isnan(r->since) ? 0 : 1;
    out->stack_since[i] = r->since;
    out->gil[i] = (struct data_gil){
        .known = (1ULL << r->known) - 1, .held = (1ULL << r->held) - 1, .waiting = (1ULL << r->waiting) - 1};
}

int snapshot_history_get(const struct snapshot_history *p, uint64_t number, struct data_shot *out) {
    size_t at = history_place(p, number);
    if (at == p->n || p->moments[at]->number != number)
        return -1;
    const struct history_snapshot *m = p->moments[at];
    size_t n = m->n_threads;
    *out =
        (struct data_shot){.snapshot = m->head, .number = number, .arrived_s = m->arrived_s, .valid = true};
    struct model_snapshot *s = &out->snapshot;
    arena_init(&s->arena, HISTORY_SHOT_MEMORY);
    s->threads = arena_calloc(&s->arena, n + 1, sizeof *s->threads);
    out->stack_hash = calloc(n + 1, sizeof *out->stack_hash);
    out->stack_since = calloc(n + 1, sizeof *out->stack_since);
    out->gil = calloc(n + 1, sizeof *out->gil);
    struct history_clone copies = {.frames = calloc(p->stacks.n_frames + 1, sizeof *copies.frames),
                                   .is_copied = calloc(p->stacks.n_frames + 1, sizeof *copies.is_copied)};
    bool has_room =
        s->threads && out->stack_hash && out->stack_since && out->gil && copies.frames && copies.is_copied;
    for (size_t i = 0; has_room && i < n; i++)
        history_put_thread(p, &m->blocks[i / HISTORY_BLOCK_ROWS]->rows[i % HISTORY_BLOCK_ROWS], &copies, out,
                           i);
    free(copies.frames);
    free(copies.is_copied);
    if (has_room && !s->arena.failed) {
        s->n_threads = n;
        return 0;
    }
    data_shot_fini(out);
    return -1;
}
