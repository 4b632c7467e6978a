/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample_store_table: see sample_store_table.h. Callers have smaller numbers, so one pass from
 * the last stack to the first computes the totals.
 */
#include "client/samples/sample_store_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"

#define TABLE_MAX_WALK 2048 /* callers checked for a recursive pair */

static const struct model_frame table_no_frame = {
    .kind = MODEL_FRAME_PYTHON, .func = "(no Python frame)", .file = NULL, .line = 0};
static const struct model_frame table_outermost = {
    .kind = MODEL_FRAME_PYTHON, .func = "(outermost)", .file = NULL, .line = 0};

void sample_store_table_fini(struct sample_store_table *t) {
    free(t->rows);
    free(t->tids);
    free(t->below);
    free(t->own);
    memset(t, 0, sizeof *t);
}

static void table_add(struct stack_counts_sums *to, const struct stack_counts_sums *c) {
    to->samples += c->samples;
    to->us += c->us;
}

static uint32_t table_id(const struct sample_store_table *t, const struct sample_store *store, uint32_t stack,
                         uint32_t *above) {
    uint32_t frame = stack_counts_stack_frame(sample_store_counts(store), stack, above);
    if (t->query.hides_native)
        *above = sample_store_python_stack(store, *above);
    return t->query.by_line ? frame : sample_store_function(store, frame);
}

/* True if the stack counts as its caller. */
static bool table_is_folded(const struct sample_store_table *t, const struct sample_store *store,
                            uint32_t stack) {
    return t->query.hides_native && sample_store_python_stack(store, stack) != stack;
}

