/* SPDX-License-Identifier: Apache-2.0 */
/* sigreturn_chain: see sigreturn_chain.h. */
#include "inject/sigreturn_chain.h"

#include <string.h>
#include <sys/syscall.h>

#define SIGRETURN_CHAIN_SYSCALL_RET_LEN 3U
#define SIGRETURN_CHAIN_SIGRETURN_LEN 9U
#define SIGRETURN_CHAIN_LIBC_SIGNALS                                                                         \
    (3ULL << 31) /* 32 and 33: pthread_create lets libc's own through, whatever was blocked */

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
