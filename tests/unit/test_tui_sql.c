/* SPDX-License-Identifier: Apache-2.0 */
/* The SQL screen: what is asked for, what is shown of the answer, what every key leads to. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <locale.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/sql/saved.h"
#include "unit/tui_capture.h"
#include "unit/tui_fixture.h"
#include "unit/tui_host.h"
#include "unit/tui_sql.h"
#include "tui/core/app_draw.h"
#include "tui/core/app_input.h"
#include "tui/core/app_life.h"
#include "tui/core/app_query.h"
#include "tui/core/app_take.h"
#include "tui/keys/input.h"

static void assert_shown(struct app *a, const char *want, bool shown) {
    struct strbuf text;
    strbuf_init(&text, 1 << 20);
    assert_true(capture_text(a, 24, 80, &text));
    bool found = strstr(strbuf_str(&text), want) != NULL;
    if (found != shown)
        print_error("'%s' is %son the screen:\n%s\n", want, found ? "" : "not ", strbuf_str(&text));
    strbuf_fini(&text);
    assert_int_equal(found, shown);
}

static void assert_query(struct app *a, const char *want) {
    assert_int_equal(a->query.pending, APP_QUERY_RUN);
    assert_string_equal(a->query.text, want);
}

static void test_run(void **state) {
    struct app *a = sql_fixture_app(false);
    (void)state;
    sql_fixture_paste(a, "SELECT q FROM t");
    assert_false(fake_host.asked.quit); /* pasted letters are no keys */
    fixture_press(a, "q 2 / Space ?");
    assert_shown(a, "SELECT q FROM tq2/ ?", true);
    fixture_press(a, "Backspace Backspace Backspace Backspace Backspace Enter");
    assert_int_equal(a->query.pending, APP_QUERY_NONE);
    assert_shown(a, "2 lines", false);
    assert_shown(a, "F5 always does", true);
    fixture_press(a, "; Enter");
    assert_query(a, "SELECT q FROM t\n;");
    assert_true(a->query.running);
    fixture_press(a, "F5"); /* one at a time */
    assert_shown(a, "a query runs", true);
    sql_fixture_answer(a, sql_fixture_rows(12), 0.0123);
    assert_shown(a, "12 rows in 12 ms", true);
    assert_shown(a, "evil\xef\xbf\xbd[2Jname", true);
    app_free(a);
}

/* What is asked while the tables are looked at is not lost; it is run after that, once. */
static void test_run_while_tables_are_looked_at(void **state) {
    struct querier_answer look = {.kind = QUERIER_LIST_TABLES, .error_at = -1};
    struct app *a = sql_fixture_app(false);
    (void)state;
    app_query_tables(a);
    assert_int_equal(a->query.pending, APP_QUERY_TABLES);
    a->query.pending = APP_QUERY_NONE; /* it is under way */
    sql_fixture_paste(a, "SELECT 1");
    fixture_press(a, "F5");
    assert_query(a, "SELECT 1");
    assert_shown(a, "a query runs", false);
    fixture_press(a, "F5");
    assert_shown(a, "a query runs", true);
    app_take_answer(a, &look);
    assert_query(a, "SELECT 1");
    assert_true(a->query.running);
    sql_fixture_answer(a, sql_fixture_rows(3), 0.001);
    assert_shown(a, "3 rows in", true);
    app_query_tables(a);
    a->query.pending = APP_QUERY_NONE;
    fixture_press(a, "F5 ctrl-c"); /* neither is wanted any more */
    look = (struct querier_answer){.kind = QUERIER_LIST_TABLES, .cancelled = true, .error_at = -1};
    app_take_answer(a, &look);
    assert_int_equal(a->query.pending, APP_QUERY_NONE);
    assert_false(a->query.running);
    app_free(a);
}

static void test_enter_needs_a_statement(void **state) {
    struct app *a = sql_fixture_app(false);
    (void)state;
    fixture_press(a, "Enter");
    fixture_press(a, "F5");
    assert_int_equal(a->query.pending, APP_QUERY_NONE);
    fixture_press(a, "; Enter");
    assert_int_equal(a->query.pending, APP_QUERY_NONE);
    fixture_press(a, "ctrl-c");
    sql_fixture_paste(a, "SELECT ';' -- ;");
    fixture_press(a, "Enter");
    assert_int_equal(a->query.pending, APP_QUERY_NONE);
    fixture_press(a, "alt-Enter ; Space Enter");
    assert_query(a, "SELECT ';' -- ;\n\n; ");
    app_free(a);
}

