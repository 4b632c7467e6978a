/* SPDX-License-Identifier: Apache-2.0 */
/* Tagged rows: they stay tagged when data change, are shown alone, copied and exported; and the menus of rows of all screens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "flame/stack_counts.h"
#include "tui/core/app_export.h"
#include "tui/workers/exporter.h"
#include "tui/workers/querier.h"
#include "tui/core/app.h"
#include "tui/core/app_life.h"
#include "tui/core/app_feed.h"
#include "tui/core/app_input.h"
#include "tui/core/app_screen.h"
#include "tui/core/app_take.h"
#include "tui/core/tagging.h"
#include "tui/core/targets.h"
#include "tui/view/sheet.h"
#include "unit/tui_fixture.h"
#include "unit/tui_host.h"
#include "unit/tui_sql.h"
#include "unit/tui_tables.h"

static void assert_shows(struct app *a, const char *what) { fixture_shows(a, 24, 80, what); }

static void assert_hides(struct app *a, const char *what) { fixture_hides(a, 24, 80, what); }

static struct app *with_samples(void) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    fixture_samples(a, 40);
    (void)fixture_draw(a, 24, 80);
    return a;
}

static void feed_snapshot(struct app *a, int step) {
    struct model_snapshot s;
    fixture_snapshot(&s, FIXTURE_NORMAL, step);
    app_take_snapshot(a, &s);
}

/* What is copied now; it is the app's. */
static const char *copied(struct app *a, const char *keys) {
    fixture_press(a, keys);
    assert_true(fake_host_take().copy);
    return fake_host.text;
}

static char *read_file(const char *path) {
    static char text[1 << 20];
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof text - 1, f);
    (void)fclose(f);
    text[n] = '\0';
    return text;
}

/* ---- the set itself ---- */

/* Against a table of bits, by a row of keys that repeats none of its steps. */
static void test_tags_are_a_set(void **state) {
    struct tags t = {.n = 0};
    bool want[512] = {false};
    uint64_t x = 1;
    (void)state;
    for (int i = 0; i < 20000; i++) {
        x = x * 6364136223846793005ULL + 1442695040888963407ULL;
        size_t key = (x >> 33) % 512;
        assert_true(tags_toggle(&t, key << 40 | key));
        want[key] = !want[key];
        size_t n = 0;
        for (size_t k = 0; k < 512; k++)
            n += want[k];
        assert_int_equal(t.n, n);
        assert_int_equal(tags_has(&t, key << 40 | key), want[key]);
    }
    for (size_t k = 0; k < 512; k++)
        assert_int_equal(tags_has(&t, k << 40 | k), want[k]);
    tags_clear(&t);
    assert_int_equal(t.n, 0);
    for (size_t k = 0; k < TAGS_MAX; k++)
        assert_true(tags_toggle(&t, k));
    assert_false(tags_toggle(&t, TAGS_MAX));
    t.only = true;
    assert_true(tags_shows(&t, 5));
    assert_false(tags_shows(&t, TAGS_MAX));
    tags_fini(&t);
}

/* ---- threads ---- */

static void test_threads_stay_tagged(void **state) {
    struct app *a = with_samples();
    (void)state;
    fixture_press(a, "Space"); /* the main thread; the next row is selected then */
    assert_shows(a, "1 tagged");
    assert_true(tags_has(&a->threads, 4242));
    fixture_press(a, "Down Space");
    assert_shows(a, "2 tagged");
    assert_shows(a, "\xe2\x9c\x93    4242 MainThread");
    fixture_press(a, "< I");
    feed_snapshot(a, 90);
    assert_shows(a, "\xe2\x9c\x93    4242 MainThread");
    app_input_key(a, '"');
    assert_shows(a, "ONLY 2 tagged");
    assert_shows(a, "MainThread");
    assert_hides(a, "OMP worker");
    feed_snapshot(a, 91);
    assert_hides(a, "OMP worker");
    fixture_press(a, "5"); /* the same threads there */
    assert_shows(a, "\xe2\x9c\x93 MainThread");
    assert_hides(a, "red");
    app_input_key(a, '"');
    assert_shows(a, "red");
    fixture_press(a, "U");
    assert_hides(a, "tagged");
    fixture_press(a, "2");
    assert_shows(a, "OMP worker");
    fixture_press(a, "U");
    assert_shows(a, "no row is tagged");
    app_free(a);
}

