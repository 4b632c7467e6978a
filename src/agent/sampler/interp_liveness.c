/* SPDX-License-Identifier: Apache-2.0 */
/* interp_liveness: see interp_liveness.h. */
#include "agent/sampler/interp_liveness.h"

#include "agent/fds.h"
#include "base/clock.h"

#define INTERP_LIVENESS_CHECK_NS CLOCK_NS_PER_S /* between two looks, */
#define INTERP_LIVENESS_RECHECK_NS                                                                           \
    (100 * CLOCK_NS_PER_MS)      /* and after one in vain: lists may be in the middle of a change; */
#define INTERP_LIVENESS_LOSSES 3 /* after so many it is gone */

bool interp_liveness_is_lost(struct interp_liveness *p, struct pystack *ps, uint64_t now_ns) {
    if (!ps || now_ns - p->checked_ns < (p->losses ? INTERP_LIVENESS_RECHECK_NS : INTERP_LIVENESS_CHECK_NS))
        return false;
    p->checked_ns = now_ns;
    p->losses = pystack_is_there(ps) ? 0 : p->losses + 1;
    if (p->losses < INTERP_LIVENESS_LOSSES)
        return false;
    p->losses = 0;
    return true;
}

void interp_liveness_note_file(struct interp_liveness *p, const struct pystack *ps) {
    int file = (ps ? pystack_own_file(ps) : -1) + 1;
    if (file == p->file)
        return;
    fds_forget(p->file - 1);
    fds_note(file - 1);
    p->file = file;
}
