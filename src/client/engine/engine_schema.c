/* SPDX-License-Identifier: Apache-2.0 */
/* engine_schema: see engine_schema.h. */
#include "client/engine/engine_schema.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "client/report_fields.h"
#include "version.h"

#define ENGINE_TABLES_MAX (RING_TABLE_KEPT + 8)
#define ENGINE_LIMIT_S 60.0 /* of a statement that changes the schema */
#define ENGINE_ORDER "(job, intDiv(toUInt32(ts), 60), rank, host, pid, created_us, row)"
#define ENGINE_SECONDS_A_DAY 86400.0
/* servers that drop rows by age, and those that gather rows themselves */
#define ENGINE_HAS_TTL ENGINE_HTTP_VERSION(20, 3)
#define ENGINE_HAS_ASYNC_INSERT ENGINE_HTTP_VERSION(21, 11)
/* a table that gathers rows passes them on after a second */
#define ENGINE_BUFFER "1, 1, 1, 1000000, 1000000, 100000000, 100000000"

static const struct row_column engine_common_columns[ENGINE_COMMON_COUNT] = {
    [ENGINE_DAY] = {"day", ROW_DATE, false},    [ENGINE_JOB] = {"job", ROW_STRING, false},
    [ENGINE_RANK] = {"rank", ROW_INT32, false}, [ENGINE_HOST] = {"host", ROW_STRING, false},
    [ENGINE_PID] = {"pid", ROW_INT32, false},   [ENGINE_CREATED_US] = {"created_us", ROW_UINT64, false},
    [ENGINE_ROW] = {"row", ROW_UINT64, false},  [ENGINE_TS] = {"ts", ROW_FLOAT64, false},
};

#define ENGINE_TYPE_INT ROW_INT64
#define ENGINE_TYPE_REAL ROW_FLOAT64
#define ENGINE_TYPE_TEXT ROW_STRING
#define ENGINE_FIELD(kind, name) {#name, ENGINE_TYPE_##kind, true},

static const struct row_column engine_rank_columns[] = {REPORT_RANK_FIELDS(ENGINE_FIELD)};
static const struct row_column engine_state_columns[] = {REPORT_STATE_FIELDS(ENGINE_FIELD)};
static const struct row_column engine_group_columns[] = {REPORT_GROUP_FIELDS(ENGINE_FIELD)};
static const struct row_column engine_host_columns[] = {
    REPORT_JOB_FIELDS(ENGINE_FIELD) /* enum engine_hosts */
    {"via", ROW_STRING, true},
    {"cost_pct", ROW_FLOAT64, true},
    {"written", ROW_INT64, true},
    {"lost", ROW_INT64, true},
    {"lag_s", ROW_FLOAT64, true},
    {"clock_s", ROW_FLOAT64, true},
};
static const struct row_column engine_stack_columns[ENGINE_STACKS_COUNT] = {
    [ENGINE_STACKS_DAY] = {"day", ROW_DATE, false},       [ENGINE_STACKS_JOB] = {"job", ROW_STRING, false},
    [ENGINE_STACKS_STACK] = {"stack", ROW_UINT64, false}, [ENGINE_STACKS_FUNC] = {"func", ROW_STRINGS, false},
    [ENGINE_STACKS_FILE] = {"file", ROW_STRINGS, false},  [ENGINE_STACKS_LINE] = {"line", ROW_INTS, false},
};
static const struct row_column engine_version_columns[] = {
    {"version", ROW_UINT32, false}, {"ts", ROW_FLOAT64, false}, {"by", ROW_STRING, false}};

#define ENGINE_COUNT(list) (sizeof(list) / sizeof(list)[0])

/* ---- the list ---- */

static struct engine_table engine_list[ENGINE_TABLES_MAX];
static const struct engine_table *engine_pointers[ENGINE_TABLES_MAX + 1];
static char engine_names[ENGINE_TABLES_MAX][RING_MAX_NAME];
static struct row_column engine_columns[ENGINE_TABLES_MAX][ENGINE_MAX_COLUMNS];
static size_t engine_n;
static pthread_once_t engine_once = PTHREAD_ONCE_INIT;

