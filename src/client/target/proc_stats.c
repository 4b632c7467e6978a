/* SPDX-License-Identifier: Apache-2.0 */
/* proc_stats: see proc_stats.h. */
#include "client/target/proc_stats.h"

#include <stdio.h>
#include <string.h>

#include "base/model.h"
#include "base/procfs.h"

void proc_stats_init(struct proc_stats *v) {
    *v = (struct proc_stats){'?', 0, MODEL_UNKNOWN, MODEL_UNKNOWN, MODEL_UNKNOWN, MODEL_UNKNOWN};
}

void proc_stats_read(struct proc_stats_reader *r, pid_t pid, struct proc_stats *out) {
    struct procfs_status status;
    proc_stats_init(out);
    if (pid <= 0 || procfs_read_status(pid, 0, &status) != 0)
        return;
    out->state = status.state;
    out->tracer_pid = status.tracer_pid;
    out->rss_bytes = status.rss_bytes;
    out->swap_bytes = status.swap_bytes;
    if (r->pid != pid || r->reads++ % PROC_STATS_FIND == 0) {
        char proc[32];
        snprintf(proc, sizeof proc, "/proc/%ld", (long)pid);
        memset(&r->group, 0, sizeof r->group);
        cgroup_find(&r->group, proc);
        r->pid = pid;
    }
    cgroup_read_memory(&r->group, &out->group_bytes, &out->limit_bytes);
}