static void test_error(void **state) {
    struct app *a = sql_fixture_app(false);
    (void)state;
    sql_fixture_paste(a, "SELECT 1;");
    fixture_press(a, "Enter");
    sql_fixture_answer(a, sql_fixture_rows(3), 0.001);
    fixture_press(a, "ctrl-u");
    sql_fixture_paste(a, "SELECT tidd FROM python.samples;");
    fixture_press(a, "Enter");
    sql_fixture_fail(a, "no such column: tidd (line 1, column 8)", 7);
    assert_shown(a, "no such column: tidd", true);
    fixture_press(a, "Esc Esc"); /* the result of before is below it */
    assert_shown(a, "no such column", false);
    assert_shown(a, "3 rows", true);
    app_free(a);
}

static void test_completion(void **state) {
    struct app *a = sql_fixture_app(false);
    (void)state;
    sql_fixture_paste(a, "SELECT * FROM python.sa");
    fixture_press(a, "Tab"); /* there is one */
    assert_shown(a, "FROM python.samples", true);
    sql_fixture_paste(a, " WHERE t");
    fixture_press(a, "Tab");
    assert_shown(a, "thread, as the kernel numbers it", true);
    fixture_press(a, "Down Up h"); /* typing narrows */
    assert_shown(a, "as the kernel numbers it", false);
    assert_shown(a, "its name: threading.Thread.name", true);
    fixture_press(a, "Enter"); /* takes it, and runs nothing */
    assert_shown(a, "WHERE thread", true);
    assert_int_equal(a->query.pending, APP_QUERY_NONE);
    fixture_press(a, "Space Tab Esc");
    assert_shown(a, " Query ", true);
    assert_shown(a, "keyword", false);
    sql_fixture_paste(a, "zzzz");
    fixture_press(a, "Tab");
    assert_shown(a, "no completion", true);
    app_free(a);
}

/* A list that is open while other tables become known is made again. */
static void test_completion_and_new_tables(void **state) {
    struct app *a = sql_fixture_app(false);
    (void)state;
    sql_fixture_paste(a, "SELECT * FROM ");
    fixture_press(a, "Tab Down Down Down Down Down");
    assert_shown(a, "probing.config", true);
    struct querier_answer look = {
        .kind = QUERIER_LIST_TABLES, .catalog = catalog_of_definitions(), .error_at = -1};
    look.catalog->n_tables = 5;
    app_query_tables(a);
    app_take_answer(a, &look);
    assert_shown(a, "probing.config", true);
    assert_shown(a, "a sample of a thread", false);
    fixture_press(a, "Enter");
    assert_shown(a, "FROM probing.config", true);
    app_free(a);
}

static void test_history(void **state) {
    struct app *a = sql_fixture_app(false);
    (void)state;
    static const char *const queries[] = {"SELECT 1;", "SELECT 2\nFROM t;", "VALUES (3);"};
    for (int i = 0; i < 3; i++) {
        fixture_press(a, "ctrl-c");
        sql_fixture_paste(a, queries[i]);
        fixture_press(a, "F5");
        sql_fixture_answer(a, sql_fixture_rows(1), 0.001);
    }
    fixture_press(a, "ctrl-c");
    sql_fixture_paste(a, "draft");
    fixture_press(a, "Up");
    assert_shown(a, "VALUES (3);", true);
    fixture_press(a, "Up");
    assert_shown(a, "SELECT 2", true);
    fixture_press(a, "Up"); /* a line up first */
    assert_shown(a, "SELECT 2", true);
    fixture_press(a, "Up");
    assert_shown(a, "SELECT 1;", true);
    fixture_press(a, "alt-n alt-n alt-n");
    assert_shown(a, "draft", true);
    fixture_press(a, "ctrl-r \"select");
    assert_shown(a, "SELECT 2", true);
    fixture_press(a, "ctrl-r");
    assert_shown(a, "SELECT 1;", true);
    fixture_press(a, "Esc");
    assert_shown(a, "draft", true);
    fixture_press(a, "ctrl-r \"VALUES Enter F5");
    assert_query(a, "VALUES (3);");
    app_free(a);
}

