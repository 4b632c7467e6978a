/* SPDX-License-Identifier: Apache-2.0 */
/* tui_repl: see tui_repl.h. */
#include "unit/tui_repl.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "tui/core/app_debug.h"
#include "tui/core/app_input.h"
#include "tui/core/app_repl.h"
#include "tui/keys/input.h"
#include "unit/tui_fixture.h"
#include "unit/tui_host.h"

void repl_fixture_type(struct app *a, const char *text) {
    for (; *text; text++)
        app_input_key(a, (unsigned char)*text);
}

void repl_fixture_paste(struct app *a, const char *text) {
    struct input_event e = {.kind = INPUT_EVENT_PASTE, .text = text};
    app_input(a, &e);
}

void repl_fixture_asked(struct app *a, enum repl_ask what, const char *code) {
    assert_int_equal(a->repl.engine.asked, what);
    assert_string_equal(strbuf_str(&a->repl.engine.code), code);
}

static struct wire_text text_of(const char *s) { return (struct wire_text){s, s ? strlen(s) : 0}; }

void repl_fixture_answer(struct app *a, const char *output, const char *result, const char *traceback) {
    struct wire_evaluated v = {
        .output = text_of(output), .result = text_of(result), .traceback = text_of(traceback)};
    if (traceback)
        v.type = text_of("ValueError");
    app_repl_take(a, &v);
}

void repl_fixture_answer_debug(struct app *a, const struct wire_debugger *how) { app_debug_take(a, how); }

void repl_fixture_run(struct app *a, const char *code, const char *output, const char *result,
                      const char *traceback) {
    repl_fixture_paste(a, code);
    fixture_press(a, "Enter");
    repl_fixture_asked(a, REPL_WHOLE, code);
    repl_fixture_answer(a, NULL, WIRE_CODE_DONE, NULL);
    assert_int_equal(a->repl.engine.asked, REPL_RUN);
    repl_fixture_answer(a, output, result, traceback);
}

void repl_fixture_look(struct app *a, const char *line, enum magic_kind kind, const char *text,
                       const char *error) {
    struct querier_answer answer = {.kind = QUERIER_MAGIC, .error_at = -1};
    repl_fixture_paste(a, line);
    fixture_press(a, "Enter");
    assert_int_equal(a->repl.engine.asked, REPL_QUERY);
    assert_int_equal(fake_host.magic_kind, kind);
    strbuf_init(&answer.text, 0);
    if (text)
        (void)strbuf_adds(&answer.text, text);
    else
        (void)err_set(&answer.error, ERR_FAILED, "%s", error);
    app_repl_take_query(a, &answer);
}

void repl_fixture_complete(struct app *a, const char *typed, const char *names) {
    repl_fixture_type(a, typed);
    fixture_press(a, "Tab");
    assert_int_equal(a->repl.engine.asked, REPL_NAMES);
    repl_fixture_answer(a, NULL, names, NULL);
}
