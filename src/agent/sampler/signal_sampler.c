/* SPDX-License-Identifier: Apache-2.0 */
/* signal_sampler: see signal_sampler.h. Signals: tgkill(2), sigaction(2), signal(7). */
#include "agent/sampler/signal_sampler.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "agent/sampler/alt_stack.h"
#include "agent/sampler/rewind.h"
#include "agent/sampler/stack_headroom.h"
#include "agent/sampler/thread_timer.h"
#include "base/clock.h"
#include "base/procfs.h"

#define SIGNAL_SAMPLER_SIGNAL SIGURG
/* a handler that has started ends within this time */
#define SIGNAL_SAMPLER_END_NS (500 * CLOCK_NS_PER_MS)
/* an answer usually arrives within this time */
#define SIGNAL_SAMPLER_SPIN_NS (60 * CLOCK_NS_PER_US)
/* how long a thread's mask, as read from the kernel, is believed */
#define SIGNAL_SAMPLER_STATUS_NS CLOCK_NS_PER_S
/* and if it blocks the signal: it may be creating a thread */
#define SIGNAL_SAMPLER_BLOCKED_NS (50 * CLOCK_NS_PER_MS)
#define SIGNAL_SAMPLER_READ_NS (15 * CLOCK_NS_PER_US) /* a read of a stack takes less */
#define SIGNAL_SAMPLER_READS 3
/* a longer read was not on a CPU all the time */
#define SIGNAL_SAMPLER_LONG_NS (250 * CLOCK_NS_PER_US)
/* signals to ourselves, to measure the cost of one */
#define SIGNAL_SAMPLER_TRIES 9
/* counted as our memory, for each slot in use */
#define SIGNAL_SAMPLER_TOUCHED (sizeof(struct pystack_self))
/* of copies that wait to be drained: a second of stacks of 150 frames at 100 Hz */
#define SIGNAL_SAMPLER_RECORDS ((size_t)512 * 1024)
#define SIGNAL_SAMPLER_UNREAD (-2) /* a seccomp mode that was not read yet; -1: unknown */
/* so many slots may belong to a timer: snapshots need some, too */
#define SIGNAL_SAMPLER_TIMERS (SIGNAL_SAMPLER_SLOTS - 8)
/* a thread that has not run for so long leaves its slot to another that runs */
#define SIGNAL_SAMPLER_UNUSED_NS (5 * CLOCK_NS_PER_S)

enum signal_sampler_state {
    SIGNAL_SAMPLER_FREE = 0,
    SIGNAL_SAMPLER_SENT,
    SIGNAL_SAMPLER_RUNNING, /* the handler copies */
    SIGNAL_SAMPLER_DONE,
    SIGNAL_SAMPLER_DRAINED, /* the sampler takes its records, or prepares it */
};

/* A copy that waits to be drained: this, its frames, its keys. */
struct signal_sampler_record {
    uint64_t taken_ns;
    uint32_t weight, n_frames, n_keys;
    uint8_t end, gil_state;
    int8_t gc_state;
};

_Static_assert(sizeof(struct signal_sampler_record) % _Alignof(struct pystack_self_frame) == 0 &&
                   sizeof(struct pystack_self_frame) % _Alignof(struct pystack_code_key) == 0 &&
                   sizeof(struct pystack_code_key) % _Alignof(struct signal_sampler_record) == 0,
               "one after the other, they are read where they are");

/* A thread's slot. Only `state` is written by both sides. */
struct signal_sampler_slot {
    uint32_t state; /* enum signal_sampler_state, atomic */
    int64_t tid;
    uint64_t serial;
    uint64_t used_ns;
    uint64_t status_ns; /* time when its mask was read; 0: never */
    bool counted_late, blocked;
    bool unwanted;                     /* nobody waits for the answer any longer */
    bool filtered;                     /* its seccomp filter may forbid the handler's reads */
    struct stack_headroom_stack stack; /* of the thread */
    struct pystack_self *self;         /* in the pool; NULL before its first use */
    int timer;                         /* its id + 1; 0: there is none */
    uint64_t interval_ns;              /* of the timer */
    void *alt_memory;                  /* an alternative stack for the thread; NULL: it is not to get one */
    /* written by the handler: the thread's alternative stack (enum alt_stack_state, atomic), and
     * what waits to be drained (while it is RUNNING) */
    uint8_t alt;
    bool alt_given;           /* it was given alt_memory */
    uint32_t n_records, lost; /* lost: expiries for which there was no room */
    size_t records_used;      /* bytes */
    size_t records_most;      /* bytes that were used so far */
};

/* A disposition in the kernel's format (struct sigaction of the kernel): libc adds a flag to
 * each one that passes through it, and the restored one must be identical. */
struct signal_sampler_action {
    uint64_t handler, flags, restorer, mask;
};

