/* SPDX-License-Identifier: Apache-2.0 */
/* byte_pipe: carries bytes between two ends, both ways, until one of them is over. */
#ifndef CLIENT_HOSTS_BYTE_PIPE_H
#define CLIENT_HOSTS_BYTE_PIPE_H

/* An end: what is read from `in` goes to the other's `out`; they may be the same descriptor. */
struct byte_end {
    int in, out;
};

/* Carry until one end closes, or cannot be written. What it had sent has arrived at the other then. The
 * descriptors stay open, and do not block from here on. What can be read from `noise` (-1: nothing) is
 * dropped. Not by two threads at a time. */
void byte_pipe_run(struct byte_end a, struct byte_end b, int noise);

#endif
