/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process has left: its last state, the moments before and its samples, as a session gives them; how it ended.
 */
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/procfs.h"
#include "client/session/call.h"
#include "client/sql/database.h"
#include "client/target/exit_reason.h"
#include "client/sql/recording.h"
#include "client/target/target.h"
#include "store/ring/ring_dir.h"
#include "unit/store_job.h"

#define T0 1700000000.0
#define SAMPLES 12000 /* 120 s */
#define LAST (T0 + (SAMPLES - 1) * 0.01)

static struct job job;

static void put_threads(double at, const char *name, int64_t tid, int state) {
    static struct ring *r;
    if (!r)
        r = job_table(&job, &RING_TABLES[RING_THREAD_HISTORY], 64 * 1024);
    union ring_value v[RING_THREAD_HISTORY_COUNT];
    for (int i = 0; i < RING_THREAD_HISTORY_COUNT; i++)
        v[i].i = RING_INT_NULL;
    v[RING_THREAD_HISTORY_TIMESTAMP].f = at;
    v[RING_THREAD_HISTORY_TID].i = tid;
    v[RING_THREAD_HISTORY_NAME].s = NULL;
    v[RING_THREAD_HISTORY_NATIVE_NAME].s = name;
    v[RING_THREAD_HISTORY_STATE].i = state;
    v[RING_THREAD_HISTORY_CPU_PCT].f = 12.5;
    v[RING_THREAD_HISTORY_WCHAN].s = NULL;
    assert_int_equal(ring_append(r, v), 0);
    assert_int_equal(ring_flush(r), 0);
}

static void put_fact(struct ring *r, double at, const char *key, const char *value) {
    union ring_value v[RING_FACTS_COUNT];
    v[RING_FACTS_TIMESTAMP].f = at;
    v[RING_FACTS_KEY].s = key;
    v[RING_FACTS_VALUE].s = value;
    assert_int_equal(ring_append(r, v), 0);
    assert_int_equal(ring_flush(r), 0);
}

static void put_facts(void) {
    struct ring *r = job_table(&job, &RING_TABLES[RING_FACTS], 64 * 1024);
    put_fact(r, T0, RING_FACT_CMD, "python train.py --lr 1");
    put_fact(r, T0, RING_FACT_EXE, "/usr/bin/python3");
    put_fact(r, T0, RING_FACT_STARTED_AT, "1699999990.500");
    put_fact(r, T0, RING_FACT_AGENT, "9.8.7");
    put_fact(r, T0 + 1, RING_FACT_PYTHON, "3.10.0");
    put_fact(r, T0 + 2, RING_FACT_PYTHON, NULL);
    put_fact(r, T0 + 3, RING_FACT_PYTHON, "3.11.2");
    put_fact(r, T0 + 4, "of a later release", "1");
    put_fact(r, LAST - 1, RING_FACT_PYTHON, NULL);
    ring_close(r);
}

static int make_job(void **state) {
    (void)state;
    job_make(&job, 100, 2);
    job_samples(&job, T0, SAMPLES);
    put_facts();
    put_threads(LAST - 20, "gone", 105, 1);
    put_threads(LAST - 0.5, "python", 100, 0);
    put_threads(LAST - 0.5, "native", 104, 1);
    return 0;
}

static int remove_job(void **state) {
    (void)state;
    job_remove(&job);
    return 0;
}

static struct call *open_call(void) {
    struct err e = {.text = ""};
    struct target_address addr;
    if (target_resolve(job.dir, &addr, &e) != 0)
        fail_msg("%s", e.text);
    struct call *c = call_open(&addr, &e);
    if (!c)
        fail_msg("%s", e.text);
    return c;
}

static void the_target_says_that_it_is_past(void **state) {
    (void)state;
    struct call *c = open_call();
    const struct model_target *t = call_get_target(c);
    assert_int_equal(t->mode, MODEL_MODE_RECORDED);
    assert_string_equal(model_mode_name(t->mode), "recorded");
    assert_int_equal(t->pid, 100);
    assert_int_equal(t->rank, 2);
    assert_string_equal(t->host, "here");
    assert_true(fabs(t->seen_until - LAST) < 1e-3);
    assert_string_equal(t->mode_reason, "last seen 2023-11-14 22:15:19Z; exit status unknown: it left no "
                                        "record; its interpreter had ended by then");
    assert_string_equal(t->cmdline, "python train.py --lr 1");
    assert_string_equal(t->exe, "/usr/bin/python3");
    assert_string_equal(t->python, "3.11.2");
    assert_null(t->torch);
    assert_string_equal(t->agent_version, "9.8.7");
    assert_true(fabs(t->started_at - 1699999990.5) < 1e-6);
    call_close(c);
}

