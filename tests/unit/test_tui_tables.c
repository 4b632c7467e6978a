/* SPDX-License-Identifier: Apache-2.0 */
/* Screens of tables that the job makes: totals against sums made otherwise, folding, marks, and what happens when answers fail. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tui/core/app.h"
#include "tui/core/app_feed.h"
#include "tui/core/app_history.h"
#include "tui/core/app_life.h"
#include "tui/core/app_screen.h"
#include "tui/core/app_take.h"
#include "tui/core/app_arm.h"
#include "tui/core/screen.h"
#include "tui/screens/loader/loader_rows.h"
#include "tui/screens/modules/modules_rows.h"
#include "tui/screens/tensors/tensors_rows.h"
#include "unit/tui_fixture.h"
#include "unit/tui_host.h"
#include "unit/tui_tables.h"

static struct app *tensors_app(void) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    fixture_press(a, "7");
    tables_answer(a, FEED_TENSORS, tables_tensors(TABLES_NORMAL));
    return a;
}

static void assert_shown(struct app *a, const char *text) {
    const char *screen = fixture_draw(a, 40, 160);
    if (!strstr(screen, text))
        fail_msg("'%s' is not in\n%s", text, screen);
}

static void assert_not_shown(struct app *a, const char *text) {
    const char *screen = fixture_draw(a, 40, 160);
    if (strstr(screen, text))
        fail_msg("'%s' is in\n%s", text, screen);
}

/* Of two tensors with one storage it counts once; one without a known storage counts by itself. */
static void test_storages_count_once(void **state) {
    static const char *const lines[] = {"100|1|400", "100|1|400", "200|2|300", "50||", "60||", "7|3|", NULL};
    struct tensor_table t;
    struct result *rows = tables_rows("bytes|storage_id|storage_bytes", lines);
    (void)state;
    tensor_table_init(&t, rows);
    assert_int_equal(t.n, 6);
    assert_int_equal((int)t.bytes, 400 + 300 + 50 + 60 + 7);
    assert_int_equal(t.storages, 5);
    tensor_table_fini(&t);
    result_unref(rows);
    tensor_table_init(&t, NULL);
    assert_int_equal(t.n, 0);
    tensor_table_fini(&t);
}

/* The sums of groups, taken from the nodes that are drawn, by each way to group. */
static void test_groups_add_up(void **state) {
    struct tensor_table t;
    struct tensor_rows r = {0};
    struct outline o = {0};
    struct result *rows = tables_tensors(TABLES_NORMAL);
    (void)state;
    outline_init(&o, &tensor_outline, false);
    tensor_table_init(&t, rows);
    for (int by = 0; by < TENSOR_GROUPS; by++) {
        size_t tensors = 0, counted = 0;
        double bytes = 0;
        tensor_rows_build(&r, &t, NULL, (enum tensor_group)by, &o);
        for (size_t i = 0; i < o.n_nodes; i++) {
            const struct tensor_row *row = o.nodes[i].row;
            tensors += !row->count;
            counted += row->count;
            bytes += row->count ? row->bytes : 0;
        }
        assert_int_equal(tensors, t.n);
        if (by == TENSOR_BY_NOTHING)
            continue;
        assert_int_equal(counted, t.n);
        /* The embedding and the head share: in one group together, but by module and by kind of none. */
        double shared = by == TENSOR_BY_MODULE ? 32768000.0 : 0;
        assert_int_equal((int64_t)bytes, (int64_t)(t.bytes + shared));
    }
    assert_int_equal((int64_t)t.bytes, 32768000LL * 3 + 786432 * 3 + 16384 + 4 + 8192 * 2 + 1024);
    outline_fini(&o);
    tensor_rows_fini(&r);
    tensor_table_fini(&t);
    result_unref(rows);
}

static void test_mark_and_growth(void **state) {
    struct app *a = tensors_app();
    (void)state;
    assert_not_shown(a, "GROWTH");
    fixture_press(a, "'");
    assert_shown(a, "GROWTH");
    app_set_time(a, a->now_s + 6, a->epoch_s + 6);
    struct model_snapshot s;
    fixture_snapshot(&s, FIXTURE_NORMAL, 30);
    app_take_snapshot(a, &s); /* it is due */
    tables_answer(a, FEED_TENSORS, tables_tensors(TABLES_LATER));
    /* Two tensors of 8 KiB came into a group that had one, and lost one of 8 KiB, 4 B, 1 KiB and two of the optimizer. */
    fixture_press(a, "\\ \"history Enter *");
    assert_shown(a, "__main__.history[1]");
    assert_shown(a, "+8.00 KiB");
    app_free(a);
}

