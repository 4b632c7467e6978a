/* SPDX-License-Identifier: Apache-2.0 */
/* web_table: rows of a table over HTTP; see web_show.h. Stored tables are read from their files
 * like any reader does; tables made by Python are requested. CSV: RFC 4180. */
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "agent/fds.h"
#include "agent/server/virtual_tables.h"
#include "agent/server/http/web_show.h"
#include "base/json.h"
#include "base/model_json.h"
#include "store/ring/ring_dir.h"
#include "store/ring/ring_reader.h"
#include "store/ring/ring_tables.h"

#define TABLE_WAIT_S 10.0
#define TABLE_NOTE 256
#define TABLE_MORE 4096 /* rows beyond the limit, so that rows of the same time stay together */

/* The response being written. */
struct table_out {
    struct web *w;
    struct json j;
    const struct ring_table_def *def;
    const char *names[RING_MAX_COLUMNS];
    bool hidden[RING_MAX_COLUMNS]; /* this client may not see it: its cells are null */
    size_t n;
};

/* ---- writing ---- */

static const char *table_type(enum ring_type type) {
    switch (type) {
    case RING_TIMESTAMP:
        return "timestamp";
    case RING_DOUBLE:
        return "real";
    case RING_TEXT:
    case RING_ENUM:
        return "text";
    default:
        return "integer";
    }
}

static const char *table_type_of(const struct ring_table_def *def, const char *name) {
    for (size_t i = 0; def->columns[i].name; i++)
        if (strcmp(def->columns[i].name, name) == 0)
            return table_type(def->columns[i].type);
    return "unknown";
}

static void table_put_csv(struct strbuf *out, const char *s, size_t len) {
    bool quoted = false;
    for (size_t i = 0; i < len; i++)
        quoted |= s[i] == '"' || s[i] == ',' || s[i] == '\n' || s[i] == '\r';
    if (!quoted) {
        strbuf_add(out, s, len);
        return;
    }
    strbuf_addc(out, '"');
    for (size_t i = 0; i < len; i++) {
        if (s[i] == '"')
            strbuf_addc(out, '"');
        strbuf_addc(out, s[i]);
    }
    strbuf_addc(out, '"');
}

static void table_begin(struct table_out *t) {
    struct strbuf *out = &t->w->out;
    if (t->w->form == WEB_CSV) {
        for (size_t i = 0; i < t->n; i++)
            strbuf_addf(out, "%s%s", i ? "," : "", t->names[i]);
        strbuf_adds(out, "\r\n");
    }
    json_init(&t->j, out, 0);
    if (t->w->form != WEB_JSON)
        return;
    json_object_begin(&t->j);
    json_kv_int(&t->j, "schema_version", MODEL_JSON_SCHEMA_VERSION);
    json_kv_string(&t->j, "table", t->def->name);
    json_key(&t->j, "columns");
    json_array_begin(&t->j);
    for (size_t i = 0; i < t->n; i++) {
        json_object_begin(&t->j);
        json_kv_string(&t->j, "name", t->names[i]);
        json_kv_string(&t->j, "type", table_type_of(t->def, t->names[i]));
        json_object_end(&t->j);
    }
    json_array_end(&t->j);
    json_key(&t->j, "rows");
    json_array_begin(&t->j);
}

static void table_put_cell(struct table_out *t, const struct ring_cell *c, size_t column) {
    struct strbuf *out = &t->w->out;
    if (t->w->form == WEB_CSV) {
        if (column)
            strbuf_addc(out, ',');
        if (c->kind == RING_CELL_INT)
            strbuf_addf(out, "%" PRId64, c->i);
        else if (c->kind == RING_CELL_REAL)
            strbuf_addf(out, "%.17g", c->f);
        else if (c->kind == RING_CELL_TEXT)
            table_put_csv(out, c->s, c->len);
        return;
    }
    json_key(&t->j, t->names[column]);
    if (c->kind == RING_CELL_INT)
        json_int(&t->j, c->i);
    else if (c->kind == RING_CELL_REAL)
        json_number(&t->j, c->f, 6);
    else if (c->kind == RING_CELL_TEXT)
        json_string_of(&t->j, c->s, c->len);
    else
        json_null(&t->j);
}

static void table_put_row(struct table_out *t, const struct ring_cell *cells) {
    bool json = t->w->form != WEB_CSV;
    if (t->w->form == WEB_NDJSON)
        json_init(&t->j, &t->w->out, 0);
    if (json)
        json_object_begin(&t->j);
    for (size_t i = 0; i < t->n; i++)
        table_put_cell(t, &cells[i], i);
    if (json)
        json_object_end(&t->j);
    if (t->w->form != WEB_JSON)
        strbuf_adds(&t->w->out, json ? "\n" : "\r\n");
}