static const struct model_thread *find(const struct model_snapshot *s, int64_t tid) {
    for (size_t i = 0; i < s->n_threads; i++)
        if (s->threads[i].tid == tid)
            return &s->threads[i];
    return NULL;
}

static void the_last_state_is_a_snapshot(void **state) {
    (void)state;
    struct err e;
    struct model_snapshot s;
    struct call *c = open_call();
    assert_int_equal(call_snapshot(c, &s, &e), 0);
    assert_true(fabs(s.timestamp - LAST) < 1e-3);
    assert_int_equal(s.n_threads, 5);
    assert_null(find(&s, 105)); /* it had ended before */
    const struct model_thread *main = find(&s, 100), *last = find(&s, 103), *native = find(&s, 104);
    assert_ptr_equal(main, &s.threads[0]);
    assert_string_equal(main->name, "MainThread");
    assert_string_equal(main->native_name, "python");
    assert_int_equal(main->state, 'R');
    assert_true(main->cpu_pct == 12.5);
    /* Sample 11999 is of thread 103 and stack 5; 11996 of thread 100 and stack 2. */
    assert_int_equal(last->n_frames, 5);
    assert_string_equal(last->frames[0].func, "f5");
    assert_int_equal(last->frames[0].line, 50);
    assert_string_equal(last->frames[4].func, "f1");
    assert_null(last->name);
    assert_int_equal(last->state, '?');
    assert_int_equal(main->n_frames, 2);
    assert_true(main->has_python && !main->truncated);
    assert_false(native->has_python);
    assert_int_equal(native->n_frames, 0);
    assert_int_equal(native->gil, MODEL_GIL_UNKNOWN);
    model_snapshot_fini(&s);
    /* Again, and of one thread: nothing is used up. */
    struct wire_threads want = {.tid = 103, .locals = true};
    assert_int_equal(call_details(c, &want, &s, &e), 0);
    assert_int_equal(s.n_threads, 1);
    assert_null(s.threads[0].locals);
    assert_non_null(strstr(s.note, "not kept"));
    model_snapshot_fini(&s);
    call_close(c);
}

struct counted {
    size_t batches, samples, frames, stacks;
    double first, last, period_us;
};

static int count_batch(void *arg, struct model_sample_batch *b) {
    struct counted *n = arg;
    n->batches++;
    n->samples += b->n_samples;
    n->frames += b->n_frames;
    n->stacks += b->n_stacks;
    n->period_us = b->period_us;
    if (b->n_samples) {
        n->first = n->first > 0 ? n->first : b->samples[0].timestamp;
        assert_true(b->samples[0].timestamp >= n->last);
        n->last = b->samples[b->n_samples - 1].timestamp;
        assert_true(n->last - b->samples[0].timestamp < 1);
    }
    return 0;
}

static void all_samples_are_a_stream(void **state) {
    (void)state;
    struct err e;
    struct counted n = {0};
    double elapsed;
    struct call *c = open_call();
    assert_int_equal(call_sample(c, 100, 0, count_batch, &n, &elapsed, &e), 0);
    assert_int_equal(n.samples, SAMPLES);
    assert_int_equal(n.frames, 5);
    assert_int_equal(n.stacks, 5);
    assert_in_range(n.batches, 120, 121);
    assert_true(fabs(n.last - LAST) < 1e-3);
    assert_true(fabs(n.first - T0) < 1e-3);
    assert_true(fabs(n.period_us - 10000) < 100);
    call_close(c);
}