/* It lives as long as the library is loaded: a handler may find it at any time. */
static struct signal_sampler_control {
    bool armed; /* the handler is installed */
    pid_t pid;
    struct signal_sampler_action before;
    struct pystack_self *pool;  /* SIGNAL_SAMPLER_SLOTS; mapped by the first signal_sampler_arm */
    struct native_copy *native; /* SIGNAL_SAMPLER_SLOTS; mapped at first use */
    /* SIGNAL_SAMPLER_SLOTS x SIGNAL_SAMPLER_RECORDS, and room for those of the slot being drained;
     * mapped at first use */
    uint8_t *records;
    char timer_error[160]; /* why timers were refused */
    bool native_wanted;
    struct signal_sampler_stats *stats;
    uint64_t restarted, eintr, handler_ns, handled, expired; /* written by handlers */
    /* One bit for each slot with a request that was sent and not withdrawn, so that a handler
     * checks no other slots. */
    uint64_t asked;
    int64_t left_out; /* see signal_sampler_leave_out */
    /* of the sampler's thread, as last read */
    int seccomp;
    int64_t seccomp_filters;
    uint64_t used; /* one bit for each slot that belongs to a thread */
    /* the kernel's cost of a signal around the handler; 0 if not measured yet */
    uint64_t deliver_ns;
    struct signal_sampler_slot slots[SIGNAL_SAMPLER_SLOTS];
} exact;

_Static_assert(SIGNAL_SAMPLER_SLOTS <= 64, "a slot is a bit of a word");

static uint64_t signal_sampler_bit(const struct signal_sampler_slot *slot) {
    return 1ULL << (slot - exact.slots);
}

/* No handler needs to look at this slot. */
static void signal_sampler_unask(const struct signal_sampler_slot *slot) {
    __atomic_and_fetch(&exact.asked, ~signal_sampler_bit(slot), __ATOMIC_RELAXED);
}

