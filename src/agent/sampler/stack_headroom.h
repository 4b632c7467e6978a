/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stack_headroom: checks that a thread's stack has room for a signal's frame and our handler.
 *
 * Our signal would kill a thread near the end of its stack. The stack pointer of a running
 * thread cannot be read. But a stack that has reached its lowest part has left pages there, and
 * mincore(2) shows whether there are any: while that part is untouched, there is room. Used by
 * the sampler's thread.
 */
#ifndef AGENT_SAMPLER_STACK_HEADROOM_H
#define AGENT_SAMPLER_STACK_HEADROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A stack: the addresses from `low` to `high`. */
struct stack_headroom_stack {
    uint64_t low, high; /* high is 0 if unknown */
    bool grows;         /* of the main thread: mapped as far as it has grown so far */
    /* From here to `high` nothing but this stack can be mapped; `high` if that is not certain. A thread
     * whose stack pointer is here has all of its stack from there on. */
    uint64_t own;
};

/* Find the stack of the thread `tid` whose pthread_self is `ident`, and which was seen at
 * `seen_ns` (monotonic). False if it is unknown, or not known yet: reading the list of mappings
 * takes at most 5 % of the time. */
bool stack_headroom_find(int64_t tid, uint64_t ident, uint64_t seen_ns, struct stack_headroom_stack *out);

/* True if there was room just now. Includes a margin for a thread that moves by tens of
 * kilobytes meanwhile. */
bool stack_headroom_is_enough(const struct stack_headroom_stack *stack);

/* Bytes that the kernel writes at most for a signal. */
size_t stack_headroom_frame(void);

/* Bytes at the end of a stack of `size` bytes that must be untouched; `frame` is the maximum
 * that the kernel writes there. */
uint64_t stack_headroom_needed(uint64_t size, uint64_t frame);

/* Forget the list of mappings. */
void stack_headroom_forget(void);

/* Bytes of memory in use. */
size_t stack_headroom_bytes(void);

#endif
