/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export_pprof: a gzip'd profile for pprof and what reads its format (google/pprof,
 * proto/profile.proto, whose names and numbers of fields stand below).
 *
 * A sample is one thread in one stack in one state of the GIL and of the garbage collector, with
 * how often it was seen and the time that stands for: all of it, on the CPU, holding the GIL.
 * Threads without a Python frame have no stack to show and are left out, as in folded. Ids are
 * numbers of the counts counted from 1.
 */
#include "client/export/export_formats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/table.h"
#include "client/export/export_frames.h"
#include "flame/stack_counts.h"
#include "client/gzip.h"
#include "client/export/protobuf.h"
#include "version.h"

#define PPROF_MAX_STRINGS ((size_t)1 << 22)
#define PPROF_ADDRESS_MAX (1ULL << 48) /* of a file */

enum {
    PPROF_PROFILE_SAMPLE_TYPE = 1,
    PPROF_PROFILE_SAMPLE = 2,
    PPROF_PROFILE_MAPPING = 3,
    PPROF_PROFILE_LOCATION = 4,
    PPROF_PROFILE_FUNCTION = 5,
    PPROF_PROFILE_STRING_TABLE = 6,
    PPROF_PROFILE_TIME_NANOS = 9,
    PPROF_PROFILE_DURATION_NANOS = 10,
    PPROF_PROFILE_PERIOD_TYPE = 11,
    PPROF_PROFILE_PERIOD = 12,
    PPROF_PROFILE_COMMENT = 13,
    PPROF_PROFILE_DEFAULT_SAMPLE_TYPE = 14,
};
enum { PPROF_VALUE_TYPE = 1, PPROF_VALUE_UNIT = 2 };
enum { PPROF_SAMPLE_LOCATION_ID = 1, PPROF_SAMPLE_VALUE = 2, PPROF_SAMPLE_LABEL = 3 };
enum { PPROF_LABEL_KEY = 1, PPROF_LABEL_STR = 2, PPROF_LABEL_NUM = 3 };
enum {
    PPROF_MAPPING_ID = 1,
    PPROF_MAPPING_MEMORY_LIMIT = 3,
    PPROF_MAPPING_FILENAME = 5,
    PPROF_MAPPING_HAS_FUNCTIONS = 7,
    PPROF_MAPPING_HAS_FILENAMES = 8,
    PPROF_MAPPING_HAS_LINE_NUMBERS = 9,
};
enum {
    PPROF_LOCATION_ID = 1,
    PPROF_LOCATION_MAPPING_ID = 2,
    PPROF_LOCATION_ADDRESS = 3,
    PPROF_LOCATION_LINE = 4
};
enum { PPROF_LINE_FUNCTION_ID = 1, PPROF_LINE_LINE = 2 };
enum {
    PPROF_FUNCTION_ID = 1,
    PPROF_FUNCTION_NAME = 2,
    PPROF_FUNCTION_SYSTEM_NAME = 3,
    PPROF_FUNCTION_FILENAME = 4
};

struct pprof {
    const struct export_data *data;
    const struct stack_counts *counts;
    struct export_frames frames;
    struct strbuf *out;
    struct strbuf name; /* being made */
    /* The table of strings: each once, number 0 is "". */
    char **strings;
    size_t n_strings, cap_strings;
    struct table by_content;
    uint32_t *mappings; /* of each string: 1 + number of the mapping with that file; 0 none yet */
    uint64_t n_mappings;
    bool *is_used; /* of each location, by its id */
    bool failed;
};

/* ---- strings ---- */

static int pprof_grow_strings(struct pprof *p) {
    size_t cap = p->cap_strings ? p->cap_strings * 2 : 256;
    char **strings = p->n_strings < PPROF_MAX_STRINGS ? realloc(p->strings, cap * sizeof *strings) : NULL;
    if (strings)
        p->strings = strings;
    uint32_t *mappings = strings ? realloc(p->mappings, cap * sizeof *mappings) : NULL;
    if (!mappings)
        return -1;
    p->mappings = mappings;
    p->cap_strings = cap;
    return 0;
}

