/* SPDX-License-Identifier: Apache-2.0 */
/* refusals: see refusals.h. */
#include "agent/server/refusals.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"

#define REFUSALS_FIRST_NS CLOCK_NS_PER_S
#define REFUSALS_LONGEST_NS (600 * CLOCK_NS_PER_S) /* then at most 144 rows a day */
/* after that time without a refusal, start again with the shortest pause */
#define REFUSALS_QUIET_NS (1800 * CLOCK_NS_PER_S)

bool refusals_note(struct refusals *r, uint64_t now_ns, int64_t uid, int64_t pid, const char *text) {
    bool quiet = r->pause_ns == 0 || now_ns - r->last_ns > REFUSALS_QUIET_NS;
    r->last_ns = now_ns;
    if (r->waiting || (!quiet && now_ns < r->due_ns)) {
        r->more++;
        return false;
    }
    r->pause_ns = quiet ? REFUSALS_FIRST_NS : 2 * r->pause_ns;
    if (r->pause_ns > REFUSALS_LONGEST_NS)
        r->pause_ns = REFUSALS_LONGEST_NS;
    r->due_ns = now_ns + r->pause_ns;
    r->waiting = true;
    r->uid = uid;
    r->pid = pid;
    if (r->more)
        snprintf(r->text, sizeof r->text, "%.*s (and %" PRIu64 " more since the last row)",
                 REFUSALS_TEXT - 64, text, r->more);
    else
        snprintf(r->text, sizeof r->text, "%s", text);
    r->more = 0;
    return true;
}

bool refusals_take(struct refusals *r, struct refusals *out) {
    bool waiting = r->waiting;
    if (waiting)
        *out = *r;
    r->waiting = false;
    return waiting;
}
