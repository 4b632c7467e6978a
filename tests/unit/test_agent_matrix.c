/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may see and do what, of all methods, routes, commands, columns and fields: docs/access.md is made of the very tables that the
 * agent goes by, and must be what is committed. With --write it is written (`make access`). That the agent does what it says is tested
 * against a running one: tests/functional/test_liars_read_only.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/server/net_text.h"
#include "agent/server/http/web.h"
#include "base/strbuf.h"
#include "store/ring/ring_tables.h"
#include "wire/field.h"
#include "wire/wire.h"

#define FILE_NAME "/docs/access.md"

/* Who comes, and the most that they may do. What decides it: net_server.c (unix socket), net_admission.c (TCP). */
static const struct visitor {
    const char *name, *who;
    enum wire_access may;
} visitors[] = {
    {"owner", "the job's user, or root, by the agent's unix socket", WIRE_OWNS},
    {"token", "anyone with the full token, by TCP", WIRE_CHANGES},
    {"reader",
     "anyone with the read-only token, by TCP; everyone who is let in by a listener that was opened with "
     "`listen --looking`",
     WIRE_READ_ONLY},
    {"local",
     "a process of the job's user in its user, pid and mount namespaces, by TCP on the loopback, without a "
     "token",
     WIRE_READ_ONLY},
    {"stranger", "everyone else", WIRE_NOTHING},
};

#define VISITORS (sizeof visitors / sizeof visitors[0])

static const char *const needs[] = {[WIRE_NOTHING] = "nothing",
                                    [WIRE_READ_ONLY] = "reads",
                                    [WIRE_VALUES] = "values",
                                    [WIRE_CHANGES] = "changes",
                                    [WIRE_OWNS] = "owns"};

/* Which listener lets whom in. At pdb, which has a token of its own for each pause, and at debugpy one may do all. */
static const struct {
    const char *listener;
    const char *to[VISITORS];
} listeners[] = {
    {"unix socket: WebSocket, HTTP, text", {"yes", "-", "-", "-", "-"}},
    {"TCP on the loopback (`listen`): WebSocket, HTTP, text", {"-", "yes", "yes", "yes", "-"}},
    {"TCP that other machines reach (`listen --exposed`, `inject -a ADDR --exposed`): the same, not "
     "encrypted",
     {"-", "yes", "yes", "yes", "-"}},
    {"unix socket, through a relay on its host (`--hosts`): as the user who logs in there",
     {"yes", "-", "-", "-", "-"}},
    {"pdb of `pause` and `catch`", {"its token", "its token", "its token", "its token", "its token"}},
    {"debugpy on the loopback (`debug`): not started where another user could connect",
     {"no token", "-", "-", "no token", "-"}},
    {"debugpy that others reach (`debug --exposed`)",
     {"no token", "no token", "no token", "no token", "no token"}},
};

static void put_head(struct strbuf *out, const char *first, const char *second) {
    (void)strbuf_addf(out, "| %s | %s |", first, second);
    for (size_t v = 0; v < VISITORS; v++)
        (void)strbuf_addf(out, " %s |", visitors[v].name);
    (void)strbuf_adds(out, "\n|---|---|");
    for (size_t v = 0; v < VISITORS; v++)
        (void)strbuf_adds(out, "---|");
    (void)strbuf_addc(out, '\n');
}

/* A row: what those get who may see it, and those who may not but have read-only access. */
static void put_row(struct strbuf *out, const char *name, enum wire_access access, const char *lacks) {
    (void)strbuf_addf(out, "| %s | %s |", name, needs[access]);
    for (size_t v = 0; v < VISITORS; v++)
        (void)strbuf_addf(out, " %s |",
                          visitors[v].may >= access          ? "yes"
                          : visitors[v].may < WIRE_READ_ONLY ? "-"
                                                             : lacks);
    (void)strbuf_addc(out, '\n');
}

static void put_methods(struct strbuf *out) {
    char name[96];
    (void)strbuf_adds(out, "\n## Methods\n\n");
    put_head(out, "method", "access");
    for (int m = 0; m < WIRE_METHOD_COUNT; m++) {
        (void)snprintf(name, sizeof name, "`%s`", wire_method_name((enum wire_method)m));
        put_row(out, name, wire_method_access((enum wire_method)m), "refused");
    }
    put_row(out, "`threads` with locals", WIRE_VALUES, "refused");
    put_row(out, "`threads` with repr", WIRE_CHANGES, "refused");
    put_row(out, "`config` that switches `probing.eval` on again", WIRE_OWNS, "refused");
}

