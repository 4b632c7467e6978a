/* SPDX-License-Identifier: Apache-2.0 */
/* presence: see presence.h. */
#include "agent/presence.h"

#include "agent/fds.h"
#include "base/clock.h"

#define PRESENCE_CHECK_NS CLOCK_NS_PER_S /* between two looks, */
#define PRESENCE_RECHECK_NS                                                                                  \
    (100 * CLOCK_NS_PER_MS) /* and after one in vain: lists may be in the middle of a change; */
#define PRESENCE_LOSSES 3   /* after so many it is gone */

bool presence_is_lost(struct presence *p, struct pystack *ps, uint64_t now_ns) {
    if (!ps || now_ns - p->checked_ns < (p->losses ? PRESENCE_RECHECK_NS : PRESENCE_CHECK_NS))
        return false;
    p->checked_ns = now_ns;
    p->losses = pystack_is_there(ps) ? 0 : p->losses + 1;
    if (p->losses < PRESENCE_LOSSES)
        return false;
    p->losses = 0;
    return true;
}

void presence_note_file(struct presence *p, const struct pystack *ps) {
    int file = (ps ? pystack_own_file(ps) : -1) + 1;
    if (file == p->file)
        return;
    fds_forget(p->file - 1);
    fds_note(file - 1);
    p->file = file;
}
