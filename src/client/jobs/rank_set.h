/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_set: a set of ranks, and its text as Slurm writes it: 0-16,18-411.
 *
 * Ranges in ascending order that neither overlap nor touch, so that the ranks of 10,000 processes
 * are a few bytes. A zeroed struct is the empty set. Pure.
 */
#ifndef CLIENT_JOBS_RANK_SET_H
#define CLIENT_JOBS_RANK_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"

#define RANK_SET_LIMIT ((int32_t)1 << 20)     /* ranks are below this */
#define RANK_SET_TEXT_MAX ((size_t)64 * 1024) /* bytes of a text that is read */
#define RANK_SET_TEXT_RANGES 16384 /* ranges of one that another host has sent: 0-1048575/2 are many */

struct rank_range {
    int32_t first, last;
};

struct rank_set {
    struct rank_range *ranges;
    size_t n, cap;
};

void rank_set_fini(struct rank_set *s);

/* Add the ranks from `first` to `last`; those outside 0 to RANK_SET_LIMIT - 1 are left out. 0, or
 * -1 without memory: then the set is as it was. */
int rank_set_add(struct rank_set *s, int32_t first, int32_t last);

/* Add the ranks of `from`, or remove them. 0, or -1 without memory. */
int rank_set_join(struct rank_set *s, const struct rank_set *from);
int rank_set_remove(struct rank_set *s, const struct rank_set *from);

/* Add the ranks of a text that another host has sent, or NULL. One that is not valid, or has more ranges than
 * RANK_SET_TEXT_RANGES, has none. 0, or -1 without memory. */
int rank_set_join_text(struct rank_set *s, const char *text);

bool rank_set_has(const struct rank_set *s, int32_t rank);
int32_t rank_set_count(const struct rank_set *s);

/* Append the text; "" for the empty set. More than `most` ranges (0: no limit) end with ",...". */
void rank_set_put(const struct rank_set *s, size_t most, struct strbuf *out);

/* The same, where ranks at equal distances are one range with that step: 4-508/8. */
void rank_set_put_steps(const struct rank_set *s, struct strbuf *out);

/* Read a text: numbers and ranges in any order, separated by commas, in brackets or without them; a
 * range may have a step. The set is replaced. 0; or -1 with ERR_USAGE, which names the part that is
 * wrong: then the set is empty. */
int rank_set_parse(struct rank_set *s, const char *text, struct err *e);

#endif
