/* SPDX-License-Identifier: Apache-2.0 */
/* rank_states: readings of the ranks of this host for a verdict, as rows of report.h. */
#ifndef RELAY_RANK_STATES_H
#define RELAY_RANK_STATES_H

#include <stdbool.h>

#include "base/err.h"
#include "client/jobs/jobs_here.h"

struct fleet_watch;

/* Takes a row. */
typedef void (*rank_states_fn)(void *arg, const void *row);

/* Read them now, and give a struct report_state for each; `counters`: their agents are asked, too. `*w` is what
 * reads them: NULL at first, and for rank_states_end. 0, or -1 with the error. */
int rank_states_read(struct fleet_watch **w, const struct jobs_here *h, const struct job *job, bool counters,
                     rank_states_fn add, void *arg, struct err *e);

/* A struct report_group for each group of that reading, after the first `from`. */
void rank_states_groups(const struct fleet_watch *w, size_t from, rank_states_fn add, void *arg);

/* A struct report_ras for each rank of which NCCL's RAS service knows something by now; after a reading. */
void rank_states_ras(struct fleet_watch *w, rank_states_fn add, void *arg);

/* May a rank be stuck, by the last reading (fleet_verdict_is_suspect)? One that has ended is not: whoever waits for it
 * is. */
bool rank_states_is_suspect(const struct fleet_watch *w);

/* Has one ended that is watched? */
bool rank_states_has_gone(const struct fleet_watch *w);

/* The ranks were listed again: end it if there are others now. While there are the same, or fewer, it goes on, and has
 * a reading of each that has ended, with the reason. */
void rank_states_keep(struct fleet_watch **w, const struct job *job);

void rank_states_end(struct fleet_watch **w);

#endif
