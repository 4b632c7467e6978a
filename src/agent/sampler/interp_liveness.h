/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interp_liveness: is the interpreter that was found still there, and what is open because of it.
 *
 * Python may be finalised, and its library unloaded, while the agent stays. Used by the sampler's thread.
 */
#ifndef AGENT_SAMPLER_INTERP_LIVENESS_H
#define AGENT_SAMPLER_INTERP_LIVENESS_H

#include <stdbool.h>
#include <stdint.h>

#include "pystack/pystack.h"

struct interp_liveness {
    uint64_t checked_ns;
    unsigned losses; /* looks in a row that did not find it */
    int file;        /* see pystack_own_file; + 1 */
};

/* Look now and then. True when it has been gone for several looks: close it, it may come again elsewhere. */
bool interp_liveness_is_lost(struct interp_liveness *p, struct pystack *ps, uint64_t now_ns);

/* What reads memory where process_vm_readv is refused must not be left open in a child of the job either. `ps` NULL: nothing is open. */
void interp_liveness_note_file(struct interp_liveness *p, const struct pystack *ps);

#endif