/* Number of a string in the table. */
static uint64_t pprof_string(struct pprof *p, const char *s) {
    uint64_t hash = hash_bytes(s, strlen(s));
    size_t at = TABLE_BEGIN;
    for (uint32_t i; !p->failed && (i = table_next(&p->by_content, hash, &at)) != TABLE_NONE;)
        if (strcmp(p->strings[i], s) == 0)
            return i;
    if (p->failed || table_reserve(&p->by_content, p->n_strings + 1) != 0 ||
        (p->n_strings == p->cap_strings && pprof_grow_strings(p) != 0)) {
        p->failed = true;
        return 0;
    }
    p->strings[p->n_strings] = strdup(s);
    p->failed = !p->strings[p->n_strings];
    if (p->failed)
        return 0;
    p->mappings[p->n_strings] = 0;
    table_add(&p->by_content, hash, (uint32_t)p->n_strings);
    return p->n_strings++;
}

/* The number of the text made in `name`. */
static uint64_t pprof_name(struct pprof *p) {
    p->failed |= p->name.failed;
    return pprof_string(p, strbuf_str(&p->name));
}

static uint64_t pprof_text(struct pprof *p, const char *text) {
    export_name_text(&p->name, text ? text : "");
    return pprof_name(p);
}

/* ---- samples ---- */

static void pprof_put_value_type(struct pprof *p, unsigned field, const char *type, const char *unit) {
    size_t at = protobuf_begin(p->out, field);
    protobuf_put_uint(p->out, PPROF_VALUE_TYPE, pprof_string(p, type));
    protobuf_put_uint(p->out, PPROF_VALUE_UNIT, pprof_string(p, unit));
    protobuf_end(p->out, at);
}

static void pprof_put_label(struct pprof *p, const char *key, uint64_t string) {
    size_t at = protobuf_begin(p->out, PPROF_SAMPLE_LABEL);
    protobuf_put_uint(p->out, PPROF_LABEL_KEY, pprof_string(p, key));
    protobuf_put_uint(p->out, PPROF_LABEL_STR, string);
    protobuf_end(p->out, at);
}

static void pprof_put_number_label(struct pprof *p, const char *key, int64_t number) {
    size_t at = protobuf_begin(p->out, PPROF_SAMPLE_LABEL);
    protobuf_put_uint(p->out, PPROF_LABEL_KEY, pprof_string(p, key));
    protobuf_put_int(p->out, PPROF_LABEL_NUM, number);
    protobuf_end(p->out, at);
}

/* Unknown values have no label. */
static void pprof_put_labels(struct pprof *p, const struct stack_counts_entry *entry) {
    const char *gil = model_gil_name((enum model_gil)entry->gil_state);
    int64_t rank = p->data->target->rank;
    export_name_thread(&p->name, p->counts, entry->tid);
    pprof_put_label(p, "thread", pprof_name(p));
    pprof_put_number_label(p, "tid", entry->tid);
    if (gil)
        pprof_put_label(p, "gil", pprof_string(p, gil));
    if (entry->gc_state != MODEL_UNKNOWN)
        pprof_put_label(p, "gc", pprof_string(p, entry->gc_state == 1 ? "running" : "none"));
    if (rank != MODEL_UNKNOWN)
        pprof_put_number_label(p, "rank", rank);
}

static uint64_t pprof_location_of(const struct pprof *p, uint32_t frame) {
    return 1 + (p->data->request->by_function ? p->frames.function[frame] : frame);
}

static void pprof_put_sample(struct pprof *p, const struct stack_counts_entry *entry) {
    size_t at = protobuf_begin(p->out, PPROF_PROFILE_SAMPLE);
    size_t list = protobuf_begin(p->out, PPROF_SAMPLE_LOCATION_ID);
    for (uint32_t stack = entry->stack; stack != STACK_COUNTS_NO_STACK;) {
        uint64_t location = pprof_location_of(p, stack_counts_stack_frame(p->counts, stack, &stack));
        protobuf_put_packed(p->out, location);
        p->is_used[location] = true;
    }
    protobuf_end(p->out, list);
    list = protobuf_begin(p->out, PPROF_SAMPLE_VALUE);
    protobuf_put_packed(p->out, entry->sums.samples);
    protobuf_put_packed(p->out, (uint64_t)llround(entry->sums.us * 1e3));
    protobuf_put_packed(p->out, (uint64_t)llround(entry->sums.on_cpu_us * 1e3));
    protobuf_put_packed(p->out, (uint64_t)llround(entry->sums.gil_us * 1e3));
    protobuf_end(p->out, list);
    pprof_put_labels(p, entry);
    protobuf_end(p->out, at);
}