static enum row_type engine_type_of(enum ring_type type) {
    switch (type) {
    case RING_TIMESTAMP:
    case RING_DOUBLE:
        return ROW_FLOAT64;
    case RING_INT32:
        return ROW_INT32;
    case RING_UINT32:
    case RING_ID:
        return ROW_UINT32;
    case RING_BOOL:
        return ROW_UINT8;
    case RING_TEXT:
    case RING_ENUM:
        return ROW_STRING;
    case RING_INT64:
        break;
    }
    return ROW_INT64;
}

static bool engine_is_common(const char *name) {
    for (size_t i = 0; i < ENGINE_COMMON_COUNT; i++)
        if (strcmp(engine_common_columns[i].name, name) == 0)
            return true;
    return false;
}

/* A table with the common columns; its own follow. */
static struct engine_table *engine_begin(const char *name) {
    struct engine_table *t = &engine_list[engine_n];
    snprintf(engine_names[engine_n], sizeof engine_names[engine_n], "%s", name);
    for (char *dot = engine_names[engine_n]; (dot = strchr(dot, '.'));)
        *dot = '_';
    memcpy(engine_columns[engine_n], engine_common_columns, sizeof engine_common_columns);
    *t = (struct engine_table){.name = engine_names[engine_n],
                               .columns = engine_columns[engine_n],
                               .n = ENGINE_COMMON_COUNT,
                               .order = ENGINE_ORDER};
    engine_pointers[engine_n] = t;
    engine_n++;
    return t;
}

/* A column of the table that was begun last, unless it is a common one, or ts by another name. */
static void engine_add(struct engine_table *t, struct row_column c) {
    if (engine_is_common(c.name) || (t->alias && strcmp(t->alias, c.name) == 0) || t->n == ENGINE_MAX_COLUMNS)
        return;
    if (strcmp(c.name, "stack") == 0 && c.type == ROW_INT64) /* a hash, as in stacks */
        c.type = ROW_UINT64;
    engine_columns[t - engine_list][t->n++] = c;
}

static void engine_add_ring(const struct ring_table_def *def) {
    struct engine_table *t = engine_begin(def->name);
    t->ring = def;
    for (const struct ring_column_def *c = def->columns; c->name; c++)
        if (c->type == RING_TIMESTAMP)
            t->alias = c->name;
    for (const struct ring_column_def *c = def->columns; c->name; c++)
        engine_add(t, (struct row_column){c->name, engine_type_of(c->type), true});
}

static void engine_add_report(const char *name, const char *alias, const struct row_column *columns,
                              size_t n) {
    struct engine_table *t = engine_begin(name);
    t->alias = alias;
    t->is_live = true;
    for (size_t i = 0; i < n; i++)
        engine_add(t, columns[i]);
}

static void engine_add_plain(const char *name, const char *order, const struct row_column *columns,
                             size_t n) {
    struct engine_table *t = engine_begin(name);
    t->columns = columns;
    t->n = n;
    t->order = order;
}

static void engine_make_list(void) {
    for (size_t i = 0; i < RING_TABLE_KEPT; i++)
        engine_add_ring(&RING_TABLES[i]);
    engine_add_ring(&RING_TABLES[RING_GPU]);
    engine_add_report("ranks", "taken_at", engine_rank_columns, ENGINE_COUNT(engine_rank_columns));
    engine_add_report("states", NULL, engine_state_columns, ENGINE_COUNT(engine_state_columns));
    engine_add_report("groups", NULL, engine_group_columns, ENGINE_COUNT(engine_group_columns));
    engine_add_report("hosts", NULL, engine_host_columns, ENGINE_COUNT(engine_host_columns));
    engine_add_plain("stacks", "(job, stack)", engine_stack_columns, ENGINE_COUNT(engine_stack_columns));
    engine_add_plain("schema_version", "version", engine_version_columns,
                     ENGINE_COUNT(engine_version_columns));
}

const struct engine_table *const *engine_tables(void) {
    pthread_once(&engine_once, engine_make_list);
    return engine_pointers;
}

const struct engine_table *engine_table_find(const char *name) {
    for (const struct engine_table *const *t = engine_tables(); *t; t++)
        if (strcmp((*t)->name, name) == 0 || ((*t)->ring && strcmp((*t)->ring->name, name) == 0))
            return *t;
    return NULL;
}

