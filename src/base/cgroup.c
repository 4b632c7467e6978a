/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup: see cgroup.h. Files: Documentation/admin-guide/cgroup-v1/memory.rst, cgroup-v2.rst;
 * mountinfo: proc(5). */
#include "base/cgroup.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/model.h"
#include "base/strbuf.h"

#define CGROUP_LEVELS 32
#define CGROUP_FILE 4096
/* version 1 shows "no limit" as the largest number of whole pages */
#define CGROUP_NO_LIMIT (INT64_MAX / 2)

/* ---- files ---- */

/* Read a file of the folder. 0, or -1. */
static int cgroup_read_file(struct reread *f, bool keep, const char *folder, const char *name, char *buf,
                            size_t cap) {
    char path[CGROUP_PATH + 64];
    if (!f->number)
        snprintf(path, sizeof path, "%s/%s", folder, name);
    return reread_file(f, path, keep, buf, cap) > 0 ? 0 : -1;
}

/* Read a file with one number. MODEL_UNKNOWN when there is none, also for "max". */
static int64_t cgroup_read_number(struct reread *f, bool keep, const char *folder, const char *name) {
    char text[64], *end;
    if (!folder[0] || cgroup_read_file(f, keep, folder, name, text, sizeof text) != 0)
        return MODEL_UNKNOWN;
    int64_t v = strtoll(text, &end, 10);
    return end == text || v < 0 ? MODEL_UNKNOWN : v;
}

static int64_t cgroup_read_number_once(const char *folder, const char *name) {
    struct reread f = {.number = 0};
    return cgroup_read_number(&f, false, folder, name);
}

/* ---- where it is ---- */

/* True if `name` is one of the words of `list`, which commas separate and a space, colon or
 * newline ends. */
static bool cgroup_has_word(const char *list, const char *name) {
    size_t n = strlen(name);
    for (const char *p = list; *p && !strchr(" :\n", *p); p += *p == ',') {
        size_t len = strcspn(p, ", :\n");
        if (len == n && strncmp(p, name, n) == 0)
            return true;
        p += len;
    }
    return false;
}

/* The path of the process in the hierarchy of a controller (version 2 has no controller names),
 * into `buf`. 0, or -1. */
static int cgroup_own_path(const char *text, const char *controller, char *buf, size_t cap) {
    for (const char *line = text; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
        const char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
        if (!path || path > line + strcspn(line, "\n"))
            continue;
        bool found = controller ? cgroup_has_word(names + 1, controller) : path == names + 1;
        size_t len = strcspn(path + 1, "\n");
        if (!found || len >= cap)
            continue;
        memcpy(buf, path + 1, len);
        buf[len] = '\0';
        return 0;
    }
    return -1;
}

/* One line of mountinfo: where a hierarchy is mounted, and which part of it. */
struct cgroup_mount {
    char root[CGROUP_PATH], point[CGROUP_PATH];
};

/* 0, or -1 if the line describes something else. */
static int cgroup_parse_mount(const char *line, const char *controller, struct cgroup_mount *out) {
    size_t len = strcspn(line, "\n");
    const char *kind = controller ? " - cgroup " : " - cgroup2 ";
    const char *rest = memmem(line, len, kind, strlen(kind));
    if (!rest || sscanf(line, "%*d %*d %*u:%*u %511s %511s", out->root, out->point) != 2)
        return -1;
    if (!controller)
        return 0;
    rest += strlen(kind);
    rest += strcspn(rest, " \n"); /* the mounted file system */
    return *rest == ' ' && cgroup_has_word(rest + 1, controller) ? 0 : -1;
}

/* Find the folders from the process's own group up to the mount point of the hierarchy. The
 * longest path goes into `leaf`, which is the mount point if the own group cannot be seen (then `seen`,
 * which may be NULL, is false); returns the length of the shortest, 0 if there is none. */
static size_t cgroup_find_leaf(const char *groups, const char *mounts, const char *controller, char *leaf,
                               bool *seen) {
    char own[CGROUP_PATH];
    struct cgroup_mount m;
    if (cgroup_own_path(groups, controller, own, sizeof own) != 0)
        return 0;
    for (const char *line = mounts; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
        if (cgroup_parse_mount(line, controller, &m) != 0)
            continue;
        /* The mount may show only a part of the hierarchy: a container's own. */
        size_t root = strcmp(m.root, "/") == 0 ? 0 : strlen(m.root);
        bool within = strncmp(own, m.root, root) == 0 && (own[root] == '/' || own[root] == '\0');
        within = within && !strstr(own, "/..");
        const char *below = within && strcmp(own + root, "/") != 0 ? own + root : "";
        if (snprintf(leaf, CGROUP_PATH, "%s%s", m.point, below) >= CGROUP_PATH)
            continue;
        bool exists = access(leaf, X_OK) == 0;
        if (seen)
            *seen = within && exists;
        if (!exists)
            snprintf(leaf, CGROUP_PATH, "%s", m.point);
        return strlen(m.point);
    }
    return 0;
}