static void test_threads_are_copied(void **state) {
    struct app *a = with_samples();
    (void)state;
    fixture_press(a, "Space Down Space");
    const char *text = copied(a, "y");
    assert_non_null(strstr(text, "4242 MainThread /"));
    assert_int_equal(strncmp(fake_host.what, "2 tagged rows", 14), 0);
    size_t lines = 0;
    for (const char *p = text; (p = strchr(p, '\n')); p++)
        lines++;
    assert_int_equal(lines, 2);
    text = copied(a, "Y"); /* whole stacks */
    assert_int_equal(strncmp(text, "4242 MainThread R\n  /", 21), 0);
    assert_non_null(strstr(text, "\n4251 QueueFeederThread"));
    fixture_press(a, "\\ \"queue Enter"); /* one of them is not shown any more */
    text = copied(a, "y");
    assert_null(strstr(text, "MainThread"));
    assert_non_null(strstr(fake_host.what, "1 more is not shown"));
    fixture_press(a, "\\ \"OMP Enter y");
    assert_false(fake_host_take().copy);
    assert_shows(a, "none of the tagged rows is shown");
    app_free(a);
}

/* ---- exports ---- */

static char *exported(struct app *a, const char *format) {
    char path[] = "/tmp/test_tui_tags.XXXXXX";
    struct err e;
    bool exists;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    (void)close(fd);
    assert_true(app_export(a, export_find(format, &e), path, true, &exists));
    assert_true(fake_host_take().write);
    struct export_job *job = fake_host.job;
    fake_host.job = NULL;
    export_job_do(job);
    app_export_done(a, job);
    char *text = read_file(path);
    (void)unlink(path);
    return text;
}

/* Samples in a folded export. */
static double weight(const char *folded, const char *with) {
    double sum = 0;
    char copy[1 << 16];
    (void)snprintf(copy, sizeof copy, "%s", folded);
    for (char *line = strtok(copy, "\n"); line; line = strtok(NULL, "\n"))
        if (!with || strstr(line, with))
            sum += strtod(strrchr(line, ' '), NULL);
    return sum;
}

static void test_exports_of_threads(void **state) {
    struct app *a = with_samples();
    (void)state;
    double main_thread = weight(exported(a, "folded"), "train_step"),
           all = weight(exported(a, "folded"), NULL);
    double feeder = weight(exported(a, "folded"), "Queue._feed");
    assert_true(main_thread > 0 && feeder > 0 && all > main_thread + feeder);
    fixture_press(a, "Space Down Space");
    assert_shows(a, "2 tagged");
    const char *text = exported(a, "json");
    assert_non_null(strstr(text, "\"tid\": 4242"));
    assert_non_null(strstr(text, "\"tid\": 4251"));
    assert_null(strstr(text, "\"tid\": 4261"));
    text = exported(a, "txt");
    assert_non_null(strstr(text, "MainThread"));
    assert_null(strstr(text, "OMP worker"));
    assert_shows(a, "OMP worker"); /* the screen is as it was */
    fixture_press(a, "k k Space"); /* the feeder alone is left */
    assert_false(tags_has(&a->threads, 4242));
    assert_true(weight(exported(a, "folded"), NULL) == feeder);
    app_free(a);
}

static void test_exports_of_functions(void **state) {
    struct app *a = with_samples();
    (void)state;
    fixture_press(a, "4 A");
    double all = weight(exported(a, "folded"), NULL);
    double step = weight(exported(a, "folded"), "train_step"),
           feed = weight(exported(a, "folded"), "Queue._feed");
    assert_true(step > 0 && feed > 0 && all > step + feed);
    fixture_press(a, "/ \"train_step Enter Space");
    assert_shows(a, "1 tagged");
    assert_true(weight(exported(a, "folded"), NULL) == step);
    fixture_press(a, "/ \"Queue._feed Enter Space");
    assert_true(weight(exported(a, "folded"), NULL) == step + feed);
    app_input_key(a, '"');
    assert_shows(a, "Functions 2 of");
    assert_hides(a, "AdamW");
    const char *text = copied(a, "Y");
    assert_non_null(strstr(text, "train_step\n"));
    assert_non_null(strstr(text, "Queue._feed\n"));
    fixture_press(a, "l"); /* lines are other rows */
    app_input_key(a, 'A');
    fixture_press(a, "y");
    assert_shows(a, "none of the tagged rows is shown");
    app_free(a);
}

