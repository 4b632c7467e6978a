/* SPDX-License-Identifier: Apache-2.0 */
/* catalog: see catalog.h. */
#include "client/sql/catalog.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "client/sql/comm_metrics.h"
#include "client/sql/training_logs.h"
#include "store/ring/ring_tables.h"
#include "store/ring/ring_words.h"

#define CATALOG_BYTES ((size_t)4 * 1024 * 1024)

#define CATALOG_DERIVED 2 /* tables that are made of others */

static struct catalog *catalog_new(size_t n_tables) {
    struct catalog *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    arena_init(&c->arena, CATALOG_BYTES);
    c->tables = arena_calloc(&c->arena, n_tables ? n_tables : 1, sizeof *c->tables);
    return c;
}

void catalog_free(struct catalog *c) {
    if (!c)
        return;
    arena_fini(&c->arena);
    free(c);
}

static const char *catalog_text(struct catalog *c, const char *s) {
    const char *copy = arena_strdup(&c->arena, s ? s : "");
    return copy ? copy : "";
}

/* Columns of a table with the common ones before them. */
static struct catalog_column *catalog_columns(struct catalog *c, struct catalog_table *t, size_t n) {
    struct catalog_column *columns = arena_calloc(&c->arena, n + RING_COMMON_COLUMNS, sizeof *columns);
    if (!columns)
        return NULL;
    for (size_t i = 0; i < RING_COMMON_COLUMNS; i++)
        columns[i] = (struct catalog_column){ring_common_columns[i].name, "", ring_common_columns[i].help,
                                             ring_common_columns[i].type};
    t->columns = columns;
    t->n_columns = n + RING_COMMON_COLUMNS;
    return columns + RING_COMMON_COLUMNS;
}

static int catalog_compare(const void *a, const void *b) {
    return strcmp(((const struct catalog_table *)a)->name, ((const struct catalog_table *)b)->name);
}

static void catalog_add(struct catalog *c, const struct sql_table_info *info) {
    struct catalog_table *t = &c->tables[c->n_tables++];
    *t = (struct catalog_table){.cost = info->cost,
                                .rows = info->rows,
                                .bytes = info->bytes,
                                .oldest = info->oldest,
                                .newest = info->newest};
    t->name = catalog_text(c, info->name);
    t->alias = catalog_text(c, info->alias);
    t->help = catalog_text(c, info->help);
    struct catalog_column *out = catalog_columns(c, t, info->n_columns);
    for (size_t k = 0; out && k < info->n_columns; k++) {
        const struct sql_column_info *from = &info->columns[k];
        out[k] = (struct catalog_column){catalog_text(c, from->name), catalog_text(c, from->unit),
                                         catalog_text(c, from->help), from->type};
    }
}

/* Sort the tables, and add those that are made of others. */
static struct catalog *catalog_finish(struct catalog *c) {
    struct sql_table_info logs, comm;
    training_logs_info(&logs);
    comm_metrics_info(&comm);
    if (c && c->tables) {
        if (catalog_find(c, TRAINING_LOGS_OF, sizeof TRAINING_LOGS_OF - 1))
            catalog_add(c, &logs);
        if (catalog_find(c, COMM_METRICS_OF, sizeof COMM_METRICS_OF - 1))
            catalog_add(c, &comm);
        qsort(c->tables, c->n_tables, sizeof *c->tables, catalog_compare);
    }
    if (c && (c->arena.failed || !c->tables)) {
        catalog_free(c);
        return NULL;
    }
    return c;
}

struct catalog *catalog_of_definitions(void) {
    struct catalog *c = catalog_new(RING_TABLE_COUNT + CATALOG_DERIVED);
    for (size_t i = 0; c && c->tables && i < RING_TABLE_COUNT; i++) {
        const struct ring_table_def *def = &RING_TABLES[i];
        struct sql_column_info columns[RING_MAX_COLUMNS];
        struct sql_table_info info = {.name = def->name,
                                      .alias = def->alias,
                                      .help = def->help,
                                      .cost = def->cost,
                                      .oldest = NAN,
                                      .newest = NAN,
                                      .columns = columns};
        for (const struct ring_column_def *from = def->columns; from->name; from++)
            columns[info.n_columns++] =
                (struct sql_column_info){from->name, from->unit, from->help, from->type};
        catalog_add(c, &info);
    }
    return catalog_finish(c);
}

struct catalog *catalog_of_session(struct sql *s) {
    size_t n_tables = sql_table_count(s);
    struct catalog *c = catalog_new(n_tables + CATALOG_DERIVED);
    for (size_t i = 0; c && c->tables && i < n_tables; i++) {
        struct sql_table_info info;
        sql_table_info(s, i, &info);
        catalog_add(c, &info);
    }
    return catalog_finish(c);
}

const struct catalog_table *catalog_find(const struct catalog *c, const char *name, size_t len) {
    for (size_t i = 0; i < c->n_tables; i++) {
        const struct catalog_table *t = &c->tables[i];
        if ((strlen(t->name) == len && strncasecmp(t->name, name, len) == 0) ||
            (len > 0 && strlen(t->alias) == len && strncasecmp(t->alias, name, len) == 0))
            return t;
    }
    return NULL;
}

/* ---- as rows ---- */

static int catalog_put(struct result *r, size_t column, const char *text) {
    return result_put_text(r, column, SQL_TEXT, text, strlen(text));
}

static struct result *catalog_rows(const char *const *names, const char *const *types, size_t n,
                                   size_t n_rows) {
    struct result *r = result_new(n, n_rows ? n_rows : 1, CATALOG_BYTES);
    for (size_t i = 0; r && i < n; i++)
        if (result_name_column(r, i, names[i], types[i]) != 0) {
            result_unref(r);
            return NULL;
        }
    return r;
}

struct result *catalog_list_tables(const struct catalog *c) {
    static const char *const names[] = {"table", "one row is", "made", "rows", "size", "oldest", "newest"};
    static const char *const types[] = {"text", "text", "text", "integer", "", "timestamp", "timestamp"};
    struct result *r = catalog_rows(names, types, 7, c->n_tables);
    for (size_t i = 0; r && i < c->n_tables; i++) {
        const struct catalog_table *t = &c->tables[i];
        char size[32];
        if (result_add_row(r) != 0)
            break;
        /* without a file that is read how many there are is not known */
        if (t->bytes && t->cost != RING_COST_NOW) {
            text_human_bytes(size, sizeof size, t->bytes);
            result_put_int(r, 3, (int64_t)t->rows);
            if (catalog_put(r, 4, size) != 0)
                break;
        }
        result_put_real(r, 5, t->oldest);
        result_put_real(r, 6, t->newest);
        if (catalog_put(r, 0, t->name) != 0 || catalog_put(r, 2, ring_cost_words(t->cost)->brief) != 0 ||
            catalog_put(r, 1, t->help) != 0)
            break;
    }
    return r;
}

struct result *catalog_list_columns(const struct catalog_table *t) {
    static const char *const names[] = {"column", "type", "unit", "what it is"};
    static const char *const types[] = {"text", "text", "text", "text"};
    struct result *r = catalog_rows(names, types, 4, t->n_columns);
    for (size_t i = 0; r && i < t->n_columns; i++) {
        const struct catalog_column *c = &t->columns[i];
        if (result_add_row(r) != 0 || catalog_put(r, 0, c->name) != 0 ||
            catalog_put(r, 1, ring_type_name(c->type)) != 0 || catalog_put(r, 2, c->unit) != 0 ||
            catalog_put(r, 3, c->help) != 0)
            break;
    }
    return r;
}
