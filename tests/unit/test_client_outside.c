/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The session over a reader outside the target, with a reader of the test's own: answers, streams, what a slow loop loses,
 * a target that changes and one that ends; and that nobody who uses a session can tell the kinds apart.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "client/session/call.h"
#include "client/loop.h"
#include "client/session/outside.h"
#include "client/session/source.h"

#define WAIT_US (10 * 1000 * 1000)

/* ---- a reader that does as it is told ---- */

struct fake {
    atomic_uint opened, entered, snapshots, ticks, closed, tended, paused;
    atomic_bool refuse, stuck, lost, fails, changes, needs_tending;
    size_t samples;   /* collected; the reader's thread alone */
    size_t sent_defs; /* definitions are sent once */
};

static void fake_target(struct model_target *out, int64_t pid) {
    *out = (struct model_target){.pid = pid, .mode = MODEL_MODE_READONLY};
    arena_init(&out->arena, 4096);
    out->python = arena_strdup(&out->arena, "3.11.7");
    out->mode_reason = arena_strdup(&out->arena, "a test");
}

static int fake_open(void *arg, struct model_target *out, struct err *e) {
    struct fake *f = arg;
    f->opened++;
    if (f->refuse)
        return err_set(e, ERR_ATTACH, "not allowed to read it: be somebody else");
    fake_target(out, 41);
    return 0;
}

static bool fake_changed(void *arg, struct model_target *out) {
    struct fake *f = arg;
    if (!atomic_exchange(&f->changes, false))
        return false;
    fake_target(out, 42);
    return true;
}

static int fake_snapshot(void *arg, struct model_snapshot *out, struct err *e) {
    struct fake *f = arg;
    f->entered++;
    while (f->stuck)
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    if (f->lost)
        return err_set(e, ERR_LOST, "process 41 has ended");
    if (f->fails)
        return err_set(e, ERR_FAILED, "out of something");
    *out = (struct model_snapshot){.seq = ++f->snapshots};
    arena_init(&out->arena, 4096);
    out->threads = arena_calloc(&out->arena, 1, sizeof *out->threads);
    out->n_threads = out->threads ? 1 : 0;
    return 0;
}

static int fake_tick(void *arg, uint64_t wanted_ns, void (*flush)(void *flush_arg), void *flush_arg,
                     struct err *e) {
    struct fake *f = arg;
    (void)e;
    assert_true(wanted_ns > 0);
    f->ticks++;
    f->samples += 10;
    if (f->samples >= 100)
        flush(flush_arg);
    return 0;
}

static size_t fake_pending(void *arg) { return ((struct fake *)arg)->samples; }

static int fake_take(void *arg, struct model_sample_batch *out) {
    struct fake *f = arg;
    *out = (struct model_sample_batch){.epoch = 1, .period_us = 1000, .n_samples = f->samples};
    arena_init(&out->arena, 1 << 16);
    out->samples = arena_calloc(&out->arena, f->samples, sizeof *out->samples);
    f->samples = 0;
    f->sent_defs++;
    return out->samples ? 0 : -1;
}

static int fake_details(void *arg, const struct wire_threads *want, struct model_snapshot *out,
                        struct err *e) {
    if (want->tid < 0)
        return err_set(e, ERR_FAILED, "no such thread");
    if (fake_snapshot(arg, out, e) != 0)
        return -1;
    out->gil_tid = want->tid; /* to be seen on the other side */
    return 0;
}

static void fake_drop(void *arg) { ((struct fake *)arg)->samples = 0; }

static void fake_pause(void *arg) { ((struct fake *)arg)->paused++; }

static bool fake_tend(void *arg) {
    struct fake *f = arg;
    f->tended++;
    return f->needs_tending;
}

static void fake_close(void *arg) { ((struct fake *)arg)->closed++; }

static const struct outside_reader fake_reader = {
    .open = fake_open,
    .changed = fake_changed,
    .snapshot = fake_snapshot,
    .details = fake_details,
    .tick = fake_tick,
    .pending = fake_pending,
    .take = fake_take,
    .drop = fake_drop,
    .pause = fake_pause,
    .tend = fake_tend,
    .close = fake_close,
};

/* ---- who listens ---- */

struct seen {
    struct loop *loop;
    struct session *session;
    unsigned connected, over, targets, snapshots, batches, replies;
    unsigned locals;
    int64_t locals_tid;
    uint64_t samples, dropped_samples, dropped_snapshots, last_seq;
    int64_t pid;
    bool ordered; /* the target was told before the state */
    struct err why, refused;
    bool (*enough)(const struct seen *s);
};

