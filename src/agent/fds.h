/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fds: keeps our descriptors out of the job.
 *
 * The agent's first thread gives itself a separate table of descriptors (close_range(2) with
 * CLOSE_RANGE_UNSHARE, Linux 5.9), which is shared with the threads it starts. So the job never
 * sees, inherits, runs out of or closes a descriptor of ours. Nothing is copied into the new
 * table, so we neither keep open nor flush a file of the job. Where the kernel cannot do that,
 * the table is the job's: all descriptors of ours are close-on-exec, and those registered here
 * are closed in the child of a fork (one descriptor on /dev/urandom, private to the WebSocket
 * library, stays open there). A thread of the job must never use a descriptor of ours: there its
 * number refers to another file.
 */
#ifndef AGENT_FDS_H
#define AGENT_FDS_H

#include <stdbool.h>

/* Called once by the agent's first thread. True if the table is our own; numbers 0 to 2 are then
 * /dev/null. */
bool fds_make_private(void);

/* True if the table is our own. */
bool fds_is_private(void);

/* Register a descriptor as ours, or unregister it. No effect if the table is our own. */
void fds_note(int fd);
void fds_forget(int fd);

/* Find the number of an eventfd that a library has opened for us: the one whose counter `bump`
 * raises by one each time. -1 if the table is our own (then it ends with our threads), or if it
 * cannot be determined with certainty. */
int fds_find_eventfd(void (*bump)(void *arg), void *arg);

/* True if the table is our own and has no eventfd. False if that cannot be determined. */
bool fds_lack_eventfd(void);

/* In the child of a fork: close registered descriptors. Async-signal-safe. */
void fds_close_in_child(void);

#endif
