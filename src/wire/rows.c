/* SPDX-License-Identifier: Apache-2.0 */
/* rows: the request `rows` and its answer; see wire.h. A row is an array of values, so it needs
 * no names. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "wire/codec.h"
#include "wire/field.h"
#include "wire/message.h"
#include "wire/wire.h"

/* ---- the question ---- */

int wire_put_rows_ask(struct strbuf *out, uint32_t id, const struct wire_rows_ask *a) {
    codec_write_array(out, 4);
    codec_write_uint(out, WIRE_REQUEST);
    codec_write_uint(out, id);
    codec_write_str(out, wire_method_name(WIRE_ROWS));
    codec_write_map(out, a->text ? 3 : 2);
    codec_write_str(out, "table");
    codec_write_str(out, a->table);
    if (a->text) {
        codec_write_str(out, "text");
        codec_write_strn(out, a->text, a->text_len);
    }
    codec_write_str(out, "args");
    codec_write_map(out, a->n_args);
    for (size_t i = 0; i < a->n_args; i++) {
        codec_write_str(out, a->args[i].key);
        if (a->args[i].is_text)
            codec_write_str(out, a->args[i].text);
        else
            codec_write_int(out, a->args[i].number);
    }
    return out->failed ? -1 : 0;
}

static int rows_text(const struct codec_token *t, char *buf, size_t cap) {
    if (t->type != CODEC_STR || t->count >= cap || memchr(t->bytes, '\0', t->count))
        return -1;
    memcpy(buf, t->bytes, t->count);
    buf[t->count] = '\0';
    return 0;
}

static int rows_get_arg(struct codec_cursor *c, struct wire_rows_arg *arg) {
    struct codec_token t;
    if (codec_read(c, &t) != 0 || rows_text(&t, arg->key, sizeof arg->key) != 0 || codec_read(c, &t) != 0)
        return -1;
    arg->is_text = t.type == CODEC_STR;
    return arg->is_text ? rows_text(&t, arg->text, sizeof arg->text)
                        : codec_token_int(&t, INT64_MIN, INT64_MAX, &arg->number);
}

int wire_get_rows_ask(const struct wire_message *m, struct wire_rows_ask *out, struct err *e) {
    static const char *const keys[] = {"table", "args", "text"};
    struct codec_cursor value[3] = {{.at = NULL}, {.at = NULL}, {.at = NULL}};
    struct codec_token t;
    size_t n = 0;
    *out = (struct wire_rows_ask){.table = ""};
    if (wire_message_method(m) != WIRE_ROWS)
        return err_set(e, ERR_FAILED, "message is not valid: a request without rows");
    if (!m->body.at || codec_find(m->body, keys, 3, value) != 0 || !value[0].at ||
        codec_read(&value[0], &t) != 0 || rows_text(&t, out->table, sizeof out->table) != 0)
        return field_fail(e, "rows", keys[0]);
    if (value[1].at && (codec_read_map(&value[1], &n) != 0 || n > WIRE_ROWS_ARGS))
        return field_fail(e, "rows", keys[1]);
    for (; out->n_args < n; out->n_args++)
        if (rows_get_arg(&value[1], &out->args[out->n_args]) != 0)
            return field_fail(e, "rows", keys[1]);
    if (value[2].at && (codec_read(&value[2], &t) != 0 || t.type != CODEC_STR))
        return field_fail(e, "rows", keys[2]);
    if (value[2].at) {
        out->text = t.bytes;
        out->text_len = t.count;
    }
    return 0;
}

/* ---- the answer ---- */

int wire_add_row(struct strbuf *rows, const struct wire_value *values, size_t n) {
    codec_write_array(rows, n);
    for (size_t i = 0; i < n; i++)
        switch (values[i].kind) {
        case WIRE_VALUE_NULL:
            codec_write_nil(rows);
            break;
        case WIRE_VALUE_BOOL:
            codec_write_bool(rows, values[i].i != 0);
            break;
        case WIRE_VALUE_INT:
            codec_write_int(rows, values[i].i);
            break;
        case WIRE_VALUE_DOUBLE:
            codec_write_double(rows, values[i].f);
            break;
        case WIRE_VALUE_TEXT:
            codec_write_strn(rows, values[i].s, values[i].len);
            break;
        }
    return rows->failed ? -1 : 0;
}

