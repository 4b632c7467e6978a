/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grow: arrays that get longer. Each doubles, so that putting one item after the other costs as
 * much as their number. How long an array may get is for its owner to say. Any thread, each with
 * arrays of its own.
 */
#ifndef BASE_GROW_H
#define BASE_GROW_H

#include <stddef.h>

/* Ensure room for `n` items in the array that the pointer at `where` points to; `*cap` is its
 * present capacity. New items are not cleared. The caller frees the array. 0, or -1 without
 * memory; then nothing has changed. */
int grow_array(void *where, size_t item_size, size_t n, size_t *cap);

#endif
