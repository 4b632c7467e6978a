/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rewind: restarts a blocking system call that our signal has interrupted, as if no signal had
 * arrived.
 *
 * The kernel has written -EINTR to the register that had the call's number. The number can be
 * recovered if the instructions before the `syscall` (or, for syscall(3), before its call) load
 * it as a constant and do nothing else to it, or (glibc from 2.41 on) from its place in the
 * stack, where it still is. Only calls that may simply be repeated are restarted. A relative
 * timeout starts again, so it ends late by the time that the thread had slept before the signal.
 * A call that lets in signals which are blocked around it is not restarted: our signal may have
 * come right behind the job's, whose handler has run, and the thread would sleep without end.
 * Async-signal-safe.
 */
#ifndef AGENT_SAMPLER_REWIND_H
#define AGENT_SAMPLER_REWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rewind_result {
    REWIND_NOTHING = 0, /* no system call was interrupted */
    REWIND_DONE,        /* it is called again after the handler */
    REWIND_LEFT,        /* the caller sees EINTR */
};

/* `sig` and `context` are the first and third argument of a handler. Another `sig` that is
 * pending is ours, too; any other pending signal that the thread would take has the right to
 * interrupt, and then the call is not restarted. */
enum rewind_result rewind_interrupted(int sig, void *context);

/* The number that the code before `syscall` loads, from the `n` bytes that end just before that
 * instruction; -1 if not certain. */
int rewind_find_number(const uint8_t *code, size_t n);

/* The first argument of a call of syscall(3), from the `n` bytes that end just after the call
 * instruction; -1 if not certain. */
int rewind_find_argument(const uint8_t *code, size_t n);

/* The offset from the stack pointer from which the number is loaded, from the `n` bytes that end
 * just before the `syscall`, or (`wrapped`) just after the call of glibc's or musl's function
 * for cancellable calls, where it is the second argument. -1 if not certain. */
int rewind_find_slot(const uint8_t *code, size_t n, bool wrapped);

/* True if a call with this number may be repeated after it has returned -EINTR, unless it lets in
 * other signals. */
bool rewind_is_repeatable(int number);

#endif