static void look(struct seen *s) {
    if (s->enough && s->enough(s))
        loop_stop(s->loop);
}

static void on_state(void *arg, enum session_state state, const struct err *why) {
    struct seen *s = arg;
    if (state == SESSION_CONNECTED) {
        s->connected++;
        s->ordered = s->targets == 1;
    }
    if (state == SESSION_LOST || state == SESSION_FAILED) {
        s->over++;
        s->why = *why;
    }
    look(s);
}

static void on_target(void *arg, struct model_target *t) {
    struct seen *s = arg;
    assert_int_equal(t->mode, MODEL_MODE_READONLY);
    assert_null(t->agent_version);
    s->pid = t->pid;
    s->targets++;
    look(s);
}

static void on_snapshot(void *arg, struct model_snapshot *snapshot) {
    struct seen *s = arg;
    assert_true(snapshot->seq > s->last_seq);
    s->last_seq = snapshot->seq;
    s->dropped_snapshots = snapshot->dropped;
    s->snapshots++;
    look(s);
}

static void on_details(void *arg, struct model_snapshot *snapshot) {
    struct seen *s = arg;
    s->locals++;
    s->locals_tid = snapshot->gil_tid;
    look(s);
}

static void on_samples(void *arg, struct model_sample_batch *b) {
    struct seen *s = arg;
    s->samples += b->n_samples;
    s->dropped_samples = b->dropped;
    s->batches++;
    look(s);
}

static void on_reply(void *arg, enum wire_method m, const struct err *error) {
    struct seen *s = arg;
    (void)m;
    if (error)
        s->refused = *error;
    s->replies++;
    look(s);
}

static const struct session_handler handler = {
    .on_state = on_state,
    .on_target = on_target,
    .on_snapshot = on_snapshot,
    .on_details = on_details,
    .on_samples = on_samples,
    .on_reply = on_reply,
};

static void on_too_late(void *arg) { loop_stop(arg); }

static void run_until(struct seen *s, bool (*enough)(const struct seen *s)) {
    struct loop_timer *limit = loop_timer_new(s->loop, on_too_late, s->loop, NULL);
    assert_non_null(limit);
    loop_timer_set(limit, WAIT_US);
    s->enough = enough;
    if (!enough(s))
        loop_run(s->loop);
    loop_timer_free(limit);
    assert_true(enough(s));
}

static bool is_connected(const struct seen *s) { return s->connected == 1; }
static bool is_over(const struct seen *s) { return s->over > 0; }
static bool has_snapshots(const struct seen *s) { return s->snapshots >= 3; }
static bool has_samples(const struct seen *s) { return s->samples >= 300; }
static bool has_locals(const struct seen *s) { return s->locals >= 1; }
static bool has_replies(const struct seen *s) { return s->replies >= 1; }
static bool has_loss(const struct seen *s) { return s->dropped_samples > 0 && s->dropped_snapshots > 0; }
static bool has_second_target(const struct seen *s) { return s->targets == 2; }

static void start(struct seen *s, struct fake *f, pid_t pid) {
    struct err e = {0};
    struct target_address addr = {.pid = pid, .mode = MODEL_MODE_READONLY};
    *s = (struct seen){0};
    s->loop = loop_new(&e);
    assert_non_null(s->loop);
    s->session = session_outside_with(s->loop, &addr, &fake_reader, f, &handler, s, &e);
    assert_non_null(s->session);
    assert_int_equal(session_get_state(s->session), SESSION_CONNECTING);
}

static void finish(struct seen *s, struct fake *f) {
    session_free(s->session);
    loop_free(s->loop);
    assert_int_equal(f->closed, 1);
}

/* Until the reader's thread has got somewhere, the loop standing still meanwhile. */
static void wait_for(const atomic_uint *count, unsigned n) {
    uint64_t end = clock_mono_ns() + 10 * CLOCK_NS_PER_S;
    while (*count < n && clock_mono_ns() < end)
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    assert_true(*count >= n);
}

/* ---- tests ---- */

