/* SPDX-License-Identifier: Apache-2.0 */
/* job_state: what the app knows of the job whose ranks are watched; app_job.h changes it. */
#ifndef TUI_CORE_JOB_STATE_H
#define TUI_CORE_JOB_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "tui/model/job_shot.h"
#include "tui/core/app.h"

void job_state_init(struct app_job *j);
void job_state_fini(struct app_job *j);

/* Is one watched? Or can it be, because the process that is shown is a rank of it, or its launcher? */
bool job_state_is_watched(const struct app *a);
bool job_state_is_offered(const struct app *a);

/* What the process that is shown is to a job; NULL: nothing is known. */
const struct app_job_offer *job_state_offer(const struct app *a);

/* The process that is shown is the launcher of a job: it starts the ranks, and is none. */
bool job_state_is_launcher(const struct app *a);

/* One is watched, and none of its ranks is open: there is no process to show. */
bool job_state_is_alone(const struct app *a);

/* Can ranks of it be opened: there is a way to them, and they are shown as they are now? */
bool job_state_can_open(const struct app *a);

/* Then a screen shows the job itself, as far as it can: with the job's header. */
bool job_state_is_shown_by(const struct app *a, const struct screen_def *def);

/* The rank whose rows such a screen shows: the selected one, or while none is the worst; NULL: none is known. */
const struct job_shot_rank *job_state_selected(const struct app *a);

/* What the screens show; NULL: nothing is known yet. While the view is frozen that is not the
 * newest. */
const struct job_shot *job_state_shown(const struct app *a);

/* The process that is shown is a rank: which, and of how many (0: unknown). -1: it is none. */
int32_t job_state_rank(const struct app *a, int32_t *world);

#endif