static void test_cancel(void **state) {
    struct app *a = sql_fixture_app(false);
    (void)state;
    sql_fixture_paste(a, "SELECT slow();");
    fixture_press(a, "Enter");
    a->query.pending = APP_QUERY_NONE; /* it was begun */
    app_set_time(a, FIXTURE_NOW_S + 3.2, FIXTURE_EPOCH_S + 3.2);
    assert_true(app_needs_tick(a));
    assert_shown(a, "running 3 s: ctrl-c ends it", true);
    fixture_press(a, "ctrl-c");
    assert_true(fake_host.asked.cancel_query && !fake_host.asked.quit);
    struct querier_answer answer = {.kind = QUERIER_RUN, .error_at = -1, .elapsed_s = 3.3, .cancelled = true};
    (void)err_set(&answer.error, ERR_FAILED, "the query was interrupted");
    app_take_answer(a, &answer);
    assert_shown(a, "was ended after 3.3 s", true);
    assert_shown(a, "SELECT slow();", true);
    fixture_press(a, "ctrl-c"); /* nothing runs: the text goes, and can be had back */
    assert_shown(a, "SELECT slow();", false);
    fixture_press(a, "ctrl-_");
    assert_shown(a, "SELECT slow();", true);
    app_free(a);
}

static void test_result_keys(void **state) {
    struct app *a = sql_fixture_app(false);
    (void)state;
    sql_fixture_paste(a, "SELECT 1;");
    fixture_press(a, "Enter");
    sql_fixture_answer(a, sql_fixture_rows(12), 0.001);
    fixture_press(a, "Esc Right Right Right F6");
    assert_shown(a, "sorted by share", true);
    fixture_press(a, "%");
    assert_shown(a, "Counts of share", true);
    fixture_press(a, "q =");
    assert_shown(a, "Statistics of share", true);
    assert_shown(a, "median", true);
    fixture_press(a, "Esc Right Enter");
    assert_shown(a, "stack of row 1", true);
    fixture_press(a, "Esc v");
    assert_shown(a, "row 1", true);
    fixture_press(a, "v / \"evil Enter");
    assert_shown(a, "/evil", true);
    fixture_press(a, "n N Esc - A ! alt-o alt-o");
    assert_false(fake_host.asked.quit);
    fixture_press(a, "o X");
    assert_shown(a, "SELECT 1;X", true);
    fixture_press(a, "Esc 4 S"); /* it is as it was left */
    assert_shown(a, "SELECT 1;X", true);
    assert_shown(a, "12 rows", true);
    fixture_press(a, "q");
    assert_true(fake_host.asked.quit);
    app_free(a);
}

static void test_lists(void **state) {
    struct app *a = sql_fixture_app(false);
    (void)state;
    fixture_press(a, "F4 / \"python.gc Enter");
    assert_shown(a, "garbage collections", true);
    fixture_press(a, "Enter");
    assert_shown(a, "duration", true);
    fixture_press(a, "Enter"); /* types a name */
    assert_shown(a, "rank", true);
    fixture_press(a, "ctrl-c F2");
    assert_shown(a, "hot functions", true);
    fixture_press(a, "F2");
    assert_shown(a, "hot functions", false);
    fixture_press(a, "F2 Down Enter");
    assert_non_null(strstr(a->query.text, "f.lineno"));
    assert_int_equal(a->query.pending, APP_QUERY_RUN);
    app_free(a);
}

static void test_watch(void **state) {
    struct app *a = sql_fixture_app(false);
    (void)state;
    sql_fixture_paste(a, "SELECT 1;");
    fixture_press(a, "F9");
    assert_query(a, "SELECT 1;");
    sql_fixture_answer(a, sql_fixture_rows(8), 0.001);
    fixture_press(a, "Esc j j j Right F6");
    app_tick(a);
    assert_int_equal(a->query.pending, APP_QUERY_NONE);
    app_set_time(a, FIXTURE_NOW_S + 2.5, FIXTURE_EPOCH_S + 2.5);
    app_tick(a);
    assert_query(a, "SELECT 1;");
    sql_fixture_answer(a, sql_fixture_rows(10), 0.001);
    assert_shown(a, "10 rows", true);
    assert_shown(a, "sorted by tid", true); /* what was done to the sheet stays */
    assert_shown(a, " every 2 s ", true);
    assert_int_equal(a->query.history.n, 1);
    fixture_press(a, ": \"watch Space \"10 Enter");
    assert_shown(a, "every 10 s", true);
    fixture_press(a, ": \"watch Space \"0.1 Enter");
    assert_shown(a, ":watch takes seconds", true);
    fixture_press(a, "F9");
    assert_false(app_query_needs_tick(a));
    app_set_time(a, FIXTURE_NOW_S + 60, FIXTURE_EPOCH_S + 60);
    app_tick(a);
    assert_int_equal(a->query.pending, APP_QUERY_NONE);
    app_free(a);
}

