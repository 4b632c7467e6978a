/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verb_query: SQL over one or many targets, printed as a table or for programs; once or
 * repeatedly.
 *
 * ^C ends the running query, and then this program, as a signal does.
 */
#include "cli/cli.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "client/fleet/engine_tables.h"
#include "client/fleet/job_database.h"
#include "client/fleet/fleet_open.h"
#include "client/fleet/fleet_tables.h"
#include "client/fleet/tables_there.h"
#include "client/fleet/verdict_tables.h"
#include "client/sql/catalog.h"
#include "client/sql/database.h"
#include "client/output.h"
#include "client/progress.h"
#include "client/sql/result.h"
#include "store/ring/ring_tables.h"

#define QUERY_NAME_MAX 128
#define QUERY_JOB_MAX 512
#define QUERY_PIECE ((size_t)64 * 1024) /* bytes of rows that are written in one piece */
#define QUERY_MAX_TEXT ((size_t)1024 * 1024)
#define QUERY_LINE_MAX 512 /* of a statement in an error message */

struct query_options {
    struct cli_options common; /* first */
    const char *file, *format;
    long limit;
    double timeout_s, watch_s;
    bool no_inject;
    const char *map, *reduce; /* of a job */
    bool engine;
};

static const struct query_options query_default = {.limit = 100000, .timeout_s = 60};

static const char *query_choose_format(int i) { return result_formats[i].name; }

static const struct option_def query_options[] = {
    {"file", 'f', OPTION_STRING, offsetof(struct query_options, file), .arg = "FILE",
     .help = "read the statements from FILE; - is standard input"},
    {"format", 0, OPTION_STRING, offsetof(struct query_options, format), .arg = "FORMAT",
     .help = "table, json, ndjson or csv", .choice = query_choose_format},
    {"limit", 0, OPTION_INT, offsetof(struct query_options, limit), .arg = "ROWS",
     .help = "print at most ROWS rows of a statement (100000; 0: all)", .min = 0, .max = 1e15},
    {"timeout", 0, OPTION_SECONDS, offsetof(struct query_options, timeout_s), .arg = "TIME",
     .help = "stop a statement that takes longer than TIME (60s; 0: never)", .min = 0, .max = 1e6},
    {"watch", 0, OPTION_SECONDS, offsetof(struct query_options, watch_s), .arg = "TIME",
     .help = "run the query again TIME after the end of each run", .min = 0.05, .max = 86400},
    {"no-inject", 0, OPTION_FLAG, offsetof(struct query_options, no_inject),
     .help = "do not load the agent: read the process from outside"},
    {"engine", 0, OPTION_FLAG, offsetof(struct query_options, engine),
     .help = "give the statement to the server of a clickhouse:// target as it is, in its own SQL"},
    {.name = NULL},
};

static const struct option_def query_map_options[] = {
    {"map", 0, OPTION_STRING, offsetof(struct query_options, map), .arg = "SQL",
     .help = "run SQL on each host, over the tables of its ranks; its rows are the table 'mapped' here"},
    {"reduce", 0, OPTION_STRING, offsetof(struct query_options, reduce), .arg = "SQL",
     .help = "what to select from 'mapped' (default: all of it)"},
    {.name = NULL},
};

/* The query that ^C ends. One query a program. */
static struct database *query_running;

static void query_on_signal(int number) {
    (void)number;
    if (query_running)
        database_cancel(query_running);
}

/* ---- the statements ---- */

/* How other programs are asked for tables, or for the columns of one. */
static const char *const query_table_words[] = {"\\dt",        "\\d",      ".tables", ".schema",
                                                "show tables", "describe", "desc"};

/* True if the text asks for tables as in psql, sqlite3 or MySQL; then `name` has the table's
 * name, or is empty. */
