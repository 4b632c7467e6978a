/* SPDX-License-Identifier: Apache-2.0 */
/* store_rows: see store_rows.h. */
#include "unit/store_rows.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/hash.h"

static const char *const colours[] = {"red", "green", "blue", NULL};

static const struct ring_column_def all_columns[] = {
    {"timestamp", RING_TIMESTAMP, "s", "when", NULL},
    {"number", RING_INT64, NULL, "of the row", NULL},
    {"half", RING_DOUBLE, "ms", NULL, NULL},
    {"small", RING_INT32, NULL, NULL, NULL},
    {"natural", RING_UINT32, NULL, NULL, NULL},
    {"id", RING_ID, NULL, NULL, NULL},
    {"name", RING_TEXT, NULL, NULL, NULL},
    {"colour", RING_ENUM, NULL, "of three", colours},
    {"odd", RING_BOOL, NULL, NULL, NULL},
    {"check", RING_INT64, NULL, NULL, NULL},
    {.name = NULL},
};

const struct ring_table_def all_types = {.name = "test.all",
                                         .alias = "everything",
                                         .help = "one of each",
                                         .cost = RING_COST_BACKGROUND,
                                         .weight = 1,
                                         .retention_s = 60,
                                         .text_percent = 20,
                                         .columns = all_columns};

const struct ring_owner owner = {
    .pid = 4711, .start_ticks = 99, .rank = 3, .host = "node7", .started_at = 12.5};

void row_of(uint64_t n, union ring_value *v, char *name) {
    (void)snprintf(name, 64, "name-%u", (unsigned)(hash_mix(n / 3) % 200));
    v[TIMESTAMP].f = T0 + (double)n * 0.0005;
    v[NUMBER].i = (int64_t)n;
    v[HALF].f = (double)n / 2;
    v[SMALL].i = (int32_t)(hash_mix(n) & 0x3fffffff) - 0x1fffffff;
    v[NATURAL].i = (uint32_t)hash_mix(n + 1) >> 1;
    v[ID].i = (int64_t)(n % 1000000);
    v[NAME].s = name;
    v[COLOUR].i = (int64_t)(n % 3);
    v[ODD].i = (int64_t)(n % 2);
    v[CHECK].i = (int64_t)(hash_mix(n * 31) >> 1);
}

int append(struct ring *r, uint64_t n) {
    union ring_value v[COUNT];
    char name[64];
    row_of(n, v, name);
    return ring_append(r, v);
}

int memory_file(void) {
    int fd = memfd_create("ring", MFD_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

struct ring *make(int *reading, size_t bytes) {
    struct err e;
    int fd = memory_file();
    *reading = dup(fd);
    struct ring *r = ring_create(fd, &all_types, &owner, bytes, &e);
    if (!r)
        fail_msg("%s", e.text);
    return r;
}

struct ring_reader *read_back(int fd) {
    struct err e;
    struct ring_reader *r = ring_reader_open_fd(dup(fd), "ring", &e);
    if (!r)
        fail_msg("%s", e.text);
    return r;
}

bool text_is(const struct ring_cell *c, const char *s) {
    return c->kind == RING_CELL_TEXT && c->len == strlen(s) && memcmp(c->s, s, c->len) == 0;
}

bool row_is(const struct ring_block *b, uint32_t row, uint64_t n) {
    struct ring_cell c[COUNT];
    union ring_value v[COUNT];
    char name[64];
    row_of(n, v, name);
    for (size_t i = 0; i < COUNT; i++)
        ring_block_get(b, i, row, &c[i]);
    bool ok = c[TIMESTAMP].kind == RING_CELL_REAL && fabs(c[TIMESTAMP].f - v[TIMESTAMP].f) < 1e-6;
    for (size_t i = 0; i < COUNT; i++)
        if (i == NUMBER || i == SMALL || i == NATURAL || i == ID || i == ODD || i == CHECK)
            ok = ok && c[i].kind == RING_CELL_INT && c[i].i == v[i].i;
    return ok && c[HALF].kind == RING_CELL_REAL && c[HALF].f == v[HALF].f && text_is(&c[NAME], name) &&
           text_is(&c[COLOUR], colours[n % 3]);
}

struct look look_at(struct ring_reader *r) {
    struct look out = {.first = UINT64_MAX};
    struct ring_block b = {.data = NULL};
    size_t n;
    const struct ring_chunk *chunks = ring_reader_chunks(r, &n);
    for (size_t i = 0; i < n; i++) {
        int rc = ring_reader_load(r, &chunks[i], UINT64_MAX, &b);
        assert_true(rc >= 0);
        if (rc == 0)
            continue;
        for (uint32_t k = 0; k < b.rows; k++)
            out.bad += !row_is(&b, k, b.first_seq + k);
        out.unordered += b.first_seq < out.next;
        out.first = out.rows == 0 ? b.first_seq : out.first;
        out.next = b.first_seq + b.rows;
        out.rows += b.rows;
    }
    ring_block_fini(&b);
    return out;
}
