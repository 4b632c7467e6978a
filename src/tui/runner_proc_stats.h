/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runner_proc_stats: what the app wants to know beside snapshots and samples: the kernel's word on the process, once a second, and the
 * agent's on itself, more seldom. On the loop's thread: a few small files.
 */
#ifndef TUI_RUNNER_PROC_STATS_H
#define TUI_RUNNER_PROC_STATS_H

#include "client/session.h"
#include "client/proc_stats.h"
#include "tui/app.h"

#define RUNNER_PROC_STATS_S 1.0 /* between two looks */

/* Look, and ask, if the app wants it and it is time. `s` may be NULL. */
void runner_proc_stats_poll(struct proc_stats_reader *r, struct app *a, struct session *s);

#endif
