/* SPDX-License-Identifier: Apache-2.0 */
/* facts: see facts.h. */
#include "agent/facts.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/procfs.h"
#include "version.h"

#define FACTS_ARENA ((size_t)256 * 1024)
#define FACTS_CMDLINE ((size_t)64 * 1024)

static int64_t facts_read_rank(void) {
    char value[32], *end;
    if (procfs_read_environ(0, "RANK", value, sizeof value) != 0 || !value[0])
        return MODEL_UNKNOWN;
    errno = 0;
    long long rank = strtoll(value, &end, 10);
    return errno || *end || rank < 0 ? MODEL_UNKNOWN : (int64_t)rank;
}

void facts_read(struct model_target *out, const struct pystack_info *info) {
    char text[4096];
    struct strbuf cmdline;
    *out = (struct model_target){.pid = getpid(), .uid = (int64_t)geteuid(), .mode = MODEL_MODE_AGENT};
    arena_init(&out->arena, FACTS_ARENA);
    out->agent_version = PROBING_VERSION;
    out->rank = facts_read_rank();
    out->started_at = procfs_started_at(0);
    if (gethostname(text, sizeof text) == 0) {
        text[sizeof text - 1] = '\0';
        out->host = arena_strdup(&out->arena, text);
    }
    if (procfs_read_exe(0, text, sizeof text) == 0)
        out->exe = arena_strdup(&out->arena, text);
    if (pystack_find_torch(0, text, sizeof text) == 0)
        out->torch = arena_strdup(&out->arena, text);
    strbuf_init(&cmdline, FACTS_CMDLINE);
    if (procfs_read_cmdline(0, &cmdline) == 0)
        out->cmdline = arena_strdup(&out->arena, strbuf_str(&cmdline));
    strbuf_fini(&cmdline);
    if (!info)
        return;
    out->python = arena_strdup(&out->arena, info->version);
    out->discovery = arena_strdup(&out->arena, info->discovery);
    out->python_untested = info->untested;
}
