/* SPDX-License-Identifier: Apache-2.0 */
/* vitals: see vitals.h. */
#include "client/vitals.h"

#include <stdio.h>
#include <string.h>

#include "base/model.h"
#include "base/procfs.h"

void vitals_init(struct vitals *v) {
    *v = (struct vitals){'?', 0, MODEL_UNKNOWN, MODEL_UNKNOWN, MODEL_UNKNOWN, MODEL_UNKNOWN};
}

void vitals_read(struct vitals_reader *r, pid_t pid, struct vitals *out) {
    struct procfs_status status;
    vitals_init(out);
    if (pid <= 0 || procfs_read_status(pid, 0, &status) != 0)
        return;
    out->state = status.state;
    out->tracer_pid = status.tracer_pid;
    out->rss_bytes = status.rss_bytes;
    out->swap_bytes = status.swap_bytes;
    if (r->pid != pid || r->reads++ % VITALS_FIND == 0) {
        char proc[32];
        (void)snprintf(proc, sizeof proc, "/proc/%ld", (long)pid);
        memset(&r->group, 0, sizeof r->group);
        cgroup_find(&r->group, proc);
        r->pid = pid;
    }
    cgroup_read_memory(&r->group, &out->group_bytes, &out->limit_bytes);
}