static bool query_asks_for_tables(const char *text, char *name, size_t cap) {
    text += strspn(text, " \t\n");
    for (size_t i = 0; i < sizeof query_table_words / sizeof query_table_words[0]; i++) {
        size_t n = strlen(query_table_words[i]);
        if (strncasecmp(text, query_table_words[i], n) != 0 || (text[n] && !strchr(" \t\n;", text[n])))
            continue;
        const char *rest = text + n + strspn(text + n, " \t\n;");
        size_t len = strcspn(rest, " \t\n;");
        if (len >= cap || rest[len + strspn(rest + len, " \t\n;")])
            return false;
        memcpy(name, rest, len);
        name[len] = '\0';
        return true;
    }
    return false;
}

static int query_read_stdin(struct strbuf *text, struct err *e) {
    char buf[4096];
    for (;;) {
        ssize_t n = read(STDIN_FILENO, buf, sizeof buf);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set_errno(e, ERR_FAILED, errno, "standard input cannot be read");
        if (n == 0)
            return 0;
        if (strbuf_add(text, buf, (size_t)n) != 0)
            return err_set(e, ERR_FAILED, "standard input is longer than %zu bytes, the limit of a query",
                           QUERY_MAX_TEXT);
    }
}

/* Read the text from the operand, the file, or standard input if that is redirected. */
static int query_get_text(const struct query_options *o, struct strbuf *text, struct err *e) {
    const char *operand = o->common.operand;
    if (o->reduce && !o->map)
        return err_set(e, ERR_USAGE, "--reduce selects from the rows of --map: give both");
    if (o->map && (operand || o->file))
        return err_set(e, ERR_USAGE,
                       "--map takes the statement: what to select from its rows is --reduce SQL");
    if (o->map)
        return strbuf_adds(text, o->reduce ? o->reduce : "SELECT * FROM mapped") == 0
                   ? 0
                   : err_set(e, ERR_USAGE, "the statement is longer than %zu bytes", QUERY_MAX_TEXT);
    if (operand && o->file)
        return err_set(e, ERR_USAGE, "a statement and --file: give one");
    if (operand && strbuf_adds(text, operand) != 0)
        return err_set(e, ERR_USAGE, "the statement is longer than %zu bytes", QUERY_MAX_TEXT);
    if (operand)
        return 0;
    if (!o->file && isatty(STDIN_FILENO))
        return err_set(
            e, ERR_USAGE,
            "query needs a statement: probing TARGET query \"SELECT ...\", -f FILE, or standard input");
    if (output_is_stdout(o->file)) /* the same name for both outputs */
        return query_read_stdin(text, e);
    if (strbuf_read_file(text, o->file) != 0)
        return err_set_errno(e, ERR_FAILED, errno, "%s cannot be read", o->file);
    return 0;
}

/* Show the line of the statement that has the error, with a mark below its place; for people
 * only. */
static void query_show_place(const char *text, long at) {
    char line[QUERY_LINE_MAX], clean[3 * QUERY_LINE_MAX + 1];
    size_t len = strlen(text), end = at < 0 ? 0 : (size_t)at, begin;
    if (at < 0 || (size_t)at > len || !isatty(STDERR_FILENO))
        return;
    for (begin = end; begin > 0 && text[begin - 1] != '\n' && end - begin < QUERY_LINE_MAX / 2; begin--)
        ;
    size_t before = end - begin;
    snprintf(line, sizeof line, "%.*s", (int)before, text + begin);
    text_sanitize(clean, sizeof clean, line);
    int column = text_width(clean);
    snprintf(line, sizeof line, "%.*s", (int)(before + strcspn(text + end, "\n")), text + begin);
    text_sanitize(clean, sizeof clean, line);
    output_say("  %s\n  %*s^\n", clean, column > 0 ? column : 0, "");
}

/* ---- one round ---- */

static void query_note_limits(const struct query_options *o, const struct sql_result *r) {
    if (sql_result_truncated(r))
        output_say("probing: there are more than %ld rows: --limit 0 shows all\n", o->limit);
    if (sql_result_lost(r))
        output_say("probing: %" PRIu64 " pieces of tables were overwritten while they were read\n",
                   sql_result_lost(r));
}

/* The note about what a statement could not read: printed once while it stays the same, and
 * after all statements have run. */
static struct {
    char last[1024];
    char lines[8192];
} query_notes;