/* ---- rows ---- */

int64_t engine_day(double ts) {
    double day = floor(ts / ENGINE_SECONDS_A_DAY);
    return !(day > 0) ? 0 : day > UINT16_MAX ? UINT16_MAX : (int64_t)day;
}

void engine_put_common(struct row_value *row, const char *job, int64_t rank, const char *host, int64_t pid,
                       uint64_t created_us, uint64_t number, double ts) {
    row[ENGINE_DAY] = row_int(engine_day(ts));
    row[ENGINE_JOB] = row_text(job);
    row[ENGINE_RANK] = row_int(rank);
    row[ENGINE_HOST] = row_text(host);
    row[ENGINE_PID] = row_int(pid);
    row[ENGINE_CREATED_US] = row_bits(created_us);
    row[ENGINE_ROW] = row_bits(number);
    row[ENGINE_TS] = row_real(ts);
}

/* Enums are texts. */
static struct row_value engine_ring_value(const struct ring_column_def *c, union ring_value v) {
    int64_t n = 0;
    switch (c->type) {
    case RING_TIMESTAMP:
    case RING_DOUBLE:
        return row_real(v.f);
    case RING_TEXT:
        return row_text(v.s);
    case RING_ENUM:
        while (n < v.i && c->labels[n])
            n++;
        return row_text(v.i < 0 ? NULL : c->labels[n]);
    default:
        return row_int(v.i);
    }
}

void engine_put_ring(const struct engine_table *t, const union ring_value *values, struct row_value *row) {
    size_t at = ENGINE_COMMON_COUNT;
    for (size_t i = 0; t->ring->columns[i].name; i++)
        if (at < t->n && strcmp(t->columns[at].name, t->ring->columns[i].name) == 0)
            row[at++] = engine_ring_value(&t->ring->columns[i], values[i]);
}

/* ---- statements ---- */

static void engine_put_table(struct strbuf *out, const char *database, const char *name) {
    engine_http_put_name(out, database);
    strbuf_addc(out, '.');
    engine_http_put_name(out, name);
}

static void engine_put_buffer_name(char *name, size_t cap, const struct engine_table *t) {
    snprintf(name, cap, "%s_buffer", t->name);
}

void engine_put_insert(struct strbuf *out, const struct engine_table *t, const char *database, int version) {
    char name[RING_MAX_NAME + 16];
    engine_put_buffer_name(name, sizeof name, t);
    strbuf_adds(out, "INSERT INTO ");
    engine_put_table(out, database, t->is_live && version < ENGINE_HAS_ASYNC_INSERT ? name : t->name);
    for (size_t i = 0; i < t->n; i++) {
        strbuf_adds(out, i ? ", " : " (");
        engine_http_put_name(out, t->columns[i].name);
    }
    strbuf_adds(out, ") FORMAT RowBinary");
}

static bool engine_has_day(const struct engine_table *t) { return strcmp(t->columns[0].name, "day") == 0; }

static void engine_put_create(struct strbuf *out, const struct engine_table *t, const char *database,
                              int version, int retention_days) {
    strbuf_adds(out, "CREATE TABLE IF NOT EXISTS ");
    engine_put_table(out, database, t->name);
    for (size_t i = 0; i < t->n; i++) {
        strbuf_adds(out, i ? ", " : " (");
        engine_http_put_name(out, t->columns[i].name);
        strbuf_addf(out, " %s", row_binary_type(&t->columns[i]));
    }
    if (t->alias) {
        strbuf_adds(out, ", ");
        engine_http_put_name(out, t->alias);
        strbuf_adds(out, " Float64 ALIAS ts");
    }
    strbuf_addf(out, ") ENGINE = ReplacingMergeTree()%s ORDER BY %s",
                engine_has_day(t) ? " PARTITION BY day" : "", t->order);
    bool ttl = retention_days > 0 && engine_has_day(t) && version >= ENGINE_HAS_TTL;
    if (ttl)
        strbuf_addf(out, " TTL day + toIntervalDay(%d)", retention_days);
    strbuf_addf(out, " SETTINGS index_granularity = 8192%s",
                engine_has_day(t) && version >= ENGINE_HAS_TTL ? ", ttl_only_drop_parts = 1" : "");
}

