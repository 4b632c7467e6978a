/* SPDX-License-Identifier: Apache-2.0 */
/*
 * waiting: a thread that waits in one kind of system call, over and over, with a value in every vector register, and checks
 * registers, result and duration of every call.
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define WAITING_NS 40000000L

/* Calls made, things that were not as they should be, calls that ended with EINTR; signals that arrived whole, the sum of what
 * they carried, signals that did not. */
struct waiting_cell {
    volatile uint64_t steps, wrong, interrupted, signals, carried, broken;
};

struct waiting_call {
    long nr, args[5];
    long result; /* that it has to have */
};

/* Calls kind 0 to 5 for ever: poll, clock_nanosleep, futex with a time, epoll_wait, read, nanosleep without a remainder. */
void waiting_run(struct waiting_cell *cell, int kind);

/* Count the signals `sig` in `cell`. */
void waiting_take(struct waiting_cell *cell, int sig);

static uint64_t waiting_now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

static long waiting_plain(const struct waiting_call *c) {
    long rc = syscall(c->nr, c->args[0], c->args[1], c->args[2], c->args[3], c->args[4]);
    return rc < 0 ? -errno : rc;
}

#ifdef __x86_64__
#define WAITING_LOAD(kind, n) "vmovups " #n "*64(%%rbx), %%" kind #n "\n\t"
#define WAITING_STORE(kind, n) "vmovups %%" kind #n ", " #n "*64(%%r12)\n\t"
#define WAITING_LOW(op, kind)                                                                                \
    op(kind, 0) op(kind, 1) op(kind, 2) op(kind, 3) op(kind, 4) op(kind, 5) op(kind, 6) op(kind, 7)          \
        op(kind, 8) op(kind, 9) op(kind, 10) op(kind, 11) op(kind, 12) op(kind, 13) op(kind, 14)             \
            op(kind, 15)
#define WAITING_HIGH(op, kind)                                                                               \
    op(kind, 16) op(kind, 17) op(kind, 18) op(kind, 19) op(kind, 20) op(kind, 21) op(kind, 22) op(kind, 23)  \
        op(kind, 24) op(kind, 25) op(kind, 26) op(kind, 27) op(kind, 28) op(kind, 29) op(kind, 30)           \
            op(kind, 31)
#define WAITING_CLOBBERS                                                                                     \
    "rcx", "r11", "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",    \
        "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"
#define WAITING_HIGH_CLOBBERS                                                                                \
    "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26",       \
        "xmm27", "xmm28", "xmm29", "xmm30", "xmm31"

/* A function that makes system call `nr` while every vector register holds a value. The number is loaded just before, as
 * libc does. */
#define WAITING_CALLER(name, features, nr, load, store, ...)                                                 \
    __attribute__((target(features), noinline)) static long name(const struct waiting_call *c,               \
                                                                 const void *in, void *out) {                \
        long rax;                                                                                            \
        register long r10 __asm__("r10") = c->args[3];                                                       \
        register long r8 __asm__("r8") = c->args[4];                                                         \
        register void *r12 __asm__("r12") = out;                                                             \
        __asm__ volatile(load "movl %[number], %%eax\n\tsyscall\n\t" store                                   \
                         : "=a"(rax)                                                                         \
                         : "D"(c->args[0]), "S"(c->args[1]), "d"(c->args[2]), "r"(r10), "r"(r8), "b"(in),    \
                           "r"(r12), [number] "i"(nr)                                                        \
                         : __VA_ARGS__);                                                                     \
        return rax;                                                                                          \
    }
#define WAITING_CALLERS(name, nr)                                                                            \
    WAITING_CALLER(name##_ymm, "avx", nr, WAITING_LOW(WAITING_LOAD, "ymm"),                                  \
                   WAITING_LOW(WAITING_STORE, "ymm"), WAITING_CLOBBERS)                                      \
    WAITING_CALLER(name##_zmm, "avx512f", nr,                                                                \
                   WAITING_LOW(WAITING_LOAD, "zmm") WAITING_HIGH(WAITING_LOAD, "zmm"),                       \
                   WAITING_LOW(WAITING_STORE, "zmm") WAITING_HIGH(WAITING_STORE, "zmm"), WAITING_CLOBBERS,   \
                   WAITING_HIGH_CLOBBERS)

WAITING_CALLERS(waiting_poll, SYS_poll)
WAITING_CALLERS(waiting_clock_nanosleep, SYS_clock_nanosleep)
WAITING_CALLERS(waiting_futex, SYS_futex)
WAITING_CALLERS(waiting_epoll_wait, SYS_epoll_wait)
WAITING_CALLERS(waiting_read, SYS_read)
WAITING_CALLERS(waiting_nanosleep, SYS_nanosleep)

