/* SPDX-License-Identifier: Apache-2.0 */
/* thread: see thread.h. ptrace(2). */
#include "inject/thread.h"

#include <elf.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/container.h"
#include "base/procfs.h"
#include "inject/syscall_restart.h"

#define THREAD_SPIN_NS (20 * CLOCK_NS_PER_US)
#define THREAD_BREATH_NS 50000L
#define THREAD_NAP_MIN_NS 20000L
#define THREAD_NAP_MAX_NS 300000L
#define THREAD_PTRACE_GET_RSEQ 0x420f /* PTRACE_GET_RSEQ_CONFIGURATION, Linux 5.13 */
#define THREAD_EXEC_NS                                                                                       \
    (500 * CLOCK_NS_PER_MS) /* for the rest of an execve that has ended the other threads */
#ifndef PTRACE_EVENT_STOP
#define PTRACE_EVENT_STOP 128
#endif

static int thread_explain(const struct thread *t, int errnum, struct err *e) {
    struct procfs_status st;
    if (errnum == ESRCH)
        return err_set(e, ERR_FAILED, "thread %d of process %d is gone", (int)t->tid, (int)t->pid);
    if (procfs_read_status(t->pid, t->tid, &st) == 0 && st.tracer_pid > 0)
        return err_set(e, ERR_ATTACH,
                       "thread %d of process %d is being traced by process %lld already: end that one first",
                       (int)t->tid, (int)t->pid, (long long)st.tracer_pid);
    struct container here;
    container_find(&here);
    if (procfs_read_status(0, 0, &st) == 0 && st.seccomp == 2)
        return err_set(e, ERR_ATTACH,
                       "not allowed to trace process %d, only to read it: a seccomp filter that this runs "
                       "under may forbid it: %s",
                       (int)t->pid, container_filter_remedy(here.kind));
    return err_set(e, ERR_ATTACH, "not allowed to trace process %d, only to read it (%s): %s", (int)t->pid,
                   strerror(errnum), container_remedy(here.kind));
}

void thread_nap(long *nap_ns) {
    *nap_ns = *nap_ns ? *nap_ns + *nap_ns / 2 : THREAD_NAP_MIN_NS;
    if (*nap_ns > THREAD_NAP_MAX_NS)
        *nap_ns = THREAD_NAP_MAX_NS;
    nanosleep(&(struct timespec){0, *nap_ns}, NULL);
}

/* It is at the beginning of another program, which is not ours, perhaps with another user's
 * rights. */
static void thread_leave_program(struct thread *t, pid_t tid) {
    ptrace(PTRACE_DETACH, tid, 0, 0);
    t->replaced = true;
    t->seized = t->stopped = false;
}

/* It has ended. A thread that calls execve gets the process's number and is still traced: then
 * it is released. */
static void thread_gone(struct thread *t) {
    uint64_t until = clock_mono_ns() + THREAD_EXEC_NS;
    int status;
    pid_t got = 0;
    t->seized = t->stopped = false;
    if (t->tid == t->pid)
        return;
    while ((got = waitpid(t->pid, &status, __WALL | WNOHANG)) == 0 && clock_mono_ns() < until)
        nanosleep(&(struct timespec){0, THREAD_NAP_MIN_NS}, NULL);
    if (got == t->pid && WIFSTOPPED(status))
        thread_leave_program(t, t->pid);
}

enum thread_event thread_wait(struct thread *t, uint64_t wait_ns) {
    uint64_t start = clock_mono_ns(), now = start;
    long nap_ns = 0;
    for (;;) {
        int status;
        pid_t got = waitpid(t->tid, &status, __WALL | WNOHANG);
        if (got == t->tid) {
            if (!WIFSTOPPED(status)) {
                t->seized = t->stopped = false;
                return THREAD_GONE;
            }
            t->stopped = t->caught = true;
            t->signal = WSTOPSIG(status);
            t->at_rest = status >> 16 == PTRACE_EVENT_STOP;
            if (status >> 16 == PTRACE_EVENT_EXEC) {
                thread_leave_program(t, t->tid);
                return THREAD_GONE;
            }
            if (t->at_rest)
                return THREAD_STOPPED;
            if (t->signal == (SIGTRAP | 0x80))
                return THREAD_SYSCALL;
            return THREAD_SIGNAL;
        }
        if (got < 0 && errno != EINTR) {
            thread_gone(t);
            return THREAD_GONE;
        }
        /* it was not stopped at the time of waitpid */
        if (!t->caught)
            t->since_ns = now;
        if (now - start > wait_ns)
            return THREAD_TIMEOUT;
        if (now - start > THREAD_SPIN_NS)
            thread_nap(&nap_ns);
        now = clock_mono_ns();
    }
}

