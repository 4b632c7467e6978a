/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field: which members of the model travel, under which names; the one table both ends use.
 *
 * A struct travels as a map (one key a field); an array of structs as a map of columns (one key
 * a field, its value an array with an element a row), whose strings are numbers into the
 * message's table of strings. To carry a new member, add a row in field_tables.c: readers that
 * do not know it pass it over, readers that miss it take it as unknown. For src/wire, and for
 * what makes such structs of something else by their tables. Any thread.
 */
#ifndef WIRE_FIELD_H
#define WIRE_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "wire/access.h"
#include "wire/codec.h"
#include "wire/intern.h"
#include "wire/wire.h"

#define FIELD_MAX 64 /* fields of one table */

/* How a member is written; the comments give the value of unknown (nil or a missing key). */
enum field_kind {
    FIELD_BOOL,   /* false */
    FIELD_CHAR,   /* '?' */
    FIELD_INT8,   /* MODEL_UNKNOWN */
    FIELD_INT,    /* 0 */
    FIELD_INT64,  /* MODEL_UNKNOWN */
    FIELD_UINT32, /* 0 */
    FIELD_UINT64, /* 0 */
    FIELD_DOUBLE, /* NAN */
    FIELD_STR,    /* NULL */
    FIELD_ENUM,   /* 0, for values above max too */
};

struct field {
    const char *key;
    enum field_kind kind;
    uint32_t max;            /* FIELD_ENUM: largest value */
    bool sparse;             /* left out of a message in which it has no known value */
    enum wire_access access; /* needed to see it */
    size_t offset;
};

struct field_table {
    const char *name; /* for error texts */
    const struct field *fields;
    size_t n;
    size_t stride; /* size of the struct */
    size_t shown;  /* bytes of a row when shown, without its texts; see struct field_strings */
    bool repeats;  /* rows mostly equal the earlier row with the same value in field `cycle` */
    size_t cycle;
};

/* The locals that follow in a snapshot: `count` of them, of the frame at `depth` of thread
 * number `thread`. */
struct field_locals {
    uint32_t thread, depth, count;
    bool truncated;
};

extern const struct field_table FIELD_TARGET, FIELD_PROCESS, FIELD_SNAPSHOT, FIELD_THREADS, FIELD_FRAMES,
    FIELD_BATCH, FIELD_FRAME_DEFS, FIELD_STACK_DEFS, FIELD_THREAD_DEFS, FIELD_SAMPLES, FIELD_STATUS,
    FIELD_LOCALS_FRAMES, FIELD_LOCALS, FIELD_TASKS, FIELD_TABLES, FIELD_SETTINGS, FIELD_LEASES, FIELD_DOORS,
    FIELD_HOLDS, FIELD_DEBUG, FIELD_PDB, FIELD_DEBUGPY, FIELD_PAUSED, FIELD_PAUSED_THREADS, FIELD_CAUGHT;

/* Write the t->n keys and values of one struct; the caller has written the map's head. */
void field_write_pairs(struct strbuf *out, const struct field_table *t, const void *row);

/* Write the head of a map of t->n + `extra` columns, and the first t->n; the caller writes the
 * others next. */
void field_write_columns(struct strbuf *out, const struct field_table *t, const void *rows, size_t n,
                         struct intern *strings, size_t extra);

/* Make unknown every field that access level `may` does not include. */
void field_hide(const struct field_table *t, void *rows, size_t n, enum wire_access may);

/* Intern the strings of rows that field_write_columns will write. */
void field_intern_columns(const struct field_table *t, const void *rows, size_t n, struct intern *strings);

/* Fill one struct from the map at `map` (a missing one, .at NULL, is all unknown). Strings go to
 * the arena. 0 or -1. */
int field_read_pairs(struct codec_cursor map, const struct field_table *t, void *row, struct arena *arena,
                     struct err *e);

/* A few bytes can name a long text many times. This is the limit of all texts and rows of a
 * message at the size at which they are shown. The largest honest answers, stacks of 4,000
 * threads 100 deep, take about 100 MB as JSON (tests/unit/test_wire_budget.c). */
#define FIELD_MAX_SHOWN ((size_t)144 * 1024 * 1024)

/* The strings of a message, and how much of them was used. */
struct field_strings {
    const char **list;
    size_t n;
    size_t shown; /* bytes so far; above FIELD_MAX_SHOWN the message is refused */
};

/* Bytes of a text in its longest form, as JSON, counted up to FIELD_MAX_SHOWN. NULL takes none. */
size_t field_shown(const char *text);

/* Account for another text, or so many bytes. 0, or -1 when it is too much. */
int field_show(struct field_strings *strings, size_t bytes);

/* The table of the params of debug, pause or catch, and of the answer. */
const struct field_table *field_debug_params(enum wire_method method);
const struct field_table *field_debug_answer(enum wire_method method);

int field_read_strings(struct codec_cursor array, struct field_strings *out, struct arena *arena,
                       struct err *e);

/* Allocate and fill the rows of a map of columns; a missing map has none. The first column of
 * the table gives the number of rows, and all others must agree. 0 or -1. */
int field_read_columns(struct codec_cursor map, const struct field_table *t, struct field_strings *strings,
                       struct arena *arena, void **rows, size_t *n, struct err *e);

/* "not valid" errors, for all of src/wire. -1. */
int field_fail(struct err *e, const char *table, const char *key);
int field_fail_memory(struct err *e, const char *table);
int field_fail_shown(struct err *e, const char *table);

#endif
