/* SPDX-License-Identifier: Apache-2.0 */
/*
 * known: samples the process it is loaded into as fast as it can, with the agent's own means, and writes what it saw.
 *
 * One line a distinct stack: times seen, torn, unknown frames, then the frames root first. All Python threads are looked at in
 * turn; when there is only the one that calls known_start, sampler and target run on different CPUs where there are two.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/threads.h"
#include "base/cost.h"
#include "agent/sampler/signal_sampler.h"
#include "agent/sampler/thread_sampler.h"
#include "agent/sampler/thread_timer.h"
#include "base/arena.h"
#include "base/clock.h"
#include "known/stacks.h"
#include "pystack/pystack.h"

#define KNOWN_ANSWER_NS (200 * CLOCK_NS_PER_MS)
#define KNOWN_THREADS 32

/* With timers: copies are taken so often. */
#define KNOWN_DRAIN_NS (100 * (long)CLOCK_NS_PER_MS)

static struct known {
    char path[512];
    bool exact, timed;
    long samples;
    uint64_t for_ns; /* at most so long; 0 no limit */
    pid_t tid;
    struct pystack *ps;
    struct pystack_thread threads[KNOWN_THREADS];
    size_t n_threads;
    struct pystack_known codes;
    struct signal_sampler_stats stats;
    uint64_t unanswered, undecoded, unknown, handler_ns, reads, broken;
} known;

__attribute__((visibility("default"))) int known_start(const char *path, const char *mode, long samples,
                                                       double seconds);

/* What known_profile_stop tells. */
struct known_profile_result {
    uint64_t samples, exact, torn, retried, unknown_frames, read_errors, ticks;
    uint64_t sent, late, refused, restarted, eintr, handled, handler_ns, cpu_ns;
    uint64_t cut;
    uint64_t body_ns;    /* of cpu_ns, within ticks: the rest is waking up and falling asleep */
    uint64_t deliver_ns; /* beside handler_ns, see signal_sampler.h */
    uint64_t swept;      /* ticks at which every clock was read */
};

__attribute__((visibility("default"))) int known_profile_start(double hz, const char *mode);
__attribute__((visibility("default"))) void known_profile_stop(struct known_profile_result *out);

/* Counters as of the sampler's last tick, for those who wait for it: ticks made, threads not asked. */
__attribute__((visibility("default"))) uint64_t known_profile_ticks(void);
__attribute__((visibility("default"))) uint64_t known_profile_refused(void);

static bool known_find(void) {
    struct arena arena;
    struct pystack_thread *threads;
    arena_init(&arena, 1 << 20);
    ssize_t n = pystack_read_threads(known.ps, &arena, &threads);
    for (ssize_t i = 0; i < n && known.n_threads < KNOWN_THREADS; i++) {
        known.threads[known.n_threads] = threads[i];
        known.threads[known.n_threads++].name = NULL;
    }
    arena_fini(&arena);
    return known.n_threads > 0;
}

/* One thread runs on a CPU that is not ours: its answer comes at once. Several have to wait for theirs. */
static void known_wait_a_little(void) {
    struct timespec pause = {.tv_nsec = 100 * (long)CLOCK_NS_PER_US};
    if (known.n_threads > 1)
        (void)nanosleep(&pause, NULL);
}

static bool known_runs(const struct pystack_thread *t) {
    return known.n_threads == 1 || signal_sampler_is_running(t->tid, clock_thread_cpu_ns((pid_t)t->tid));
}

/* Wait for a copy that holds together of a thread that was asked. NULL when there is none. */
static const struct pystack_self *known_answer(const struct pystack_thread *t) {
    const struct pystack_self *copy = NULL;
    uint64_t until = clock_mono_ns() + KNOWN_ANSWER_NS;
    for (;;) {
        enum signal_sampler_answer answer = signal_sampler_get(t, &copy);
        bool late = clock_mono_ns() >= until;
        if (answer == SIGNAL_SAMPLER_NONE ||
            (answer == SIGNAL_SAMPLER_READY && copy->end != PYSTACK_SELF_BROKEN))
            return copy;
        if (answer == SIGNAL_SAMPLER_READY) {
            known.broken++;
            signal_sampler_release(t);
            if (late || !signal_sampler_ask(known.ps, t, &known.codes))
                return NULL;
        } else if (answer == SIGNAL_SAMPLER_WAITING && late) {
            signal_sampler_forget(t); /* unless it begins to copy just now: then that is waited for */
        } else {
            known_wait_a_little();
        }
    }
}