/* An answer with locals is not taken for a snapshot; a refusal is told. */
static void check_locals(void **state) {
    (void)state;
    struct fake f = {0};
    struct seen s;
    struct err e = {0};
    start(&s, &f, 0);
    run_until(&s, is_connected);
    assert_int_equal(session_ask_details(s.session, &(struct wire_threads){.locals = true, .tid = 77}, &e),
                     0);
    run_until(&s, has_locals);
    assert_true(s.locals_tid == 77 && s.snapshots == 0);
    assert_int_equal(session_ask_details(s.session, &(struct wire_threads){.locals = true, .tid = -1}, &e),
                     0);
    run_until(&s, has_replies);
    assert_string_equal(s.refused.text, "no such thread");
    finish(&s, &f);
}

static void check_answers(void **state) {
    (void)state;
    struct fake f = {0};
    struct seen s;
    struct err e = {0};
    start(&s, &f, 0);
    run_until(&s, is_connected);
    assert_true(s.ordered);
    assert_int_equal(s.pid, 41);
    for (int i = 0; i < 3; i++)
        assert_int_equal(session_request(s.session, WIRE_THREADS, &e), 0);
    run_until(&s, has_snapshots);
    assert_int_equal(f.snapshots, 3); /* none beyond what was asked for */
    assert_int_equal(session_request(s.session, WIRE_STATUS, &e), -1);
    assert_non_null(strstr(e.text, "read from outside"));
    assert_int_equal(session_request(s.session, WIRE_EJECT, &e), -1);
    assert_true(session_retry_in_s(s.session) == 0);
    finish(&s, &f);
}

static void check_streams(void **state) {
    (void)state;
    struct fake f = {0};
    struct seen s;
    struct err e = {0};
    start(&s, &f, 0);
    assert_int_equal(session_subscribe(s.session, WIRE_STREAM_THREADS, 200, &e),
                     0); /* before it is connected */
    assert_int_equal(session_subscribe(s.session, WIRE_STREAM_SAMPLES, 1000, &e), 0);
    run_until(&s, has_snapshots);
    run_until(&s, has_samples);
    assert_int_equal(s.dropped_samples, 0);
    s.replies = 0;
    assert_int_equal(session_unsubscribe(s.session, WIRE_STREAM_SAMPLES, &e), 0);
    run_until(&s, has_replies);
    assert_int_equal(f.paused, 1);
    assert_int_equal(f.ticks * 10, s.samples); /* what was collected came before the answer */
    finish(&s, &f);
}

/* A loop that stands still: memory is bounded, what was lost is told, the newest snapshot is kept. */
static void check_slow_loop(void **state) {
    (void)state;
    struct fake f = {0};
    struct seen s;
    struct err e = {0};
    start(&s, &f, 0);
    run_until(&s, is_connected);
    assert_int_equal(session_subscribe(s.session, WIRE_STREAM_THREADS, 1000, &e), 0);
    assert_int_equal(session_subscribe(s.session, WIRE_STREAM_SAMPLES, 10000, &e), 0);
    wait_for(&f.ticks, OUTSIDE_MAX_BATCHES * 10 + 100);
    wait_for(&f.snapshots, 20);
    s.replies = 0;
    assert_int_equal(session_unsubscribe(s.session, WIRE_STREAM_THREADS, &e), 0);
    run_until(&s, has_loss);
    assert_true(s.snapshots < f.snapshots);
    assert_true(s.samples + s.dropped_samples <= f.ticks * 10);
    finish(&s, &f);
}

/* More requests than anybody has a use for, while the reader is held up. */
static void check_too_many_requests(void **state) {
    (void)state;
    struct fake f = {.stuck = true};
    struct err e = {0};
    struct outside *o = outside_start(&fake_reader, &f, &e);
    assert_non_null(o);
    assert_int_equal(outside_ask_snapshot(o, &e), 0);
    wait_for(&f.entered, 1);
    for (int i = 0; i < OUTSIDE_MAX_ASKED; i++)
        assert_int_equal(outside_ask_snapshot(o, &e), 0);
    assert_int_equal(outside_ask_snapshot(o, &e), -1);
    assert_string_equal(e.text, "too many requests wait for an answer");
    f.stuck = false;
    wait_for(&f.snapshots, 1 + OUTSIDE_MAX_ASKED);
    assert_int_equal(outside_ask_snapshot(o, &e), 0);
    outside_stop(o);
    assert_int_equal(f.closed, 1);
}

