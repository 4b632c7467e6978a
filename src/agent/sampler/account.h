/* SPDX-License-Identifier: Apache-2.0 */
/* account: memory and CPU of the agent's own threads, counted by themselves. Called by the thread in question. */
#ifndef AGENT_SAMPLER_ACCOUNT_H
#define AGENT_SAMPLER_ACCOUNT_H

#include <stddef.h>
#include <stdint.h>

/* A thread's last count; zeros: none yet. */
struct account_stack {
    uint64_t at_ns;
    size_t bytes;
};

/* Bytes of the calling thread's stack that are in memory, as counted within the last seconds; 0 when it cannot be told. */
size_t account_stack_bytes(struct account_stack *a);

#endif
