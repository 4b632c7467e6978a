/* SPDX-License-Identifier: Apache-2.0 */
/* What a ClickHouse server answers, as any bytes: rows of each table, and errors; its address; and what a relay remembers. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "client/engine/engine_schema.h"
#include "relay/relay_marks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds, const char *what) {
    if (!holds) {
        fprintf(stderr, "%s\n", what);
        abort();
    }
}

static void check_line(const struct err *e) {
    uint32_t cp;
    for (size_t at = 0, len = strlen(e->text); at < len;) {
        at += text_utf8_next(e->text + at, len - at, &cp);
        check(cp == '\t' || cp == '\n' ? false : !text_is_control(cp),
              "a line has a character that a terminal obeys");
    }
}

static void read_rows(const struct engine_table *t, const char *data, size_t size) {
    struct row_value row[ENGINE_MAX_COLUMNS], item;
    struct row_reader r = {.data = data, .len = size};
    size_t rows = 0;
    int rc;
    while ((rc = row_binary_get_row(&r, t->columns, t->n, row)) == 1) {
        check(r.at <= size && ++rows <= size, "rows do not end");
        for (size_t i = 0; i < t->n; i++) {
            check(row[i].kind != ROW_TEXT || (row[i].s >= data && row[i].s + row[i].len <= data + size),
                  "a text is not within the answer");
            check(row[i].kind != ROW_NULL || t->columns[i].is_nullable, "NULL in a column without");
            while (row_binary_next(&row[i], &t->columns[i], &item))
                check(item.kind == ROW_INT || (item.s >= data && item.s + item.len <= data + size),
                      "an item is not within the answer");
        }
    }
    check(r.at <= size, "more was read than there is");
}

static void read_address(const char *text) {
    struct engine_address a, again;
    struct err e = {0};
    struct strbuf out;
    if (engine_address_parse(&a, text, &e) != 0) {
        check(e.code == ERR_USAGE && e.text[0], "an error has no text");
        return;
    }
    check(engine_address_name_ok(a.user, sizeof a.user) &&
              engine_address_name_ok(a.database, sizeof a.database),
          "a name is not valid");
    check(a.port > 0 && a.port <= 65535 && a.host[0] && a.host[0] != '-', "a host is not valid");
    strbuf_init(&out, 0);
    engine_address_put(&a, &out);
    check(engine_address_parse(&again, strbuf_str(&out), &e) == 0 && strcmp(again.host, a.host) == 0 &&
              strcmp(again.user, a.user) == 0 && strcmp(again.database, a.database) == 0,
          "an address does not survive");
    strbuf_fini(&out);
}

static void read_marks(const char *text) {
    struct relay_marks m = {.n = 0};
    check(relay_marks_parse(&m, text) == 0, "no memory");
    for (size_t i = 0; i < m.n; i++)
        check(m.list[i].pid > 0 && engine_address_name_ok(m.list[i].job, sizeof m.list[i].job) &&
                  memchr(m.list[i].table, '\0', sizeof m.list[i].table),
              "a mark is not valid");
    relay_marks_fini(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct engine_address a;
    struct err e = {0};
    if (size < 1)
        return 0;
    size_t tables = 0;
    while (engine_tables()[tables])
        tables++;
    char *text = malloc(size);
    check(text != NULL, "no memory");
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    read_rows(engine_tables()[data[0] % tables], text, size - 1);
    engine_address_parse(&a, "clickhouse://h/p", NULL);
    engine_http_explain(&a, 500, text, size - 1, &e);
    check(e.text[0] != '\0', "an error has no text");
    check_line(&e);
    if (engine_http_find_error(&a, text, size - 1, &e))
        check_line(&e);
    read_address(text);
    read_marks(text);
    free(text);
    return 0;
}
