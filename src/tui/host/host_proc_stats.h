/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_proc_stats: what the app wants to know beside snapshots and samples: the kernel's word on the process, once a second, and the
 * agent's on itself, more seldom. On the loop's thread: a few small files.
 */
#ifndef TUI_HOST_HOST_PROC_STATS_H
#define TUI_HOST_HOST_PROC_STATS_H

#include "client/session/session.h"
#include "client/target/proc_stats.h"
#include "tui/core/app.h"

#define HOST_PROC_STATS_S 1.0 /* between two looks */

/* Look, and ask, if the app wants it and it is time. `s` may be NULL. */
void host_proc_stats_poll(struct proc_stats_reader *r, struct app *a, struct session *s);

#endif
