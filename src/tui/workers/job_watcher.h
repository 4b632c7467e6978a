/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_watcher: follows all ranks of a job on a thread of its own, which merges what the relays of its
 * hosts report. The loop gets a finished copy about once a second, and waits for nothing. Of a target with a
 * moment of the past (fleet_open_at) it gets that, and once more where something was wrong then.
 */
#ifndef TUI_WORKERS_JOB_WATCHER_H
#define TUI_WORKERS_JOB_WATCHER_H

#include "base/err.h"
#include "client/fleet/fleet_source.h"
#include "tui/model/job_shot.h"

struct job_watcher;

/* Watch the job that `target` names; `reach` outlives the watcher. NULL with the error. */
struct job_watcher *job_watcher_new(const char *target, const struct fleet_reach *reach, struct err *e);

/* Watch that target from now on; what was read of the one before is dropped. */
void job_watcher_watch(struct job_watcher *w, const char *target);

/* The watcher ends; a thread that is stuck is abandoned. */
void job_watcher_free(struct job_watcher *w);

/* Readable when there is news. */
int job_watcher_fd(const struct job_watcher *w);

/* Take it. 1: `*out` is the caller's; 0: there is none; -1 with the error: there is no such job (any
 * longer). */
int job_watcher_take(struct job_watcher *w, struct job_shot **out, struct err *e);

#endif
