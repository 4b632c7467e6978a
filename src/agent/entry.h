/* SPDX-License-Identifier: Apache-2.0 */
/* entry: assembles the agent, and has the exported symbols of libprobing.so; all others are
 * hidden. */
#ifndef AGENT_ENTRY_H
#define AGENT_ENTRY_H

#include <stdbool.h>

#include "base/agent_abi.h"

/* Start the agent; called on a thread made by the injector. One of enum agent_start_result.
 * After AGENT_STARTED args->fd is closed, and the agent will join args->thread and unmap
 * args->region; otherwise they remain the caller's. `thread` 0: there is none to be joined. */
__attribute__((visibility("default"))) int probing_start(struct agent_start *args);

/* The same for arguments that have been checked; see life_start. */
int entry_start(struct agent_start *args, bool invited);

/* Version of this file. */
__attribute__((visibility("default"))) extern const char probing_version[];

#endif
