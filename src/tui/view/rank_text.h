/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_text: a rank of a job in a character, a colour and a few words. The character is the state;
 * the colour only repeats it. Pure.
 */
#ifndef TUI_VIEW_RANK_TEXT_H
#define TUI_VIEW_RANK_TEXT_H

#include <stddef.h>

#include "base/strbuf.h"
#include "tui/model/job_shot.h"
#include "tui/theme/theme.h"

/* What a character means, for the help. */
struct rank_text_sign {
    char sign;
    enum theme_role role;
    const char *word; /* in the column STATE */
    int weight;       /* the sign of a cell is that of its heaviest rank */
};

/* By enum fleet_state; the one at FLEET_STATE_COUNT is of a rank that others wait for. */
extern const struct rank_text_sign rank_text_signs[];

const struct rank_text_sign *rank_text_sign(const struct job_shot_rank *r);

/* What keeps a rank at the top of a list, the worst first: others wait for it (5), it has no process
 * (4), is stopped (3), there is no news (2), it is late or a verdict names it (1). 0: it is like the
 * others. */
int rank_text_badness(const struct job_shot *f, const struct job_shot_rank *r);

/* "all_reduce", or the word of its state. */
const char *rank_text_state(const struct job_shot_rank *r);

/* "Queue.get < loader.py:31": the line of the job's own code, and what it calls; "step train.py:88" if it
 * calls nothing. Appended; nothing if no frame is known. */
void rank_text_put_where(const struct job_shot *f, const struct job_shot_rank *r, struct strbuf *out);

/* Of a stack that ends in a node: what the job's own code calls there, decorators and such left out.
 * The node itself, if it is the job's own. */
uint32_t rank_text_called(const struct stack_classes *c, uint32_t node);

/* "step train.py:88": a call of `f->stacks`; the line only of the job's own code. Appended. */
void rank_text_put_call(const struct stack_node *n, struct strbuf *out);

/* How many ranks are in which state, the most frequent first: "7 c collective  1 ! 5". A state that
 * few are in lists its ranks instead of its name. Appended. */
void rank_text_put_states(const struct job_shot *f, struct strbuf *out);

/* The hosts from number `from` on that give no news: "gpu1 (no relay: ssh: ...); gpu4 (...)", or their names alone.
 * Appended. */
void rank_text_put_silent(const struct job_shot *f, size_t from, bool with_reasons, struct strbuf *out);

/* A length of time in at most 4 columns: "12s", "4m", "2h", "3d"; "" below a second. */
void rank_text_since(double seconds, char *buf, size_t cap);

/* A size in at most 5 columns: "1.9G", "512M", "0.1G"; "-" if it is unknown. */
void rank_text_bytes(int64_t bytes, char *buf, size_t cap);

#endif
