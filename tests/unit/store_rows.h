/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_rows: a ring table with a column of every type, whose values follow from the number of the row, so that a row that
 * mixes two is seen. For the tests of src/store.
 */
#ifndef TESTS_STORE_ROWS_H
#define TESTS_STORE_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/ring/ring.h"
#include "store/ring/ring_reader.h"

enum { TIMESTAMP, NUMBER, HALF, SMALL, NATURAL, ID, NAME, COLOUR, ODD, CHECK, COUNT };

#define T0 1700000000.0 /* time of row 0; they are half a millisecond apart */

extern const struct ring_table_def all_types; /* "test.all" */
extern const struct ring_owner owner;         /* pid 4711, rank 3, node7 */

/* The values of row `n`; its name goes to `name` (64 bytes). */
void row_of(uint64_t n, union ring_value *v, char *name);
int append(struct ring *r, uint64_t n);

int memory_file(void);
/* A ring in memory; `*reading` is another descriptor of its file. */
struct ring *make(int *reading, size_t bytes);
struct ring_reader *read_back(int fd);

bool text_is(const struct ring_cell *c, const char *s);

/* Is row `row` of the block exactly what row_of made of number `n`? */
bool row_is(const struct ring_block *b, uint32_t row, uint64_t n);

struct look {
    uint64_t rows, first, next, bad, unordered;
};

/* Read everything there is. Each row must be whole, numbered as its place says, and newer than the one before. */
struct look look_at(struct ring_reader *r);

#endif
