/* SPDX-License-Identifier: Apache-2.0 */
/* tui_scenes: see tui_scenes.h. */
#include "unit/tui_scenes.h"

#include <math.h>

#include "unit/tui_diff.h"
#include "unit/tui_fixture.h"
#include "unit/tui_sql.h"
#include "unit/tui_tables.h"
#include "tui/core/app_input.h"
#include "tui/core/app_take.h"

static struct app *scenes_open(bool ascii, const char *keys) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 24, ascii);
    fixture_press(a, keys);
    fixture_samples(a, 40);
    (void)fixture_draw(a, 24, 80);
    return a;
}

struct app *scenes_tagged(bool ascii) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 24, ascii);
    fixture_press(a, "Space j Space");
    return a;
}

struct app *scenes_tagged_timeline(bool ascii) {
    return scenes_open(ascii, "s j s 9");
}

struct app *scenes_tagged_top(bool ascii) {
    struct app *a = scenes_open(ascii, "4");
    fixture_press(a, "j Space j Space");
    app_input_key(a, '"');
    return a;
}

struct app *scenes_tagged_sql(bool ascii) {
    struct app *a = sql_fixture_app(ascii);
    sql_fixture_paste(a,
                      "SELECT timestamp, tid, thread, share, fold(stack_id) AS stack FROM python.samples;");
    fixture_press(a, "Enter");
    sql_fixture_answer(a, sql_fixture_rows(40), 0.0123);
    fixture_press(a, "Esc j j Space j Space");
    return a;
}

struct app *scenes_tagged_log(bool ascii) {
    struct app *a = scenes_open(ascii, "1");
    log_add(a->log, FIXTURE_EPOCH_S + 10, LOG_LEVEL_WARN, "garbage collection: about 90 ms in MainThread");
    log_add_of(a->log, 4301, FIXTURE_EPOCH_S + 30, LOG_LEVEL_BAD, "the target is gone: process 4301 \033[2J");
    fixture_press(a, "L k Space k k Space");
    return a;
}

/* A function that is there twice, and one of those it calls. */
struct app *scenes_tagged_flame(bool ascii) {
    struct app *a = scenes_open(ascii, "3");
    fixture_press(a, "j Space j j Space");
    return a;
}

struct app *scenes_tagged_picker(bool ascii) {
    struct app *a = fixture_picker(ascii);
    fixture_press(a, "Space j Space");
    return a;
}

struct app *scenes_tagged_modules(bool ascii) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, ascii);
    fixture_press(a, "8");
    tables_answer(a, FEED_MODULES, tables_modules(TABLES_NORMAL));
    fixture_press(a, "j j Space");
    return a;
}

struct app *scenes_tagged_modules_only(bool ascii) {
    struct app *a = scenes_tagged_modules(ascii);
    app_input_key(a, '"');
    return a;
}

struct app *scenes_menu_timeline(bool ascii) {
    struct app *a = scenes_tagged_timeline(ascii);
    fixture_press(a, "Left Left Left m");
    return a;
}

struct app *scenes_menu_overview(bool ascii) {
    struct app *a = scenes_open(ascii, "1");
    fixture_press(a, "j j j m");
    return a;
}

struct app *scenes_spans(bool ascii) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 0, ascii);
    fixture_press(a, "5");
    diff_fixture_feed(a, 3, DIFF_FIXTURE_BEFORE);
    diff_fixture_feed(a, 3, DIFF_FIXTURE_NOW);
    (void)fixture_draw(a, 24, 80);
    for (int i = 0; i < 2; i++) {
        fixture_press(a, "End Left Left Left Left s");
        for (int k = 0; k < 15; k++)
            fixture_press(a, "Left");
        fixture_press(a, i ? "Left Left Left Left Left Left Left Left Left Left Left Left Left Left s Left "
                             "Left Left Left Left Left Left Left Left d"
                           : "Enter");
    }
    return a;
}

/* What the agent tells of debuggers, in a status that is like the ones before otherwise. */
static void scenes_hold(struct app *a, struct model_debugger *holds, size_t n) {
    struct model_status s = {.holds = holds, .n_holds = n, .budget_pct = 5};
    app_take_status(a, &s);
}

struct app *scenes_held(bool ascii) {
    struct model_debugger holds[] = {
        {.what = "debug", .state = "listening", .address = "127.0.0.1:5678", .pid = 77, .left_s = NAN},
        {.what = "pause",
         .state = "held",
         .address = "127.0.0.1:3344",
         .pid = 88,
         .left_s = 212.4,
         .used = true}};
    struct app *a = fixture_app(FIXTURE_NORMAL, 24, ascii);
    scenes_hold(a, holds, 2);
    return a;
}

struct app *scenes_kept(bool ascii) {
    struct model_debugger holds[] = {
        {.what = "catch",
         .state = "kept",
         .address = "127.0.0.1:41867",
         .text = "ValueError: \033[2J\xe6\x95\xb0 is no number of a row in batch 1024 of the loader "
                 "\xe8\xa8\x93\xe7\xb7\xb4, nor of one that is to come in MainThread",
         .pid = 88,
         .left_s = 281}};
    struct app *a = scenes_open(ascii, "1");
    scenes_hold(a, holds, 1);
    return a;
}
