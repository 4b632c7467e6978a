/* SPDX-License-Identifier: Apache-2.0 */
/*
 * app_job: the job whose ranks are watched together, and its rank that is open as the target.
 *
 * The host watches it and gives the app a new struct job_shot each second. Ranks are watched from
 * outside: only one that is opened gets a session, and the agent. What is known of the job is read by
 * job_state.h. One thread.
 */
#ifndef TUI_CORE_APP_JOB_H
#define TUI_CORE_APP_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "tui/model/job_shot.h"
#include "tui/core/app.h"

/* Watch a job from here on; `target` as typed: "job:train.py". */
void app_job_watch(struct app *a, const char *target);

/* The ranks a second later, taken over; or why there are none. */
void app_job_take(struct app *a, struct job_shot *f);
void app_job_refused(struct app *a, const struct err *why);

/* The view is no longer frozen: frozen again, it shows the ranks of that time. The caller updates the
 * screens. */
void app_job_unfreeze(struct app *a);

/* The process is a rank of a job, or its launcher (rank -1), and the job is not watched yet: it is offered. */
void app_job_take_offer(struct app *a, pid_t pid, const char *job, int32_t rank, int32_t world);

/* Read a moment of the past out of the database, in seconds since the epoch; NAN: the newest from now on. */
void app_job_read(struct app *a, double at_s);

/* Queries read the tables that a database has of the job at that time; NAN: as they are now. */
void app_job_set_tables(struct app *a, double at_s);

/* Open a rank in all screens, and show one of them if `shows`. False, with a message: it cannot be
 * opened. */
bool app_job_open(struct app *a, int32_t rank, bool shows);

/* The attach to it has ended. */
void app_job_attached(struct app *a, const struct err *why);

/* An action about the job: the previous or next rank, its screens where none is watched yet. False:
 * another one. */
bool app_job_act(struct app *a, enum action action);

#endif