static void engine_put_buffer(struct strbuf *out, const struct engine_table *t, const char *database) {
    char name[RING_MAX_NAME + 16];
    engine_put_buffer_name(name, sizeof name, t);
    strbuf_adds(out, "CREATE TABLE IF NOT EXISTS ");
    engine_put_table(out, database, name);
    strbuf_adds(out, " AS ");
    engine_put_table(out, database, t->name);
    strbuf_adds(out, " ENGINE = Buffer(");
    engine_http_put_name(out, database);
    strbuf_addf(out, ", %s, " ENGINE_BUFFER ")", t->name);
}

static void engine_put_version(struct strbuf *out, const char *database) {
    strbuf_adds(out, "INSERT INTO ");
    engine_put_table(out, database, "schema_version");
    strbuf_addf(out, " (version, ts, by) VALUES (%d, toUInt32(now()), 'probing " PROBING_VERSION "')",
                ENGINE_SCHEMA_VERSION);
}

/* Passes statements on. */
struct engine_statements {
    struct strbuf sql;
    engine_statement_fn give;
    void *arg;
    int rc;
};

static void engine_give(struct engine_statements *s) {
    if (s->rc == 0)
        s->rc = s->give(s->arg, strbuf_str(&s->sql));
    strbuf_clear(&s->sql);
}

int engine_schema_each(const char *database, int version, int retention_days, engine_statement_fn give,
                       void *arg) {
    struct engine_statements s = {.give = give, .arg = arg};
    strbuf_init(&s.sql, 0);
    strbuf_adds(&s.sql, "CREATE DATABASE IF NOT EXISTS ");
    engine_http_put_name(&s.sql, database);
    engine_give(&s);
    for (const struct engine_table *const *t = engine_tables(); *t; t++) {
        engine_put_create(&s.sql, *t, database, version, retention_days);
        engine_give(&s);
        if ((*t)->is_live && version < ENGINE_HAS_ASYNC_INSERT) {
            engine_put_buffer(&s.sql, *t, database);
            engine_give(&s);
        }
    }
    engine_put_version(&s.sql, database);
    engine_give(&s);
    strbuf_fini(&s.sql);
    return s.rc;
}

/* ---- on a server ---- */

/* A schema that is made or upgraded. */
struct engine_change {
    struct engine_http *http;
    const char *database;
    int version; /* of the server */
    int has;     /* version of its schema, 0 none */
    int retention_days;
    struct strbuf *notes, sql;
    struct strbuf columns; /* "table\tcolumn\ttype\n" of what it has */
    struct err *e;
};

static int engine_command(struct engine_change *c) {
    int rc = engine_http_command(c->http, strbuf_str(&c->sql), ENGINE_LIMIT_S, c->e);
    strbuf_clear(&c->sql);
    return rc;
}

/* The number that a statement gives, or -1 with the error. */
static long engine_ask_number(struct engine_http *h, const char *sql, struct err *e) {
    struct strbuf out;
    strbuf_init(&out, 256);
    long n =
        engine_http_query(h, sql, ENGINE_LIMIT_S, &out, e) == 0 ? strtol(strbuf_str(&out), NULL, 10) : -1;
    strbuf_fini(&out);
    return n;
}

static long engine_read_version(struct engine_http *h, struct strbuf *sql, struct err *e) {
    strbuf_clear(sql);
    strbuf_adds(sql, "SELECT max(version) FROM ");
    engine_put_table(sql, engine_http_address(h)->database, "schema_version");
    strbuf_adds(sql, " FORMAT TabSeparated");
    long n = engine_ask_number(h, strbuf_str(sql), e);
    strbuf_clear(sql);
    return n;
}

/* What there is. 0, or -1 with the error. */
static int engine_read_columns(struct engine_change *c) {
    strbuf_adds(&c->sql, "SELECT table, name, type FROM system.columns WHERE database = ");
    engine_http_put_text(&c->sql, c->database);
    strbuf_adds(&c->sql, " FORMAT TabSeparated");
    int rc = engine_http_query(c->http, strbuf_str(&c->sql), ENGINE_LIMIT_S, &c->columns, c->e);
    strbuf_clear(&c->sql);
    return rc;
}

