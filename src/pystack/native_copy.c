/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native_copy: registers and stack of one moment; see native.h.
 *
 * Up to native_copy_asleep everything is async-signal-safe: one call of the kernel, nothing allocated. Registers of a context:
 * sys/ucontext.h of glibc for x86-64.
 */
#include "pystack/native.h"

#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/procfs.h"

#define COPY_PAGE 4096ULL
#define COPY_RED_ZONE 128 /* bytes below the stack pointer that belong to the function; System V psABI */

void native_copy_stack(struct native_copy *c, pid_t pid) {
    uint64_t from = c->regs[NATIVE_RSP] - COPY_RED_ZONE, at = from;
    size_t left = NATIVE_STACK_MAX, n = 0;
    c->stack_at = from;
    c->stack_len = 0;
    if (c->regs[NATIVE_RSP] < COPY_PAGE || c->regs[NATIVE_RSP] >= 1ULL << 47)
        return;
    if (c->stack_end > from && c->stack_end - from < left)
        left = (size_t)(c->stack_end - from);
    /* Page by page: what the kernel can read up to the stack's end is read, however far that is. */
    for (size_t got = left; got && n < NATIVE_PIECES; n++) {
        size_t piece = (size_t)(COPY_PAGE - at % COPY_PAGE);
        piece = piece < got ? piece : got;
        c->pieces[n] = (struct iovec){.iov_base = (void *)(uintptr_t)at, .iov_len = piece};
        at += piece;
        got -= piece;
    }
    struct iovec local = {.iov_base = c->stack, .iov_len = left};
    ssize_t got = process_vm_readv(pid, &local, 1, c->pieces, n, 0);
    c->stack_len = got > 0 ? (size_t)got : 0;
}

#ifdef __x86_64__
void native_copy_registers(struct native_copy *c, const void *context) {
    static const uint8_t from[NATIVE_REGS] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                                              REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                              REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
    const ucontext_t *uc = context;
    for (size_t i = 0; i < NATIVE_REGS; i++)
        c->regs[i] = (uint64_t)uc->uc_mcontext.gregs[from[i]];
    c->known = (1U << NATIVE_REGS) - 1;
    c->stack_len = 0;
}
#else
void native_copy_registers(struct native_copy *c, const void *context) {
    (void)context;
    c->known = 0;
    c->stack_len = 0;
}
#endif

void native_copy_context(struct native_copy *c, const void *context, pid_t pid) {
    uint64_t began = clock_mono_ns();
    native_copy_registers(c, context);
    if (c->known)
        native_copy_stack(c, pid);
    c->spent_ns = clock_mono_ns() - began;
}

int native_copy_asleep(struct native_copy *c, pid_t pid, pid_t tid) {
    struct procfs_syscall call;
    c->known = 0;
    c->stack_len = 0;
    if (procfs_read_syscall(pid, tid, &call) != 0)
        return -1;
    c->regs[NATIVE_RSP] = call.sp;
    c->regs[NATIVE_RIP] = call.pc;
    c->known = 1U << NATIVE_RSP | 1U << NATIVE_RIP;
    native_copy_stack(c, pid ? pid : getpid());
    return c->stack_len ? 0 : -1;
}
