/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rewind: see rewind.h. Which calls return EINTR after a handler with SA_RESTART: signal(7).
 * Which let in other signals meanwhile: ppoll(2), sigsuspend(2), epoll_wait(2), io_uring_enter(2).
 * Instruction forms: Intel SDM, volume 2. Calls that can be cancelled:
 * sysdeps/unix/sysv/linux/x86_64/syscall_cancel.S of glibc, nptl/cancellation.c.
 */
#include "agent/sampler/rewind.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/mem.h"

#define REWIND_WINDOW 64 /* bytes before the instruction in which the number must be loaded */
#define REWIND_SYSCALL 2 /* length of `syscall` */
#define REWIND_MOV_EAX 0xb8
#define REWIND_WORD 8 /* bytes of an argument, and of a return address */
#define REWIND_RAX 0  /* registers, as instructions number them */
#define REWIND_RSP 4
#define REWIND_RSI 6
#define REWIND_URING_STRUCT 8 /* IORING_ENTER_EXT_ARG */

#ifdef __x86_64__

static const short rewind_calls[] = {
    SYS_poll,
    SYS_ppoll,
    SYS_select,
    SYS_pselect6,
    SYS_epoll_wait,
    SYS_epoll_pwait,
    SYS_futex,
    SYS_nanosleep,
    SYS_clock_nanosleep,
    SYS_rt_sigtimedwait,
    SYS_rt_sigsuspend,
    SYS_pause,
    SYS_semop,
    SYS_semtimedop,
    SYS_msgsnd,
    SYS_msgrcv,
    SYS_recvfrom,
    SYS_recvmsg,
    SYS_recvmmsg,
    SYS_sendto,
    SYS_sendmsg,
    SYS_accept,
    SYS_accept4,
    SYS_read,
    SYS_readv,
    SYS_write,
    SYS_writev,
    SYS_io_getevents,
    SYS_mq_timedsend,
    SYS_mq_timedreceive,
#ifdef SYS_io_uring_enter
    SYS_io_uring_enter,
#endif
#ifdef SYS_epoll_pwait2
    SYS_epoll_pwait2,
#endif
};

/* Calls that wait with another mask of signals, and the register that points to it. */
static const struct rewind_masked {
    short call;
    uint8_t reg;
    bool in_struct; /* it points to a struct, which begins with the pointer */
} rewind_masked[] = {
    {SYS_rt_sigsuspend, REG_RDI, false}, {SYS_ppoll, REG_R10, false},
    {SYS_pselect6, REG_R9, true},        {SYS_epoll_pwait, REG_R8, false},
#ifdef SYS_io_uring_enter
    {SYS_io_uring_enter, REG_R8, false},
#endif
#ifdef SYS_epoll_pwait2
    {SYS_epoll_pwait2, REG_R8, false},
#endif
};

/* The code of syscall(3) of glibc before the instruction: the number is the caller's first
 * argument. */
static const uint8_t rewind_wrapper[] = {0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0x48, 0x89,
                                         0xd6, 0x48, 0x89, 0xca, 0x4d, 0x89, 0xc2, 0x4d,
                                         0x89, 0xc8, 0x4c, 0x8b, 0x4c, 0x24, 0x08};

/* The code of __syscall_cancel_arch of glibc and __syscall_cp_asm of musl before it: the number
 * is their second argument, and they write to the first word above their return address. */
static const uint8_t rewind_cancelled[] = {0x49, 0x89, 0xfb, 0x48, 0x89, 0xf0, 0x48, 0x89, 0xd7, 0x48, 0x89,
                                           0xce, 0x4c, 0x89, 0xc2, 0x4d, 0x89, 0xca, 0x4c, 0x8b, 0x44, 0x24,
                                           0x08, 0x4c, 0x8b, 0x4c, 0x24, 0x10, 0x4c, 0x89, 0x5c, 0x24, 0x08};

bool rewind_is_repeatable(int number) {
    for (size_t i = 0; i < sizeof rewind_calls / sizeof *rewind_calls; i++)
        if (rewind_calls[i] == number)
            return true;
    return false;
}

/* ---- the required part of the instruction set ---- */