static void put_routes(struct strbuf *out) {
    char name[160];
    const char *verb, *path, *command;
    (void)strbuf_adds(out, "\n## Routes of HTTP\n\nEach has the access of its method.\n\n");
    put_head(out, "route", "access");
    for (size_t i = 0; i < web_n_routes; i++) {
        const struct web_route *r = &web_routes[i];
        (void)snprintf(name, sizeof name, "`%s %s`: `%s`", web_verb_name(r->verb), r->path,
                       wire_method_name(r->asks));
        put_row(out, name, wire_method_access(r->asks), "refused");
    }
    put_row(out, "`GET /tables/{name}` of a table made in the job: `rows`", WIRE_VALUES, "refused");
    (void)strbuf_adds(out, "\n## Commands of text\n\nEach is a route by another name.\n\n");
    put_head(out, "command", "access");
    for (size_t i = 0; (command = net_text_command(i, &verb, &path)) != NULL; i++) {
        enum wire_access access = WIRE_READ_ONLY;
        size_t len = path ? strcspn(path, ".") : 0;
        for (size_t k = 0; path && k < web_n_routes; k++)
            if (strcmp(web_verb_name(web_routes[k].verb), verb) == 0 &&
                strncmp(web_routes[k].path, path, len) == 0 && !web_routes[k].path[len])
                access = wire_method_access(web_routes[k].asks);
        (void)snprintf(name, sizeof name, "`%s`", command);
        put_row(out, name, access, "refused");
    }
}

static void put_tables(struct strbuf *out) {
    char name[160];
    (void)strbuf_adds(
        out, "\n## Tables\n\n"
             "`pull` sends rows with all columns of a table, so a visitor who may not see one of them gets\n"
             "no rows. By HTTP the columns that a visitor may not see are NULL.\n\n");
    put_head(out, "table by `pull`", "access");
    for (size_t i = 0; i < RING_TABLE_KEPT; i++) {
        (void)snprintf(name, sizeof name, "`%s`", RING_TABLES[i].name);
        put_row(out, name, ring_table_access(&RING_TABLES[i]), "withheld");
    }
    (void)strbuf_adds(
        out, "\n## Columns\n\n"
             "Columns of stored tables are read by HTTP, those of tables that Python makes in the job by\n"
             "`rows`. The client makes the other tables from answers, whose fields are below.\n\n");
    put_head(out, "column", "access");
    for (size_t i = 0; i < RING_TABLE_COUNT; i++)
        for (const struct ring_column_def *c = RING_TABLES[i].columns; c->name; c++) {
            (void)snprintf(name, sizeof name, "`%s.%s`", RING_TABLES[i].name, c->name);
            put_row(out, name, c->access, i >= RING_MODULES ? "refused" : "NULL");
        }
}

static void put_fields(struct strbuf *out) {
    static const struct field_table *const tables[] = {
        &FIELD_TARGET,         &FIELD_STATUS,      &FIELD_TABLES,   &FIELD_SETTINGS, &FIELD_LEASES,
        &FIELD_DOORS,          &FIELD_HOLDS,       &FIELD_SNAPSHOT, &FIELD_PROCESS,  &FIELD_THREADS,
        &FIELD_FRAMES,         &FIELD_LOCALS,      &FIELD_TASKS,    &FIELD_BATCH,    &FIELD_FRAME_DEFS,
        &FIELD_STACK_DEFS,     &FIELD_THREAD_DEFS, &FIELD_SAMPLES,  &FIELD_DEBUGPY,  &FIELD_PAUSED,
        &FIELD_PAUSED_THREADS, &FIELD_CAUGHT};
    static const char *const of[] = {"hello, target",
                                     "status",
                                     "status, tables",
                                     "status, settings",
                                     "status, leases",
                                     "status, doors",
                                     "status, holds",
                                     "threads",
                                     "threads, process",
                                     "threads, threads",
                                     "threads, frames",
                                     "threads, locals",
                                     "threads, tasks",
                                     "samples",
                                     "samples, frames",
                                     "samples, stacks",
                                     "samples, threads",
                                     "samples, samples",
                                     "debug",
                                     "pause",
                                     "pause, threads",
                                     "catch"};
    char name[160];
    (void)strbuf_adds(out, "\n## Fields of answers and notifications\n\n");
    put_head(out, "field", "access");
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        for (size_t k = 0; k < tables[i]->n; k++) {
            (void)snprintf(name, sizeof name, "%s: `%s`", of[i], tables[i]->fields[k].key);
            put_row(out, name, tables[i]->fields[k].access,
                    tables[i] == &FIELD_LOCALS || tables[i]->fields[k].access == WIRE_CHANGES ? "refused"
                                                                                              : "unknown");
        }
}

