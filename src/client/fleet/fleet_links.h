/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fleet_links: fills a fleet from the relays on the hosts of a job. Today that is this host: its relay is
 * a child of this process.
 *
 * For a screen: poll the descriptor, call fleet_links_advance when it is readable, draw fleet_links_get.
 * It never waits. For a verb: fleet_links_fill. A relay is a stranger: whatever it sends is bounded and
 * checked, and one that is silent, dead or not valid costs its own ranks their news; it is started again
 * after a while. One thread.
 */
#ifndef CLIENT_FLEET_FLEET_LINKS_H
#define CLIENT_FLEET_FLEET_LINKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "client/fleet/fleet.h"

/* How the relay of this host is run, in a child: relay_serve of src/relay, which nothing below the
 * programs may know; tests have their own. Returns when `in` ends. */
typedef int (*fleet_serve_fn)(int in, int out);

struct fleet_links;

/* Watch the job that `target` names, as jobs_here_choose understands it ("" the only one). What stands
 * behind a '/' is left to the caller. NULL with the error: no relay could be started. Whether there is
 * such a job shows later. The relay ends with the thread that opened it, if not before. */
struct fleet_links *fleet_links_open(const char *target, fleet_serve_fn serve, struct err *e);
void fleet_links_close(struct fleet_links *l);

/* Readable when there is something to do. */
int fleet_links_fd(const struct fleet_links *l);

/* Do it. True: the fleet has changed; what it was made of is gone. */
bool fleet_links_advance(struct fleet_links *l);

/* The fleet, until the next fleet_links_advance. */
const struct fleet *fleet_links_get(const struct fleet_links *l);

/* Why there is no fleet (yet): ERR_ATTACH with the reason if there is no such job; ERR_OK: it is being
 * asked for. */
const struct err *fleet_links_error(const struct fleet_links *l);

/* Wait until `rounds` rounds were read, which are a second apart, for `limit_s` at most. `stop` (NULL:
 * none) ends it early when it returns true. 0, also if there was time for only some of them; -1 with the
 * error: there is no such job, or nothing is known of it by then. */
int fleet_links_fill(struct fleet_links *l, unsigned rounds, double limit_s, bool (*stop)(void *arg),
                     void *arg, struct err *e);

#endif
