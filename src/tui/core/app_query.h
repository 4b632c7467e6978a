/* SPDX-License-Identifier: Apache-2.0 */
/*
 * app_query: what the SQL screen asks for and what came of it: the part of the app between that screen and the querier.
 *
 * The screen asks; the host (or a test) has it done and gives the answer. One thread.
 */
#ifndef TUI_CORE_APP_QUERY_H
#define TUI_CORE_APP_QUERY_H

#include <stdbool.h>

#include "tui/core/app.h"

void app_query_init(struct app_query *q);
void app_query_fini(struct app_query *q);

/* What is known is of another target; the history stays. */
void app_query_forget(struct app_query *q);

/* Ask what tables there are, unless something runs. */
void app_query_tables(struct app *a);

/* Run a text; it goes into the history unless `again`. False, with a message, when something runs. */
bool app_ask(struct app *a, const char *text, bool again);

/* Write a result; *x is moved out. False, with a message, when something runs. */
bool app_write(struct app *a, struct querier_export *x);

void app_cancel(struct app *a);

/* It could not be begun, or it is done; moved out of *answer. */
void app_take_answer(struct app *a, struct querier_answer *answer);

/* The tables; those that there always are while nothing else is known. NULL: out of memory. */
const struct catalog *app_catalog(struct app *a);

/* Does what is drawn change by time alone? */
bool app_query_needs_tick(const struct app *a);

#endif
