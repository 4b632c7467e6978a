/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_holders: see gpu_holders.h. */
#include "client/gpu/gpu_holders.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/procfs.h"
#include "base/rank_env.h"
#include "base/text.h"
#include "client/guard.h"
#include "client/target/target.h"

#define HOLDERS_PATIENCE_MS 3000
#define HOLDERS_RETRY_NS (30 * CLOCK_NS_PER_S) /* before a driver that did not answer is asked again */
#define HOLDERS_HOST_PIDS 0xEFFFFFFCUL         /* inode of the first pid namespace: linux/proc_ns.h */

/* When a driver last did not answer; 0 never. */
static atomic_uint_fast64_t holders_blocked_ns;

/* What a child does. */
struct holders_search {
    struct gpu_facts devices[GPU_MAX];
    size_t n_devices;
    struct gpu_holder found[GPU_HOLDERS_MAX];
    size_t n;
    char why[GPU_WHY];
};

static void holders_enter(void *arg, int32_t device) { (void)arg, (void)device; }

static bool holders_counts_as_host(void) {
    struct stat st;
    return stat("/proc/self/ns/pid", &st) == 0 && st.st_ino == HOLDERS_HOST_PIDS;
}

/* Its place among the devices that were asked about; -1: none of them. */
static int holders_place(const struct holders_search *s, const struct gpu_facts *f) {
    for (size_t i = 0; i < s->n_devices; i++)
        if (strcmp(s->devices[i].vendor, f->vendor) == 0 && s->devices[i].device == f->device &&
            s->devices[i].slice == f->slice)
            return (int)i;
    return -1;
}

static void holders_add(struct holders_search *s, int place, const struct gpu_holding *holding,
                        bool is_ours) {
    if (s->n == GPU_HOLDERS_MAX) {
        snprintf(s->why, sizeof s->why, "more than %d processes", GPU_HOLDERS_MAX);
        return;
    }
    struct gpu_holder *h = &s->found[s->n++];
    *h = (struct gpu_holder){.holding = *holding, .is_ours = is_ours, .uid = -1, .rank = -1};
    h->holding.place = place;
}

static void holders_list(struct holders_search *s, const struct gpu_source *source) {
    static struct gpu_facts facts[GPU_MAX];
    static struct gpu_holding list[GPU_HOLDERS_MAX];
    const struct gpu_skipped none = {.is_skipped = {false}};
    char why[GPU_WHY] = "";
    int devices = source->open(&none, holders_enter, NULL, facts, GPU_MAX, why);
    if (devices <= 0)
        return;
    bool is_ours = !source->counts_as_host || holders_counts_as_host();
    why[0] = '\0';
    size_t n = source->list_holdings(list, GPU_HOLDERS_MAX, why);
    memcpy(s->why, why, sizeof why);
    for (size_t i = 0; i < n; i++) {
        int place = list[i].place < devices ? holders_place(s, &facts[list[i].place]) : -1;
        if (place >= 0)
            holders_add(s, place, &list[i], is_ours);
    }
}

static void holders_search(void *arg) {
    struct holders_search *s = arg;
    static const struct gpu_source *const sources[] = {&gpu_source_nvml, &gpu_source_amd};
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++)
        for (size_t k = 0; k < s->n_devices; k++)
            if (strcmp(s->devices[k].vendor, sources[i]->vendor) == 0) {
                holders_list(s, sources[i]);
                break;
            }
}

/* In another child: the environment of a process may block its reader, which is not the fault of the driver. */
static void holders_name(void *arg) {
    struct holders_search *s = arg;
    for (size_t i = 0; i < s->n; i++) {
        struct gpu_holder *h = &s->found[i];
        struct procfs_status st;
        struct rank_env rank;
        if (!h->is_ours || procfs_read_status(h->holding.pid, 0, &st) != 0)
            continue;
        snprintf(h->command, sizeof h->command, "%s", st.name);
        h->uid = st.uid;
        if (rank_env_read(&rank, h->holding.pid) == 0 && rank.source)
            h->rank = rank.rank;
    }
}

/* What the children have written is not believed. */
static int holders_copy(struct holders_search *s, struct gpu_holder *list, size_t cap, char *why) {
    size_t n = 0;
    s->why[sizeof s->why - 1] = '\0';
    text_sanitize(why, GPU_WHY, s->why);
    for (size_t i = 0; i < s->n && i < GPU_HOLDERS_MAX && n < cap; i++) {
        struct gpu_holder *h = &s->found[i];
        h->command[sizeof h->command - 1] = '\0';
        if (h->holding.place >= 0 && (size_t)h->holding.place < s->n_devices)
            list[n++] = *h;
    }
    return (int)n;
}

int gpu_holders_read(const struct gpu_device *devices, size_t n, struct gpu_holder *list, size_t cap,
                     char *why) {
    struct holders_search s = {.n_devices = n < GPU_MAX ? n : GPU_MAX};
    uint64_t blocked = atomic_load(&holders_blocked_ns), now = clock_mono_ns();
    why[0] = '\0';
    for (size_t i = 0; i < s.n_devices; i++) {
        s.devices[i] = devices[i].facts;
        if (devices[i].newest.state == GPU_SILENT)
            snprintf(why, GPU_WHY, "GPU %d does not answer, and a list of processes waits for all",
                     (int)devices[i].facts.device);
    }
    if (blocked && now - blocked < HOLDERS_RETRY_NS)
        snprintf(why, GPU_WHY, "the driver has not answered for %.0f s",
                 (double)(now - blocked) / (double)CLOCK_NS_PER_S);
    if (why[0])
        return -1;
    switch (guard_run(holders_search, &s, sizeof s, HOLDERS_PATIENCE_MS)) {
    case GUARD_DONE:
        atomic_store(&holders_blocked_ns, 0);
        s.n = s.n < GPU_HOLDERS_MAX ? s.n : GPU_HOLDERS_MAX;
        if (s.n && guard_run(holders_name, &s, sizeof s, TARGET_POLL_MS) != GUARD_DONE && !s.why[0])
            snprintf(s.why, sizeof s.why, "the names of these processes could not be read");
        return holders_copy(&s, list, cap, why);
    case GUARD_BLOCKED:
        atomic_store(&holders_blocked_ns, clock_mono_ns() - HOLDERS_PATIENCE_MS * CLOCK_NS_PER_MS);
        snprintf(why, GPU_WHY, "the driver has not answered for %d s", HOLDERS_PATIENCE_MS / 1000);
        return -1;
    case GUARD_BROKEN:
        snprintf(why, GPU_WHY, "the process that asks the driver has crashed");
        return -1;
    default:
        snprintf(why, GPU_WHY, "the driver could not be asked");
        return -1;
    }
}