static void agents_are_not_to_be_had(void **state) {
    (void)state;
    struct err e;
    struct target_address addr;
    struct target_options block = {.block = true}, none = {0};
    assert_int_equal(target_resolve(job.dir, &addr, &e), 0);
    assert_int_equal(target_reach(&addr, &none, &e), 0);
    assert_int_equal(target_attach(&addr, 0, NULL, &e), -1);
    assert_int_equal(e.code, ERR_LOST);
    assert_int_equal(target_find_endpoint(&addr, &e), -1);
    assert_non_null(strstr(e.text, "has ended"));
    assert_int_equal(target_reach(&addr, &block, &e), -1);
    assert_int_equal(e.code, ERR_USAGE);
    struct model_status status;
    struct call *c = open_call();
    assert_int_equal(call_status(c, &status, &e), -1);
    assert_int_equal(e.code, ERR_LOST);
    call_close(c);
    struct job empty;
    job_make(&empty, 1, 0);
    assert_int_equal(target_resolve(empty.dir, &addr, &e), -1);
    assert_int_equal(e.code, ERR_ATTACH);
    job_remove(&empty);
}

static void a_damaged_folder_is_told_in_a_line(void **state) {
    (void)state;
    struct job bad;
    struct err e = {.text = ""};
    struct target_address addr;
    char path[128];
    job_make(&bad, 1, 0);
    (void)snprintf(path, sizeof path, "%s/python.samples%s", bad.dir, RING_DIR_SUFFIX);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    (void)fputs("no table", f);
    (void)fclose(f);
    assert_int_equal(target_resolve(bad.dir, &addr, &e), 0);
    struct call *c = call_open(&addr, &e);
    if (c)
        fail_msg("opened");
    assert_non_null(strstr(e.text, "python.samples"));
    job_remove(&bad);
}

static void trouble_is_what_was_killed_or_has_failed(void **state) {
    (void)state;
    assert_true(exit_reason_is_trouble("killed by signal 9 (Killed)"));
    assert_true(exit_reason_is_trouble("the kernel killed it because memory ran out, according to its log"));
    assert_true(exit_reason_is_trouble("it exited with status 1"));
    assert_true(exit_reason_is_trouble("it exited with status 10"));
    assert_false(exit_reason_is_trouble("it exited with status 0"));
    assert_false(exit_reason_is_trouble("exit status unknown: it left no record"));
    assert_false(exit_reason_is_trouble(""));
}

static void the_kernel_may_know_how_it_ended(void **state) {
    (void)state;
    double at = 0;
    assert_true(exit_reason_parse_kmsg(
        "3,1234,98765432,-;Out of memory: Killed process 42 (python) total-vm:1kB", 42, &at));
    assert_true(at == 98.765432);
    assert_false(
        exit_reason_parse_kmsg("3,1234,98765432,-;Out of memory: Killed process 421 (python)", 42, &at));
    assert_false(exit_reason_parse_kmsg("Killed process 42 (python)", 42, &at));
    assert_false(exit_reason_parse_kmsg("", 42, &at));
    struct rings_place place = {.modified_at = 1};
    char text[256];
    pid_t pid = fork();
    if (pid == 0)
        for (;;)
            (void)pause();
    assert_true(pid > 0);
    assert_false(procfs_is_gone(pid));
    assert_int_equal(kill(pid, SIGKILL), 0);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0); /* it stays a zombie */
    assert_true(procfs_is_gone(pid));
    exit_reason_explain(&place, pid, text, sizeof text);
    assert_string_equal(text, "killed by signal 9 (Killed)");
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    exit_reason_explain(&place, pid, text, sizeof text);
    assert_non_null(strstr(text, "unknown"));
}

