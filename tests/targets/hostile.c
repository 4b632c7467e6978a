/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostile: what a job's native code may do that a sampler must survive: recursion to the end of its stack, threads with small
 * stacks, filters on system calls. Called through ctypes; every function gives the GIL up.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HOSTILE_STEP 256 /* bytes of stack each call takes at least */
#define HOSTILE_STACK 32768
#define HOSTILE_BETWEEN 2000

/* Call itself until `left` bytes of the stack are left, then count in `*counter` until `*stop` is set. -1: the stack is not known. */
int hostile_edge(size_t left, volatile uint64_t *counter, volatile int *stop);

/* Count in `*counter` until `*stop` is set. */
void hostile_spin(volatile uint64_t *counter, volatile int *stop);

/* Make `n` threads that sleep for ever. 0 or errno. */
int hostile_threads(int n);

/* Make `n` threads that no interpreter knows, and that call `callback` again and again until `*stop` is set: Python makes a
 * thread state for each call and deletes it afterwards. `*running` counts those that have not ended. 0 or errno. */
int hostile_callers(int n, void (*callback)(void), volatile int *running, volatile int *stop);

/* Have `number` fail with `error` in this thread and those it starts, in all threads if `all`; error 0: kill who calls it. 0 or errno. */
int hostile_refuse(long number, int error, bool all);

void hostile_spin(volatile uint64_t *counter, volatile int *stop) {
    while (!*stop)
        ++*counter;
}

/* Not inlined into itself: a frame is then a step, and what is left is at most that much less than was asked for. */
__attribute__((noinline)) static int hostile_descend(const volatile char *end, volatile uint64_t *counter,
                                                     volatile int *stop) {
    volatile char here[HOSTILE_STEP];
    here[0] = 1;
    if ((uintptr_t)here <= (uintptr_t)end)
        hostile_spin(counter, stop);
    else
        (void)hostile_descend(end, counter, stop);
    return here[0];
}

int hostile_edge(size_t left, volatile uint64_t *counter, volatile int *stop) {
    pthread_attr_t attr;
    void *low;
    size_t size;
    if (pthread_getattr_np(pthread_self(), &attr) != 0)
        return -1;
    int rc = pthread_attr_getstack(&attr, &low, &size);
    (void)pthread_attr_destroy(&attr);
    return rc == 0 ? hostile_descend((const char *)low + left, counter, stop) : -1;
}

static void *hostile_sleep(void *arg) {
    for (;;)
        (void)pause();
    return arg;
}

int hostile_threads(int n) {
    pthread_attr_t attr;
    int rc = pthread_attr_init(&attr);
    if (rc == 0)
        rc = pthread_attr_setstacksize(&attr, HOSTILE_STACK);
    for (int i = 0; rc == 0 && i < n; i++) {
        pthread_t thread;
        rc = pthread_create(&thread, &attr, hostile_sleep, NULL);
    }
    return rc;
}

struct hostile_caller {
    void (*callback)(void);
    volatile int *running, *stop;
};

static void *hostile_call(void *arg) {
    struct hostile_caller caller = *(struct hostile_caller *)arg;
    volatile uint64_t counter = 0;
    free(arg);
    while (!*caller.stop) {
        caller.callback();
        for (int i = 0; i < HOSTILE_BETWEEN; i++)
            counter++;
    }
    (void)__atomic_sub_fetch(caller.running, 1, __ATOMIC_RELEASE);
    return NULL;
}

int hostile_callers(int n, void (*callback)(void), volatile int *running, volatile int *stop) {
    for (int i = 0; i < n; i++) {
        pthread_t thread;
        struct hostile_caller *caller = malloc(sizeof *caller);
        if (!caller)
            return ENOMEM;
        *caller = (struct hostile_caller){.callback = callback, .running = running, .stop = stop};
        (void)__atomic_add_fetch(running, 1, __ATOMIC_RELEASE);
        int rc = pthread_create(&thread, NULL, hostile_call, caller);
        if (rc != 0)
            return rc;
        (void)pthread_detach(thread);
    }
    return 0;
}

int hostile_refuse(long number, int error, bool all) {
    uint32_t action =
        error ? SECCOMP_RET_ERRNO | ((uint32_t)error & SECCOMP_RET_DATA) : SECCOMP_RET_KILL_PROCESS;
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, action),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return errno;
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, all ? SECCOMP_FILTER_FLAG_TSYNC : 0, &program) == 0
               ? 0
               : errno;
}