/* Withdraw the request of this slot. False if there is none, or the handler has begun to answer it. */
static bool signal_sampler_withdraw(struct signal_sampler_slot *slot) {
    uint32_t expected = SIGNAL_SAMPLER_SENT;
    if (!__atomic_compare_exchange_n(&slot->state, &expected, SIGNAL_SAMPLER_FREE, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
        return false;
    signal_sampler_unask(slot);
    return true;
}

/* ---- on the job's threads ---- */

static uint8_t *signal_sampler_records(const struct signal_sampler_slot *slot) {
    return exact.records + (size_t)(slot - exact.slots) * SIGNAL_SAMPLER_RECORDS;
}

/* Add the thread's copy to those that wait to be drained. */
static void signal_sampler_keep_copy(struct signal_sampler_slot *slot, uint32_t weight) {
    const struct pystack_self *s = slot->self;
    size_t frames = s->n_frames * sizeof s->frames[0], keys = s->n_keys * sizeof s->keys[0];
    struct signal_sampler_record r = {.taken_ns = s->taken_ns,
                                      .weight = weight,
                                      .n_frames = (uint32_t)s->n_frames,
                                      .n_keys = (uint32_t)s->n_keys,
                                      .end = (uint8_t)s->end,
                                      .gil_state = (uint8_t)s->gil_state,
                                      .gc_state = s->gc_state};
    if (SIGNAL_SAMPLER_RECORDS - slot->records_used < sizeof r + frames + keys) {
        slot->lost += weight;
        return;
    }
    uint8_t *to = signal_sampler_records(slot) + slot->records_used;
    memcpy(to, &r, sizeof r);
    memcpy(to + sizeof r, s->frames, frames);
    memcpy(to + sizeof r + frames, s->keys, keys);
    slot->records_used += sizeof r + frames + keys;
    slot->n_records++;
}

static bool signal_sampler_has_timer(const struct signal_sampler_slot *slot, int64_t tid) {
    return slot->tid == tid && __atomic_load_n(&slot->timer, __ATOMIC_SEQ_CST);
}

/* The slot of this thread if its timer has sent the signal. */
static struct signal_sampler_slot *signal_sampler_timed(const siginfo_t *info, int64_t tid) {
    int at = info->si_code == SI_TIMER ? info->si_value.sival_int : -1;
    if (at < 0 || at >= SIGNAL_SAMPLER_SLOTS || !signal_sampler_has_timer(&exact.slots[at], tid))
        return NULL;
    return &exact.slots[at];
}

/* Begin to copy for the thread's timer. False if the slot is in use, or is no longer this
 * thread's. */
static bool signal_sampler_begin_timed(struct signal_sampler_slot *slot, int64_t tid) {
    uint32_t from = SIGNAL_SAMPLER_FREE;
    if (!__atomic_compare_exchange_n(&slot->state, &from, SIGNAL_SAMPLER_RUNNING, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST))
        return false;
    if (!signal_sampler_has_timer(slot, tid)) {
        __atomic_store_n(&slot->state, SIGNAL_SAMPLER_FREE, __ATOMIC_RELEASE);
        return false;
    }
    pystack_self_reuse(slot->self);
    slot->self->native = NULL;
    return true;
}

/* Note the thread's alternative stack, and give it one: once, because whoever takes ours away may
 * have unmapped it. */
static void signal_sampler_give_stack(struct signal_sampler_slot *slot, void *context) {
    enum alt_stack_state state = alt_stack_install(slot->alt_given ? NULL : slot->alt_memory, context);
    if (state == ALT_STACK_NONE && slot->alt_given)
        state = ALT_STACK_UNFIT;
    slot->alt_given |= slot->alt_memory != NULL;
    __atomic_store_n(&slot->alt, (uint8_t)state, __ATOMIC_RELAXED);
}

static uint64_t signal_sampler_stack_pointer(const void *context) {
    return (uint64_t)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RSP];
}

/* Copy for every request to this thread, and for its timer. The kernel drops a signal while the
 * same one is pending, so each answers all requests; a signal that arrives after its request was
 * withdrawn finds none. */
static void signal_sampler_answer(const siginfo_t *info, void *context) {
    int64_t tid = syscall(SYS_gettid);
    struct signal_sampler_slot *timed = signal_sampler_timed(info, tid);
    uint32_t weight = timed && info->si_overrun > 0 ? 1 + (uint32_t)info->si_overrun : 1;
    uint64_t rest = __atomic_load_n(&exact.asked, __ATOMIC_ACQUIRE) | (timed ? signal_sampler_bit(timed) : 0);
    for (; rest; rest &= rest - 1) {
        struct signal_sampler_slot *slot = &exact.slots[__builtin_ctzll(rest)];
        uint32_t expected = SIGNAL_SAMPLER_SENT;
        bool asked =
            slot->tid == tid && __atomic_compare_exchange_n(&slot->state, &expected, SIGNAL_SAMPLER_RUNNING,
                                                            false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
        if (!asked && (slot != timed || !signal_sampler_begin_timed(slot, tid)))
            continue;
        signal_sampler_give_stack(slot, context);
        pystack_self_copy(slot->self, signal_sampler_stack_pointer(context));
        if (slot->self->native)
            native_copy_context(slot->self->native, context, exact.pid);
        if (slot == timed)
            signal_sampler_keep_copy(slot, weight);
        uint64_t spent = clock_mono_ns() - slot->self->taken_ns;
        spent = spent < SIGNAL_SAMPLER_LONG_NS ? spent : SIGNAL_SAMPLER_LONG_NS;
        __atomic_add_fetch(&exact.handler_ns, spent, __ATOMIC_RELAXED);
        __atomic_add_fetch(&exact.handled, 1, __ATOMIC_RELAXED);
        __atomic_store_n(&slot->state, asked ? SIGNAL_SAMPLER_DONE : SIGNAL_SAMPLER_FREE, __ATOMIC_RELEASE);
    }
    if (timed)
        __atomic_add_fetch(&exact.expired, weight, __ATOMIC_RELAXED);
}

/* The previous disposition did nothing (see signal_sampler_arm), so a signal of the job's own
 * need not be passed on. */
static void signal_sampler_handler(int sig, siginfo_t *info, void *context) {
    int saved = errno;
    signal_sampler_answer(info, context);
    enum rewind_result r = rewind_interrupted(sig, context);
    if (r == REWIND_DONE)
        __atomic_add_fetch(&exact.restarted, 1, __ATOMIC_RELAXED);
    if (r == REWIND_LEFT)
        __atomic_add_fetch(&exact.eintr, 1, __ATOMIC_RELAXED);
    errno = saved;
}

/* ---- what handlers have counted ---- */

/* The counters go on from those of this sampler: an earlier one's lie here as long as the library is
 * loaded. */
static void signal_sampler_count_on(const struct signal_sampler_stats *stats) {
    __atomic_store_n(&exact.restarted, stats->restarted, __ATOMIC_RELAXED);
    __atomic_store_n(&exact.eintr, stats->eintr, __ATOMIC_RELAXED);
    __atomic_store_n(&exact.handled, stats->handled, __ATOMIC_RELAXED);
    __atomic_store_n(&exact.handler_ns, stats->handler_ns, __ATOMIC_RELAXED);
    __atomic_store_n(&exact.expired, stats->expired, __ATOMIC_RELAXED);
}

static void signal_sampler_get_counts(struct signal_sampler_stats *stats) {
    stats->restarted = __atomic_load_n(&exact.restarted, __ATOMIC_RELAXED);
    stats->eintr = __atomic_load_n(&exact.eintr, __ATOMIC_RELAXED);
    stats->handled = __atomic_load_n(&exact.handled, __ATOMIC_RELAXED);
    stats->handler_ns = __atomic_load_n(&exact.handler_ns, __ATOMIC_RELAXED);
    stats->deliver_ns = stats->handled * exact.deliver_ns;
    stats->expired = __atomic_load_n(&exact.expired, __ATOMIC_RELAXED);
}

/* ---- installing and removing the handler ---- */

#define SIGNAL_SAMPLER_POOL_BYTES (SIGNAL_SAMPLER_SLOTS * sizeof *exact.pool)
#define SIGNAL_SAMPLER_NATIVE_BYTES (SIGNAL_SAMPLER_SLOTS * sizeof *exact.native)
#define SIGNAL_SAMPLER_RECORDS_BYTES ((SIGNAL_SAMPLER_SLOTS + 1) * SIGNAL_SAMPLER_RECORDS)

/* Memory that no child of a fork gets, or NULL. What is not touched costs nothing. */
static void *signal_sampler_map(size_t size) {
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    madvise(p, size, MADV_DONTFORK);
    madvise(p, size, MADV_NOHUGEPAGE); /* a huge page would be touched for the little that is used */
    return p;
}

static void signal_sampler_unmap(void) {
    munmap(exact.pool, SIGNAL_SAMPLER_POOL_BYTES);
    if (exact.native)
        munmap(exact.native, SIGNAL_SAMPLER_NATIVE_BYTES);
    if (exact.records)
        munmap(exact.records, SIGNAL_SAMPLER_RECORDS_BYTES);
    exact.pool = NULL;
    exact.native = NULL;
    exact.records = NULL;
    exact.native_wanted = false;
}

/* Nothing is mapped while no handler is installed, because signal_sampler_disarm would not unmap
 * it. */
void signal_sampler_set_native(bool wanted) {
    wanted = wanted && exact.armed;
    if (wanted && !exact.native)
        exact.native = signal_sampler_map(SIGNAL_SAMPLER_NATIVE_BYTES);
    exact.native_wanted = wanted && exact.native;
}

static int signal_sampler_get_action(struct signal_sampler_action *out) {
    return (int)syscall(SYS_rt_sigaction, SIGNAL_SAMPLER_SIGNAL, NULL, out, sizeof out->mask);
}

static bool signal_sampler_is_ours(const struct sigaction *sa) {
    return (sa->sa_flags & SA_SIGINFO) && sa->sa_sigaction == signal_sampler_handler;
}

/* Async-signal-safe. */
static void signal_sampler_put_back(void) {
    struct sigaction now;
    if (sigaction(SIGNAL_SAMPLER_SIGNAL, NULL, &now) == 0 && signal_sampler_is_ours(&now))
        syscall(SYS_rt_sigaction, SIGNAL_SAMPLER_SIGNAL, &exact.before, NULL, sizeof exact.before.mask);
}

/* The cost of a signal for its thread besides the handler: the kernel's frame and the return.
 * The calling thread sends itself some, and the fastest counts. The cost of bringing the signal
 * to another CPU is not included. */
static uint64_t signal_sampler_measure_delivery(void) {
    sigset_t ours, before;
    uint64_t best = UINT64_MAX;
    sigemptyset(&ours);
    sigaddset(&ours, SIGNAL_SAMPLER_SIGNAL);
    if (pthread_sigmask(SIG_UNBLOCK, &ours, &before) != 0)
        return 0;
    for (int i = 0; i < SIGNAL_SAMPLER_TRIES; i++) {
        uint64_t from = clock_mono_ns();
        syscall(SYS_tgkill, exact.pid, (pid_t)syscall(SYS_gettid), SIGNAL_SAMPLER_SIGNAL);
        uint64_t spent = clock_mono_ns() - from;
        best = spent < best ? spent : best;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return best;
}

int signal_sampler_arm(struct signal_sampler_stats *stats, struct err *e) {
    struct sigaction sa = {.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    if (exact.armed)
        return 0;
    exact.pid = getpid();
    exact.stats = stats;
    exact.seccomp = SIGNAL_SAMPLER_UNREAD;
    if (signal_sampler_get_action(&exact.before) != 0)
        return err_set_errno(e, ERR_FAILED, errno, "the disposition of SIGURG cannot be read");
    if (exact.before.handler != (uintptr_t)SIG_DFL && exact.before.handler != (uintptr_t)SIG_IGN)
        return err_set(e, ERR_FAILED, "the job has a handler for SIGURG");
    bool mapped_now = !exact.pool; /* otherwise a handler that did not end may still copy there */
    if (mapped_now)
        exact.pool = signal_sampler_map(SIGNAL_SAMPLER_POOL_BYTES);
    if (!exact.pool)
        return err_set_errno(e, ERR_FAILED, errno, "no memory for copies of stacks");
    signal_sampler_count_on(stats);
    sa.sa_sigaction = signal_sampler_handler;
    sigfillset(&sa.sa_mask);
    exact.armed = true; /* set before it is installed: the child of a fork right after must know */
    if (sigaction(SIGNAL_SAMPLER_SIGNAL, &sa, NULL) != 0) {
        exact.armed = false;
        err_set_errno(e, ERR_FAILED, errno, "no handler for SIGURG can be installed");
        if (mapped_now)
            signal_sampler_unmap();
        return -1;
    }
    if (!exact.deliver_ns)
        exact.deliver_ns = signal_sampler_measure_delivery();
    return 0;
}

/* No handler that starts from now on copies; those that copy already end soon. Slots that are
 * still in use then remain so. */
static void signal_sampler_quiet(void) {
    uint64_t until = clock_mono_ns() + SIGNAL_SAMPLER_END_NS;
    for (size_t i = 0; i < SIGNAL_SAMPLER_SLOTS; i++) {
        struct signal_sampler_slot *slot = &exact.slots[i];
        (void)signal_sampler_withdraw(slot);
        while (__atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) == SIGNAL_SAMPLER_RUNNING &&
               clock_mono_ns() < until) {
            struct timespec pause = {.tv_nsec = 50 * (long)CLOCK_NS_PER_US};
            nanosleep(&pause, NULL);
        }
    }
}

static void signal_sampler_stop_timer(struct signal_sampler_slot *slot) {
    int timer = slot->timer;
    if (!timer)
        return;
    __atomic_store_n(&slot->timer, 0, __ATOMIC_SEQ_CST); /* a signal that is pending finds none */
    thread_timer_delete(timer - 1);
}

void signal_sampler_stop_timers(void) {
    for (size_t i = 0; i < SIGNAL_SAMPLER_SLOTS; i++)
        signal_sampler_stop_timer(&exact.slots[i]);
    exact.timer_error[0] = 0;
}

void signal_sampler_disarm(void) {
    bool busy = false;
    if (!exact.armed)
        return;
    signal_sampler_stop_timers();
    signal_sampler_quiet();
    signal_sampler_put_back();
    signal_sampler_get_counts(exact.stats);
    exact.armed = false;
    for (size_t i = 0; i < SIGNAL_SAMPLER_SLOTS; i++) {
        struct signal_sampler_slot *slot = &exact.slots[i];
        if (__atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) == SIGNAL_SAMPLER_RUNNING)
            busy = true;
        else
            *slot = (struct signal_sampler_slot){0};
    }
    exact.asked = exact.used = 0;
    stack_headroom_forget();
    if (!busy)
        signal_sampler_unmap();
}

bool signal_sampler_is_armed(void) { return exact.armed; }

int signal_sampler_check(struct err *e) {
    struct sigaction now;
    if (sigaction(SIGNAL_SAMPLER_SIGNAL, NULL, &now) == 0 && signal_sampler_is_ours(&now)) {
        signal_sampler_get_counts(exact.stats);
        return 0;
    }
    signal_sampler_disarm();
    return err_set(e, ERR_FAILED, "the job has installed a handler for SIGURG");
}

void signal_sampler_in_child(void) {
    /* even if it is not armed any longer: fork copies dispositions before memory */
    signal_sampler_put_back();
    exact = (struct signal_sampler_control){0};
    alt_stack_in_child();
}

size_t signal_sampler_bytes(void) {
    size_t n = stack_headroom_bytes() + alt_stack_bytes();
    for (size_t i = 0; i < SIGNAL_SAMPLER_SLOTS; i++)
        n += exact.slots[i].self ? SIGNAL_SAMPLER_TOUCHED + (exact.native ? sizeof *exact.native : 0) +
                                       exact.slots[i].records_most
                                 : 0;
    return n;
}

/* ---- asking ---- */

bool signal_sampler_is_running(int64_t tid, uint64_t cpu_ns) {
    struct procfs_syscall call;
    /* The clock of a thread on a CPU moves between two reads. */
    if (clock_thread_cpu_ns((pid_t)tid) != cpu_ns)
        return true;
    return procfs_read_syscall(0, (pid_t)tid, &call) == 1;
}

/* Keep handlers away from a slot that nobody was asked for: a timer may expire at any time. False
 * if one is copying, for longer than it needs on a CPU. */
static bool signal_sampler_own(struct signal_sampler_slot *slot) {
    uint64_t until = clock_mono_ns() + SIGNAL_SAMPLER_SPIN_NS;
    for (;;) {
        uint32_t from = SIGNAL_SAMPLER_FREE;
        if (__atomic_compare_exchange_n(&slot->state, &from, SIGNAL_SAMPLER_DRAINED, false, __ATOMIC_ACQUIRE,
                                        __ATOMIC_ACQUIRE))
            return true;
        if (from != SIGNAL_SAMPLER_RUNNING || clock_mono_ns() > until)
            return false;
    }
}

static void signal_sampler_disown(struct signal_sampler_slot *slot) {
    __atomic_store_n(&slot->state, SIGNAL_SAMPLER_FREE, __ATOMIC_RELEASE);
}

static struct signal_sampler_slot *signal_sampler_find(const struct pystack_thread *t) {
    for (uint64_t rest = exact.used; rest; rest &= rest - 1) {
        struct signal_sampler_slot *slot = &exact.slots[__builtin_ctzll(rest)];
        if (slot->tid == t->tid && slot->serial == t->serial)
            return slot;
    }
    return NULL;
}

/* The answer in this slot is not needed any longer. */
static void signal_sampler_free_done(struct signal_sampler_slot *slot) {
    if (__atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) != SIGNAL_SAMPLER_DONE)
        return;
    slot->unwanted = false;
    signal_sampler_unask(slot);
    __atomic_store_n(&slot->state, SIGNAL_SAMPLER_FREE, __ATOMIC_RELEASE);
}

/* True if the slot may be given to another thread. */
static bool signal_sampler_is_spare(const struct signal_sampler_slot *slot, uint64_t now) {
    uint32_t state = __atomic_load_n(&slot->state, __ATOMIC_ACQUIRE);
    bool is_free = state == SIGNAL_SAMPLER_FREE || (state == SIGNAL_SAMPLER_DONE && slot->unwanted);
    return is_free && (!slot->timer || now - slot->used_ns > SIGNAL_SAMPLER_UNUSED_NS);
}

/* The thread's slot, or the free one that was unused for the longest time. NULL if none is free. */
static struct signal_sampler_slot *signal_sampler_take(const struct pystack_thread *t, uint64_t now) {
    struct signal_sampler_slot *slot = signal_sampler_find(t);
    if (slot)
        return slot;
    for (size_t i = 0; i < SIGNAL_SAMPLER_SLOTS; i++) {
        struct signal_sampler_slot *other = &exact.slots[i];
        if (signal_sampler_is_spare(other, now) && (!slot || other->used_ns < slot->used_ns))
            slot = other;
    }
    if (!slot)
        return NULL;
    signal_sampler_stop_timer(slot);
    signal_sampler_free_done(slot);
    if (!signal_sampler_own(slot))
        return NULL;
    size_t i = (size_t)(slot - exact.slots);
    exact.used |= signal_sampler_bit(slot);
    /* it still has the copy of another thread */
    if (exact.native)
        exact.native[i].stack_end = 0;
    *slot = (struct signal_sampler_slot){.state = SIGNAL_SAMPLER_DRAINED,
                                         .tid = t->tid,
                                         .serial = t->serial,
                                         .used_ns = now,
                                         .self = &exact.pool[i],
                                         .records_most = slot->records_most};
    signal_sampler_disown(slot);
    return slot;
}

/* True if the thread has the same seccomp filters as this one. Filters are only added: one that has what
 * we had has none that we lack. */
static bool signal_sampler_has_our_filters(const struct procfs_status *status) {
    struct procfs_status own;
    if (status->seccomp == exact.seccomp && status->seccomp_filters == exact.seccomp_filters)
        return true;
    if (procfs_read_status(0, (pid_t)syscall(SYS_gettid), &own) != 0)
        return false;
    exact.seccomp = own.seccomp;
    exact.seccomp_filters = own.seccomp_filters;
    return status->seccomp == own.seccomp && status->seccomp_filters == own.seccomp_filters;
}

/* True if the thread would take the signal, and survive it. One that blocks it would answer
 * later; one with seccomp filters other than ours might be killed for the handler's calls. */
static bool signal_sampler_takes_it(struct signal_sampler_slot *slot, uint64_t now) {
    struct procfs_status status;
    uint64_t believed = slot->blocked ? SIGNAL_SAMPLER_BLOCKED_NS : SIGNAL_SAMPLER_STATUS_NS;
    if (slot->status_ns && now - slot->status_ns < believed)
        return !slot->blocked;
    slot->status_ns = now;
    slot->blocked = procfs_read_status(0, (pid_t)slot->tid, &status) != 0 ||
                    (status.sig_blocked >> (SIGNAL_SAMPLER_SIGNAL - 1) & 1) ||
                    !signal_sampler_has_our_filters(&status);
    return !slot->blocked;
}

/* True if the signal does not need room on the thread's own stack. */
static bool signal_sampler_is_on_alt(const struct signal_sampler_slot *slot) {
    return slot->alt_memory && __atomic_load_n(&slot->alt, __ATOMIC_RELAXED) == ALT_STACK_READY;
}

static bool signal_sampler_may_ask(struct signal_sampler_slot *slot, const struct pystack_thread *t,
                                   uint64_t now) {
    return !slot->filtered && signal_sampler_takes_it(slot, now) &&
           (signal_sampler_is_on_alt(slot) || slot->stack.high ||
            stack_headroom_find(t->tid, t->ident, t->seen_ns, &slot->stack));
}

/* Send the signal right after the check that there is room for it. If we were off the CPU in
 * between, the thread may have gone deep: check again. 0, or -1 if it is not sent. */
static int signal_sampler_send(const struct signal_sampler_slot *slot) {
    for (int i = 0; i < SIGNAL_SAMPLER_READS; i++) {
        uint64_t before = clock_mono_ns();
        if (!signal_sampler_is_on_alt(slot) && !stack_headroom_is_enough(&slot->stack))
            return -1;
        if (clock_mono_ns() - before < SIGNAL_SAMPLER_READ_NS)
            return (int)syscall(SYS_tgkill, exact.pid, (pid_t)slot->tid, SIGNAL_SAMPLER_SIGNAL);
    }
    return -1;
}

bool signal_sampler_ask(struct pystack *ps, const struct pystack_thread *t,
                        const struct pystack_known *known) {
    uint64_t now = clock_mono_ns();
    struct signal_sampler_slot *slot =
        exact.armed && t->tid != exact.left_out ? signal_sampler_take(t, now) : NULL;
    if (slot && slot->unwanted)
        signal_sampler_release(t);
    if (!slot || !signal_sampler_own(slot))
        return false;
    if (!signal_sampler_may_ask(slot, t, now)) {
        signal_sampler_disown(slot);
        exact.stats->refused++;
        return false;
    }
    slot->used_ns = now;
    slot->counted_late = slot->unwanted = false;
    pystack_self_prepare(ps, slot->self, t, known);
    slot->self->stack_low = slot->stack.own;
    slot->self->stack_high = slot->stack.high;
    slot->self->native = exact.native_wanted ? &exact.native[slot - exact.slots] : NULL;
    if (slot->self->native)
        slot->self->native->known = 0;
    __atomic_store_n(&slot->state, SIGNAL_SAMPLER_SENT, __ATOMIC_RELEASE);
    __atomic_or_fetch(&exact.asked, signal_sampler_bit(slot), __ATOMIC_RELEASE);
    /* unless another signal, of its timer, has made it answer */
    if (signal_sampler_send(slot) != 0 && signal_sampler_withdraw(slot)) {
        exact.stats->refused++;
        return false;
    }
    exact.stats->sent++;
    return true;
}

void signal_sampler_count_late(const struct pystack_thread *t) {
    struct signal_sampler_slot *slot = signal_sampler_find(t);
    if (!slot || slot->counted_late)
        return;
    slot->counted_late = true;
    exact.stats->late++;
}

enum signal_sampler_answer signal_sampler_get(const struct pystack_thread *t,
                                              const struct pystack_self **copy) {
    struct signal_sampler_slot *slot = exact.armed ? signal_sampler_find(t) : NULL;
    *copy = NULL;
    switch (slot ? (enum signal_sampler_state)__atomic_load_n(&slot->state, __ATOMIC_ACQUIRE)
                 : SIGNAL_SAMPLER_FREE) {
    case SIGNAL_SAMPLER_FREE:
    case SIGNAL_SAMPLER_DRAINED:
        return SIGNAL_SAMPLER_NONE;
    case SIGNAL_SAMPLER_SENT:
        return SIGNAL_SAMPLER_WAITING;
    case SIGNAL_SAMPLER_RUNNING:
        /* or it copies for its timer, and nothing was asked */
        return exact.asked & signal_sampler_bit(slot) ? SIGNAL_SAMPLER_COPYING : SIGNAL_SAMPLER_NONE;
    case SIGNAL_SAMPLER_DONE:
        *copy = slot->self;
        return SIGNAL_SAMPLER_READY;
    }
    return SIGNAL_SAMPLER_NONE;
}

enum signal_sampler_answer signal_sampler_wait(const struct pystack_thread *t, uint64_t until_ns,
                                               const struct pystack_self **copy) {
    uint64_t spin_until = clock_mono_ns() + SIGNAL_SAMPLER_SPIN_NS;
    enum signal_sampler_answer answer;
    while ((answer = signal_sampler_get(t, copy)) == SIGNAL_SAMPLER_WAITING ||
           answer == SIGNAL_SAMPLER_COPYING) {
        struct timespec pause = {.tv_nsec = (long)SIGNAL_SAMPLER_SPIN_NS};
        uint64_t now = clock_mono_ns();
        if (now >= until_ns)
            break;
        if (now > spin_until)
            nanosleep(&pause, NULL);
    }
    struct signal_sampler_slot *slot = answer == SIGNAL_SAMPLER_READY ? NULL : signal_sampler_find(t);
    if (slot) {
        /* a slot that waits for nobody would keep its timer's copies out */
        slot->unwanted = !signal_sampler_withdraw(slot);
        signal_sampler_count_late(t);
    }
    return answer;
}

void signal_sampler_leave_out(int64_t tid) { exact.left_out = tid; }

void signal_sampler_release(const struct pystack_thread *t) {
    struct signal_sampler_slot *slot = signal_sampler_find(t);
    if (!slot || __atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) != SIGNAL_SAMPLER_DONE)
        return;
    slot->filtered = slot->filtered || slot->self->end == PYSTACK_SELF_REFUSED;
    signal_sampler_free_done(slot);
}

