/* SPDX-License-Identifier: Apache-2.0 */
/* fork: what the child of a fork does with the agent of its parent: it has none, unless autostart.h gives it one. */
#ifndef AGENT_FORK_H
#define AGENT_FORK_H

#include <stdbool.h>

void fork_in_child(void);

/* Have `start` called last of all; `had_agent`: the parent's runs. Stays so for ever. Any thread. */
void fork_set_starter(void (*start)(bool had_agent));

#endif
