/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flame graph as SVG: what is in it and how wide, what is left out, hostile names, colours that stay.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/export/export.h"
#include "client/export/export_formats.h"
#include "flame/flame_svg.h"
#include "flame/stack_counts.h"

struct call_chain {
    const char *path; /* functions, root first, separated by spaces */
    const char *file;
    enum model_frame_kind kind; /* of the last one */
    int64_t tid;
    int samples;
};

/* Adds a batch for each chain. */
static void add(struct stack_counts *f, const struct call_chain *c) {
    struct model_frame_def frames[16];
    struct model_stack_def stacks[16];
    struct model_sample *samples = calloc((size_t)c->samples, sizeof *samples);
    struct model_thread_def thread = {c->tid, "MainThread", "python"};
    static uint32_t epoch;
    char words[256];
    uint32_t n = 0;
    (void)snprintf(words, sizeof words, "%s", c->path);
    for (char *save, *w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save), n++) {
        frames[n] = (struct model_frame_def){n + 1, {MODEL_FRAME_PYTHON, w, c->file, 7}};
        stacks[n] = (struct model_stack_def){n + 1, n, n + 1};
    }
    if (n)
        frames[n - 1].frame.kind = c->kind;
    for (int i = 0; i < c->samples; i++)
        samples[i] = (struct model_sample){.tid = c->tid, .stack_id = n, .on_cpu = 1};
    struct model_sample_batch b = {.epoch = ++epoch, .period_us = 10000, .frames = frames, .n_frames = n};
    b.stacks = stacks;
    b.n_stacks = n;
    b.threads = &thread;
    b.n_threads = 1;
    b.samples = samples;
    b.n_samples = (size_t)c->samples;
    assert_int_equal(stack_counts_add_batch(f, &b), 0);
    free(samples);
}

static char *render(const struct stack_counts *f, const struct export_request *r, const char *cmdline) {
    struct model_target target = {
        .pid = 123, .rank = 3, .cmdline = cmdline, .host = "node7", .python = "3.11.7", .torch = "2.13.0"};
    struct export_data data = {
        .request = r, .target = &target, .counts = f, .elapsed_s = 2, .until_s = 1795000000};
    struct strbuf out;
    struct err e = {0};
    strbuf_init(&out, 0);
    assert_int_equal(export_render_svg(&data, &out, &e), 0);
    char *text = strdup(strbuf_str(&out));
    strbuf_fini(&out);
    return text;
}

static bool has(const char *text, const char *what) { return strstr(text, what) != NULL; }

/* The frames alone. */
static char *frames_of(char *svg) {
    char *from = strstr(svg, "<g id=\"frames\"");
    assert_non_null(from);
    char *to = strstr(from, "\n</g>\n");
    assert_non_null(to);
    *to = '\0';
    return from;
}

static size_t count(const char *text, const char *what) {
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, what)); at += strlen(what))
        n++;
    return n;
}

static struct stack_counts *small_fold(void) {
    struct stack_counts *f = stack_counts_new();
    add(f, &(struct call_chain){"main train step", "/job/train.py", MODEL_FRAME_PYTHON, 7, 30});
    add(f, &(struct call_chain){"main train load", "/job/train.py", MODEL_FRAME_PYTHON, 7, 60});
    add(f, &(struct call_chain){"main", "/job/train.py", MODEL_FRAME_PYTHON, 8, 10});
    add(f, &(struct call_chain){"", "", MODEL_FRAME_PYTHON, 9, 50});
    return f;
}

static void check_frames(void **state) {
    (void)state;
    struct stack_counts *f = small_fold();
    struct export_request r = {.format = "svg"};
    char *svg = render(f, &r, "/usr/bin/python train.py"), *frames;
    assert_true(has(svg, "<title>probing-top: python train.py</title>"));
    assert_true(has(svg, "process 123 on node7, Python 3.11.7, torch 2.13.0, rank 3; 2026-11-"));
    assert_true(has(svg, "for 2.0 s"));
    assert_true(
        has(svg, ">150 samples of 3 threads, each sampled 100.0 times a second; widths are the time"));
    assert_true(has(svg, "Threads without Python are not drawn (0.5000 s): --threads shows them."));
    frames = frames_of(svg);
    /* start, weight, depth, own: microseconds */
    assert_int_equal(count(frames, "<g data-f="), 5);
    assert_true(has(frames, "<g data-f=\"0 1000000 0 0\"><title>all\n"));
    assert_true(has(frames,
                    "<g data-f=\"0 1000000 1 100000\"><title>main (train.py:7)\n1.00 s, 100.00 %; own "
                    "0.1000 s, 10.00 %\n/job/train.py</title>"));
    assert_true(has(frames, "<g data-f=\"0 900000 2 0\"><title>train (train.py:7)"));
    assert_true(has(frames, "<g data-f=\"0 600000 3 600000\"><title>load (train.py:7)"));
    assert_true(has(frames, "<g data-f=\"600000 300000 3 300000\"><title>step (train.py:7)"));
    assert_true(has(frames, "x=\"718.00\" y=\"152\" width=\"354.00\"")); /* step: 10 + 1180 * 0.6 on */
    free(svg);
    r = (struct export_request){
        .format = "svg", .threads = true, .process = true, .by_function = true, .unit = EXPORT_SAMPLES};
    svg = render(f, &r, "python train.py");
    assert_true(has(svg, "widths are samples"));
    frames = frames_of(svg);
    assert_true(has(frames, "<g data-f=\"0 150 1 0\"><title>process 123\n150 samples, 100.00 %"));
    assert_true(has(frames, "2 50\"><title>thread MainThread (9)\n"));
    assert_true(has(frames, "<title>step (train.py)\n30 samples, 20.00 %"));
    free(svg);
    stack_counts_free(f);
}

