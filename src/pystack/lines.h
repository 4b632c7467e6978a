/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lines: the line of an instruction, from the forms of line table that CPython has had.
 *
 * Pure functions over bytes that may be anything; a table that ends early gives what was known until then, or 0.
 * Sources: Objects/lnotab_notes.txt (up to 3.10), Objects/locations.md and Objects/codeobject.c (3.11 on).
 */
#ifndef PYSTACK_LINES_H
#define PYSTACK_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "pystack/offsets.h"

/* Line of the instruction at byte `at` of the code; 0 when the table says it has none. A negative `at` (not yet begun) gives
 * the first line. */
int pystack_find_line(enum pystack_line_style style, const uint8_t *table, size_t n, int first, int64_t at);

#endif
