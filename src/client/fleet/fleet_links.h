/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fleet_links: fills a fleet from the relays on the hosts of a job, one on each, which ssh or the like
 * starts (relay_via.h); without hosts from this one, whose relay is a child of this process. It is a kind of
 * fleet_source.h.
 *
 * A relay is a stranger: whatever it sends is bounded and checked, and one that is silent, dead or not valid
 * costs its own ranks their news; it is started again after a while. The relays end with the thread that
 * opened them, if not before.
 */
#ifndef CLIENT_FLEET_FLEET_LINKS_H
#define CLIENT_FLEET_FLEET_LINKS_H

#include <stddef.h>

#include "client/fleet/fleet_source.h"

extern const struct fleet_source_kind fleet_links_kind;

/* The ranks that host `i` has worked on (REPORT_ATTACH, REPORT_DETACH), and their number; NULL: it has not, or
 * `i` is not below their number (`host` is NULL then), or the source is of another kind. */
const struct report_task *fleet_links_tasks(const struct fleet_source *s, size_t i, const char **host,
                                            size_t *n);

/* How many hosts have no probing. */
size_t fleet_links_count_lacking(const struct fleet_source *s);

/* Why host `i` has not answered as it should; "" nothing is wrong, or it is not known. */
const char *fleet_links_note(const struct fleet_source *s, size_t i);

#endif
