/* SPDX-License-Identifier: Apache-2.0 */
/* report: see report.h. */
#include "client/fleet/report.h"

#include <math.h>
#include <string.h>

#include "base/text.h"

#define REPORT_TEXT_MAX 1024 /* bytes of one text; more of it is left out */

#define REPORT_ROW_JOB(kind, name) {#name, REPORT_##kind, offsetof(struct report_job, name)},
#define REPORT_ROW_RANK(kind, name) {#name, REPORT_##kind, offsetof(struct report_rank, name)},
#define REPORT_ROW_FRAME(kind, name) {#name, REPORT_##kind, offsetof(struct report_frame, name)},
#define REPORT_ROW_CLOCK(kind, name) {#name, REPORT_##kind, offsetof(struct report_clock, name)},
#define REPORT_ROW_SIZE(kind, name) {#name, REPORT_##kind, offsetof(struct report_size, name)},
#define REPORT_ROW_TIME(kind, name) {#name, REPORT_##kind, offsetof(struct report_time, name)},
#define REPORT_ROW_STATE(kind, name) {#name, REPORT_##kind, offsetof(struct report_state, name)},
#define REPORT_ROW_GROUP(kind, name) {#name, REPORT_##kind, offsetof(struct report_group, name)},
#define REPORT_ROW_RAS(kind, name) {#name, REPORT_##kind, offsetof(struct report_ras, name)},
#define REPORT_ROW_TASK(kind, name) {#name, REPORT_##kind, offsetof(struct report_task, name)},

static const struct report_field report_job_fields[] = {REPORT_JOB_FIELDS(REPORT_ROW_JOB)
                                                            REPORT_JOB_NOW_FIELDS(REPORT_ROW_JOB)};
static const struct report_field report_rank_fields[] = {REPORT_RANK_FIELDS(REPORT_ROW_RANK)};
static const struct report_field report_frame_fields[] = {REPORT_FRAME_FIELDS(REPORT_ROW_FRAME)};
static const struct report_field report_time_fields[] = {REPORT_TIME_FIELDS(REPORT_ROW_TIME)};
static const struct report_field report_clock_fields[] = {REPORT_CLOCK_FIELDS(REPORT_ROW_CLOCK)};
static const struct report_field report_size_fields[] = {REPORT_SIZE_FIELDS(REPORT_ROW_SIZE)};
static const struct report_field report_state_fields[] = {REPORT_STATE_FIELDS(REPORT_ROW_STATE)};
static const struct report_field report_group_fields[] = {REPORT_GROUP_FIELDS(REPORT_ROW_GROUP)};
static const struct report_field report_ras_fields[] = {REPORT_RAS_FIELDS(REPORT_ROW_RAS)};
static const struct report_field report_task_fields[] = {REPORT_TASK_FIELDS(REPORT_ROW_TASK)};

#define REPORT_TABLE(title, list)                                                                            \
    { .name = (title), .fields = (list), .n = sizeof(list) / sizeof *(list) }

const struct report_table REPORT_TABLE_JOB = REPORT_TABLE(REPORT_JOB, report_job_fields);
const struct report_table REPORT_TABLE_RANK = REPORT_TABLE(REPORT_RANKS, report_rank_fields);
const struct report_table REPORT_TABLE_FRAME = REPORT_TABLE(REPORT_STACKS, report_frame_fields);
const struct report_table REPORT_TABLE_TIME = REPORT_TABLE(REPORT_TIMES, report_time_fields);
const struct report_table REPORT_TABLE_CLOCK = REPORT_TABLE(REPORT_CLOCK, report_clock_fields);
const struct report_table REPORT_TABLE_SIZE = REPORT_TABLE(REPORT_TABLES, report_size_fields);
const struct report_table REPORT_TABLE_STATE = REPORT_TABLE(REPORT_STATES, report_state_fields);
const struct report_table REPORT_TABLE_GROUP = REPORT_TABLE(REPORT_GROUPS, report_group_fields);
const struct report_table REPORT_TABLE_RAS = REPORT_TABLE(REPORT_RAS, report_ras_fields);
const struct report_table REPORT_TABLE_TASK = REPORT_TABLE(REPORT_ATTACH, report_task_fields);

_Static_assert(sizeof report_state_fields / sizeof *report_state_fields <= REPORT_MAX_FIELDS,
               "a table is longer than REPORT_MAX_FIELDS");
_Static_assert(sizeof report_rank_fields / sizeof *report_rank_fields <= REPORT_MAX_FIELDS,
               "a table is longer than REPORT_MAX_FIELDS");

static void report_set_int(char *at, int64_t v) { memcpy(at, &v, sizeof v); }
static void report_set_real(char *at, double v) { memcpy(at, &v, sizeof v); }
static void report_set_text(char *at, const char *v) { memcpy(at, &v, sizeof v); }

void report_clear(const struct report_table *t, void *row) {
    for (size_t i = 0; i < t->n; i++) {
        char *at = (char *)row + t->fields[i].offset;
        if (t->fields[i].kind == REPORT_INT)
            report_set_int(at, REPORT_NO_INT);
        else if (t->fields[i].kind == REPORT_REAL)
            report_set_real(at, NAN);
        else
            report_set_text(at, NULL);
    }
}

