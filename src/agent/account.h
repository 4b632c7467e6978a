/* SPDX-License-Identifier: Apache-2.0 */
/* account: memory and CPU of the agent's own threads, counted by themselves. Called by the thread in question. */
#ifndef AGENT_ACCOUNT_H
#define AGENT_ACCOUNT_H

#include <stddef.h>

/* Bytes of the calling thread's stack that are in memory; 0 when it cannot be told. */
size_t account_stack_bytes(void);

#endif
