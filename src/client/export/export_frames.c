/* SPDX-License-Identifier: Apache-2.0 */
/* export_frames: see export_frames.h. Frames are sorted by the identity of their function, so
 * that equal ones stand side by side. */
#include "client/export/export_frames.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/path.h"
#include "base/text.h"

static int export_compare_text(const char *a, const char *b) {
    return a == b ? 0 : !a ? -1 : !b ? 1 : strcmp(a, b);
}

struct export_order {
    const struct stack_counts *counts;
    bool by_function;
};

static int export_compare_functions(const struct export_order *o, uint32_t x, uint32_t y) {
    const struct model_frame *a = stack_counts_frame(o->counts, x), *b = stack_counts_frame(o->counts, y);
    int order = export_compare_text(a->func, b->func);
    if (order == 0)
        order = export_compare_text(a->file, b->file);
    if (order == 0)
        order = export_compare_text(a->module, b->module);
    if (order == 0 && !a->func && !o->by_function)
        order = (a->address > b->address) - (a->address < b->address);
    return order ? order : (a->kind > b->kind) - (a->kind < b->kind);
}

static int export_compare_frames(const void *a, const void *b, void *order) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    int rc = export_compare_functions(order, x, y);
    return rc ? rc : (x > y) - (x < y);
}

int export_frames_init(struct export_frames *x, const struct stack_counts *f, bool by_function) {
    struct export_order how = {f, by_function};
    size_t n = stack_counts_frames(f);
    uint32_t *order = calloc(n + 1, sizeof *order);
    *x = (struct export_frames){.function = calloc(n + 1, sizeof *x->function),
                                .frame = calloc(n + 1, sizeof *x->frame)};
    bool room = order && x->function && x->frame;
    for (size_t i = 0; room && i < n; i++)
        order[i] = (uint32_t)i;
    if (room)
        qsort_r(order, n, sizeof *order, export_compare_frames, &how);
    for (size_t i = 0; room && i < n; i++) {
        if (i == 0 || export_compare_functions(&how, order[i - 1], order[i]) != 0)
            x->frame[x->n_functions++] = order[i];
        x->function[order[i]] = (uint32_t)x->n_functions - 1;
    }
    free(order);
    return room ? 0 : -1;
}

void export_frames_fini(struct export_frames *x) {
    free(x->function);
    free(x->frame);
    *x = (struct export_frames){.n_functions = 0};
}

int export_path_reserve(struct export_path *path, size_t n) {
    return grow_array(&path->at, sizeof *path->at, n, &path->cap);
}

int export_path_set(struct export_path *path, const struct stack_counts *f, uint32_t stack,
                    const uint32_t *map) {
    size_t n = 0;
    for (uint32_t s = stack; s != STACK_COUNTS_NO_STACK; n++)
        stack_counts_stack_frame(f, s, &s);
    if (export_path_reserve(path, n) != 0)
        return -1;
    path->n = n;
    while (n-- > 0) {
        uint32_t frame = stack_counts_stack_frame(f, stack, &stack);
        path->at[n] = map ? map[frame] : frame;
    }
    return 0;
}

void export_name_text(struct strbuf *out, const char *text) {
    char clean[EXPORT_NAME_MAX];
    text_sanitize(clean, sizeof clean, text);
    if (!out->failed)
        strbuf_clear(out);
    strbuf_adds(out, clean);
}

void export_name_function(struct strbuf *out, const struct model_frame *f, bool by_function) {
    if (f->func || f->kind != MODEL_FRAME_NATIVE || (!f->module && (!f->address || by_function))) {
        export_name_text(out, f->func ? f->func : "?");
        return;
    }
    export_name_text(out, f->module ? path_short(f->module) : "");
    if (!by_function)
        strbuf_addf(out, "%s0x%" PRIx64, f->module ? "+" : "", f->address);
}

void export_name_thread(struct strbuf *out, const struct stack_counts *f, int64_t tid) {
    const char *name = stack_counts_thread_name(f, tid);
    export_name_text(out, name ? name : "?");
}
