/* SPDX-License-Identifier: Apache-2.0 */
/* tui_sql: answers to queries made by hand, always the same, for tests of the SQL screen. */
#ifndef TESTS_TUI_SQL_H
#define TESTS_TUI_SQL_H

#include "tui/core/app.h"

/* A result of `n` rows: time, tid, thread, share, stack; with NULLs, wide characters, escape sequences, overlong text. */
struct result *sql_fixture_rows(size_t n);

/* The app on the SQL screen, with a catalog whose tables have rows. */
struct app *sql_fixture_app(bool ascii);

/* Paste a text, as a terminal would. */
void sql_fixture_paste(struct app *a, const char *text);

/* Answer what was asked for: with rows (which are taken), or with an error at a byte. */
void sql_fixture_answer(struct app *a, struct result *rows, double elapsed_s);
void sql_fixture_fail(struct app *a, const char *why, long at);

#endif
