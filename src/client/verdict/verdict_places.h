/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verdict_places: what a stack is about: it saves, it waits for requests, it is in a backward pass.
 *
 * Functions that are known are rows of one table. What follows of them for each stack that was
 * sampled lately is in a temporary table of the database, so that rules can join it:
 *
 *   temp.verdict_stacks(stack_id, doing, phase, wait, own_*, at_*, leaf_*)
 *     doing   SAVING, LOADING, EVALUATING, COMPILING, STARTING, LOGGING: by its outermost function
 *             of that kind; NULL none
 *     phase   loader, forward, backward, optimizer, comm: part of a training step; NULL none
 *     wait    request, process, ranks, pipe, thread: what its innermost functions wait for; NULL none
 *     own_*   func, file, lineno of the innermost frame of the job's own code
 *     at_*    of the job's own code where it does what `doing` says, else of own, else of leaf
 *     leaf_*  of the innermost frame
 *
 * And for each target what is known of its newest steps, in temp.verdict_steps(pid, last, age,
 * longest, usual, steps): times in seconds, the number of steps.
 *
 * A stack keeps its number while an agent lives, so each is looked at once. Belongs to the thread
 * that has the database.
 */
#ifndef CLIENT_VERDICT_VERDICT_PLACES_H
#define CLIENT_VERDICT_VERDICT_PLACES_H

#include <stdint.h>

#include "base/err.h"
#include "client/sql/database.h"

/* Make the tables, unless they exist. 0, or -1 with the error. */
int verdict_places_open(struct database *d, struct err *e);

/* Add the stacks of a target that were sampled in the last seconds; its steps are those of the
 * last `window_s`. 0, or -1 with the error. */
int verdict_places_take(struct database *d, int64_t pid, double window_s, struct err *e);

#endif