int thread_run(struct thread *t, int request) {
    if (ptrace(request, t->tid, 0, (long)t->deliver) != 0)
        return -1;
    t->stopped = t->at_rest = false;
    t->deliver = 0;
    return 0;
}

bool thread_defer_signal(struct thread *t) {
    uint64_t mask;
    siginfo_t info;
    if (t->blocked >> (t->signal - 1) & 1) {
        t->deliver = t->signal;
        return true;
    }
    if (ptrace(PTRACE_GETSIGINFO, t->tid, 0, &info) != 0)
        return false;
    if (info.si_code > 0 && (t->signal == SIGSEGV || t->signal == SIGBUS || t->signal == SIGILL ||
                             t->signal == SIGFPE || t->signal == SIGTRAP || t->signal == SIGSYS))
        return false;
    if (thread_get_mask(t, &mask) == 0)
        thread_set_mask(t, mask | 1ULL << (t->signal - 1));
    t->deliver = t->signal;
    return true;
}

int thread_interrupt(struct thread *t, uint64_t wait_ns) {
    if (ptrace(PTRACE_INTERRUPT, t->tid, 0, 0) != 0)
        return -1;
    if (t->stopped && thread_run(t, PTRACE_CONT) != 0)
        return -1;
    uint64_t until = clock_mono_ns() + wait_ns;
    for (;;) {
        uint64_t now = clock_mono_ns();
        switch (thread_wait(t, now < until ? until - now : 0)) {
        case THREAD_STOPPED:
            return 0;
        case THREAD_SIGNAL:
            thread_defer_signal(t);
            break;
        case THREAD_SYSCALL:
            break;
        case THREAD_GONE:
        case THREAD_TIMEOUT:
            return -1;
        }
        /* Any stop replaces the interruption (Linux kernel/signal.c, ptrace_stop): it has to be
         * requested again. */
        if (ptrace(PTRACE_INTERRUPT, t->tid, 0, 0) != 0 || thread_run(t, PTRACE_CONT) != 0)
            return -1;
    }
}

/* While a thread is stopped for us, we should be first on the processor. Real time where it is
 * permitted. Measured with six runnable threads on two processors, 95th percentile: 40 ms
 * without both, 5 ms with the nap in thread_stop, 1.8 ms with both. */
static void thread_hurry(bool on) {
    struct sched_param p = {.sched_priority = on ? 1 : 0};
    sched_setscheduler(0, on ? SCHED_RR : SCHED_OTHER, &p);
}

void thread_relax(void) { thread_hurry(false); }

int thread_seize(struct thread *t, struct err *e) {
    /* It is better to pay now for what the scheduler thinks we have had too much of than with a
     * thread stopped. */
    nanosleep(&(struct timespec){0, THREAD_BREATH_NS}, NULL);
    thread_hurry(true);
    t->since_ns = clock_mono_ns();
    if (ptrace(PTRACE_SEIZE, t->tid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC) != 0) {
        int saved = errno;
        thread_hurry(false);
        return thread_explain(t, saved, e);
    }
    t->seized = true;
    t->stopped = t->caught = t->at_rest = t->settled = t->replaced = false;
    t->deliver = 0;
    return 0;
}

const char *thread_why_not_stopped(const struct thread *t) {
    struct procfs_stat stat;
    char state = procfs_read_stat(t->pid, t->tid, &stat) == 0 ? stat.state : '?';
    return state == 'D'   ? "it is in a system call that cannot be interrupted"
           : state == 'R' ? "it gets no CPU, the machine is too busy"
                          : "the reason is not known";
}

