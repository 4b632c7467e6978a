/* SPDX-License-Identifier: Apache-2.0 */
/* torture: see torture.h. Here: the page, the start, resting, and the thread that looks at signals' dispositions. */
#include "torture.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441 /* the same number on every architecture */
#endif
#define TORTURE_REST_US 2000
#define TORTURE_FAILED_CALL ((uint64_t)-1)

static struct torture_page *torture_page;
static int torture_rest_fd = -1;
char torture_plugin[256];
int torture_semaphore = -1;

static const struct torture_native {
    const char *name;
    void *(*fn)(void *arg);
} torture_natives[] = {
    {"inspector", torture_inspect}, {"malloc-a", torture_allocate}, {"malloc-b", torture_allocate},
    {"loader", torture_load},       {"fork", torture_fork},         {"births", torture_breed},
    {"epoll", torture_epoll},       {"signals", torture_signals},   {"queue", torture_queue},
    {"vectors", torture_vectors},   {"fma", torture_fma},           {"x87", torture_x87},
    {"locks-a", torture_locks},     {"locks-b", torture_locks},     {"coroutines", torture_coroutines},
    {"calls-a", torture_calls},     {"calls-b", torture_calls},
};

int torture_slot_new(const char *name) {
    uint64_t n = __atomic_fetch_add(&torture_page->n_slots, 1, __ATOMIC_ACQ_REL);
    if (n >= TORTURE_SLOTS)
        return -1;
    (void)snprintf(torture_page->slots[n].name, sizeof torture_page->slots[n].name, "%s", name);
    return (int)n;
}

void torture_sleep_apart(unsigned us) {
    struct epoll_event event;
    struct timespec limit = {.tv_nsec = (long)us * 1000};
    if (syscall(SYS_epoll_pwait2, torture_rest_fd, &event, 1, &limit, NULL, (size_t)8) != 0 &&
        errno == ENOSYS)
        (void)nanosleep(&limit, NULL);
}

bool torture_is_alone(int slot) {
    return __atomic_load_n(&torture_page->only, __ATOMIC_ACQUIRE) == (uint64_t)slot + 1;
}

static bool torture_must_rest(int slot) {
    uint64_t only = __atomic_load_n(&torture_page->only, __ATOMIC_ACQUIRE);
    return __atomic_load_n(&torture_page->quiet, __ATOMIC_ACQUIRE) || (only && only != (uint64_t)slot + 1);
}

/* What only the thread with handlers of its own takes. */
static void torture_fill_own(sigset_t *own) {
    (void)sigemptyset(own);
    (void)sigaddset(own, SIGALRM);
    (void)sigaddset(own, TORTURE_TIMER_SIGNAL);
    (void)sigaddset(own, TORTURE_QUEUED_SIGNAL);
}

/* While everybody rests no handler runs, either: it would be seen with its own mask. */
static void torture_stay_quiet(struct torture_slot *s) {
    sigset_t own, before;
    torture_fill_own(&own);
    (void)pthread_sigmask(SIG_BLOCK, &own, &before);
    while (__atomic_load_n(&torture_page->quiet, __ATOMIC_ACQUIRE)) {
        __atomic_store_n(&s->parked, TORTURE_QUIET, __ATOMIC_RELEASE);
        torture_sleep_apart(TORTURE_REST_US);
    }
    __atomic_store_n(&s->parked, 1, __ATOMIC_RELEASE);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void torture_round(int slot) {
    struct torture_slot *s = &torture_page->slots[slot];
    int saved = errno;
    if (!s->tid)
        s->tid = syscall(SYS_gettid);
    (void)__atomic_add_fetch(&s->progress, 1, __ATOMIC_RELEASE);
    while (torture_must_rest(slot)) {
        if (__atomic_load_n(&torture_page->quiet, __ATOMIC_ACQUIRE)) {
            torture_stay_quiet(s);
            continue;
        }
        __atomic_store_n(&s->parked, 1, __ATOMIC_RELEASE);
        torture_sleep_apart(TORTURE_REST_US);
    }
    __atomic_store_n(&s->parked, 0, __ATOMIC_RELEASE);
    errno = saved;
}

bool torture_begin_child(void) {
    if (__atomic_load_n(&torture_page->childless, __ATOMIC_ACQUIRE))
        return false;
    (void)__atomic_add_fetch(&torture_page->births, 1, __ATOMIC_SEQ_CST);
    (void)__atomic_add_fetch(&torture_page->children, 1, __ATOMIC_SEQ_CST);
    return true;
}

void torture_end_child(void) { (void)__atomic_sub_fetch(&torture_page->children, 1, __ATOMIC_SEQ_CST); }

uint64_t torture_count_children(void) {
    static uint64_t never = 1ULL << 63;
    uint64_t births = __atomic_load_n(&torture_page->births, __ATOMIC_SEQ_CST);
    return __atomic_load_n(&torture_page->children, __ATOMIC_SEQ_CST)
               ? __atomic_add_fetch(&never, 1, __ATOMIC_RELAXED)
               : births;
}

void torture_count_interrupted(void) {
    (void)__atomic_add_fetch(&torture_page->interrupted, 1, __ATOMIC_RELAXED);
}

void torture_fail(int slot, const char *why) {
    struct torture_slot *s = &torture_page->slots[slot];
    if (!s->bad)
        (void)snprintf(s->why, sizeof s->why, "%s", why);
    (void)__atomic_add_fetch(&s->bad, 1, __ATOMIC_RELEASE);
}

void torture_check(int slot, bool ok, const char *why) {
    if (!ok)
        torture_fail(slot, why);
}

void torture_nap(int slot, unsigned us) {
    struct timespec pause = {.tv_nsec = (long)us * 1000};
    if (!torture_is_alone(slot))
        (void)nanosleep(&pause, NULL);
}

uint32_t torture_random(uint64_t *state) {
    *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)(*state >> 33);
}