/* Has it that column, or (NULL) that table? Its type is what follows then, up to a newline. */
static const char *engine_find_column(const struct engine_change *c, const char *table, const char *column) {
    char line[RING_MAX_NAME * 2 + 16];
    snprintf(line, sizeof line, column ? "%s\t%s\t" : "%s\t", table, column);
    for (const char *at = strbuf_str(&c->columns); at && *at; at = strchr(at, '\n'), at = at ? at + 1 : NULL)
        if (strncmp(at, line, strlen(line)) == 0)
            return at + strlen(line);
    return NULL;
}

static bool engine_is_type(const char *found, const char *type) {
    size_t len = strlen(type);
    return strncmp(found, type, len) == 0 && (found[len] == '\n' || found[len] == '\0');
}

/* Add the columns that a table of an older version lacks. */
static int engine_add_columns(struct engine_change *c, const struct engine_table *t) {
    char buffer[RING_MAX_NAME + 16];
    bool is_changed = false;
    engine_put_buffer_name(buffer, sizeof buffer, t);
    for (size_t i = 0; i < t->n; i++) {
        const struct row_column *column = &t->columns[i];
        const char *type = row_binary_type(column), *found = engine_find_column(c, t->name, column->name);
        if (found && !engine_is_type(found, type))
            return err_set(
                c->e, ERR_FAILED,
                "column %s of table %s.%s is not of type %s: probing did not make this table. Choose "
                "another database",
                column->name, c->database, t->name, type);
        if (found)
            continue;
        if (!is_changed && engine_find_column(c, buffer, NULL)) {
            strbuf_adds(&c->sql, "DROP TABLE ");
            engine_put_table(&c->sql, c->database, buffer);
            if (engine_command(c) != 0)
                return -1;
        }
        is_changed = true;
        strbuf_adds(&c->sql, "ALTER TABLE ");
        engine_put_table(&c->sql, c->database, t->name);
        strbuf_adds(&c->sql, " ADD COLUMN ");
        engine_http_put_name(&c->sql, column->name);
        strbuf_addf(&c->sql, " %s", type);
        if (engine_command(c) != 0)
            return -1;
        strbuf_addf(c->notes, "column %s added to %s\n", column->name, t->name);
    }
    return 0;
}

static int engine_make_table(struct engine_change *c, const struct engine_table *t) {
    if (engine_find_column(c, t->name, NULL)) {
        if (engine_add_columns(c, t) != 0)
            return -1;
    } else {
        engine_put_create(&c->sql, t, c->database, c->version, c->retention_days);
        if (engine_command(c) != 0)
            return -1;
        strbuf_addf(c->notes, "table %s created\n", t->name);
    }
    if (!t->is_live || c->version >= ENGINE_HAS_ASYNC_INSERT)
        return 0;
    engine_put_buffer(&c->sql, t, c->database);
    return engine_command(c);
}

/* ---- how long rows are kept ---- */

static int engine_keep_by_server(struct engine_change *c, const struct engine_table *t) {
    strbuf_adds(&c->sql, "ALTER TABLE ");
    engine_put_table(&c->sql, c->database, t->name);
    strbuf_addf(&c->sql, " MODIFY TTL day + toIntervalDay(%d)", c->retention_days);
    return engine_command(c);
}

/* Drop the days that are older, on a server that does not do so itself. */
static int engine_drop_days(struct engine_change *c, const struct engine_table *t) {
    struct strbuf days;
    int rc;
    strbuf_init(&days, (size_t)1 << 20);
    strbuf_adds(&c->sql, "SELECT DISTINCT partition FROM system.parts WHERE active AND database = ");
    engine_http_put_text(&c->sql, c->database);
    strbuf_adds(&c->sql, " AND table = ");
    engine_http_put_text(&c->sql, t->name);
    strbuf_addf(&c->sql,
                " AND toDate(replaceAll(partition, '\\'', '')) < today() - %d FORMAT TabSeparatedRaw",
                c->retention_days);
    rc = engine_http_query(c->http, strbuf_str(&c->sql), ENGINE_LIMIT_S, &days, c->e);
    strbuf_clear(&c->sql);
    for (char *at = rc == 0 ? days.data : NULL, *end; rc == 0 && at && (end = strchr(at, '\n'));
         at = end + 1) {
        int year, month, day;
        if (sscanf(at + (*at == '\''), "%4d-%2d-%2d", &year, &month, &day) != 3)
            continue;
        strbuf_adds(&c->sql, "ALTER TABLE ");
        engine_put_table(&c->sql, c->database, t->name);
        strbuf_addf(&c->sql, " DROP PARTITION '%04d-%02d-%02d'", year, month, day);
        rc = engine_command(c);
        strbuf_addf(c->notes, "rows of %04d-%02d-%02d dropped from %s\n", year, month, day, t->name);
    }
    strbuf_fini(&days);
    return rc;
}

