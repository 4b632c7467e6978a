/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The session against a peer that behaves and peers that do not: hello, answers, streams, chunks, reconnects, and one
 * clear line for each kind of wrong.
 */
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "client/session/call.h"
#include "client/loop.h"
#include "client/session/session.h"
#include "support/fake_net_agent.h"

static struct target_address address_of(struct fake_agent *a) {
    struct target_address addr = {.pid = 0};
    (void)snprintf(addr.path, sizeof addr.path, "%s", fake_agent_path(a));
    return addr;
}

/* ---- a client that keeps count ---- */

struct seen {
    struct loop *loop;
    struct session *session;
    unsigned states[SESSION_FAILED + 1];
    unsigned targets, snapshots, batches, replies;
    struct err why;
    bool (*enough)(const struct seen *s);
};

static void look(struct seen *s) {
    if (s->enough && s->enough(s))
        loop_stop(s->loop);
}

static void on_state(void *arg, enum session_state state, const struct err *why) {
    struct seen *s = arg;
    s->states[state]++;
    if (why)
        s->why = *why;
    look(s);
}

static void on_target(void *arg, struct model_target *t) {
    struct seen *s = arg;
    assert_int_equal(t->pid, 41);
    assert_string_equal(t->python, "3.11.7");
    s->targets++;
}

static void on_snapshot(void *arg, struct model_snapshot *snapshot) {
    struct seen *s = arg;
    assert_true(snapshot->n_threads >= 1);
    s->snapshots++;
    look(s);
}

static void on_samples(void *arg, struct model_sample_batch *b) {
    struct seen *s = arg;
    assert_true(b->n_samples >= 1);
    s->batches++;
    look(s);
}

static void on_reply(void *arg, enum wire_method m, const struct err *error) {
    struct seen *s = arg;
    (void)m;
    assert_null(error);
    s->replies++;
    look(s);
}

static const struct session_handler handler = {
    .on_state = on_state,
    .on_target = on_target,
    .on_snapshot = on_snapshot,
    .on_samples = on_samples,
    .on_reply = on_reply,
};

static void on_too_late(void *arg) { loop_stop(arg); }

/* Runs until s->enough says so; fails the test after ten seconds. */
static void run_until(struct seen *s, bool (*enough)(const struct seen *s)) {
    struct loop_timer *limit = loop_timer_new(s->loop, on_too_late, s->loop, NULL);
    assert_non_null(limit);
    loop_timer_set(limit, 10 * 1000 * 1000);
    s->enough = enough;
    if (!enough(s))
        loop_run(s->loop);
    loop_timer_free(limit);
    if (!enough(s))
        fail_msg("waited in vain; last: %s", s->why.text);
}

static bool is_connected(const struct seen *s) { return s->states[SESSION_CONNECTED] >= 1; }

static bool is_over(const struct seen *s) { return s->states[SESSION_FAILED] || s->states[SESSION_LOST]; }

static void start(struct seen *s, const struct target_address *addr) {
    struct err e = {0};
    *s = (struct seen){0};
    s->loop = loop_new(&e);
    assert_non_null(s->loop);
    s->session = session_new(s->loop, addr, &handler, s, &e);
    if (!s->session)
        fail_msg("%s", e.text);
}

static void finish(struct seen *s) {
    session_free(s->session);
    loop_free(s->loop);
}

/* ---- loop ---- */

struct pipe_watch {
    struct loop *loop;
    struct loop_watch *watch;
    int fd;
    unsigned calls;
};

static void on_pipe(void *arg) {
    struct pipe_watch *p = arg;
    char c;
    p->calls++;
    if (read(p->fd, &c, 1) <= 0) {
        loop_unwatch(p->watch);
        loop_stop(p->loop);
    }
}

static void check_loop_watch(void **state) {
    (void)state;
    int fds[2];
    struct err e = {0};
    assert_int_equal(pipe(fds), 0);
    struct loop *l = loop_new(&e);
    struct pipe_watch p = {.loop = l, .fd = fds[0]};
    p.watch = loop_watch_fd(l, fds[0], on_pipe, &p, &e);
    assert_non_null(p.watch);
    assert_int_equal(write(fds[1], "abc", 3), 3);
    (void)close(fds[1]); /* then a hang-up */
    loop_run(l);
    assert_int_equal(p.calls, 4);
    loop_free(l);
    /* The descriptor is as it was: open, and as blocking as before. */
    assert_int_equal(fcntl(fds[0], F_GETFL) & O_NONBLOCK, 0);
    (void)close(fds[0]);
}

