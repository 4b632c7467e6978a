/* SPDX-License-Identifier: Apache-2.0 */
/*
 * locals: arguments and local variables of frames, by name, with short texts of their values.
 *
 * Read after the frames, from the same memory. Each frame is looked at before and after: one that has gone on meanwhile
 * gives no values (or, if only its own instruction moved, values of about the same moment) and marks its thread as torn.
 * Used by the pystack's thread.
 */
#ifndef PYSTACK_LOCALS_H
#define PYSTACK_LOCALS_H

#include <stdbool.h>
#include <stddef.h>

#include "pystack/pystack_internal.h"

#define LOCALS_PER_FRAME 64 /* variables of one frame; more are left out */

/* What one snapshot may still read. */
struct pystack_locals_budget {
    size_t variables;
    size_t bytes; /* of their texts */
};

/* The budget for one thread alone, or for all. */
struct pystack_locals_budget pystack_locals_budget(bool one_thread);

/* Fill in the locals of frames that were walked within the same call (pystack_codes_begin). Those that cannot be read stay
 * NULL. `*moved` is set when a frame was not any more what it had been, `*cut` when the budget ended. */
void pystack_locals_put(struct pystack *ps, struct model_frame *frames, size_t n, struct arena *arena,
                        struct pystack_locals_budget *budget, bool *moved, bool *cut);

#endif
