/* SPDX-License-Identifier: Apache-2.0 */
/* live_virtual: what only the agent can tell: tables that Python makes in the target when they are
 * read, and the agent's settings; one request each. See live_tables.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/session/call.h"
#include "client/sql/live_tables.h"
#include "store/ring/ring_tables.h"

#define LIVE_TEXT_BYTES ((size_t)64 * 1024) /* of all texts of a row */

/* A table being read. */
struct live_virtual {
    const struct ring_table_def *def;
    size_t n_columns; /* of the definition */
    /* index of each column in a received row; -1: missing */
    int place[RING_MAX_COLUMNS];
    struct wire_value values[RING_MAX_COLUMNS]; /* as received */
    union ring_value row[RING_MAX_COLUMNS];
    char *text;
    size_t used;
};

/* Appended to the notes of other tables of the query, once for each table. */
void live_virtual_note(struct live_target *t, const char *table, const char *why) {
    char note[sizeof t->note];
    size_t n = strlen(t->note);
    snprintf(note, sizeof note, "%s: %s", table, why);
    if (!strstr(t->note, note))
        snprintf(t->note + n, sizeof t->note - n, "%s%s", n ? "; " : "", note);
}

/* Find the columns of the definition among the received ones. 0 or -1. */
static int live_virtual_match(struct live_virtual *m, struct wire_rows *rows) {
    struct wire_value name;
    for (size_t i = 0; i < RING_MAX_COLUMNS; i++)
        m->place[i] = -1;
    for (int at = 0, rc; (rc = wire_next_column(rows, &name)) != 0; at++) {
        if (rc < 0)
            return -1;
        for (size_t i = 0; at < RING_MAX_COLUMNS && i < m->n_columns; i++)
            if (strlen(m->def->columns[i].name) == name.len &&
                memcmp(m->def->columns[i].name, name.s, name.len) == 0)
                m->place[i] = at;
    }
    return 0;
}

/* A copy of a text with a NUL; NULL if there is no more room. */
static const char *live_virtual_keep(struct live_virtual *m, const struct wire_value *v) {
    size_t room = LIVE_TEXT_BYTES - m->used;
    if (v->len >= room)
        return NULL;
    char *to = m->text + m->used;
    memcpy(to, v->s, v->len);
    to[v->len] = '\0';
    m->used += v->len + 1;
    return to;
}

static int64_t live_virtual_label(const struct ring_column_def *c, const struct wire_value *v) {
    for (int64_t i = 0; v->kind == WIRE_VALUE_TEXT && c->labels && c->labels[i]; i++)
        if (strlen(c->labels[i]) == v->len && memcmp(c->labels[i], v->s, v->len) == 0)
            return i;
    return RING_INT_NULL;
}

/* Convert a received value to the column's type; a value of another type is unknown. */
static union ring_value live_virtual_value(struct live_virtual *m, const struct ring_column_def *c,
                                           const struct wire_value *v) {
    bool whole = v->kind == WIRE_VALUE_INT || v->kind == WIRE_VALUE_BOOL;
    switch (c->type) {
    case RING_TIMESTAMP:
    case RING_DOUBLE:
        return (union ring_value){.f = v->kind == WIRE_VALUE_DOUBLE ? v->f : whole ? (double)v->i : NAN};
    case RING_TEXT:
        return (union ring_value){.s = v->kind == WIRE_VALUE_TEXT ? live_virtual_keep(m, v) : NULL};
    case RING_ENUM:
        return (union ring_value){.i = live_virtual_label(c, v)};
    case RING_BOOL:
        return (union ring_value){.i = whole ? v->i != 0 : RING_INT_NULL};
    default:
        return (union ring_value){.i = whole ? v->i : RING_INT_NULL};
    }
}

