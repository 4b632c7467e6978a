/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random keys, clicks, pastes, sizes and data over every screen: nothing crashes (under sanitizers: nothing is read or written that should
 * not be), and what is drawn is sound. The same each time; PROBING_RANDOM_SECONDS makes it go on for so long, PROBING_RANDOM_SEED begins
 * elsewhere.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "tui/core/app.h"
#include "tui/core/app_draw.h"
#include "tui/core/app_feed.h"
#include "tui/core/app_input.h"
#include "tui/core/app_life.h"
#include "tui/core/app_query.h"
#include "tui/core/app_take.h"
#include "tui/keys/input.h"
#include "unit/tui_children.h"
#include "unit/tui_fixture.h"
#include "unit/tui_host.h"
#include "unit/tui_job.h"
#include "unit/tui_samples.h"
#include "unit/tui_sql.h"
#include "unit/tui_tables.h"

#define ROUNDS 12
#define EVENTS 700

struct walk {
    uint64_t random;
    struct app *app;
    enum fixture_kind kind;
    int step;
};

static uint32_t roll(struct walk *w, uint32_t n) {
    w->random = w->random * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)(w->random >> 33) % n;
}

static void press_some_key(struct walk *w) {
    static const char *const names[] = {
        "Up",     "Down",   "Left",   "Right",     "PgUp",    "PgDn",      "Home",   "End",    "Enter",
        "Esc",    "Tab",    "S-Tab",  "F1",        "F2",      "F3",        "F4",     "F5",     "F6",
        "F7",     "F8",     "F9",     "S-F3",      "Del",     "Ins",       "S-Up",   "S-Down", "alt-x",
        "alt-p",  "alt-n",  "ctrl-a", "Backspace", "ctrl-d",  "ctrl-u",    "ctrl-k", "ctrl-y", "ctrl-r",
        "ctrl-w", "ctrl-l", "ctrl-t", "S-Left",    "S-Right", "alt-Enter", "Space"};
    /* Half of the time a letter or a digit; now and then a character that is none of them. */
    uint32_t what = roll(w, 20);
    if (what < 10)
        app_input_key(w->app, ' ' + 1 + roll(w, 0x7f - ' ' - 1));
    else if (what < 11)
        app_input_key(w->app, roll(w, 2) ? 0x8a13 : 0x301);
    else
        app_input_key(w->app, input_key_parse(names[roll(w, sizeof names / sizeof names[0])]));
}

static void do_with_mouse(struct walk *w) {
    struct input_event e = {.kind = INPUT_EVENT_MOUSE,
                            .button = roll(w, 3) == 0   ? INPUT_WHEEL_UP
                                      : roll(w, 2) == 0 ? INPUT_WHEEL_DOWN
                                                        : INPUT_CLICK,
                            .row = (int)roll(w, 60),
                            .col = (int)roll(w, 220)};
    app_input(w->app, &e);
}

static void paste_something(struct walk *w) {
    static const char *const texts[] = {"SELECT * FROM python.samples;", "q\033[2J\r\n\x01\xff", "",
                                        "\xe8\xa8\x93\xe7\xb7\xb4\xcc\x81", "a|b|!c"};
    struct input_event e = {.kind = INPUT_EVENT_PASTE,
                            .text = texts[roll(w, sizeof texts / sizeof texts[0])]};
    app_input(w->app, &e);
}

static void give_snapshot(struct walk *w) {
    struct model_snapshot s;
    if (roll(w, 10) == 0)
        w->kind = (enum fixture_kind)roll(w, FIXTURE_UNKNOWN + 1);
    fixture_snapshot(&s, w->kind, w->step++);
    app_take_snapshot(w->app, &s);
}

static void give_details(struct walk *w) {
    struct model_snapshot s;
    uint32_t what = roll(w, 3);
    if (what == 0)
        fixture_locals(&s);
    else if (what == 1)
        fixture_tasks(&s);
    else
        fixture_native(&s, roll(w, 2) ? MODEL_NATIVE_MERGED : MODEL_NATIVE_UNKNOWN);
    app_take_locals(w->app, &s);
}

static void give_source(struct walk *w) {
    struct source_text *t = calloc(1, sizeof *t);
    assert_non_null(t);
    (void)snprintf(t->path, sizeof t->path, "%s", w->app->source_asked.path);
    t->from = w->app->source_asked.from;
    t->n = (int)roll(w, SOURCE_MAX_LINES + 1);
    for (int i = 0; i < t->n; i++)
        (void)snprintf(t->lines[i], sizeof t->lines[i], "%d \033[2J\xff \xe8\xa8\x93", i);
    if (!t->n)
        (void)err_set(&t->why, ERR_FAILED, "there is nothing");
    app_take_source(w->app, t);
}

static void change_state(struct walk *w) {
    static const enum session_state states[] = {SESSION_CONNECTED, SESSION_RECONNECTING, SESSION_CONNECTED,
                                                SESSION_LOST};
    struct err why = {ERR_LOST, "process 4242 has ended"};
    app_set_state(w->app, states[roll(w, 4)], &why, 2);
}

