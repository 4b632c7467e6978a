/* SPDX-License-Identifier: Apache-2.0 */
/*
 * known: samples the process it is loaded into as fast as it can, with the agent's own means, and writes what it saw.
 *
 * One line a distinct stack: times seen, torn, unknown frames, then the frames root first. The thread that calls
 * known_start is the one looked at; sampler and target run on different CPUs where there are two.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/cost.h"
#include "agent/exact.h"
#include "agent/profile.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/strbuf.h"
#include "pystack/pystack.h"

#define KNOWN_STACKS (1U << 17)
#define KNOWN_ANSWER_NS (200 * CLOCK_NS_PER_MS)
#define KNOWN_PAUSE_NS 20000 /* on average, between two samples */

struct known_stack {
    char *text;
    uint64_t seen, torn;
};

static struct known {
    char path[512];
    bool exact;
    long samples;
    pid_t tid;
    struct pystack *ps;
    struct pystack_thread thread;
    struct pystack_known codes;
    struct exact_stats stats;
    struct known_stack *stacks;
    size_t n_stacks;
    uint64_t unanswered, undecoded, unknown, handler_ns, reads, broken;
    uint64_t random;
} known;

__attribute__((visibility("default"))) int known_start(const char *path, const char *mode, long samples);

/* What known_profile_stop tells. */
struct known_profile_result {
    uint64_t samples, exact, torn, retried, unknown_frames, read_errors, ticks;
    uint64_t sent, late, refused, restarted, eintr, handled, handler_ns, cpu_ns;
    uint64_t cut;
};

__attribute__((visibility("default"))) int known_profile_start(double hz, const char *mode);
__attribute__((visibility("default"))) void known_profile_stop(struct known_profile_result *out);

/* Counters as of the sampler's last tick, for those who wait for it: ticks made, threads not asked. */
__attribute__((visibility("default"))) uint64_t known_profile_ticks(void);
__attribute__((visibility("default"))) uint64_t known_profile_refused(void);

static void known_count(const struct model_frame *frames, size_t n, bool torn) {
    struct strbuf b;
    strbuf_init(&b, 1 << 20);
    for (size_t i = n; i-- > 0;)
        (void)strbuf_addf(&b, "\t%s\t%s\t%d", frames[i].func ? frames[i].func : "?",
                          frames[i].file ? frames[i].file : "?", frames[i].line);
    const char *text = strbuf_str(&b);
    size_t at = hash_bytes(text, strlen(text)) % KNOWN_STACKS;
    while (known.stacks[at].text && strcmp(known.stacks[at].text, text) != 0)
        at = (at + 1) % KNOWN_STACKS;
    if (!known.stacks[at].text && known.n_stacks < KNOWN_STACKS / 2) {
        known.stacks[at].text = strdup(text);
        known.n_stacks++;
    }
    known.stacks[at].seen++;
    known.stacks[at].torn += torn;
    strbuf_fini(&b);
}

static bool known_find(void) {
    struct arena arena;
    struct pystack_thread *threads;
    bool found = false;
    arena_init(&arena, 1 << 20);
    ssize_t n = pystack_read_threads(known.ps, &arena, &threads);
    for (ssize_t i = 0; i < n; i++)
        if (threads[i].tid == known.tid) {
            known.thread = threads[i];
            known.thread.name = NULL;
            found = true;
        }
    arena_fini(&arena);
    return found;
}

/* Ask until there is a copy that holds together. NULL when there is none. */
static const struct pystack_self *known_ask(void) {
    const struct pystack_self *copy = NULL;
    uint64_t until = clock_mono_ns() + KNOWN_ANSWER_NS;
    while (clock_mono_ns() < until && exact_ask(known.ps, &known.thread, &known.codes)) {
        while (exact_get(&known.thread, &copy) != EXACT_READY && clock_mono_ns() < until) {
        }
        if (!copy)
            exact_forget(&known.thread);
        if (!copy || copy->end != PYSTACK_SELF_BROKEN)
            return copy;
        known.broken++;
        exact_release(&known.thread);
    }
    return NULL;
}

static void known_sample_exact(struct arena *arena) {
    struct model_frame *frames;
    bool truncated;
    const struct pystack_self *copy = known_ask();
    if (!copy) {
        known.unanswered++;
        return;
    }
    known.reads += copy->reads;
    ssize_t n = pystack_self_decode(known.ps, copy, &known.codes, arena, &frames, &truncated, &known.unknown);
    if (n < 0)
        known.undecoded++;
    else
        known_count(frames, (size_t)n, false);
    exact_release(&known.thread);
}

static void known_sample_gentle(struct arena *arena) {
    struct model_frame *frames;
    bool torn, truncated;
    ssize_t n = pystack_read_frames(known.ps, &known.thread, arena, &frames, &torn, &truncated);
    if (n < 0)
        known.undecoded++;
    else
        known_count(frames, (size_t)n, torn);
}

static void known_pause(void) {
    known.random = hash_mix(known.random + 1);
    uint64_t until = clock_mono_ns() + known.random % (2 * KNOWN_PAUSE_NS);
    while (clock_mono_ns() < until) {
    }
}

static void known_write(void) {
    FILE *f = fopen(known.path, "w");
    struct err e;
    if (!f)
        return;
    (void)(known.exact && exact_check(&e));
    (void)fprintf(
        f, "unanswered %llu\nundecoded %llu\nunknown %llu\nhandler_us %.3f\nreads %.2f\nbroken %llu\n",
        (unsigned long long)known.unanswered, (unsigned long long)known.undecoded,
        (unsigned long long)known.unknown,
        known.stats.handled ? (double)known.stats.handler_ns / (double)known.stats.handled / 1e3 : 0,
        known.stats.handled ? (double)known.reads / (double)known.stats.handled : 0,
        (unsigned long long)known.broken);
    for (size_t i = 0; i < KNOWN_STACKS; i++)
        if (known.stacks[i].text)
            (void)fprintf(f, "stack %llu %llu%s\n", (unsigned long long)known.stacks[i].seen,
                          (unsigned long long)known.stacks[i].torn, known.stacks[i].text);
    (void)fclose(f);
}

