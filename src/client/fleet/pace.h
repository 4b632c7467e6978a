/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pace: the newest steps and collectives of all ranks, and what follows from them: how much of a step
 * is each rank's own, how late it comes to collectives, which rank the others wait for (straggler.h).
 *
 * Relays send rows of the agents' tables; what they send is bounded, and not trusted. One thread.
 */
#ifndef CLIENT_FLEET_PACE_H
#define CLIENT_FLEET_PACE_H

#include "client/fleet/fleet.h"
#include "client/fleet/fleet_verdict.h"
#include "client/fleet/report.h"

struct pace;

struct pace *pace_new(void); /* NULL without memory */

/* Rows come so much later than what else is known of the ranks (0). */
void pace_set_delay(struct pace *p, double delay_s);

void pace_free(struct pace *p);

/* Take a row of the host with that number in the fleet. One that is known is passed over. True: its clock was
 * set back, and by how much it is ahead is no longer known. */
bool pace_add(struct pace *p, uint32_t node, const struct report_time *row);

/* Forget the steps and collectives of a host whose clock was set: they are of another clock than those that come. */
void pace_forget(struct pace *p, uint32_t node);

/* Put what is known into a fleet that was just made, and judge before if that is due. */
void pace_put(struct pace *p, struct fleet *f);

/* Put what was judged in front of verdicts that are less bad. 0, or -1 without memory. */
int pace_put_verdicts(const struct fleet *f, struct fleet_verdicts *out);

#endif
