/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sigreturn_chain: the frames on the borrowed thread's own stack through which it goes back by itself.
 *
 * Both are signal frames as the kernel makes them; a thread passes from one to the next by a "syscall; ret" and
 * rt_sigreturn, both libc's, so nothing of ours has to be mapped for that:
 *   release   unmaps the region, then on to back: for a thread that is alone in it
 *   back      everything as it was: registers, vector state, signal mask
 * On the normal way neither is used: rt_sigreturn would forget how an interrupted call goes on. Pure functions.
 */
#ifndef INJECT_SIGRETURN_CHAIN_H
#define INJECT_SIGRETURN_CHAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

/*
 * ---- one frame ----
 *
 * It is laid out below the red zone of the borrowed thread's own stack, as the kernel would for a signal handler. Whatever
 * is run on the thread returns into libc's rt_sigreturn with this frame, so that it goes on with all its registers, vector
 * state and signal mask even if nobody is there any more to put it back. Pure functions.
 */

#define FRAME_MAX ((size_t)20 * 1024)
#define FRAME_ALIGN 64U
#define FRAME_RED_ZONE 128U /* x86-64 psABI 3.2.2 */

/* Size of a frame with `xstate_len` bytes of vector state. */
size_t frame_size(size_t xstate_len);

/* The address of such a frame for a thread whose stack pointer is `sp`. */
uint64_t frame_place(uint64_t sp, size_t xstate_len);

/* Write the frame to `buf` (frame_size bytes) for address `at`. `sigreturn` is code that calls
 * rt_sigreturn; a thread returns through the frame by popping its first word into the
 * instruction pointer. 0, or -1 if the state is not valid. */
int frame_build(uint8_t *buf, uint64_t at, const struct user_regs_struct *regs, const void *xstate,
                size_t xstate_len, uint64_t mask, uint64_t sigreturn);

/* The same with only registers and mask, for a thread that then makes a call: vector state is
 * reset on the way. `buf` has room for frame_call_size bytes. */
size_t frame_call_size(void);
void frame_build_call(uint8_t *buf, const struct user_regs_struct *regs, uint64_t mask, uint64_t sigreturn);

/* ---- the chain ---- */

#define SIGRETURN_CHAIN_HEAD ((size_t)384) /* the part before `back`; keeps that one aligned */
#define SIGRETURN_CHAIN_MAX (SIGRETURN_CHAIN_HEAD + FRAME_MAX)

struct sigreturn_chain {
    uint64_t at; /* on the thread's stack */
    size_t len;
    uint64_t release, back; /* the start of each frame: the stack pointer for a "ret" into it */
    uint64_t time;          /* a struct timespec: how long the thread waits to be restored */
    uint64_t syscall_ret, sigreturn;
    uint64_t mask; /* while borrowed */
    uint8_t bytes[SIGRETURN_CHAIN_MAX];
};

/* Choose the address, below the red zone of `sp`. 0, or -1 if the vector state is too large. */
int sigreturn_chain_place(struct sigreturn_chain *c, uint64_t sp, size_t xstate_len, uint64_t syscall_ret,
                          uint64_t sigreturn);

/* Write `back` to `bytes`. 0, or -1 if the state is not valid. */
int sigreturn_chain_put_back(struct sigreturn_chain *c, const struct user_regs_struct *regs,
                             const void *xstate, size_t xstate_len, uint64_t mask);

/* Write `release` and the time to the first SIGRETURN_CHAIN_HEAD of `bytes`. */
void sigreturn_chain_put_head(struct sigreturn_chain *c, const struct user_regs_struct *regs, uint64_t region,
                              uint64_t region_size, uint64_t wait_ns);

/* True if a thread with these registers and this mask is on its way to the frames or through
 * them, and not back yet. */
bool sigreturn_chain_is_intact(const struct sigreturn_chain *c, const struct user_regs_struct *regs,
                               uint64_t mask);

#endif
