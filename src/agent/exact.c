/* SPDX-License-Identifier: Apache-2.0 */
/* exact: see exact.h. Signals: tgkill(2), sigaction(2), signal(7). */
#include "agent/exact.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/rewind.h"
#include "agent/room.h"
#include "base/clock.h"
#include "base/procfs.h"

#define EXACT_SIGNAL SIGURG
#define EXACT_END_NS (500 * CLOCK_NS_PER_MS) /* a handler that has begun ends within this */
#define EXACT_SPIN_NS (60 * CLOCK_NS_PER_US) /* an answer usually comes within this */
#define EXACT_STATUS_NS CLOCK_NS_PER_S /* how long what the kernel said of a thread's mask is believed */
#define EXACT_BLOCKED_NS (50 * CLOCK_NS_PER_MS) /* and when it blocks: it may be creating a thread */
#define EXACT_LOOK_NS (15 * CLOCK_NS_PER_US)    /* a look at a stack takes less than one */
#define EXACT_LOOKS 3
#define EXACT_LONG_NS (250 * CLOCK_NS_PER_US)       /* what took longer was not on a CPU all the time */
#define EXACT_TRIES 9                               /* signals to ourselves, to see what one costs */
#define EXACT_TOUCHED (sizeof(struct pystack_self)) /* counted as memory of ours, for each slot in use */

enum exact_state {
    EXACT_FREE = 0,
    EXACT_SENT,
    EXACT_RUNNING, /* the handler copies */
    EXACT_DONE,
};

/* A thread's place. Only `state` is written by both sides. */
struct exact_slot {
    uint32_t state; /* enum exact_state, atomic */
    int64_t tid;
    uint64_t serial;
    uint64_t used_ns;
    uint64_t status_ns; /* when its mask was looked at; 0 never */
    bool counted_late, blocked;
    bool unwanted;             /* nobody waits for the answer any more */
    bool filtered;             /* it may not read memory as the handler does */
    struct room_stack stack;   /* its own */
    struct pystack_self *self; /* in the pool; NULL before its first use */
};

/* A disposition as the kernel keeps it (its struct sigaction): libc adds a flag to each that goes through it, and what is put
 * back is to be what was there. */
struct exact_action {
    uint64_t handler, flags, restorer, mask;
};

/* Lives as long as the library is loaded: a handler may find it at any time. */
static struct exact_control {
    bool armed; /* the handler is installed */
    pid_t pid;
    struct exact_action before;
    struct pystack_self *pool;  /* EXACT_SLOTS; mapped by the first exact_arm */
    struct native_copy *native; /* EXACT_SLOTS; mapped when they are first wanted */
    bool native_wanted;
    struct exact_stats *stats;
    uint64_t restarted, eintr, handler_ns, handled; /* written by handlers */
    /* A bit for each slot that a question was sent from and not taken back, so that a handler looks into no others. */
    uint64_t asked;
    int64_t left_out;    /* see exact_leave_out */
    uint64_t used;       /* a bit for each slot that belongs to a thread */
    uint64_t deliver_ns; /* what the kernel spends on a signal around the handler; 0 not measured yet */
    struct exact_slot slots[EXACT_SLOTS];
} exact;

_Static_assert(EXACT_SLOTS <= 64, "a slot is a bit of a word");

static uint64_t exact_bit(const struct exact_slot *slot) { return 1ULL << (slot - exact.slots); }

/* Nobody answers what was asked from this slot any more. */
static void exact_unask(const struct exact_slot *slot) {
    (void)__atomic_and_fetch(&exact.asked, ~exact_bit(slot), __ATOMIC_RELAXED);
}

/* ---- on the job's threads ---- */

/* Copy for whoever has asked this thread. A signal that finds one pending is dropped by the kernel, so each answers all
 * questions; one that comes after its question was given up finds none. */
