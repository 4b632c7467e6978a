/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Screens as text for --export txt --screen: each that has a number, of the size that was asked for, fed with samples.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tui/screen_picture.h"
#include "tui/core/app.h"
#include "tui/core/screen.h"
#include "unit/tui_fixture.h"

static const struct app_config config = {.ascii = true};

static size_t lines_of(const char *text) {
    size_t n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

/* Draw what was begun; the text is the buffer's. */
static void render(struct screen_picture *p, struct strbuf *out) {
    struct model_target target;
    struct model_snapshot snapshot;
    struct err e = {0};
    fixture_target(&target, FIXTURE_NORMAL);
    fixture_snapshot(&snapshot, FIXTURE_NORMAL, 1);
    strbuf_init(out, 0);
    assert_int_equal(p->renderer.render(p->renderer.arg, NULL, &target, &snapshot, out, &e), 0);
    model_snapshot_fini(&snapshot);
    model_target_fini(&target);
}

/* main -> train -> {step 3, load 1}, on the CPU. */
static void feed(struct screen_picture *p) {
    struct model_frame_def frames[] = {{1, {MODEL_FRAME_PYTHON, "main", "/job/train.py", 9}},
                                       {2, {MODEL_FRAME_PYTHON, "train", "/job/train.py", 5}},
                                       {3, {MODEL_FRAME_PYTHON, "step", "/job/train.py", 7}},
                                       {4, {MODEL_FRAME_PYTHON, "load", "/job/data.py", 3}}};
    struct model_stack_def stacks[] = {{1, 0, 1}, {2, 1, 2}, {3, 2, 3}, {4, 2, 4}};
    struct model_thread_def threads[] = {{4242, "MainThread", "python"}};
    struct model_sample samples[40];
    struct model_target target;
    for (int i = 0; i < 40; i++)
        samples[i] = (struct model_sample){.tid = 4242, .stack_id = i % 4 ? 3 : 4, .on_cpu = 1};
    struct model_sample_batch b = {.epoch = 1, .period_us = 10000, .frames = frames, .n_frames = 4};
    b.stacks = stacks;
    b.n_stacks = 4;
    b.threads = threads;
    b.n_threads = 1;
    b.samples = samples;
    b.n_samples = 40;
    fixture_target(&target, FIXTURE_NORMAL);
    assert_int_equal(p->renderer.take(p->renderer.arg, &target, &b), 0);
    assert_int_equal(p->renderer.take(p->renderer.arg, &target, &b), 0);
    model_target_fini(&target);
}

static void check_names(void **state) {
    (void)state;
    struct screen_picture p;
    struct err e = {0};
    assert_non_null(strstr(screen_picture_names(), "threads"));
    assert_non_null(strstr(screen_picture_names(), "flame"));
    assert_null(strstr(screen_picture_names(), "help"));
    assert_null(strstr(screen_picture_names(), "sql"));
    assert_int_equal(screen_picture_init(&p, "flme", 30, 80, &config, &e), -1);
    assert_int_equal(e.code, ERR_USAGE);
    assert_string_equal(e.text, "unknown screen 'flme': did you mean 'flame'?");
    screen_picture_fini(&p);
    assert_int_equal(screen_picture_init(&p, "nothing-like-it", 30, 80, &config, &e), -1);
    assert_non_null(strstr(e.text, "give one of "));
    screen_picture_fini(&p);
}

/* Whatever screens there are: as many rows as were asked for, none wider. */
static void check_every_screen(void **state) {
    (void)state;
    for (const struct screen_def *const *s = screen_list; *s; s++) {
        const struct screen_def *def = *s;
        struct screen_picture p;
        struct strbuf out;
        struct err e = {0};
        if (!def->is_tab || def->of_session)
            continue;
        assert_int_equal(screen_picture_init(&p, def->name, 30, 100, &config, &e), 0);
        assert_int_equal(p.renderer.take != NULL, def->needs_samples);
        if (p.renderer.take)
            feed(&p);
        render(&p, &out);
        assert_int_equal(lines_of(strbuf_str(&out)), 30);
        for (const char *line = strbuf_str(&out), *end; *line; line = end + 1) {
            end = strchr(line, '\n');
            assert_true(end - line <= 100);
        }
        assert_non_null(strstr(strbuf_str(&out), "3.11"));
        strbuf_fini(&out);
        screen_picture_fini(&p);
    }
}

static void check_flame(void **state) {
    (void)state;
    struct screen_picture p;
    struct strbuf out;
    struct err e = {0};
    assert_int_equal(screen_picture_init(&p, "flame", 30, 100, &config, &e), 0);
    feed(&p);
    render(&p, &out);
    assert_non_null(strstr(strbuf_str(&out), "main"));
    assert_non_null(strstr(strbuf_str(&out), "step  75.0%"));
    assert_non_null(strstr(strbuf_str(&out), "load  25.0%"));
    strbuf_fini(&out);
    screen_picture_fini(&p);
    /* What was begun and never drawn is given back, too; and only what matches is drawn. */
    struct app_config filtered = {.ascii = true, .filter = "load"};
    assert_int_equal(screen_picture_init(&p, "flame", 1, 1, &filtered, &e), 0);
    feed(&p);
    screen_picture_fini(&p);
    assert_int_equal(screen_picture_init(&p, "top", 30, 100, &filtered, &e), 0);
    feed(&p);
    render(&p, &out);
    assert_non_null(strstr(strbuf_str(&out), "load"));
    assert_null(strstr(strbuf_str(&out), " step "));
    strbuf_fini(&out);
    screen_picture_fini(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_names),
        cmocka_unit_test(check_every_screen),
        cmocka_unit_test(check_flame),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