static void known_take(const struct pystack_thread *t, struct arena *arena) {
    struct model_frame *frames;
    bool truncated;
    const struct pystack_self *copy = known_answer(t);
    if (!copy) {
        known.unanswered++;
        return;
    }
    known.reads += copy->reads;
    ssize_t n = pystack_self_decode(known.ps, copy, &known.codes, arena, &frames, &truncated, &known.unknown);
    if (n < 0)
        known.undecoded++;
    else
        stacks_count(frames, (size_t)n, false);
    signal_sampler_release(t);
}

/* Ask all threads that run. Number of threads that were asked: one that is still leaving the handler cannot be, for now. */
static size_t known_ask(bool *asked) {
    uint64_t until = clock_mono_ns() + KNOWN_ANSWER_NS;
    size_t n = 0;
    while (n == 0 && clock_mono_ns() < until) {
        struct timespec pause = {.tv_nsec = (long)CLOCK_NS_PER_MS};
        for (size_t i = 0; i < known.n_threads; i++) {
            const struct pystack_thread *t = &known.threads[i];
            asked[i] = known_runs(t) && signal_sampler_ask(known.ps, t, &known.codes);
            n += asked[i];
        }
        if (n == 0)
            (void)nanosleep(&pause, NULL);
    }
    return n;
}

/* Number of samples that were taken, or should have been. */
static size_t known_sample_exact(struct arena *arena) {
    bool asked[KNOWN_THREADS] = {false};
    size_t n = known_ask(asked);
    for (size_t i = 0; i < known.n_threads; i++)
        if (asked[i])
            known_take(&known.threads[i], arena);
    known.unanswered += n == 0;
    return n ? n : 1;
}

static size_t known_sample_gentle(struct arena *arena) {
    for (size_t i = 0; i < known.n_threads; i++) {
        struct model_frame *frames;
        bool torn, truncated;
        ssize_t n = pystack_read_frames(known.ps, &known.threads[i], arena, &frames, &torn, &truncated);
        if (n < 0)
            known.undecoded++;
        else
            stacks_count(frames, (size_t)n, torn);
    }
    return known.n_threads;
}

/* The arguments of known_take_record. */
struct known_taking {
    struct arena *arena;
    bool begun; /* to decode those of one thread */
    size_t n;
};

/* A copy that a timer has caused. */
static void known_take_record(void *arg, const struct pystack_self_result *copy, uint32_t weight) {
    struct known_taking *w = arg;
    struct model_frame *frames;
    bool truncated;
    (void)weight;
    known.broken += copy->end == PYSTACK_SELF_BROKEN;
    if (copy->end == PYSTACK_SELF_BROKEN)
        return;
    w->n++;
    if (!w->begun)
        pystack_self_begin(known.ps, w->arena);
    w->begun = true;
    ssize_t n = pystack_self_decode_next(known.ps, copy, &known.codes, &frames, &truncated, &known.unknown);
    if (n < 0)
        known.undecoded++;
    else
        stacks_count(frames, (size_t)n, false);
}

/* Copies that the threads' timers have caused; a thread that cannot have one yet is asked. */
static size_t known_sample_timed(struct arena *arena) {
    struct known_taking w = {.arena = arena};
    struct timespec pause = {.tv_nsec = KNOWN_DRAIN_NS};
    uint64_t tick_ns = thread_timer_tick_ns();
    for (size_t i = 0; i < known.n_threads; i++) {
        const struct pystack_thread *t = &known.threads[i];
        bool asked[KNOWN_THREADS] = {false};
        if (signal_sampler_set_timer(known.ps, t, &known.codes, tick_ns, tick_ns) !=
            SIGNAL_SAMPLER_TIMER_LATER)
            continue;
        (void)known_ask(asked);
        for (size_t k = 0; k < known.n_threads; k++)
            if (asked[k])
                known_take(&known.threads[k], arena);
    }
    (void)nanosleep(&pause, NULL);
    for (size_t i = 0; i < known.n_threads; i++) {
        w.begun = false;
        (void)signal_sampler_drain(&known.threads[i], known_take_record, &w);
    }
    return w.n;
}

