/* SPDX-License-Identifier: Apache-2.0 */
/* torture, locks and coroutines: mutexes, conditions, semaphores, and contexts that are switched by hand. See torture.h. */
#include "torture.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

#define LOCKS_WAIT_NS 5000000L
#define LOCKS_TURNS 20
#define COROUTINES 6
#define COROUTINE_STACK ((size_t)32 * 1024)
#define COROUTINE_EDGE 2048 /* bytes at the end of a stack that nobody gets to */
#define COROUTINE_FILL 0xa5
#define COROUTINE_DEPTH 12

static struct locks {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    sem_t sem;
    uint64_t turn; /* of whom it is: 0 or 1 */
    uint64_t inside, total;
    bool ready;
} locks = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static struct timespec locks_deadline(void) {
    struct timespec ts;
    (void)clock_gettime(CLOCK_REALTIME, &ts);
    ts.tv_nsec += LOCKS_WAIT_NS;
    if (ts.tv_nsec >= 1000000000) {
        ts.tv_nsec -= 1000000000;
        ts.tv_sec++;
    }
    return ts;
}

/* Wait for the turn, for a while: the other may rest. 0 with the mutex held, or -1 without. */
static int locks_enter(int slot, uint64_t self) {
    struct timespec until = locks_deadline();
    torture_check(slot, pthread_mutex_lock(&locks.mutex) == 0, "a mutex could not be locked");
    while (locks.turn != self) {
        int rc = pthread_cond_timedwait(&locks.changed, &locks.mutex, &until);
        torture_check(slot, rc == 0 || rc == ETIMEDOUT, "a wait for a condition ended with an error");
        if (rc != 0) {
            (void)pthread_mutex_unlock(&locks.mutex);
            return -1;
        }
    }
    return 0;
}

static void locks_take_turn(int slot, uint64_t self) {
    if (locks_enter(slot, self) != 0)
        return;
    torture_check(slot, ++locks.inside == 1, "two hold the same mutex");
    uint64_t total = ++locks.total;
    for (volatile int i = 0; i < 200; i++)
        continue;
    torture_check(slot, locks.total == total, "two hold the same mutex");
    locks.inside--;
    locks.turn = 1 - self;
    torture_check(slot, pthread_cond_signal(&locks.changed) == 0, "a condition could not be told");
    torture_check(slot, pthread_mutex_unlock(&locks.mutex) == 0, "a mutex could not be unlocked");
}

void *torture_locks(void *arg) {
    int slot = (int)(intptr_t)arg;
    static uint64_t numbers;
    uint64_t self = __atomic_fetch_add(&numbers, 1, __ATOMIC_ACQ_REL);
    if (self == 0) {
        torture_check(slot, sem_init(&locks.sem, 0, 0) == 0, "no semaphore");
        __atomic_store_n(&locks.ready, true, __ATOMIC_RELEASE);
    }
    while (!__atomic_load_n(&locks.ready, __ATOMIC_ACQUIRE))
        torture_sleep_apart(1000);
    for (;;) {
        torture_round(slot);
        for (int i = 0; i < LOCKS_TURNS; i++)
            locks_take_turn(slot, self);
        struct timespec until = locks_deadline();
        int rc = self ? sem_timedwait(&locks.sem, &until) : sem_post(&locks.sem);
        torture_check(slot, rc == 0 || errno == ETIMEDOUT, "a semaphore's wait ended with an error");
        torture_nap(slot, 1000);
    }
    return NULL;
}

/* ---- coroutines ---- */

struct coroutine {
    ucontext_t context;
    unsigned char *stack;
    int number;
    uint64_t turns;
};

static struct coroutines {
    int slot;
    ucontext_t main;
    struct coroutine all[COROUTINES];
} coroutines;

/* Goes down, gives the turn away at the bottom, and checks what is on its stack on the way up. */
__attribute__((noinline)) static uint64_t coroutine_descend(struct coroutine *c, int depth) {
    volatile uint64_t here[8];
    for (int i = 0; i < 8; i++)
        here[i] = c->turns * 1000 + (uint64_t)(depth * 8 + i);
    uint64_t below = 0;
    if (depth > 0) {
        below = coroutine_descend(c, depth - 1);
    } else {
        if (c->number % 2)
            torture_nap(coroutines.slot, 100);
        int next = (c->number + 1) % (COROUTINES + 1);
        (void)swapcontext(&c->context, next == COROUTINES ? &coroutines.main : &coroutines.all[next].context);
    }
    for (int i = 0; i < 8; i++)
        torture_check(coroutines.slot, here[i] == c->turns * 1000 + (uint64_t)(depth * 8 + i),
                      "a coroutine's stack has other values");
    return below + here[depth % 8];
}

static void coroutine_main(int number) {
    struct coroutine *c = &coroutines.all[number];
    for (;;) {
        c->turns++;
        (void)coroutine_descend(c, COROUTINE_DEPTH);
    }
}

static int coroutine_make(struct coroutine *c, int number) {
    c->number = number;
    c->stack = mmap(NULL, COROUTINE_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (c->stack == MAP_FAILED || getcontext(&c->context) != 0)
        return -1;
    memset(c->stack, COROUTINE_FILL, COROUTINE_STACK);
    c->context.uc_stack.ss_sp = c->stack;
    c->context.uc_stack.ss_size = COROUTINE_STACK;
    c->context.uc_link = NULL;
    makecontext(&c->context, (void (*)(void))(uintptr_t)coroutine_main, 1, number);
    return 0;
}

void *torture_coroutines(void *arg) {
    coroutines.slot = (int)(intptr_t)arg;
    int made = 0;
    for (int i = 0; i < COROUTINES; i++)
        made += coroutine_make(&coroutines.all[i], i) == 0;
    torture_check(coroutines.slot, made == COROUTINES, "no coroutines");
    for (;;) {
        torture_round(coroutines.slot);
        for (int n = 0; n < 10 && made == COROUTINES; n++)
            (void)swapcontext(&coroutines.main, &coroutines.all[0].context);
        for (int i = 0; i < made; i++)
            for (int k = 0; k < COROUTINE_EDGE; k++)
                torture_check(coroutines.slot, coroutines.all[i].stack[k] == COROUTINE_FILL,
                              "a coroutine's stack was used to its end");
        torture_nap(coroutines.slot, 1000);
    }
    return NULL;
}
