/* SPDX-License-Identifier: Apache-2.0 */
/*
 * app_arm: arming something in the job by a key, and disarming it; what comes of it is a message, and stays on the screens. Pure but for
 * the app; one thread.
 */
#ifndef TUI_CORE_APP_ARM_H
#define TUI_CORE_APP_ARM_H

#include <stdbool.h>

#include "base/err.h"
#include "base/model.h"
#include "tui/keys/action.h"
#include "tui/model/arms.h"
#include "wire/wire.h"

struct app;

/* An action that arms something, or disarms it. False when it is none. */
bool app_arm_act(struct app *a, enum action action);

/* The agent about itself: what is armed is over, or goes on. */
void app_arm_take(struct app *a, const struct model_status *s);

/* The agent's answer to `arm` was an error. */
void app_arm_refused(struct app *a, const struct err *why);

/* Should the agent be asked about itself now, for what is armed? */
bool app_arm_wants_status(const struct app *a);

/* What is to be said of a kind on a screen: for whom it is armed, or what came of the last one from here; "" nothing. Of all, in a line. */
void app_arm_put(const struct app *a, enum arm_kind kind, char *buf, size_t cap);
void app_arm_put_all(const struct app *a, char *buf, size_t cap);

#endif
