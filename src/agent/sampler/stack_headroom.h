/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stack_headroom: has a thread room on its stack for a signal's frame and our handler?
 *
 * A thread near the end of its stack would be killed by our signal. Where a running thread's stack pointer is cannot be
 * asked for. But a stack that has reached into its lowest part has left pages there, and mincore(2) tells whether
 * there are any: while that part was never touched, there is room. Used by the sampler's thread.
 */
#ifndef AGENT_SAMPLER_STACK_HEADROOM_H
#define AGENT_SAMPLER_STACK_HEADROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A stack: the addresses from `low` to `high`. */
struct stack_headroom_stack {
    uint64_t low, high; /* high 0: not known */
    bool grows;         /* the main thread's: mapped as far as it has got so far */
};

/* Find the stack of the thread `tid` whose pthread_self is `ident`, and which was seen to be there at `seen_ns` (monotonic).
 * False when it is not known, or not yet: reading the list of mappings takes 5 % of the time at most. */
bool stack_headroom_find(int64_t tid, uint64_t ident, uint64_t seen_ns, struct stack_headroom_stack *out);

/* Is there room, judged a moment ago? A thread that moves by tens of kilobytes meanwhile is allowed for. */
bool stack_headroom_is_enough(const struct stack_headroom_stack *stack);

/* Bytes at the end of a stack of `size` bytes that must be untouched; `frame` is what the kernel puts there at most. */
uint64_t stack_headroom_needed(uint64_t size, uint64_t frame);

/* Forget the list of mappings. */
void stack_headroom_forget(void);

/* Bytes held. */
size_t stack_headroom_bytes(void);

#endif
