/* SPDX-License-Identifier: Apache-2.0 */
/* syscall_restart: see syscall_restart.h. */
#include "inject/syscall_restart.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SYSCALL_RESTART_ERESTARTSYS 512
#define SYSCALL_RESTART_ERESTARTNOINTR 513
#define SYSCALL_RESTART_ERESTARTNOHAND 514
#define SYSCALL_RESTART_ERESTART_RESTARTBLOCK 516
#define SYSCALL_RESTART_SYSCALL_LEN 2
#define SYSCALL_RESTART_LOAD_LEN 5 /* mov $imm32, %eax */
#define SYSCALL_RESTART_LOAD_OP 0xb8

/* System calls that the kernel ends with EINTR after any stop. Without connect: calling it twice
 * is not the same. */
static bool syscall_restart_sees_eintr(long nr) {
    switch (nr) {
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
#ifdef SYS_epoll_pwait2
    case SYS_epoll_pwait2:
#endif
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_accept:
    case SYS_accept4:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_read:
    case SYS_rt_sigtimedwait:
    case SYS_semop:
    case SYS_semtimedop:
    case SYS_io_getevents:
        return true;
    default:
        return false;
    }
}

bool syscall_restart_read_file(pid_t pid, int fd, char *file, size_t cap) {
    char link[64];
    struct statx st;
    snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)pid, fd);
    ssize_t n = readlink(link, file, cap - 1);
    file[n > 0 ? n : 0] = '\0';
    return strncmp(file, "pipe:", 5) == 0 ||
           (file[0] == '/' && statx(AT_FDCWD, link, AT_STATX_DONT_SYNC, STATX_TYPE, &st) == 0 &&
            S_ISFIFO(st.stx_mode));
}

/* A write of up to PIPE_BUF bytes to a pipe is all or nothing (pipe(7)), and one to an eventfd or the like. */
static bool syscall_restart_is_whole_write(pid_t pid, const struct procfs_syscall *call) {
    char file[64];
    bool is_pipe = syscall_restart_read_file(pid, (int)call->args[0], file, sizeof file);
    return strncmp(file, "anon_inode:", 11) == 0 || (is_pipe && call->args[2] <= PIPE_BUF);
}

bool syscall_restart_is_partial(pid_t pid, const struct procfs_syscall *call) {
    switch (call->nr) {
    case SYS_write:
        return !syscall_restart_is_whole_write(pid, call);
    case SYS_writev:
    case SYS_pwrite64:
    case SYS_pwritev:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg:
    case SYS_sendfile:
    case SYS_splice:
    case SYS_tee:
    case SYS_vmsplice:
    case SYS_copy_file_range:
    case SYS_recvmmsg:
        return true;
    case SYS_recvfrom:
        return call->args[3] & MSG_WAITALL;
    case SYS_recvmsg:
        return call->args[2] & MSG_WAITALL;
    default:
        return false;
    }
}

uint64_t syscall_restart_wanted_signals(const struct procfs_status *st) {
    static const int harmless[] = {SIGCHLD, SIGURG, SIGWINCH, SIGCONT};
    uint64_t ignored = st->sig_ignored;
    for (size_t i = 0; i < sizeof harmless / sizeof harmless[0]; i++)
        ignored |= (1ULL << (harmless[i] - 1)) & ~st->sig_caught;
    return (st->sig_pending | st->sig_shared_pending) & ~st->sig_blocked & ~ignored;
}

/* True if there is a signal that the thread will take: then EINTR is true. */
static bool syscall_restart_has_signal(const struct thread *t) {
    struct procfs_status st;
    return procfs_read_status(t->pid, t->tid, &st) != 0 || syscall_restart_wanted_signals(&st);
}

bool syscall_restart_rewind(struct thread *t, struct user_regs_struct *regs) {
    if ((int64_t)regs->rax != -EINTR || (int64_t)regs->orig_rax < 0 ||
        !syscall_restart_sees_eintr((long)regs->orig_rax) || syscall_restart_has_signal(t))
        return false;
    regs->rip -= SYSCALL_RESTART_SYSCALL_LEN;
    regs->rax = regs->orig_rax;
    regs->orig_rax = (unsigned long long)-1;
    return true;
}

void syscall_restart_settle(struct thread *t, struct user_regs_struct *regs) {
    struct user_regs_struct r = *regs;
    if (!syscall_restart_rewind(t, &r) || thread_set_regs(t, &r) != 0)
        return;
    *regs = r;
    t->settled = true;
}

void syscall_restart_unsettle(struct thread *t) {
    struct user_regs_struct r;
    if (!t->settled || !syscall_restart_has_signal(t) || thread_get_regs(t, &r) != 0)
        return;
    r.rip += SYSCALL_RESTART_SYSCALL_LEN;
    r.orig_rax = r.rax;
    r.rax = (unsigned long long)-EINTR;
    thread_set_regs(t, &r);
}

/* The call at `rip`, if its number is loaded just before: in the registers, restart_syscall has
 * taken its place. */
static long syscall_restart_number_before(struct mem *mem, uint64_t rip) {
    uint8_t code[SYSCALL_RESTART_LOAD_LEN];
    uint32_t nr;
    if (mem_read(mem, rip - sizeof code, code, sizeof code) != 0 || code[0] != SYSCALL_RESTART_LOAD_OP)
        return -1;
    memcpy(&nr, code + 1, sizeof nr);
    return (long)nr;
}

/* The kernel knows when the call's time is over and reports it only for calls that write back
 * the remaining time. */
static bool syscall_restart_resolve_time(struct mem *mem, long call, struct user_regs_struct *r) {
    long nr = (long)r->orig_rax;
    if (nr == SYS_restart_syscall)
        nr = call > 0 && call != SYS_restart_syscall ? call : syscall_restart_number_before(mem, r->rip);
    switch (nr) {
    case SYS_nanosleep:
        r->rdi = r->rsi ? r->rsi : r->rdi;
        break;
    case SYS_clock_nanosleep:
        if (!(r->rsi & TIMER_ABSTIME) && r->r10)
            r->rdx = r->r10;
        break;
    case SYS_poll:
    case SYS_futex:
        break;
    default:
        return false;
    }
    r->orig_rax = (unsigned long long)nr;
    return true;
}

void syscall_restart_resolve(struct mem *mem, long call, struct user_regs_struct *regs) {
    if ((int64_t)regs->orig_rax < 0)
        return;
    long code = -(long)regs->rax;
    bool again = code == SYSCALL_RESTART_ERESTARTSYS || code == SYSCALL_RESTART_ERESTARTNOINTR ||
                 code == SYSCALL_RESTART_ERESTARTNOHAND;
    if (code == SYSCALL_RESTART_ERESTART_RESTARTBLOCK) {
        regs->rip -= SYSCALL_RESTART_SYSCALL_LEN;
        again = syscall_restart_resolve_time(mem, call, regs);
        regs->rip += SYSCALL_RESTART_SYSCALL_LEN;
        if (!again)
            regs->rax = (unsigned long long)-EINTR;
    }
    if (again) {
        regs->rip -= SYSCALL_RESTART_SYSCALL_LEN;
        regs->rax = regs->orig_rax;
    }
    regs->orig_rax = (unsigned long long)-1;
}
