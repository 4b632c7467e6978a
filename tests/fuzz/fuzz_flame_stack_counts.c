/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: batches of samples as a hostile agent could send them, through aggregation and out as folded, JSON, SVG, for pprof,
 * speedscope and Perfetto, and as shares of functions.
 *
 * The input is a byte that says what is made of it, then a sequence of records of four bytes: what, and three small numbers; ids
 * collide and dangle on purpose.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "client/export/export.h"
#include "client/export/export_formats.h"
#include "flame/stack_counts.h"
#include "client/samples/sample_store_table.h"
#include "client/samples/thread_runs.h"

#define FUZZ_MAX_ITEMS 256
#define FUZZ_FORMS 6

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz_batch {
    struct model_frame_def frames[FUZZ_MAX_ITEMS];
    struct model_stack_def stacks[FUZZ_MAX_ITEMS];
    struct model_thread_def threads[FUZZ_MAX_ITEMS];
    struct model_sample samples[FUZZ_MAX_ITEMS];
    struct model_sample_batch b;
};

static const char *fuzz_name(uint8_t v) {
    static const char *const names[] = {NULL,
                                        "",
                                        "f",
                                        ";",
                                        "a;b\nc",
                                        "\xff\xfe",
                                        "/x/site-packages/",
                                        "/__init__.py",
                                        "__init__.py",
                                        "//",
                                        "/a/b/__init__.py",
                                        "\x1b[31m",
                                        "/",
                                        "x (y:1) 2",
                                        "</title><script>\xEF\xBF\xBE&"};
    return names[v % (sizeof names / sizeof names[0])];
}

static uint32_t fuzz_id(uint8_t v) { return v == 255 ? UINT32_MAX : v; }

static void fuzz_record(struct fuzz_batch *f, const uint8_t *r) {
    struct model_sample_batch *b = &f->b;
    if (r[0] % 4 == 0 && b->n_frames < FUZZ_MAX_ITEMS) {
        struct model_frame frame = {MODEL_FRAME_PYTHON, fuzz_name(r[2]), fuzz_name(r[3]), (int8_t)r[2]};
        f->frames[b->n_frames++] = (struct model_frame_def){fuzz_id(r[1]), frame};
    } else if (r[0] % 4 == 1 && b->n_stacks < FUZZ_MAX_ITEMS)
        f->stacks[b->n_stacks++] = (struct model_stack_def){fuzz_id(r[1]), fuzz_id(r[2]), fuzz_id(r[3])};
    else if (r[0] % 4 == 2 && b->n_threads < FUZZ_MAX_ITEMS)
        f->threads[b->n_threads++] =
            (struct model_thread_def){(int8_t)r[1], fuzz_name(r[2]), fuzz_name(r[3])};
    else if (b->n_samples < FUZZ_MAX_ITEMS)
        f->samples[b->n_samples++] = (struct model_sample){
            .tid = (int8_t)r[1], .stack_id = fuzz_id(r[2]), .on_cpu = (int8_t)r[3], .torn = r[3] == 7};
}

/* In the order of time, of which the bits of a sample say little. */
static int fuzz_track(struct thread_runs *t, const struct stack_counts *fold,
                      const struct model_sample_batch *b) {
    const uint32_t *entries = stack_counts_batch_entries(fold);
    double us = b->period_us > 0 ? b->period_us : 0;
    for (size_t i = 0; i < b->n_samples; i++) {
        const struct model_sample *s = &b->samples[i];
        uint32_t entry = entries[i] == STACK_COUNTS_NO_ENTRY ? THREAD_RUNS_NO_ENTRY : entries[i];
        double at = (double)(uint8_t)s->on_cpu / 1e4 + (double)i / 1e3;
        if (thread_runs_add(t, &(struct thread_runs_sample){at, us, s->tid, entry, (uint8_t)s->on_cpu}) < 0)
            return -1;
    }
    return 0;
}

/* Every line of a folded export is a stack and a number. */
static void fuzz_check_lines(const char *text) {
    for (const char *line = text; *line;) {
        size_t n = strcspn(line, "\n");
        const char *space = memrchr(line, ' ', n);
        if (line[n] != '\n' || !space || strspn(space + 1, "0123456789") != (size_t)(line + n - space - 1))
            __builtin_trap();
        line += n + 1;
    }
}

static size_t fuzz_count(const char *text, const char *what) {
    size_t n = 0;
    for (; (text = strstr(text, what)); text += strlen(what))
        n++;
    return n;
}

