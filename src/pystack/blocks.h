/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blocks: how much of a frame's value stack belongs to the blocks (`with`, `try`) that the frame is in.
 *
 * Those words stay until their block ends, among them what ends a block of `with`: x.__exit__. Above them
 * are words in use and words of the past, and which is which the interpreter often knows only in a
 * register. A block that is being entered, or whose __exit__ runs, is not among them.
 */
#ifndef PYSTACK_BLOCKS_H
#define PYSTACK_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

#include "pystack/pystack_internal.h"

/* The depth, in words, that the handler around an instruction (in units of two bytes) begins with, by a
 * code object's table of `n` bytes (co_exceptiontable). 0 there is none, -1 the table is none. */
int32_t pystack_blocks_find(const uint8_t *table, size_t n, uint64_t unit);

/* How many words, from the bottom of its value stack, belong to the frame's blocks. -1 unknown. */
int32_t pystack_blocks_read(struct pystack *ps, const struct pystack_raw_frame *f);

#endif