/* Length of ModRM, SIB and displacement at `p`; 0 if they do not fit. */
static size_t rewind_operand(const uint8_t *p, size_t n) {
    if (n == 0)
        return 0;
    unsigned mod = p[0] >> 6, rm = p[0] & 7;
    size_t len = 1;
    if (mod == 3)
        return 1;
    if (rm == 4) {
        if (n < 2)
            return 0;
        len = 2;
        if (mod == 0 && (p[1] & 7) == 5)
            len += 4;
    } else if (mod == 0 && rm == 5) {
        len += 4;
    }
    len += mod == 1 ? 1 : mod == 2 ? 4 : 0;
    return len <= n ? len : 0;
}

/* Instructions with a ModRM operand that compilers put between the load of a number and the
 * call. */
enum rewind_writes { REWIND_WRITES_RM, REWIND_WRITES_REG, REWIND_WRITES_NONE };
static const struct rewind_form {
    uint8_t op, immediate;
    enum rewind_writes writes;
} rewind_forms[] = {
    {0x89, 0, REWIND_WRITES_RM},                                 /* mov r, r/m */
    {0x8b, 0, REWIND_WRITES_REG},                                /* mov r/m, r */
    {0x8d, 0, REWIND_WRITES_REG},                                /* lea */
    {0x31, 0, REWIND_WRITES_RM},                                 /* xor */
    {0x33, 0, REWIND_WRITES_REG},  {0x63, 0, REWIND_WRITES_REG}, /* movslq */
    {0x83, 1, REWIND_WRITES_RM},                                 /* add, sub, cmp … with imm8 */
    {0xc7, 4, REWIND_WRITES_RM},                                 /* mov imm32, r/m */
    {0x85, 0, REWIND_WRITES_NONE},                               /* test */
};

static size_t rewind_form(const struct rewind_form *f, const uint8_t *p, size_t n, unsigned rex,
                          unsigned reg) {
    size_t len = rewind_operand(p, n);
    if (len == 0 || len + f->immediate > n)
        return 0;
    unsigned in_reg = (p[0] >> 3 & 7) | (rex & 4) << 1, in_rm = (p[0] & 7) | (rex & 1) << 3;
    bool writes = f->writes == REWIND_WRITES_REG
                      ? in_reg == reg
                      : f->writes == REWIND_WRITES_RM && p[0] >> 6 == 3 && in_rm == reg;
    return writes ? 0 : len + f->immediate;
}

/* Length of the instruction at `p` if it is in the list and does not change register `reg` (0
 * rax, 7 rdi), otherwise 0. */
static size_t rewind_step(const uint8_t *p, size_t n, unsigned reg) {
    unsigned rex = n > 0 && (p[0] & 0xf0) == 0x40 ? p[0] : 0;
    size_t at = rex ? 1 : 0;
    if (n <= at)
        return 0;
    uint8_t op = p[at];
    unsigned low = (op & 7) | (rex & 1) << 3;
    if (op >= 0xb8 && op <= 0xbf) /* mov imm32 or, with REX.W, imm64 */
        at += rex & 8 ? 9 : 5;
    else if (op >= 0x50 && op <= 0x57) /* push */
        return at + 1;
    else if (op == 0x6a || op == 0x68)
        at += op == 0x6a ? 2 : 5;
    else if (op == 0x90)
        return at + 1;
    else {
        for (size_t i = 0; i < sizeof rewind_forms / sizeof *rewind_forms; i++)
            if (rewind_forms[i].op == op) {
                size_t len = rewind_form(&rewind_forms[i], p + at + 1, n - at - 1, rex, reg);
                return len ? at + 1 + len : 0;
            }
        return 0;
    }
    return at <= n && !(op >= 0xb8 && op <= 0xbf && low == reg) ? at : 0;
}

/* The constant that the nearest `mov imm32` loads into eax (reg 0) or edi (reg 7), if the
 * instructions from there on end exactly at the end of `code` and do not change the register; -1
 * if not certain. */
