/* SPDX-License-Identifier: Apache-2.0 */
/*
 * app_arm: arms something in the job by a key, and disarms it; the outcome is a message and stays
 * on the screens.
 *
 * And watches the value of a local variable of the job: adds it to probing.torch_profiling or
 * removes it; whether modules are traced stays as it is. Pure but for the app; one thread.
 */
#ifndef TUI_CORE_APP_ARM_H
#define TUI_CORE_APP_ARM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/model.h"
#include "tui/keys/action.h"
#include "tui/model/arms.h"
#include "wire/wire.h"

struct app;

/* An action that arms or disarms something; false: it does neither. */
bool app_arm_act(struct app *a, enum action action);

/* The agent's status: what is armed has ended, or continues. */
void app_arm_take(struct app *a, const struct model_status *s);

/* The agent's answer to `arm` was an error. True if it was to something that the user had armed. */
bool app_arm_refused(struct app *a, const struct err *why);

/* Should the agent be asked for its status now, because something is armed? */
bool app_arm_wants_status(const struct app *a);

/* What a screen says about a kind: for whom it is armed, or the outcome of the last one from here;
 * "": nothing. And about all kinds, in one line. */
void app_arm_put(const struct app *a, enum arm_kind kind, char *buf, size_t cap);
void app_arm_put_all(const struct app *a, char *buf, size_t cap);

/* ---- a variable that is watched ---- */

/* Toggle watching a local variable of a function. The agent is asked for its settings first. */
void app_arm_watch(struct app *a, const char *name, const char *func);

/* The agent's status: changes the setting if a variable is to be watched. */
void app_arm_take_watch(struct app *a, const struct model_status *s);

/* Another target is shown: the variable is one of the last one. */
void app_arm_forget_watch(struct app *a);

/* The value of probing.torch_profiling with an expression added, or removed if it is there; `*on`:
 * it was added. 0, or -1 with the error. */
int app_arm_turn_watch(const char *before, const char *expr, char *value, size_t cap, bool *on,
                       struct err *e);

#endif