void signal_sampler_forget(const struct pystack_thread *t) {
    struct signal_sampler_slot *slot = signal_sampler_find(t);
    if (!slot)
        return;
    signal_sampler_stop_timer(slot);
    /* an answer that is being copied now is released later */
    slot->unwanted = !signal_sampler_withdraw(slot);
    signal_sampler_release(t);
}

/* ---- timers ---- */

static bool signal_sampler_map_records(void) {
    if (!exact.records)
        exact.records = signal_sampler_map(SIGNAL_SAMPLER_RECORDS_BYTES);
    return exact.records;
}

/* 0, or -1. */
static int signal_sampler_start_timer(struct pystack *ps, struct signal_sampler_slot *slot,
                                      const struct pystack_thread *t, const struct pystack_known *known) {
    if (!signal_sampler_own(slot))
        return -1;
    pystack_self_prepare(ps, slot->self, t, known);
    slot->records_used = slot->n_records = 0;
    slot->interval_ns = 0;
    signal_sampler_disown(slot);
    int timer = thread_timer_create(slot->tid, SIGNAL_SAMPLER_SIGNAL, (int)(slot - exact.slots));
    if (timer < 0 && clock_thread_cpu_ns((pid_t)slot->tid) == 0)
        return -1; /* the thread has just ended */
    if (timer < 0) {
        snprintf(exact.timer_error, sizeof exact.timer_error,
                 "a timer on a thread's CPU clock was refused: %s", strerror(errno));
        return -1;
    }
    __atomic_store_n(&slot->timer, timer + 1, __ATOMIC_SEQ_CST);
    slot->used_ns = clock_mono_ns();
    return 0;
}