const char *report_letter(char state) {
    static const char *const letters[] = {"R", "S", "D", "T", "t", "Z", "X", "I", NULL};
    size_t i = 0;
    while (letters[i] && letters[i][0] != state)
        i++;
    return letters[i];
}

/* ---- writing ---- */

int report_put_columns(const struct report_table *t, struct strbuf *columns) {
    struct wire_value names[REPORT_MAX_FIELDS];
    for (size_t i = 0; i < t->n; i++)
        names[i] = (struct wire_value){
            .kind = WIRE_VALUE_TEXT, .s = t->fields[i].name, .len = strlen(t->fields[i].name)};
    return wire_add_row(columns, names, t->n);
}

static struct wire_value report_value(const struct report_field *f, const void *row) {
    const char *at = (const char *)row + f->offset;
    struct wire_value v = {.kind = WIRE_VALUE_NULL};
    const char *s;
    switch (f->kind) {
    case REPORT_INT:
        memcpy(&v.i, at, sizeof v.i);
        v.kind = v.i == REPORT_NO_INT ? WIRE_VALUE_NULL : WIRE_VALUE_INT;
        break;
    case REPORT_REAL:
        memcpy(&v.f, at, sizeof v.f);
        v.kind = isnan(v.f) ? WIRE_VALUE_NULL : WIRE_VALUE_DOUBLE;
        break;
    case REPORT_TEXT:
        memcpy(&s, at, sizeof s);
        if (s)
            v = (struct wire_value){.kind = WIRE_VALUE_TEXT, .s = s, .len = strnlen(s, REPORT_TEXT_MAX)};
        break;
    }
    return v;
}

int report_put(const struct report_table *t, const void *row, struct strbuf *rows) {
    struct wire_value values[REPORT_MAX_FIELDS];
    for (size_t i = 0; i < t->n; i++)
        values[i] = report_value(&t->fields[i], row);
    return wire_add_row(rows, values, t->n);
}

void report_put_engine(const struct report_table *t, const void *row, const struct engine_table *to,
                       struct row_value *values) {
    for (size_t i = ENGINE_COMMON_COUNT; i < to->n; i++)
        for (size_t k = 0; k < t->n; k++) {
            if (strcmp(to->columns[i].name, t->fields[k].name) != 0)
                continue;
            struct wire_value v = report_value(&t->fields[k], row);
            values[i] = v.kind == WIRE_VALUE_INT      ? row_int(v.i)
                        : v.kind == WIRE_VALUE_DOUBLE ? row_real(v.f)
                        : v.kind == WIRE_VALUE_TEXT
                            ? (struct row_value){.kind = ROW_TEXT, .s = v.s, .len = v.len}
                            : (struct row_value){.kind = ROW_NULL};
        }
}

/* ---- reading ---- */

int report_begin(struct report_reader *r, const struct report_table *t, const struct wire_message *m,
                 struct err *e) {
    struct wire_value name;
    int rc;
    *r = (struct report_reader){.table = t};
    for (size_t i = 0; i < REPORT_MAX_FIELDS; i++)
        r->column_of[i] = -1;
    if (wire_get_rows(m, &r->rows, e) != 0)
        return -1;
    for (int column = 0; (rc = wire_next_column(&r->rows, &name)) == 1; column++)
        for (size_t i = 0; i < t->n && column < REPORT_MAX_FIELDS; i++)
            if (strlen(t->fields[i].name) == name.len && memcmp(t->fields[i].name, name.s, name.len) == 0)
                r->column_of[i] = column;
    return rc == 0 ? 0 : err_set(e, ERR_FAILED, "its answer about %s has no valid columns", t->name);
}

int report_take(const struct report_field *f, const struct wire_value *v, void *row, struct arena *arena) {
    char *at = (char *)row + f->offset;
    char raw[REPORT_TEXT_MAX + 1];
    if (f->kind == REPORT_INT && (v->kind == WIRE_VALUE_INT || v->kind == WIRE_VALUE_BOOL))
        report_set_int(at, v->i);
    else if (f->kind == REPORT_REAL && v->kind == WIRE_VALUE_INT)
        report_set_real(at, (double)v->i);
    else if (f->kind == REPORT_REAL && v->kind == WIRE_VALUE_DOUBLE && isfinite(v->f))
        report_set_real(at, v->f);
    else if (f->kind == REPORT_TEXT && v->kind == WIRE_VALUE_TEXT) {
        size_t n = v->len < REPORT_TEXT_MAX ? v->len : REPORT_TEXT_MAX;
        memcpy(raw, v->s, n);
        raw[n] = '\0';
        char *clean = arena_alloc(arena, 3 * strlen(raw) + 1);
        if (!clean)
            return -1;
        text_sanitize(clean, 3 * strlen(raw) + 1, raw);
        report_set_text(at, clean);
    }
    return 0;
}

int report_next(struct report_reader *r, void *row, struct arena *arena) {
    struct wire_value values[REPORT_MAX_FIELDS];
    int rc = wire_next_row(&r->rows, values, REPORT_MAX_FIELDS);
    report_clear(r->table, row);
    for (size_t i = 0; rc == 1 && i < r->table->n; i++)
        if (r->column_of[i] >= 0 &&
            report_take(&r->table->fields[i], &values[r->column_of[i]], row, arena) != 0)
            rc = -1;
    return rc;
}