/* Nothing that a job calls itself gets out of the text it stands in. */
static void check_hostile(void **state) {
    (void)state;
    struct stack_counts *f = stack_counts_new();
    struct export_request r = {.format = "svg", .threads = true};
    add(f, &(struct call_chain){"</title><script>alert(1)</script> \"'&\x01\xff]]> \xEF\xBF\xBE\xEF\xBF\xBF",
                                "/job/<svg/onload=alert(2)>.py", MODEL_FRAME_PYTHON, 7, 10});
    char *svg = render(f, &r, "python </title></text><script>alert(3)</script> &amp;");
    assert_int_equal(count(svg, "<script"), 1);
    assert_int_equal(count(svg, "</script>"), 1);
    assert_int_equal(count(svg, "<svg"), 1);
    assert_int_equal(count(svg, "]]>"), 2); /* of the style and the script, at their ends */
    assert_true(
        has(svg, "python &lt;/title&gt;&lt;/text&gt;&lt;script&gt;alert(3)&lt;/script&gt; &amp;amp;"));
    assert_true(has(svg, "&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert_true(has(svg, "&quot;&#39;&amp;\xEF\xBF\xBD\xEF\xBF\xBD]]&gt;"));
    assert_true(has(svg, "\xEF\xBF\xBD\xEF\xBF\xBD (")); /* U+FFFE and U+FFFF are no characters of XML */
    assert_false(has(svg, "\xEF\xBF\xBE"));
    free(svg);
    stack_counts_free(f);
}

/* The file asks for nothing from anywhere: the two addresses in it are names. */
static void check_self_contained(void **state) {
    (void)state;
    struct stack_counts *f = small_fold();
    struct export_request r = {.format = "svg"};
    char *svg = render(f, &r, "python train.py");
    assert_int_equal(count(svg, "://"), 3);
    assert_int_equal(count(svg, "http://www.w3.org/2000/svg"), 2);
    assert_int_equal(count(svg, "http://www.w3.org/1999/xhtml"), 1);
    assert_false(has(svg, "url(") || has(svg, "@import") || has(svg, "href") || has(svg, "innerHTML"));
    assert_false(has(export_svg_script, "]]>") || has(export_svg_style, "]]>"));
    free(svg);
    stack_counts_free(f);
}

static void color_of(const char *frames, const char *name, char out[3]) {
    const char *at = strstr(frames, name);
    assert_non_null(at);
    at = strstr(at, "<rect class=\"");
    assert_non_null(at);
    (void)snprintf(out, 3, "%.2s", at + strlen("<rect class=\""));
}

/* The colour is the function's, whoever calls it, and its kind shows where it comes from. */
static void check_colors(void **state) {
    (void)state;
    struct stack_counts *f = stack_counts_new(), *g = stack_counts_new();
    struct export_request r = {.format = "svg"};
    const char *torch = "/venv/lib/python3.11/site-packages/torch/optim/adamw.py";
    char a[3], b[3];
    add(f, &(struct call_chain){"main step", "/job/train.py", MODEL_FRAME_PYTHON, 7, 10});
    add(f, &(struct call_chain){"adamw", torch, MODEL_FRAME_PYTHON, 7, 10});
    add(f, &(struct call_chain){"gemm", "/src/gemm.c", MODEL_FRAME_NATIVE, 7, 10});
    add(g, &(struct call_chain){"other other step", "/job/train.py", MODEL_FRAME_PYTHON, 8, 3});
    char *one = render(f, &r, "python"), *two = render(g, &r, "python");
    char *first = frames_of(one), *second = frames_of(two);
    color_of(first, "<title>step", a);
    color_of(second, "<title>step", b);
    assert_string_equal(a, b);
    assert_int_equal(a[0], 'o');
    color_of(first, "<title>adamw", a);
    assert_int_equal(a[0], 'l');
    color_of(first, "<title>gemm", a);
    assert_int_equal(a[0], 'n');
    color_of(first, "<title>all", a);
    assert_string_equal(a, "x0");
    free(one);
    free(two);
    stack_counts_free(f);
    stack_counts_free(g);
}

static void check_small(void **state) {
    (void)state;
    struct stack_counts *f = stack_counts_new();
    struct export_request r = {.format = "svg"};
    add(f, &(struct call_chain){"main big", "/job/a.py", MODEL_FRAME_PYTHON, 7, 99980});
    add(f, &(struct call_chain){"main small deeper deepest", "/job/a.py", MODEL_FRAME_PYTHON, 7, 5});
    add(f, &(struct call_chain){"main just", "/job/a.py", MODEL_FRAME_PYTHON, 7, 15});
    char *svg = render(f, &r, "python");
    assert_true(has(svg, "Left out: 3 frames of less than 0.01 % each, 0.01 % together."));
    assert_false(has(svg, "<title>small") || has(svg, "<title>deep"));
    assert_true(has(svg, "<title>just"));
    assert_true(has(svg, "data-rows=\"3\""));
    free(svg);
    stack_counts_free(f);
    f = stack_counts_new();
    svg = render(f, &r, "python");
    assert_true(has(svg, "There were no samples"));
    assert_int_equal(count(svg, "<g data-f="), 1);
    free(svg);
    stack_counts_free(f);
}

/* More than a browser can move: the threshold is raised, and said. */
static void check_many(void **state) {
    (void)state;
    struct stack_counts *f = stack_counts_new();
    struct export_request r = {.format = "svg", .threads = true};
    for (int i = 0; i < 25000; i++)
        add(f, &(struct call_chain){"main", "/job/a.py", MODEL_FRAME_PYTHON, 1000 + i, i < 100 ? 100 : 1});
    char *svg = render(f, &r, "python");
    assert_true(has(svg, "Left out: 49800 frames of less than 0.01 % each, 71.35 % together."));
    assert_int_equal(count(svg, "<g data-f="), 201);
    free(svg);
    stack_counts_free(f);
    f = stack_counts_new();
    for (int i = 0; i < 9900; i++)
        add(f, &(struct call_chain){"main f g h", "/job/a.py", MODEL_FRAME_PYTHON, 1000 + i, i % 2 ? 1 : 2});
    svg = render(f, &r, "python");
    assert_true(has(svg, "of less than 0.01 % each") || has(svg, "of less than 0.02 % each"));
    assert_true(count(svg, "<g data-f=") <= 20000);
    free(svg);
    stack_counts_free(f);
}

/* Where no style is allowed nor a script, as in what the agent answers by HTTP: the same frames, with colours of their own. */
static void check_plain(void **state) {
    (void)state;
    struct stack_counts *f = small_fold();
    struct model_target target = {.pid = 123, .rank = MODEL_UNKNOWN, .cmdline = "python <train.py>"};
    struct flame_svg picture = {.stacks = {.counts = f, .by_function = true, .in_us = true},
                                .target = &target,
                                .elapsed_s = 2,
                                .threshold_pct = 0.01,
                                .max_frames = 100};
    struct strbuf out;
    strbuf_init(&out, 0);
    assert_int_equal(flame_svg_put(&picture, &out), 0);
    const char *svg = strbuf_str(&out);
    assert_false(has(svg, "<style") || has(svg, "<script") || has(svg, "--threads"));
    assert_true(has(svg, "<title>probing-top: python &lt;train.py&gt;</title>"));
    assert_true(has(svg, "process 123; for 2.0 s"));
    assert_int_equal(count(svg, "<rect class=\"page\" fill=\"#fff\""), 1);
    assert_int_equal(count(svg, "<rect fill=\"hsl("), 4 + 3); /* with the legend */
    assert_int_equal(count(svg, "<rect fill=\"#"), 1);        /* all */
    assert_true(has(svg, "<g data-f=\"600000 300000 3 300000\"><title>step (train.py)"));
    assert_true(has(svg, "Threads without Python are not drawn (0.5000 s).</text>"));
    strbuf_fini(&out);
    strbuf_init(&out, 300);
    assert_int_equal(flame_svg_put(&picture, &out), -1);
    strbuf_fini(&out);
    stack_counts_free(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_frames),         cmocka_unit_test(check_hostile),
        cmocka_unit_test(check_self_contained), cmocka_unit_test(check_colors),
        cmocka_unit_test(check_small),          cmocka_unit_test(check_many),
        cmocka_unit_test(check_plain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