static void check_loop_refuses_files(void **state) {
    (void)state;
    struct err e = {0};
    struct loop *l = loop_new(&e);
    FILE *f = tmpfile();
    assert_non_null(f);
    assert_null(loop_watch_fd(l, fileno(f), on_pipe, NULL, &e));
    assert_int_equal(e.code, ERR_FAILED);
    (void)fclose(f);
    loop_free(l);
}

struct ticks {
    struct loop *loop;
    struct loop_timer *timer, *never;
    unsigned n;
};

static void on_tick(void *arg) {
    struct ticks *t = arg;
    if (++t->n == 3) {
        loop_timer_cancel(t->never);
        loop_stop(t->loop);
    } else {
        loop_timer_set(t->timer, 1000);
    }
}

static void on_never(void *arg) {
    struct ticks *t = arg;
    t->n = 1000;
}

static void check_loop_timers(void **state) {
    (void)state;
    struct ticks t = {.loop = loop_new(NULL)};
    t.timer = loop_timer_new(t.loop, on_tick, &t, NULL);
    t.never = loop_timer_new(t.loop, on_never, &t, NULL);
    loop_timer_set(t.never, 3600ULL * 1000 * 1000);
    loop_timer_set(t.timer, 0);
    loop_run(t.loop);
    assert_int_equal(t.n, 3);
    loop_timer_free(t.timer);
    loop_timer_free(t.never);
    loop_free(t.loop);
}

/* ---- a good peer ---- */

static void check_answers(void **state) {
    (void)state;
    struct err e = {0};
    struct fake_agent *a = fake_agent_start(&(struct fake_options){FAKE_GOOD, 0, false, NULL, NULL});
    struct target_address addr = address_of(a);
    struct call *c = call_open(&addr, &e);
    if (!c)
        fail_msg("%s", e.text);
    assert_string_equal(call_get_target(c)->cmdline, "python train.py");
    struct model_snapshot s;
    assert_int_equal(call_snapshot_measured(c, 1, &s, &e), 0);
    assert_string_equal(s.threads[0].frames[0].func, "train_step");
    assert_int_equal(s.gil_tid, 41);
    model_snapshot_fini(&s);
    assert_int_equal(fake_agent_count(a, WIRE_THREADS), 2);
    struct model_status status;
    assert_int_equal(call_status(c, &status, &e), 0);
    assert_int_equal(status.clients, 1);
    assert_true(isnan(status.us_per_sample));
    model_status_fini(&status);
    assert_int_equal(call_eject(c, &e), 0);
    assert_int_equal(fake_agent_count(a, WIRE_EJECT), 1);
    call_close(c);
    fake_agent_stop(a);
}

/* A snapshot that needs chunks: many threads, deep stacks, long names. */
static void fill_big(struct model_snapshot *s) {
    enum { THREADS = 200, FRAMES = 100 };
    *s = (struct model_snapshot){.timestamp = 1, .process = {.cpu_pct = NAN}};
    arena_init(&s->arena, (size_t)64 * 1024 * 1024);
    s->n_threads = THREADS;
    s->threads = arena_calloc(&s->arena, THREADS, sizeof *s->threads);
    for (size_t i = 0; i < THREADS; i++) {
        s->threads[i] =
            (struct model_thread){.tid = (int64_t)i + 1, .state = 'S', .cpu_pct = NAN, .n_frames = FRAMES};
        s->threads[i].frames = arena_calloc(&s->arena, FRAMES, sizeof(struct model_frame));
        for (size_t k = 0; k < FRAMES; k++) {
            char func[160];
            (void)snprintf(func, sizeof func, "function_%0100zu_of_thread_%zu", k, i);
            s->threads[i].frames[k] =
                (struct model_frame){MODEL_FRAME_PYTHON, arena_strdup(&s->arena, func), "f.py", (int)k + 1};
        }
    }
    assert_false(s->arena.failed);
}

