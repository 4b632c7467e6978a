/* SPDX-License-Identifier: Apache-2.0 */
/*
 * app_take: what arrives from the host: time, data of the target, lists that were requested; and
 * what the app wants from it now: which data, how often, and whether the display changes with time
 * alone.
 */
#ifndef TUI_CORE_APP_TAKE_H
#define TUI_CORE_APP_TAKE_H

#include "tui/core/app.h"

/* The current time; call it before anything else of a round. */
void app_set_time(struct app *a, double now_s, double epoch_s);

/* Time has passed: do what is due. */
void app_tick(struct app *a);
void app_take_target(struct app *a, struct model_target *t);     /* moved out of *t */
void app_take_snapshot(struct app *a, struct model_snapshot *s); /* moved out of *s */

/* False: subscribe to the stream again, because its definitions were lost. */
bool app_take_samples(struct app *a, const struct model_sample_batch *b);
void app_set_state(struct app *a, enum session_state state, const struct err *why, double retry_in_s);

/* The agent's status, borrowed; what the kernel says about the target. */
void app_take_status(struct app *a, const struct model_status *s);
void app_take_proc_stats(struct app *a, const struct proc_stats *v);

/* The target's children; moved out of `*l`. */
void app_take_children(struct app *a, struct children_list *l);

/* Processes for the picker; takes ownership of the list. `hidden`: why some are missing; "": none
 * are. */
void app_take_processes(struct app *a, struct target_process *list, size_t n, const char *hidden);

/* The jobs of a database, taken over; or why they could not be read: then those before stay. */
void app_take_jobs(struct app *a, struct engine_jobs *jobs, const struct err *why);

/* Names of the available themes, copied. */
void app_take_themes(struct app *a, char (*names)[THEME_MAX_NAME], size_t n);

/* The answer to a feed, also if it could not begin; moved out of *answer. */
void app_take_feed(struct app *a, enum app_feed_id id, struct querier_answer *answer);

/* The target is another process from here on: forget what is known of the last one. */
void app_set_pid(struct app *a, pid_t pid);

/* ---- what is wanted ---- */

/* Time between two snapshots: longer while the view is frozen, when only the header shows them. */
double app_delay_s(const struct app *a);

/* Is a snapshot overdue? */
bool app_is_late(const struct app *a);

/* Should the stream of samples run now? */
bool app_wants_samples(const struct app *a);

/* Are these needed now? The agent is asked for its status once in any case: it says how it was
 * loaded. */
bool app_wants_proc_stats(const struct app *a);
bool app_wants_status(const struct app *a);

/* Does an open screen show the target's children, even below an overlay? */
bool app_shows_children(const struct app *a);

/* Are forward and backward of every step to be known, because their screen is shown? */
bool app_wants_phases(const struct app *a);

/* Does the display change with time alone (an age, a countdown)? */
bool app_needs_tick(const struct app *a);

#endif