static int engine_keep(struct engine_change *c) {
    int rc = 0;
    for (const struct engine_table *const *t = engine_tables(); *t && rc == 0; t++)
        if (engine_has_day(*t))
            rc = c->version >= ENGINE_HAS_TTL ? engine_keep_by_server(c, *t) : engine_drop_days(c, *t);
    return rc;
}

/* ---- all of it ---- */

static int engine_make_database(struct engine_change *c) {
    strbuf_adds(&c->sql, "SELECT count() FROM system.databases WHERE name = ");
    engine_http_put_text(&c->sql, c->database);
    long n = engine_ask_number(c->http, strbuf_str(&c->sql), c->e);
    strbuf_clear(&c->sql);
    if (n != 0)
        return n < 0 ? -1 : 0;
    strbuf_adds(&c->sql, "CREATE DATABASE IF NOT EXISTS ");
    engine_http_put_name(&c->sql, c->database);
    if (engine_command(c) != 0)
        return -1;
    strbuf_addf(c->notes, "database %s created\n", c->database);
    return 0;
}

static int engine_refuse_newer(const struct engine_change *c, long has) {
    return err_set(
        c->e, ERR_FAILED,
        "database %s has version %ld of the schema, and this probing knows version %d: use the newer "
        "probing that made it",
        c->database, has, ENGINE_SCHEMA_VERSION);
}

static int engine_change_all(struct engine_change *c) {
    c->version = engine_http_version(c->http, c->e);
    if (!c->version || engine_make_database(c) != 0 || engine_read_columns(c) != 0)
        return -1;
    long has =
        engine_find_column(c, "schema_version", NULL) ? engine_read_version(c->http, &c->sql, c->e) : 0;
    if (has < 0)
        return -1;
    if (has > ENGINE_SCHEMA_VERSION)
        return engine_refuse_newer(c, has);
    for (const struct engine_table *const *t = engine_tables(); *t; t++)
        if (engine_make_table(c, *t) != 0)
            return -1;
    if (c->retention_days > 0 && engine_keep(c) != 0)
        return -1;
    if (has == ENGINE_SCHEMA_VERSION)
        return 0;
    engine_put_version(&c->sql, c->database);
    return engine_command(c);
}

int engine_schema_init(struct engine_http *h, int retention_days, struct strbuf *notes, struct err *e) {
    struct engine_change c = {.http = h,
                              .database = engine_http_address(h)->database,
                              .retention_days = retention_days,
                              .notes = notes,
                              .e = e};
    strbuf_init(&c.sql, 0);
    strbuf_init(&c.columns, 0);
    int rc = engine_change_all(&c);
    strbuf_fini(&c.sql);
    strbuf_fini(&c.columns);
    return rc;
}

int engine_schema_check(struct engine_http *h, struct err *e) {
    struct strbuf sql, url;
    strbuf_init(&sql, 0);
    long has = engine_read_version(h, &sql, e);
    strbuf_fini(&sql);
    if (has < 0 || has >= ENGINE_SCHEMA_VERSION)
        return has < 0 ? -1 : 0;
    strbuf_init(&url, 256);
    engine_address_put(engine_http_address(h), &url);
    err_set(
        e, ERR_FAILED,
        "database %s has version %ld of the schema, and this probing needs version %d. Try: probing cluster "
        "init %s",
        engine_http_address(h)->database, has, ENGINE_SCHEMA_VERSION, strbuf_str(&url));
    strbuf_fini(&url);
    return -1;
}
