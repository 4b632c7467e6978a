/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter: see filter.h. Sources: bpf(4) of the BSDs for the instructions;
 * Documentation/userspace-api/seccomp_filter.rst and seccomp(2) for which of them a filter may
 * use and what its results mean; ptrace(2) for PTRACE_SECCOMP_GET_FILTER.
 */
#include "inject/filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define FILTER_LAYERS_MAX 32 /* filters of one thread */
/* PTRACE_SECCOMP_GET_FILTER of linux/ptrace.h, which conflicts with sys/ptrace.h */
#define FILTER_GET 0x420c

#define FILTER_THREAD                                                                                        \
    (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS |       \
     CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID)

/* The calls of the borrowed thread, of the loader for the agent, of the agent's threads, and of
 * the signal handler. The arguments that filters check are the real ones. strace(1) shows the
 * same list. */
static const struct filter_call {
    long nr;
    uint64_t args[4];
} filter_calls[] = {
    {SYS_mmap, {0, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS}},
    {SYS_mprotect, {0, 4096, PROT_READ | PROT_EXEC}},
    {SYS_munmap, {0}},
    {SYS_madvise, {0}},
    {SYS_mincore, {0}},
    {SYS_brk, {0}},
    {SYS_memfd_create, {0, 1}},
    {SYS_clone, {FILTER_THREAD}},
    {SYS_clone3, {0}},
    {SYS_set_robust_list, {0}},
    {SYS_exit, {0}},
    {SYS_rt_sigprocmask, {2}},
    {SYS_rt_sigaction, {23}},
    {SYS_rt_sigreturn, {0}},
    {SYS_rt_sigpending, {0}},
    {SYS_tgkill, {0}},
    {SYS_kill, {0}},
    {SYS_prctl, {PR_SET_NAME}},
    {SYS_prlimit64, {0}},
    {SYS_gettid, {0}},
    {SYS_getpid, {0}},
    {SYS_geteuid, {0}},
    {SYS_uname, {0}},
    {SYS_sched_getaffinity, {0}},
    {SYS_process_vm_readv, {0}},
    {SYS_openat, {0, 0, O_RDONLY | O_CLOEXEC}},
    {SYS_read, {0}},
    {SYS_pread64, {0}},
    {SYS_write, {0}},
    {SYS_close, {0}},
    {SYS_fstat, {0}},
#ifdef SYS_newfstatat
    {SYS_newfstatat, {0}},
#endif
    {SYS_getdents64, {0}},
    {SYS_readlink, {0}},
    {SYS_mkdir, {0}},
    {SYS_chmod, {0}},
    {SYS_unlink, {0}},
    {SYS_rmdir, {0}},
    {SYS_fcntl, {0, F_SETFL}},
    {SYS_eventfd2, {0}},
    {SYS_poll, {0}},
    {SYS_ppoll, {0}},
    {SYS_socket, {AF_UNIX, SOCK_STREAM}},
    {SYS_bind, {0}},
    {SYS_listen, {0}},
    {SYS_accept4, {0}},
    {SYS_getsockopt, {0, SOL_SOCKET, SO_PEERCRED}},
    {SYS_getpeername, {0}},
    {SYS_recvfrom, {0}},
    {SYS_sendto, {0}},
    {SYS_shutdown, {0}},
    {SYS_futex, {0}},
    {SYS_nanosleep, {0}},
    {SYS_clock_nanosleep, {0}},
    {SYS_clock_gettime, {0}},
    {SYS_restart_syscall, {0}},
#ifdef SYS_close_range
    {SYS_close_range, {0}},
#endif
#ifdef SYS_rseq
    {SYS_rseq, {0}},
#endif
};

/* ---- the machine ---- */

struct filter_machine {
    uint32_t a, x;
    uint32_t scratch[BPF_MEMWORDS];
};

/* 0, or -1 for an invalid instruction. */
static int filter_alu(struct filter_machine *m, const struct sock_filter *f) {
    uint32_t v = BPF_SRC(f->code) == BPF_X ? m->x : f->k;
    switch (BPF_OP(f->code)) {
    case BPF_ADD:
        m->a += v;
        return 0;
    case BPF_SUB:
        m->a -= v;
        return 0;
    case BPF_MUL:
        m->a *= v;
        return 0;
    case BPF_DIV:
        m->a = v ? m->a / v : 0;
        return 0;
    case BPF_AND:
        m->a &= v;
        return 0;
    case BPF_OR:
        m->a |= v;
        return 0;
    case BPF_XOR:
        m->a ^= v;
        return 0;
    case BPF_LSH:
        m->a = v < 32 ? m->a << v : 0;
        return 0;
    case BPF_RSH:
        m->a = v < 32 ? m->a >> v : 0;
        return 0;
    case BPF_NEG:
        m->a = 0U - m->a;
        return 0;
    default:
        return -1;
    }
}

