/* SPDX-License-Identifier: Apache-2.0 */
/*
 * app_magic: lines of the Repl screen that begin with %, see client/sql/magic.h: code by the session that runs all code, looks by a querier.
 *
 * A look needs no agent, only a job that can be looked at. One thing at a time, with what app_repl.h asks for. One thread.
 */
#ifndef TUI_CORE_APP_MAGIC_H
#define TUI_CORE_APP_MAGIC_H

#include "tui/workers/querier.h"

#define APP_MAGIC_TEXT ((size_t)256 * 1024) /* of a look's answer, at most */

struct app;

/* Do what a line says, and put it into log and history; rows of tables are cut to `cols`. False, with a line, when nothing can be done now. */
bool app_magic_run(struct app *a, const char *line, int cols);

/* What a look has found; moved out of *answer. */
void app_magic_take(struct app *a, struct querier_answer *answer);

#endif
