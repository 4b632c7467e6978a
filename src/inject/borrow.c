/* SPDX-License-Identifier: Apache-2.0 */
/* borrow: see borrow.h. */
#include "inject/borrow.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/random.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "inject/syscall_restart.h"

#define BORROW_STACK ((uint64_t)64 * 1024)
#define BORROW_PAGE ((uint64_t)4096)
#define BORROW_SYSCALL_LEN 2U
#define BORROW_EFLAGS_TRAP 0x100ULL
#define BORROW_EFLAGS_DIRECTION 0x400ULL
/* at least, for a processor to run the thread */
#define BORROW_EVENT_NS (500 * CLOCK_NS_PER_MS)
#define BORROW_TAKEBACK_NS (250 * CLOCK_NS_PER_MS) /* how long the thread waits to be restored */
#define BORROW_OUT_EVENTS (offsetof(struct stub_params, out) + offsetof(struct stub_out, events))
#define BORROW_GRACE_NS (2000 * CLOCK_NS_PER_MS)

static uint64_t borrow_round(uint64_t n) { return (n + BORROW_PAGE - 1) & ~(BORROW_PAGE - 1); }

/* All signals except those that the kernel raises for a fault of the thread itself (raising a
 * blocked one would reset the job's handler to the default) and those that cannot be blocked, in
 * the form in which the kernel reports the mask. */
static uint64_t borrow_mask(void) {
    static const int open[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGKILL, SIGSTOP};
    uint64_t mask = ~0ULL;
    for (size_t i = 0; i < sizeof open / sizeof open[0]; i++)
        mask &= ~(1ULL << (open[i] - 1));
    return mask;
}

/* The thread is gone, or we have released it. */
static int borrow_lost(const struct borrow *b, struct err *e) {
    if (b->thread->replaced)
        return err_set(e, ERR_LOST,
                       "process %d started another program (exec) while it was being attached to: the new "
                       "program was not touched",
                       (int)b->target->pid);
    return target_lost(b->target, e);
}

/* Write the frames for the way back below the stack, with a random mark in front of them that
 * the thread must see at the same place. That proves that it runs in the memory that was opened,
 * not in a program that has started since, with another user's rights and addresses of the
 * target's choice, nor under the reused id of a thread that ended. 0 or -1. */
static int borrow_lay_out(struct borrow *b, struct err *e) {
    struct sigreturn_chain *c = &b->chain;
    struct mem *mem = &b->target->mem;
    uint64_t mark, seen = 0;
    if (getrandom(&mark, sizeof mark, GRND_NONBLOCK) != (ssize_t)sizeof mark)
        return err_set_errno(e, ERR_FAILED, errno, "no random number");
    memcpy(c->bytes, &mark, sizeof mark);
    if (mem_write(mem, c->at, c->bytes, c->len) != 0) {
        if (mem_is_gone(mem))
            return borrow_lost(b, e);
        return err_set_errno(e, ERR_ATTACH, errno, "process %d: its memory cannot be written to",
                             (int)b->target->pid);
    }
    int rc = thread_peek(b->thread, c->at, &seen);
    if (rc == 0 && seen == mark)
        return 0;
    mem_write(mem, c->at, b->under, c->len);
    b->thread->replaced = rc == 0;
    return borrow_lost(b, e);
}

int borrow_begin(struct borrow *b, struct target *target, struct thread *thread, uint64_t deadline_ns,
                 struct err *e) {
    b->target = target;
    b->thread = thread;
    b->deadline_ns = deadline_ns;
    b->settled = thread->settled;
    b->masked = b->left = false;
    b->region = b->region_size = b->params_at = 0;
    pid_t pid = target->pid;
    struct sigreturn_chain *c = &b->chain;
    ssize_t n = thread_get_xstate(thread, b->xstate, sizeof b->xstate);
    if (thread_get_regs(thread, &b->regs) != 0 || thread_get_mask(thread, &b->mask) != 0 || n < 0)
        return err_set(e, ERR_FAILED, "process %d: the state of thread %d cannot be saved", (int)pid,
                       (int)thread->tid);
    b->xstate_len = (size_t)n;
    struct user_regs_struct resume = b->regs;
    syscall_restart_resolve(&target->mem, thread->call, &resume);
    if (sigreturn_chain_place(c, b->regs.rsp, b->xstate_len, target->sym.syscall_ret,
                              target->sym.sigreturn) != 0 ||
        sigreturn_chain_put_back(c, &resume, b->xstate, b->xstate_len, b->mask) != 0 ||
        !target_has_stack(target, b->regs.rsp, c->at, c->len) ||
        mem_read(&target->mem, c->at, b->under, c->len) != 0) {
        if (mem_is_gone(&target->mem))
            return borrow_lost(b, e);
        err_set(e, ERR_FAILED, "process %d: thread %d has no room left on its stack", (int)pid,
                (int)thread->tid);
        return BORROW_NO_STACK;
    }
    if (borrow_lay_out(b, e) != 0)
        return -1;
    c->mask = borrow_mask();
    b->way_back = c->back;
    return 0;
}