static int table_compare_tid(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Sort the threads, and remove duplicates. */
static void table_settle_tids(struct sample_store_table *t) {
    size_t kept = 0;
    qsort(t->tids, t->n_tids, sizeof *t->tids, table_compare_tid);
    for (size_t i = 0; i < t->n_tids; i++)
        if (!kept || t->tids[kept - 1] != t->tids[i])
            t->tids[kept++] = t->tids[i];
    t->n_tids = kept;
}

/* Own sums of each stack, and the list of sampled threads. */
static int table_count_stacks(struct sample_store_table *t, const struct sample_store *store) {
    size_t n = sample_store_count_entries(store);
    struct stack_counts_sums *counts = calloc(n + 1, sizeof *counts);
    t->tids = calloc(n + 1, sizeof *t->tids);
    if (!counts || !t->tids) {
        free(counts);
        return -1;
    }
    sample_store_get_counts(store, t->query.window, counts);
    for (size_t i = 0; i < n; i++) {
        const struct stack_counts_entry *e = stack_counts_get(sample_store_counts(store), i);
        struct stack_counts_sums c = counts[i];
        if (!c.samples)
            continue;
        if (t->n_tids == 0 || t->tids[t->n_tids - 1] != e->tid)
            t->tids[t->n_tids++] = e->tid;
        if (t->query.tid && t->query.tid != e->tid)
            continue;
        if (t->query.on_cpu)
            c = (struct stack_counts_sums){
                .samples = c.on_cpu, .us = c.on_cpu_us, .gc = c.gc_on_cpu, .gc_us = c.gc_on_cpu_us};
        table_add(&t->own[t->query.hides_native ? sample_store_python_stack(store, e->stack) : e->stack], &c);
        t->us += c.us;
        t->gc_us += c.gc_us;
        t->gc += c.gc;
        t->samples += c.samples;
    }
    free(counts);
    table_settle_tids(t);
    return 0;
}

/* Sums of each stack with its callees. */
static void table_count_below(struct sample_store_table *t, const struct sample_store *store) {
    memcpy(t->below, t->own, (t->n_stacks + 1) * sizeof *t->below);
    for (size_t i = t->n_stacks; i > 0; i--) {
        uint32_t above;
        stack_counts_stack_frame(sample_store_counts(store), (uint32_t)i, &above);
        if (above != STACK_COUNTS_NO_STACK)
            table_add(&t->below[above], &t->below[i]);
    }
}

/* Rows by id, then without the empty ones. */
static int table_make_rows(struct sample_store_table *t, const struct sample_store *store) {
    const struct stack_counts *counts = sample_store_counts(store);
    size_t n = sample_store_count_frames(store);
    t->rows = calloc(n + 1, sizeof *t->rows);
    if (!t->rows)
        return -1;
    for (size_t i = 1; i <= t->n_stacks; i++) {
        uint32_t above;
        if (table_is_folded(t, store, (uint32_t)i))
            continue;
        struct sample_store_row *row = &t->rows[table_id(t, store, (uint32_t)i, &above)];
        row->own += t->own[i].samples;
        row->own_us += t->own[i].us;
        if (sample_store_recurs(store, (uint32_t)i, !t->query.by_line))
            continue;
        row->total += t->below[i].samples;
        row->total_us += t->below[i].us;
    }
    for (size_t i = 0; i < n; i++) {
        if (!t->rows[i].total)
            continue;
        struct sample_store_row row = t->rows[i];
        row.id = (uint32_t)i;
        row.frame = stack_counts_frame(counts, i);
        t->rows[t->n++] = row;
    }
    const struct stack_counts_sums *none = &t->own[STACK_COUNTS_NO_STACK];
    if (none->samples)
        t->rows[t->n++] = (struct sample_store_row){
            SAMPLE_STORE_NO_FRAME, &table_no_frame, none->us, none->us, none->samples, none->samples};
    return 0;
}

int sample_store_table_build(struct sample_store_table *t, const struct sample_store *store,
                             const struct sample_store_query *query) {
    sample_store_table_fini(t);
    t->query = *query;
    t->n_stacks = sample_store_count_stacks(store);
    t->own = calloc(t->n_stacks + 1, sizeof *t->own);
    t->below = calloc(t->n_stacks + 1, sizeof *t->below);
    int rc = t->own && t->below ? table_count_stacks(t, store) : -1;
    if (rc == 0) {
        table_count_below(t, store);
        rc = table_make_rows(t, store);
    }
    if (rc != 0)
        sample_store_table_fini(t);
    return rc;
}

double sample_store_table_share(const struct sample_store_table *t, double us, uint64_t samples) {
    if (t->us > 0)
        return us / t->us * 100;
    return t->samples ? (double)samples / (double)t->samples * 100 : NAN;
}

/* ---- callers and callees ---- */

/* True if `caller` already calls `callee` above `stack`. */
static bool table_pair_recurs(const struct sample_store_table *t, const struct sample_store *store,
                              uint32_t stack, uint32_t caller, uint32_t callee) {
    uint32_t above;
    stack_counts_stack_frame(sample_store_counts(store), stack, &above);
    for (int i = 0; above != STACK_COUNTS_NO_STACK && i < TABLE_MAX_WALK; i++) {
        uint32_t next, id = table_id(t, store, above, &next);
        if (id == callee && next != STACK_COUNTS_NO_STACK) {
            uint32_t ignored;
            if (table_id(t, store, next, &ignored) == caller)
                return true;
        }
        above = next;
    }
    return false;
}

static int table_compare_call(const void *a, const void *b) {
    const struct sample_store_call *x = a, *y = b;
    if (x->way != y->way)
        return (int)x->way - (int)y->way;
    if (x->us != y->us)
        return x->us < y->us ? 1 : -1;
    if (x->samples != y->samples)
        return x->samples < y->samples ? 1 : -1;
    return (x->id > y->id) - (x->id < y->id);
}

/* Sums of callers (by id; the last is for no caller), followed by those of callees. */
static void table_count_calls(const struct sample_store_table *t, const struct sample_store *store,
                              uint32_t id, struct sample_store_call *callers,
                              struct sample_store_call *callees, size_t n_frames) {
    for (size_t i = 1; i <= t->n_stacks; i++) {
        uint32_t above, ignored, mine = table_id(t, store, (uint32_t)i, &above);
        const struct stack_counts_sums *c = &t->below[i];
        if (!c->samples || table_is_folded(t, store, (uint32_t)i))
            continue;
        uint32_t caller =
            above == STACK_COUNTS_NO_STACK ? SAMPLE_STORE_NO_FRAME : table_id(t, store, above, &ignored);
        if (mine != id && caller != id)
            continue;
        if (caller != SAMPLE_STORE_NO_FRAME && table_pair_recurs(t, store, (uint32_t)i, caller, mine))
            continue;
        if (mine == id) {
            struct sample_store_call *call = &callers[caller == SAMPLE_STORE_NO_FRAME ? n_frames : caller];
            call->samples += c->samples;
            call->us += c->us;
        }
        if (caller == id) {
            callees[mine].samples += c->samples;
            callees[mine].us += c->us;
        }
    }
}

struct sample_store_call *sample_store_table_calls(const struct sample_store_table *t,
                                                   const struct sample_store *store, uint32_t id, size_t *n) {
    const struct stack_counts *counts = sample_store_counts(store);
    size_t n_frames = sample_store_count_frames(store), kept = 0;
    const struct sample_store_row *row = NULL;
    *n = 0;
    for (size_t i = 0; i < t->n && !row; i++)
        row = t->rows[i].id == id ? &t->rows[i] : NULL;
    if (!row)
        return NULL;
    struct sample_store_call *calls = calloc(2 * n_frames + 2, sizeof *calls);
    if (!calls)
        return NULL;
    if (id != SAMPLE_STORE_NO_FRAME)
        table_count_calls(t, store, id, calls, calls + n_frames + 1, n_frames);
    for (size_t i = 0; i < 2 * n_frames + 1; i++) {
        struct sample_store_call call = calls[i];
        if (!call.samples)
            continue;
        call.way = i <= n_frames ? SAMPLE_STORE_CALLER : SAMPLE_STORE_CALLEE;
        call.id = (uint32_t)(i < n_frames ? i : i == n_frames ? SAMPLE_STORE_NO_FRAME : i - n_frames - 1);
        call.frame =
            call.id == SAMPLE_STORE_NO_FRAME ? &table_outermost : stack_counts_frame(counts, call.id);
        calls[kept++] = call;
    }
    if (row->own)
        calls[kept++] =
            (struct sample_store_call){SAMPLE_STORE_ITSELF, id, row->frame, row->own_us, row->own};
    qsort(calls, kept, sizeof *calls, table_compare_call);
    *n = kept;
    return calls;
}

/* ---- two tables side by side ---- */

struct diff_index {
    uint32_t *slots; /* open addressing: 1 + row; 0 free */
    size_t n_slots;  /* a power of two */
    bool by_line;
};

void sample_store_diff_fini(struct sample_store_diff *d) {
    free(d->rows);
    memset(d, 0, sizeof *d);
}

static uint64_t diff_hash_text(uint64_t h, const char *text) {
    return hash_mix(h ^ (text ? hash_bytes(text, strlen(text)) : 1));
}

static uint64_t diff_hash(const struct model_frame *f, bool by_line) {
    uint64_t h = diff_hash_text(diff_hash_text((uint64_t)f->kind, f->func), f->file);
    return by_line ? hash_mix(h ^ (uint64_t)(unsigned)f->line) : h;
}

/* Same function, as in sample_store_function; with lines also the same line. */
static bool diff_is_same(const struct model_frame *a, const struct model_frame *b, bool by_line) {
    return a == b || (a->kind == b->kind && text_same(a->func, b->func) && text_same(a->file, b->file) &&
                      (!by_line || a->line == b->line));
}

/* The slot of a frame: in use by the row of the same frame, or free. */
static uint32_t *diff_slot(const struct sample_store_diff *d, const struct diff_index *ix,
                           const struct model_frame *f) {
    for (uint64_t i = diff_hash(f, ix->by_line);; i++) {
        uint32_t *slot = &ix->slots[i & (ix->n_slots - 1)];
        if (!*slot || diff_is_same(d->rows[*slot - 1].row.frame, f, ix->by_line))
            return slot;
    }
}

static double diff_nothing(const struct sample_store_table *t) { return sample_store_table_share(t, 0, 0); }

/* Rows of the newer table, without a share of the older one so far. */
static void diff_put_now(struct sample_store_diff *d, const struct diff_index *ix,
                         const struct sample_store_table *now, double nothing) {
    for (size_t i = 0; i < now->n; i++) {
        const struct sample_store_row *r = &now->rows[i];
        uint32_t *slot = diff_slot(d, ix, r->frame);
        d->rows[d->n++] =
            (struct sample_store_diff_row){.row = *r,
                                           .own_pct = sample_store_table_share(now, r->own_us, r->own),
                                           .total_pct = sample_store_table_share(now, r->total_us, r->total),
                                           .own_before = nothing,
                                           .total_before = nothing};
        if (!*slot) /* lines of native code may have equal names: the first stands for them */
            *slot = (uint32_t)d->n;
    }
}

static void diff_put_before(struct sample_store_diff *d, const struct diff_index *ix,
                            const struct sample_store_table *before, double nothing, bool is_foreign) {
    for (size_t i = 0; i < before->n; i++) {
        const struct sample_store_row *r = &before->rows[i];
        uint32_t *slot = diff_slot(d, ix, r->frame);
        if (!*slot) {
            uint32_t id = is_foreign ? r->id | SAMPLE_STORE_DIFF_FOREIGN : r->id;
            d->rows[d->n++] = (struct sample_store_diff_row){
                .row = {.id = id, .frame = r->frame}, .own_pct = nothing, .total_pct = nothing};
            *slot = (uint32_t)d->n;
            d->rows[d->n - 1].own_before = d->rows[d->n - 1].total_before = 0;
        }
        struct sample_store_diff_row *row = &d->rows[*slot - 1];
        double own = sample_store_table_share(before, r->own_us, r->own),
               total = sample_store_table_share(before, r->total_us, r->total);
        row->own_before += own;
        row->total_before += total;
    }
}

int sample_store_diff_build(struct sample_store_diff *d, const struct sample_store_table *now,
                            const struct sample_store_table *before, bool is_foreign) {
    struct diff_index ix = {.n_slots = 256, .by_line = now->query.by_line};
    sample_store_diff_fini(d);
    while (ix.n_slots < 2 * (now->n + before->n + 1))
        ix.n_slots *= 2;
    ix.slots = calloc(ix.n_slots, sizeof *ix.slots);
    d->rows = calloc(now->n + before->n + 1, sizeof *d->rows);
    if (!ix.slots || !d->rows) {
        free(ix.slots);
        sample_store_diff_fini(d);
        return -1;
    }
    diff_put_now(d, &ix, now, diff_nothing(before));
    diff_put_before(d, &ix, before, diff_nothing(now), is_foreign);
    free(ix.slots);
    return 0;
}