static void query_note_database(struct database *d) {
    char clean[sizeof query_notes.last];
    size_t n = strlen(query_notes.lines);
    text_sanitize(clean, sizeof clean, database_note(d));
    if (clean[0] && strcmp(query_notes.last, clean) != 0)
        snprintf(query_notes.lines + n, sizeof query_notes.lines - n, "probing: %s\n", clean);
    memcpy(query_notes.last, clean, sizeof clean);
}

static void query_print_notes(void) {
    output_say("%s", query_notes.lines);
    query_notes.lines[0] = '\0';
}

/* The tables of the ranks on other hosts; NULL: they are of this host. */
static struct tables_there *query_there;

/* Run the statement of --map, here or on the hosts. 0, or -1 with the error. */
static int query_map(const struct query_options *o, struct database *d, struct err *e) {
    struct strbuf text;
    struct sql_query q = {.timeout_s = o->timeout_s};
    *e = (struct err){.code = ERR_OK};
    if (query_there)
        return tables_there_map(query_there, d, o->map, e);
    strbuf_init(&text, 0);
    strbuf_addf(&text, "CREATE TEMP TABLE mapped AS %s", o->map);
    int rc = sql_execute(database_sql(d), "DROP TABLE IF EXISTS temp.mapped");
    struct sql_result *r = rc == 0 ? database_begin(d, strbuf_str(&text), &q, NULL, NULL, e) : NULL;
    rc = r ? sql_next(r, e) : -1;
    sql_end(r);
    strbuf_fini(&text);
    if (rc >= 0)
        return 0;
    database_explain(d, e);
    return -1;
}

/* Append the rows in a format that needs the whole answer. 0, or -1 with the error. */
static int query_put_whole(const struct query_options *o, struct database *d, const struct result_format *f,
                           struct sql_result *r, struct strbuf *out, struct err *e) {
    struct result *rows = result_take(r, o->limit > 0 ? RESULT_BYTES : RESULT_BYTES_ALL, e);
    if (!rows) {
        database_explain(d, e);
        return -1;
    }
    int columns = strcmp(f->name, "table") == 0 ? output_columns() : 0;
    if (rows->n_columns > 0 && columns > 0)
        result_put_fitted(rows, columns, out);
    else if (rows->n_columns > 0)
        result_write(rows, f, isatty(STDOUT_FILENO), out);
    result_unref(rows);
    return 0;
}

/* True if the reader of our output is gone. */
static bool query_reader_left(void) {
    struct pollfd p = {.fd = STDOUT_FILENO};
    return poll(&p, 1, 0) > 0 && (p.revents & (POLLERR | POLLNVAL));
}

/* A statement failed after `n` rows. Rows that are still in memory, from `begin` on, are
 * dropped, so that nobody takes the beginning of a short answer for the whole. If some were
 * written already, the others follow, and the message has their number. */
static void query_end_early(struct strbuf *out, size_t begin, bool is_written, uint64_t n, struct err *e) {
    struct err why = *e;
    if (is_written) {
        err_set(e, why.code, "%s; the %" PRIu64 " rows before that were written", why.text, n);
    } else if (out->len > begin) {
        out->len = begin;
        out->data[begin] = '\0';
    }
}

/* Write row by row: only one piece of the answer is in memory. 0, or -1 with the error. */
static int query_put_rows(struct database *d, const struct result_format *f, struct sql_result *r,
                          struct strbuf *out, struct err *e) {
    bool terminal = isatty(STDOUT_FILENO), is_written = false, is_read = true;
    size_t begin = out->len;
    uint64_t n = 0;
    struct result *columns = result_new_for(r, 0, RESULT_BYTES, e);
    struct result_cell *cells = columns ? calloc(columns->n_columns + 1, sizeof *cells) : NULL;
    int rc = cells ? 0 : err_set(e, ERR_FAILED, "out of memory for the result");
    if (rc == 0 && f->put_head && columns->n_columns > 0)
        f->put_head(columns, terminal, out);
    while (rc == 0 && is_read && !out->failed && (rc = sql_next(r, e)) == 1) {
        result_read_row(r, cells);
        f->put_row(columns, cells, terminal, out);
        n++;
        rc = 0;
        if (out->len < QUERY_PIECE || out->failed)
            continue;
        progress_end(); /* from here on the rows are seen */
        uint64_t began = clock_mono_ns();
        rc = output_write(NULL, out, e);
        sql_extend(r, clock_mono_ns() - began);
        strbuf_clear(out);
        begin = 0;
        is_written = true;
        is_read = !query_reader_left();
    }
    if (rc < 0) {
        database_explain(d, e);
        query_end_early(out, begin, is_written, n, e);
    }
    free(cells);
    result_unref(columns);
    return rc < 0 ? -1 : 0;
}

