/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rewind: a blocking system call that our signal has interrupted is made to begin again, as if no signal had come.
 *
 * The kernel has put -EINTR into the register that held the call's number. The number is known again when the instructions
 * before the `syscall` (or, for syscall(3), before its call) load it as a constant and do nothing else to it, or (glibc from 2.41
 * on) from a place of the stack, where it still is. Only calls that may simply be repeated are: a
 * relative time limit begins anew, which is late by what the thread had slept before the signal came. Async-signal-safe.
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

/* `sig` and `context` are the first and third argument of a handler. Another `sig` that waits meanwhile is ours too; any other
 * signal the thread would take has the right to interrupt, and the call is left. */
enum rewind_result rewind_interrupted(int sig, void *context);

/* Number that the code before `syscall` loads, given the `n` bytes that end just before that instruction; -1 not certain. */
int rewind_find_number(const uint8_t *code, size_t n);

/* First argument of a call of syscall(3), given the `n` bytes that end just behind the call instruction; -1 not certain. */
int rewind_find_argument(const uint8_t *code, size_t n);

/* The number is loaded from the stack: where, in bytes from the stack pointer, given the `n` bytes that end just before the
 * `syscall`, or (`wrapped`) just behind the call of glibc's or musl's function for calls that can be cancelled, to which it is the
 * second argument. -1 not certain. */
int rewind_find_slot(const uint8_t *code, size_t n, bool wrapped);

/* May a call with this number be made again after it has returned -EINTR? */
bool rewind_is_repeatable(int number);

#endif