/* Pass all rows to SQL. 0, or -1 with the error. */
static int live_virtual_put(struct live_virtual *m, struct wire_rows *rows, struct sql_sink *sink,
                            struct err *e) {
    static const struct wire_value unknown = {.kind = WIRE_VALUE_NULL};
    int rc = live_virtual_match(m, rows) != 0 ? -1 : 1;
    while (rc > 0 && (rc = wire_next_row(rows, m->values, RING_MAX_COLUMNS)) > 0) {
        m->used = 0;
        for (size_t i = 0; i < m->n_columns; i++)
            m->row[i] = live_virtual_value(m, &m->def->columns[i],
                                           m->place[i] < 0 ? &unknown : &m->values[m->place[i]]);
        if (sql_sink_put(sink, m->row) != 0)
            return 0;
    }
    return rc < 0 ? err_set(e, ERR_FAILED, "%s: the agent's rows are not valid", m->def->name) : 0;
}

static int live_virtual_read(struct live_target *t, const struct wire_message *answer,
                             const struct ring_table_def *def, struct sql_sink *sink, struct err *e) {
    struct wire_rows rows;
    if (wire_get_rows(answer, &rows, e) != 0)
        return -1;
    if (rows.note[0])
        live_virtual_note(t, def->name, rows.note);
    struct live_virtual *m = calloc(1, sizeof *m);
    char *text = malloc(LIVE_TEXT_BYTES);
    int rc = -1;
    if (m && text) {
        m->def = def;
        m->text = text;
        while (def->columns[m->n_columns].name)
            m->n_columns++;
        rc = live_virtual_put(m, &rows, sink, e);
    } else
        err_set(e, ERR_FAILED, "out of memory for rows");
    free(text);
    free(m);
    return rc;
}

/* True if there is an agent to ask; otherwise the note says that there is none. */
static bool live_virtual_may_ask(struct live_target *t, const struct ring_table_def *def) {
    bool agent = t->addr.mode == MODEL_MODE_AGENT && t->addr.path[0];
    if (!agent)
        live_virtual_note(t, def->name, "it needs an agent in the process, and there is none");
    return agent;
}

int live_scan_virtual(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e) {
    struct live_target *t = arg;
    const struct ring_table_def *def = sql_sink_table(sink);
    struct wire_rows_ask ask = {.n_args = 0};
    (void)columns;
    if (!live_virtual_may_ask(t, def))
        return 0;
    snprintf(ask.table, sizeof ask.table, "%s", def->name);
    if (sql_sink_wanted(sink)->equal_column >= 0) {
        ask.args[0].number = sql_sink_wanted(sink)->equal;
        snprintf(ask.args[ask.n_args++].key, sizeof ask.args[0].key, "%s", sql_sink_key_name(sink));
    } else if (sql_sink_key_name(sink))
        return err_set(e, ERR_USAGE, "%s: say of which: WHERE %s = ... (python.tensors has it)", def->name,
                       sql_sink_key_name(sink));
    struct call *c = live_connect(t, sink, e);
    struct wire_message *answer = c ? call_ask(c, WIRE_ROWS, &ask, e) : NULL;
    int rc = answer ? live_virtual_read(t, answer, def, sink, e) : -1;
    wire_message_free(answer);
    call_close(c);
    if (rc != 0)
        t->failure = *e;
    return rc;
}

static void live_put_settings(struct live_target *t, const struct model_status *status,
                              struct sql_sink *sink) {
    if (!status->n_settings)
        live_virtual_note(t, sql_sink_table(sink)->name,
                          "the agent is an older release and does not report it");
    for (size_t i = 0; i < status->n_settings; i++) {
        const struct model_setting *s = &status->settings[i];
        union ring_value row[RING_CONFIG_COUNT] = {
            [RING_CONFIG_KEY].s = s->key,
            [RING_CONFIG_VALUE].s = s->value,
            [RING_CONFIG_DEFAULT].s = s->default_value,
            [RING_CONFIG_HELP].s = s->help,
        };
        if (sql_sink_put(sink, row) != 0)
            return;
    }
}

int live_scan_config(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e) {
    struct live_target *t = arg;
    struct model_status status;
    (void)columns;
    if (!live_virtual_may_ask(t, sql_sink_table(sink)))
        return 0;
    struct call *c = live_connect(t, sink, e);
    int rc = c ? call_status(c, &status, e) : -1;
    if (rc == 0)
        live_put_settings(t, &status, sink);
    else
        t->failure = *e;
    if (c)
        model_status_fini(&status);
    call_close(c);
    return rc;
}
