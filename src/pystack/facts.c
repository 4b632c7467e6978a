/* SPDX-License-Identifier: Apache-2.0 */
/* facts: what a process is, for the answer to hello: from procfs and from what was found in it. Any thread. */
#include "pystack/pystack.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/procfs.h"

#define FACTS_ARENA ((size_t)256 * 1024)
#define FACTS_CMDLINE ((size_t)64 * 1024)

static int64_t facts_read_rank(pid_t pid) {
    char value[32], *end;
    if (procfs_read_environ(pid, "RANK", value, sizeof value) != 0 || !value[0])
        return MODEL_UNKNOWN;
    errno = 0;
    long long rank = strtoll(value, &end, 10);
    return errno || *end || rank < 0 ? MODEL_UNKNOWN : (int64_t)rank;
}

/* Is our host name the process's too? In a container it may have another, which cannot be asked for from here. */
static bool facts_same_host(pid_t pid) {
    char path[64];
    struct stat ours, theirs;
    if (pid == 0)
        return true;
    (void)snprintf(path, sizeof path, "/proc/%d/ns/uts", (int)pid);
    return stat("/proc/self/ns/uts", &ours) == 0 && stat(path, &theirs) == 0 &&
           ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev;
}

void pystack_read_target(pid_t pid, const struct pystack_info *info, struct model_target *out) {
    char text[4096];
    struct strbuf cmdline;
    struct procfs_status st;
    bool known = procfs_read_status(pid, 0, &st) == 0;
    *out = (struct model_target){.pid = pid ? pid : getpid(), .uid = (int64_t)geteuid()};
    if (pid) {
        out->pid = known && st.ns_pid > 0 ? st.ns_pid : pid;
        out->uid = known ? st.uid : MODEL_UNKNOWN;
    }
    arena_init(&out->arena, FACTS_ARENA);
    out->rank = facts_read_rank(pid);
    out->started_at = procfs_started_at(pid);
    if (facts_same_host(pid) && gethostname(text, sizeof text) == 0) {
        text[sizeof text - 1] = '\0';
        out->host = arena_strdup(&out->arena, text);
    }
    if (procfs_read_exe(pid, text, sizeof text) == 0)
        out->exe = arena_strdup(&out->arena, text);
    if (pystack_find_torch(pid, text, sizeof text) == 0)
        out->torch = arena_strdup(&out->arena, text);
    strbuf_init(&cmdline, FACTS_CMDLINE);
    if (procfs_read_cmdline(pid, &cmdline) == 0)
        out->cmdline = arena_strdup(&out->arena, strbuf_str(&cmdline));
    strbuf_fini(&cmdline);
    if (!info)
        return;
    out->python = arena_strdup(&out->arena, info->version);
    out->discovery = arena_strdup(&out->arena, info->discovery);
    out->python_untested = info->untested;
}
