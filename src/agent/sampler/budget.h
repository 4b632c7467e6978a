/* SPDX-License-Identifier: Apache-2.0 */
/*
 * budget: how much of a core sampling may use, and what is left of it for ticks.
 *
 * Pure functions; the mailbox is locked by the caller. Used by the sampler's thread.
 */
#ifndef AGENT_SAMPLER_BUDGET_H
#define AGENT_SAMPLER_BUDGET_H

#include "agent/server/mailbox.h"
#include "base/config.h"

/* Percent of a core: the smallest wish counts; none is granted above what the job's environment says. */
double budget_choose(const struct config *config, const struct mailbox *m);

/* What `used_pct` leaves of it; a share is always left, so that samples go on beside snapshots. */
double budget_left(double budget_pct, double used_pct);

#endif