static void table_end(struct table_out *t, bool truncated, const char *note) {
    if (t->w->form == WEB_JSON) {
        json_array_end(&t->j);
        json_kv_bool(&t->j, "truncated", truncated);
        json_kv_string(&t->j, "note", note && note[0] ? note : NULL);
        json_object_end(&t->j);
        strbuf_addc(&t->w->out, '\n');
    }
    t->w->truncated = truncated;
    web_done(t->w);
}

/* ---- stored tables ---- */

/* The selection of rows. */
struct table_request {
    bool since;
    int64_t since_us;
    uint64_t limit, skip, given;
    int64_t last_us;
    bool full;
};

/* Write the rows of a chunk. -1: enough. */
static int table_put_block(struct table_out *t, const struct ring_block *b, struct table_request *request,
                           bool timed) {
    struct ring_cell cells[RING_MAX_COLUMNS];
    for (uint32_t row = 0; row < b->rows; row++) {
        int64_t at = timed ? ring_block_time_us(b, row) : 0;
        if (request->skip > 0) {
            request->skip--;
            continue;
        }
        if (request->since && at <= request->since_us)
            continue;
        if (request->given >= request->limit &&
            (at != request->last_us || request->given >= request->limit + TABLE_MORE)) {
            request->full = true;
            return -1;
        }
        for (size_t i = 0; i < t->n; i++)
            if (t->hidden[i])
                cells[i] = (struct ring_cell){.kind = RING_CELL_NULL};
            else
                ring_block_get(b, i, row, &cells[i]);
        table_put_row(t, cells);
        request->last_us = at;
        request->given++;
    }
    return 0;
}

static void table_put_chunks(struct table_out *t, struct ring_reader *r, struct table_request *request) {
    size_t n;
    const struct ring_info *info = ring_reader_info(r);
    const struct ring_chunk *chunks = ring_reader_chunks(r, &n);
    uint64_t rows = 0;
    for (size_t i = 0; i < n; i++)
        rows += chunks[i].rows;
    if (!request->since && rows > request->limit) { /* only the newest */
        request->skip = rows - request->limit;
        request->full = true;
    }
    for (size_t i = 0; i < n && !t->w->out.failed; i++) {
        struct ring_block b = {.info = NULL};
        if (request->skip >= chunks[i].rows) {
            request->skip -= chunks[i].rows;
            continue;
        }
        if (request->since && info->time_column >= 0 && chunks[i].max_us <= request->since_us)
            continue;
        int rc = ring_reader_load(r, &chunks[i], UINT64_MAX, &b);
        if (rc > 0)
            rc = table_put_block(t, &b, request, info->time_column >= 0);
        else if (rc < 0)
            t->w->out.failed = true;
        ring_block_fini(&b);
        if (rc < 0)
            return;
    }
}

static void table_read(struct web *w, const struct ring_table_def *def, struct ring_reader *r) {
    struct table_out t = {.w = w, .def = def};
    const struct ring_info *info = ring_reader_info(r);
    const struct web_value *since = web_get(w, "since");
    struct table_request request = {.limit = (uint64_t)web_get(w, "limit")->number, .since = since->given};
    if (since->given)
        request.since_us = (int64_t)llround(since->number * 1e6);
    if (since->given && info->time_column < 0) {
        web_fail(w, 400, "since: rows of %s have no time", def->name);
        return;
    }
    t.n = info->n_columns;
    char note[TABLE_NOTE] = "";
    for (size_t i = 0; i < t.n; i++) {
        t.names[i] = info->columns[i].name;
        t.hidden[i] = ring_column_access(def, t.names[i]) > w->may;
        size_t used = strlen(note);
        if (t.hidden[i])
            snprintf(note + used, sizeof note - used, "%s%s", used ? ", " : "", t.names[i]);
    }
    size_t used = strlen(note);
    if (used)
        snprintf(note + used, sizeof note - used, ": not for read-only clients");
    table_begin(&t);
    table_put_chunks(&t, r, &request);
    table_end(&t, request.full, note);
}

/* Meanwhile its descriptor is registered as the agent's. */
static void table_open(struct web *w, const struct ring_table_def *def, const char *dir) {
    char path[RING_DIR_PATH];
    struct err e;
    if (!dir) {
        web_fail(w, 503, "there are no tables yet, or they have no folder: use the WebSocket instead");
        return;
    }
    int n = snprintf(path, sizeof path, "%s/%s" RING_DIR_SUFFIX, dir, def->name);
    int fd = n > 0 && (size_t)n < sizeof path ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
    if (fd >= 0)
        fds_note(fd);
    struct ring_reader *r = fd >= 0 ? ring_reader_open_fd(fd, path, &e) : NULL;
    if (!r || ring_reader_refresh(r, &e) != 0)
        web_fail(w, 503, "%s has no rows that can be read now", def->name);
    else
        table_read(w, def, r);
    if (fd >= 0)
        fds_forget(fd);
    ring_reader_close(r);
}