static int query_statement(const struct query_options *o, struct database *d, const struct result_format *f,
                           const char *whole, const char *text, const char **tail, struct strbuf *out,
                           struct err *e) {
    struct sql_query q = {.max_rows = (uint64_t)o->limit, .timeout_s = o->timeout_s, .whole = whole};
    struct sql_error where = {.at = -1};
    progress_begin("querying", 0, "^C ends it");
    if (query_there)
        tables_there_start_clock(query_there);
    struct sql_result *r = database_begin(d, text, &q, tail, &where, e);
    if (!r) {
        progress_end();
        if (e->code != ERR_OK)
            query_show_place(whole, where.at);
        return e->code == ERR_OK ? 0 : -1;
    }
    int rc = f->put_row ? query_put_rows(d, f, r, out, e) : query_put_whole(o, d, f, r, out, e);
    progress_end();
    if (rc == 0) {
        query_note_limits(o, r);
        query_note_database(d);
    }
    sql_end(r);
    if (rc == 0 && out->failed)
        rc = err_set(e, ERR_FAILED, "the answer is too large: ask for fewer rows");
    return rc == 0 ? 1 : -1;
}

/* Run all statements of the text, in order. */
static int query_round(const struct query_options *o, struct database *d, const struct result_format *f,
                       const char *text, struct strbuf *out, struct err *e) {
    int rc = database_refresh(d, e) == 0 ? 1 : -1, ran = 0;
    if (query_there)
        tables_there_begin(query_there);
    if (rc > 0 && o->map && query_map(o, d, e) != 0)
        rc = -1;
    for (const char *rest = text; rc > 0;) {
        rc = query_statement(o, d, f, text, rest, &rest, out, e);
        ran += rc > 0;
    }
    if (query_there && (rc == 0 || !tables_there_has_failed(query_there)))
        cli_note_there(query_there);
    if (rc == 0)
        query_print_notes();
    return rc == 0 && ran == 0 ? err_set(e, ERR_USAGE, "no SQL given: probing TARGET query \"SELECT ...\"")
                               : rc;
}

/* ---- again and again ---- */

