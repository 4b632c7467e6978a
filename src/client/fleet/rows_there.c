/* SPDX-License-Identifier: Apache-2.0 */
/* rows_there: see rows_there.h. */
#include "client/fleet/rows_there.h"

#include <math.h>
#include <string.h>

static union ring_value rows_there_unknown(enum ring_type type) {
    return type == RING_TIMESTAMP || type == RING_DOUBLE ? (union ring_value){.f = NAN}
           : type == RING_TEXT                           ? (union ring_value){.s = NULL}
                                                         : (union ring_value){.i = RING_INT_NULL};
}

static int64_t rows_there_label(const struct ring_column_def *c, const struct wire_value *v) {
    for (int64_t i = 0; v->kind == WIRE_VALUE_TEXT && c->labels && c->labels[i]; i++)
        if (strlen(c->labels[i]) == v->len && memcmp(c->labels[i], v->s, v->len) == 0)
            return i;
    return RING_INT_NULL;
}

/* A value in a column; one of another kind is unknown. Of a text it is where it begins in r->text. */
static union ring_value rows_there_value(struct rows_there *r, int column, const struct wire_value *v) {
    enum ring_type type = r->types[column];
    bool is_int = v->kind == WIRE_VALUE_INT || v->kind == WIRE_VALUE_BOOL;
    double f = v->kind == WIRE_VALUE_DOUBLE ? v->f : is_int ? (double)v->i : NAN;
    switch (type) {
    case RING_TIMESTAMP:
        return (union ring_value){.f = f - r->ahead_s};
    case RING_DOUBLE:
        return (union ring_value){.f = f};
    case RING_TEXT:
        if (v->kind != WIRE_VALUE_TEXT)
            return (union ring_value){.i = RING_INT_NULL};
        int64_t at = (int64_t)r->text.len;
        strbuf_add(&r->text, v->s, v->len);
        strbuf_addc(&r->text, '\0');
        return (union ring_value){.i = at};
    case RING_ENUM:
        return (union ring_value){.i = rows_there_label(&r->columns[column], v)};
    case RING_BOOL:
        return (union ring_value){.i = is_int ? v->i != 0 : RING_INT_NULL};
    case RING_ID:
        return (union ring_value){.i = is_int && v->i >= 0 && v->i < (int64_t)1 << ROWS_THERE_ID_BITS
                                           ? (int64_t)r->number << ROWS_THERE_ID_BITS | v->i
                                           : RING_INT_NULL};
    default:
        return (union ring_value){.i = is_int ? v->i : RING_INT_NULL};
    }
}

/* Take a row. False: there is no room for more. */
static bool rows_there_take_row(struct rows_there *r, const struct wire_value *values) {
    union ring_value row[RING_MAX_COLUMNS + 1];
    int64_t rank = values[0].kind == WIRE_VALUE_INT ? values[0].i : RING_INT_NULL;
    if (rank != RING_INT_NULL &&
        (rank < 0 || rank >= RANK_SET_LIMIT || !rank_set_has(r->ranks, (int32_t)rank))) {
        r->has_foreign = true;
        return true;
    }
    for (size_t k = 0; r->columns[k].name; k++)
        row[k] = rows_there_unknown(r->columns[k].type);
    row[ROWS_THERE_RANK].i = rank;
    row[ROWS_THERE_HOST].s = r->host;
    row[ROWS_THERE_PID].i = values[1].kind == WIRE_VALUE_INT ? values[1].i : RING_INT_NULL;
    strbuf_clear(&r->text);
    for (size_t k = 0; k < r->n; k++)
        row[r->places[k]] = rows_there_value(r, r->places[k], &values[k + 2]);
    /* only now the texts stay where they are */
    for (size_t k = 0; k < r->n; k++) {
        union ring_value *v = &row[r->places[k]];
        if (r->types[r->places[k]] == RING_TEXT)
            v->s = v->i == RING_INT_NULL || r->text.failed ? NULL : r->text.data + v->i;
    }
    return r->put(r->arg, row) == 0;
}

int rows_there_take(struct rows_there *r, const struct wire_rows *answer, struct err *e) {
    struct wire_value values[RING_MAX_COLUMNS + 2];
    struct wire_rows rows = *answer;
    int rc;
    r->more = rows.more;
    r->bytes = rows.rows_len;
    r->has_foreign = r->is_full = false;
    if (rows.n_columns != r->n + 2)
        return err_set(e, ERR_FAILED, "its rows have other columns than it was asked for");
    while ((rc = wire_next_row(&rows, values, r->n + 2)) == 1)
        if (!rows_there_take_row(r, values)) {
            r->is_full = true;
            return 0;
        }
    return rc == 0 ? 0 : err_set(e, ERR_FAILED, "its rows are not valid");
}