static void check_refused(void **state) {
    (void)state;
    struct fake f = {.refuse = true};
    struct seen s;
    start(&s, &f, 0);
    run_until(&s, is_over);
    assert_int_equal(s.connected, 0);
    assert_int_equal(session_get_state(s.session), SESSION_FAILED);
    assert_int_equal(s.why.code, ERR_ATTACH);
    assert_string_equal(s.why.text, "not allowed to read it: be somebody else");
    assert_int_equal(session_request(s.session, WIRE_THREADS, NULL), -1);
    assert_int_equal(session_subscribe(s.session, WIRE_STREAM_THREADS, 1, NULL), -1);
    finish(&s, &f);
}

static void check_lost(void **state) {
    (void)state;
    struct fake f = {0};
    struct seen s;
    start(&s, &f, 0);
    assert_int_equal(session_subscribe(s.session, WIRE_STREAM_THREADS, 200, NULL), 0);
    run_until(&s, has_snapshots);
    f.lost = true;
    run_until(&s, is_over);
    assert_int_equal(session_get_state(s.session), SESSION_LOST);
    assert_int_equal(s.over, 1);
    assert_int_equal(s.why.code, ERR_LOST);
    finish(&s, &f);
}

/* A look that fails is an answer to who asked for it, and no end. */
static void check_failed_look(void **state) {
    (void)state;
    struct fake f = {.fails = true};
    struct seen s;
    start(&s, &f, 0);
    run_until(&s, is_connected);
    assert_int_equal(session_request(s.session, WIRE_THREADS, NULL), 0);
    run_until(&s, has_replies);
    assert_string_equal(s.refused.text, "out of something");
    f.fails = false;
    assert_int_equal(session_subscribe(s.session, WIRE_STREAM_THREADS, 200, NULL), 0);
    run_until(&s, has_snapshots);
    assert_int_equal(s.over, 0);
    finish(&s, &f);
}

/* The process became another program. */
static void check_changed(void **state) {
    (void)state;
    struct fake f = {0};
    struct seen s;
    start(&s, &f, 0);
    run_until(&s, is_connected);
    f.changes = true;
    assert_int_equal(session_subscribe(s.session, WIRE_STREAM_THREADS, 200, NULL), 0);
    run_until(&s, has_second_target);
    assert_int_equal(s.pid, 42);
    finish(&s, &f);
}

/* What needs seeing to soon is seen to though nothing else is due. */
static void check_tending(void **state) {
    (void)state;
    struct fake f = {0};
    struct seen s;
    f.needs_tending = true;
    start(&s, &f, 0);
    run_until(&s, is_connected);
    assert_int_equal(session_request(s.session, WIRE_THREADS, NULL), 0);
    wait_for(&f.tended, 20);
    finish(&s, &f);
}

static void check_target_end(void **state) {
    (void)state;
    struct fake f = {0};
    struct seen s;
    struct err e = {0};
    int hold[2];
    assert_int_equal(pipe(hold), 0);
    pid_t child = fork();
    if (child == 0) {
        char byte;
        (void)close(hold[1]);
        _exit(read(hold[0], &byte, 1) < 0);
    }
    (void)close(hold[0]);
    start(&s, &f, child);
    run_until(&s, is_connected);
    (void)close(hold[1]);
    run_until(&s, is_over);
    assert_int_equal(session_get_state(s.session), SESSION_LOST);
    assert_int_equal(s.why.code, ERR_LOST);
    finish(&s, &f);
    assert_int_equal(waitpid(child, NULL, 0), child);

    struct target_address addr = {.pid = child, .mode = MODEL_MODE_READONLY};
    assert_null(call_open(&addr, &e));
    assert_int_equal(e.code, ERR_LOST);
}

/* The blocking calls work over it as over an agent: this program is no Python, and its line says so. */
static void check_not_python(void **state) {
    (void)state;
    struct err e = {0};
    struct target_address addr = {.pid = getpid(), .mode = MODEL_MODE_READONLY};
    assert_null(call_open(&addr, &e));
    assert_int_equal(e.code, ERR_ATTACH);
    assert_non_null(strstr(e.text, "Python"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_answers),
        cmocka_unit_test(check_locals),
        cmocka_unit_test(check_streams),
        cmocka_unit_test(check_slow_loop),
        cmocka_unit_test(check_too_many_requests),
        cmocka_unit_test(check_refused),
        cmocka_unit_test(check_lost),
        cmocka_unit_test(check_failed_look),
        cmocka_unit_test(check_changed),
        cmocka_unit_test(check_tending),
        cmocka_unit_test(check_target_end),
        cmocka_unit_test(check_not_python),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
