/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alt_stack: alternative signal stacks for threads whose own timer sends them our signal.
 *
 * Whether a thread's stack has room can be checked before we send a signal (stack_headroom.h), but
 * not before a timer does. So such a thread gets an alternative stack (sigaltstack(2)), unless it
 * has one: its handler, which only that thread can run, puts it into the context that the kernel
 * restores. It stays with the thread: a handler that runs on it cannot take it away, and handlers
 * of the job with SA_ONSTACK may be using it. The memory is used again when the thread is gone.
 */
#ifndef AGENT_SAMPLER_ALT_STACK_H
#define AGENT_SAMPLER_ALT_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum alt_stack_state {
    ALT_STACK_NONE = 0, /* the thread has none yet, as far as is known */
    ALT_STACK_READY,    /* it has one with room for our handler, ours or its own */
    ALT_STACK_UNFIT,    /* its own is too small, or it has given ours up */
};

/* The memory for thread `tid` of this process, the same one at each call while it lives; NULL if
 * there is none. The sampler's thread. */
void *alt_stack_of(int64_t tid);

/* In a handler: give the interrupted thread the alternative stack `memory` when the handler
 * returns, if it has none (NULL: leave it as it is). Returns what the thread has now: NONE if it
 * will have it only then. Async-signal-safe. */
enum alt_stack_state alt_stack_install(void *memory, void *context);

/* In the child of a fork: the threads are gone, and so is the knowledge of their stacks. */
void alt_stack_in_child(void);

/* Bytes that were given to threads and touched, at most. */
size_t alt_stack_bytes(void);

#endif