static size_t signal_sampler_count_timers(void) {
    size_t n = 0;
    for (size_t i = 0; i < SIGNAL_SAMPLER_SLOTS; i++)
        n += exact.slots[i].timer != 0;
    return n;
}

enum signal_sampler_timer signal_sampler_set_timer(struct pystack *ps, const struct pystack_thread *t,
                                                   const struct pystack_known *known, uint64_t first_ns,
                                                   uint64_t interval_ns) {
    uint64_t now = clock_mono_ns();
    struct signal_sampler_slot *slot =
        exact.armed && t->tid != exact.left_out ? signal_sampler_take(t, now) : NULL;
    if (!slot || (!slot->timer && signal_sampler_count_timers() >= SIGNAL_SAMPLER_TIMERS))
        return SIGNAL_SAMPLER_TIMER_OFF;
    if (!signal_sampler_map_records()) {
        snprintf(exact.timer_error, sizeof exact.timer_error, "no memory for the copies that timers cause");
        return SIGNAL_SAMPLER_TIMER_OFF;
    }
    if (!slot->alt_memory)
        slot->alt_memory = alt_stack_of(t->tid);
    enum alt_stack_state alt = __atomic_load_n(&slot->alt, __ATOMIC_RELAXED);
    bool can =
        slot->alt_memory && alt != ALT_STACK_UNFIT && !slot->filtered && signal_sampler_takes_it(slot, now);
    if (!can || alt != ALT_STACK_READY) {
        signal_sampler_stop_timer(slot);
        return can ? SIGNAL_SAMPLER_TIMER_LATER : SIGNAL_SAMPLER_TIMER_OFF;
    }
    if (!slot->timer && signal_sampler_start_timer(ps, slot, t, known) != 0)
        return SIGNAL_SAMPLER_TIMER_OFF;
    if (slot->interval_ns != interval_ns && thread_timer_start(slot->timer - 1, first_ns, interval_ns) != 0) {
        signal_sampler_stop_timer(slot);
        return SIGNAL_SAMPLER_TIMER_OFF;
    }
    slot->interval_ns = interval_ns;
    return SIGNAL_SAMPLER_TIMER_ON;
}

