/* SPDX-License-Identifier: Apache-2.0 */
/* runner_repl: asks the agent what the Repl screen wants to know, or have done; its looks are of runner_magic.h. On the loop's thread. */
#ifndef TUI_RUNNER_REPL_H
#define TUI_RUNNER_REPL_H

#include "client/session.h"
#include "tui/app.h"

/* Do what the app wishes for. `s` may be NULL. */
void runner_repl_apply(struct app *app, struct session *s);

/* The session is left for another target: what runs there is ended. */
void runner_repl_leave(struct app *app, struct session *s);

#endif
