/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_judge: judges on a thread of its own which rank keeps a job from going on, as `probing cluster
 * verdict` does. Ranks are read for that only while they seem to stand still.
 */
#ifndef TUI_WORKERS_JOB_JUDGE_H
#define TUI_WORKERS_JOB_JUDGE_H

#include <stdbool.h>

#include "base/err.h"
#include "client/hosts/fleet_reach.h"
#include "tui/model/job_shot.h"

struct job_judge;

/* A judge of the job that `target` names; `reach` outlives it. NULL with the error. */
struct job_judge *job_judge_new(const char *target, const struct fleet_reach *reach, struct err *e);

/* It ends; a thread that is stuck is abandoned. */
void job_judge_free(struct job_judge *j);

/* Begin to judge if ranks have stood still for a while, or end that; and put the newest verdicts into the shot. */
void job_judge_put(struct job_judge *j, struct job_shot *s);

/* Whether ranks have stood still for so long that it is worth to judge: those that may wait for others, or most of all.
 */
bool job_judge_wants(const struct job_shot *s);

/* Put what was wrong at the moment of the past that `target` names into its shot; `stop`, with `arg`, is asked whether to
 * give up. 0, or -1: it is not known. */
int job_judge_at(const char *target, const struct fleet_reach *reach, struct job_shot *s,
                 bool (*stop)(void *arg), void *arg);

#endif
