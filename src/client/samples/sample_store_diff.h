/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample_store_diff: two tables of functions or lines side by side: the share of each in the newer one and in the older one.
 *
 * Shares, not times: what is compared may be of different length. What only one of them has is there with a share of 0 of
 * the other. The tables may be of one tally, or of two, whose frames are told by what they say. One thread.
 */
#ifndef CLIENT_SAMPLES_SAMPLE_STORE_DIFF_H
#define CLIENT_SAMPLES_SAMPLE_STORE_DIFF_H

#include <stdbool.h>
#include <stddef.h>

#include "client/samples/sample_store_table.h"

#define SAMPLE_STORE_DIFF_FOREIGN                                                                            \
    0x80000000U /* set in the id of a frame that only the older table's own tally has */

struct sample_store_diff_row {
    struct sample_store_row row;     /* of the newer table; of what it has not, without samples */
    double own_pct, total_pct;       /* of it; NAN: it has no samples at all */
    double own_before, total_before; /* of the older one; the same */
};

struct sample_store_diff {
    struct sample_store_diff_row *rows; /* those of the newer table first */
    size_t n;
};

/* Replaces what was there. Texts are those of the tallies; `is_foreign`: they are two. 0, or -1 without memory: then it is
 * empty. */
int sample_store_diff_build(struct sample_store_diff *d, const struct sample_store_table *now,
                            const struct sample_store_table *before, bool is_foreign);
void sample_store_diff_fini(struct sample_store_diff *d);

#endif