/* ---- tables made by Python ---- */

static void table_from_wire(const struct wire_value *v, struct ring_cell *c) {
    *c = (struct ring_cell){.kind = RING_CELL_NULL};
    switch (v->kind) {
    case WIRE_VALUE_BOOL:
    case WIRE_VALUE_INT:
        c->kind = RING_CELL_INT;
        c->i = v->i;
        break;
    case WIRE_VALUE_DOUBLE:
        c->kind = RING_CELL_REAL;
        c->f = v->f;
        break;
    case WIRE_VALUE_TEXT:
        c->kind = RING_CELL_TEXT;
        c->s = v->s;
        c->len = (uint32_t)v->len;
        break;
    case WIRE_VALUE_NULL:
        break;
    }
}

static void table_put_virtual(struct web *w, const struct ring_table_def *def, struct wire_rows *rows) {
    struct table_out t = {.w = w, .def = def};
    char names[RING_MAX_COLUMNS][RING_MAX_NAME];
    struct wire_value values[RING_MAX_COLUMNS];
    struct ring_cell cells[RING_MAX_COLUMNS];
    uint64_t limit = (uint64_t)web_get(w, "limit")->number, given = 0;
    while (t.n < RING_MAX_COLUMNS && wire_next_column(rows, &values[0]) > 0) {
        size_t len = values[0].kind == WIRE_VALUE_TEXT ? values[0].len : 0;
        snprintf(names[t.n], sizeof names[t.n], "%.*s", (int)(len < RING_MAX_NAME ? len : RING_MAX_NAME),
                 len ? values[0].s : "");
        t.names[t.n] = names[t.n];
        t.n++;
    }
    if (t.n == 0 && rows->note[0]) { /* Python has not answered */
        web_fail(w, 503, "%s", rows->note);
        return;
    }
    table_begin(&t);
    while (wire_next_row(rows, values, t.n) > 0 && given++ < limit) {
        for (size_t i = 0; i < t.n; i++)
            table_from_wire(&values[i], &cells[i]);
        table_put_row(&t, cells);
    }
    table_end(&t, rows->more || given > limit, rows->note);
}

static void table_ask_virtual(struct web *w, const struct ring_table_def *def) {
    struct wire_rows_ask ask = {.n_args = 0};
    const struct web_value *id = web_get(w, "id");
    struct strbuf b;
    if (web_get(w, "since")->given) {
        web_fail(w, 400, "since: rows of %s are live and have no past", def->name);
        return;
    }
    snprintf(ask.table, sizeof ask.table, "%s", def->name);
    if (id->given) {
        snprintf(ask.args[0].key, sizeof ask.args[0].key, "id");
        ask.args[ask.n_args++].number = (int64_t)id->number;
    }
    strbuf_init(&b, WIRE_MAX_MESSAGE);
    wire_put_rows_ask(&b, local_client_next_id(&w->client), &ask);
    web_ask(w, &b, TABLE_WAIT_S);
}

/* ---- the route ---- */

void web_table_begin(struct web *w) {
    const struct ring_table_def *def = ring_table_find(w->name);
    if (!def) {
        web_fail(w, 404, "there is no such table: /tables lists them");
        return;
    }
    ptrdiff_t i = def - RING_TABLES;
    if (virtual_tables_find_table(def->name))
        table_ask_virtual(w, def);
    else if (i >= RING_TABLE_KEPT)
        web_fail(w, 404, "%s is made by the client from /backtrace, /status and /config: use 'probing query'",
                 def->name);
    else if (web_get(w, "id")->given)
        web_fail(w, 400, "id: %s takes no id", def->name);
    /* its answer has the folder */
    else
        web_status_begin(w);
}

void web_table_take(struct web *w, const struct wire_message *m) {
    const struct ring_table_def *def = ring_table_find(w->name);
    struct model_status s = {0};
    struct wire_rows rows;
    struct err e;
    if (virtual_tables_find_table(def->name)) {
        if (wire_get_rows(m, &rows, &e) != 0)
            web_fail(w, 503, "%s", e.text);
        else
            table_put_virtual(w, def, &rows);
        return;
    }
    if (wire_get_status(m, &s, &e) != 0)
        web_fail(w, 503, "%s", e.text);
    else
        table_open(w, def, s.data_dir);
    model_status_fini(&s);
}