static void exact_answer(const void *context) {
    int64_t tid = syscall(SYS_gettid);
    for (uint64_t rest = __atomic_load_n(&exact.asked, __ATOMIC_ACQUIRE); rest; rest &= rest - 1) {
        struct exact_slot *slot = &exact.slots[__builtin_ctzll(rest)];
        uint32_t expected = EXACT_SENT;
        if (__atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) != EXACT_SENT || slot->tid != tid ||
            !__atomic_compare_exchange_n(&slot->state, &expected, EXACT_RUNNING, false, __ATOMIC_ACQUIRE,
                                         __ATOMIC_RELAXED))
            continue;
        pystack_self_copy(slot->self);
        if (slot->self->native)
            native_copy_context(slot->self->native, context, exact.pid);
        uint64_t spent = clock_mono_ns() - slot->self->taken_ns;
        spent = spent < EXACT_LONG_NS ? spent : EXACT_LONG_NS;
        (void)__atomic_add_fetch(&exact.handler_ns, spent, __ATOMIC_RELAXED);
        (void)__atomic_add_fetch(&exact.handled, 1, __ATOMIC_RELAXED);
        __atomic_store_n(&slot->state, EXACT_DONE, __ATOMIC_RELEASE);
    }
}

/* What was installed before did nothing (see exact_arm), so there is nothing to pass a signal of the job's on to. */
static void exact_handler(int sig, siginfo_t *info, void *context) {
    int saved = errno;
    (void)info;
    exact_answer(context);
    enum rewind_result r = rewind_interrupted(sig, context);
    if (r == REWIND_DONE)
        (void)__atomic_add_fetch(&exact.restarted, 1, __ATOMIC_RELAXED);
    if (r == REWIND_LEFT)
        (void)__atomic_add_fetch(&exact.eintr, 1, __ATOMIC_RELAXED);
    errno = saved;
}

/* ---- the handler comes and goes ---- */

