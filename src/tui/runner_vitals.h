/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runner_vitals: what the app wants to know beside snapshots and samples: the kernel's word on the process, once a second, and the
 * agent's on itself, more seldom. On the loop's thread: a few small files.
 */
#ifndef TUI_RUNNER_VITALS_H
#define TUI_RUNNER_VITALS_H

#include "client/session.h"
#include "client/vitals.h"
#include "tui/app.h"

#define RUNNER_VITALS_S 1.0 /* between two looks */

/* Look, and ask, if the app wants it and it is time. `s` may be NULL. */
void runner_vitals_look(struct vitals_reader *r, struct app *a, struct session *s);

#endif
