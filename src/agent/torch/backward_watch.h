/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backward_watch: decides when backward passes are watched, so that forward and backward of a step
 * are known.
 *
 * Always while somebody wants them. Otherwise as long as that takes at most BACKWARD_WATCH_BUDGET of
 * the job's time, by the nodes that were reported; if it takes more, for a twentieth of the time, a
 * complete step at least each time. Pure: no clock, no torch. Belongs to its user.
 */
#ifndef AGENT_TORCH_BACKWARD_WATCH_H
#define AGENT_TORCH_BACKWARD_WATCH_H

#include <stdbool.h>
#include <stdint.h>

/* What a reported node costs its thread besides `wait_ns`: 370 ns for an operation, 700 for a parameter,
 * whose name torch spells out each time (bench/training.py, `phases`). */
#define BACKWARD_WATCH_NODE_NS 500
#define BACKWARD_WATCH_BUDGET 0.001 /* of the job's time */

/* All zero: not watched yet, and due. */
struct backward_watch {
    bool on; /* since begin_ns; otherwise from due_ns on */
    uint64_t begin_ns, due_ns;
    uint64_t from_ns;            /* the cost since then is not judged yet, */
    uint64_t nodes, wait_ns;     /* which is that of what is reported above these */
    uint64_t judged_ns, cost_ns; /* time that was judged, and what it has cost at most */
};

/* What is known at a moment; the clock is monotonic. */
struct backward_watch_now {
    uint64_t now_ns;
    bool wanted;             /* whatever it costs */
    bool whole;              /* a complete step was seen since it is watched */
    uint64_t nodes, wait_ns; /* of all nodes that were ever reported (torch_spans_passes) */
};

/* Should they be watched from now on? Changes nothing but the judgement of costs: see
 * backward_watch_turn. */
bool backward_watch_is_due(struct backward_watch *b, const struct backward_watch_now *n);

/* They are watched from now on, or no longer. */
void backward_watch_turn(struct backward_watch *b, bool on, const struct backward_watch_now *n);

#endif
