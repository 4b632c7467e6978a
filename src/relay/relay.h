/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relay: what runs on each host of a job, for as long as a client is interested: it finds the ranks there,
 * reads each once a second from outside, and answers requests.
 *
 * Requests and answers are messages of wire/wire.h in the framing of wire/pipe.h: `hello`, and `rows` of
 * the tables in client/fleet/report.h; any other is refused. Two of them change the job, when a client asks
 * for it (attach, detach), and one carries the bytes of a session with one agent. It listens nowhere, and ends with its input.
 * Ranks are only read while a request waits for them, so a client that is slow, or gone, costs nothing.
 * Rounds begin in the same milliseconds of a second on all hosts of a job: what they show is one moment.
 */
#ifndef RELAY_RELAY_H
#define RELAY_RELAY_H

/* Serve requests from `in` until it ends. 0, or -1: what came in was not valid, or `out` is closed. */
int relay_serve(int in, int out);

/* For tests: its clock, and all times of which it reports, are ahead by so many seconds. Before relay_serve. */
void relay_set_ahead(double seconds);

#endif