const char *signal_sampler_timer_error(void) { return exact.timer_error; }

/* The copy in the record at `*from`, which becomes the one behind it. Returns its weight. */
static uint32_t signal_sampler_read_record(struct pystack_self_result *out, const void **from) {
    const struct signal_sampler_record *r = *from;
    const struct pystack_self_frame *frames = (const void *)(r + 1);
    const struct pystack_code_key *keys = (const void *)(frames + r->n_frames);
    *out = (struct pystack_self_result){.taken_ns = r->taken_ns,
                                        .end = (enum pystack_self_end)r->end,
                                        .gil_state = (enum model_gil)r->gil_state,
                                        .gc_state = r->gc_state,
                                        .n_frames = r->n_frames,
                                        .n_keys = r->n_keys,
                                        .frames = frames,
                                        .keys = keys};
    *from = keys + r->n_keys;
    return r->weight;
}

bool signal_sampler_drain(const struct pystack_thread *t,
                          void (*take)(void *arg, const struct pystack_self_result *copy, uint32_t weight),
                          void *arg) {
    struct signal_sampler_slot *slot = exact.armed ? signal_sampler_find(t) : NULL;
    if (slot && slot->unwanted) /* the answer came too late for who had asked */
        signal_sampler_release(t);
    if (!slot || !slot->timer || !signal_sampler_own(slot))
        return false;
    uint8_t *room = exact.records + SIGNAL_SAMPLER_SLOTS * SIGNAL_SAMPLER_RECORDS;
    const void *from = room;
    size_t n = slot->n_records;
    bool crowded = slot->records_used > SIGNAL_SAMPLER_RECORDS / 2;
    if (slot->records_used > slot->records_most)
        slot->records_most = slot->records_used;
    memcpy(room, signal_sampler_records(slot), slot->records_used);
    uint32_t lost = slot->lost;
    slot->records_used = slot->n_records = slot->lost = 0;
    slot->used_ns = n ? clock_mono_ns() : slot->used_ns;
    signal_sampler_disown(slot);
    for (size_t i = 0; i < n; i++) {
        struct pystack_self_result copy;
        uint32_t weight = signal_sampler_read_record(&copy, &from);
        weight += i + 1 == n ? lost : 0;
        slot->filtered = slot->filtered || copy.end == PYSTACK_SELF_REFUSED;
        take(arg, &copy, weight);
    }
    return crowded;
}
