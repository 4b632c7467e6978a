/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_text: the merged stacks of a fleet, for people and for flame graphs. */
#ifndef CLIENT_FLEET_FLEET_TEXT_H
#define CLIENT_FLEET_FLEET_TEXT_H

#include "base/strbuf.h"
#include "client/fleet/fleet.h"
#include "flame/stack_counts.h"

/* Append what a line of the tree shows of the calls from `node` to `end`: those of the job's own code, and
 * the innermost function where a stack ends outside of it. */
void fleet_put_calls(const struct stack_classes *c, uint32_t node, uint32_t end, struct strbuf *out);

/* Append where a rank is: "queue.get < fetch (loader.py:31)", or "step (train.py:88)". */
void fleet_put_where(const struct fleet_rank *r, struct strbuf *out);

/* Append the tree: a line for each branch, with its ranks; the ranks without a stack; at most `width` columns,
 * 0: any. */
void fleet_put_tree(const struct fleet *f, int width, struct strbuf *out);

/* Count the stack of each rank once, with a frame "rank N" around it. 0, or -1 without memory. */
int fleet_count_stacks(const struct fleet *f, struct stack_counts *counts);

#endif
