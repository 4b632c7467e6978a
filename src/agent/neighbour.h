/* SPDX-License-Identifier: Apache-2.0 */
/*
 * neighbour: is a socket held by a process of our user that lives where we do: in the same user, pid and mount namespaces?
 *
 * The kernel tells the user of a socket, and no more; in a container that shares our network that user may be another one, who has
 * nothing here. So the process is looked for that holds it, among those that we see in /proc and may look at, the newest first: who types
 * curl has just begun. It is held by nobody of ours as long as it was not found: bounded in processes, descriptors and time of the
 * processor. Nothing in it blocks. Any thread.
 */
#ifndef AGENT_NEIGHBOUR_H
#define AGENT_NEIGHBOUR_H

#include <stdbool.h>
#include <stdint.h>

/* `last`: the process that was found the last time, 0 none; it is asked first. */
bool neighbour_holds(uint64_t inode, int *last);

#endif
