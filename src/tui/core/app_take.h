/* SPDX-License-Identifier: Apache-2.0 */
/* app_take: what the host has for the app: time, data of the target, lists that were asked for. */
#ifndef TUI_CORE_APP_TAKE_H
#define TUI_CORE_APP_TAKE_H

#include "tui/core/app.h"

/* Tell the time, before anything else of a round. */
void app_set_time(struct app *a, double now_s, double epoch_s);

/* Time went by: what is due is done. */
void app_tick(struct app *a);
void app_take_target(struct app *a, struct model_target *t);     /* moved out of *t */
void app_take_snapshot(struct app *a, struct model_snapshot *s); /* moved out of *s */

/* False: the stream has to be subscribed to anew, for what it is defined by was lost. */
bool app_take_samples(struct app *a, const struct model_sample_batch *b);
void app_set_state(struct app *a, enum session_state state, const struct err *why, double retry_in_s);

/* The agent about itself, borrowed; and what the kernel says of the target. */
void app_take_status(struct app *a, const struct model_status *s);
void app_take_proc_stats(struct app *a, const struct proc_stats *v);

/* The target's children; moved out of `*l`. */
void app_take_children(struct app *a, struct children_list *l);

/* Processes for the picker; the list is owned by the app from here. `hidden`: why some are missing; "" none. */
void app_take_processes(struct app *a, struct target_process *list, size_t n, const char *hidden);

/* Names of the themes there are, copied. */
void app_take_themes(struct app *a, char (*names)[THEME_MAX_NAME], size_t n);

/* A feed is answered, or could not be begun; moved out of *answer. */
void app_take_feed(struct app *a, enum app_feed_id id, struct querier_answer *answer);

/* Another process is the target from here on: what was known is of the one before. */
void app_set_pid(struct app *a, pid_t pid);

#endif
