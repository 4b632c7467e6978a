/* SPDX-License-Identifier: Apache-2.0 */
/*
 * app_query: the queries of the SQL screen and their answers: the part of the app between that
 * screen and the querier.
 *
 * The screen asks; the host (or a test) runs the query and gives the answer. One thread.
 */
#ifndef TUI_CORE_APP_QUERY_H
#define TUI_CORE_APP_QUERY_H

#include <stdbool.h>

#include "tui/core/app.h"

void app_query_init(struct app_query *q);
void app_query_fini(struct app_query *q);

/* Another target is shown: forget what is known, except the history. */
void app_query_forget(struct app_query *q);

/* Request the list of tables, unless something is running. */
void app_query_tables(struct app *a);

/* Run a query; it goes into the history unless `again`. False, with a message: something is
 * running. */
bool app_ask(struct app *a, const char *text, bool again);

/* Export a result; *x is moved out. False, with a message: something is running. */
bool app_write(struct app *a, struct querier_export *x);

void app_cancel(struct app *a);

/* It is done, or could not begin; moved out of *answer. */
void app_take_answer(struct app *a, struct querier_answer *answer);

/* The tables; the built-in ones while nothing else is known. NULL: out of memory. */
const struct catalog *app_catalog(struct app *a);

/* Does the display change with time alone? */
bool app_query_needs_tick(const struct app *a);

#endif