/* Set the registers to run code at `rip` with the stack at `rsp`. */
static int borrow_set_regs(struct borrow *b, struct user_regs_struct *r, uint64_t rip, uint64_t rsp) {
    r->rip = rip;
    r->rsp = rsp;
    r->rbp = 0;
    r->orig_rax = (unsigned long long)-1;
    r->eflags &= ~(BORROW_EFLAGS_TRAP | BORROW_EFLAGS_DIRECTION);
    b->thread->settled = false;
    if (thread_set_regs(b->thread, r) != 0)
        return -1;
    if (!b->masked && thread_set_mask(b->thread, b->chain.mask) != 0)
        return -1;
    b->masked = true;
    b->thread->blocked = b->chain.mask;
    return 0;
}

/* Let it run until the next system call stop. 0, or -1; then it may be running. Giving up early
 * gains nothing: to be stopped it has to run too. */
static int borrow_to_syscall(struct borrow *b) {
    uint64_t now = clock_mono_ns(), until = now + BORROW_EVENT_NS;
    if (until < b->deadline_ns)
        until = b->deadline_ns;
    do {
        if (thread_run(b->thread, PTRACE_SYSCALL) != 0)
            return -1;
        switch (thread_wait(b->thread, until - now)) {
        case THREAD_SYSCALL:
            return 0;
        case THREAD_SIGNAL:
            if (!thread_defer_signal(b->thread))
                return -1;
            break;
        case THREAD_STOPPED: /* the job is being stopped at the same time: finish first */
            break;
        case THREAD_GONE:
        case THREAD_TIMEOUT:
            return -1;
        }
    } while ((now = clock_mono_ns()) < until);
    return -1;
}

/* Out of time while the thread runs to the end of a system call. Nothing that we do not know of
 * may stay in it, so it is stopped behind the call: a stop comes before the next instruction. 0
 * or -1. */
static int borrow_end_syscall(struct borrow *b, struct user_regs_struct *r) {
    if (!b->thread->seized || b->thread->stopped || thread_interrupt(b->thread, BORROW_GRACE_NS) != 0 ||
        thread_get_regs(b->thread, r) != 0)
        return -1;
    return r->rip == b->target->sym.syscall_ret + BORROW_SYSCALL_LEN ? 0 : -1;
}

/* One system call on the borrowed thread. 0 with its result, or -1. The thread starts a call
 * without effect and gets the real one at the entry. From there it is only an instant to the
 * end, so a death of ours can hardly leave anything behind. */
static int borrow_syscall(struct borrow *b, long nr, const uint64_t args[6], int64_t *result) {
    struct user_regs_struct r = b->regs;
    r.rax = SYS_gettid;
    if (borrow_set_regs(b, &r, b->target->sym.syscall_ret, b->way_back) != 0 || borrow_to_syscall(b) != 0) {
        borrow_end_syscall(b, &r); /* taking it back needs it stopped */
        return -1;
    }
    if (thread_get_regs(b->thread, &r) != 0)
        return -1;
    r.orig_rax = (unsigned long long)nr;
    r.rdi = args[0];
    r.rsi = args[1];
    r.rdx = args[2];
    r.r10 = args[3];
    r.r8 = args[4];
    r.r9 = args[5];
    if (thread_set_regs(b->thread, &r) != 0)
        return -1;
    if (borrow_to_syscall(b) != 0 ? borrow_end_syscall(b, &r) != 0 : thread_get_regs(b->thread, &r) != 0)
        return -1;
    *result = (int64_t)r.rax;
    return 0;
}

