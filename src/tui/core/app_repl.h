/* SPDX-License-Identifier: Apache-2.0 */
/*
 * app_repl: code for the job and its results: the part of the app between the Repl screen and
 * the session; with the screen a face of client/repl/repl_engine.h.
 *
 * The screen asks; the host (or a test) asks the agent and hands over the answer. Lines that begin
 * with % (client/repl/magic.h) are run here, too: their code by the session that runs all code,
 * their queries by a querier, which needs no agent. One thing at a time. One thread.
 */
#ifndef TUI_CORE_APP_REPL_H
#define TUI_CORE_APP_REPL_H

#include <stdbool.h>

#include "tui/core/app.h"
#include "tui/view/pager.h"
#include "tui/workers/querier.h"

#define APP_REPL_TIMEOUT_S 60.0
/* bytes of typed code and answers; then the older half is dropped */
#define APP_REPL_LOG ((size_t)512 * 1024)
#define APP_REPL_QUERY_TEXT ((size_t)256 * 1024) /* of a query's answer */

void app_repl_init(struct app_repl *r);
void app_repl_fini(struct app_repl *r);

/* Another target is shown: code running in the last one is not ours now. The log stays. */
void app_repl_forget(struct app *a);

/* Why no code can run now, in a line; NULL: it can. */
const char *app_repl_why_not(const struct app *a);

/* Why nothing can be asked now, in a line; NULL: it can. */
const char *app_repl_why_busy(const struct app *a);

/* Ask; false, with a message: not possible. RUN adds the code to the log and the history;
 * app_repl_begin does not. */
bool app_repl_ask(struct app *a, enum repl_ask what, const char *code, size_t len);
bool app_repl_begin(struct app *a, enum repl_ask what, const char *code, size_t len);

/* Add what was typed to the log and the history. */
void app_repl_typed(struct app *a, const char *text, size_t len);

/* Something is under way from here: code, a query, or a request of app_debug.h. */
bool app_repl_runs(const struct app *a);

/* Add lines to the log. */
void app_repl_say(struct app *a, enum pager_mark mark, const char *text);

/* Interrupt what is running. */
void app_repl_interrupt(struct app *a);

/* Run a line that begins with %, and add it to log and history; rows of tables are cut to `cols`.
 * False, with a message, if nothing can be run now. */
bool app_repl_run_magic(struct app *a, const char *line, int cols);

/* The answer, borrowed; a refusal, or a question that cannot be asked; the connection broke. */
void app_repl_take(struct app *a, const struct wire_evaluated *what);
void app_repl_refused(struct app *a, const struct err *why);
void app_repl_broke(struct app *a);

/* The result of a query, which is moved out of *answer. */
void app_repl_take_query(struct app *a, struct querier_answer *answer);

/* The question has ended; whatever there is to report has been reported. */
void app_repl_end(struct app *a, enum app_repl_end end);

/* Does the display change with time alone? */
bool app_repl_needs_tick(const struct app *a);

#endif
