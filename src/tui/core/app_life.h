/* SPDX-License-Identifier: Apache-2.0 */
/*
 * app_life: begins and ends an app, and attaches it to a process that was chosen, or to several, one
 * after the other, or to a job.
 */
#ifndef TUI_CORE_APP_LIFE_H
#define TUI_CORE_APP_LIFE_H

#include "tui/core/app.h"

/* NULL: out of memory. */
struct app *app_new(const struct app_config *config);
void app_free(struct app *a);

/* Exit status: 4 if the target was lost, else 0. */
int app_exit_status(const struct app *a);

/* ---- what was chosen ---- */

/* A job of config.job_server: watch it. */
void app_choose_job(struct app *a, const char *name);

/* The attach has ended; `why` is NULL if it succeeded. */
void app_attach_done(struct app *a, const struct err *why);

/* Takes the next one of several that were chosen together; 0: none is left. */
pid_t app_attach_next(struct app *a);

#endif
