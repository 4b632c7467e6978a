/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_abi: see agent_abi.h. Names of the ways in, one a row; 'probing inject' and 'probing
 * status' print the same. Pure data, any thread.
 */
#include "base/agent_abi.h"

#include <stddef.h>

static const char *const agent_way_names[AGENT_WAYS] = {
    [AGENT_WAY_ASLEEP] = "a thread asleep in a system call",
    [AGENT_WAY_SAFE_POINT] = "a thread at a safe point",
    [AGENT_WAY_REMOTE_EXEC] = "the interpreter's remote debugging",
    [AGENT_WAY_PRELOADED] = "preloaded",
    [AGENT_WAY_PTH] = "probing.pth",
    [AGENT_WAY_FORKED] = "forked from a process with an agent",
};

const char *agent_way_name(uint32_t way) { return way < AGENT_WAYS ? agent_way_names[way] : NULL; }
