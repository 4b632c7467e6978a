/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refusals: rate-limits the rows "refused" in probing.events.
 *
 * After each row there is a pause, twice as long each time, so that endless attempts do not fill
 * the table. Attempts in a pause are counted in the next row. Belongs to the server's thread.
 */
#ifndef AGENT_SERVER_REFUSALS_H
#define AGENT_SERVER_REFUSALS_H

#include <stdbool.h>
#include <stdint.h>

#define REFUSALS_TEXT 192

struct refusals {
    bool waiting; /* a row is ready to be taken */
    char text[REFUSALS_TEXT];
    int64_t uid, pid; /* -1 if unknown */
    uint64_t more;    /* without a row, since the last row */
    uint64_t last_ns; /* of the last refusal, with or without a row */
    uint64_t due_ns;  /* the end of the pause */
    uint64_t pause_ns;
};

/* Count one more refusal; times are monotonic. True if there is a row to take now. */
bool refusals_note(struct refusals *r, uint64_t now_ns, int64_t uid, int64_t pid, const char *text);

/* Take the row, whose text and ids are in `*out`. True if there was one. */
bool refusals_take(struct refusals *r, struct refusals *out);

#endif