static void answer_query(struct walk *w) {
    struct querier_answer answer = {.kind = QUERIER_RUN, .error_at = -1};
    if (w->app->query.pending != APP_QUERY_RUN || !w->app->query.running)
        return;
    w->app->query.pending = APP_QUERY_NONE;
    if (roll(w, 3) == 0)
        (void)err_set(&answer.error, ERR_FAILED, "no such column");
    else
        answer.rows = sql_fixture_rows(roll(w, 60));
    app_take_answer(w->app, &answer);
}

static void answer_feeds(struct walk *w) {
    static const enum tables_kind kinds[] = {TABLES_NORMAL, TABLES_LATER, TABLES_NAMES, TABLES_NONE};
    enum app_feed_id id = app_feed_next(w->app, (enum app_feed_id)roll(w, FEED_COUNT));
    if (id == FEED_COUNT)
        return;
    if (roll(w, 5) == 0)
        tables_fail(w->app, id, "could not acquire the GIL in 2 s: \033[2J holds it");
    else
        tables_answer_all(w->app, kinds[roll(w, 4)]);
}

static void give_children(struct walk *w) {
    struct children_list l;
    fixture_children(&l, (int)roll(w, 2));
    app_take_children(w->app, &l);
}

static void draw(struct walk *w) {
    struct grid g;
    int rows = 1 + (int)roll(w, 60), cols = 1 + (int)roll(w, 220);
    assert_int_equal(grid_init(&g, rows, cols), 0);
    app_draw(w->app, &g);
    for (int y = 0; y < rows; y++)
        for (int x = 0; x < cols; x++) {
            const struct grid_cell *c = &g.cells[y * cols + x];
            assert_true(c->role < ROLE_COUNT && c->width <= 2);
            assert_true(c->width == 0 ? c->cp == 0
                                      : c->cp >= ' ' && c->cp != 0x7f && (c->cp < 0x80 || c->cp >= 0xa0));
            if (c->width == 2)
                assert_true(x + 1 < cols && c[1].width == 0);
        }
    grid_fini(&g);
}

static void happen(struct walk *w) {
    struct app *a = w->app;
    uint32_t what = roll(w, 100);
    app_set_time(a, a->now_s + roll(w, 1000) / 1000.0, a->epoch_s + roll(w, 1000) / 1000.0);
    if (what < 60)
        press_some_key(w);
    else if (what < 68)
        do_with_mouse(w);
    else if (what < 70)
        paste_something(w);
    else if (what < 78)
        give_snapshot(w);
    else if (what < 84)
        samples_feed(a, w->kind == FIXTURE_HUGE && roll(w, 4) ? FIXTURE_NORMAL : w->kind,
                     1 + (int)roll(w, 5));
    else if (what < 86)
        give_details(w);
    else if (what < 88)
        give_source(w);
    else if (what < 89)
        change_state(w);
    else if (what < 92)
        answer_query(w);
    else if (what < 93)
        give_children(w);
    else if (what < 94)
        answer_feeds(w);
    else if (what < 95)
        app_tick(a);
    else
        draw(w);
    (void)fake_host_take();
}

static void walk_once(uint64_t seed, int events) {
    struct walk w = {.random = seed, .kind = FIXTURE_NORMAL, .step = 3};
    w.app = roll(&w, 8) == 0   ? fixture_picker(false)
            : roll(&w, 8) == 0 ? job_fixture_picker(false)
            : roll(&w, 3) == 0 ? sql_fixture_app(roll(&w, 2) == 0)
                               : fixture_app(w.kind, 3, roll(&w, 2) == 0);
    assert_non_null(w.app);
    for (int i = 0; i < events; i++)
        happen(&w);
    draw(&w);
    app_free(w.app);
}

static void test_random(void **state) {
    const char *seconds = getenv("PROBING_RANDOM_SECONDS"), *from = getenv("PROBING_RANDOM_SEED");
    uint64_t seed = from ? strtoull(from, NULL, 10) : 1, first = seed;
    double until = (double)clock_mono_ns() / 1e9 + (seconds ? strtod(seconds, NULL) : 0);
    (void)state;
    while (seed < first + ROUNDS || (double)clock_mono_ns() / 1e9 < until) {
        if (getenv("PROBING_RANDOM_TELL"))
            print_message("PROBING_RANDOM_SEED=%llu\n", (unsigned long long)seed);
        walk_once(seed++, EVENTS);
    }
    print_message("%llu events\n", (unsigned long long)(seed - first) * EVENTS);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random)};
    char folder[] = "/tmp/random-XXXXXX";
    (void)setlocale(LC_ALL, "C.UTF-8");
    (void)setenv("TZ", "UTC", 1);
    /* What a screen saves, it saves there. */
    if (!mkdtemp(folder) || setenv("HOME", folder, 1) || setenv("XDG_CONFIG_HOME", folder, 1) ||
        setenv("XDG_STATE_HOME", folder, 1))
        return 1;
    tzset();
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    (void)rmdir(folder);
    return rc;
}
