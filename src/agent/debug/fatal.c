/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fatal: see fatal.h. Signals: signal(7), sigaction(2), rt_tgsigqueueinfo(2); CPython's
 * Modules/faulthandler.c, which installs one function for all its signals with SA_NODEFER and
 * without SA_SIGINFO, and restores the previous disposition before it dumps.
 *
 * The library stays loaded for the life of the process (inject/stub.c closes it only if nothing
 * of it ran), so a handler of ours that is below another's may still be called after we are
 * gone: then it passes the signal on.
 */
#include "agent/debug/fatal.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define FATAL_NUDGE_NS (20 * CLOCK_NS_PER_MS) /* a sampler that was about to sleep is woken again */
#define FATAL_SPINS 1000

/* A disposition in the kernel's format: the restored one must be identical to the bit. */
struct fatal_action {
    uint64_t handler, flags, restorer, mask;
};

enum fatal_state {
    FATAL_OFF = 0, /* signals are passed on */
    FATAL_ARMED,
    FATAL_NOTING,
    FATAL_ASKED,
    FATAL_READING,
    FATAL_KEPT, /* further signals are passed on, too */
};

enum fatal_restored {
    FATAL_NOT_RESTORED = 0,
    FATAL_GIVING,
    FATAL_RESTORED,
};

/* It lives as long as the library: a handler may be called at any time. */
static struct fatal_control {
    uint32_t state; /* enum fatal_state, atomic; waiting threads sleep on it */
    pid_t pid;
    int64_t tid,
        /* the first thread that received a signal; the thread that reads: their own faults are
         * passed on */
        reader;
    void (*wake)(void *arg);
    void *arg;
    struct fatal_one {
        struct fatal_action before;
        bool ours;      /* installed by the last fatal_arm */
        bool below;     /* another handler was installed over it and may restore it */
        uint32_t given; /* enum fatal_given, atomic: a handler has restored `before` */
        int64_t given_tid;
        const char *why; /* why it was left alone; NULL if it was not */
    } each[FATAL_SIGNALS];
    struct fatal_record record;
} fatal;

static pthread_mutex_t fatal_lock = PTHREAD_MUTEX_INITIALIZER;