static void check_chunks(void **state) {
    (void)state;
    struct err e = {0};
    struct model_snapshot big, got;
    fill_big(&big);
    struct fake_agent *a = fake_agent_start(&(struct fake_options){FAKE_GOOD, 0, false, &big, NULL});
    struct target_address addr = address_of(a);
    struct call *c = call_open(&addr, &e);
    assert_non_null(c);
    if (call_snapshot(c, &got, &e) != 0)
        fail_msg("%s", e.text);
    assert_int_equal(got.n_threads, big.n_threads);
    for (size_t i = 0; i < big.n_threads; i++) {
        assert_int_equal(got.threads[i].n_frames, big.threads[i].n_frames);
        for (size_t k = 0; k < big.threads[i].n_frames; k++)
            assert_string_equal(got.threads[i].frames[k].func, big.threads[i].frames[k].func);
    }
    model_snapshot_fini(&got);
    model_snapshot_fini(&big);
    call_close(c);
    fake_agent_stop(a);
}

static bool streamed_twice(const struct seen *s) {
    return s->states[SESSION_CONNECTED] >= 2 && s->snapshots >= 2;
}

/* The connection breaks after hello and subscribe; the stream comes back by itself. */
static void check_reconnect_keeps_streams(void **state) {
    (void)state;
    struct fake_agent *a = fake_agent_start(&(struct fake_options){FAKE_GOOD, 2, false, NULL, NULL});
    struct target_address addr = address_of(a);
    struct seen s;
    start(&s, &addr);
    assert_int_equal(session_subscribe(s.session, WIRE_STREAM_THREADS, 4, NULL), 0);
    run_until(&s, streamed_twice);
    assert_int_equal(fake_agent_connections(a), 2);
    assert_int_equal(fake_agent_count(a, WIRE_SUBSCRIBE), 2);
    assert_true(s.states[SESSION_RECONNECTING] >= 1);
    assert_int_equal(s.states[SESSION_FAILED], 0);
    finish(&s);
    fake_agent_stop(a);
}

static bool is_reconnecting(const struct seen *s) { return s->states[SESSION_RECONNECTING] >= 1; }

static void check_backoff_is_told(void **state) {
    (void)state;
    struct fake_agent *a = fake_agent_start(&(struct fake_options){FAKE_GOOD, 1, false, NULL, NULL});
    struct target_address addr = address_of(a);
    struct seen s;
    start(&s, &addr);
    run_until(&s, is_reconnecting);
    double wait = session_retry_in_s(s.session);
    assert_true(wait > 0.1 && wait <= 0.3); /* 0.25 s with 20 % to either side, less what has passed */
    finish(&s);
    fake_agent_stop(a);
}

static void check_mute_agent_is_left(void **state) {
    (void)state;
    struct fake_agent *a = fake_agent_start(&(struct fake_options){FAKE_GOOD, 0, true, NULL, NULL});
    struct target_address addr = address_of(a);
    struct seen s;
    start(&s, &addr);
    run_until(&s, is_connected);
    assert_int_equal(session_request(s.session, WIRE_STATUS, NULL), 0);
    run_until(&s, is_reconnecting);
    assert_non_null(strstr(s.why.text, "does not answer"));
    finish(&s);
    fake_agent_stop(a);
}

/* ---- peers that are no agents ---- */

static void check_manner(enum fake_manner manner, const char *said) {
    struct err e = {0};
    struct fake_agent *a = fake_agent_start(&(struct fake_options){manner, 0, false, NULL, NULL});
    struct target_address addr = address_of(a);
    struct call *c = call_open(&addr, &e);
    assert_null(c);
    assert_int_equal(e.code, ERR_ATTACH);
    if (!strstr(e.text, said))
        fail_msg("expected \"%s\" in: %s", said, e.text);
    assert_non_null(strstr(e.text, addr.path));
    assert_null(strchr(e.text, '\n'));
    fake_agent_stop(a);
}

static void check_silent(void **state) {
    (void)state;
    check_manner(FAKE_SILENT, "does not answer");
    check_manner(FAKE_MUTE, "does not answer");
}

static void check_closes(void **state) {
    (void)state;
    check_manner(FAKE_CLOSES, "closes the connection without an answer");
}

static void check_not_websocket(void **state) {
    (void)state;
    check_manner(FAKE_GARBAGE, "does not");
    check_manner(FAKE_HTTP, "does not speak probing.v1");
    check_manner(FAKE_REDIRECT, "does not speak probing.v1");
    check_manner(FAKE_NO_PROTOCOL, "does not speak probing.v1");
}

