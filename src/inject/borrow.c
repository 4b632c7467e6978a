/* SPDX-License-Identifier: Apache-2.0 */
/* borrow: see borrow.h. */
#include "inject/borrow.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "base/clock.h"

#define BORROW_STACK ((uint64_t)64 * 1024)
#define BORROW_PAGE ((uint64_t)4096)
#define BORROW_EFLAGS_TRAP 0x100ULL
#define BORROW_EFLAGS_DIRECTION 0x400ULL
#define BORROW_EVENT_NS (500 * CLOCK_NS_PER_MS)
#define BORROW_GRACE_NS (2000 * CLOCK_NS_PER_MS)

static uint64_t borrow_round(uint64_t n) { return (n + BORROW_PAGE - 1) & ~(BORROW_PAGE - 1); }

/* Everything but what the kernel raises for a fault of the thread itself: raising a blocked one would reset the job's
 * handler to the default. */
static uint64_t borrow_mask(void) {
    static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS};
    uint64_t mask = ~0ULL;
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        mask &= ~(1ULL << (faults[i] - 1));
    return mask;
}

int borrow_begin(struct borrow *b, struct target *target, struct thread *thread, struct err *e) {
    b->target = target;
    b->thread = thread;
    b->masked = b->left = false;
    b->region = b->region_size = b->params_at = 0;
    pid_t pid = target->pid;
    ssize_t n = thread_get_xstate(thread, b->xstate, sizeof b->xstate);
    if (thread_get_regs(thread, &b->regs) != 0 || thread_get_mask(thread, &b->mask) != 0 || n < 0)
        return err_set(e, ERR_FAILED, "process %d: the state of thread %d cannot be saved", (int)pid,
                       (int)thread->tid);
    b->xstate_len = (size_t)n;
    b->frame_at = frame_place(b->regs.rsp, b->xstate_len);
    b->frame_len = frame_size(b->xstate_len);
    struct user_regs_struct resume = b->regs;
    (void)thread_rewind_eintr(thread, &resume);
    thread_resolve_restart(&resume);
    if (frame_build(b->frame, b->frame_at, &resume, b->xstate, b->xstate_len, b->mask,
                    target->sym.sigreturn) != 0 ||
        mem_read(&target->mem, b->frame_at, b->under, b->frame_len) != 0 ||
        thread_write(pid, b->frame_at, b->frame, b->frame_len) != 0)
        return err_set(e, ERR_FAILED, "process %d: thread %d has no room left on its stack", (int)pid,
                       (int)thread->tid);
    return 0;
}

/* Registers for running code at `rip` with its stack at `rsp`. */
static int borrow_set_regs(struct borrow *b, struct user_regs_struct *r, uint64_t rip, uint64_t rsp) {
    r->rip = rip;
    r->rsp = rsp;
    r->rbp = 0;
    r->orig_rax = (unsigned long long)-1;
    r->eflags &= ~(BORROW_EFLAGS_TRAP | BORROW_EFLAGS_DIRECTION);
    if (thread_set_regs(b->thread, r) != 0)
        return -1;
    if (!b->masked && thread_set_mask(b->thread, borrow_mask()) != 0)
        return -1;
    b->masked = true;
    return 0;
}

static bool borrow_is_fault(int sig) {
    return sig == SIGSEGV || sig == SIGBUS || sig == SIGILL || sig == SIGFPE || sig == SIGSYS ||
           sig == SIGTRAP;
}

/* Let it run until the next system call stop. 0 or -1. */
static int borrow_to_syscall(struct borrow *b) {
    uint64_t until = clock_mono_ns() + BORROW_EVENT_NS;
    do {
        if (thread_run(b->thread, PTRACE_SYSCALL) != 0)
            return -1;
        switch (thread_wait(b->thread, BORROW_EVENT_NS)) {
        case THREAD_SYSCALL:
            return 0;
        case THREAD_SIGNAL:
            if (borrow_is_fault(b->thread->signal))
                return -1;
            b->thread->owed_signal = b->thread->signal;
            break;
        case THREAD_STOPPED: /* the job is being stopped meanwhile: finish first */
            break;
        case THREAD_GONE:
        case THREAD_TIMEOUT:
            return -1;
        }
    } while (clock_mono_ns() < until);
    return -1;
}