int wire_put_rows(struct strbuf *out, uint32_t id, const struct wire_rows *r) {
    codec_write_array(out, 4);
    codec_write_uint(out, WIRE_RESPONSE);
    codec_write_uint(out, id);
    codec_write_nil(out);
    codec_write_map(out, 4);
    codec_write_str(out, "columns");
    if (r->columns_len)
        strbuf_add(out, r->columns, r->columns_len);
    else
        codec_write_array(out, 0);
    codec_write_str(out, "rows");
    codec_write_array(out, r->n_rows);
    strbuf_add(out, r->rows, r->rows_len);
    codec_write_str(out, "more");
    codec_write_bool(out, r->more);
    codec_write_str(out, "note");
    codec_write_str(out, r->note);
    return out->failed ? -1 : 0;
}

int wire_get_rows(const struct wire_message *m, struct wire_rows *out, struct err *e) {
    static const char *const keys[] = {"columns", "rows", "more", "note"};
    struct codec_cursor value[4], end;
    struct codec_token t;
    *out = (struct wire_rows){.note = ""};
    if (m->type != WIRE_RESPONSE || !m->body.at || m->error)
        return err_set(e, ERR_FAILED, "message is not valid: it holds no rows");
    memset(value, 0, sizeof value);
    if (codec_find(m->body, keys, 4, value) != 0)
        return field_fail(e, "rows", keys[0]);
    end = value[0];
    if (!value[0].at || codec_read_array(&value[0], &out->n_columns) != 0 || codec_skip(&end) != 0)
        return field_fail(e, "rows", keys[0]);
    out->columns = value[0].at;
    out->columns_len = (size_t)(end.at - value[0].at);
    end = value[1];
    if (!value[1].at || codec_read_array(&value[1], &out->n_rows) != 0 || codec_skip(&end) != 0)
        return field_fail(e, "rows", keys[1]);
    out->rows = value[1].at;
    out->rows_len = (size_t)(end.at - value[1].at);
    out->more = value[2].at && codec_read(&value[2], &t) == 0 && t.type == CODEC_BOOL && t.b;
    if (value[3].at && codec_read(&value[3], &t) == 0 && t.type == CODEC_STR)
        snprintf(out->note, sizeof out->note, "%.*s",
                 (int)(t.count < sizeof out->note ? t.count : sizeof out->note), t.bytes);
    return 0;
}

static int rows_value(struct codec_cursor *c, struct wire_value *v) {
    struct codec_token t;
    if (codec_read(c, &t) != 0)
        return -1;
    *v = (struct wire_value){.kind = WIRE_VALUE_NULL};
    switch (t.type) {
    case CODEC_NIL:
        return 0;
    case CODEC_BOOL:
        *v = (struct wire_value){.kind = WIRE_VALUE_BOOL, .i = t.b};
        return 0;
    case CODEC_INT:
    case CODEC_UINT:
        v->kind = WIRE_VALUE_INT;
        return codec_token_int(&t, INT64_MIN, INT64_MAX, &v->i);
    case CODEC_DOUBLE:
        *v = (struct wire_value){.kind = WIRE_VALUE_DOUBLE, .f = t.f};
        return 0;
    case CODEC_STR:
        *v = (struct wire_value){.kind = WIRE_VALUE_TEXT, .s = t.bytes, .len = t.count};
        return 0;
    default:
        return -1;
    }
}

int wire_next_column(struct wire_rows *r, struct wire_value *name) {
    struct codec_cursor c = {.at = r->columns, .end = (const uint8_t *)r->columns + r->columns_len};
    if (r->columns_len == 0)
        return 0;
    if (rows_value(&c, name) != 0 || name->kind != WIRE_VALUE_TEXT)
        return -1;
    r->columns_len -= (size_t)(c.at - (const uint8_t *)r->columns);
    r->columns = c.at;
    return 1;
}

int wire_next_row(struct wire_rows *r, struct wire_value *values, size_t cap) {
    struct codec_cursor c = {.at = r->rows, .end = (const uint8_t *)r->rows + r->rows_len};
    size_t n;
    if (r->rows_len == 0)
        return 0;
    if (codec_read_array(&c, &n) != 0)
        return -1;
    for (size_t i = 0; i < cap; i++)
        values[i] = (struct wire_value){.kind = WIRE_VALUE_NULL};
    for (size_t i = 0; i < n; i++) {
        struct wire_value more;
        if (rows_value(&c, i < cap ? &values[i] : &more) != 0)
            return -1;
    }
    r->rows_len -= (size_t)(c.at - (const uint8_t *)r->rows);
    r->rows = c.at;
    return 1;
}