static void test_folding(void **state) {
    struct app *a = tensors_app();
    (void)state;
    assert_shown(a, "model.layers.0 (2)");
    assert_not_shown(a, "attn.qkv.weight");
    fixture_press(a, "/ \"qkv Enter"); /* what is folded away is found */
    assert_shown(a, "attn.qkv.weight");
    fixture_press(a, "Esc Left");
    fixture_press(a, "Left");
    assert_not_shown(a, "attn.qkv.weight");
    fixture_press(a, "*");
    assert_shown(a, "attn.mask");
    fixture_press(a, "*");
    assert_not_shown(a, "attn.mask");
    fixture_press(a, "t"); /* all in one list */
    assert_shown(a, "model.layers.1.attn.mask");
    assert_not_shown(a, "(no module)");
    app_free(a);
}

/* What is selected stays so when rows come anew, in another order. */
static void test_selection_stays(void **state) {
    struct app *a = tensors_app();
    (void)state;
    fixture_press(a, "t / \"history Enter Esc r");
    tables_answer(a, FEED_TENSORS, tables_tensors(TABLES_LATER));
    struct screen_pick what = {0};
    struct strbuf one, whole;
    strbuf_init(&one, 1 << 16);
    strbuf_init(&whole, 1 << 16);
    assert_true(app_screen_pick(app_screen_top(a), a, &what, &one, &whole));
    assert_string_equal(strbuf_str(&one), "__main__.history[0]");
    strbuf_fini(&one);
    strbuf_fini(&whole);
    app_free(a);
}

/* A failed answer says why, and leaves what is known; a job without torch says so. */
static void test_failures_are_said(void **state) {
    struct app *a = tensors_app();
    (void)state;
    fixture_press(a, "r");
    tables_fail(a, FEED_TENSORS, "the GIL is held since 12 s by MainThread");
    assert_shown(a, "the GIL is held since 12 s by MainThread");
    assert_shown(a, "s old");
    assert_shown(a, "model.layers.0 (2)");
    app_set_time(a, a->now_s + 30, a->epoch_s + 30);
    fixture_press(a, "r"); /* no rows, and why: as when the GIL could not be acquired */
    struct querier_answer none = {.kind = QUERIER_RUN, .rows = tables_tensors(TABLES_NONE)};
    (void)snprintf(none.note, sizeof none.note,
                   "python.tensors: could not acquire the GIL within 500 ms: hog holds it");
    app_take_feed(a, FEED_TENSORS, &none);
    assert_shown(a, "could not acquire the GIL within 500 ms: hog holds it; what is shown is 30 s old");
    assert_shown(a, "model.layers.0 (2)");
    app_free(a);
    a = fixture_app(FIXTURE_NORMAL, 3, false);
    fixture_press(a, "7");
    assert_shown(a, "reading");
    tables_fail(a, FEED_TENSORS, "the GIL is held since 12 s by MainThread");
    assert_shown(a, "the GIL is held since 12 s by MainThread");
    assert_true(a->data.target.torch != NULL);
    app_free(a);
    a = fixture_app(FIXTURE_UNKNOWN, 1, false);
    a->data.target.torch = NULL;
    fixture_press(a, "7");
    tables_answer(a, FEED_TENSORS, tables_tensors(TABLES_NONE));
    assert_shown(a, "has not imported torch");
    app_free(a);
}

/* Asked for when it is opened, then every 5 s, seldom when it takes long, not while the view is paused, nor by a screen below. */
static void test_when_it_is_asked(void **state) {
    struct app *a = tensors_app();
    const struct app_feed *f = app_feed_get(a, FEED_TENSORS);
    (void)state;
    app_screen_update_all(a);
    assert_false(f->wanted);
    app_set_time(a, a->now_s + 5.5, a->epoch_s + 5.5);
    app_set_paused(a, true);
    assert_false(f->wanted);
    app_set_paused(a, false);
    assert_true(f->wanted && f->again); /* by itself: its picture may wait for the next one */
    fixture_press(a, "r");
    assert_true(f->wanted && !f->again); /* somebody waits for it */
    a->feeds.feeds[FEED_TENSORS].elapsed_s = 0;
    struct querier_answer slow = {.kind = QUERIER_RUN, .rows = tables_tensors(TABLES_NORMAL), .elapsed_s = 2};
    app_take_feed(a, FEED_TENSORS, &slow);
    app_set_time(a, a->now_s + 8, a->epoch_s + 8);
    app_screen_update_all(a);
    assert_false(f->wanted);
    app_set_time(a, a->now_s + 13, a->epoch_s + 13);
    fixture_press(a, "?");
    app_screen_update_all(a);
    assert_false(f->wanted);
    fixture_press(a, "Esc 2 7");
    assert_true(f->wanted);
    app_free(a);
}