/* The region exists: from now on the way back unmaps it. 0 or -1. */
static int borrow_arm_release(struct borrow *b) {
    struct sigreturn_chain *c = &b->chain;
    struct user_regs_struct r = b->regs;
    sigreturn_chain_put_head(c, &b->regs, b->region, b->region_size, BORROW_TAKEBACK_NS);
    if (mem_write(&b->target->mem, c->at, c->bytes, SIGRETURN_CHAIN_HEAD) != 0)
        return -1;
    b->way_back = c->release;
    r.rax = 0;
    /* at the "ret" */
    return borrow_set_regs(b, &r, c->syscall_ret + BORROW_SYSCALL_LEN, b->way_back);
}

static int borrow_call_failed(struct borrow *b, const char *what, int64_t result, struct err *e) {
    pid_t pid = b->target->pid;
    if (!b->thread->seized)
        return borrow_lost(b, e);
    if (result < 0)
        return err_set_errno(e, ERR_ATTACH, (int)-result, "process %d refused %s", (int)pid, what);
    return err_set(
        e, ERR_ATTACH,
        "process %d: %s could not be called in it: thread %d got no processor in time (the machine is "
        "overloaded); it was put back, try again",
        (int)pid, what, (int)b->thread->tid);
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
    /* Code lowest: it is not writable, so a stack that grows too far ends there. */
    b->region = (uint64_t)at;
    b->region_size = size;
    b->params_at = b->region + code_size + BORROW_STACK;
    params->region = b->region;
    params->region_size = size;
    params->syscall_ret = b->chain.syscall_ret;
    params->chain_time = b->chain.time;
    params->out = (struct stub_out){.fd = -1, .here = 1};
    params->chain_release = b->chain.release;
    params->chain_back = b->chain.back;
    params->thread_fn = b->region + (uint64_t)(inject_stub_thread - __start_inject_stub);
    if (borrow_arm_release(b) != 0 ||
        mem_write(&b->target->mem, b->region, __start_inject_stub, code_len) != 0 ||
        mem_write(&b->target->mem, b->params_at, params, sizeof *params) != 0)
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
    b->way_back = b->chain.back;
    if (borrow_syscall(b, SYS_munmap, (uint64_t[6]){b->region, b->region_size, 0, 0, 0, 0}, &rc) == 0 &&
        rc == 0)
        b->region = 0;
}

int32_t borrow_read_i32(struct target *t, uint64_t params_at, size_t offset) {
    uint32_t v;
    return mem_read_u32(&t->mem, params_at + offset, &v) == 0 ? (int32_t)v : -1;
}

/* Handle an event of the running thread while we read its params. 0 to continue, -1 with the
 * error. */
static int borrow_serve_event(struct borrow *b, struct err *e) {
    pid_t pid = b->target->pid;
    struct user_regs_struct r = {0};
    switch (thread_wait(b->thread, 0)) {
    case THREAD_TIMEOUT:
        return 0;
    case THREAD_GONE:
        return borrow_lost(b, e);
    case THREAD_SIGNAL:
        if (thread_defer_signal(b->thread))
            break;
        thread_get_regs(b->thread, &r);
        return err_set(e, ERR_FAILED,
                       "process %d: creating a thread failed with signal %d at 0x%llx; it was put back",
                       (int)pid, b->thread->signal, (unsigned long long)r.rip);
    /* the job is being stopped: what was started must be finished, because libc's locks may be
     * held */
    case THREAD_STOPPED:
    case THREAD_SYSCALL:
        break;
    }
    return thread_run(b->thread, PTRACE_CONT) == 0 ? 0 : borrow_lost(b, e);
}

static void borrow_cancel(struct borrow *b) {
    int32_t cancel = 1;
    mem_write(&b->target->mem, b->params_at + offsetof(struct stub_params, cancel), &cancel, sizeof cancel);
}