/* ---- a result ---- */

static struct result *rows_from(int from, int n) {
    struct result *r = result_new(2, 1000, 1 << 20);
    assert_non_null(r);
    (void)result_name_column(r, 0, "id", "integer");
    (void)result_name_column(r, 1, "name", "text");
    for (int i = from; i < from + n; i++) {
        char name[16];
        int len = snprintf(name, sizeof name, "row-%d", i);
        assert_int_equal(result_add_row(r), 0);
        result_put_int(r, 0, i);
        assert_int_equal(result_put_text(r, 1, SQL_TEXT, name, (size_t)len), 0);
    }
    return r;
}

static void test_rows_of_a_result(void **state) {
    struct app *a = sql_fixture_app(false);
    (void)state;
    sql_fixture_paste(a, "SELECT * FROM t;");
    fixture_press(a, "Enter");
    sql_fixture_answer(a, rows_from(0, 10), 0.01);
    fixture_press(a, "Esc j j Space j Space"); /* rows 2 and 4 */
    assert_shows(a, "2 tagged");
    assert_string_equal(copied(a, "Y"), "2\trow-2\n4\trow-4\n");
    app_input_key(a, '"');
    assert_shows(a, "Row 2 of 2");
    fixture_press(a, ": \"export Space \"/tmp/tags.csv Enter");
    assert_int_equal(a->query.pending, APP_QUERY_EXPORT);
    assert_int_equal(a->query.exported.n_order, 2);
    assert_int_equal(a->query.exported.order[1], 4);
    app_free(a);
}

static void test_rows_stay_tagged(void **state) {
    struct sheet s, next;
    (void)state;
    assert_int_equal(sheet_init(&s, rows_from(0, 10)), 0);
    list_fit(&s.list, 10, 5);
    assert_true(tags_toggle(&s.tags, 2) && tags_toggle(&s.tags, 4) && tags_toggle(&s.tags, 9));
    s.tags.only = true;
    sheet_renew_rows(&s);
    assert_int_equal(sheet_rows(&s), 3);
    assert_true(sheet_act(&s, ACTION_SHEET_DESCEND));
    assert_int_equal(sheet_row(&s, 0), 9);
    assert_int_equal(sheet_row(&s, 2), 2);
    assert_int_equal(sheet_init(&next, rows_from(4, 1)), 0); /* what was selected is beyond its end */
    next.list.selected = 9;
    sheet_take_tags(&next, &s);
    assert_int_equal(next.list.selected, 0);
    assert_int_equal(next.tags.n, 1);
    sheet_fini(&next);
    assert_int_equal(sheet_init(&next, rows_from(3, 10)), 0); /* 3 to 12: what was row 4 is row 1 */
    sheet_take_tags(&next, &s);
    assert_int_equal(next.tags.n, 2);
    assert_int_equal(sheet_rows(&next), 2);
    assert_int_equal(sheet_row(&next, 0), 1);
    assert_int_equal(sheet_row(&next, 1), 6);
    tags_clear(&next.tags);
    sheet_renew_rows(&next);
    assert_int_equal(sheet_rows(&next), 10);
    sheet_fini(&s);
    sheet_fini(&next);
}

/* ---- events ---- */

static void test_events(void **state) {
    struct app *a = with_samples();
    (void)state;
    for (int i = 0; i < 4; i++)
        log_add(a->log, FIXTURE_EPOCH_S + i, LOG_LEVEL_INFO, "event %d", i);
    fixture_press(a, "L");
    (void)fixture_draw(a, 24, 80);
    fixture_press(a, "Space k k Space"); /* the last one; two before it */
    log_add(a->log, FIXTURE_EPOCH_S + 9, LOG_LEVEL_INFO, "one more");
    assert_shows(a, "2 tagged");
    assert_string_equal(copied(a, "y"), "event 1\nevent 3\n");
    app_input_key(a, '"');
    assert_shows(a, "event 3");
    assert_hides(a, "one more");
    fixture_press(a, "A");
    assert_shows(a, "one more");
    app_free(a);
}

/* ---- cells of the flame graph ---- */