/* ---- where ---- */

/* Number of the mapping of a file, made if it is new. All claim to have their names, so pprof
 * looks nothing up. */
static uint64_t pprof_mapping(struct pprof *p, const char *file) {
    uint64_t name = pprof_text(p, file);
    if (p->failed || p->mappings[name])
        return p->failed ? 0 : p->mappings[name];
    size_t at = protobuf_begin(p->out, PPROF_PROFILE_MAPPING);
    p->mappings[name] = (uint32_t)++p->n_mappings;
    protobuf_put_uint(p->out, PPROF_MAPPING_ID, p->n_mappings);
    protobuf_put_uint(p->out, PPROF_MAPPING_MEMORY_LIMIT,
                      PPROF_ADDRESS_MAX); /* addresses are the file's own */
    protobuf_put_uint(p->out, PPROF_MAPPING_FILENAME, name);
    protobuf_put_uint(p->out, PPROF_MAPPING_HAS_FUNCTIONS, 1);
    protobuf_put_uint(p->out, PPROF_MAPPING_HAS_FILENAMES, 1);
    protobuf_put_uint(p->out, PPROF_MAPPING_HAS_LINE_NUMBERS, 1);
    protobuf_end(p->out, at);
    return p->n_mappings;
}

/* The first mapping is the program's; its Python code belongs to it. */
static void pprof_put_location(struct pprof *p, uint64_t id, uint32_t frame) {
    const struct model_frame *f = stack_counts_frame(p->counts, frame);
    bool by_function = p->data->request->by_function;
    uint64_t mapping = f->kind == MODEL_FRAME_NATIVE && f->module ? pprof_mapping(p, f->module) : 1;
    size_t at = protobuf_begin(p->out, PPROF_PROFILE_LOCATION);
    protobuf_put_uint(p->out, PPROF_LOCATION_ID, id);
    protobuf_put_uint(p->out, PPROF_LOCATION_MAPPING_ID, mapping);
    if (f->kind == MODEL_FRAME_NATIVE && f->address && !by_function)
        protobuf_put_uint(p->out, PPROF_LOCATION_ADDRESS, f->address);
    size_t line = protobuf_begin(p->out, PPROF_LOCATION_LINE);
    protobuf_put_uint(p->out, PPROF_LINE_FUNCTION_ID, (uint64_t)p->frames.function[frame] + 1);
    if (f->line > 0 && !by_function)
        protobuf_put_int(p->out, PPROF_LINE_LINE, f->line);
    protobuf_end(p->out, line);
    protobuf_end(p->out, at);
}

static void pprof_put_function(struct pprof *p, uint64_t id, uint32_t frame) {
    const struct model_frame *f = stack_counts_frame(p->counts, frame);
    export_name_function(&p->name, f, p->data->request->by_function);
    uint64_t name = pprof_name(p), file = pprof_text(p, f->file);
    size_t at = protobuf_begin(p->out, PPROF_PROFILE_FUNCTION);
    protobuf_put_uint(p->out, PPROF_FUNCTION_ID, id);
    protobuf_put_uint(p->out, PPROF_FUNCTION_NAME, name);
    protobuf_put_uint(p->out, PPROF_FUNCTION_SYSTEM_NAME, name);
    protobuf_put_uint(p->out, PPROF_FUNCTION_FILENAME, file);
    protobuf_end(p->out, at);
}

/* Locations that samples use, and their functions. */
static int pprof_put_places(struct pprof *p) {
    size_t n = stack_counts_frames(p->counts);
    bool by_function = p->data->request->by_function;
    bool *has_function = calloc(n + 1, sizeof *has_function);
    if (!has_function)
        return -1;
    pprof_mapping(p, p->data->target->exe ? p->data->target->exe : "python");
    for (size_t i = 0; i < (by_function ? p->frames.n_functions : n); i++) {
        uint32_t frame = by_function ? p->frames.frame[i] : (uint32_t)i;
        if (!p->is_used[i + 1])
            continue;
        pprof_put_location(p, i + 1, frame);
        has_function[p->frames.function[frame]] = true;
    }
    for (size_t i = 0; i < p->frames.n_functions; i++)
        if (has_function[i])
            pprof_put_function(p, i + 1, p->frames.frame[i]);
    free(has_function);
    return 0;
}

