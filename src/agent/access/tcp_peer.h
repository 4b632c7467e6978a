/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp_peer: is a socket held by a process of our user that lives where we do: in the same user, pid and mount namespaces?
 *
 * The kernel knows the user of a socket and nothing more; in a container that shares our network the same number may be somebody else.
 * So this searches the processes that we see in /proc and may read for the one that holds the socket, the newest first, because a curl
 * has just started. A socket that is not found counts as a stranger's. The search is bounded in processes, descriptors and CPU time.
 * Nothing in it blocks. Any thread.
 */
#ifndef AGENT_ACCESS_TCP_PEER_H
#define AGENT_ACCESS_TCP_PEER_H

#include <stdbool.h>
#include <stdint.h>

/* `last`: the process that was found the last time, 0 none; it is asked first. */
bool tcp_peer_has_socket(uint64_t inode, int *last);

#endif