/* Frames are what Top has: a function is tagged there too, wherever it is in the tree; lines and modules are others. */
static void test_frames_are_tagged(void **state) {
    struct app *a = with_samples();
    (void)state;
    fixture_press(a, "3 A");
    (void)fixture_draw(a, 24, 80);
    double all = weight(exported(a, "folded"), NULL), step = weight(exported(a, "folded"), "train_step"),
           feed = weight(exported(a, "folded"), "Queue._feed");
    assert_true(step > 0 && feed > 0 && all > step + feed);
    fixture_press(a, "g Space"); /* all threads: no frame */
    assert_shows(a, "select a row first");
    fixture_press(a, "/ \"train_step Enter Space");
    assert_shows(a, "1 tagged");
    assert_shows(a, "\xe2\x9c\x93train_step");
    assert_true(weight(exported(a, "folded"), NULL) == step);
    assert_non_null(strstr(a->message, "1 tagged row of all threads"));
    fixture_press(a, "/ \"Queue._feed Enter Space");
    assert_true(weight(exported(a, "folded"), NULL) == step + feed);
    const char *text = copied(a, "Y");
    assert_non_null(strstr(text, "% total "));
    assert_non_null(strstr(text, " train_step\n"));
    assert_non_null(strstr(text, " Queue._feed\n"));
    assert_null(strstr(text, "AdamW"));
    app_input_key(a, '"');
    assert_shows(a, "ONLY 2 tagged");
    assert_hides(a, "worker_loop");
    assert_true(weight(exported(a, "folded"), NULL) == step + feed);
    fixture_press(a, "4"); /* the same functions there */
    assert_shows(a, "Functions 2 of");
    fixture_press(a, "3 l"); /* lines are others */
    assert_shows(a, "no stack has a frame that is tagged");
    fixture_press(a, "l l A");
    assert_shows(a, "   2 tagged");
    fixture_press(a, "4 U 3");
    assert_hides(a, "tagged");
    app_free(a);
}

/* A module is tagged with all its functions. */
static void test_modules_are_tagged(void **state) {
    struct app *a = with_samples();
    (void)state;
    fixture_press(a, "3 A l l");
    (void)fixture_draw(a, 24, 80);
    fixture_press(a, "/ \"queues.py Enter");
    fixture_press(a, "Space");
    assert_shows(a, "1 tagged");
    double some = weight(exported(a, "folded"), NULL);
    fixture_press(a, "U");
    double all = weight(exported(a, "folded"), NULL);
    assert_true(some > 0 && some < all);
    app_free(a);
}

/* ---- rows within rows ---- */

static struct app *with_modules(void) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    fixture_press(a, "8");
    tables_answer(a, FEED_MODULES, tables_modules(TABLES_NORMAL));
    (void)fixture_draw(a, 24, 80);
    return a;
}

/* With a module is tagged what it holds; shown alone, what holds it stands above, and all of it is open. */
static void test_trees_are_tagged(void **state) {
    struct app *a = with_modules();
    (void)state;
    fixture_press(a, "/ \"layers.1.attn Enter Esc Space");
    assert_shows(a, "1 tagged");
    assert_non_null(strstr(copied(a, "y"), "layers.1.attn\n"));
    app_input_key(a, '"');
    assert_shows(a, "ONLY 1 tagged");
    assert_shows(a, "attn");
    assert_shows(a, "layers");
    assert_hides(a, "embed");
    fixture_press(a, "r"); /* it stays so when the rows come anew */
    tables_answer(a, FEED_MODULES, tables_modules(TABLES_NORMAL));
    assert_shows(a, "ONLY 1 tagged");
    assert_hides(a, "embed");
    fixture_press(a, "A");
    assert_shows(a, "embed");
    assert_shows(a, "1 tagged");
    fixture_press(a, "Enter Enter Space"); /* the pane has the keys */
    assert_shows(a, "select a row first");
    fixture_press(a, "Esc Esc U");
    assert_hides(a, "tagged");
    app_free(a);
}

