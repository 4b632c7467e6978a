/* SPDX-License-Identifier: Apache-2.0 */
/* data: see data.h. */
#include "tui/model/data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/path.h"
#include "tui/model/snapshot_history.h"
#include "tui/theme/theme.h"

#define DATA_LOCALS_AGE_S 1.0  /* between two requests for the locals of a thread */
#define DATA_LOCALS_LOST_S 4.0 /* then an answer counts as lost */

/* Of a recording as much is shown as an export writes: seven hours at ten samples a second, and 24
 * MiB. */
#define DATA_RECORDED_TICKS ((size_t)1 << 18)
#define DATA_RECORDED_RUNS ((size_t)1 << 21)

void data_init(struct data *d) {
    memset(d, 0, sizeof *d);
    d->state = SESSION_CONNECTING;
}

static void data_children_fini(struct data_children *c) {
    for (size_t i = 0; i < c->n; i++) {
        free(c->items[i].cmdline);
        data_shot_fini(&c->items[i].shot);
    }
    free(c->items);
    memset(c, 0, sizeof *c);
}

void data_fini(struct data *d) {
    data_children_fini(&d->children);
    data_children_fini(&d->held_children);
    data_shot_fini(&d->live);
    data_shot_fini(&d->held);
    data_shot_fini(&d->stepped);
    snapshot_history_free(d->past);
    model_snapshot_fini(&d->locals);
    sample_store_free(d->tally);
    if (d->has_target)
        model_target_fini(&d->target);
    memset(d, 0, sizeof *d);
}

void data_take_target(struct data *d, struct model_target *t) {
    if (d->has_target)
        model_target_fini(&d->target);
    d->target = *t;
    d->has_target = true;
    memset(t, 0, sizeof *t);
}

/* Equal for equal functions, files and lines; 0: a thread without frames. */
static uint64_t data_hash_stack(const struct model_thread *t) {
    uint64_t h = HASH_FNV_START;
    for (size_t i = 0; i < t->n_frames; i++) {
        const struct model_frame *f = &t->frames[i];
        if (f->func)
            h = hash_fnv(h, f->func, strlen(f->func) + 1);
        if (f->file)
            h = hash_fnv(h, f->file, strlen(f->file) + 1);
        h = hash_fnv(h, &f->line, sizeof f->line);
    }
    return t->n_frames ? h | 1 : 0;
}

/* Index of `tid` in a shot, searched from `hint` (threads keep their order); -1: not there. */
static long data_index(const struct data_shot *shot, int64_t tid, size_t hint) {
    size_t n = shot->valid ? shot->snapshot.n_threads : 0;
    for (size_t i = 0; i < n; i++) {
        size_t at = (hint + i) % n;
        if (shot->snapshot.threads[at].tid == tid)
            return (long)at;
    }
    return -1;
}

/* Add an observation of a thread and the GIL. */
static struct data_gil data_gil_next(struct data_gil past, enum model_gil now) {
    return (struct data_gil){.known = past.known << 1 | (now != MODEL_GIL_UNKNOWN),
                             .held = past.held << 1 | (now == MODEL_GIL_HOLDING),
                             .waiting = past.waiting << 1 | (now == MODEL_GIL_WAITING)};
}

void data_gil_share(const struct data_shot *shot, size_t thread, double *held, double *waiting) {
    const uint64_t mask = DATA_GIL_TICKS < 64 ? (1ULL << (DATA_GIL_TICKS % 64)) - 1 : ~0ULL;
    const struct data_gil none = {0}, *g = shot->gil ? &shot->gil[thread] : &none;
    double looks = __builtin_popcountll(g->known & mask);
    *held = looks > 0 ? __builtin_popcountll(g->held & mask) / looks * 100 : NAN;
    *waiting = looks > 0 ? __builtin_popcountll(g->waiting & mask) / looks * 100 : NAN;
}

/* Compare with the last shot: who still shows the same stack, and what it did with the GIL. Out of
 * memory it stays unknown. */
static void data_compare(struct data_shot *shot, const struct data_shot *before) {
    const struct model_snapshot *s = &shot->snapshot;
    shot->stack_hash = calloc(s->n_threads + 1, sizeof *shot->stack_hash);
    shot->stack_since = calloc(s->n_threads + 1, sizeof *shot->stack_since);
    shot->gil = calloc(s->n_threads + 1, sizeof *shot->gil);
    if (!shot->stack_hash || !shot->stack_since || !shot->gil)
        return;
    for (size_t i = 0; i < s->n_threads; i++) {
        shot->stack_hash[i] = data_hash_stack(&s->threads[i]);
        shot->stack_since[i] = s->timestamp;
        long old = data_index(before, s->threads[i].tid, i);
        struct data_gil past = old >= 0 && before->gil ? before->gil[old] : (struct data_gil){0};
        shot->gil[i] = data_gil_next(past, s->threads[i].gil);
        if (old >= 0 && before->stack_hash && before->stack_since && shot->stack_hash[i] &&
            before->stack_hash[old] == shot->stack_hash[i])
            shot->stack_since[i] = before->stack_since[old];
        /* The sampler looks more often than snapshots are taken. */
        double same_s = (double)s->threads[i].same_us / 1e6;
        if (same_s > 0 && s->timestamp - same_s > shot->stack_since[i])
            shot->stack_since[i] = s->timestamp - same_s;
    }
}

