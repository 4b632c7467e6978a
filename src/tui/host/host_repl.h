/* SPDX-License-Identifier: Apache-2.0 */
/* host_repl: asks the agent what the Repl screen wants to know, or have done; its looks are of host_magic.h. On the loop's thread. */
#ifndef TUI_HOST_HOST_REPL_H
#define TUI_HOST_HOST_REPL_H

#include "client/session/session.h"
#include "tui/core/app.h"

/* Do what the app wishes for. `s` may be NULL. */
void host_repl_apply(struct app *app, struct session *s);

/* The session is left for another target: what runs there is ended. */
void host_repl_leave(struct app *app, struct session *s);

#endif