/* main calls C, which calls back: f below it; the same without C; and a stack whose caller was overwritten. */
static void native_frames_are_left_out(void **state) {
    struct model_frame_def frames[] = {
        {1, {.func = "main"}}, {2, {.kind = MODEL_FRAME_NATIVE, .func = "qsort"}}, {3, {.func = "f"}}};
    struct model_stack_def stacks[] = {{1, 0, 1}, {2, 1, 2}, {3, 2, 3}, {4, 3, 2},
                                       {5, 1, 3}, {6, 0, 2}, {9, 8, 3}, {10, 9, 2}};
    struct model_sample samples[] = {{.stack_id = 1}, {.stack_id = 2}, {.stack_id = 3},  {.stack_id = 4},
                                     {.stack_id = 5}, {.stack_id = 6}, {.stack_id = 10}, {.stack_id = 77}};
    static const uint32_t expected[] = {1, 1, 3, 3, 3, 0, 9, 77};
    struct recording p = {
        .frames = frames, .n_frames = 3, .stacks = stacks, .n_stacks = 8, .samples = samples, .n_samples = 8};
    (void)state;
    assert_int_equal(recording_strip_native(&p), 0);
    for (size_t i = 0; i < p.n_samples; i++)
        assert_int_equal(p.samples[i].stack_id, expected[i]);
    assert_int_equal(p.n_stacks, 3);
    assert_true(stacks[0].stack_id == 1 && stacks[0].parent_id == 0);
    assert_true(stacks[1].stack_id == 3 && stacks[1].parent_id == 1 && stacks[1].frame_id == 3);
    assert_true(stacks[2].stack_id == 9 && stacks[2].parent_id == 8);
    frames[1].frame.kind = MODEL_FRAME_PYTHON; /* nothing to do */
    assert_int_equal(recording_strip_native(&p), 0);
    assert_int_equal(p.n_stacks, 3);
}

/* Moments, against all samples up to each of them, looked through one by one. */
static void moments_are_what_was_then(void **state) {
    (void)state;
    struct err e;
    struct recording p;
    struct target_address addr;
    struct database *d = database_open(&e);
    assert_int_equal(target_resolve(job.dir, &addr, &e), 0);
    assert_int_equal(database_add(d, &addr, &e), 0);
    assert_int_equal(recording_load(&p, d, 0, &e), 0);
    assert_in_range(p.n_moments, 478, 481);
    assert_false(p.is_cut);
    size_t with_gone = 0;
    for (size_t m = 0; m < p.n_moments; m++) {
        struct model_snapshot s;
        assert_int_equal(recording_make_snapshot_at(&p, m, &s), 0);
        double at = s.timestamp;
        assert_true(m == 0 || (at > p.moments[m - 1] && at - p.moments[m - 1] < 0.5));
        assert_true(at < LAST);
        size_t held = 0;
        for (int64_t tid = 100; tid < 106; tid++) {
            const struct model_sample *last = NULL;
            for (size_t i = 0; i < p.n_samples; i++)
                if (p.samples[i].tid == tid && p.samples[i].timestamp <= at &&
                    at - p.samples[i].timestamp <= RECORDING_RECENT_S)
                    last = &p.samples[i];
            const struct model_thread *t = find(&s, tid);
            assert_int_equal(t && t->has_python, last != NULL);
            if (last) /* stack N has N frames */
                assert_int_equal(t->n_frames, last->stack_id);
            held += t && t->gil == MODEL_GIL_HOLDING;
        }
        assert_true(held <= 1);
        const struct model_thread *gone = find(&s, 105);
        assert_int_equal(gone != NULL, at >= LAST - 20 - 1e-3 && at <= LAST - 20 + RECORDING_RECENT_S + 1e-3);
        with_gone += gone != NULL;
        if (gone) {
            assert_string_equal(gone->native_name, "gone");
            assert_false(gone->has_python);
            assert_true(gone->cpu_pct == 12.5);
        }
        model_snapshot_fini(&s);
    }
    assert_in_range(with_gone, 11, 13);
    recording_fini(&p);
    database_close(d);
}

static void open_past(struct recording *p, const struct job *of, size_t max_rows, struct database **d) {
    struct err e = {.text = ""};
    struct target_address addr;
    *d = database_open(&e);
    assert_int_equal(target_resolve(of->dir, &addr, &e), 0);
    assert_int_equal(database_add(*d, &addr, &e), 0);
    if (recording_load(p, *d, max_rows, &e) != 0)
        fail_msg("%s", e.text);
}

/* What is too long is read from its end, and said to be. */
static void the_end_of_what_is_too_long(void **state) {
    enum { MAX = 3000 };
    struct recording p;
    struct database *d;
    struct model_target t;
    (void)state;
    open_past(&p, &job, MAX, &d);
    assert_true(p.is_cut);
    assert_true(p.n_samples <= MAX && p.n_samples > MAX * 14 / 16);
    assert_true(fabs(p.samples[p.n_samples - 1].timestamp - LAST) < 1e-3);
    assert_true(fabs(p.samples[0].timestamp - (LAST - (double)(p.n_samples - 1) * 0.01)) < 1e-3);
    assert_true(fabs(p.moments[0] - p.from) < RECORDING_SNAPSHOT_S);
    assert_int_equal(recording_make_target(&p, "", &t), 0);
    assert_true(t.seen_is_cut);
    model_target_fini(&t);
    recording_fini(&p);
    database_close(d);
}

