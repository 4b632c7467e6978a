/* SPDX-License-Identifier: Apache-2.0 */
/* verb_tables: list the tables, their sizes, the overhead of their collection, and the meaning
 * of every column. */
#include "cli/cli.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/text.h"
#include "client/sql/comm_metrics.h"
#include "client/sql/training_logs.h"
#include "store/ring/ring_tables.h"
#include "store/ring/ring_words.h"

#define TABLES_SCHEMA_VERSION 1
#define TABLES_MAX 512

/* The tables of the database, and those that only a living target has. */
struct tables {
    struct sql_table_info items[TABLES_MAX];
    struct sql_column_info columns[RING_TABLE_COUNT][RING_MAX_COLUMNS];
    size_t n;
};

static struct sql_column_info tables_column(const struct ring_column_def *c) {
    return (struct sql_column_info){c->name, c->unit ? c->unit : "", c->help ? c->help : "", c->type};
}

/* The columns that every table has, before its own. */
static void tables_fill_common(struct sql_column_info *out) {
    for (size_t i = 0; i < RING_COMMON_COLUMNS; i++)
        out[i] = tables_column(&ring_common_columns[i]);
}

static void tables_add_known(struct tables *t, size_t table) {
    const struct ring_table_def *def = &RING_TABLES[table];
    struct sql_table_info *info = &t->items[t->n];
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->items[i].name, def->name) == 0)
            return;
    *info = (struct sql_table_info){.name = def->name,
                                    .alias = def->alias ? def->alias : "",
                                    .help = def->help,
                                    .cost = def->cost,
                                    .oldest = NAN,
                                    .newest = NAN,
                                    .columns = t->columns[table]};
    for (const struct ring_column_def *c = def->columns; c->name; c++)
        t->columns[table][info->n_columns++] = tables_column(c);
    t->n++;
}

/* Add the tables that are made of others. */
static void tables_add_derived(struct tables *t) {
    static const struct {
        const char *of;
        void (*info)(struct sql_table_info *out);
    } derived[] = {{TRAINING_LOGS_OF, training_logs_info}, {COMM_METRICS_OF, comm_metrics_info}};
    size_t n = t->n;
    for (size_t k = 0; k < sizeof derived / sizeof derived[0]; k++)
        for (size_t i = 0; i < n; i++)
            if (strcmp(t->items[i].name, derived[k].of) == 0) {
                derived[k].info(&t->items[t->n++]);
                break;
            }
}

static int tables_compare(const void *a, const void *b) {
    return strcmp(((const struct sql_table_info *)a)->name, ((const struct sql_table_info *)b)->name);
}

/* Fill the list; without a target with all possible tables. */
static void tables_fill(struct tables *t, struct sql *s, size_t targets) {
    for (size_t i = 0; i < sql_table_count(s) && t->n + RING_TABLE_COUNT + 2 < TABLES_MAX; i++)
        sql_table_info(s, i, &t->items[t->n++]);
    for (size_t i = 0; targets == 0 && i < RING_TABLE_COUNT; i++)
        tables_add_known(t, i);
    tables_add_derived(t);
    qsort(t->items, t->n, sizeof t->items[0], tables_compare);
}

static const struct sql_table_info *tables_find(const struct tables *t, const char *name, struct err *e) {
    const char *names[2 * TABLES_MAX + 1];
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++) {
        const struct sql_table_info *info = &t->items[i];
        if (strcmp(info->name, name) == 0 || (info->alias[0] && strcmp(info->alias, name) == 0))
            return info;
        names[n++] = info->name;
        if (info->alias[0])
            names[n++] = info->alias;
    }
    names[n] = NULL;
    const char *near = option_suggest(name, names);
    if (near)
        err_set(e, ERR_USAGE, "no table '%s': did you mean '%s'?", name, near);
    else
        err_set(e, ERR_USAGE, "no table '%s': 'probing tables' lists them", name);
    return NULL;
}

/* ---- JSON ---- */

static void tables_put_columns(struct json *j, const struct sql_column_info *columns, size_t n) {
    for (size_t i = 0; i < n; i++) {
        json_object_begin(j);
        json_kv_string(j, "name", columns[i].name);
        json_kv_string(j, "type", ring_type_name(columns[i].type));
        json_kv_string(j, "unit", columns[i].unit[0] ? columns[i].unit : NULL);
        json_kv_string(j, "help", columns[i].help);
        json_object_end(j);
    }
}

static void tables_put_object(struct json *j, const struct sql_table_info *t) {
    struct sql_column_info common[RING_COMMON_COLUMNS];
    json_object_begin(j);
    json_kv_string(j, "name", t->name);
    json_kv_string(j, "alias", t->alias[0] ? t->alias : NULL);
    json_kv_string(j, "help", t->help);
    json_kv_string(j, "cost", ring_cost_words(t->cost)->name);
    json_kv_number(j, "retention_s", t->retention_s > 0 ? t->retention_s : NAN, 0);
    json_key(j, "rows");
    if (t->cost == RING_COST_NOW)
        json_null(j);
    else
        json_uint(j, t->rows);
    json_kv_uint(j, "bytes", t->bytes);
    json_kv_number(j, "oldest", t->oldest, 6);
    json_kv_number(j, "newest", t->newest, 6);
    json_key(j, "columns");
    json_array_begin(j);
    tables_fill_common(common);
    tables_put_columns(j, common, RING_COMMON_COLUMNS);
    tables_put_columns(j, t->columns, t->n_columns);
    json_array_end(j);
    json_object_end(j);
}