static long (*const waiting_callers[][2])(const struct waiting_call *c, const void *in, void *out) = {
    {waiting_poll_ymm, waiting_poll_zmm},   {waiting_clock_nanosleep_ymm, waiting_clock_nanosleep_zmm},
    {waiting_futex_ymm, waiting_futex_zmm}, {waiting_epoll_wait_ymm, waiting_epoll_wait_zmm},
    {waiting_read_ymm, waiting_read_zmm},   {waiting_nanosleep_ymm, waiting_nanosleep_zmm},
};

/* The call's result; *wrong counts the vector registers that did not keep their value. */
static long waiting_call(int kind, const struct waiting_call *c, uint64_t *wrong) {
    _Alignas(64) unsigned char in[32][64], out[32][64];
    int zmm = __builtin_cpu_supports("avx512f");
    for (size_t i = 0; i < sizeof in; i++)
        in[i / 64][i % 64] = (unsigned char)(i * 11 + 3);
    if (!zmm && !__builtin_cpu_supports("avx"))
        return waiting_plain(c);
    long rc = waiting_callers[kind][zmm ? 1 : 0](c, in, out);
    for (size_t i = 0; i < (zmm ? 32 : 16); i++)
        *wrong += memcmp(in[i], out[i], zmm ? 64 : 32) != 0;
    return rc;
}
#else
static long waiting_call(int kind, const struct waiting_call *c, uint64_t *wrong) {
    (void)kind, (void)wrong;
    return waiting_plain(c);
}
#endif

static void waiting_fill(struct waiting_call *c, int kind, void *memory) {
    static struct timespec wait = {.tv_nsec = WAITING_NS}, left;
    static uint32_t word;
    struct itimerspec every = {.it_interval = wait, .it_value = wait};
    long ms = WAITING_NS / 1000000;
    switch (kind) {
    case 0:
        *c = (struct waiting_call){SYS_poll, {0, 0, ms}, 0};
        break;
    case 1:
        *c = (struct waiting_call){
            SYS_clock_nanosleep, {CLOCK_MONOTONIC, 0, (long)(intptr_t)&wait, (long)(intptr_t)&left}, 0};
        break;
    case 2:
        *c = (struct waiting_call){
            SYS_futex, {(long)(intptr_t)&word, FUTEX_WAIT_PRIVATE, 0, (long)(intptr_t)&wait}, -ETIMEDOUT};
        break;
    case 3:
        *c = (struct waiting_call){
            SYS_epoll_wait, {epoll_create1(EPOLL_CLOEXEC), (long)(intptr_t)memory, 1, ms}, 0};
        break;
    case 4: {
        int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
        (void)timerfd_settime(fd, 0, &every, NULL);
        *c =
            (struct waiting_call){SYS_read, {fd, (long)(intptr_t)memory, sizeof(uint64_t)}, sizeof(uint64_t)};
        break;
    }
    default: /* 5 */
        *c = (struct waiting_call){SYS_nanosleep, {(long)(intptr_t)&wait, 0}, 0};
        break;
    }
}

static struct waiting_cell *waiting_signals;

static void waiting_on_signal(int sig, siginfo_t *info, void *context) {
    struct waiting_cell *cell = waiting_signals;
    sigset_t now, expected;
    (void)context;
    (void)pthread_sigmask(SIG_BLOCK, NULL, &now);
    (void)sigemptyset(&expected);
    (void)sigaddset(&expected, sig); /* what the handler asked for, nothing of anybody else's */
    bool whole = info->si_code == SI_QUEUE && info->si_pid > 0 && info->si_pid != getpid() &&
                 memcmp(&now, &expected, sizeof(uint64_t)) == 0;
    cell->signals += whole;
    cell->broken += !whole;
    cell->carried += (uint64_t)info->si_value.sival_int;
}

void waiting_take(struct waiting_cell *cell, int sig) {
    struct sigaction sa = {.sa_sigaction = waiting_on_signal, .sa_flags = SA_SIGINFO};
    waiting_signals = cell;
    (void)sigaction(sig, &sa, NULL);
}

void waiting_run(struct waiting_cell *cell, int kind) {
    static uint64_t memory[8];
    struct waiting_call call;
    waiting_fill(&call, kind, memory);
    for (;;) {
        uint64_t began = waiting_now(), wrong = 0;
        long rc = waiting_call(kind, &call, &wrong);
        bool early = kind != 4 && waiting_now() - began < (uint64_t)WAITING_NS - 1000000;
        if (rc == -EINTR)
            cell->interrupted++;
        else
            wrong += rc != call.result || early;
        cell->wrong += wrong;
        cell->steps++;
    }
}