/* What the kernel has for each signal, as this process sees it: the system call, not libc's, which hides its own signals. */
void *torture_inspect(void *arg) {
    int slot = (int)(intptr_t)arg;
    struct {
        uint64_t handler, flags, restorer, mask;
    } action;
    for (;;) {
        uint64_t ask = __atomic_load_n(&torture_page->ask, __ATOMIC_ACQUIRE);
        if (ask != torture_page->answered) {
            for (int i = 1; i < TORTURE_SIGNALS; i++) {
                bool known = syscall(SYS_rt_sigaction, i, NULL, &action, (size_t)8) == 0;
                torture_page->actions[i] =
                    known ? (struct torture_action){action.handler, action.flags, action.mask}
                          : (struct torture_action){.handler = TORTURE_FAILED_CALL};
            }
            __atomic_store_n(&torture_page->answered, ask, __ATOMIC_RELEASE);
        }
        (void)__atomic_add_fetch(&torture_page->slots[slot].progress, 1, __ATOMIC_RELEASE);
        __atomic_store_n(&torture_page->slots[slot].parked, TORTURE_QUIET, __ATOMIC_RELEASE);
        torture_sleep_apart(TORTURE_REST_US);
    }
    return NULL;
}

static int torture_map(const char *path) {
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return errno;
    void *p = mmap(NULL, sizeof *torture_page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void)close(fd);
    if (p == MAP_FAILED)
        return errno;
    torture_page = p;
    return torture_page->magic == TORTURE_MAGIC ? 0 : EINVAL;
}

int torture_start(const char *page_path, const char *plugin_path) {
    sigset_t own;
    (void)snprintf(torture_plugin, sizeof torture_plugin, "%s", plugin_path);
    int rc = torture_map(page_path);
    if (rc != 0)
        return rc;
    torture_rest_fd = epoll_create1(EPOLL_CLOEXEC);
    torture_semaphore = semget(IPC_PRIVATE, 1, 0600);
    if (torture_rest_fd < 0 || torture_semaphore < 0)
        return errno;
    torture_page->semaphore = (uint64_t)torture_semaphore + 1;
    /* One arena: how many there are does not depend on who met whom. */
    (void)mallopt(M_ARENA_MAX, 1);
    /* Only the thread that has handlers of its own takes these; all others inherit the mask. */
    torture_fill_own(&own);
    (void)pthread_sigmask(SIG_BLOCK, &own, NULL);
    for (size_t i = 0; i < sizeof torture_natives / sizeof torture_natives[0] && rc == 0; i++) {
        pthread_t thread;
        int slot = torture_slot_new(torture_natives[i].name);
        rc = slot < 0 ? ENOSPC : pthread_create(&thread, NULL, torture_natives[i].fn, (void *)(intptr_t)slot);
        if (rc == 0)
            (void)pthread_setname_np(thread, torture_natives[i].name);
    }
    return rc;
}