static int exact_map(struct err *e) {
    if (exact.pool)
        return 0;
    void *p = mmap(NULL, EXACT_SLOTS * sizeof *exact.pool, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return err_set_errno(e, ERR_FAILED, errno, "no memory for copies of stacks");
    (void)madvise(p, EXACT_SLOTS * sizeof *exact.pool, MADV_DONTFORK);
    exact.pool = p;
    return 0;
}

static void exact_unmap(void) {
    (void)munmap(exact.pool, EXACT_SLOTS * sizeof *exact.pool);
    if (exact.native)
        (void)munmap(exact.native, EXACT_SLOTS * sizeof *exact.native);
    exact.pool = NULL;
    exact.native = NULL;
    exact.native_wanted = false;
}

/* Nothing is mapped while no handler is installed: exact_disarm would not take it away. */
void exact_set_native(bool wanted) {
    size_t size = EXACT_SLOTS * sizeof *exact.native;
    wanted = wanted && exact.armed;
    if (wanted && !exact.native) {
        void *p =
            mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        exact.native = p == MAP_FAILED ? NULL : p;
        if (exact.native)
            (void)madvise(p, size, MADV_DONTFORK);
    }
    exact.native_wanted = wanted && exact.native;
}

static int exact_get_action(struct exact_action *out) {
    return (int)syscall(SYS_rt_sigaction, EXACT_SIGNAL, NULL, out, sizeof out->mask);
}

static bool exact_is_ours(const struct sigaction *sa) {
    return (sa->sa_flags & SA_SIGINFO) && sa->sa_sigaction == exact_handler;
}

/* Async-signal-safe. */
static void exact_put_back(void) {
    struct sigaction now;
    if (sigaction(EXACT_SIGNAL, NULL, &now) == 0 && exact_is_ours(&now))
        (void)syscall(SYS_rt_sigaction, EXACT_SIGNAL, &exact.before, NULL, sizeof exact.before.mask);
}

/* What a signal costs its thread beside the handler: the kernel's frame and the way back. The calling thread sends itself
 * some, and the fastest counts. What brings the signal to another CPU is not in it. */
static uint64_t exact_measure_delivery(void) {
    sigset_t ours, before;
    uint64_t best = UINT64_MAX;
    (void)sigemptyset(&ours);
    (void)sigaddset(&ours, EXACT_SIGNAL);
    if (pthread_sigmask(SIG_UNBLOCK, &ours, &before) != 0)
        return 0;
    for (int i = 0; i < EXACT_TRIES; i++) {
        uint64_t from = clock_mono_ns();
        (void)syscall(SYS_tgkill, exact.pid, (pid_t)syscall(SYS_gettid), EXACT_SIGNAL);
        uint64_t spent = clock_mono_ns() - from;
        best = spent < best ? spent : best;
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return best;
}

int exact_arm(struct exact_stats *stats, struct err *e) {
    struct sigaction sa = {.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    if (exact.armed)
        return 0;
    exact.pid = getpid();
    exact.stats = stats;
    if (exact_get_action(&exact.before) != 0)
        return err_set_errno(e, ERR_FAILED, errno, "the disposition of SIGURG cannot be read");
    if (exact.before.handler != (uintptr_t)SIG_DFL && exact.before.handler != (uintptr_t)SIG_IGN)
        return err_set(e, ERR_FAILED, "the job has a handler for SIGURG");
    bool mapped_now = !exact.pool; /* else a handler that had no end may still copy there */
    if (exact_map(e) != 0)
        return -1;
    sa.sa_sigaction = exact_handler;
    (void)sigfillset(&sa.sa_mask);
    exact.armed = true; /* before it is: the child of a fork right after must know */
    if (sigaction(EXACT_SIGNAL, &sa, NULL) != 0) {
        exact.armed = false;
        (void)err_set_errno(e, ERR_FAILED, errno, "no handler for SIGURG can be installed");
        if (mapped_now)
            exact_unmap();
        return -1;
    }
    if (!exact.deliver_ns)
        exact.deliver_ns = exact_measure_delivery();
    return 0;
}

/* No handler that comes from now on copies; those that do already end soon. Slots still in use then stay so. */
static void exact_quiet(void) {
    uint64_t until = clock_mono_ns() + EXACT_END_NS;
    for (size_t i = 0; i < EXACT_SLOTS; i++) {
        struct exact_slot *slot = &exact.slots[i];
        uint32_t expected = EXACT_SENT;
        (void)__atomic_compare_exchange_n(&slot->state, &expected, EXACT_FREE, false, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE);
        while (__atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) == EXACT_RUNNING && clock_mono_ns() < until) {
            struct timespec pause = {.tv_nsec = 50 * (long)CLOCK_NS_PER_US};
            (void)nanosleep(&pause, NULL);
        }
    }
}

void exact_disarm(void) {
    bool busy = false;
    if (!exact.armed)
        return;
    exact_quiet();
    exact_put_back();
    exact.armed = false;
    for (size_t i = 0; i < EXACT_SLOTS; i++) {
        struct exact_slot *slot = &exact.slots[i];
        if (__atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) == EXACT_RUNNING)
            busy = true;
        else
            *slot = (struct exact_slot){0};
    }
    exact.asked = exact.used = 0;
    room_forget();
    if (!busy)
        exact_unmap();
}

bool exact_is_armed(void) { return exact.armed; }

int exact_check(struct err *e) {
    struct sigaction now;
    if (sigaction(EXACT_SIGNAL, NULL, &now) == 0 && exact_is_ours(&now)) {
        exact.stats->restarted = __atomic_load_n(&exact.restarted, __ATOMIC_RELAXED);
        exact.stats->eintr = __atomic_load_n(&exact.eintr, __ATOMIC_RELAXED);
        exact.stats->handled = __atomic_load_n(&exact.handled, __ATOMIC_RELAXED);
        exact.stats->handler_ns = __atomic_load_n(&exact.handler_ns, __ATOMIC_RELAXED);
        exact.stats->deliver_ns = exact.stats->handled * exact.deliver_ns;
        return 0;
    }
    exact_disarm();
    return err_set(e, ERR_FAILED, "the job has installed a handler for SIGURG");
}

void exact_in_child(void) {
    exact_put_back(); /* even if it is not armed any more: fork copies dispositions before it copies memory */
    exact = (struct exact_control){0};
}

size_t exact_bytes(void) {
    size_t n = room_bytes();
    for (size_t i = 0; i < EXACT_SLOTS; i++)
        n += exact.slots[i].self ? EXACT_TOUCHED + (exact.native ? sizeof *exact.native : 0) : 0;
    return n;
}

/* ---- asking ---- */

bool exact_is_running(int64_t tid, uint64_t cpu_ns) {
    struct procfs_syscall call;
    /* The clock of a thread that is on a CPU moves between two looks. */
    if (clock_thread_cpu_ns((pid_t)tid) != cpu_ns)
        return true;
    return procfs_read_syscall(0, (pid_t)tid, &call) == 1;
}

static struct exact_slot *exact_find(const struct pystack_thread *t) {
    for (uint64_t rest = exact.used; rest; rest &= rest - 1) {
        struct exact_slot *slot = &exact.slots[__builtin_ctzll(rest)];
        if (slot->tid == t->tid && slot->serial == t->serial)
            return slot;
    }
    return NULL;
}

/* The thread's slot, or the free one that was not used for the longest time. NULL when none is free. */
static struct exact_slot *exact_take(const struct pystack_thread *t, uint64_t now) {
    struct exact_slot *slot = exact_find(t);
    if (slot)
        return slot;
    for (size_t i = 0; i < EXACT_SLOTS; i++) {
        struct exact_slot *other = &exact.slots[i];
        bool is_free = __atomic_load_n(&other->state, __ATOMIC_ACQUIRE) == EXACT_FREE;
        if (is_free && (!slot || other->used_ns < slot->used_ns))
            slot = other;
    }
    if (!slot)
        return NULL;
    size_t i = (size_t)(slot - exact.slots);
    exact.used |= exact_bit(slot);
    if (exact.native)
        exact.native[i].stack_end = 0; /* of another thread */
    *slot = (struct exact_slot){.tid = t->tid, .serial = t->serial, .used_ns = now, .self = &exact.pool[i]};
    return slot;
}

/* Would the thread take the signal, and survive it? One that blocks it would answer at some later time; one with other
 * seccomp filters than ours might be killed for what the handler does. */
static bool exact_takes_it(struct exact_slot *slot, uint64_t now) {
    struct procfs_status status, own;
    uint64_t believed = slot->blocked ? EXACT_BLOCKED_NS : EXACT_STATUS_NS;
    if (slot->status_ns && now - slot->status_ns < believed)
        return !slot->blocked;
    slot->status_ns = now;
    slot->blocked = procfs_read_status(0, (pid_t)slot->tid, &status) != 0 ||
                    procfs_read_status(0, (pid_t)syscall(SYS_gettid), &own) != 0 ||
                    (status.sig_blocked >> (EXACT_SIGNAL - 1) & 1) || status.seccomp != own.seccomp ||
                    status.seccomp_filters != own.seccomp_filters;
    return !slot->blocked;
}

static bool exact_may_ask(struct exact_slot *slot, const struct pystack_thread *t, uint64_t now) {
    return !slot->filtered && exact_takes_it(slot, now) &&
           (slot->stack.high || room_find(t->tid, t->ident, t->seen_ns, &slot->stack));
}

/* Send the signal right after it was seen that there is room for it. When we were put off the CPU in between, the thread may
 * have gone a long way: look again. 0, or -1 when it is not sent. */
static int exact_send(const struct exact_slot *slot) {
    for (int i = 0; i < EXACT_LOOKS; i++) {
        uint64_t before = clock_mono_ns();
        if (!room_is_enough(&slot->stack))
            return -1;
        if (clock_mono_ns() - before < EXACT_LOOK_NS)
            return (int)syscall(SYS_tgkill, exact.pid, (pid_t)slot->tid, EXACT_SIGNAL);
    }
    return -1;
}

bool exact_ask(struct pystack *ps, const struct pystack_thread *t, const struct pystack_known *known) {
    uint64_t now = clock_mono_ns();
    struct exact_slot *slot = exact.armed && t->tid != exact.left_out ? exact_take(t, now) : NULL;
    if (slot && slot->unwanted)
        exact_release(t);
    if (!slot || __atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) != EXACT_FREE)
        return false;
    if (!exact_may_ask(slot, t, now)) {
        exact.stats->refused++;
        return false;
    }
    slot->used_ns = now;
    slot->counted_late = slot->unwanted = false;
    pystack_self_prepare(ps, slot->self, t, known);
    slot->self->native = exact.native_wanted ? &exact.native[slot - exact.slots] : NULL;
    if (slot->self->native)
        slot->self->native->known = 0;
    __atomic_store_n(&slot->state, EXACT_SENT, __ATOMIC_RELEASE);
    (void)__atomic_or_fetch(&exact.asked, exact_bit(slot), __ATOMIC_RELEASE);
    if (exact_send(slot) != 0) {
        exact_unask(slot);
        __atomic_store_n(&slot->state, EXACT_FREE, __ATOMIC_RELEASE);
        exact.stats->refused++;
        return false;
    }
    exact.stats->sent++;
    return true;
}