/* Sampler and target on two CPUs: on one they never run at the same time, and nothing can go wrong. */
static void known_pin(void) {
    cpu_set_t all, one;
    int first = -1, second = -1;
    if (sched_getaffinity(0, sizeof all, &all) != 0)
        return;
    for (int i = 0; i < CPU_SETSIZE && second < 0; i++)
        if (CPU_ISSET(i, &all)) {
            second = first >= 0 ? i : -1;
            first = first >= 0 ? first : i;
        }
    if (second < 0)
        return;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    (void)sched_setaffinity(known.tid, sizeof one, &one);
    CPU_ZERO(&one);
    CPU_SET(second, &one);
    (void)sched_setaffinity(0, sizeof one, &one);
}

static void *known_main(void *arg) {
    struct timespec warm = {.tv_nsec = 100 * (long)CLOCK_NS_PER_MS};
    (void)arg;
    known_pin();
    (void)nanosleep(&warm, NULL);
    if (!known_find())
        _exit(3);
    for (long i = 0; i < known.samples; i++) {
        struct arena arena;
        arena_init(&arena, 1 << 22);
        if (known.exact)
            known_sample_exact(&arena);
        else
            known_sample_gentle(&arena);
        arena_fini(&arena);
        known_pause();
    }
    known_write();
    exact_disarm();
    _exit(0);
}

int known_start(const char *path, const char *mode, long samples) {
    struct err e = {0};
    pthread_t thread;
    sigset_t all, before;
    (void)snprintf(known.path, sizeof known.path, "%s", path);
    known.exact = strcmp(mode, "exact") == 0;
    known.samples = samples;
    known.tid = (pid_t)syscall(SYS_gettid);
    known.stacks = calloc(KNOWN_STACKS, sizeof *known.stacks);
    known.ps = pystack_open(0, &e);
    if (!known.stacks || !known.ps || (known.exact && exact_arm(&known.stats, &e) != 0)) {
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
    bool stop;
    struct pystack *ps;
    struct profile profile;
    struct exact_stats stats;
    uint64_t ticks, cpu_ns;
    uint64_t warm_ticks,
        warm_cpu_ns; /* of the first two seconds, in which everything is seen for the first time */
    struct exact_stats warm;
} known_profile;

static void known_drop_batch(void *arg) { (void)arg; }

static void *known_profile_main(void *arg) {
    struct cost_pace pace;
    struct err e;
    uint64_t mean = (uint64_t)(1e9 / known_profile.hz), due = clock_mono_ns();
    (void)arg;
    uint64_t warm_ns = due + 2 * CLOCK_NS_PER_S;
    agent_thread_begin("known");
    cost_pace_init(&pace, due);
    while (!__atomic_load_n(&known_profile.stop, __ATOMIC_RELAXED)) {
        known_profile.profile.exact = exact_is_armed() && exact_check(&e) == 0;
        profile_tick(&known_profile.profile, known_profile.ps, mean);
        (void)__atomic_add_fetch(&known_profile.ticks, 1, __ATOMIC_RELAXED);
        if (known_profile.warm_ticks == 0 && clock_mono_ns() > warm_ns) {
            known_profile.warm_ticks = known_profile.ticks;
            known_profile.warm_cpu_ns = clock_self_cpu_ns();
            known_profile.warm = known_profile.stats;
        }
        due += cost_pace_next_ns(&pace, mean);
        struct timespec ts = {.tv_sec = (time_t)(due / CLOCK_NS_PER_S),
                              .tv_nsec = (long)(due % CLOCK_NS_PER_S)};
        (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
    }
    profile_collect(&known_profile.profile, known_profile.ps);
    known_profile.cpu_ns = clock_self_cpu_ns();
    agent_thread_end();
    (void)(exact_is_armed() && exact_check(&e));
    exact_disarm();
    return NULL;
}

int known_profile_start(double hz, const char *mode) {
    struct err e = {0};
    sigset_t all, before;
    known_profile = (struct known_profile){.hz = hz};
    known_profile.ps = pystack_open(0, &e);
    if (!known_profile.ps || profile_init(&known_profile.profile, known_drop_batch, NULL) != 0 ||
        (strcmp(mode, "exact") == 0 && exact_arm(&known_profile.stats, &e) != 0)) {
        (void)fprintf(stderr, "%s\n", e.text);
        return -1;
    }
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
    const struct profile *p = &known_profile.profile;
    const struct exact_stats *x = &known_profile.stats;
    *out = (struct known_profile_result){.samples = p->total_samples,
                                         .exact = p->total_exact,
                                         .torn = p->total_torn,
                                         .retried = p->total_retried,
                                         .unknown_frames = p->unknown_frames,
                                         .read_errors = p->read_errors,
                                         .ticks = known_profile.ticks - known_profile.warm_ticks,
                                         .sent = x->sent,
                                         .late = x->late,
                                         .refused = x->refused,
                                         .restarted = x->restarted,
                                         .eintr = x->eintr,
                                         .handled = x->handled - known_profile.warm.handled,
                                         .handler_ns = x->handler_ns - known_profile.warm.handler_ns,
                                         .cpu_ns = known_profile.cpu_ns - known_profile.warm_cpu_ns,
                                         .cut = p->total_cut};
    profile_fini(&known_profile.profile);
    pystack_close(known_profile.ps);
}
