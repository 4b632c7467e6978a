/* SPDX-License-Identifier: Apache-2.0 */
/* tui_sql: see tui_sql.h. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "unit/tui_fixture.h"
#include "unit/tui_sql.h"
#include "tui/core/app_input.h"
#include "tui/core/app_query.h"
#include "tui/keys/input.h"

static void put(struct result *r, size_t column, const char *text) {
    assert_int_equal(result_put_text(r, column, SQL_TEXT, text, strlen(text)), 0);
}

struct result *sql_fixture_rows(size_t n) {
    static const char *const names[] = {"timestamp", "tid", "thread", "share", "stack"};
    static const char *const types[] = {"timestamp", "integer", "text", "", ""};
    static const char *const threads[] = {"MainThread", "\xe8\xa8\x93\xe7\xb7\xb4-0", "evil\033[2Jname", ""};
    struct result *r = result_new(5, 2000000, (size_t)512 << 20);
    assert_non_null(r);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(result_name_column(r, i, names[i], types[i]), 0);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(result_add_row(r), 0);
        result_put_real(r, 0, FIXTURE_EPOCH_S - (double)i * 0.25);
        result_put_int(r, 1, 4242 + (int64_t)(i * 7 % 5));
        if (i % 4 != 3)
            put(r, 2, threads[i % 4]);
        result_put_real(r, 3, i % 6 == 5 ? NAN : (double)(i * 37 % 101) / 3);
        put(r, 4,
            i % 3 ? "train_step (train.py:132)"
                  : "<module> (train.py:282);main (train.py:276);train (train.py:223);train_step "
                    "(train.py:132);"
                    "Tensor.backward (torch/_tensor.py:623);backward (torch/autograd/__init__.py:395)");
    }
    return r;
}

struct app *sql_fixture_app(bool ascii) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 24, ascii);
    fixture_press(a, "S");
    assert_int_equal(a->query.pending, APP_QUERY_TABLES);
    a->query.pending = APP_QUERY_NONE;
    struct querier_answer look = {
        .kind = QUERIER_LIST_TABLES, .catalog = catalog_of_definitions(), .error_at = -1};
    assert_non_null(look.catalog);
    for (size_t i = 0; i < look.catalog->n_tables; i++)
        if (look.catalog->tables[i].cost == RING_COST_BACKGROUND) {
            look.catalog->tables[i].rows = 1000 * (i + 1);
            look.catalog->tables[i].bytes = 131072;
            look.catalog->tables[i].oldest = FIXTURE_EPOCH_S - 600;
            look.catalog->tables[i].newest = FIXTURE_EPOCH_S;
        }
    app_take_answer(a, &look);
    return a;
}

void sql_fixture_paste(struct app *a, const char *text) {
    struct input_event e = {.kind = INPUT_EVENT_PASTE, .text = text};
    app_input(a, &e);
}

static void take(struct app *a, struct querier_answer *answer) {
    assert_true(a->query.running);
    assert_int_equal(a->query.pending, APP_QUERY_RUN);
    a->query.pending = APP_QUERY_NONE;
    app_take_answer(a, answer);
}

void sql_fixture_answer(struct app *a, struct result *rows, double elapsed_s) {
    struct querier_answer answer = {
        .kind = QUERIER_RUN, .rows = rows, .error_at = -1, .elapsed_s = elapsed_s, .statements = 1};
    answer.truncated = rows && rows->full;
    take(a, &answer);
}

void sql_fixture_fail(struct app *a, const char *why, long at) {
    struct querier_answer answer = {.kind = QUERIER_RUN, .error_at = at};
    (void)err_set(&answer.error, ERR_FAILED, "%s", why);
    take(a, &answer);
}
