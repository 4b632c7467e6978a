/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sql_fold: fold(stack_id), a stack as one line, in the form of folded exports.
 *
 * Reads python.stacks and python.frames of the sample's own target through the indexes that
 * joins use. The lines of a query are cached during it, because the same few stacks recur.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/path.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "store/ring/ring_tables.h"
#include "store/sql/sql_internal.h"

#define SQL_FOLD_DEPTH 2048
#define SQL_FOLD_SLOTS 16384U /* cached lines; a power of two */
#define SQL_FOLD_BYTES ((size_t)32 * 1024 * 1024)
#define SQL_NO_ROW UINT32_MAX

struct sql_fold {
    uint64_t query;
    struct arena text;
    int64_t ids[SQL_FOLD_SLOTS];
    const char *lines[SQL_FOLD_SLOTS]; /* NULL: a free slot */
};

void sql_fold_free(struct sql_fold *f) {
    if (!f)
        return;
    arena_fini(&f->text);
    free(f);
}

static struct sql_fold *sql_fold_of(struct sql *s) {
    if (!s->fold) {
        s->fold = calloc(1, sizeof *s->fold);
        if (s->fold)
            arena_init(&s->fold->text, SQL_FOLD_BYTES);
    }
    if (s->fold && s->fold->query != s->query) {
        arena_fini(&s->fold->text);
        memset(s->fold->lines, 0, sizeof s->fold->lines);
        s->fold->query = s->query;
    }
    return s->fold;
}

/* The row of a table with this value in its first column. */
struct sql_fold_row {
    const struct ring_block *block;
    const struct sql_source *source;
    uint32_t row;
};

static bool sql_fold_find(struct sql *s, struct sql_table *t, int64_t id, struct sql_fold_row *out) {
    struct sql_index *x = sql_index_get(s, t, 0);
    uint32_t number = x ? sql_index_first(x, id) : SQL_NO_ROW, source;
    if (number == SQL_NO_ROW)
        return false;
    out->block = sql_index_row(x, number, &out->row, &source);
    out->source = &t->sources[source];
    return true;
}

static void sql_fold_cell(const struct sql_fold_row *r, int column, struct ring_cell *out) {
    int from = r->source->map[column];
    out->kind = RING_CELL_NULL;
    if (from >= 0)
        ring_block_get(r->block, (size_t)from, r->row, out);
}

/* A name as part of a line: drawable, without the separator; "?" if unknown. */
static void sql_fold_name(const struct sql *s, struct strbuf *out, const struct ring_cell *c, bool file) {
    char name[RING_MAX_TEXT + 1], clean[RING_MAX_TEXT + 1];
    if (c->kind != RING_CELL_TEXT || c->len > RING_MAX_TEXT) {
        strbuf_addc(out, '?');
        return;
    }
    sql_demangle(s, c, name);
    text_sanitize(clean, sizeof clean, file ? path_short(name) : name);
    for (char *p = clean; *p; p++)
        if (*p == ';')
            *p = ':';
    strbuf_adds(out, clean);
}

static void sql_fold_frame(struct sql *s, struct sql_table *frames, int64_t id, struct strbuf *out) {
    struct sql_fold_row r;
    struct ring_cell func, file, line;
    if (!sql_fold_find(s, frames, id, &r)) {
        strbuf_adds(out, "?");
        return;
    }
    sql_fold_cell(&r, RING_FRAMES_FUNC, &func);
    sql_fold_cell(&r, RING_FRAMES_FILE, &file);
    sql_fold_cell(&r, RING_FRAMES_LINENO, &line);
    sql_fold_name(s, out, &func, false);
    strbuf_adds(out, " (");
    sql_fold_name(s, out, &file, true);
    if (line.kind == RING_CELL_INT && line.i > 0)
        strbuf_addf(out, ":%d", (int)line.i);
    strbuf_addc(out, ')');
}

/* The frames of the stack, innermost first; `*whole`: the outermost is among them. */
static size_t sql_fold_path(struct sql *s, struct sql_table *stacks, int64_t id, int64_t *frames,
                            bool *whole) {
    size_t n = 0;
    *whole = false;
    while (n < SQL_FOLD_DEPTH) {
        struct sql_fold_row r;
        struct ring_cell parent, frame;
        if (!sql_fold_find(s, stacks, id, &r))
            return n;
        sql_fold_cell(&r, RING_STACKS_PARENT, &parent);
        sql_fold_cell(&r, RING_STACKS_FRAME, &frame);
        frames[n++] = frame.kind == RING_CELL_INT ? sql_scoped_id(r.source->target, frame.i) : -1;
        if (parent.kind != RING_CELL_INT) {
            *whole = true;
            return n;
        }
        id = sql_scoped_id(r.source->target, parent.i);
    }
    return n;
}

static void sql_fold_line(struct sql *s, int64_t id, struct strbuf *out) {
    struct sql_table *stacks = sql_table_find(s, RING_TABLES[RING_STACKS].name);
    struct sql_table *frames = sql_table_find(s, RING_TABLES[RING_FRAMES].name);
    int64_t path[SQL_FOLD_DEPTH];
    bool whole;
    size_t n = stacks && frames ? sql_fold_path(s, stacks, id, path, &whole) : 0;
    /* the outer frames are gone */
    if (n == 0 || !whole)
        strbuf_adds(out, n == 0 ? "?" : "?;");
    while (n > 0) {
        sql_fold_frame(s, frames, path[--n], out);
        if (n > 0)
            strbuf_addc(out, ';');
    }
}

/* fold(stack_id). */
static void sql_fold_call(sqlite3_context *c, int n, sqlite3_value **v) {
    struct sql *s = sqlite3_user_data(c);
    struct sql_fold *f = sql_fold_of(s);
    (void)n;
    if (sqlite3_value_type(v[0]) == SQLITE_NULL)
        return;
    if (!f || sqlite3_value_type(v[0]) != SQLITE_INTEGER) {
        sqlite3_result_error(c, f ? "fold() takes a stack_id" : "out of memory", -1);
        return;
    }
    int64_t id = sqlite3_value_int64(v[0]);
    size_t slot = (size_t)hash_mix((uint64_t)id) & (SQL_FOLD_SLOTS - 1);
    /* Only the first slot is checked: two stacks that share it are written out each time. */
    if (f->lines[slot] && f->ids[slot] == id) {
        sqlite3_result_text(c, f->lines[slot], -1, SQLITE_TRANSIENT);
        return;
    }
    struct strbuf line;
    strbuf_init(&line, (size_t)4 * 1024 * 1024);
    sql_fold_line(s, id, &line);
    if (line.failed)
        sqlite3_result_error_nomem(c);
    else
        sqlite3_result_text(c, strbuf_str(&line), (int)line.len, SQLITE_TRANSIENT);
    if (!line.failed && !f->lines[slot]) {
        f->lines[slot] = arena_strndup(&f->text, strbuf_str(&line), line.len);
        f->ids[slot] = id;
    }
    strbuf_fini(&line);
}

int sql_fold_register(struct sql *s, struct err *e) {
    if (sqlite3_create_function_v2(s->db, "fold", 1, SQLITE_UTF8, s, sql_fold_call, NULL, NULL, NULL) !=
        SQLITE_OK)
        return sql_db_error(s, e, "cannot add the functions");
    return 0;
}