/* The number of instructions to skip; -1 if it is not a jump. */
static int64_t filter_jump(const struct filter_machine *m, const struct sock_filter *f) {
    uint32_t v = BPF_SRC(f->code) == BPF_X ? m->x : f->k;
    switch (BPF_OP(f->code)) {
    case BPF_JA:
        return (int64_t)f->k;
    case BPF_JEQ:
        return m->a == v ? f->jt : f->jf;
    case BPF_JGT:
        return m->a > v ? f->jt : f->jf;
    case BPF_JGE:
        return m->a >= v ? f->jt : f->jf;
    case BPF_JSET:
        return m->a & v ? f->jt : f->jf;
    default:
        return -1;
    }
}

/* The loaded value; 0, or -1. */
static int filter_load(const struct filter_machine *m, const struct sock_filter *f,
                       const struct seccomp_data *data, uint32_t *out) {
    switch (BPF_MODE(f->code)) {
    case BPF_IMM:
        *out = f->k;
        return 0;
    case BPF_LEN:
        *out = sizeof *data;
        return 0;
    case BPF_MEM:
        if (f->k >= BPF_MEMWORDS)
            return -1;
        *out = m->scratch[f->k];
        return 0;
    case BPF_ABS:
        if (BPF_CLASS(f->code) != BPF_LD || f->k % sizeof *out != 0 || f->k > sizeof *data - sizeof *out)
            return -1;
        memcpy(out, (const uint8_t *)data + f->k, sizeof *out);
        return 0;
    default:
        return -1;
    }
}

int filter_run(const struct sock_filter *code, size_t n, const struct seccomp_data *data, uint32_t *answer) {
    struct filter_machine m = {.a = 0};
    for (size_t at = 0; at < n; at++) {
        const struct sock_filter *f = &code[at];
        int64_t over;
        int rc = 0;
        switch (BPF_CLASS(f->code)) {
        case BPF_LD:
            rc = filter_load(&m, f, data, &m.a);
            break;
        case BPF_LDX:
            rc = filter_load(&m, f, data, &m.x);
            break;
        case BPF_ST:
        case BPF_STX:
            if (f->k >= BPF_MEMWORDS)
                return -1;
            m.scratch[f->k] = BPF_CLASS(f->code) == BPF_ST ? m.a : m.x;
            break;
        case BPF_ALU:
            rc = filter_alu(&m, f);
            break;
        case BPF_JMP:
            over = filter_jump(&m, f);
            if (over < 0)
                return -1;
            at += (size_t)over; /* forward only, so this ends; a jump past the end is not valid */
            break;
        case BPF_RET:
            *answer = BPF_RVAL(f->code) == BPF_A ? m.a : f->k;
            return 0;
        default: /* BPF_MISC */
            if (BPF_MISCOP(f->code) == BPF_TAX)
                m.x = m.a;
            else
                m.a = m.x;
        }
        if (rc != 0)
            return -1;
    }
    return -1;
}

/* ---- what it says ---- */

/* A trap is a signal that our threads have blocked, which kills as well. So does an unknown
 * action. */
static bool filter_answer_kills(uint32_t answer) {
    switch (answer & SECCOMP_RET_ACTION_FULL) {
    case SECCOMP_RET_ALLOW:
    case SECCOMP_RET_LOG:
    case SECCOMP_RET_TRACE:
    case SECCOMP_RET_USER_NOTIF:
    case SECCOMP_RET_ERRNO:
        return false;
    default:
        return true;
    }
}

enum filter_verdict filter_judge(const struct sock_filter *code, size_t n, long *nr) {
    for (size_t i = 0; i < sizeof filter_calls / sizeof *filter_calls; i++) {
        struct seccomp_data data = {.nr = (int)filter_calls[i].nr, .arch = AUDIT_ARCH_X86_64};
        uint32_t answer;
        for (size_t k = 0; k < 4; k++)
            data.args[k] = filter_calls[i].args[k];
        if (filter_run(code, n, &data, &answer) != 0)
            return FILTER_UNKNOWN;
        if (!filter_answer_kills(answer))
            continue;
        *nr = filter_calls[i].nr;
        return FILTER_KILLS;
    }
    return FILTER_HARMLESS;
}

enum filter_verdict filter_judge_thread(pid_t tid, long *nr) {
    struct sock_filter code[FILTER_INSTRUCTIONS_MAX];
    for (long layer = 0; layer < FILTER_LAYERS_MAX; layer++) {
        long n = ptrace(FILTER_GET, tid, (void *)layer, NULL);
        if (n < 0)
            return errno == ENOENT ? FILTER_HARMLESS : FILTER_UNKNOWN;
        if (n == 0 || n > FILTER_INSTRUCTIONS_MAX || ptrace(FILTER_GET, tid, (void *)layer, code) != n)
            return FILTER_UNKNOWN;
        enum filter_verdict v = filter_judge(code, (size_t)n, nr);
        if (v != FILTER_HARMLESS)
            return v;
    }
    return FILTER_UNKNOWN;
}
