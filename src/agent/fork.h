/* SPDX-License-Identifier: Apache-2.0 */
/* fork: what the child of a fork does with its parent's agent: the child has none, unless
 * autostart.h starts one. */
#ifndef AGENT_FORK_H
#define AGENT_FORK_H

#include <stdbool.h>

void fork_in_child(void);

/* Make the child call `start` last; `had_agent`: the parent has a running agent. Permanent. Any
 * thread. */
void fork_set_starter(void (*start)(bool had_agent));

#endif
