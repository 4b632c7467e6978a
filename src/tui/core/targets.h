/* SPDX-License-Identifier: Apache-2.0 */
/*
 * targets: several targets in one app. The app's data are those of the one that is shown. The
 * hidden ones keep theirs, fed by sessions that send little, so that switching to one shows it
 * immediately.
 *
 * Part of the app; unused when there is only one. One thread.
 */
#ifndef TUI_CORE_TARGETS_H
#define TUI_CORE_TARGETS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "tui/core/app.h"

void targets_fini(struct app *a);

/* Add one; the first one is shown. Its number, or -1: there are TARGETS_MAX. */
int targets_add(struct app *a, pid_t pid, const char *name);

/* How many targets there are, at least 1; and what is known of each. */
int targets_count(const struct app *a);
const struct data *targets_data(const struct app *a, int i);
pid_t targets_pid(const struct app *a, int i);
const char *targets_name(const struct app *a, int i);

/* The one with that pid; -1: none. */
int targets_find(const struct app *a, pid_t pid);

/* The one that a text names: its number, from 1, or its pid. -1: none. */
int targets_named(const struct app *a, const char *text);

/* Show another one: its data become the app's. */
void targets_show(struct app *a, int i);

/* Data of a hidden one; moved out of *t, *s. */
void targets_take_state(struct app *a, int i, enum session_state state, const struct err *why,
                        double retry_in_s);
void targets_take_target(struct app *a, int i, struct model_target *t);
void targets_take_snapshot(struct app *a, int i, struct model_snapshot *s);

#endif