static int rewind_find_load(const uint8_t *code, size_t n, unsigned reg) {
    for (size_t back = 5; back <= n; back++) {
        size_t at = n - back, i = at + 5;
        if (code[at] != REWIND_MOV_EAX + reg)
            continue;
        for (size_t len; i < n && (len = rewind_step(code + i, n - i, reg)) > 0;)
            i += len;
        if (i != n)
            continue;
        /* A REX.B prefix before it would make it load another register. */
        if (at > 0 && (code[at - 1] & 0xf1) == 0x41)
            return -1;
        uint32_t number = (uint32_t)code[at + 1] | (uint32_t)code[at + 2] << 8 |
                          (uint32_t)code[at + 3] << 16 | (uint32_t)code[at + 4] << 24;
        return number < 1024 ? (int)number : -1;
    }
    return -1;
}

int rewind_find_number(const uint8_t *code, size_t n) { return rewind_find_load(code, n, 0); }

int rewind_find_argument(const uint8_t *code, size_t n) {
    size_t call = n >= 6 && code[n - 6] == 0xff && code[n - 5] == 0x15 ? 6
                  : n >= 5 && code[n - 5] == 0xe8                      ? 5
                                                                       : 0;
    return call ? rewind_find_load(code, n - call, 7) : -1;
}

/* True if the instructions from `at` on end exactly at the end of `code`, and change neither the
 * register nor the stack pointer. */
static bool rewind_is_straight(const uint8_t *code, size_t n, size_t at, unsigned reg) {
    while (at < n) {
        size_t len = rewind_step(code + at, n - at, reg);
        unsigned rex = (code[at] & 0xf0) == 0x40;
        uint8_t op = code[at + rex < n ? at + rex : at];
        bool pushes = (op >= 0x50 && op <= 0x57) || op == 0x68 || op == 0x6a;
        if (len == 0 || pushes || rewind_step(code + at, n - at, REWIND_RSP) == 0)
            return false;
        at += len;
    }
    return at == n;
}

int rewind_find_slot(const uint8_t *code, size_t n, bool wrapped) {
    unsigned reg = wrapped ? REWIND_RSI : REWIND_RAX;
    if (wrapped && (n < 5 || code[n - 5] != 0xe8))
        return -1;
    n -= wrapped ? 5 : 0;
    for (size_t back = 5; back <= n; back++) {
        const uint8_t *p = code + n - back; /* mov disp8(%rsp),%reg */
        if (p[0] == 0x48 && p[1] == 0x8b && p[2] == (0x44 | reg << 3) && p[3] == 0x24 && p[4] < 0x80 &&
            rewind_is_straight(code, n, n - back + 5, reg))
            return p[4];
    }
    return -1;
}

/* Read our own memory from a handler. 0 or -1. */
static int rewind_read(uint64_t addr, void *buf, size_t len, bool *refused) {
    struct mem process, m;
    mem_init_process(&process, getpid());
    mem_init_handler(&m, &process);
    int rc = mem_read(&m, addr, buf, len);
    *refused = rc != 0 && mem_is_refused(&m);
    return rc;
}

/* The number in the stack at `rsp` + `slot`; -1 if it is not a number of a call. */
static int rewind_read_slot(uint64_t rsp, int slot) {
    uint64_t number;
    bool refused;
    return slot >= 0 && rewind_read(rsp + (uint64_t)slot, &number, sizeof number, &refused) == 0 &&
                   number < 1024
               ? (int)number
               : -1;
}

static bool rewind_ends_with(const uint8_t *code, size_t n, const uint8_t *end, size_t len) {
    return memcmp(code + n - len, end, len) == 0;
}

/* The number of the interrupted call: from the code before it, or from the code of the caller of
 * syscall(3) and similar functions. */