static void check_too_long(void **state) {
    (void)state;
    check_manner(FAKE_HUGE_LENGTH, "more than 1048576 bytes");
    check_manner(FAKE_HUGE_STALLED, "more than 1048576 bytes");
    check_manner(FAKE_MANY_FRAGMENTS, "more than 1048576 bytes");
}

static void check_not_messagepack(void **state) {
    (void)state;
    check_manner(FAKE_JUNK_MESSAGE, "does not speak probing.v1");
    check_manner(FAKE_TEXT_MESSAGE, "does not speak probing.v1");
}

static void check_other_version(void **state) {
    (void)state;
    check_manner(FAKE_OLD, "another version");
}

static void check_nobody_there(void **state) {
    (void)state;
    struct err e = {0};
    struct target_address addr = {.pid = 0};
    (void)snprintf(addr.path, sizeof addr.path, "/tmp/no-agent-%d.sock", (int)getpid());
    assert_null(call_open(&addr, &e));
    assert_int_equal(e.code, ERR_ATTACH);
    assert_non_null(strstr(e.text, "nothing listens at"));

    /* A socket left by a dead process says the same. */
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    (void)snprintf(sa.sun_path, sizeof sa.sun_path, "%.100s", addr.path);
    assert_int_equal(bind(fd, (const struct sockaddr *)&sa, sizeof sa), 0);
    (void)close(fd);
    assert_null(call_open(&addr, &e));
    assert_int_equal(e.code, ERR_ATTACH);
    assert_non_null(strstr(e.text, "nothing listens at"));
    (void)unlink(addr.path);
}

static void check_path_too_long(void **state) {
    (void)state;
    struct err e = {0};
    struct target_address addr = {.pid = 0};
    memset(addr.path, 'x', 200);
    assert_null(call_open(&addr, &e));
    assert_int_equal(e.code, ERR_ATTACH);
    assert_non_null(strstr(e.text, "107 bytes"));
}

/* ---- the target's end ---- */

static void check_target_end(void **state) {
    (void)state;
    struct target_address addr = {.pid = 0};
    int told[2];
    assert_int_equal(pipe(told), 0);
    pid_t child = fork();
    if (child == 0) { /* the agent has to be the target's own */
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        struct fake_agent *a = fake_agent_start(&(struct fake_options){FAKE_GOOD, 0, false, NULL, NULL});
        addr = address_of(a);
        if (write(told[1], addr.path, sizeof addr.path) != (ssize_t)sizeof addr.path)
            _exit(1);
        for (;;)
            (void)pause();
    }
    assert_int_equal(read(told[0], addr.path, sizeof addr.path), sizeof addr.path);
    (void)close(told[0]);
    (void)close(told[1]);
    addr.pid = child;
    struct seen s;
    start(&s, &addr);
    run_until(&s, is_connected);
    assert_int_equal(kill(child, SIGKILL), 0);
    run_until(&s, is_over); /* noticed while it is a zombie */
    assert_int_equal(s.states[SESSION_LOST], 1);
    assert_int_equal(s.why.code, ERR_LOST);
    assert_int_equal(session_get_state(s.session), SESSION_LOST);
    assert_int_equal(session_request(s.session, WIRE_THREADS, NULL), -1);
    finish(&s);
    (void)waitpid(child, NULL, 0);

    struct err e = {0};
    assert_null(call_open(&addr, &e));
    assert_int_equal(e.code, ERR_LOST);
    (void)unlink(addr.path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_loop_watch),      cmocka_unit_test(check_loop_refuses_files),
        cmocka_unit_test(check_loop_timers),     cmocka_unit_test(check_answers),
        cmocka_unit_test(check_chunks),          cmocka_unit_test(check_reconnect_keeps_streams),
        cmocka_unit_test(check_backoff_is_told), cmocka_unit_test(check_mute_agent_is_left),
        cmocka_unit_test(check_silent),          cmocka_unit_test(check_closes),
        cmocka_unit_test(check_not_websocket),   cmocka_unit_test(check_too_long),
        cmocka_unit_test(check_not_messagepack), cmocka_unit_test(check_other_version),
        cmocka_unit_test(check_nobody_there),    cmocka_unit_test(check_path_too_long),
        cmocka_unit_test(check_target_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
