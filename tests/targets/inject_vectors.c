/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Native code for the tests of the injector: a thread that never leaves user space and keeps values in every register
 * it can, and calls that see EINTR where the kernel shows it.
 */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <time.h>

void vectors_run(volatile uint64_t cell[2]);
int eintr_epoll(void);
int eintr_nanosleep(void);
int eintr_recv(void);
int eintr_sigtimedwait(void);
int eintr_semtimedop(void);

#define VECTORS_SPIN 100000UL

#ifdef __x86_64__
/* One register and its 64 bytes of memory: the second operand of the loads, the first of the stores is %1. */
#define VECTORS_LOAD(kind, n) "vmovups " #n "*64(%1), %%" kind #n "\n\t"
#define VECTORS_STORE(kind, n) "vmovups %%" kind #n ", " #n "*64(%2)\n\t"
#define VECTORS_LOW(op, kind)                                                                                \
    op(kind, 0) op(kind, 1) op(kind, 2) op(kind, 3) op(kind, 4) op(kind, 5) op(kind, 6) op(kind, 7)          \
        op(kind, 8) op(kind, 9) op(kind, 10) op(kind, 11) op(kind, 12) op(kind, 13) op(kind, 14)             \
            op(kind, 15)
#define VECTORS_HIGH(op, kind)                                                                               \
    op(kind, 16) op(kind, 17) op(kind, 18) op(kind, 19) op(kind, 20) op(kind, 21) op(kind, 22) op(kind, 23)  \
        op(kind, 24) op(kind, 25) op(kind, 26) op(kind, 27) op(kind, 28) op(kind, 29) op(kind, 30)           \
            op(kind, 31)
#define VECTORS_WAIT "1: dec %0\n\tjnz 1b\n\t"
#define VECTORS_LOW_CLOBBERS                                                                                 \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",        \
        "xmm12", "xmm13", "xmm14", "xmm15", "memory", "cc"

/* Loads every vector register from `in`, keeps them there for a while, stores them to `out`. */
__attribute__((target("avx"), noinline)) static size_t vectors_hold_ymm(const void *in, void *out) {
    unsigned long n = VECTORS_SPIN;
    __asm__ volatile(VECTORS_LOW(VECTORS_LOAD, "ymm") VECTORS_WAIT VECTORS_LOW(VECTORS_STORE, "ymm")
                     : "+r"(n)
                     : "r"(in), "r"(out)
                     : VECTORS_LOW_CLOBBERS);
    return 16;
}

__attribute__((target("avx512f"), noinline)) static size_t vectors_hold_zmm(const void *in, void *out) {
    unsigned long n = VECTORS_SPIN;
    __asm__ volatile(VECTORS_LOW(VECTORS_LOAD, "zmm") VECTORS_HIGH(VECTORS_LOAD, "zmm")
                         VECTORS_WAIT VECTORS_LOW(VECTORS_STORE, "zmm") VECTORS_HIGH(VECTORS_STORE, "zmm")
                     : "+r"(n)
                     : "r"(in), "r"(out)
                     : VECTORS_LOW_CLOBBERS, "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22",
                       "xmm23", "xmm24", "xmm25", "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31");
    return 32;
}

/* 1 when a register was not what it had been. */
static int vectors_pass(void) {
    _Alignas(64) unsigned char in[32][64], out[32][64];
    for (size_t i = 0; i < sizeof in; i++)
        in[i / 64][i % 64] = (unsigned char)(i * 7 + 1);
    int zmm = __builtin_cpu_supports("avx512f");
    if (!zmm && !__builtin_cpu_supports("avx"))
        return 0;
    size_t registers = zmm ? vectors_hold_zmm(in, out) : vectors_hold_ymm(in, out);
    int wrong = 0;
    for (size_t i = 0; i < registers; i++)
        wrong |= memcmp(in[i], out[i], zmm ? 64 : 32) != 0;
    return wrong;
}
#else
static int vectors_pass(void) {
    for (volatile unsigned long n = VECTORS_SPIN; n;)
        n--;
    return 0;
}
#endif

/* Never returns: holds the GIL for ever when called through PyDLL. cell[0]: passes done, cell[1]: those in which a register
 * changed. */
void vectors_run(volatile uint64_t cell[2]) {
    for (;;) {
        cell[1] += (uint64_t)vectors_pass();
        cell[0]++;
    }
}

/* The calls below take 30 ms and return 1 when they ended with EINTR. */

int eintr_epoll(void) {
    static __thread int fd = -1;
    struct epoll_event ev;
    if (fd < 0)
        fd = epoll_create1(EPOLL_CLOEXEC);
    return epoll_wait(fd, &ev, 1, 30) < 0 && errno == EINTR;
}

int eintr_nanosleep(void) { return nanosleep(&(struct timespec){0, 30000000}, NULL) != 0 && errno == EINTR; }

int eintr_recv(void) {
    static __thread int pair[2] = {-1, -1};
    char c;
    if (pair[0] < 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0) {
        struct timeval t = {0, 30000};
        (void)setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
    }
    return recv(pair[0], &c, 1, 0) < 0 && errno == EINTR;
}

int eintr_sigtimedwait(void) {
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGUSR2);
    return sigtimedwait(&set, NULL, &(struct timespec){0, 30000000}) < 0 && errno == EINTR;
}

int eintr_semtimedop(void) {
    struct sembuf op = {0, -1, 0};
    int id = semget(IPC_PRIVATE, 1, 0600);
    int seen = semtimedop(id, &op, 1, &(struct timespec){0, 30000000}) < 0 && errno == EINTR;
    (void)semctl(id, 0, IPC_RMID);
    return seen;
}