static const struct {
    int number;
    const char *name;
} fatal_signals[FATAL_SIGNALS] = {
    {SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"}, {SIGFPE, "SIGFPE"}, {SIGILL, "SIGILL"}, {SIGABRT, "SIGABRT"},
};

static void fatal_handler(int sig, siginfo_t *info, void *context);

static int fatal_get(int sig, struct fatal_action *out) {
    *out = (struct fatal_action){0};
    return (int)syscall(SYS_rt_sigaction, sig, NULL, out, sizeof out->mask);
}

static int fatal_put(int sig, const struct fatal_action *action) {
    return (int)syscall(SYS_rt_sigaction, sig, action, NULL, sizeof action->mask);
}

static bool fatal_is_ours(const struct fatal_action *a) {
    return a->handler == (uint64_t)(uintptr_t)fatal_handler;
}

static uint32_t fatal_state_now(void) { return __atomic_load_n(&fatal.state, __ATOMIC_ACQUIRE); }

/* ---- on the thread that received a signal ---- */

/* Restore the previous disposition, once: the handler that was passed the signal may have
 * restored more since, and two dumps at the same time would never end. A second call with ours
 * installed, or on the same thread, can only use the default. */
static void fatal_pass(struct fatal_one *one, int sig, int64_t tid) {
    static const struct fatal_action nothing = {.handler = (uint64_t)(uintptr_t)SIG_DFL};
    struct fatal_action now;
    uint32_t expected = FATAL_NOT_RESTORED;
    if (__atomic_compare_exchange_n(&one->given, &expected, FATAL_GIVING, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
        one->given_tid = tid;
        fatal_put(sig, &one->before);
        __atomic_store_n(&one->given, FATAL_RESTORED, __ATOMIC_RELEASE);
        return;
    }
    for (int i = 0; i < FATAL_SPINS && __atomic_load_n(&one->given, __ATOMIC_ACQUIRE) == FATAL_GIVING; i++)
        syscall(SYS_sched_yield);
    if (one->given_tid == tid || (fatal_get(sig, &now) == 0 && fatal_is_ours(&now)))
        fatal_put(sig, &nothing);
}

/* A fault repeats when its instruction does. A signal that was sent, or that reports a past
 * event, is sent again, to the same thread with the same data; it is delivered after the handler
 * has returned. */
static void fatal_raise(int sig, siginfo_t *info, pid_t pid, int64_t tid) {
    uint64_t all = UINT64_MAX;
    if (info->si_code > 0 && sig != SIGABRT && !(sig == SIGBUS && info->si_code == BUS_MCEERR_AO))
        return;
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, NULL, sizeof all);
    if (syscall(SYS_rt_tgsigqueueinfo, pid, (pid_t)tid, sig, info) != 0)
        syscall(SYS_tgkill, pid, (pid_t)tid, sig);
}

static void fatal_note(int sig, const siginfo_t *info, const void *context) {
    struct fatal_record *r = &fatal.record;
    r->signal = sig;
    r->code = info->si_code;
    r->tid = fatal.tid;
    r->ident = (uint64_t)pthread_self();
    r->address = info->si_code > 0 && sig != SIGABRT ? (uint64_t)(uintptr_t)info->si_addr : 0;
    r->sender = info->si_code <= 0 ? info->si_pid : 0;
    native_copy_registers(&r->native, context);
}

/* Until it is recorded, or cannot be recorded in time. */
static void fatal_wait(void) {
    uint64_t until = clock_mono_ns() + FATAL_WAIT_S * CLOCK_NS_PER_S;
    for (uint64_t now = clock_mono_ns(); now < until; now = clock_mono_ns()) {
        uint32_t seen = fatal_state_now();
        uint64_t next = seen == FATAL_READING ? until : now + FATAL_NUDGE_NS;
        struct timespec ts = {.tv_sec = (time_t)(next / CLOCK_NS_PER_S),
                              .tv_nsec = (long)(next % CLOCK_NS_PER_S)};
        void (*wake)(void *) = __atomic_load_n(&fatal.wake, __ATOMIC_ACQUIRE);
        if ((seen != FATAL_NOTING && seen != FATAL_ASKED && seen != FATAL_READING) || !wake)
            return;
        if (seen == FATAL_ASKED)
            wake(fatal.arg);
        syscall(SYS_futex, &fatal.state, FUTEX_WAIT_BITSET_PRIVATE, seen, &ts, NULL, FUTEX_BITSET_MATCH_ANY);
    }
}

/* Of several threads at the same time the first one is recorded, and the others wait with it,
 * because they would end the process. */
static void fatal_keep(int sig, const siginfo_t *info, const void *context, int64_t tid) {
    uint32_t expected = FATAL_ARMED;
    if (tid == __atomic_load_n(&fatal.tid, __ATOMIC_RELAXED) ||
        tid == __atomic_load_n(&fatal.reader, __ATOMIC_RELAXED))
        return;
    if (__atomic_compare_exchange_n(&fatal.state, &expected, FATAL_NOTING, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
        __atomic_store_n(&fatal.tid, tid, __ATOMIC_RELAXED);
        fatal_note(sig, info, context);
        __atomic_store_n(&fatal.state, FATAL_ASKED, __ATOMIC_RELEASE);
    }
    fatal_wait();
}

/* In a child that runs in our memory, or without our fork handler, nothing is recorded, and
 * nothing of ours is written. */
static void fatal_handler(int sig, siginfo_t *info, void *context) {
    int saved = errno;
    int64_t tid = syscall(SYS_gettid);
    pid_t pid = (pid_t)syscall(SYS_getpid);
    size_t i = 0;
    while (i + 1 < FATAL_SIGNALS && fatal_signals[i].number != sig)
        i++;
    if (pid != fatal.pid) {
        fatal_put(sig, &fatal.each[i].before);
    } else {
        fatal_keep(sig, info, context, tid);
        fatal_pass(&fatal.each[i], sig, tid);
    }
    fatal_raise(sig, info, pid, tid);
    errno = saved;
}

/* ---- arming ---- */

/* True if it is faulthandler's: Python has reported that it may be, and no library has installed
 * its own since. */
static bool fatal_is_reporter(const struct fatal_action *a, const void *python) {
    Dl_info theirs, interpreter;
    return (a->flags & SA_NODEFER) && !(a->flags & SA_SIGINFO) &&
           dladdr((void *)(uintptr_t)a->handler, &theirs) &&
           dladdr((void *)(uintptr_t)python, &interpreter) && theirs.dli_fbase == interpreter.dli_fbase;
}

/* Why it must be left alone; NULL if it need not be. */
static const char *fatal_judge(const struct fatal_one *one, const struct fatal_action *now,
                               const void *python, bool reporter) {
    if (now->handler == (uint64_t)(uintptr_t)SIG_DFL)
        return NULL;
    if (now->handler == (uint64_t)(uintptr_t)SIG_IGN)
        return "the job ignores it";
    if (!reporter || !fatal_is_reporter(now, python))
        return "the job has a handler of its own";
    return one->below ? "faulthandler was enabled over an earlier catch, and would call it back" : NULL;
}

static int fatal_install(size_t i, const void *python, bool reporter) {
    struct fatal_one *one = &fatal.each[i];
    struct sigaction sa = {.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    struct fatal_action now;
    int sig = fatal_signals[i].number;
    if (fatal_get(sig, &now) != 0)
        return -1;
    one->why = fatal_is_ours(&now) ? NULL : fatal_judge(one, &now, python, reporter);
    if (one->why)
        return 0;
    if (!fatal_is_ours(&now))
        one->before = now;
    one->given = FATAL_NOT_RESTORED;
    sa.sa_sigaction = fatal_handler;
    sigfillset(&sa.sa_mask);
    for (size_t k = 0; k < FATAL_SIGNALS; k++) /* a fault of the handler itself must get through */
        sigdelset(&sa.sa_mask, fatal_signals[k].number);
    one->ours = true; /* set before it is installed: the child of a fork right after must know */
    one->ours = sigaction(sig, &sa, NULL) == 0;
    return one->ours ? 0 : -1;
}

/* With the lock. */
static void fatal_take_back(void) {
    struct fatal_action now;
    __atomic_store_n(&fatal.state, FATAL_OFF, __ATOMIC_RELEASE);
    syscall(SYS_futex, &fatal.state, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
    for (size_t i = 0; i < FATAL_SIGNALS; i++) {
        struct fatal_one *one = &fatal.each[i];
        int sig = fatal_signals[i].number;
        if (!one->ours || fatal_get(sig, &now) != 0)
            continue;
        if (fatal_is_ours(&now))
            fatal_put(sig, &one->before);
        else
            one->below = true;
        one->ours = false;
    }
}

int fatal_arm(const void *python, unsigned reporter, struct err *e) {
    int rc = 0;
    pthread_mutex_lock(&fatal_lock);
    if (fatal_state_now() == FATAL_OFF) {
        fatal.pid = getpid();
        fatal.tid = fatal.reader = 0;
        __atomic_store_n(&fatal.state, FATAL_ARMED, __ATOMIC_RELEASE);
        for (size_t i = 0; i < FATAL_SIGNALS && rc == 0; i++)
            if (fatal_install(i, python, reporter >> i & 1) != 0)
                rc = err_set_errno(e, ERR_FAILED, errno, "no handler for %s can be installed",
                                   fatal_signals[i].name);
        if (rc != 0)
            fatal_take_back();
    }
    pthread_mutex_unlock(&fatal_lock);
    return rc;
}

void fatal_disarm(void) {
    pthread_mutex_lock(&fatal_lock);
    if (fatal_state_now() != FATAL_OFF)
        fatal_take_back();
    pthread_mutex_unlock(&fatal_lock);
}

void fatal_in_child(void) {
    struct fatal_action now;
    for (size_t i = 0; i < FATAL_SIGNALS; i++) {
        struct fatal_one *one = &fatal.each[i];
        if ((one->ours || one->below) && fatal_get(fatal_signals[i].number, &now) == 0 && fatal_is_ours(&now))
            fatal_put(fatal_signals[i].number, &one->before);
        one->ours = false;
    }
    fatal.state = FATAL_OFF;
    fatal.wake = NULL;
    fatal.pid = 0; /* a handler of ours below another's passes signals on */
    fatal_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

/* ---- descriptions ---- */

int fatal_number(size_t i) { return i < FATAL_SIGNALS ? fatal_signals[i].number : 0; }

const char *fatal_name(int signal) {
    for (size_t i = 0; i < FATAL_SIGNALS; i++)
        if (fatal_signals[i].number == signal)
            return fatal_signals[i].name;
    return "a signal";
}

const char *fatal_reason(int signal, int code) {
    static const struct {
        int signal, code;
        const char *text;
    } known[] = {
        {SIGSEGV, SEGV_MAPERR, "nothing is mapped there"},
        {SIGSEGV, SEGV_ACCERR, "no permission"},
        {SIGSEGV, SI_KERNEL, "no address that could be one"},
        {SIGBUS, BUS_ADRALN, "wrong alignment"},
        {SIGBUS, BUS_ADRERR, "beyond the end of a file, or no memory"},
        {SIGBUS, BUS_OBJERR, "an error of the hardware"},
        {SIGBUS, BUS_MCEERR_AR, "an error of the memory"},
        {SIGBUS, BUS_MCEERR_AO, "an error of the memory"},
        {SIGFPE, FPE_INTDIV, "integer division by zero"},
        {SIGFPE, FPE_INTOVF, "integer overflow"},
        {SIGFPE, FPE_FLTDIV, "floating division by zero"},
        {SIGFPE, FPE_FLTOVF, "floating overflow"},
        {SIGFPE, FPE_FLTUND, "floating underflow"},
        {SIGFPE, FPE_FLTRES, "inexact result"},
        {SIGFPE, FPE_FLTINV, "invalid floating operation"},
        {SIGILL, ILL_ILLOPC, "illegal instruction"},
        {SIGILL, ILL_ILLOPN, "illegal operand"},
        {SIGILL, ILL_PRVOPC, "privileged instruction"},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].signal == signal && known[i].code == code)
            return known[i].text;
    return NULL;
}

static void fatal_add(char *buf, size_t cap, const char *a, const char *b, const char *c) {
    size_t n = strlen(buf);
    snprintf(buf + n, cap - n, "%s%s%s", a, b, c);
}

void fatal_describe(char *buf, size_t cap) {
    struct fatal_action now;
    const char *between = "";
    buf[0] = '\0';
    pthread_mutex_lock(&fatal_lock);
    bool armed = fatal_state_now() != FATAL_OFF;
    for (size_t i = 0; armed && i < FATAL_SIGNALS; i++)
        if (fatal.each[i].ours && fatal_get(fatal_signals[i].number, &now) == 0 && fatal_is_ours(&now)) {
            fatal_add(buf, cap, between, fatal_signals[i].name, "");
            between = ", ";
        }
    between = "|";
    for (size_t i = 0; armed && i < FATAL_SIGNALS; i++) {
        const struct fatal_one *one = &fatal.each[i];
        bool lost = one->ours && fatal_get(fatal_signals[i].number, &now) == 0 && !fatal_is_ours(&now);
        if (!one->why && !lost)
            continue;
        fatal_add(buf, cap, between, fatal_signals[i].name, ": ");
        fatal_add(buf, cap, lost ? "the job has put another handler there since" : one->why, "", "");
        between = "; ";
    }
    pthread_mutex_unlock(&fatal_lock);
}

/* ---- for the sampler ---- */

void fatal_set_waker(void (*wake)(void *arg), void *arg) {
    fatal.arg = wake ? arg : fatal.arg;
    __atomic_store_n(&fatal.wake, wake, __ATOMIC_RELEASE);
}

bool fatal_is_asked(void) { return fatal_state_now() == FATAL_ASKED; }

static void fatal_mask(int how) {
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigaddset(&set, faults[i]);
    pthread_sigmask(how, &set, NULL);
}

struct fatal_record *fatal_begin(void) {
    uint32_t expected = FATAL_ASKED;
    __atomic_store_n(&fatal.reader, syscall(SYS_gettid), __ATOMIC_RELAXED);
    if (!__atomic_compare_exchange_n(&fatal.state, &expected, FATAL_READING, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
        return NULL;
    fatal_mask(SIG_UNBLOCK);
    return &fatal.record;
}

void fatal_end(void) {
    uint32_t expected = FATAL_READING;
    fatal_mask(SIG_BLOCK);
    __atomic_compare_exchange_n(&fatal.state, &expected, FATAL_KEPT, false, __ATOMIC_ACQ_REL,
                                __ATOMIC_ACQUIRE);
    syscall(SYS_futex, &fatal.state, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}
