/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_visible: see gpu_visible.h. */
#include "client/gpu/gpu_visible.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/procfs.h"
#include "base/rank_env.h"
#include "client/guard.h"
#include "client/target/target.h"

#define VISIBLE_VALUE 4096 /* bytes of a variable that count */

/* Devices in the order in which a process counts them. */
struct visible_list {
    int at[GPU_MAX]; /* places in the caller's list */
    size_t n;
    bool by_number; /* some were named so */
};

static bool visible_has(const struct visible_list *l, int at) {
    for (size_t i = 0; i < l->n; i++)
        if (l->at[i] == at)
            return true;
    return false;
}

static void visible_add(struct visible_list *l, int at) {
    if (l->n < GPU_MAX && !visible_has(l, at))
        l->at[l->n++] = at;
}

/* Devices of a vendor that a process can use: of a divided one its slices. */
static void visible_all(const char *vendor, const struct gpu_device *list, size_t n,
                        struct visible_list *out) {
    *out = (struct visible_list){.n = 0};
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i].facts.vendor, vendor) == 0 && !list[i].facts.is_divided)
            visible_add(out, (int)i);
}

/* The device that a part of a UUID means; -1: none, or several. */
static int visible_find(const char *part, size_t len, const struct gpu_device *list, size_t n) {
    int found = -1;
    for (size_t i = 0; i < n; i++)
        if (strncasecmp(list[i].facts.uuid, part, len) == 0) {
            if (found >= 0)
                return -1;
            found = (int)i;
        }
    return found;
}

/* Those of `from` that a text names. It ends at the first name that is not valid, as CUDA's does. */
static void visible_pick(const char *text, const struct visible_list *from, const struct gpu_device *list,
                         size_t n, struct visible_list *out) {
    *out = (struct visible_list){.by_number = from->by_number};
    for (const char *at = text; *at; at += *at == ',') {
        at += strspn(at, " \t");
        size_t len = strcspn(at, ",");
        size_t end = len;
        while (end > 0 && (at[end - 1] == ' ' || at[end - 1] == '\t'))
            end--;
        char *stop;
        long number = strtol(at, &stop, 10);
        int place = -1;
        if (end > 0 && stop == at + end && number >= 0 && (size_t)number < from->n) {
            place = from->at[number];
            out->by_number = true;
        } else if (end > 4 && stop == at)
            place = visible_find(at, end, list, n);
        if (place < 0)
            return;
        visible_add(out, place);
        at += len;
    }
}

/* All devices are alike: then their order is that of the bus. */
static bool visible_are_alike(const struct visible_list *l, const struct gpu_device *list) {
    for (size_t i = 1; i < l->n; i++)
        if (strcmp(list[l->at[i]].facts.name, list[l->at[0]].facts.name) != 0)
            return false;
    return true;
}

static bool visible_choose_of(const char *vendor, const char *names, const struct gpu_visible_env *env,
                              const struct gpu_device *list, size_t n, bool *used) {
    struct visible_list all, given, mine;
    visible_all(vendor, list, n, &all);
    given = all;
    const char *box = strcmp(vendor, "nvidia") == 0 ? env->container : NULL;
    if (box && *box && strcmp(box, "all") != 0 && strcmp(box, "void") != 0 && strcmp(box, "none") != 0)
        visible_pick(box, &all, list, n, &given);
    mine = given;
    if (names)
        visible_pick(names, &given, list, n, &mine);
    bool is_ordered = env->order && strcmp(env->order, "PCI_BUS_ID") == 0;
    bool assumed = mine.by_number && !is_ordered && !visible_are_alike(&all, list);
    if (env->local >= 0 && mine.n > 1) {
        assumed = true;
        if ((size_t)env->local < mine.n) {
            mine.at[0] = mine.at[env->local];
            mine.n = 1;
        }
    } else if (mine.n > 1)
        assumed = true; /* it sees them; which of them it uses is not known */
    for (size_t i = 0; i < mine.n; i++)
        used[mine.at[i]] = true;
    return assumed;
}

bool gpu_visible_choose(const struct gpu_visible_env *env, const struct gpu_device *list, size_t n,
                        bool *used) {
    memset(used, 0, n * sizeof *used);
    bool nvidia = visible_choose_of("nvidia", env->cuda, env, list, n, used);
    bool amd = visible_choose_of("amd", env->hip ? env->hip : env->cuda, env, list, n, used);
    return nvidia || amd;
}

/* What a child does. */
struct visible_search {
    pid_t pid;
    struct gpu_device list[GPU_MAX];
    size_t n;
    bool used[GPU_MAX], is_assumed;
};

static void visible_search(void *arg) {
    struct visible_search *s = arg;
    static const char *const names[] = {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
                                        "NVIDIA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER",
                                        "ROCR_VISIBLE_DEVICES"};
    enum { NAMES = sizeof names / sizeof names[0] };
    char values[NAMES][VISIBLE_VALUE];
    const char *found[NAMES];
    struct rank_env rank;
    for (size_t i = 0; i < NAMES; i++)
        found[i] = procfs_read_environ(s->pid, names[i], values[i], sizeof values[i]) == 0 ? values[i] : NULL;
    struct gpu_visible_env env = {.cuda = found[0],
                                  .hip = found[1] ? found[1] : found[4],
                                  .container = found[2],
                                  .order = found[3],
                                  .local = -1};
    if (rank_env_read(&rank, s->pid) == 0 && rank.source)
        env.local = rank.local;
    s->is_assumed = gpu_visible_choose(&env, s->list, s->n, s->used);
}

int gpu_visible_of(pid_t pid, const struct gpu_device *list, size_t n, bool *used, bool *is_assumed) {
    struct visible_search s = {.pid = pid, .n = n};
    memcpy(s.list, list, n * sizeof *list);
    if (guard_run(visible_search, &s, sizeof s, TARGET_POLL_MS) != GUARD_DONE)
        return -1;
    memcpy(used, s.used, n * sizeof *used);
    *is_assumed = s.is_assumed;
    return 0;
}