/* Groups are rows too; folded ones stay folded, unless what is tagged is in them. */
static void test_groups_are_tagged(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    (void)state;
    fixture_press(a, "7");
    tables_answer(a, FEED_TENSORS, tables_tensors(TABLES_NORMAL));
    fixture_press(a, "Space"); /* a group */
    assert_shows(a, "1 tagged");
    app_input_key(a, '"');
    assert_shows(a, "\xe2\x96\xb8"); /* folded */
    const char *text = copied(a, "Y");
    assert_int_equal(strchr(text, '\n') - text, (long)strlen(text) - 1); /* one line */
    fixture_press(a, "U / \"qkv Enter Esc Space Left Left Left Left");
    app_input_key(a, '"');
    assert_shows(a, "qkv");
    fixture_press(a, "-"); /* nothing hides it */
    assert_shows(a, "qkv");
    fixture_press(a, "/ \"qkv Enter Esc v"); /* a tensor's values have another key than its tag */
    assert_true(app_feed_get(a, FEED_TENSOR)->wanted);
    app_free(a);
}

/* Samples are not of steps: an export of them is of all, and does not say otherwise. */
static void test_steps_are_tagged(void **state) {
    struct app *a = with_samples();
    (void)state;
    fixture_press(a, "3 A");
    (void)fixture_draw(a, 24, 80);
    double all = weight(exported(a, "folded"), NULL);
    fixture_press(a, "6");
    tables_answer_all(a, TABLES_NORMAL);
    (void)fixture_draw(a, 24, 80);
    fixture_press(a, "j Space Space");
    assert_shows(a, "2 tagged");
    const char *text = copied(a, "y");
    assert_string_equal(text, "4710\n4709\n");
    assert_int_equal((int)weight(exported(a, "folded"), NULL), (int)all);
    assert_null(strstr(a->message, "tagged"));
    app_input_key(a, '"');
    assert_shows(a, "4710");
    assert_hides(a, " 4711 ");
    app_free(a);
}

/* ---- processes ---- */

/* Enter attaches to all that are tagged, one after the other; what fails is left out. */
static void test_processes_are_tagged(void **state) {
    struct app *a = fixture_picker(false);
    (void)state;
    (void)fixture_draw(a, 24, 80);
    fixture_press(a, "Space Space");
    assert_shows(a, "2 tagged");
    long first = 0, second = 0;
    assert_int_equal(sscanf(copied(a, "y"), "%ld\n%ld\n", &first, &second), 2);
    assert_true(first > 0 && second > 0 && first != second);
    app_input_key(a, '"');
    assert_shows(a, "ONLY 2 tagged");
    fixture_press(a, "Enter");
    assert_shows(a, "attaching to 2 processes");
    assert_int_equal(fake_host_take().attach, first);
    assert_true(a->attaches_several);
    assert_int_equal(app_attach_next(a), second);
    assert_int_equal(app_attach_next(a), 0);
    app_attach_done(a, NULL);
    assert_ptr_equal(app_screen_top(a)->def, &screen_threads);
    assert_false(a->attaches_several);
    app_free(a);
    a = fixture_picker(false); /* one of them alone */
    (void)fixture_draw(a, 24, 80);
    fixture_press(a, "j Space Enter");
    assert_false(a->attaches_several);
    assert_int_equal(fake_host_take().attach, second);
    app_free(a);
}

/* One of the tagged ones refuses: nothing is left to be attached to after what is chosen next. */
static void test_refused_process_leaves_none(void **state) {
    struct app *a = fixture_picker(false);
    (void)state;
    (void)fixture_draw(a, 24, 80);
    fixture_press(a, "Space Space Space Enter");
    assert_shows(a, "it belongs to root");
    assert_int_equal(fake_host_take().attach, 0);
    fixture_press(a, "U Home Enter");
    assert_int_equal(fake_host_take().attach, 4242);
    assert_int_equal(app_attach_next(a), 0);
    app_free(a);
}

static void test_targets_are_tagged(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(targets_add(a, i ? 7000 + i : 4242, "serve"), i);
    fixture_press(a, "p j Space Space");
    assert_shows(a, "2 tagged");
    assert_string_equal(copied(a, "y"), "7001\n7002\n");
    app_input_key(a, '"');
    assert_hides(a, "4242 connected");
    assert_shows(a, "7001");
    fixture_press(a, "k Enter");
    assert_int_equal(fake_host_take().show_target, 2);
    targets_show(a, 1);
    fixture_press(a, "p"); /* closed and opened again, it has the same tags and shows no others */
    assert_shows(a, "ONLY 2 tagged");
    assert_string_equal(copied(a, "y"), "7001\n7002\n");
    fixture_press(a, "A Space");
    assert_shows(a, "1 tagged");
    fixture_press(a, "Esc p");
    assert_string_equal(copied(a, "y"), "7002\n");
    app_free(a);
}