static void test_export(void **state) {
    struct app *a = sql_fixture_app(false);
    (void)state;
    fixture_press(a, "alt-x \"export Space \"x.csv Enter");
    assert_shown(a, "there is no result to export", true);
    sql_fixture_paste(a, "SELECT 1;");
    fixture_press(a, "Enter");
    sql_fixture_answer(a, sql_fixture_rows(8), 0.001);
    fixture_press(a, "Esc Right F6 - : \"export Space \"/x/a.csv Enter");
    assert_int_equal(a->query.pending, APP_QUERY_EXPORT);
    const struct querier_export *x = &a->query.exported;
    assert_string_equal(x->path, "/x/a.csv");
    assert_string_equal(x->format, "csv");
    assert_true(x->rows && x->order && x->hidden[1] && !x->hidden[0]);
    struct querier_answer done = {.kind = QUERIER_EXPORT, .exported = 8, .error_at = -1};
    a->query.pending = APP_QUERY_NONE;
    app_take_answer(a, &done);
    assert_shown(a, "8 rows written to /x/a.csv", true);
    fixture_press(a, ": \"export Space \"a.xls Enter");
    assert_shown(a, "FILE.csv, FILE.json or FILE.ndjson", true);
    fixture_press(a, ": \"nonsense Enter");
    assert_shown(a, "there is no command 'nonsense'", true);
    app_free(a);
}

static void test_save(void **state) {
    struct app *a = sql_fixture_app(false);
    char dir[] = "/tmp/test_saved.XXXXXX", path[128];
    struct strbuf text;
    (void)state;
    assert_non_null(mkdtemp(dir));
    (void)snprintf(a->query.saved_dir, sizeof a->query.saved_dir, "%s/a/b", dir);
    fixture_press(a, "alt-x \"save Space \"x Enter");
    assert_shown(a, "there is nothing to save", true);
    sql_fixture_paste(a, "-- What is one?\nSELECT 1;");
    fixture_press(a, "alt-x \"save Space \"../x Enter");
    assert_shown(a, "no /", true);
    fixture_press(a, "alt-x \"save Space \"my Space \"one Enter");
    assert_shown(a, "saved: F2 has it", true);
    fixture_press(a, "ctrl-c F2");
    assert_shown(a, "my one", true);
    assert_shown(a, "What is one?", true);
    assert_shown(a, "hot functions", true);
    fixture_press(a, "Enter");
    assert_query(a, "-- What is one?\nSELECT 1;\n");
    (void)snprintf(path, sizeof path, "%s/a/b/my one.sql", dir);
    strbuf_init(&text, 100);
    assert_int_equal(strbuf_read_file(&text, path), 0);
    assert_string_equal(strbuf_str(&text), "-- What is one?\nSELECT 1;\n");
    strbuf_fini(&text);
    /* What is no query: a folder, a link to a device, something empty, something huge. */
    (void)snprintf(path, sizeof path, "%s/a/b/dir.sql", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof path, "%s/a/b/zero.sql", dir);
    assert_int_equal(symlink("/dev/zero", path), 0);
    struct result *rows = saved_list(a->query.saved_dir), *shipped = saved_list("");
    assert_int_equal(rows->n_rows, shipped->n_rows + 1);
    result_unref(rows);
    result_unref(shipped);
    static const char *const left[] = {"a/b/zero.sql", "a/b/my one.sql", "a/b/dir.sql", "a/b", "a", ""};
    for (size_t i = 0; i < sizeof left / sizeof left[0]; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", dir, left[i]);
        assert_int_equal(remove(path), 0);
    }
    app_free(a);
}