static bool borrow_is_out(struct borrow *b) {
    uint32_t events;
    return mem_read_u32(&b->target->mem, b->params_at + BORROW_OUT_EVENTS, &events) == 0 && events >> 16 == 0;
}

/* Only when it will run no further instruction of the region. */
static void borrow_set_out(struct borrow *b) {
    struct stub_out out = {.fd = -1};
    mem_write(&b->target->mem, b->params_at + offsetof(struct stub_params, out), &out, sizeof out);
}

/* Interrupt the thread, which is leaving the region or has left it. Unless it has gone back in
 * between, it is to be restored. */
static void borrow_catch(struct borrow *b) {
    uint64_t until = clock_mono_ns() + BORROW_GRACE_NS, mask = 0;
    struct user_regs_struct r;
    long nap_ns = 0;
    for (;;) {
        if (thread_interrupt(b->thread, BORROW_GRACE_NS) != 0 || thread_get_regs(b->thread, &r) != 0 ||
            thread_get_mask(b->thread, &mask) != 0 || clock_mono_ns() > until)
            break;
        if (sigreturn_chain_is_intact(&b->chain, &r, mask))
            return;
        if (r.rip - b->region >= b->region_size) {
            borrow_set_out(b);
            break;
        }
        if (thread_run(b->thread, PTRACE_CONT) != 0)
            break;
        thread_nap(&nap_ns);
    }
    b->left = true;
}

int borrow_create_thread(struct borrow *b, struct err *e) {
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
            return -2; /* whether the thread exists is unknown */
        }
        if (clock_mono_ns() > b->deadline_ns) {
            /* It waits for a lock or holds one, so it must not be torn away. It finishes alone
             * and goes back through its frames; the new thread sees that it was cancelled. */
            borrow_cancel(b);
            b->left = true;
            err_set(e, ERR_ATTACH,
                    "process %d: creating a thread in it took too long (something holds a lock of its "
                    "C library); try again",
                    (int)pid);
            return -2;
        }
        thread_nap(&nap_ns);
    }
    borrow_catch(b);
    if (!b->thread->seized)
        return borrow_call_failed(b, "pthread_create", 0, e), -2;
    int32_t rc = borrow_read_i32(b->target, b->params_at, offsetof(struct stub_params, create_errno));
    if (rc == 0)
        return 0;
    /* unmapped on its way */
    if (b->left)
        b->region = 0;
    return err_set_errno(e, ERR_ATTACH, rc > 0 ? rc : EAGAIN,
                         "process %d cannot create a thread (limit of threads or memory?)", (int)pid);
}

/* True if the stopped thread runs what we let it run; false if it has restored itself, at a time
 * when we had no processor. */
static bool borrow_is_ours(struct borrow *b) {
    struct user_regs_struct r;
    uint64_t mask;
    if (thread_get_regs(b->thread, &r) != 0 || thread_get_mask(b->thread, &mask) != 0)
        return false;
    return sigreturn_chain_is_intact(&b->chain, &r, mask) || r.rsp - b->region < b->region_size;
}

void borrow_end(struct borrow *b) {
    struct thread *t = b->thread;
    /* ptrace releases only a stopped thread */
    if (t->seized && b->left && !t->stopped)
        thread_interrupt(t, BORROW_GRACE_NS);
    if (!t->seized || b->left) {
        thread_release(t);
        return;
    }
    /* Only after this kind of stop does the kernel decide again how an interrupted system call
     * continues. */
    if (b->masked && !t->at_rest && thread_interrupt(t, BORROW_GRACE_NS) != 0) {
        thread_release(t);
        return;
    }
    if (b->masked && !borrow_is_ours(b)) {
        thread_release(t);
        return;
    }
    /* Registers last: until then it goes back through its frames, whatever mask and vectors it
     * has. */
    if (b->masked) {
        thread_set_xstate(t, b->xstate, b->xstate_len);
        thread_set_mask(t, b->mask);
    }
    thread_set_regs(t, &b->regs);
    t->settled = b->settled;
    /* it was stopped in the middle: the created thread, if there is one, may unmap it */
    if (b->region && !borrow_is_out(b))
        borrow_set_out(b);
    mem_write(&b->target->mem, b->chain.at, b->under, b->chain.len);
    thread_release(t);
}
