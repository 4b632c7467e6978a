/* SPDX-License-Identifier: Apache-2.0 */
/* entry: what libprobing.so shows to the world; everything else is hidden. */
#ifndef AGENT_ENTRY_H
#define AGENT_ENTRY_H

#include "base/agent_abi.h"

/* Start the agent; called on a thread made by the injector. One of enum agent_start_result. After AGENT_STARTED args->fd is
 * closed, args->thread will be joined and args->region unmapped by the agent; after any other they are still the caller's.
 * `thread` 0: there is none to be joined. */
__attribute__((visibility("default"))) int probing_start(struct agent_start *args);

/* Version of this file. */
__attribute__((visibility("default"))) extern const char probing_version[];

#endif