/* One system call on the borrowed thread. 0 with its result, or -1. */
static int borrow_syscall(struct borrow *b, long nr, const uint64_t args[6], int64_t *result) {
    struct user_regs_struct r = b->regs;
    r.rax = (unsigned long long)nr;
    r.rdi = args[0];
    r.rsi = args[1];
    r.rdx = args[2];
    r.r10 = args[3];
    r.r8 = args[4];
    r.r9 = args[5];
    if (borrow_set_regs(b, &r, b->target->sym.syscall_ret, b->frame_at) != 0 || borrow_to_syscall(b) != 0 ||
        borrow_to_syscall(b) != 0 || thread_get_regs(b->thread, &r) != 0)
        return -1;
    *result = (int64_t)r.rax;
    return 0;
}

static int borrow_call_failed(struct borrow *b, const char *what, int64_t result, struct err *e) {
    pid_t pid = b->target->pid;
    if (!b->thread->seized)
        return err_set(e, ERR_LOST, "process %d ended while it was being attached to", (int)pid);
    if (result < 0)
        return err_set_errno(e, ERR_ATTACH, (int)-result, "process %d refused %s", (int)pid, what);
    return err_set(e, ERR_FAILED, "process %d: %s could not be called in it", (int)pid, what);
}

int borrow_make_region(struct borrow *b, struct stub_params *params, struct err *e) {
    size_t code_len = (size_t)(__stop_inject_stub - __start_inject_stub);
    uint64_t code_size = borrow_round(code_len), data_size = borrow_round(sizeof *params);
    uint64_t size = code_size + BORROW_STACK + data_size;
    int64_t at = 0, rc = 0;
    pid_t pid = b->target->pid;
    if (borrow_syscall(
            b, SYS_mmap,
            (uint64_t[6]){0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, (uint64_t)-1, 0},
            &at) != 0 ||
        at <= 0)
        return borrow_call_failed(b, "mmap", at, e);
    /* Code lowest: it is not writable, so a stack that grew too far would end there. */
    b->region = (uint64_t)at;
    b->region_size = size;
    b->params_at = b->region + code_size + BORROW_STACK;
    params->region = b->region;
    params->region_size = size;
    params->frame = b->frame_at;
    params->thread_fn = b->region + (uint64_t)(inject_stub_thread - __start_inject_stub);
    if (thread_write(pid, b->region, __start_inject_stub, code_len) != 0 ||
        thread_write(pid, b->params_at, params, sizeof *params) != 0)
        return err_set(e, ERR_FAILED, "process %d: its memory cannot be written to", (int)pid);
    if (borrow_syscall(b, SYS_mprotect, (uint64_t[6]){b->region, code_size, PROT_READ | PROT_EXEC, 0, 0, 0},
                       &rc) != 0 ||
        rc != 0)
        return borrow_call_failed(b, "executable memory (mprotect)", rc, e);
    return 0;
}

void borrow_drop_region(struct borrow *b) {
    int64_t rc;
    if (!b->region || !b->thread->seized)
        return;
    if (borrow_syscall(b, SYS_munmap, (uint64_t[6]){b->region, b->region_size, 0, 0, 0, 0}, &rc) == 0 &&
        rc == 0)
        b->region = 0;
}

int32_t borrow_read_i32(struct target *t, uint64_t params_at, size_t offset) {
    uint32_t v;
    return mem_read_u32(&t->mem, params_at + offset, &v) == 0 ? (int32_t)v : -1;
}