static void known_write(void) {
    FILE *f = fopen(known.path, "w");
    struct err e;
    if (!f)
        return;
    (void)(known.exact && signal_sampler_check(&e));
    (void)fprintf(
        f, "unanswered %llu\nundecoded %llu\nunknown %llu\nhandler_us %.3f\nreads %.2f\nbroken %llu\n",
        (unsigned long long)known.unanswered, (unsigned long long)known.undecoded,
        (unsigned long long)known.unknown,
        known.stats.handled ? (double)known.stats.handler_ns / (double)known.stats.handled / 1e3 : 0,
        known.stats.handled ? (double)known.reads / (double)known.stats.handled : 0,
        (unsigned long long)known.broken);
    stacks_write(f);
    (void)fclose(f);
}

static void *known_main(void *arg) {
    struct timespec warm = {.tv_nsec = 100 * (long)CLOCK_NS_PER_MS};
    (void)arg;
    (void)nanosleep(&warm, NULL);
    if (!known_find())
        _exit(3);
    if (known.n_threads == 1)
        stacks_pin(known.tid);
    uint64_t began = clock_mono_ns();
    for (long taken = 0;
         taken < known.samples && (known.for_ns == 0 || clock_mono_ns() - began < known.for_ns);) {
        struct arena arena;
        arena_init(&arena, 1 << 22);
        taken += (long)(known.timed   ? known_sample_timed(&arena)
                        : known.exact ? known_sample_exact(&arena)
                                      : known_sample_gentle(&arena));
        arena_fini(&arena);
        stacks_pause();
    }
    known_write();
    signal_sampler_disarm();
    _exit(0);
}

int known_start(const char *path, const char *mode, long samples, double seconds) {
    struct err e = {0};
    pthread_t thread;
    sigset_t all, before;
    (void)snprintf(known.path, sizeof known.path, "%s", path);
    known.timed = strcmp(mode, "timed") == 0;
    known.exact = known.timed || strcmp(mode, "exact") == 0;
    known.samples = samples;
    known.for_ns = (uint64_t)(seconds * 1e9);
    known.tid = (pid_t)syscall(SYS_gettid);
    known.ps = pystack_open(0, &e);
    if (stacks_init() != 0 || !known.ps || (known.exact && signal_sampler_arm(&known.stats, &e) != 0)) {
        (void)fprintf(stderr, "%s\n", e.text);
        return -1;
    }
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&thread, NULL, known_main, NULL);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

/* ---- all threads at a rate, as the agent does it but without a budget ---- */

static struct known_profile {
    pthread_t thread;
    double hz;
    bool stop, timed;
    struct pystack *ps;
    struct thread_sampler profile;
    struct signal_sampler_stats stats;
    uint64_t ticks, cpu_ns;
    uint64_t drained_ns;
    uint64_t body_ns;
    uint64_t warm_ticks, warm_cpu_ns,
        warm_body_ns; /* of the first two seconds, in which everything is seen for the first time */
    struct signal_sampler_stats warm;
} known_profile;

static void known_drop_batch(void *arg) { (void)arg; }

/* The ticks since the last drain, which was at `due` less the time until this one. */
static void known_profile_drain(uint64_t due, uint64_t mean) {
    struct thread_sampler *p = &known_profile.profile;
    double epoch_s = clock_mono_to_epoch_s();
    for (uint64_t at = known_profile.drained_ns; known_profile.drained_ns && at < due; at += mean)
        thread_sampler_pass(p, known_profile.ps, epoch_s + (double)at / 1e9);
    known_profile.drained_ns = due;
    thread_sampler_drain(p, known_profile.ps, mean);
}

