/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fds: keeps our descriptors out of the job.
 *
 * The agent's first thread gives itself a table of descriptors of its own (close_range(2) with CLOSE_RANGE_UNSHARE, Linux
 * 5.9), which the threads it starts share. So the job never sees, inherits, runs out of or closes a descriptor of ours.
 * Nothing is copied into the new table, so no file of the job is held open or flushed by us. Where the kernel cannot do
 * that, the table is the job's: all descriptors of ours are close-on-exec, and those noted here are closed in the child of
 * a fork (what stays open there is one on /dev/urandom that the WebSocket library keeps to itself). A thread of the job must never use a descriptor of ours: there its number means something else.
 */
#ifndef AGENT_FDS_H
#define AGENT_FDS_H

#include <stdbool.h>

/* Called once by the agent's first thread. True when the table is our own; numbers 0 to 2 are then /dev/null. */
bool fds_make_private(void);

/* Note a descriptor as ours, or forget it. Nothing to do where the table is our own. */
void fds_note(int fd);
void fds_forget(int fd);

/* The number of an eventfd that we have but were not told: the one whose counter `bump` raises by one each time. -1 where the
 * table is our own (it goes with our threads), or when it cannot be told for sure. */
int fds_find_eventfd(void (*bump)(void *arg), void *arg);

/* Is there no eventfd in the table, which is our own? False when that cannot be told. */
bool fds_lack_eventfd(void);

/* In the child of a fork: close what is noted. Async-signal-safe. */
void fds_close_in_child(void);

#endif