/* One target alone: another one in its place was not tagged. */
static void test_tags_end_with_the_target(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    (void)state;
    a->pid = 4242; /* of what it has received */
    fixture_press(a, "p Space");
    assert_shows(a, "1 tagged");
    fixture_press(a, "Esc p");
    assert_shows(a, "1 tagged");
    fixture_press(a, "Esc");
    app_set_pid(a, 4301);
    fixture_press(a, "p");
    assert_hides(a, "tagged");
    app_free(a);
}

/* ---- menus ---- */

static void test_menu_of_timeline(void **state) {
    struct app *a = with_samples();
    (void)state;
    fixture_press(a, "5");
    (void)fixture_draw(a, 24, 80);
    fixture_press(a, "Left Left Left m");
    assert_ptr_equal(app_screen_top(a)->def, &screen_menu);
    assert_shows(a, "open the frame's file");
    assert_shows(a, "show its thread in Threads");
    fixture_press(a, "Esc");
    assert_non_null(strstr(copied(a, "Y"), "4242 MainThread\n  /"));
    fixture_press(a, "j J");
    assert_ptr_equal(app_screen_top(a)->def, &screen_threads);
    assert_shows(a, "Stack of QueueFeederThread");
    fixture_press(a, "5 f");
    assert_ptr_equal(app_screen_top(a)->def, &screen_flame);
    assert_shows(a, "QueueFeeder");
    app_free(a);
}

static void test_menu_of_overview(void **state) {
    struct app *a = with_samples();
    (void)state;
    fixture_press(a, "1");
    fixture_samples(a, 40);
    (void)fixture_draw(a, 50, 200);
    for (int i = 0; i < 24 && !strstr(copied(a, "Y"), "main thread"); i++)
        fixture_press(a, "j");
    fixture_press(a, "J");
    assert_ptr_equal(app_screen_top(a)->def, &screen_threads);
    assert_shows(a, "Stack of MainThread");
    fixture_press(a, "1");
    for (int i = 0; i < 25 && !strstr(copied(a, "y"), "train_step"); i++)
        fixture_press(a, "j");
    assert_non_null(strstr(fake_host.text, "/home/ada/jobs/train.py:"));
    fixture_press(a, "m");
    assert_shows(a, "open the frame's file");
    fixture_press(a, "T");
    assert_ptr_equal(app_screen_top(a)->def, &screen_top);
    assert_shows(a, "train_step");
    app_free(a);
}

/* The right button selects what is there, and opens the menu. */
static void test_menus_by_mouse(void **state) {
    static const char *const screens[] = {"1", "L", "5"};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct app *a = with_samples();
        fixture_press(a, screens[i]);
        (void)fixture_draw(a, 24, 80);
        struct input_event e = {.kind = INPUT_EVENT_MOUSE, .button = INPUT_MENU, .row = 9, .col = 30};
        e.row = i == 1 ? 5 : 9;
        app_input(a, &e);
        assert_ptr_equal(app_screen_top(a)->def, &screen_menu);
        assert_shows(a, "copy");
        app_free(a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tags_are_a_set),
        cmocka_unit_test(test_threads_stay_tagged),
        cmocka_unit_test(test_threads_are_copied),
        cmocka_unit_test(test_exports_of_threads),
        cmocka_unit_test(test_exports_of_functions),
        cmocka_unit_test(test_rows_of_a_result),
        cmocka_unit_test(test_rows_stay_tagged),
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_frames_are_tagged),
        cmocka_unit_test(test_modules_are_tagged),
        cmocka_unit_test(test_trees_are_tagged),
        cmocka_unit_test(test_groups_are_tagged),
        cmocka_unit_test(test_steps_are_tagged),
        cmocka_unit_test(test_processes_are_tagged),
        cmocka_unit_test(test_refused_process_leaves_none),
        cmocka_unit_test(test_targets_are_tagged),
        cmocka_unit_test(test_tags_end_with_the_target),
        cmocka_unit_test(test_menu_of_timeline),
        cmocka_unit_test(test_menu_of_overview),
        cmocka_unit_test(test_menus_by_mouse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
