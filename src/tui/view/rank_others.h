/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_others: the ranks of a job without a stack, by what is known of them. They are classes of their own: one for each
 * state, and one for each host that gives no news. Pure.
 */
#ifndef TUI_VIEW_RANK_OTHERS_H
#define TUI_VIEW_RANK_OTHERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "tui/model/job_shot.h"

struct rank_others {
    enum fleet_state state;
    int32_t silent; /* the host that gives no news; -1: theirs answer, or they have none */
    uint32_t n;
    double since_s;   /* for how long all of them have been so; NAN unknown */
    const char *note; /* of the first that has one; NULL */
};

/* List them: those of hosts that answer, then the hosts that do not. Returns how many are in `*out`, which the caller
 * frees; none without memory. */
size_t rank_others_list(const struct job_shot *s, struct rank_others **out);

/* Put their ranks into an empty set. 0, or -1 without memory. */
int rank_others_ranks(const struct job_shot *s, const struct rank_others *o, struct rank_set *out);

/* "(missing: WORLD_SIZE promises it)", "(gpu1: no news from its host for 12 s)". Appended. */
void rank_others_put(const struct job_shot *s, const struct rank_others *o, struct strbuf *out);

#endif