static void tables_put_json(const struct sql_table_info *list, size_t n, struct strbuf *out) {
    struct json j;
    json_init(&j, out, 2);
    json_object_begin(&j);
    json_kv_int(&j, "schema_version", TABLES_SCHEMA_VERSION);
    json_key(&j, "tables");
    json_array_begin(&j);
    for (size_t i = 0; i < n; i++)
        tables_put_object(&j, &list[i]);
    json_array_end(&j);
    json_object_end(&j);
    strbuf_addc(out, '\n');
}

/* ---- for people ---- */

static void tables_put_time(struct strbuf *out, double at) {
    time_t t = (time_t)at;
    struct tm tm;
    char text[32] = "-";
    if (at > 0 && at < 1e11 && gmtime_r(&t, &tm))
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%SZ", &tm);
    strbuf_addf(out, "  %-20s", text);
}

static void tables_put_list(const struct sql_table_info *list, size_t n, struct strbuf *out) {
    strbuf_addf(out, "%-24s %10s %10s  %-20s  %-20s  %s\n", "TABLE", "ROWS", "SIZE", "OLDEST", "NEWEST",
                "CONTENTS");
    for (size_t i = 0; i < n; i++) {
        const struct sql_table_info *t = &list[i];
        char rows[24] = "now", size[24] = "-", help[256];
        if (t->cost != RING_COST_NOW) {
            snprintf(rows, sizeof rows, "%llu", (unsigned long long)t->rows);
            text_human_bytes(size, sizeof size, t->bytes);
        }
        text_sanitize(help, sizeof help, t->help);
        strbuf_addf(out, "%-24s %10s %10s", t->name, rows, size);
        tables_put_time(out, t->oldest);
        tables_put_time(out, t->newest);
        strbuf_addf(out, "  %s%s%s%s\n", help, t->alias[0] ? " (also " : "", t->alias,
                    t->alias[0] ? ")" : "");
    }
}

static void tables_put_rows(const struct sql_column_info *columns, size_t n, struct strbuf *out) {
    for (size_t i = 0; i < n; i++) {
        char name[128], unit[64], help[512];
        text_sanitize(name, sizeof name, columns[i].name);
        text_sanitize(unit, sizeof unit, columns[i].unit);
        text_sanitize(help, sizeof help, columns[i].help);
        strbuf_addf(out, "  %-22s %-10s %-7s %s\n", name, ring_type_name(columns[i].type), unit, help);
    }
}

static void tables_put_one(const struct sql_table_info *t, struct strbuf *out) {
    struct sql_column_info common[RING_COMMON_COLUMNS];
    char kept[32], help[256];
    text_sanitize(help, sizeof help, t->help);
    strbuf_addf(out, "%s%s%s: %s\n%s", t->name, t->alias[0] ? ", also " : "", t->alias, help,
                ring_cost_words(t->cost)->text);
    if (t->retention_s > 0) {
        text_human_duration(kept, sizeof kept, t->retention_s);
        strbuf_addf(out, "; kept for %s while there is room", kept);
    }
    if (t->cost != RING_COST_NOW) {
        text_human_bytes(kept, sizeof kept, t->bytes);
        strbuf_addf(out, "; %llu row%s in %s", (unsigned long long)t->rows, t->rows == 1 ? "" : "s", kept);
    }
    strbuf_addf(out, "\n\n  %-22s %-10s %-7s %s\n", "COLUMN", "TYPE", "UNIT", "DESCRIPTION");
    tables_fill_common(common);
    tables_put_rows(common, RING_COMMON_COLUMNS, out);
    tables_put_rows(t->columns, t->n_columns, out);
}

static int tables_exec(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                       struct err *e) {
    const struct cli_read_options *mine = (const struct cli_read_options *)(const void *)o;
    struct database *d;
    if (cli_open_database(o, addr, mine->no_inject, &d, e) != 0)
        return -1;
    struct tables *t = calloc(1, sizeof *t);
    const struct sql_table_info *one = NULL;
    int rc = t ? 0 : err_set(e, ERR_FAILED, "out of memory for the tables");
    if (rc == 0)
        tables_fill(t, database_sql(d), o->targets.n);
    if (rc == 0 && o->operand) {
        one = tables_find(t, o->operand, e);
        rc = one ? 0 : -1;
    }
    if (rc == 0 && o->json)
        tables_put_json(one ? one : t->items, one ? 1 : t->n, out);
    else if (rc == 0 && one)
        tables_put_one(one, out);
    else if (rc == 0)
        tables_put_list(t->items, t->n, out);
    if (rc == 0)
        cli_note_database(d);
    free(t);
    database_close(d);
    return rc;
}

const struct cli_verb verb_tables = {
    .name = "tables",
    .group = "Data",
    .help = "list tables with their size and age; for one table, its columns",
    .example = "probing 4242 tables python.backtrace",
    .many_targets = true,
    .operand = "[TABLE]",
    .options = cli_read_options,
    .options_size = sizeof(struct cli_read_options),
    .exec = tables_exec,
};
