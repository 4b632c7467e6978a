/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Native code for the tests of the injector: a thread that never leaves user space and keeps values in every register
 * it can, and calls that see EINTR where the kernel shows it.
 */
#include <errno.h>
#include <signal.h>
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

typedef double vectors_lane __attribute__((vector_size(32)));

#define VECTORS_ROUNDS 20000

#define VECTORS_BODY                                                                                         \
    vectors_lane a = {seed, seed + 1, seed + 2, seed + 3}, b = a * 1.25, c = a * 0.5, d = a + 3.0, e = a - 7.0; \
    for (int i = 0; i < VECTORS_ROUNDS; i++) {                                                               \
        a = a * 0.999 + b * 0.001;                                                                           \
        b = b * 0.998 + c * 0.002;                                                                           \
        c = c * 0.997 + d * 0.003;                                                                           \
        d = d * 0.996 + e * 0.004;                                                                           \
        e = e * 0.995 + a * 0.005;                                                                           \
    }                                                                                                        \
    a += b + c + d + e;                                                                                      \
    return a[0] + a[1] + a[2] + a[3]

__attribute__((noinline)) static double vectors_pass_plain(double seed) {
    VECTORS_BODY;
}

#ifdef __x86_64__
__attribute__((noinline, target("avx2,fma"))) static double vectors_pass_wide(double seed) {
    VECTORS_BODY;
}
#endif

static double vectors_pass(double seed) {
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return vectors_pass_wide(seed);
#endif
    return vectors_pass_plain(seed);
}

/* Never returns: holds the GIL for ever when called through PyDLL. cell[0]: passes done, cell[1]: those with a wrong sum. */
void vectors_run(volatile uint64_t cell[2]) {
    double right = vectors_pass(1.5);
    for (;;) {
        double again = vectors_pass(1.5);
        if (memcmp(&again, &right, sizeof right) != 0)
            cell[1]++;
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

int eintr_nanosleep(void) {
    return nanosleep(&(struct timespec){0, 30000000}, NULL) != 0 && errno == EINTR;
}

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