static void put_all(struct strbuf *out) {
    (void)strbuf_adds(
        out, "# Who may see and do what\n\n"
             "`make access` writes this page from the tables that the agent uses: methods\n"
             "(`src/wire/wire.h`), columns (`src/store/ring/ring_tables.c`), fields\n"
             "(`src/wire/field_tables.c`), routes (`src/agent/server/http/web_routes.c`). Tests compare it\n"
             "with them (`tests/unit/test_agent_matrix.c`) and with a running agent, for each visitor at\n"
             "each listener (`tests/functional/test_liars_read_only.py`).\n\n"
             "There are four levels of access, each with those before it:\n\n"
             "- *reads*: stacks, samples, tables and status\n"
             "- *values*: values of the job's variables, its command line, and code that was run in it\n"
             "- *changes*: changes the job, or runs code in it\n"
             "- *owns*: decides who else has access\n\n"
             "| visitor | who | may |\n|---|---|---|\n");
    for (size_t v = 0; v < VISITORS; v++)
        (void)strbuf_addf(out, "| %s | %s | %s |\n", visitors[v].name, visitors[v].who,
                          needs[visitors[v].may]);
    (void)strbuf_adds(out, "\n| listener |");
    for (size_t v = 0; v < VISITORS; v++)
        (void)strbuf_addf(out, " %s |", visitors[v].name);
    (void)strbuf_adds(out, "\n|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof listeners / sizeof listeners[0]; i++) {
        (void)strbuf_addf(out, "| %s |", listeners[i].listener);
        for (size_t v = 0; v < VISITORS; v++)
            (void)strbuf_addf(out, " %s |", listeners[i].to[v]);
        (void)strbuf_addc(out, '\n');
    }
    put_methods(out);
    put_routes(out);
    put_tables(out);
    put_fields(out);
}

static void test_the_matrix_is_what_is_committed(void **state) {
    struct strbuf now, kept;
    (void)state;
    strbuf_init(&now, 0);
    strbuf_init(&kept, 0);
    put_all(&now);
    assert_int_equal(strbuf_read_file(&kept, PROBING_SOURCE_DIR FILE_NAME), 0);
    if (strcmp(strbuf_str(&now), strbuf_str(&kept)) != 0)
        fail_msg("docs/access.md is not what the tables say: `make access` writes it; read what has changed");
    strbuf_fini(&now);
    strbuf_fini(&kept);
}

/* A column, or a field, that says nothing of who may see it would be everybody's. */
static void test_each_says_who_may_see_it(void **state) {
    (void)state;
    for (size_t i = 0; i < RING_TABLE_COUNT; i++)
        for (const struct ring_column_def *c = RING_TABLES[i].columns; c->name; c++)
            assert_in_range(c->access, WIRE_READ_ONLY, WIRE_VALUES);
    for (size_t k = 0; k < FIELD_TARGET.n; k++)
        assert_in_range(FIELD_TARGET.fields[k].access, WIRE_READ_ONLY, WIRE_VALUES);
    for (size_t k = 0; k < FIELD_STATUS.n; k++)
        assert_in_range(FIELD_STATUS.fields[k].access, WIRE_READ_ONLY, WIRE_VALUES);
    assert_int_equal(ring_column_access(ring_table_find("probing.events"), "text"), WIRE_VALUES);
    assert_int_equal(ring_column_access(ring_table_find("probing.events"), "no such"), WIRE_VALUES);
    assert_int_equal(ring_table_access(ring_table_find("python.samples")), WIRE_READ_ONLY);
}

static int write_matrix(void) {
    struct strbuf now;
    FILE *file = fopen(PROBING_SOURCE_DIR FILE_NAME, "w");
    strbuf_init(&now, 0);
    put_all(&now);
    bool done = file && fputs(strbuf_str(&now), file) >= 0;
    done = file && fclose(file) == 0 && done;
    strbuf_fini(&now);
    if (!done)
        perror("docs/access.md");
    return done ? 0 : 1;
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_matrix_is_what_is_committed),
        cmocka_unit_test(test_each_says_who_may_see_it),
    };
    if (argc > 1 && strcmp(argv[1], "--write") == 0)
        return write_matrix();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
