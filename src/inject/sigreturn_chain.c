/* SPDX-License-Identifier: Apache-2.0 */
/* sigreturn_chain: see sigreturn_chain.h. */
#include "inject/sigreturn_chain.h"

#include <cpuid.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>

#define SIGRETURN_CHAIN_SYSCALL_RET_LEN 3U
#define SIGRETURN_CHAIN_SIGRETURN_LEN 9U
/* 32 and 33: pthread_create lets libc's own signals through, whatever was blocked */
#define SIGRETURN_CHAIN_LIBC_SIGNALS (3ULL << 31)

_Static_assert(SIGRETURN_CHAIN_HEAD % FRAME_ALIGN == 0, "`back` holds vector state, which is aligned");

int sigreturn_chain_place(struct sigreturn_chain *c, uint64_t sp, size_t xstate_len, uint64_t syscall_ret,
                          uint64_t sigreturn) {
    *c = (struct sigreturn_chain){.syscall_ret = syscall_ret, .sigreturn = sigreturn};
    if (frame_size(xstate_len) > FRAME_MAX || SIGRETURN_CHAIN_HEAD < frame_call_size() + 2 * sizeof(uint64_t))
        return -1;
    c->back = frame_place(sp, xstate_len);
    c->at = c->back - SIGRETURN_CHAIN_HEAD;
    c->len = SIGRETURN_CHAIN_HEAD + frame_size(xstate_len);
    c->release = c->at;
    c->time = c->release + frame_call_size();
    return 0;
}

int sigreturn_chain_put_back(struct sigreturn_chain *c, const struct user_regs_struct *regs,
                             const void *xstate, size_t xstate_len, uint64_t mask) {
    return frame_build(c->bytes + SIGRETURN_CHAIN_HEAD, c->back, regs, xstate, xstate_len, mask,
                       c->sigreturn);
}

void sigreturn_chain_put_head(struct sigreturn_chain *c, const struct user_regs_struct *regs, uint64_t region,
                              uint64_t region_size, uint64_t wait_ns) {
    struct user_regs_struct r = *regs;
    uint64_t time[2] = {wait_ns / 1000000000U, wait_ns % 1000000000U};
    r.rip = c->syscall_ret;
    r.rbp = 0;
    r.rax = SYS_munmap;
    r.rdi = region;
    r.rsi = region_size;
    r.rsp = c->back;
    frame_build_call(c->bytes, &r, c->mask, c->sigreturn);
    memcpy(c->bytes + (c->time - c->at), time, sizeof time);
}

bool sigreturn_chain_is_intact(const struct sigreturn_chain *c, const struct user_regs_struct *regs,
                               uint64_t mask) {
    bool call = regs->rip - c->syscall_ret < SIGRETURN_CHAIN_SYSCALL_RET_LEN;
    bool back = regs->rip - c->sigreturn < SIGRETURN_CHAIN_SIGRETURN_LEN;
    uint64_t above = regs->rsp - (regs->rsp < c->back ? c->release : c->back);
    bool masked = (c->mask & ~mask & ~SIGRETURN_CHAIN_LIBC_SIGNALS) == 0;
    return (call || back) && masked && (above == 0 || above == sizeof(uint64_t));
}

/* ---- one frame; layout: Linux arch/x86/include/asm/sigframe.h, uapi/asm/sigcontext.h; checked by the kernel in
 * arch/x86/kernel/fpu/signal.c, check_xstate_in_sigframe ---- */

#define FRAME_UC_FP_XSTATE 1UL
#define FRAME_UC_SIGCONTEXT_SS 2UL
#define FRAME_UC_STRICT_RESTORE_SS 4UL
#define FRAME_FP_XSTATE_MAGIC1 0x46505853U
#define FRAME_FP_XSTATE_MAGIC2 0x46505845U
#define FRAME_SW_OFFSET 464U /* software bytes of the FXSAVE area */
#define FRAME_BV_OFFSET 512U /* XSTATE_BV */
#define FRAME_XSAVE_MIN 576U /* legacy area and header */
#define FRAME_FEATURES_BASIC 3ULL
#define FRAME_FEATURE_TILES (3ULL << 17) /* AMX: larger than most threads are allowed */
/* flags that sigaltstack refuses: the thread keeps its own */
#define FRAME_NO_ALTSTACK 0x7fffffff

struct frame_head {
    uint64_t pretcode;
    ucontext_t uc;
};

struct frame_sw {
    uint32_t magic1, extended_size;
    uint64_t xfeatures;
    uint32_t xstate_size, padding[7];
};

static size_t frame_fp_offset(void) {
    return (sizeof(struct frame_head) + FRAME_ALIGN - 1) & ~(size_t)(FRAME_ALIGN - 1);
}

size_t frame_size(size_t xstate_len) { return frame_fp_offset() + xstate_len + sizeof(uint32_t); }

uint64_t frame_place(uint64_t sp, size_t xstate_len) {
    return (sp - FRAME_RED_ZONE - frame_size(xstate_len)) & ~(uint64_t)(FRAME_ALIGN - 1);
}