void exact_count_late(const struct pystack_thread *t) {
    struct exact_slot *slot = exact_find(t);
    if (!slot || slot->counted_late)
        return;
    slot->counted_late = true;
    exact.stats->late++;
}

enum exact_answer exact_get(const struct pystack_thread *t, const struct pystack_self **copy) {
    struct exact_slot *slot = exact.armed ? exact_find(t) : NULL;
    *copy = NULL;
    switch (slot ? (enum exact_state)__atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) : EXACT_FREE) {
    case EXACT_FREE:
        return EXACT_NONE;
    case EXACT_SENT:
        return EXACT_WAITING;
    case EXACT_RUNNING:
        return EXACT_COPYING;
    case EXACT_DONE:
        *copy = slot->self;
        return EXACT_READY;
    }
    return EXACT_NONE;
}

enum exact_answer exact_wait(const struct pystack_thread *t, uint64_t until_ns,
                             const struct pystack_self **copy) {
    uint64_t spin_until = clock_mono_ns() + EXACT_SPIN_NS;
    enum exact_answer answer;
    while ((answer = exact_get(t, copy)) == EXACT_WAITING || answer == EXACT_COPYING) {
        struct timespec pause = {.tv_nsec = (long)EXACT_SPIN_NS};
        uint64_t now = clock_mono_ns();
        if (now >= until_ns)
            break;
        if (now > spin_until)
            (void)nanosleep(&pause, NULL);
    }
    struct exact_slot *slot = answer == EXACT_READY ? NULL : exact_find(t);
    if (slot) {
        slot->unwanted = true;
        exact_count_late(t);
    }
    return answer;
}

void exact_leave_out(int64_t tid) { exact.left_out = tid; }

void exact_release(const struct pystack_thread *t) {
    struct exact_slot *slot = exact_find(t);
    if (!slot || __atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) != EXACT_DONE)
        return;
    slot->filtered = slot->filtered || slot->self->end == PYSTACK_SELF_REFUSED;
    exact_unask(slot);
    __atomic_store_n(&slot->state, EXACT_FREE, __ATOMIC_RELEASE);
}

void exact_forget(const struct pystack_thread *t) {
    struct exact_slot *slot = exact_find(t);
    uint32_t expected = EXACT_SENT;
    if (!slot)
        return;
    if (__atomic_compare_exchange_n(&slot->state, &expected, EXACT_FREE, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
        exact_unask(slot);
    exact_release(t);
}