static void *known_profile_main(void *arg) {
    struct cost_pace pace;
    struct err e;
    uint64_t mean = (uint64_t)(1e9 / known_profile.hz), due = clock_mono_ns();
    (void)arg;
    uint64_t warm_ns = due + 2 * CLOCK_NS_PER_S;
    threads_begin("known");
    cost_pace_init(&pace, due);
    while (!__atomic_load_n(&known_profile.stop, __ATOMIC_RELAXED)) {
        uint64_t body = clock_self_cpu_ns();
        known_profile.profile.exact = signal_sampler_is_armed() && signal_sampler_check(&e) == 0;
        if (known_profile.timed)
            known_profile_drain(due, mean);
        else
            thread_sampler_tick(&known_profile.profile, known_profile.ps, mean);
        known_profile.body_ns += clock_self_cpu_ns() - body;
        (void)__atomic_add_fetch(&known_profile.ticks, 1, __ATOMIC_RELAXED);
        if (known_profile.warm_ticks == 0 && clock_mono_ns() > warm_ns) {
            known_profile.warm_ticks = known_profile.ticks;
            known_profile.warm_cpu_ns = clock_self_cpu_ns();
            known_profile.warm_body_ns = known_profile.body_ns;
            known_profile.warm = known_profile.stats;
        }
        due += known_profile.timed ? known_profile.profile.drain_ns : cost_pace_next_ns(&pace, mean);
        struct timespec ts = {.tv_sec = (time_t)(due / CLOCK_NS_PER_S),
                              .tv_nsec = (long)(due % CLOCK_NS_PER_S)};
        (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
    }
    thread_sampler_collect(&known_profile.profile, known_profile.ps);
    signal_sampler_stop_timers();
    known_profile.cpu_ns = clock_self_cpu_ns();
    threads_end();
    (void)(signal_sampler_is_armed() && signal_sampler_check(&e));
    signal_sampler_disarm();
    return NULL;
}

int known_profile_start(double hz, const char *mode) {
    struct err e = {0};
    sigset_t all, before;
    known_profile = (struct known_profile){.hz = hz, .timed = strcmp(mode, "timed") == 0};
    known_profile.ps = pystack_open(0, &e);
    if (!known_profile.ps || thread_sampler_init(&known_profile.profile, known_drop_batch, NULL) != 0 ||
        (strcmp(mode, "gentle") != 0 && signal_sampler_arm(&known_profile.stats, &e) != 0)) {
        (void)fprintf(stderr, "%s\n", e.text);
        return -1;
    }
    thread_sampler_set_timed(&known_profile.profile, known_profile.ps, known_profile.timed);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&known_profile.thread, NULL, known_profile_main, NULL);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

uint64_t known_profile_ticks(void) { return __atomic_load_n(&known_profile.ticks, __ATOMIC_RELAXED); }

uint64_t known_profile_refused(void) {
    return __atomic_load_n(&known_profile.stats.refused, __ATOMIC_RELAXED);
}

void known_profile_stop(struct known_profile_result *out) {
    __atomic_store_n(&known_profile.stop, true, __ATOMIC_RELAXED);
    (void)pthread_join(known_profile.thread, NULL);
    const struct thread_sampler *p = &known_profile.profile;
    const struct signal_sampler_stats *x = &known_profile.stats;
    *out = (struct known_profile_result){.samples = p->total_samples,
                                         .exact = p->total_exact,
                                         .torn = p->total_torn,
                                         .retried = p->total_retried,
                                         .unknown_frames = p->unknown_frames,
                                         .read_errors = p->read_errors,
                                         .ticks = known_profile.ticks - known_profile.warm_ticks,
                                         .sent = x->sent + x->expired,
                                         .late = x->late,
                                         .refused = x->refused,
                                         .restarted = x->restarted,
                                         .eintr = x->eintr,
                                         .handled = x->handled - known_profile.warm.handled,
                                         .handler_ns = x->handler_ns - known_profile.warm.handler_ns,
                                         .cpu_ns = known_profile.cpu_ns - known_profile.warm_cpu_ns,
                                         .cut = p->total_cut,
                                         .deliver_ns = x->deliver_ns - known_profile.warm.deliver_ns,
                                         .swept = p->total_swept,
                                         .body_ns = known_profile.body_ns - known_profile.warm_body_ns};
    thread_sampler_fini(&known_profile.profile);
    pystack_close(known_profile.ps);
}
