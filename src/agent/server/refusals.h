/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refusals: rate-limits the rows "refused" in probing.events.
 *
 * After each row there is none for a while, twice as long each time, so that endless attempts do not fill the table. Attempts in
 * between are counted in the next row. Protected by the lock of the mailbox that contains it.
 */
#ifndef AGENT_SERVER_REFUSALS_H
#define AGENT_SERVER_REFUSALS_H

#include <stdbool.h>
#include <stdint.h>

#define REFUSALS_TEXT 192

struct refusals {
    bool waiting; /* a row that was not taken yet: */
    char text[REFUSALS_TEXT];
    int64_t uid, pid; /* -1 not known */
    uint64_t more;    /* that have no row, since the last that has */
    uint64_t last_ns; /* of the last refusal, with or without a row */
    uint64_t due_ns;  /* no row before */
    uint64_t pause_ns;
};

/* One more; times are monotonic. Is there a row to be taken now? */
bool refusals_note(struct refusals *r, uint64_t now_ns, int64_t uid, int64_t pid, const char *text);

/* The row, whose text and ids are left in `*out`. Whether there was one. */
bool refusals_take(struct refusals *r, struct refusals *out);

#endif