/* Cut `path` to its parent folder, no shorter than `least`. False if there is none. */
static bool cgroup_up(char *path, size_t least) {
    char *slash = strrchr(path, '/');
    if (!slash || (size_t)(slash - path) < least || strlen(path) <= least)
        return false;
    *slash = '\0';
    return true;
}

static const char *cgroup_used_name(const struct cgroup *g) {
    return g->unified ? "memory.current" : "memory.usage_in_bytes";
}

static const char *cgroup_limit_name(const struct cgroup *g) {
    return g->unified ? "memory.max" : "memory.limit_in_bytes";
}

static void cgroup_find_memory(struct cgroup *g, const char *leaf, size_t least) {
    char path[CGROUP_PATH];
    int64_t best = INT64_MAX;
    memcpy(g->memory, leaf, strlen(leaf) + 1);
    memcpy(path, leaf, strlen(leaf) + 1);
    for (int i = 0; i < CGROUP_LEVELS; i++) {
        int64_t used = cgroup_read_number_once(path, cgroup_used_name(g));
        int64_t limit = cgroup_read_number_once(path, cgroup_limit_name(g));
        if (used >= 0 && limit >= 0 && limit < CGROUP_NO_LIMIT && limit - used < best) {
            best = limit - used;
            memcpy(g->memory, path, strlen(path) + 1);
        }
        if (!cgroup_up(path, least))
            return;
    }
}

/* True if the group has a limit of CPU time. */
static bool cgroup_has_quota(const struct cgroup *g, const char *folder) {
    return cgroup_read_number_once(folder, g->unified ? "cpu.max" : "cpu.cfs_quota_us") > 0;
}

static void cgroup_find_cpu(struct cgroup *g, const char *leaf, size_t least) {
    char path[CGROUP_PATH];
    memcpy(g->cpu, leaf, strlen(leaf) + 1);
    memcpy(path, leaf, strlen(leaf) + 1);
    for (int i = 0; i < CGROUP_LEVELS; i++) {
        if (cgroup_has_quota(g, path)) {
            memcpy(g->cpu, path, strlen(path) + 1);
            return;
        }
        if (!cgroup_up(path, least))
            return;
    }
}

/* Read the groups of the process in the folder `proc`, and the mounts of the one in `self`. The caller frees both, also
 * after a failure. 0, or -1. */
static int cgroup_read_lists(const char *proc, const char *self, struct strbuf *groups,
                             struct strbuf *mounts) {
    char path[CGROUP_PATH];
    strbuf_init(groups, (size_t)64 * 1024);
    strbuf_init(mounts, (size_t)1024 * 1024);
    snprintf(path, sizeof path, "%s/cgroup", proc);
    int rc = strbuf_read_file(groups, path);
    snprintf(path, sizeof path, "%s/mountinfo", self);
    return rc == 0 && strbuf_read_file(mounts, path) == 0 ? 0 : -1;
}

void cgroup_find(struct cgroup *g, const char *proc) {
    char leaf[CGROUP_PATH];
    struct strbuf groups, mounts;
    cgroup_close(g);
    *g = (struct cgroup){.keep = g->keep};
    if (cgroup_read_lists(proc, proc, &groups, &mounts) == 0) {
        const char *own = strbuf_str(&groups), *where = strbuf_str(&mounts);
        size_t least = cgroup_find_leaf(own, where, "memory", leaf, NULL);
        /* Where both versions are in use, version 2 has no controllers. */
        g->unified = least == 0 && cgroup_find_leaf(own, where, "cpu", leaf, NULL) == 0;
        least = cgroup_find_leaf(own, where, g->unified ? NULL : "memory", leaf, NULL);
        if (least)
            cgroup_find_memory(g, leaf, least);
        least = cgroup_find_leaf(own, where, g->unified ? NULL : "cpu", leaf, NULL);
        if (least)
            cgroup_find_cpu(g, leaf, least);
    }
    strbuf_fini(&groups);
    strbuf_fini(&mounts);
}

