/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flame_calls: what a flame graph knows of one of its frames wherever it is: who calls it, whom it calls, and in which of its lines
 * the time is.
 *
 * Of the samples the tree is of. A stack in which the same call, or line, recurs counts once. Costs by the stacks there are, so it is
 * asked for when somebody looks. Allocates. One thread.
 */
#ifndef CLIENT_SAMPLES_FLAME_CALLS_H
#define CLIENT_SAMPLES_FLAME_CALLS_H

#include "client/samples/flame.h"

/* A frame that calls it or is called by it. */
struct flame_call {
    const struct model_frame *frame; /* NULL: nobody, it is the outermost */
    uint32_t node; /* one of its nodes: of a caller that of the first call, of a callee its own */
    struct flame_weight weight; /* of the calls */
};

struct flame_calls {
    struct flame_call *callers, *callees; /* by weight, the largest first */
    size_t n_callers, n_callees;
    struct flame_line *lines; /* by weight; none where a node is a module */
    size_t n_lines;
    struct flame_weight self, total; /* of all nodes of the frame */
};

/* About the frame of a node. Replaces what was there. 0, or -1 without memory: empty. */
int flame_calls_build(struct flame_calls *c, const struct flame *f, uint32_t node);
void flame_calls_fini(struct flame_calls *c);

#endif
