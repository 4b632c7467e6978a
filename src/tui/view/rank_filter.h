/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_filter: which ranks of a job a typed text means: "rank:0-63,70", "host:gpu1" (also of
 * gpu1.example.com), "class:3fa2", "late", or a text in the row; alternatives separated by |. Pure.
 */
#ifndef TUI_VIEW_RANK_FILTER_H
#define TUI_VIEW_RANK_FILTER_H

#include <stdbool.h>

#include "tui/model/job_shot.h"
#include "tui/view/match.h"

#define RANK_FILTER_CLASS 8 /* of the hash of a class that is shown, with its NUL */

/* A text that has been read: its sets of ranks are kept, because each rank is compared with it. A
 * zeroed one is empty. */
struct rank_filter {
    char text[MATCH_MAX_TEXT];
    bool is_read;
    struct rank_set sets[MATCH_MAX_ALTERNATIVES]; /* of those that begin with "rank:" */
};

void rank_filter_fini(struct rank_filter *f);

/* Does a rank match? `m` is what was typed; ignores negation. The text is read when it has
 * changed. */
bool rank_filter_matches(struct rank_filter *f, const struct match *m, const struct job_shot *shot,
                         const struct job_shot_rank *r);

/* How a class is called: the beginning of its hash. */
void rank_filter_name_class(const struct job_shot *f, int32_t class_number, char buf[RANK_FILTER_CLASS]);

/* The text that means these ranks; of more ranges than fit it is that of the class (-1: as many as
 * fit). */
void rank_filter_put(const struct rank_set *ranks, const struct job_shot *f, int32_t class_number, char *buf,
                     size_t cap);

#endif