/* What happened to the running thread while we looked at its params. 0 go on, -1 with the error. */
static int borrow_serve_event(struct borrow *b, struct err *e) {
    pid_t pid = b->target->pid;
    struct user_regs_struct r = {0};
    switch (thread_wait(b->thread, 0)) {
    case THREAD_TIMEOUT:
        return 0;
    case THREAD_GONE:
        return err_set(e, ERR_LOST, "process %d ended while it was being attached to", (int)pid);
    case THREAD_SIGNAL:
        if (borrow_is_fault(b->thread->signal)) {
            (void)thread_get_regs(b->thread, &r);
            return err_set(e, ERR_FAILED,
                           "process %d: creating a thread failed with signal %d at 0x%llx; it was put back",
                           (int)pid, b->thread->signal, (unsigned long long)r.rip);
        }
        b->thread->owed_signal = b->thread->signal;
        break;
    case THREAD_STOPPED: /* the job is being stopped: what was begun has to be finished, libc's locks may be held */
    case THREAD_SYSCALL:
        break;
    }
    return thread_run(b->thread, PTRACE_CONT) == 0
               ? 0
               : err_set(e, ERR_LOST, "process %d ended while it was being attached to", (int)pid);
}

static void borrow_cancel(struct borrow *b) {
    int32_t cancel = 1;
    (void)thread_write(b->target->pid, b->params_at + offsetof(struct stub_params, cancel), &cancel,
                       sizeof cancel);
}

int borrow_create_thread(struct borrow *b, uint64_t deadline_ns, struct err *e) {
    struct user_regs_struct r = b->regs;
    pid_t pid = b->target->pid;
    long nap_ns = 0;
    r.rdi = b->params_at;
    r.rax = 0;
    if (borrow_set_regs(b, &r, b->region + (uint64_t)(inject_stub_borrowed - __start_inject_stub),
                        b->params_at & ~15ULL) != 0 ||
        thread_run(b->thread, PTRACE_CONT) != 0)
        return borrow_call_failed(b, "pthread_create", 0, e);
    while (borrow_read_i32(b->target, b->params_at, offsetof(struct stub_params, created)) != 1) {
        if (borrow_serve_event(b, e) != 0) {
            borrow_cancel(b);
            return -2; /* whether the thread exists is not known */
        }
        if (clock_mono_ns() > deadline_ns) {
            /* It waits for a lock, or holds one: it must not be torn away. It finishes alone and goes back through
             * its frame; the new thread sees that it is not wanted. */
            borrow_cancel(b);
            b->left = true;
            (void)err_set(e, ERR_ATTACH,
                          "process %d: creating a thread in it took too long (something holds a lock of its "
                          "C library); try again",
                          (int)pid);
            return -2;
        }
        thread_nap(&nap_ns);
    }
    if (thread_interrupt(b->thread, BORROW_GRACE_NS) != 0) {
        b->left = true;
        return borrow_call_failed(b, "pthread_create", 0, e), -2;
    }
    if (borrow_read_i32(b->target, b->params_at, offsetof(struct stub_params, leaving)) != 0) {
        /* We came too late: it is putting itself back, and the new thread may have waited long enough too. */
        borrow_cancel(b);
        b->left = true;
        return 1;
    }
    int32_t rc = borrow_read_i32(b->target, b->params_at, offsetof(struct stub_params, create_errno));
    if (rc != 0)
        return err_set_errno(e, ERR_ATTACH, rc,
                             "process %d cannot create a thread (limit of threads or memory?)", (int)pid);
    return 0;
}

void borrow_end(struct borrow *b) {
    struct thread *t = b->thread;
    if (t->seized && b->left && !t->stopped)
        (void)thread_interrupt(t, BORROW_GRACE_NS); /* ptrace lets go of a stopped thread only */
    if (!t->seized || b->left) {
        thread_release(t);
        return;
    }
    /* Only from this kind of stop does the kernel look again at how an interrupted system call goes on. */
    if (b->masked && thread_interrupt(t, BORROW_GRACE_NS) != 0) {
        thread_release(t);
        return;
    }
    struct user_regs_struct regs = b->regs;
    if (b->masked) {
        (void)thread_set_mask(t, b->mask);
        (void)thread_set_xstate(t, b->xstate, b->xstate_len);
    }
    (void)thread_rewind_eintr(t, &regs);
    (void)thread_set_regs(t, &regs);
    if (b->region) {
        int32_t users = 1; /* the borrowed thread is out of the region */
        (void)thread_write(t->pid, b->params_at + offsetof(struct stub_params, users), &users, sizeof users);
    }
    (void)thread_write(t->pid, b->frame_at, b->under, b->frame_len);
    thread_release(t);
}