/* ---- modules ---- */

static struct app *modules_app(enum tables_kind kind) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    fixture_press(a, "8");
    tables_answer(a, FEED_MODULES, tables_modules(kind));
    return a;
}

static void test_module_tree(void **state) {
    struct app *a = modules_app(TABLES_NORMAL);
    (void)state;
    assert_shown(a, "2 models   11 modules   17.2M parameters");
    assert_shown(a, "  \xe2\x96\xbe layers");
    assert_not_shown(a, "qkv"); /* deeper than what is open at first */
    fixture_press(a, "/ \"qkv Enter");
    assert_shown(a, "        \x20 qkv");
    fixture_press(a, "Esc t");
    assert_shown(a, "model.layers.0.attn.qkv");
    fixture_press(a, "t \\ \"drop Enter"); /* with what holds it, and nothing else */
    assert_shown(a, "layers");
    assert_shown(a, "drop");
    assert_not_shown(a, "embed");
    app_free(a);
}

/* Times and bars only where they are known; Enter shows all that is. */
static void test_module_times(void **state) {
    struct app *a = modules_app(TABLES_NORMAL);
    (void)state;
    assert_shown(a, "FORWARD");
    assert_shown(a, "80.5");
    assert_shown(a, "2 with NaN or Inf");
    fixture_press(a, "Enter");
    assert_shown(a, "own_parameters");
    fixture_press(a, "Esc r");
    tables_answer(a, FEED_MODULES, tables_modules(TABLES_LATER));
    assert_not_shown(a, "FORWARD");
    assert_shown(a, "not traced");
    app_free(a);
}

/* Rows that contradict themselves: a parent that is not there, that is the row itself, paths that come twice. */
static void test_module_rows_may_lie(void **state) {
    struct app *a = modules_app(TABLES_NAMES);
    (void)state;
    assert_shown(a, "x.y");
    assert_shown(a, "Modules 6");
    app_free(a);
    a = modules_app(TABLES_HUGE);
    fixture_press(a, "*");
    assert_shown(a, "Modules 10000");
    fixture_press(a, "G Left Left Left Left");
    (void)fixture_draw(a, 24, 80);
    app_free(a);
}

static void test_counts_for_people(void **state) {
    static const struct {
        double n;
        const char *text;
    } counts[] = {
        {0, "0"},          {7, "7"},        {999, "999"},     {1000, "1.00K"},   {9994, "9.99K"},
        {9996, "10.0K"},   {99960, "100K"}, {999499, "999K"}, {999500, "1.00M"}, {17188864, "17.2M"},
        {1.5e12, "1.50T"}, {5e14, "500T"},  {-1, "?"},        {NAN, "?"},        {1e300, "?"}};
    char text[24];
    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        module_put_count(text, sizeof text, counts[i].n);
        assert_string_equal(text, counts[i].text);
    }
}

/* What is asked of one tensor: only when the key is pressed, and shown for that one alone. */
static void test_values_of_one(void **state) {
    static const char *const values[] = {"1011|[8, 256]|float32|cpu|2048|1|0|3|-2.5|2.5|0.125|1.5|1,2,40,2,1",
                                         NULL};
    static const char *const holders[] = {"1011|__main__.history[0]|global|__main__",
                                          "1011|kept@train|local|train", NULL};
    struct app *a = tensors_app();
    (void)state;
    fixture_press(a, "v");
    assert_non_null(strstr(a->message, "no tensor is selected"));
    assert_false(app_feed_get(a, FEED_TENSOR)->wanted);
    fixture_press(a, "/ \"history Enter Esc Enter");
    assert_shown(a, "v reads its values (8.00 KiB, in slices)");
    assert_false(app_feed_get(a, FEED_TENSOR)->wanted);
    fixture_press(a, "v");
    assert_string_equal(app_feed_get(a, FEED_TENSOR)->text,
                        "SELECT * FROM python.tensor_statistics WHERE id = 1011");
    tables_answer(
        a, FEED_TENSOR,
        tables_rows("id|shape|dtype|device|numel|nan|inf|zeros|min|max|mean|std|histogram", values));
    tables_fail(a, FEED_HOLDERS, "could not acquire the GIL");
    assert_shown(a, "0.125");
    assert_shown(a, "\xe2\x96\x81\xe2\x96\x81\xe2\x96\x88\xe2\x96\x81\xe2\x96\x81"); /* ▁▁█▁▁ */
    assert_shown(a, "could not acquire the GIL");
    fixture_press(a, "v");
    tables_answer(a, FEED_TENSOR, tables_rows("id", NULL));
    tables_answer(a, FEED_HOLDERS, tables_rows("id|holder|kind|root", holders));
    assert_shown(a, "it no longer exists");
    assert_shown(a, "kept@train   in train");
    fixture_press(a, "j");
    assert_not_shown(a, "kept@train");
    app_free(a);
}