size_t data_gil_waiters(const struct model_snapshot *s, double *longest_us) {
    size_t n = 0;
    *longest_us = 0;
    for (size_t i = 0; i < s->n_threads; i++) {
        const struct model_thread *t = &s->threads[i];
        n += t->gil == MODEL_GIL_WAITING;
        if (t->gil == MODEL_GIL_WAITING && t->gil_for_us > *longest_us)
            *longest_us = t->gil_for_us;
    }
    return n;
}

double data_gil_level(const struct model_snapshot *s) {
    return s->gil_tid == MODEL_UNKNOWN || s->gil_enabled == 0 ? NAN : s->gil_tid ? 100.0 : 0.0;
}

void data_take_snapshot(struct data *d, struct model_snapshot *s, double now_s) {
    struct data_shot shot = {.snapshot = *s, .arrived_s = now_s, .valid = true};
    memset(s, 0, sizeof *s);
    data_compare(&shot, &d->live);
    d->received++;
    shot.number = d->received;
    d->missed = shot.snapshot.dropped;
    for (size_t i = 0; i < shot.snapshot.n_threads; i++) {
        const struct model_thread *t = &shot.snapshot.threads[i];
        d->ran += t->has_python && (t->state == 'R' || t->torn);
        d->torn += t->torn;
    }
    meter_add(&d->cpu, shot.snapshot.process.cpu_pct);
    meter_add(&d->gil, data_gil_level(&shot.snapshot));
    int8_t gc = shot.snapshot.gc_running;
    meter_add(&d->gc, gc == MODEL_UNKNOWN ? NAN : gc ? 100 : 0);
    if (d->paused && !d->held.valid)
        d->held = d->live;
    else
        data_shot_fini(&d->live);
    d->live = shot;
    if (!d->past)
        d->past = data_is_recorded(d) ? snapshot_history_new(SNAPSHOT_HISTORY_RECORDED_ROW_BYTES,
                                                             SNAPSHOT_HISTORY_RECORDED_STACK_BYTES)
                                      : snapshot_history_new(0, 0);
    if (d->past)
        snapshot_history_add(d->past, &d->live);
}

void data_take_children(struct data *d, struct children_list *l, double now_s) {
    static const struct data_shot none;
    struct data_children next = {.items = calloc(l->n + 1, sizeof *next.items), .left_out = l->left_out};
    for (size_t i = 0; next.items && i < l->n; i++) {
        struct children_process *p = &l->items[i];
        struct data_child *c = &next.items[next.n++];
        const struct data_shot *before = &none;
        for (size_t k = 0; k < d->children.n; k++)
            if (d->children.items[k].pid == p->pid)
                before = &d->children.items[k].shot;
        *c = (struct data_child){p->pid, p->attached, p->cmdline, p->why, p->tree, {.valid = true}};
        c->shot.snapshot = p->snapshot;
        c->shot.arrived_s = now_s;
        data_compare(&c->shot, before);
        p->cmdline = NULL;
        memset(&p->snapshot, 0, sizeof p->snapshot);
    }
    children_list_fini(l);
    if (d->paused && !d->holds_children) {
        d->held_children = d->children;
        d->holds_children = true;
    } else
        data_children_fini(&d->children);
    d->children = next;
}

const struct data_children *data_shown_children(const struct data *d) {
    static const struct data_children unknown;
    if (data_is_stepped(d))
        return &unknown;
    return d->paused && d->holds_children ? &d->held_children : &d->children;
}

bool data_is_recorded(const struct data *d) { return d->has_target && d->target.mode == MODEL_MODE_RECORDED; }

/* Samples of a recording arrive together: each of its seconds is placed where it belongs before
 * their end. */
static double data_sample_time(struct data *d, const struct model_sample_batch *b, double now_s) {
    if (!data_is_recorded(d) || b->n_samples == 0)
        return now_s;
    if (d->past_at_s == 0)
        d->past_at_s = now_s;
    return d->past_at_s + b->samples[b->n_samples - 1].timestamp - d->target.seen_until;
}

bool data_take_samples(struct data *d, const struct model_sample_batch *b, double now_s) {
    if (!d->tally) {
        d->tally = data_is_recorded(d) ? sample_store_new_sized(DATA_RECORDED_TICKS, DATA_RECORDED_RUNS)
                                       : sample_store_new();
        if (!d->tally)
            return true;
        if (d->paused && !data_is_recorded(d)) /* a recording does not move by itself */
            sample_store_freeze(d->tally, true);
    }
    return sample_store_add(d->tally, b, data_sample_time(d, b, now_s));
}

void data_take_locals(struct data *d, struct model_snapshot *s) {
    model_snapshot_fini(&d->locals);
    d->locals = *s;
    d->locals_awaited = false;
    memset(s, 0, sizeof *s);
}

