/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export_folded: one line a stack, root first, frames separated by ';', the weight at the end.
 *
 * What every flame graph program reads (stackcollapse's format). Stacks that look the same become one line; lines are
 * sorted, so two exports can be compared. A thread without Python frames has a line only where threads are shown.
 */
#include "client/export/export_formats.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/text.h"
#include "flame/stack_counts.h"

#define FOLDED_MAX_FRAMES 2048
#define FOLDED_NAME_MAX 512
#define FOLDED_LINE (sizeof(struct folded_line) + 16) /* beside its text */

struct folded_line {
    char *text; /* owned */
    double weight;
};

/* A name as part of a line: drawable, and without the separator. */
static void folded_put_name(struct strbuf *out, const char *name) {
    char clean[FOLDED_NAME_MAX];
    (void)text_sanitize(clean, sizeof clean, name);
    for (char *p = clean; *p; p++)
        if (*p == ';')
            *p = ':';
    (void)strbuf_adds(out, clean);
}

/* "func (module)" or "func (file.c:12)"; "module+0x12ab" where the function is not known. */
static void folded_put_native(struct strbuf *out, const struct model_frame *f, bool by_function) {
    const char *module = f->module ? path_short(f->module) : NULL;
    if (!f->func && (module || f->address)) {
        if (module)
            folded_put_name(out, module);
        if (!by_function || !module)
            (void)strbuf_addf(out, "%s0x%" PRIx64, module ? "+" : "", f->address);
        return;
    }
    folded_put_name(out, f->func ? f->func : "?");
    if (!f->file && !module)
        return;
    (void)strbuf_adds(out, " (");
    folded_put_name(out, f->file ? path_short(f->file) : module);
    if (!by_function && f->file && f->line > 0)
        (void)strbuf_addf(out, ":%d", f->line);
    (void)strbuf_addc(out, ')');
}

void export_put_frame(struct strbuf *out, const struct model_frame *f, bool by_function) {
    if (f->kind == MODEL_FRAME_NATIVE) {
        folded_put_native(out, f, by_function);
        return;
    }
    folded_put_name(out, f->func ? f->func : "?");
    (void)strbuf_adds(out, " (");
    folded_put_name(out, f->file ? path_short(f->file) : "?");
    if (!by_function && f->line > 0)
        (void)strbuf_addf(out, ":%d", f->line);
    (void)strbuf_addc(out, ')');
}

void export_put_process(struct strbuf *out, const struct export_data *d) {
    (void)strbuf_addf(out, "process %" PRId64, d->target->pid);
}

void export_put_thread(struct strbuf *out, const struct export_data *d, int64_t tid) {
    const char *name = stack_counts_thread_name(d->fold, tid);
    (void)strbuf_adds(out, "thread ");
    folded_put_name(out, name ? name : "?");
    (void)strbuf_addf(out, " (%" PRId64 ")", tid);
}

static void folded_put_stack(struct strbuf *out, const struct export_data *d,
                             const struct stack_counts_entry *entry) {
    const struct export_request *r = d->request;
    const struct model_frame *frames[FOLDED_MAX_FRAMES];
    size_t depth = stack_counts_path(d->fold, entry->stack, frames, FOLDED_MAX_FRAMES);
    size_t have = depth < FOLDED_MAX_FRAMES ? depth : FOLDED_MAX_FRAMES;
    if (r->process) {
        export_put_process(out, d);
        (void)strbuf_addc(out, ';');
    }
    if (r->threads) {
        export_put_thread(out, d, entry->tid);
        (void)strbuf_addc(out, ';');
    }
    for (size_t i = 0; i < have; i++) {
        export_put_frame(out, frames[i], r->by_function);
        (void)strbuf_addc(out, ';');
    }
    if (depth > have)
        (void)strbuf_adds(out, "...;");
    if (!out->failed && out->len)
        out->data[--out->len] = '\0'; /* the last separator */
}

static int folded_compare(const void *a, const void *b) {
    return strcmp(((const struct folded_line *)a)->text, ((const struct folded_line *)b)->text);
}

static size_t folded_merge(struct folded_line *lines, size_t n) {
    size_t kept = 0;
    qsort(lines, n, sizeof *lines, folded_compare);
    for (size_t i = 0; i < n; i++) {
        if (kept && strcmp(lines[kept - 1].text, lines[i].text) == 0) {
            lines[kept - 1].weight += lines[i].weight;
            free(lines[i].text);
        } else {
            lines[kept++] = lines[i];
        }
    }
    return kept;
}

/* Lines of all entries that have something to show, `most` bytes of them. 0, or -1: there are more, or no memory (`*n` are made). */
static int folded_collect(const struct export_data *d, size_t most, struct folded_line *lines, size_t *n) {
    size_t bytes = 0;
    struct strbuf line;
    strbuf_init(&line, 0);
    int rc = 0;
    for (size_t i = 0; i < stack_counts_count(d->fold) && rc == 0; i++) {
        const struct stack_counts_entry *entry = stack_counts_get(d->fold, i);
        if (entry->stack == STACK_COUNTS_NO_STACK && !d->request->threads)
            continue;
        strbuf_clear(&line);
        folded_put_stack(&line, d, entry);
        bytes += line.len + FOLDED_LINE;
        char *text = line.failed || bytes > most ? NULL : strdup(strbuf_str(&line));
        if (!text)
            rc = -1;
        else
            lines[(*n)++] = (struct folded_line){
                text, d->request->unit == EXPORT_US ? entry->us : (double)entry->samples};
    }
    strbuf_fini(&line);
    return rc;
}

int export_render_folded(const struct export_data *data, struct strbuf *out, struct err *e) {
    size_t n = 0;
    struct folded_line *lines = calloc(stack_counts_count(data->fold) + 1, sizeof *lines);
    /* Half of what the export may be: there are the lines and what they are put into. */
    int rc = lines ? folded_collect(data, out->limit ? out->limit / 2 : SIZE_MAX, lines, &n) : -1;
    if (rc == 0) {
        n = folded_merge(lines, n);
        for (size_t i = 0; i < n; i++)
            (void)strbuf_addf(out, "%s %.0f\n", lines[i].text, lines[i].weight);
    }
    for (size_t i = 0; lines && i < n; i++)
        free(lines[i].text);
    free(lines);
    out->failed = out->failed || rc != 0;
    if (out->failed)
        return err_set(e, ERR_FAILED, "out of memory for the folded stacks");
    return 0;
}
