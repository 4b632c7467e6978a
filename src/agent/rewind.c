/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rewind: see rewind.h. Which calls return EINTR after a handler with SA_RESTART: signal(7). Instruction forms: Intel SDM,
 * volume 2.
 */
#include "agent/rewind.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#define REWIND_WINDOW 48 /* bytes before the instruction in which the number must be loaded */
#define REWIND_SYSCALL 2 /* length of `syscall` */
#define REWIND_MOV_EAX 0xb8

#ifdef __x86_64__

static const short rewind_calls[] = {
    SYS_poll,    SYS_ppoll,     SYS_select,       SYS_pselect6,       SYS_epoll_wait, SYS_epoll_pwait,
    SYS_futex,   SYS_nanosleep, SYS_clock_nanosleep, SYS_rt_sigtimedwait, SYS_rt_sigsuspend, SYS_pause,
    SYS_semop,   SYS_semtimedop, SYS_msgsnd,      SYS_msgrcv,         SYS_recvfrom,   SYS_recvmsg,
    SYS_recvmmsg, SYS_sendto,   SYS_sendmsg,      SYS_accept,         SYS_accept4,    SYS_read,
    SYS_readv,   SYS_write,     SYS_writev,       SYS_io_getevents,   SYS_mq_timedsend, SYS_mq_timedreceive,
#ifdef SYS_epoll_pwait2
    SYS_epoll_pwait2,
#endif
};

bool rewind_is_repeatable(int number) {
    for (size_t i = 0; i < sizeof rewind_calls / sizeof *rewind_calls; i++)
        if (rewind_calls[i] == number)
            return true;
    return false;
}

/* Length of an instruction between registers that leaves rax alone, or 0 when it is none that we know. */
static size_t rewind_register_move(const uint8_t *p, size_t n) {
    size_t rex = n > 0 && (p[0] & 0xf0) == 0x40;
    bool dest_high = rex && (p[0] & 1); /* the register named by r/m is r8 to r15 */
    if (n < rex + 2)
        return 0;
    uint8_t op = p[rex], modrm = p[rex + 1];
    if (op >= 0xb9 && op <= 0xbf) /* mov imm32, ecx to edi or r9d to r15d */
        return n >= rex + 5 && !(rex && (p[0] & 8)) ? rex + 5 : 0;
    if (op == REWIND_MOV_EAX) /* r8d; without the prefix it is the load itself */
        return dest_high && !(p[0] & 8) && n >= rex + 5 ? rex + 5 : 0;
    bool to_rm = op == 0x89 || op == 0x31; /* mov, xor */
    if (!to_rm || modrm >> 6 != 3)
        return 0;
    return dest_high || (modrm & 7) != 0 ? rex + 2 : 0;
}

/* Do the bytes from `at` on load a constant into eax and then only move other registers until their end? */
static bool rewind_loads_at(const uint8_t *code, size_t n, size_t at) {
    if (code[at] != REWIND_MOV_EAX || n - at < 5)
        return false;
    for (size_t i = at + 5; i < n;) {
        size_t len = rewind_register_move(code + i, n - i);
        if (len == 0)
            return false;
        i += len;
    }
    return true;
}

int rewind_find_number(const uint8_t *code, size_t n) {
    for (size_t back = 5; back <= n; back++) {
        size_t at = n - back;
        if (!rewind_loads_at(code, n, at))
            continue;
        /* With a REX.B prefix before it, it would be r8d that is loaded. */
        if (at > 0 && (code[at - 1] & 0xf1) == 0x41)
            return -1;
        uint32_t number = (uint32_t)code[at + 1] | (uint32_t)code[at + 2] << 8 | (uint32_t)code[at + 3] << 16 |
                          (uint32_t)code[at + 4] << 24;
        return number < 1024 ? (int)number : -1;
    }
    return -1;
}

/* The bytes that end before `end`, as many as can be read up to `cap`, ending at buf + cap. Their number. */
static size_t rewind_read_code(uint64_t end, uint8_t *buf, size_t cap) {
    struct iovec local = {.iov_base = buf, .iov_len = cap};
    struct iovec remote = {.iov_base = (void *)(uintptr_t)(end - cap), .iov_len = cap};
    return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)cap ? cap : 0;
}

/* Is a signal waiting that the thread would take? Then it is that one's right to interrupt. */
static bool rewind_is_wanted(const ucontext_t *uc) {
    sigset_t pending;
    if (sigpending(&pending) != 0)
        return true;
    for (int sig = 1; sig < NSIG; sig++)
        if (sigismember(&pending, sig) == 1 && sigismember(&uc->uc_sigmask, sig) == 0)
            return true;
    return false;
}

enum rewind_result rewind_interrupted(void *context) {
    ucontext_t *uc = context;
    greg_t *g = uc->uc_mcontext.gregs;
    uint8_t code[REWIND_WINDOW + REWIND_SYSCALL];
    if (g[REG_RAX] != -EINTR)
        return REWIND_NOTHING;
    if (rewind_read_code((uint64_t)g[REG_RIP], code, sizeof code) == 0 || code[REWIND_WINDOW] != 0x0f ||
        code[REWIND_WINDOW + 1] != 0x05)
        return REWIND_NOTHING;
    int number = rewind_find_number(code, REWIND_WINDOW);
    if (number < 0 || !rewind_is_repeatable(number) || rewind_is_wanted(uc))
        return REWIND_LEFT;
    g[REG_RIP] -= REWIND_SYSCALL;
    g[REG_RAX] = number;
    return REWIND_DONE;
}

#else

bool rewind_is_repeatable(int number) { return (void)number, false; }

int rewind_find_number(const uint8_t *code, size_t n) { return (void)code, (void)n, -1; }

enum rewind_result rewind_interrupted(void *context) { return (void)context, REWIND_NOTHING; }

#endif