static void test_truncated(void **state) {
    struct app *a = sql_fixture_app(false);
    (void)state;
    sql_fixture_paste(a, "SELECT 1;");
    fixture_press(a, "Enter");
    struct result *rows = sql_fixture_rows(5);
    rows->full = true;
    sql_fixture_answer(a, rows, 1.5);
    assert_shown(a, "THE FIRST 5 ROWS ONLY", true);
    a->query.answer.lost = 3;
    assert_shown(a, "3 chunks were overwritten", true);
    app_free(a);
}

static void test_note_and_other_target(void **state) {
    struct app *a = sql_fixture_app(false);
    (void)state;
    struct querier_answer look = {
        .kind = QUERIER_LIST_TABLES, .catalog = catalog_of_definitions(), .error_at = -1};
    (void)strcpy(look.note, "no history of process 4242: no agent collects it");
    app_query_tables(a);
    app_take_answer(a, &look);
    assert_shown(a, "no agent collects it", true);
    app_set_pid(a, 1);
    app_set_pid(a, 2);
    assert_shown(a, "no agent collects it", false);
    app_free(a);
}

static void test_too_small(void **state) {
    struct app *a = sql_fixture_app(false);
    struct grid g;
    (void)state;
    assert_int_equal(grid_init(&g, 10, 40), 0);
    app_draw(a, &g);
    fixture_press(a, "x");
    assert_false(fake_host.asked.quit);
    fixture_press(a, "q");
    assert_true(fake_host.asked.quit);
    grid_fini(&g);
    app_free(a);
}

/* Any keys in any order: nothing breaks, and what is drawn fits. */
static void test_random(void **state) {
    static const char *const keys[] = {
        "Tab",  "Enter", "Esc",       "F2",     "F4",     "F5",     "F6",     "F9",     "Up",    "Down",
        "Left", "Right", "Space",     "v",      "=",      "%",      "!",      "-",      "A",     "O",
        "/",    ":",     "ctrl-r",    "ctrl-_", "ctrl-c", "ctrl-k", "ctrl-w", "ctrl-y", "alt-p", "alt-n",
        "PgDn", "End",   "Backspace", "i",      "alt-s",  "6",      "L",      "Space",  ";",     "alt-x",
        "n",    "N",     "alt-_",     "4",      "S",      "o"};
    struct app *a = sql_fixture_app(false);
    struct grid g;
    (void)state;
    srand(17);
    assert_int_equal(grid_init(&g, 24, 80), 0);
    for (int i = 0; i < 6000; i++) {
        fixture_press(a, keys[(size_t)rand() % (sizeof keys / sizeof keys[0])]);
        (void)fake_host_take();
        if (a->query.pending == APP_QUERY_RUN && rand() % 2)
            rand() % 4 ? sql_fixture_answer(a, sql_fixture_rows((size_t)(rand() % 30)), 0.001)
                       : sql_fixture_fail(a, "syntax error", rand() % 30);
        else if (a->query.running && rand() % 4 == 0) {
            struct querier_answer done = {.kind = QUERIER_EXPORT, .cancelled = true, .error_at = -1};
            a->query.pending = APP_QUERY_NONE;
            app_take_answer(a, &done);
        }
        if (a->n_screens < 2 && !a->prompt_for)
            fixture_press(a, "S");
        if (rand() % 20 == 0) {
            struct input_event e = {.kind = INPUT_EVENT_MOUSE, .button = (enum input_button)(1 + rand() % 3)};
            e.row = rand() % 24;
            e.col = rand() % 80;
            app_input(a, &e);
        }
        app_tick(a);
        if (rand() % 30 == 0)
            assert_int_equal(grid_resize(&g, 12 + rand() % 30, 60 + rand() % 120), 0);
        app_draw(a, &g);
    }
    grid_fini(&g);
    app_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run),
        cmocka_unit_test(test_run_while_tables_are_looked_at),
        cmocka_unit_test(test_enter_needs_a_statement),
        cmocka_unit_test(test_error),
        cmocka_unit_test(test_completion),
        cmocka_unit_test(test_completion_and_new_tables),
        cmocka_unit_test(test_history),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_result_keys),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_watch),
        cmocka_unit_test(test_export),
        cmocka_unit_test(test_save),
        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_note_and_other_target),
        cmocka_unit_test(test_too_small),
        cmocka_unit_test(test_random),
    };
    (void)setlocale(LC_ALL, "C.UTF-8");
    (void)setenv("TZ", "UTC", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