const struct model_thread *data_locals_of(const struct data *d, int64_t tid) {
    for (size_t i = 0; i < d->locals.n_threads && !data_is_stepped(d); i++)
        if (d->locals.threads[i].tid == tid)
            return &d->locals.threads[i];
    return NULL;
}

const struct model_thread *data_native_of(const struct data *d, int64_t tid) {
    const struct model_thread *t = data_locals_of(d, tid);
    return t && t->native != MODEL_NATIVE_NONE ? t : NULL;
}

const struct model_snapshot *data_tasks_for(const struct data *d, int64_t tid) {
    return data_locals_of(d, tid) && (d->locals.tasks || d->locals.note) ? &d->locals : NULL;
}

bool data_want_details(struct data *d, const struct wire_threads *want, double now_s) {
    const struct wire_threads *had = &d->locals_want;
    double since = now_s - d->locals_asked_s;
    bool is_new = !d->locals_asked_s || had->tid != want->tid || had->locals != want->locals ||
                  had->repr != want->repr || had->tasks != want->tasks || had->native != want->native;
    if (d->paused || d->state != SESSION_CONNECTED ||
        (!is_new && since < (d->locals_awaited ? DATA_LOCALS_LOST_S : DATA_LOCALS_AGE_S)))
        return false;
    d->locals_asked_s = now_s;
    d->locals_want = *want;
    d->locals_awaited = true;
    return true;
}

void data_set_state(struct data *d, enum session_state state, const struct err *why, double retry_at_s) {
    d->state = state;
    d->retry_at_s = retry_at_s;
    if (why)
        d->why = *why;
    else
        memset(&d->why, 0, sizeof d->why);
}

void data_set_paused(struct data *d, bool paused) {
    d->paused = paused;
    d->pauses++;
    if (d->tally && !data_is_recorded(d))
        sample_store_freeze(d->tally, paused);
    if (!paused) {
        data_shot_fini(&d->stepped);
        data_shot_fini(&d->held);
        data_children_fini(&d->held_children);
        d->holds_children = false;
    }
}

bool data_is_stepped(const struct data *d) { return d->stepped.valid; }

static void data_show_stepped(struct data *d, const struct data_shot *shot) {
    if (!d->paused)
        data_set_paused(d, true);
    data_shot_fini(&d->stepped);
    d->stepped = *shot;
    d->pauses++;
}

enum data_step data_step(struct data *d, int step) {
    const struct data_shot *shown = data_shown(d);
    struct data_shot next;
    uint64_t number = shown && d->past ? snapshot_history_step(d->past, shown->number, step) : 0;
    if (!number)
        return DATA_STEP_END;
    if (snapshot_history_get(d->past, number, &next) != 0)
        return DATA_STEP_FAILED;
    data_show_stepped(d, &next);
    return DATA_STEP_DONE;
}

enum data_step data_step_into(struct data *d, double from_s, double to_s) {
    struct data_shot next;
    uint64_t number = d->past ? snapshot_history_find(d->past, to_s) : 0;
    if (!number)
        return DATA_STEP_END;
    if (snapshot_history_get(d->past, number, &next) != 0)
        return DATA_STEP_FAILED;
    if (next.snapshot.timestamp < from_s) {
        data_shot_fini(&next);
        return DATA_STEP_END;
    }
    data_show_stepped(d, &next);
    return DATA_STEP_DONE;
}

double data_shown_age(const struct data *d) {
    const struct data_shot *shown = data_shown(d);
    return shown ? d->live.snapshot.timestamp - shown->snapshot.timestamp : NAN;
}

const struct data_shot *data_shown(const struct data *d) {
    if (data_is_stepped(d))
        return &d->stepped;
    if (d->paused && d->held.valid)
        return &d->held;
    return d->live.valid ? &d->live : NULL;
}

double data_stack_age(const struct data_shot *shot, size_t thread) {
    if (!shot->stack_since || !shot->stack_hash || !shot->stack_hash[thread])
        return NAN;
    return shot->snapshot.timestamp - shot->stack_since[thread];
}

const char *data_thread_name(const struct model_thread *t) {
    if (t->name && *t->name)
        return t->name;
    return t->native_name && *t->native_name ? t->native_name : "?";
}

enum theme_role data_frame_role(const struct model_frame *f) {
    if (f->kind == MODEL_FRAME_NATIVE)
        return ROLE_FUNC_NATIVE;
    return f->file && path_is_library(f->file) ? ROLE_FUNC_LIBRARY : ROLE_FUNC;
}

const char *data_short_command(const char *cmdline) { return path_short_command(cmdline); }

const struct model_thread *data_find_thread(const struct data_shot *shot, int64_t tid) {
    long at = shot ? data_index(shot, tid, 0) : -1;
    return at < 0 ? NULL : &shot->snapshot.threads[at];
}

bool data_is_over(const struct data *d) { return d->state == SESSION_LOST || d->state == SESSION_FAILED; }
