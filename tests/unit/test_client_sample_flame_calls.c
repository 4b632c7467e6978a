/* SPDX-License-Identifier: Apache-2.0 */
/* Who calls a frame, whom it calls, and which of its lines have the time; and lines of source files, read as a process sees them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/samples/sample_flame.h"
#include "client/symbols/source_text.h"

/* main > a > b > a > b, main > a at another line, main > c > b, and b called by nobody. */
static struct model_frame_def frames[] = {
    {1, {MODEL_FRAME_PYTHON, "main", "/j/m.py", 1}}, {2, {MODEL_FRAME_PYTHON, "a", "/j/m.py", 10}},
    {3, {MODEL_FRAME_PYTHON, "a", "/j/m.py", 11}},   {4, {MODEL_FRAME_PYTHON, "b", "/j/n.py", 20}},
    {5, {MODEL_FRAME_PYTHON, "c", "/j/n.py", 30}},
};
static struct model_stack_def stacks[] = {{1, 0, 1}, {2, 1, 2}, {3, 2, 4}, {4, 3, 2}, {5, 4, 4},
                                          {6, 1, 3}, {7, 1, 5}, {8, 7, 4}, {9, 0, 4}};

static struct sample_store *sample_store_of(const uint32_t *of, size_t n) {
    struct model_sample samples[64];
    struct sample_store *t = sample_store_new();
    assert_non_null(t);
    for (size_t i = 0; i < n; i++)
        samples[i] = (struct model_sample){.tid = 7, .stack_id = of[i], .on_cpu = 1};
    struct model_sample_batch b = {.epoch = 1,
                                   .period_us = 1000,
                                   .frames = frames,
                                   .n_frames = sizeof frames / sizeof frames[0],
                                   .stacks = stacks,
                                   .n_stacks = sizeof stacks / sizeof stacks[0],
                                   .samples = samples,
                                   .n_samples = n};
    assert_true(sample_store_add(t, &b, 100));
    return t;
}

static int64_t samples_of(const struct flame_call *calls, size_t n, const char *func) {
    for (size_t i = 0; i < n; i++)
        if (func ? calls[i].frame && strcmp(calls[i].frame->func, func) == 0 : !calls[i].frame)
            return calls[i].weight.samples;
    return 0;
}

static uint32_t node_of(struct flame *f, const char *func) {
    for (uint32_t i = FLAME_FRAMELESS + 1; i < flame_count(f); i++)
        if (strcmp(flame_frame(f, i)->func, func) == 0)
            return i;
    fail_msg("no node of %s", func);
    return 0;
}

static void test_calls(void **state) {
    static const uint32_t of[] = {5, 5, 5, 3, 6, 6, 8, 9, 9, 2};
    struct sample_store *t = sample_store_of(of, sizeof of / sizeof of[0]);
    struct sample_flame *follower = sample_flame_new();
    struct flame *f = sample_flame_tree(follower);
    struct flame_query q = {.time = FLAME_ALL_TIME};
    struct flame_calls c = {0};
    (void)state;
    assert_int_equal(sample_flame_update(follower, t, &q), 0);
    assert_int_equal(flame_calls_build(&c, follower, node_of(f, "b")), 0);
    assert_int_equal(c.total.samples, 7); /* 5 5 5 3, 8, 9 9: a stack in which it recurs counts once */
    assert_int_equal(c.self.samples, 7);
    assert_int_equal(samples_of(c.callers, c.n_callers, "a"), 4);
    assert_int_equal(samples_of(c.callers, c.n_callers, "c"), 1);
    assert_int_equal(samples_of(c.callers, c.n_callers, NULL), 2);
    assert_int_equal(samples_of(c.callees, c.n_callees, "a"), 3);
    assert_string_equal(c.callers[0].frame->func, "a"); /* the most first */
    assert_int_equal(flame_calls_build(&c, follower, node_of(f, "a")), 0);
    assert_int_equal(c.total.samples, 7);
    assert_int_equal(samples_of(c.callers, c.n_callers, "main"), 7);
    assert_int_equal(samples_of(c.callers, c.n_callers, "b"), 3);
    assert_int_equal(c.n_lines, 2);
    assert_int_equal(c.lines[0].line, 10);
    assert_int_equal(c.lines[0].weight.samples, 5);
    assert_int_equal(c.lines[1].line, 11);
    assert_int_equal(c.lines[1].weight.samples, 2);
    assert_int_equal(flame_calls_build(&c, follower, FLAME_ROOT), 0);
    assert_int_equal(c.n_callers, 0);
    assert_int_equal(samples_of(c.callees, c.n_callees, "main"), 8);
    assert_int_equal(samples_of(c.callees, c.n_callees, "b"), 2);
    q.by = FLAME_BY_MODULE;
    assert_int_equal(sample_flame_update(follower, t, &q), 0);
    assert_int_equal(flame_calls_build(&c, follower, node_of(f, "main")), 0);
    assert_int_equal(c.n_lines, 0);
    flame_calls_fini(&c);
    sample_flame_free(follower);
    sample_store_free(t);
}

static void write_file(const char *path, const char *text, size_t n) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static void test_source(void **state) {
    char folder[] = "/tmp/source-XXXXXX", path[64], link[64];
    static struct source_text s;
    struct err e;
    (void)state;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/a.py", folder);
    (void)snprintf(link, sizeof link, "%s/l.py", folder);
    static const char text[] = "one\n\ttwo\r\n\nfo\0ur\nlast without an end";
    write_file(path, text, sizeof text - 1);
    assert_int_equal(source_read(&s, 0, path, 1, &e), 0);
    assert_int_equal(s.n, 5);
    assert_string_equal(s.lines[0], "one");
    assert_string_equal(s.lines[1], "    two");
    assert_string_equal(s.lines[2], "");
    assert_string_equal(s.lines[3], "fo?ur");
    assert_string_equal(s.lines[4], "last without an end");
    assert_int_equal(source_read(&s, getpid(), path, 4, &e), 0); /* as this process sees it */
    assert_int_equal(s.from, 4);
    assert_int_equal(s.n, 2);
    assert_string_equal(s.lines[0], "fo?ur");
    assert_int_equal(symlink(path, link), 0);
    assert_int_equal(source_read(&s, getpid(), link, 1, &e), 0);
    assert_int_equal(source_read(&s, 0, path, 6, &e), -1);
    assert_non_null(strstr(s.why.text, "has no line 6"));
    assert_int_equal(source_read(&s, 0, folder, 1, &e), -1);
    assert_non_null(strstr(s.why.text, "not a regular file"));
    assert_int_equal(source_read(&s, 0, "<frozen importlib._bootstrap>", 1, &e), -1);
    assert_int_equal(source_read(&s, 0, "relative.py", 1, &e), -1);
    assert_int_equal(source_read(&s, 0, "/nonexistent/x.py", 1, &e), -1);
    assert_non_null(strstr(s.why.text, "/nonexistent/x.py"));
    /* Long lines are cut, and there are never more than there is room for. */
    FILE *f = fopen(path, "w");
    for (int i = 0; i < 1000; i++)
        fprintf(f, "%*d\n", 3 * SOURCE_LINE, i);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(source_read(&s, 0, path, 500, &e), 0);
    assert_int_equal(s.n, SOURCE_MAX_LINES);
    assert_int_equal(strlen(s.lines[SOURCE_MAX_LINES - 1]), SOURCE_LINE - 1);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(mkfifo(path, 0600), 0); /* whoever waits for its other end would wait for ever */
    assert_int_equal(source_read(&s, 0, path, 1, &e), -1);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_calls), cmocka_unit_test(test_source)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