/* Wait for that time, or for ^C. */
static void query_wait(double seconds, struct database *d) {
    sigset_t interrupt, before;
    struct timespec t = {.tv_sec = (time_t)seconds,
                         .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    sigprocmask(SIG_BLOCK, &interrupt, &before);
    if (!database_cancelled(d))
        ppoll(NULL, 0, &t, &before);
    sigprocmask(SIG_SETMASK, &before, NULL);
}

static int query_watch(const struct query_options *o, struct database *d, const struct result_format *f,
                       const char *text, struct strbuf *out, struct err *e) {
    int rc = 0;
    while (rc == 0 && !query_reader_left()) {
        rc = query_round(o, d, f, text, out, e);
        if (rc == 0)
            rc = output_write(NULL, out, e);
        strbuf_clear(out);
        if (rc == 0)
            query_wait(o->watch_s, d);
        if (database_cancelled(d))
            return -1;
    }
    return rc;
}

/* ---- the verb ---- */

/* End like an interrupted program: by the signal, so that a script that runs it ends, too. */
static void query_end_by_signal(void) {
    struct err dropped;
    output_redirect_end(false, &dropped);
    signal(SIGINT, SIG_DFL);
    raise(SIGINT);
}

static int query_run(const struct query_options *o, struct database *d, const struct result_format *f,
                     const char *text, struct strbuf *out, struct err *e) {
    struct sigaction action = {.sa_handler = query_on_signal, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    query_running = d;
    sigaction(SIGINT, &action, NULL);
    int rc = o->watch_s > 0 ? query_watch(o, d, f, text, out, e) : query_round(o, d, f, text, out, e);
    signal(SIGINT, SIG_DFL);
    query_running = NULL;
    if (database_cancelled(d))
        query_end_by_signal();
    return rc;
}

/* What is asked, of whom, and in which format the answer goes. */
struct query_task {
    struct query_options options;
    const struct result_format *format;
    struct strbuf text;
};

/* 0, or -1 with the error; query_end frees, on failure too. */
static int query_prepare(struct query_task *q, const struct cli_options *o, struct strbuf *out,
                         struct err *e) {
    q->options = *(const struct query_options *)(const void *)o;
    strbuf_init(&q->text, QUERY_MAX_TEXT);
    /* --limit 0: all rows */
    if (q->options.limit == 0)
        out->limit = RESULT_BYTES_ALL;
    q->format = result_find_format(q->options.format ? q->options.format : o->json ? "json" : "table", e);
    if (!q->format)
        return -1;
    if (cli_check_format(o, q->options.format, e) != 0)
        return -1;
    return query_get_text(&q->options, &q->text, e);
}

static void query_end(struct query_task *q) { strbuf_fini(&q->text); }

/* Run the statements; `rc` is whether the database could be opened. */
static int query_finish(struct query_task *q, int rc, struct database *d, struct strbuf *out, struct err *e) {
    if (rc == 0 && (rc = query_run(&q->options, d, q->format, strbuf_str(&q->text), out, e)) != 0 &&
        out->len && !out->failed) {
        struct err none; /* the answers of earlier statements stay valid if a later one fails */
        output_write(NULL, out, &none);
        query_print_notes();
    }
    return rc;
}

static int cluster_query_exec(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                              struct err *e);

static int query_exec(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                      struct err *e) {
    struct query_task q;
    struct database *d = NULL;
    if (!addr)
        return cluster_query_exec(o, addr, out, e);
    int rc = query_prepare(&q, o, out, e);
    char table[QUERY_NAME_MAX];
    if (rc == 0 && query_asks_for_tables(strbuf_str(&q.text), table, sizeof table)) {
        struct cli_read_options read = {.common = *o, .no_inject = q.options.no_inject};
        read.common.operand = table[0] ? table : NULL;
        query_end(&q);
        return cli_find_verb("tables")->exec(&read.common, addr, out, e);
    }
    if (rc == 0) {
        rc = cli_open_database(o, addr, q.options.no_inject, &d, e);
        rc = query_finish(&q, rc, d, out, e);
        database_close(d);
    }
    query_end(&q);
    return rc;
}

/* ---- over the ranks of a job ---- */

/* True if the statements read tables of the ranks, by their text: of one that reads only what is known of
 * the job, no rank is asked. */
static bool query_reads_ranks(const char *text) {
    static const char *const views[] = {"training_logs", "comm_metrics"};
    if (!fleet_tables_is_read(text))
        return true;
    for (size_t i = 0; i < RING_TABLE_COUNT; i++)
        if (strcasestr(text, RING_TABLES[i].name) ||
            (RING_TABLES[i].alias && strcasestr(text, RING_TABLES[i].alias)))
            return true;
    for (size_t i = 0; i < sizeof views / sizeof views[0]; i++)
        if (strcasestr(text, views[i]))
            return true;
    return false;
}

/* Reach the ranks that are meant. 0, or -1 with the error. */
static int query_open_ranks(struct query_task *q, const char *name, bool no_inject, struct database **d,
                            struct err *e) {
    struct cli_ranks ranks;
    struct cli_options o = q->options.common;
    int rc = cli_find_ranks(&ranks, name, e);
    if (rc == 0) {
        o.targets = ranks.targets;
        rc = cli_open_database(&o, ranks.addr, no_inject, d, e);
    }
    cli_ranks_fini(&ranks);
    return rc;
}

/* The tables of the session, or the columns of one. 0, or -1 with the error. */
static int query_put_catalog(const struct query_task *q, struct database *d, const char *name,
                             struct strbuf *out, struct err *e) {
    struct catalog *c = catalog_of_session(database_sql(d));
    const struct catalog_table *t = c && name[0] ? catalog_find(c, name, strlen(name)) : NULL;
    struct result *rows = !c ? NULL : t ? catalog_list_columns(t) : catalog_list_tables(c);
    int rc = 0;
    if (c && name[0] && !t)
        rc = err_set(e, ERR_USAGE, "no table '%s': 'probing cluster query \\dt' lists them", name);
    else if (!rows)
        rc = err_set(e, ERR_FAILED, "out of memory for the list of tables");
    else
        result_write(rows, q->format, isatty(STDOUT_FILENO), out);
    result_unref(rows);
    catalog_free(c);
    return rc;
}

/* The database of a job: its ranks', if the statements read them, and the tables that a fleet has. */
struct query_job {
    struct fleet_reach reach;
    char name[QUERY_JOB_MAX];
    bool far;                      /* its ranks are not processes of this host */
    struct job_database *database; /* of a server, whose are `source` and `d`; NULL */
    struct fleet_source *source;   /* NULL: nothing of a fleet is read */
    struct fleet_tables tables;
    struct verdict_tables verdicts;
    struct database *d;
};

static int query_open_there(struct query_task *q, struct query_job *j, struct err *e) {
    const struct query_options *o = &q->options;
    bool attach = !o->no_inject && !o->common.readonly;
    query_there = tables_there_new(j->name, &j->reach, attach, o->timeout_s, e);
    j->d = query_there ? database_open(e) : NULL;
    return j->d ? tables_there_add(query_there, j->d, e) : -1;
}

/* For a list of tables: with the rows of the ranks, where these can be read as they are. */
static int query_open_listed(struct query_task *q, struct query_job *j, struct err *e) {
    if (!j->far && query_open_ranks(q, j->name, true, &j->d, e) != 0)
        e->code = ERR_OK;
    return 0;
}

static int query_open_database(struct query_task *q, struct query_job *j, const char *text, struct err *e) {
    j->database = job_database_open(j->name, q->options.timeout_s, NULL, NULL, e);
    if (!j->database)
        return -1;
    j->d = job_database_get(j->database);
    int rc = job_database_begin(j->database, text, e);
    j->source = job_database_source(j->database);
    return rc;
}

/* The statement as it is, by the server alone. */
static int query_pass(const struct query_task *q, const struct query_job *j, struct strbuf *out,
                      struct err *e) {
    static const char *const formats[][2] = {{"table", "PrettyCompactNoEscapes"},
                                             {"json", "JSON"},
                                             {"ndjson", "JSONEachRow"},
                                             {"csv", "CSVWithNames"}};
    const char *format = formats[0][1];
    if (!fleet_open_is_database(j->name))
        return err_set(e, ERR_USAGE,
                       "--engine is for a database: probing query --engine -t clickhouse://HOST/DB SQL");
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (strcmp(q->format->name, formats[i][0]) == 0)
            format = formats[i][1];
    return engine_tables_pass(j->name, strbuf_str(&q->text), format, q->options.timeout_s, out, e);
}

static int query_open_job(struct query_task *q, struct query_job *j, bool lists, struct err *e) {
    const char *text = q->options.map ? q->options.map : strbuf_str(&q->text);
    bool of_text = fleet_tables_is_read(strbuf_str(&q->text)),
         fleet = lists || of_text || fleet_tables_is_read(text);
    int rc = 0;
    j->far = fleet_open_is_far(j->name, &j->reach);
    if (fleet_open_is_database(j->name))
        return query_open_database(q, j, of_text ? strbuf_str(&q->text) : text, e);
    if (q->options.map && j->reach.hosts.n && fleet_tables_is_read(text))
        return err_set(e, ERR_USAGE,
                       "--map reads the ranks of one host: the tables cluster.* are for --reduce");
    if (fleet) {
        j->source = fleet_open(j->name, &j->reach, e);
        rc = j->source ? 0 : -1;
    }
    if (rc == 0 && (lists || query_reads_ranks(text)))
        rc = j->reach.hosts.n ? query_open_there(q, j, e)
             : lists          ? query_open_listed(q, j, e)
             : j->far         ? err_set(e, ERR_USAGE,
                                        "of other hosts there are the tables cluster.nodes, ranks, stacks and "
                                                "tree: name the hosts for others")
                              : query_open_ranks(q, j->name, q->options.no_inject, &j->d, e);
    if (rc == 0 && !j->d) {
        j->d = database_open(e);
        rc = j->d ? 0 : -1;
    }
    if (rc != 0 || !fleet)
        return rc;
    fleet_tables_init(&j->tables, j->source);
    verdict_tables_set_source(&j->verdicts, j->source);
    rc = database_add_tables(j->d, j->tables.providers, FLEET_TABLE_COUNT, e);
    if (rc == 0)
        rc = database_add_tables(j->d, j->verdicts.providers, VERDICT_TABLE_COUNT, e);
    return rc;
}

static int cluster_query_exec(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                              struct err *e) {
    struct query_task q;
    struct query_job j = {.source = NULL};
    char table[QUERY_NAME_MAX];
    (void)addr;
    int rc = cli_read_reach(o, &j.reach, j.name, sizeof j.name, e);
    if (rc != 0) {
        fleet_reach_fini(&j.reach);
        return -1;
    }
    rc = query_prepare(&q, o, out, e);
    bool lists = rc == 0 && query_asks_for_tables(strbuf_str(&q.text), table, sizeof table);
    verdict_tables_init(&j.verdicts, j.name, &j.reach);
    if (rc == 0 && q.options.engine) {
        rc = query_pass(&q, &j, out, e);
        verdict_tables_fini(&j.verdicts);
        fleet_reach_fini(&j.reach);
        query_end(&q);
        return rc;
    }
    if (rc == 0)
        rc = query_open_job(&q, &j, lists, e);
    rc = rc == 0 && lists ? query_put_catalog(&q, j.d, table, out, e) : query_finish(&q, rc, j.d, out, e);
    if (!j.database)
        database_close(j.d);
    /* there is no such job: SQL knows it as a failure like any other */
    if (rc != 0 && j.source && fleet_source_error(j.source)->code != ERR_OK)
        *e = *fleet_source_error(j.source);
    if (rc != 0 && query_there)
        tables_there_explain(query_there, e);
    /* of those that were read */
    struct fleet_source *read = j.tables.read_ns ? j.source : j.verdicts.there.source;
    if (rc == 0 && j.far && read && !query_there)
        cli_note_fleet(read);
    tables_there_free(query_there);
    query_there = NULL;
    if (!j.database)
        fleet_source_close(j.source);
    job_database_close(j.database);
    fleet_reach_fini(&j.reach);
    verdict_tables_fini(&j.verdicts);
    query_end(&q);
    return rc;
}

const struct cli_verb verb_query = {
    .name = "query",
    .aliases = "sql",
    .group = "Data",
    .help = "query live and recorded data with SQL",
    .example = "probing 4242 query 'SELECT func, file, lineno FROM python.backtrace LIMIT 5'",
    .needs_target = true,
    .many_targets = true,
    .reads_there = true,
    .operand = "[SQL]",
    .options = query_options,
    .options_size = sizeof(struct query_options),
    .options_default = &query_default,
    .exec = query_exec,
};

const struct cli_verb verb_cluster_query = {
    .name = "cluster query",
    .noun = "cluster",
    .group = "Cluster",
    .help = "query the tables of all ranks of a job, and cluster.ranks, verdicts, stacks and more",
    .example = "probing cluster query job:4242 'SELECT n, ranks, func, lineno FROM cluster.stacks'",
    .takes_job = true,
    .takes_hosts = true,
    .operand = "[SQL]",
    .options = query_options,
    .more = query_map_options,
    .options_size = sizeof(struct query_options),
    .options_default = &query_default,
    .exec = cluster_query_exec,
};