/* Eighteen minutes: from the first to the last, in any order; a quarter of a second apart there would be too many. */
static void moments_of_a_long_time(void **state) {
    enum { LONG = 110000 };
    struct recording p;
    struct job of;
    struct database *d;
    (void)state;
    job_make(&of, 100, 2);
    job_samples(&of, T0, LONG);
    open_past(&p, &of, 0, &d);
    assert_false(p.is_cut);
    assert_int_equal(p.n_samples, LONG);
    assert_in_range(p.n_moments, 2190, RECORDING_SNAPSHOTS);
    assert_true(p.moments[0] - T0 < RECORDING_SNAPSHOT_S);
    assert_true(p.seen_until - p.moments[p.n_moments - 1] < 2 * RECORDING_SNAPSHOT_S);
    for (size_t m = 1; m < p.n_moments; m++)
        assert_true(p.moments[m] > p.moments[m - 1] &&
                    p.moments[m] - p.moments[m - 1] < 3 * RECORDING_SNAPSHOT_S);
    const size_t order[] = {p.n_moments - 1, 7, 8, 1000, 0, 999};
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        struct model_snapshot s;
        assert_int_equal(recording_make_snapshot_at(&p, order[i], &s), 0);
        long row = lround((s.timestamp - T0) / 0.01); /* the newest then, of thread 100 + row % 4 */
        for (long back = 0; back < 4 && back <= row; back++) {
            const struct model_thread *t = find(&s, 100 + (row - back) % 4);
            assert_int_equal(t->n_frames, 1 + (row - back) % 5);
        }
        model_snapshot_fini(&s);
    }
    recording_fini(&p);
    database_close(d);
    job_remove(&of);
}

static void put_standing_sample(struct ring *r, double at, int64_t tid, bool on_cpu, int64_t stack) {
    union ring_value v[RING_SAMPLES_COUNT] = {[RING_SAMPLES_TIMESTAMP].f = at,
                                              [RING_SAMPLES_TID].i = tid,
                                              [RING_SAMPLES_THREAD].s = tid == 100 ? "main" : "other",
                                              [RING_SAMPLES_STACK_ID].i = stack,
                                              [RING_SAMPLES_ON_CPU].i = on_cpu};
    assert_int_equal(ring_append(r, v), 0);
}

/* Thread 101 runs, stands from the 5th second to the 15th, and runs; what it waits for was written in the 8th. Thread 100 sleeps
 * all the time, and nothing was written of it; thread 102 stands, in one function after the other. */
