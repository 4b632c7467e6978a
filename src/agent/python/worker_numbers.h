/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_numbers: arrays of numbers as units of Python describe them (worker_rows.h), and sums of squares of many of them at once.
 *
 * Only numbers_step may run without the GIL. Belongs to the worker's thread.
 */
#ifndef AGENT_PYTHON_WORKER_NUMBERS_H
#define AGENT_PYTHON_WORKER_NUMBERS_H

#include "agent/python/numbers.h"
#include "agent/python/pyapi.h"

#define WORKER_SQUARES_MAX 2048 /* arrays at once */

struct worker_squares;

/* With the GIL: what a list (address, kind as a character's number, width, then the shape, then the strides) describes. 0 or -1. */
int worker_numbers_view(const struct pyapi *api, struct pyapi_object *list, struct numbers_view *out);

/* With the GIL: is it a list of such lists? */
bool worker_squares_is(const struct pyapi *api, struct pyapi_object *list);

/* With the GIL: what they describe. NULL: too many, or no memory. */
struct worker_squares *worker_squares_new(const struct pyapi *api, struct pyapi_object *lists);

/* Read on for some 100 us; without the GIL. True when there is more. */
bool worker_squares_step(struct worker_squares *s);

/* With the GIL: a list with a tuple for each: the sum of squares of its finite numbers, and how many are not finite; None where it
 * could not be read. NULL with an exception. */
struct pyapi_object *worker_squares_answer(const struct pyapi *api, const struct worker_squares *s);

void worker_squares_free(struct worker_squares *s);

#endif
