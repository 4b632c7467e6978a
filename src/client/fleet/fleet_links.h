/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fleet_links: fills a fleet from the relays on the hosts of a job, one on each, which ssh or the like
 * starts (relay_via.h); without hosts from this one, whose relay is a child of this process.
 *
 * For a screen: poll the descriptor, call fleet_links_advance when it is readable, draw fleet_links_get.
 * It never waits. For a verb: fleet_links_fill. A relay is a stranger: whatever it sends is bounded and
 * checked, and one that is silent, dead or not valid costs its own ranks their news; it is started again
 * after a while. A rank is the host's that showed its process first: another that claims it, too, is noted.
 * One thread.
 */
#ifndef CLIENT_FLEET_FLEET_LINKS_H
#define CLIENT_FLEET_FLEET_LINKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "client/fleet/fleet.h"
#include "client/fleet/fleet_reach.h"

struct fleet_links;

/* Watch the job that `target` names, as jobs_here_choose understands it on its hosts ("" the only one
 * there). What stands behind a '/' is left to the caller. `reach` is not kept, apart from the script. NULL
 * with the error: no relay could be started. Whether there is such a job shows later. The relays end with
 * the thread that opened them, if not before. */
struct fleet_links *fleet_links_open(const char *target, const struct fleet_reach *reach, struct err *e);

/* The same, and each host works with its ranks once instead of reading them: REPORT_ATTACH, REPORT_DETACH. It is
 * done when fleet_links_fill returns, with the rows below. */
struct fleet_links *fleet_links_open_work(const char *target, const struct fleet_reach *reach,
                                          const char *work, struct err *e);

/* The ranks that host `i` has worked on, and their number; NULL: it has not, or there are no more hosts (`host`
 * is NULL then). */
const struct report_task *fleet_links_tasks(const struct fleet_links *l, size_t i, const char **host,
                                            size_t *n);

/* The same with REPORT_STATES, which may be read again: what host `i` has answered since it was asked last; nothing
 * (n 0) if it has not. False: there are no more hosts. Valid until the links advance. */
struct fleet_states {
    const struct report_state *states;
    size_t n;
    const struct report_group *groups;
    size_t n_groups;
    const struct report_job *job; /* NULL without an answer */
    double seen_s;                /* when it came, on the monotonic clock */
};
bool fleet_links_states(const struct fleet_links *l, size_t i, struct fleet_states *out);
void fleet_links_ask_states(struct fleet_links *l, bool counters);

/* Ends the relays, for which it waits a second at most. */
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

/* How many hosts have no probing. */
size_t fleet_links_count_lacking(const struct fleet_links *l);

/* Why host `i` has not answered as it should; "" nothing is wrong, or it is not known. */
const char *fleet_links_note(const struct fleet_links *l, size_t i);

/* Append which hosts gave no news, and why, each in a clause; nothing: all did. */
void fleet_links_put_silent(const struct fleet_links *l, struct strbuf *out);

/* Wait until `rounds` rounds were read, which are a second apart, for `limit_s` at most. A round is read
 * once every host has answered that answers at all. `stop` (NULL: none) ends it early when it returns true.
 * 0, also if there was time for only some of them; -1 with the error: there is no such job, or nothing is
 * known of it by then. */
int fleet_links_fill(struct fleet_links *l, unsigned rounds, double limit_s, bool (*stop)(void *arg),
                     void *arg, struct err *e);

#endif