int cgroup_find_memory_of(const char *proc, const char *self, char *buf, size_t cap) {
    char leaf[CGROUP_PATH] = "";
    struct strbuf groups, mounts;
    bool seen = false;
    if (cgroup_read_lists(proc, self, &groups, &mounts) == 0) {
        const char *own = strbuf_str(&groups), *where = strbuf_str(&mounts);
        if (cgroup_find_leaf(own, where, "memory", leaf, &seen) == 0)
            cgroup_find_leaf(own, where, NULL, leaf, &seen);
    }
    strbuf_fini(&groups);
    strbuf_fini(&mounts);
    return seen && snprintf(buf, cap, "%s", leaf) < (int)cap ? 0 : -1;
}

/* ---- what it says ---- */

void cgroup_read_memory(struct cgroup *g, int64_t *used, int64_t *limit) {
    *used = cgroup_read_number(&g->used, g->keep, g->memory, cgroup_used_name(g));
    *limit = cgroup_read_number(&g->limit, g->keep, g->memory, cgroup_limit_name(g));
    if (*limit >= CGROUP_NO_LIMIT)
        *limit = MODEL_UNKNOWN;
}

double cgroup_read_throttled_s(struct cgroup *g) {
    const char *key = g->unified ? "throttled_usec " : "throttled_time ";
    char text[CGROUP_FILE], *end;
    if (!g->cpu[0] || cgroup_read_file(&g->throttled, g->keep, g->cpu, "cpu.stat", text, sizeof text) != 0)
        return NAN;
    const char *at = strncmp(text, key, strlen(key)) == 0 ? text : strstr(text, key);
    if (!at || (at > text && at[-1] != '\n'))
        return NAN;
    double v = strtod(at + strlen(key), &end);
    return end == at + strlen(key) || v < 0 ? NAN : v / (g->unified ? 1e6 : 1e9);
}

double cgroup_read_cpus(const struct cgroup *g) {
    struct reread f = {.number = 0};
    char text[64], *end;
    if (!g->cpu[0])
        return NAN;
    if (!g->unified) {
        int64_t quota = cgroup_read_number_once(g->cpu, "cpu.cfs_quota_us");
        int64_t period = cgroup_read_number_once(g->cpu, "cpu.cfs_period_us");
        return quota > 0 && period > 0 ? (double)quota / (double)period : NAN;
    }
    if (cgroup_read_file(&f, false, g->cpu, "cpu.max", text, sizeof text) != 0)
        return NAN;
    double quota = strtod(text, &end), period = strtod(end, NULL);
    return quota > 0 && period > 0 ? quota / period : NAN;
}

double cgroup_read_pressure_s(struct cgroup *g, enum cgroup_pressure which) {
    static const char *const names[] = {[CGROUP_PRESSURE_MEMORY] = "memory", [CGROUP_PRESSURE_IO] = "io"};
    struct reread *f = &g->pressure[which];
    char name[32], text[256];
    snprintf(name, sizeof name, "%s.pressure", names[which]);
    /* The outermost group does not have it on older kernels. */
    if ((!g->unified || !g->memory[0] ||
         cgroup_read_file(f, g->keep, g->memory, name, text, sizeof text) != 0) &&
        cgroup_read_file(f, g->keep, "/proc/pressure", names[which], text, sizeof text) != 0)
        return NAN;
    const char *at = strncmp(text, "some ", 5) == 0 ? strstr(text, "total=") : NULL;
    return at ? strtod(at + strlen("total="), NULL) / 1e6 : NAN;
}

int64_t cgroup_read_memory_kills(const char *folder) {
    static const char *const names[] = {"memory.events", "memory.oom_control"}; /* of version 2, and 1 */
    static const char key[] = "\noom_kill ";
    char text[CGROUP_FILE], *end;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct reread f = {.number = 0};
        if (cgroup_read_file(&f, false, folder, names[i], text, sizeof text) != 0)
            continue;
        const char *at = strstr(text, key);
        int64_t n = at ? strtoll(at + strlen(key), &end, 10) : -1;
        return n >= 0 && end > at + strlen(key) ? n : MODEL_UNKNOWN;
    }
    return MODEL_UNKNOWN;
}

void cgroup_close(struct cgroup *g) {
    reread_close(&g->used);
    reread_close(&g->limit);
    reread_close(&g->throttled);
    for (size_t i = 0; i < sizeof g->pressure / sizeof g->pressure[0]; i++)
        reread_close(&g->pressure[i]);
}