/* Whatever names there are, none of them begins or ends an element. */
static void fuzz_check_svg(const char *text) {
    size_t frames = fuzz_count(text, "<g data-f=\"");
    if (frames == 0 || frames != fuzz_count(text, "</text></g>\n") || fuzz_count(text, "<script") != 1 ||
        fuzz_count(text, "<title>") != frames + 1 || fuzz_count(text, "\xEF\xBF\xBE"))
        __builtin_trap();
}

/* One form: all of them take long, and the next input may choose another one. */
static void fuzz_render(const struct stack_counts *fold, const struct thread_runs *tracks, unsigned form,
                        bool by_function) {
    static int (*const others[])(const struct export_data *data, struct strbuf *out, struct err *e) = {
        export_render_pprof, export_render_speedscope, export_render_perfetto, export_render_json};
    struct model_target target = {.pid = 1, .rank = MODEL_UNKNOWN};
    struct model_snapshot snapshot = {.timestamp = 1};
    struct export_request r = {.threads = true, .process = true};
    struct export_data d = {
        .request = &r, .target = &target, .snapshot = &snapshot, .counts = fold, .elapsed_s = 1};
    struct strbuf out;
    d.runs = tracks;
    if (by_function)
        r = (struct export_request){.by_function = true};
    strbuf_init(&out, 1 << 24);
    if (form == 0) {
        if (export_render_folded(&d, &out, NULL) == 0)
            fuzz_check_lines(strbuf_str(&out));
    } else if (form == 1) {
        if (export_render_svg(&d, &out, NULL) != 0)
            __builtin_trap();
        fuzz_check_svg(strbuf_str(&out));
    } else if (others[form - 2](&d, &out, NULL) != 0) {
        __builtin_trap();
    }
    strbuf_fini(&out);
}

/* Own counts add up to all, no total exceeds it, and every row can be asked for its calls. */
static void fuzz_check_table(const struct sample_store *tally, const struct sample_store_query *q) {
    struct sample_store_table t = {0};
    uint64_t own = 0;
    if (sample_store_table_build(&t, tally, q) != 0)
        return;
    for (size_t i = 0; i < t.n; i++) {
        size_t n;
        own += t.rows[i].own;
        if (t.rows[i].total > t.samples || t.rows[i].own > t.rows[i].total)
            __builtin_trap();
        free(sample_store_table_calls(&t, tally, t.rows[i].id, &n));
    }
    if (own != t.samples)
        __builtin_trap();
    sample_store_table_fini(&t);
}

static void fuzz_check_tables(struct sample_store *tally, unsigned how) {
    for (unsigned i = 0; i < 3; i++) {
        struct sample_store_query q = {
            .window = (enum sample_store_window)i, .by_line = how & 1, .on_cpu = how & 2};
        if (how & 4)
            (void)sample_store_freeze(tally, true);
        fuzz_check_table(tally, &q);
    }
    sample_store_reset(tally, 1e6);
    fuzz_check_table(tally, &(struct sample_store_query){0});
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct fuzz_batch kept;
    struct fuzz_batch *f = &kept;
    if (size < 1)
        return 0;
    unsigned how = *data++;
    size--;
    f->b = (struct model_sample_batch){.epoch = 0};
    struct stack_counts *fold = stack_counts_new();
    struct sample_store *tally = sample_store_new();
    struct thread_runs *tracks = thread_runs_new_sized(64, 256);
    double now_s = 0;
    int rc = fold && tally && tracks ? 0 : -1;
    for (size_t i = 0; rc == 0 && i + 4 <= size; i += 4) {
        fuzz_record(f, data + i);
        if (data[i] < 240 && i + 8 <= size)
            continue;
        f->b.epoch = data[i + 1];
        f->b.period_us = data[i + 2] == 9 ? NAN : data[i + 2];
        f->b.dropped = data[i + 3];
        f->b.frames = f->frames;
        f->b.stacks = f->stacks;
        f->b.threads = f->threads;
        f->b.samples = f->samples;
        rc = stack_counts_add_batch(fold, &f->b) == 0 ? fuzz_track(tracks, fold, &f->b) : -1;
        now_s += data[i + 3] / 8.0;
        if (!sample_store_add(tally, &f->b, now_s))
            rc = -1;
        f->b = (struct model_sample_batch){.epoch = 0};
    }
    if (rc == 0) {
        if (how % 8 < FUZZ_FORMS)
            fuzz_render(fold, tracks, how % 8, how & 8);
        else
            fuzz_check_tables(tally, how >> 4);
    }
    sample_store_free(tally);
    thread_runs_free(tracks);
    stack_counts_free(fold);
    return 0;
}
