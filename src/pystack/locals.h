/* SPDX-License-Identifier: Apache-2.0 */
/*
 * locals: arguments and local variables of frames, by name, with short texts of their values.
 *
 * Read after the frames, from the same memory. Each frame is checked before and after: one that
 * has moved on in between gives no values (or, if only its own instruction moved, values of
 * about the same moment) and marks its thread as torn. This makes values of another moment rare,
 * but proves nothing for a thread that ran in between: the caller marks that. Used by the
 * pystack's thread.
 */
#ifndef PYSTACK_LOCALS_H
#define PYSTACK_LOCALS_H

#include <stdbool.h>
#include <stddef.h>

#include "pystack/pystack_internal.h"

#define LOCALS_PER_FRAME 64 /* variables of one frame; others are left out */

/* What one snapshot may still read. */
struct pystack_locals_budget {
    size_t variables;
    size_t bytes; /* of their texts */
};

/* The budget for one thread alone, or for all. */
struct pystack_locals_budget pystack_locals_budget(bool one_thread);

/* The locals of the frames of thread state `tstate` that were walked last, within the same call
 * (pystack_codes_begin): one for each frame, NULL where they cannot be read. For a thread that
 * is `running` every value is read twice. Sets `*moved` if a frame was no longer the same,
 * `*cut` when the budget or memory ended. NULL without memory. */
const struct model_locals **pystack_locals_read(struct pystack *ps, uint64_t tstate,
                                                const struct model_frame *frames, size_t n, bool running,
                                                struct arena *arena, struct pystack_locals_budget *budget,
                                                bool *moved, bool *cut);

/* Call `fn` with each variable of the function whose code object is at `code`: its slot, name,
 * and whether a cell may be there, until it returns false. 0; 1 for code whose variables are in
 * a dict; -1 if it is not a code object. */
int pystack_locals_each_name(struct pystack_reader *r, uint64_t code,
                             bool (*fn)(void *arg, size_t slot, const char *name, bool cell), void *arg);

/* The name of the variable in a slot of such a function. 0, or -1. */
int pystack_locals_read_name(struct pystack_reader *r, uint64_t code, size_t slot, char *buf, size_t cap);

/* With the GIL held, for a live frame: the object that one of its variables refers to now. 0 or
 * -1. */
int pystack_locals_find_object(struct pystack *ps, uint64_t frame, const struct model_local *local,
                               uint64_t *object);

#endif
