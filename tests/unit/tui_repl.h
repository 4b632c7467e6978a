/* SPDX-License-Identifier: Apache-2.0 */
/* tui_repl: answers of a job to code, made by hand, for tests of the Repl screen. */
#ifndef TESTS_TUI_REPL_H
#define TESTS_TUI_REPL_H

#include "tui/core/app.h"

/* Type a text (no key of it is an action), or paste it. */
void repl_fixture_type(struct app *a, const char *text);
void repl_fixture_paste(struct app *a, const char *text);

/* Something is asked, of that code: take the wish, as the host does. */
void repl_fixture_asked(struct app *a, enum repl_ask what, const char *code);

/* Answer it: what it printed, its value, its traceback; NULL none. */
void repl_fixture_answer(struct app *a, const char *output, const char *result, const char *traceback);

/* Answer what app_debug.h has asked for. */
void repl_fixture_answer_debug(struct app *a, const struct wire_debugger *how);

/* Type a statement and Enter, say that it is whole, and answer it. */
void repl_fixture_run(struct app *a, const char *code, const char *output, const char *result,
                      const char *traceback);

/* Type a line with % and Enter: a look is asked, of that kind; answer it, with an error unless `text`. */
void repl_fixture_look(struct app *a, const char *line, enum magic_kind kind, const char *text,
                       const char *error);

/* Type the beginning of a name, press Tab, and tell the names, a line each. */
void repl_fixture_complete(struct app *a, const char *typed, const char *names);

#endif