/* ---- the rest ---- */

static void pprof_put_number(struct pprof *p, unsigned field, double v) {
    if (isfinite(v) && v > 0 && v < 9e18)
        protobuf_put_int(p->out, field, llround(v));
}

static void pprof_put_comments(struct pprof *p) {
    const struct stack_counts_totals *t = stack_counts_get_totals(p->counts);
    protobuf_put_uint(p->out, PPROF_PROFILE_COMMENT, pprof_string(p, "probing-top " PROBING_VERSION));
    export_name_text(&p->name, "");
    strbuf_addf(&p->name, "%llu samples; left out: %llu torn, %llu not defined, %llu lost on the way",
                (unsigned long long)t->samples, (unsigned long long)t->torn, (unsigned long long)t->undefined,
                (unsigned long long)t->dropped);
    protobuf_put_uint(p->out, PPROF_PROFILE_COMMENT, pprof_name(p));
    if (p->data->choice) {
        export_name_text(&p->name, p->data->choice);
        protobuf_put_uint(p->out, PPROF_PROFILE_COMMENT, pprof_name(p));
    }
}

static int pprof_put(struct pprof *p) {
    const struct stack_counts_totals *totals = stack_counts_get_totals(p->counts);
    pprof_string(p, "");
    pprof_put_value_type(p, PPROF_PROFILE_SAMPLE_TYPE, "samples", "count");
    pprof_put_value_type(p, PPROF_PROFILE_SAMPLE_TYPE, "wall", "nanoseconds");
    pprof_put_value_type(p, PPROF_PROFILE_SAMPLE_TYPE, "cpu", "nanoseconds");
    pprof_put_value_type(p, PPROF_PROFILE_SAMPLE_TYPE, "gil", "nanoseconds");
    for (size_t i = 0; i < stack_counts_count(p->counts); i++)
        if (stack_counts_get(p->counts, i)->stack != STACK_COUNTS_NO_STACK)
            pprof_put_sample(p, stack_counts_get(p->counts, i));
    if (pprof_put_places(p) != 0)
        return -1;
    pprof_put_number(p, PPROF_PROFILE_TIME_NANOS, totals->first_s * 1e9);
    pprof_put_number(p, PPROF_PROFILE_DURATION_NANOS, p->data->elapsed_s * 1e9);
    pprof_put_value_type(p, PPROF_PROFILE_PERIOD_TYPE, "wall", "nanoseconds");
    pprof_put_number(p, PPROF_PROFILE_PERIOD, 1e9 / totals->kept_hz);
    pprof_put_comments(p);
    protobuf_put_uint(p->out, PPROF_PROFILE_DEFAULT_SAMPLE_TYPE, pprof_string(p, "wall"));
    for (size_t i = 0; i < p->n_strings; i++)
        protobuf_put_string(p->out, PPROF_PROFILE_STRING_TABLE, p->strings[i]);
    return p->failed || p->out->failed ? -1 : 0;
}

int export_render_pprof(const struct export_data *data, struct strbuf *out, struct err *e) {
    struct strbuf plain;
    struct pprof p = {.data = data, .counts = data->counts, .out = &plain};
    strbuf_init(&plain, out->limit);
    strbuf_init(&p.name, 2 * EXPORT_NAME_MAX);
    p.is_used = calloc(stack_counts_frames(data->counts) + 2, sizeof *p.is_used);
    int rc = export_frames_init(&p.frames, data->counts, data->request->by_function);
    rc = rc == 0 && p.is_used ? pprof_put(&p) : -1;
    out->failed = out->failed || plain.failed;
    rc = rc == 0 ? gzip_pack(&plain, out, e) : err_set(e, ERR_FAILED, "out of memory for the profile");
    for (size_t i = 0; i < p.n_strings; i++)
        free(p.strings[i]);
    free(p.strings);
    table_fini(&p.by_content);
    free(p.mappings);
    free(p.is_used);
    export_frames_fini(&p.frames);
    strbuf_fini(&p.name);
    strbuf_fini(&plain);
    return rc;
}
