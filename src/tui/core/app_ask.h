/* SPDX-License-Identifier: Apache-2.0 */
/*
 * app_ask: a key that acts on the job asks first: yes or no, in the message line. Once for each kind
 * in a session: who has agreed is not asked again.
 */
#ifndef TUI_CORE_APP_ASK_H
#define TUI_CORE_APP_ASK_H

#include <stdbool.h>

#include "tui/core/app.h"

/* The question before an action; NULL: it is done without one. */
const char *app_ask_question(enum action action);

/* Does the action have to wait for an answer? Then the question is open (app->ask.action). Not where
 * it ends what was begun, or where no agent could do it. */
bool app_ask_first(struct app *a, enum action action);

/* The key that answers the open question; true: the action is to be done now. */
bool app_ask_answer(struct app *a, uint32_t key, enum action *action);

/* Another target is shown: what was asked about the last one is not to be done to it. */
void app_ask_forget(struct app *a);

#endif
