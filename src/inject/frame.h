/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame: a signal frame that puts a thread back where it was.
 *
 * It is laid out below the red zone of the borrowed thread's own stack, as the kernel would for a signal handler. Whatever
 * is run on the thread returns into libc's rt_sigreturn with this frame, so that it goes on with all its registers, vector
 * state and signal mask even if nobody is there any more to put it back. Pure functions.
 */
#ifndef INJECT_FRAME_H
#define INJECT_FRAME_H

#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

#define FRAME_MAX ((size_t)20 * 1024)
#define FRAME_ALIGN 64U
#define FRAME_RED_ZONE 128U /* x86-64 psABI 3.2.2 */

/* Bytes that a frame with `xstate_len` bytes of vector state takes. */
size_t frame_size(size_t xstate_len);

/* Where such a frame goes for a thread whose stack pointer is `sp`. */
uint64_t frame_place(uint64_t sp, size_t xstate_len);

/* Lay it out in `buf` (frame_size bytes) for address `at`. `sigreturn` is code that calls rt_sigreturn; a thread returns
 * through the frame by popping its first word into the instruction pointer. 0, or -1 when the state makes no sense. */
int frame_build(uint8_t *buf, uint64_t at, const struct user_regs_struct *regs, const void *xstate,
                size_t xstate_len, uint64_t mask, uint64_t sigreturn);

/* The same with nothing but registers and mask, which then makes a call: vector state is reset on the way. `buf` has room for
 * frame_call_size bytes. */
size_t frame_call_size(void);
void frame_build_call(uint8_t *buf, const struct user_regs_struct *regs, uint64_t mask, uint64_t sigreturn);

#endif