/* Size of the standard format for `features`: leaf 0xD gives size and offset of each. */
static uint32_t frame_xstate_size(uint64_t features, size_t limit) {
    uint32_t size = FRAME_XSAVE_MIN;
    for (unsigned i = 2; i < 63; i++) {
        unsigned a, b, c, d;
        if (!(features >> i & 1) || !__get_cpuid_count(0xd, i, &a, &b, &c, &d))
            continue;
        if (b + a > size)
            size = b + a;
    }
    return size < limit ? size : (uint32_t)limit;
}

static void frame_put_regs(mcontext_t *mc, const struct user_regs_struct *r) {
    greg_t *g = mc->gregs;
    g[REG_R8] = (greg_t)r->r8;
    g[REG_R9] = (greg_t)r->r9;
    g[REG_R10] = (greg_t)r->r10;
    g[REG_R11] = (greg_t)r->r11;
    g[REG_R12] = (greg_t)r->r12;
    g[REG_R13] = (greg_t)r->r13;
    g[REG_R14] = (greg_t)r->r14;
    g[REG_R15] = (greg_t)r->r15;
    g[REG_RDI] = (greg_t)r->rdi;
    g[REG_RSI] = (greg_t)r->rsi;
    g[REG_RBP] = (greg_t)r->rbp;
    g[REG_RBX] = (greg_t)r->rbx;
    g[REG_RDX] = (greg_t)r->rdx;
    g[REG_RAX] = (greg_t)r->rax;
    g[REG_RCX] = (greg_t)r->rcx;
    g[REG_RSP] = (greg_t)r->rsp;
    g[REG_RIP] = (greg_t)r->rip;
    g[REG_EFL] = (greg_t)r->eflags;
    g[REG_CSGSFS] =
        (greg_t)((r->cs & 0xffff) | (r->gs & 0xffff) << 16 | (r->fs & 0xffff) << 32 | (r->ss & 0xffff) << 48);
}

int frame_build(uint8_t *buf, uint64_t at, const struct user_regs_struct *regs, const void *xstate,
                size_t xstate_len, uint64_t mask, uint64_t sigreturn) {
    struct frame_head head;
    size_t fp = frame_fp_offset();
    if (at % FRAME_ALIGN != 0 || xstate_len < FRAME_XSAVE_MIN || frame_size(xstate_len) > FRAME_MAX)
        return -1;
    memset(buf, 0, frame_size(xstate_len));
    memset(&head, 0, sizeof head);
    head.pretcode = sigreturn;
    head.uc.uc_flags = FRAME_UC_FP_XSTATE | FRAME_UC_SIGCONTEXT_SS | FRAME_UC_STRICT_RESTORE_SS;
    head.uc.uc_stack.ss_flags = FRAME_NO_ALTSTACK;
    frame_put_regs(&head.uc.uc_mcontext, regs);
    uint64_t fp_at = at + fp;
    memcpy(&head.uc.uc_mcontext.fpregs, &fp_at, sizeof fp_at);
    memcpy(&head.uc.uc_sigmask, &mask, sizeof mask);
    memcpy(buf, &head, sizeof head);

    uint8_t *area = buf + fp;
    uint64_t enabled, used;
    memcpy(area, xstate, xstate_len);
    memcpy(&enabled, area + FRAME_SW_OFFSET, sizeof enabled); /* XCR0, as the register set has it */
    memcpy(&used, area + FRAME_BV_OFFSET, sizeof used);
    uint64_t features = (enabled | used | FRAME_FEATURES_BASIC) & ~(FRAME_FEATURE_TILES & ~used);
    struct frame_sw sw = {.magic1 = FRAME_FP_XSTATE_MAGIC1, .xfeatures = features};
    sw.xstate_size = frame_xstate_size(features, xstate_len);
    sw.extended_size = sw.xstate_size + (uint32_t)sizeof(uint32_t);
    memcpy(area + FRAME_SW_OFFSET, &sw, sizeof sw);
    uint32_t magic2 = FRAME_FP_XSTATE_MAGIC2;
    memcpy(area + sw.xstate_size, &magic2, sizeof magic2);
    return 0;
}

/* The kernel reads a frame up to the mask; its own ucontext is shorter than libc's. */
size_t frame_call_size(void) {
    size_t end = offsetof(struct frame_head, uc) + offsetof(ucontext_t, uc_sigmask) + sizeof(uint64_t);
    return (end + 15) & ~(size_t)15;
}

void frame_build_call(uint8_t *buf, const struct user_regs_struct *regs, uint64_t mask, uint64_t sigreturn) {
    struct frame_head head;
    memset(&head, 0, sizeof head);
    head.pretcode = sigreturn;
    head.uc.uc_flags = FRAME_UC_SIGCONTEXT_SS | FRAME_UC_STRICT_RESTORE_SS;
    head.uc.uc_stack.ss_flags = FRAME_NO_ALTSTACK;
    frame_put_regs(&head.uc.uc_mcontext, regs);
    memcpy(&head.uc.uc_sigmask, &mask, sizeof mask);
    memcpy(buf, &head, frame_call_size());
}