/* ---- loaders ---- */

static struct app *loader_app(enum tables_kind kind) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    fixture_press(a, "9");
    tables_answer(a, FEED_LOADERS, tables_loaders(kind));
    tables_answer(a, FEED_LOADER_WORKERS, tables_workers(kind));
    return a;
}

/* The newest row of each loader; those of before are gone; the meters have the last of all rows. */
static void test_loader_rows(void **state) {
    struct loader_rows r = {0};
    struct outline o = {.open_depth = 1};
    struct result *loaders = tables_loaders(TABLES_NORMAL), *workers = tables_workers(TABLES_NORMAL);
    (void)state;
    outline_init(&o, &loader_outline, false);
    loader_rows_build(&r, loaders, workers, &o);
    assert_int_equal(r.n_loaders, 2);
    assert_int_equal(r.n, 4);
    assert_int_equal(r.items[0].loader, 9001);
    assert_int_equal((int)r.items[0].ready, 0);
    assert_int_equal((int)loader_capacity(&r.items[0]), 4);
    assert_int_equal(r.items[0].waits->count, 60);
    assert_true(fabs(meter_max(r.items[0].waits, 60, 0) - 88.5) < 1e-9);
    assert_true(fabs(meter_mean(r.items[0].readies, 10) - 0) < 1e-9);
    assert_true(fabs(meter_mean(r.items[0].readies, 20) - 0.5) < 1e-9);
    assert_true(isnan(loader_capacity(&r.items[1])));
    assert_ptr_equal(loader_of_row(&r, &r.items[3]), &r.items[0]);
    outline_fini(&o);
    loader_rows_fini(&r);
    result_unref(loaders);
    result_unref(workers);
}

static void test_loader_screen(void **state) {
    struct app *a = loader_app(TABLES_NORMAL);
    (void)state;
    assert_shown(a, "TextDataset   no batch is ready, 4 are being made   waiting 88.5 ms for a batch");
    assert_shown(a, "tokenize");
    assert_shown(a, "dead"); /* one of its workers */
    assert_shown(a, "ready 0");
    assert_not_shown(a, "Before");
    fixture_press(a, "G");
    assert_shown(a, "the training makes its batches itself");
    fixture_press(a, "Esc"); /* it lies over the screen before */
    assert_string_equal(app_screen_top(a)->def->name, "threads");
    app_free(a);
    a = loader_app(TABLES_NONE);
    assert_shown(a, "no DataLoader is iterated over now");
    app_free(a);
}

/* Opened while the view is paused: what comes first is taken, and so are the workers, which come after it; no more then. */
static void test_loader_while_paused(void **state) {
    static const char columns[] =
        "timestamp|loader|workers|prefetch|outstanding|ready|sent|received|wait_ms|batches|dataset";
    static const char *const turns[] = {"1700000000.25|7|2|2|2|2|20|16|31.9|32|Items", NULL};
    static const char *const all[] = {"1700000000.25|7|2|2|4|4|20|16|2.8|32|Items", NULL};
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    (void)state;
    app_set_paused(a, true);
    fixture_press(a, "9");
    tables_answer(a, FEED_LOADERS, tables_loaders(TABLES_NORMAL));
    assert_not_shown(a, "worker 1");
    tables_answer(a, FEED_LOADER_WORKERS, tables_workers(TABLES_NORMAL));
    assert_shown(a, "worker 1");
    assert_shown(a, "    5151");
    fixture_press(a, "r");
    tables_answer(a, FEED_LOADERS, tables_rows(columns, turns));
    assert_not_shown(a, "Items");
    app_set_paused(a, false);
    assert_shown(a, "Items   2 of 4 batches are ready   waiting 31.9 ms for the next one");
    fixture_press(a, "r");
    tables_answer(a, FEED_LOADERS, tables_rows(columns, all));
    assert_shown(a, "Items   4 of 4 batches are ready   waiting 2.8 ms for a batch");
    app_free(a);
}

