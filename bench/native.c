/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native: what a stack with native frames costs. Prints JSON.
 *
 * A thread calls itself through qsort to a given depth and runs; it is asked by the agent's own means (a signal whose handler copies
 * registers and stack), and the copy is unwound. Handler: wall time on the job's thread. Unwinding: CPU time of the sampler's thread, a
 * place that was met before (warm) and one that was not (cold).
 *
 * usage: bench/native [SAMPLES] [DEPTH]
 */
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "pystack/native.h"

#define BENCH_SAMPLES 20000
#define BENCH_DEPTH 20
#define BENCH_MAX_FRAMES 512

static struct native_copy bench_copy;
static int bench_done, bench_end, bench_depth;
static volatile unsigned bench_work;

static void bench_handler(int sig, siginfo_t *info, void *context) {
    (void)sig, (void)info;
    native_copy_context(&bench_copy, context, getpid());
    __atomic_store_n(&bench_done, 1, __ATOMIC_RELEASE);
}

static int bench_compare(const void *a, const void *b) {
    (void)a, (void)b;
    int pair[2] = {2, 1};
    if (--bench_depth > 0)
        qsort(pair, 2, sizeof pair[0], bench_compare);
    while (bench_depth <= 0 && !__atomic_load_n(&bench_end, __ATOMIC_RELAXED))
        bench_work++;
    return 0;
}

static void *bench_thread(void *arg) {
    int pair[2] = {2, 1};
    *(pid_t *)arg = (pid_t)syscall(SYS_gettid);
    __atomic_store_n(&bench_done, 1, __ATOMIC_RELEASE);
    qsort(pair, 2, sizeof pair[0], bench_compare);
    return NULL;
}

static int bench_order(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void bench_wait(void) {
    while (!__atomic_exchange_n(&bench_done, 0, __ATOMIC_ACQUIRE))
        (void)usleep(10);
}

static void bench_print(const char *name, uint64_t *ns, size_t n, const char *end) {
    qsort(ns, n, sizeof *ns, bench_order);
    printf("\"%s\": {\"p50\": %.2f, \"p99\": %.2f, \"max\": %.2f}%s", name, (double)ns[n / 2] / 1e3,
           (double)ns[n * 99 / 100] / 1e3, (double)ns[n - 1] / 1e3, end);
}

static void bench_run(struct native *native, pid_t tid, size_t n, uint64_t *copy_ns, uint64_t *unwind_ns) {
    static struct model_frame frames[BENCH_MAX_FRAMES];
    size_t deepest = 0, bytes = 0;
    uint64_t cold_ns = 0;
    for (size_t i = 0; i < n; i++) {
        (void)syscall(SYS_tgkill, getpid(), tid, SIGURG);
        bench_wait();
        uint64_t began = clock_self_cpu_ns();
        size_t got = native_unwind(native, &bench_copy, frames, BENCH_MAX_FRAMES);
        unwind_ns[i] = clock_self_cpu_ns() - began;
        copy_ns[i] = bench_copy.spent_ns;
        cold_ns = i == 0 ? unwind_ns[0] : cold_ns;
        deepest = got > deepest ? got : deepest;
        bytes = bench_copy.stack_len;
    }
    const struct native_stats *stats = native_get_stats(native);
    printf("{\"samples\": %zu, \"frames\": %zu, \"stack_bytes\": %zu, \"cut\": %" PRIu64 ",\n ", n, deepest,
           bytes, stats->cut);
    bench_print("copy_us", copy_ns, n, ",\n ");
    bench_print("unwind_us", unwind_ns, n, ",\n ");
    printf("\"unwind_cold_us\": %.1f, \"held_bytes\": %zu}\n", (double)cold_ns / 1e3, native_bytes(native));
}

int main(int argc, char **argv) {
    struct sigaction sa = {.sa_flags = SA_SIGINFO | SA_RESTART};
    size_t n = argc > 1 ? (size_t)strtoul(argv[1], NULL, 10) : BENCH_SAMPLES;
    bench_depth = argc > 2 ? atoi(argv[2]) : BENCH_DEPTH;
    uint64_t *copy_ns = calloc(n + 1, sizeof *copy_ns), *unwind_ns = calloc(n + 1, sizeof *unwind_ns);
    struct native *native = native_new(0);
    pthread_t thread;
    pid_t tid = 0;
    sa.sa_sigaction = bench_handler;
    if (!n || !copy_ns || !unwind_ns || !native || sigaction(SIGURG, &sa, NULL) != 0 ||
        pthread_create(&thread, NULL, bench_thread, &tid) != 0) {
        (void)fputs("bench/native: cannot start\n", stderr);
        return 1;
    }
    bench_wait();
    (void)usleep(10000);
    native_refresh(native, 0);
    bench_run(native, tid, n, copy_ns, unwind_ns);
    __atomic_store_n(&bench_end, 1, __ATOMIC_RELAXED);
    (void)pthread_join(thread, NULL);
    native_free(native);
    free(copy_ns);
    free(unwind_ns);
    return 0;
}