static int rewind_number(const ucontext_t *uc, const uint8_t *code, size_t n) {
    uint8_t before[REWIND_WINDOW];
    uint64_t back, rsp = (uint64_t)uc->uc_mcontext.gregs[REG_RSP];
    bool cancelled = rewind_ends_with(code, n, rewind_cancelled, sizeof rewind_cancelled), refused;
    if (!cancelled && !rewind_ends_with(code, n, rewind_wrapper, sizeof rewind_wrapper)) {
        int number = rewind_find_number(code, n);
        return number >= 0 ? number : rewind_read_slot(rsp, rewind_find_slot(code, n, false));
    }
    if (rewind_read(rsp, &back, sizeof back, &refused) != 0 ||
        rewind_read(back - sizeof before, before, sizeof before, &refused) != 0)
        return -1;
    if (!cancelled)
        return rewind_find_argument(before, sizeof before);
    int slot = rewind_find_slot(before, sizeof before, true);
    return slot < REWIND_WORD ? -1 : rewind_read_slot(rsp + REWIND_WORD, slot);
}

/* True if a signal other than `own` is pending that the thread would take. That signal has the
 * right to interrupt the call. */
static bool rewind_is_wanted(int own, const ucontext_t *uc) {
    sigset_t pending;
    if (sigpending(&pending) != 0)
        return true;
    for (int sig = 1; sig < NSIG; sig++)
        if (sig != own && sigismember(&pending, sig) == 1 && sigismember(&uc->uc_sigmask, sig) == 0)
            return true;
    return false;
}

/* The pointer to the mask with which the call waits, 0 if it has none. 0, or -1 if it cannot be read. */
static int rewind_find_mask(const struct rewind_masked *m, const greg_t *g, uint64_t *mask) {
    bool in_struct = m->in_struct, refused;
    *mask = (uint64_t)g[m->reg];
#ifdef SYS_io_uring_enter
    in_struct = in_struct || (m->call == SYS_io_uring_enter && (g[REG_R10] & REWIND_URING_STRUCT));
#endif
    return in_struct && *mask ? rewind_read(*mask, mask, sizeof *mask, &refused) : 0;
}

/* True if the call lets in signals other than `own` that are blocked around it, or may do so. Only
 * within it can the job's handler have run, for which it waits, and ours right behind that one. */
static bool rewind_lets_in(int number, int own, const ucontext_t *uc) {
    for (size_t i = 0; i < sizeof rewind_masked / sizeof *rewind_masked; i++) {
        uint64_t mask, inside, around;
        bool refused;
        if (rewind_masked[i].call != number)
            continue;
        if (rewind_find_mask(&rewind_masked[i], uc->uc_mcontext.gregs, &mask) != 0)
            return true;
        if (!mask)
            return false;
        memcpy(&around, &uc->uc_sigmask, sizeof around);
        around &= ~(1ULL << (own - 1));
        return rewind_read(mask, &inside, sizeof inside, &refused) != 0 || (around & ~inside) != 0;
    }
    return false;
}

enum rewind_result rewind_interrupted(int sig, void *context) {
    ucontext_t *uc = context;
    greg_t *g = uc->uc_mcontext.gregs;
    uint8_t code[REWIND_WINDOW + REWIND_SYSCALL];
    if (g[REG_RAX] != -EINTR)
        return REWIND_NOTHING;
    bool refused;
    if (rewind_read((uint64_t)g[REG_RIP] - sizeof code, code, sizeof code, &refused) != 0)
        return refused ? REWIND_LEFT : REWIND_NOTHING;
    if (code[REWIND_WINDOW] != 0x0f || code[REWIND_WINDOW + 1] != 0x05)
        return REWIND_NOTHING;
    int number = rewind_number(uc, code, REWIND_WINDOW);
    if (number < 0 || !rewind_is_repeatable(number) || rewind_lets_in(number, sig, uc) ||
        rewind_is_wanted(sig, uc))
        return REWIND_LEFT;
    g[REG_RIP] -= REWIND_SYSCALL;
    g[REG_RAX] = number;
    return REWIND_DONE;
}

#else

bool rewind_is_repeatable(int number) { return (void)number, false; }

int rewind_find_number(const uint8_t *code, size_t n) { return (void)code, (void)n, -1; }

int rewind_find_argument(const uint8_t *code, size_t n) { return (void)code, (void)n, -1; }

int rewind_find_slot(const uint8_t *code, size_t n, bool wrapped) {
    return (void)code, (void)n, (void)wrapped, -1;
}

enum rewind_result rewind_interrupted(int sig, void *context) {
    return (void)sig, (void)context, REWIND_NOTHING;
}

#endif