/* ---- watched values ---- */

static void test_watch_turns(void **state) {
    static const struct {
        const char *before, *expr, *after;
        bool on;
    } cases[] = {
        {"", "loss@train", "exprs=loss@train", true},
        {"off", "loss@train", "exprs=loss@train", true},
        {"exprs=loss@train", "acc@eval", "exprs=loss@train,acc@eval", true},
        {"exprs=loss@train", "loss@train", "off", false},
        {"on", "loss@train", "on,exprs=loss@train", true},
        {"on,exprs=loss@train", "acc@eval", "on,exprs=loss@train,acc@eval", true},
        {"on,exprs=loss@train,acc@eval", "loss@train", "on,exprs=acc@eval", false},
        {"on,exprs=loss@train", "loss@train", "on", false},
        {"on,exprs=x['a,b'],loss", "y@f", "on,exprs=x['a,b'],loss,y@f", true},
    };
    char value[256], small[24];
    struct err e;
    bool on;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(app_arm_turn_watch(cases[i].before, cases[i].expr, value, sizeof value, &on, &e), 0);
        assert_string_equal(value, cases[i].after);
        assert_int_equal(on, cases[i].on);
    }
    assert_int_equal(
        app_arm_turn_watch("on,exprs=loss@train", "accuracy@evaluate", small, sizeof small, &on, &e), -1);
    assert_int_equal(app_arm_turn_watch("on", ".0@<listcomp>", value, sizeof value, &on, &e), -1);
    assert_int_equal(app_arm_turn_watch("nonsense", "x", value, sizeof value, &on, &e), -1);
}

/* From the key to what is set in the agent. */
static void test_watch_a_local(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 4, false);
    struct model_snapshot s;
    struct model_setting setting = {.key = "probing.torch_profiling", .value = "on,exprs=lr@f"};
    struct model_status status = {.settings = &setting, .n_settings = 1};
    (void)state;
    fixture_press(a, "w");
    assert_non_null(strstr(a->message, "no variable is selected"));
    fixture_press(a, "Enter j j j j j v");
    fixture_locals(&s);
    app_take_locals(a, &s);
    (void)fixture_draw(a, 40, 100);
    fixture_press(a, "o w");
    struct fake_asked w = fake_host_take();
    assert_true(w.status);
    assert_string_equal(w.config.key, "");
    app_take_status(a, &status);
    w = fake_host_take();
    assert_string_equal(w.config.key, "probing.torch_profiling");
    assert_non_null(strstr(w.config.value, "on,exprs=lr@f,"));
    assert_non_null(strstr(a->message, "at optimizer steps within it: training_logs"));
    a->data.target.python = "3.12.1";
    fixture_press(a, "w");
    app_take_status(a, &status);
    assert_non_null(strstr(a->message, "at steps and returns: training_logs"));
    (void)fake_host_take();
    app_take_status(a, &status); /* once */
    assert_string_equal(fake_host_take().config.key, "");
    a->row_actions.readonly = true;
    fixture_press(a, "w");
    assert_non_null(strstr(a->message, "--readonly"));
    app_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_storages_count_once), cmocka_unit_test(test_groups_add_up),
        cmocka_unit_test(test_mark_and_growth),     cmocka_unit_test(test_folding),
        cmocka_unit_test(test_selection_stays),     cmocka_unit_test(test_failures_are_said),
        cmocka_unit_test(test_when_it_is_asked),    cmocka_unit_test(test_module_tree),
        cmocka_unit_test(test_module_times),        cmocka_unit_test(test_module_rows_may_lie),
        cmocka_unit_test(test_counts_for_people),   cmocka_unit_test(test_watch_turns),
        cmocka_unit_test(test_watch_a_local),       cmocka_unit_test(test_loader_rows),
        cmocka_unit_test(test_loader_screen),       cmocka_unit_test(test_loader_while_paused),
        cmocka_unit_test(test_values_of_one),
    };
    (void)setlocale(LC_ALL, "C.UTF-8");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