static void what_threads_waited_for(void **state) {
    struct recording p;
    struct job of;
    struct database *d;
    (void)state;
    job_make(&of, 100, 2);
    job_stacks(&of);
    struct ring *samples = job_sample_table(&of, 1000),
                *waits = job_table(&of, &RING_TABLES[RING_WAITS], 64 * 1024);
    for (int i = 0; i < 200; i++) {
        put_standing_sample(samples, T0 + i * 0.1, 100, false, 1);
        put_standing_sample(samples, T0 + i * 0.1, 101, i < 50 || i >= 150, 2);
        put_standing_sample(samples, T0 + i * 0.1, 102, false, i < 100 ? 3 : 4);
    }
    for (int64_t tid = 101; tid <= 102; tid++) {
        union ring_value v[RING_WAITS_COUNT] = {[RING_WAITS_TIMESTAMP].f = T0 + 8,
                                                [RING_WAITS_TID].i = tid,
                                                [RING_WAITS_KIND].s = "lock",
                                                [RING_WAITS_WHAT].s = "Lock a",
                                                [RING_WAITS_WAITS_TID].i = 100,
                                                [RING_WAITS_HOLDER].i = 1,
                                                [RING_WAITS_WAITS_PID].i = RING_INT_NULL,
                                                [RING_WAITS_WAITS_S].f = 3,
                                                [RING_WAITS_DEADLOCK].i = 1};
        assert_int_equal(ring_append(waits, v), 0);
    }
    ring_close(samples);
    ring_close(waits);
    open_past(&p, &of, 0, &d);
    assert_in_range(p.n_moments, 78, 82);
    for (size_t i = 0; i < 2 * p.n_moments; i++) { /* forward, and backward */
        struct model_snapshot s;
        assert_int_equal(recording_make_snapshot_at(&p, i < p.n_moments ? i : 2 * p.n_moments - 1 - i, &s),
                         0);
        double at = s.timestamp - T0;
        const struct model_wait *w = &find(&s, 101)->wait, *other = &find(&s, 102)->wait;
        if (at < 4.95 || at > 14.95) /* it runs */
            assert_int_equal(w->kind, MODEL_WAIT_UNKNOWN);
        else if (at < 7.95)
            assert_int_equal(w->kind, MODEL_WAIT_UNRECORDED);
        else {
            assert_int_equal(w->kind, MODEL_WAIT_LOCK);
            assert_string_equal(w->what, "Lock a");
            assert_int_equal(w->tid, 100);
            assert_int_equal(w->flags, MODEL_WAIT_LIKELY | MODEL_WAIT_DEADLOCK);
            assert_true(fabs((double)w->for_us / 1e6 - (3 + at - 8)) < 0.01);
        }
        /* another stack is another wait */
        assert_int_equal(other->kind, at < 7.95 || at > 9.95 ? MODEL_WAIT_UNRECORDED : MODEL_WAIT_LOCK);
        assert_int_equal(find(&s, 100)->wait.kind, MODEL_WAIT_UNRECORDED);
        assert_non_null(strstr(s.note, "had not run for two seconds"));
        model_snapshot_fini(&s);
    }
    struct model_snapshot s;
    assert_int_equal(recording_make_snapshot(&p, &s), 0);
    assert_int_equal(find(&s, 101)->wait.kind, MODEL_WAIT_UNKNOWN);
    assert_int_equal(find(&s, 100)->wait.kind, MODEL_WAIT_UNRECORDED);
    model_snapshot_fini(&s);
    recording_fini(&p);
    database_close(d);
    job_remove(&of);
}

/* A clock that was wrong for a while: a recording with a hole of years is as short as what is in it. */
static void a_hole_of_years(void **state) {
    struct recording p;
    struct job of;
    struct database *d;
    size_t next = 0, batches = 0;
    (void)state;
    job_make(&of, 100, 2);
    job_samples(&of, T0, 1000);
    open_past(&p, &of, 0, &d);
    for (size_t i = 0; i < 500; i++)
        p.samples[i].timestamp -= 1e9;
    size_t n_moments = p.n_moments;
    p.n_moments = 0;
    assert_int_equal(recording_find_snapshots(&p), 0);
    assert_in_range(p.n_moments, n_moments - 1, n_moments + 1);
    for (; next < p.n_samples; batches++) {
        struct model_sample_batch b;
        assert_int_equal(recording_make_batch(&p, &next, &b), 0);
        assert_true(b.n_samples > 0);
        model_sample_batch_fini(&b);
    }
    assert_in_range(batches, 10, 12);
    recording_fini(&p);
    database_close(d);
    job_remove(&of);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_target_says_that_it_is_past),
        cmocka_unit_test(the_last_state_is_a_snapshot),
        cmocka_unit_test(moments_are_what_was_then),
        cmocka_unit_test(the_end_of_what_is_too_long),
        cmocka_unit_test(moments_of_a_long_time),
        cmocka_unit_test(a_hole_of_years),
        cmocka_unit_test(what_threads_waited_for),
        cmocka_unit_test(all_samples_are_a_stream),
        cmocka_unit_test(agents_are_not_to_be_had),
        cmocka_unit_test(a_damaged_folder_is_told_in_a_line),
        cmocka_unit_test(native_frames_are_left_out),
        cmocka_unit_test(trouble_is_what_was_killed_or_has_failed),
        cmocka_unit_test(the_kernel_may_know_how_it_ended),
    };
    return cmocka_run_group_tests_name("client_past", tests, make_job, remove_job);
}
