/* SPDX-License-Identifier: Apache-2.0 */
/* fork: what the child of a fork does with the agent of its parent: it has none, unless autostart.h gives it one. */
#ifndef AGENT_FORK_H
#define AGENT_FORK_H

void fork_in_child(void);

#endif