int thread_stop(struct thread *t, uint64_t wait_ns, struct err *e) {
    if (thread_seize(t, e) != 0)
        return -1;
    enum thread_event event =
        ptrace(PTRACE_INTERRUPT, t->tid, 0, 0) == 0 ? thread_wait(t, wait_ns) : THREAD_TIMEOUT;
    if (event == THREAD_SIGNAL)
        t->deliver = t->signal;
    if (event == THREAD_SIGNAL || event == THREAD_STOPPED)
        return 0;
    thread_hurry(false);
    if (!t->seized)
        return err_set(e, ERR_FAILED, "thread %d of process %d ended", (int)t->tid, (int)t->pid);
    return err_set(e, ERR_FAILED, "thread %d of process %d did not stop: %s", (int)t->tid, (int)t->pid,
                   thread_why_not_stopped(t));
}

void thread_release(struct thread *t) {
    if (t->seized && t->stopped)
        syscall_restart_unsettle(t);
    if (t->seized)
        ptrace(PTRACE_DETACH, t->tid, 0, (long)t->deliver);
    uint64_t now = clock_mono_ns();
    thread_hurry(false);
    if (!t->seized)
        return;
    if (t->caught)
        t->stopped_ns += now - t->since_ns;
    t->deliver = 0;
    t->seized = t->stopped = t->settled = false;
}

int thread_get_regs(struct thread *t, struct user_regs_struct *regs) {
    struct iovec iov = {regs, sizeof *regs};
    return ptrace(PTRACE_GETREGSET, t->tid, NT_PRSTATUS, &iov) == 0 && iov.iov_len == sizeof *regs ? 0 : -1;
}

int thread_set_regs(struct thread *t, const struct user_regs_struct *regs) {
    struct user_regs_struct copy = *regs;
    struct iovec iov = {&copy, sizeof copy};
    return ptrace(PTRACE_SETREGSET, t->tid, NT_PRSTATUS, &iov) == 0 ? 0 : -1;
}

ssize_t thread_get_xstate(struct thread *t, void *buf, size_t cap) {
    struct iovec iov = {buf, cap};
    if (ptrace(PTRACE_GETREGSET, t->tid, NT_X86_XSTATE, &iov) != 0 || iov.iov_len == cap)
        return -1;
    return (ssize_t)iov.iov_len;
}

int thread_set_xstate(struct thread *t, const void *buf, size_t len) {
    struct iovec iov = {(void *)(uintptr_t)buf, len};
    return ptrace(PTRACE_SETREGSET, t->tid, NT_X86_XSTATE, &iov) == 0 ? 0 : -1;
}

int thread_get_mask(struct thread *t, uint64_t *mask) {
    return ptrace(PTRACE_GETSIGMASK, t->tid, sizeof *mask, mask) == 0 ? 0 : -1;
}

int thread_set_mask(struct thread *t, uint64_t mask) {
    return ptrace(PTRACE_SETSIGMASK, t->tid, sizeof mask, &mask) == 0 ? 0 : -1;
}

bool thread_in_rseq(struct thread *t, struct mem *mem) {
    struct {
        uint64_t pointer;
        uint32_t size, signature, flags, pad;
    } conf = {0};
    /* an older kernel, or a thread without an rseq area */
    if (ptrace(THREAD_PTRACE_GET_RSEQ, t->tid, sizeof conf, &conf) <= 0 || !conf.pointer)
        return false;
    uint64_t section = 0; /* struct rseq, rseq_cs */
    return mem_read_u64(mem, conf.pointer + 8, &section) != 0 || section != 0;
}

int thread_peek(struct thread *t, uint64_t addr, uint64_t *out) {
    errno = 0;
    long word = ptrace(PTRACE_PEEKDATA, t->tid, (void *)(uintptr_t)addr, NULL);
    if (errno)
        return -1;
    *out = (uint64_t)word;
    return 0;
}
