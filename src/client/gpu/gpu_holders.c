/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_holders: see gpu_holders.h. */
#include "client/gpu/gpu_holders.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/procfs.h"
#include "base/rank_env.h"
#include "base/text.h"
#include "client/guard.h"
#include "client/target/target.h"

#define HOLDERS_PATIENCE_MS 3000
#define HOLDERS_RETRY_S 30             /* before a driver that did not answer is asked again */
#define HOLDERS_HOST_PIDS 0xEFFFFFFCUL /* inode of the first pid namespace: linux/proc_ns.h */

/* When a driver last did not answer; 0 never. */
static atomic_uint_fast64_t holders_blocked_ns;

/* What the children do. */
struct holders_search {
    struct gpu_facts devices[GPU_MAX];
    bool used[GPU_MAX];
    size_t n_devices;
    struct gpu_holder found[GPU_HOLDERS_MAX];
    size_t n;
    char why[GPU_WHY];
};

static void holders_enter(void *arg, int32_t device) { (void)arg, (void)device; }

/* Add what is missing. */
static void holders_note(struct holders_search *s, const char *why) {
    size_t at = strlen(s->why);
    if (why[0] && !strstr(s->why, why))
        snprintf(s->why + at, sizeof s->why - at, "%s%s", at ? "; " : "", why);
}

static bool holders_counts_as_host(void) {
    struct stat st;
    return stat("/proc/self/ns/pid", &st) == 0 && st.st_ino == HOLDERS_HOST_PIDS;
}

/* Its place among the devices that were asked about; -1: none of them. Numbers shift when a device is gone. */
static int holders_place(const struct holders_search *s, const struct gpu_facts *f) {
    for (size_t i = 0; i < s->n_devices; i++) {
        const struct gpu_facts *d = &s->devices[i];
        bool is_other = d->uuid[0] && f->uuid[0] && strcmp(d->uuid, f->uuid) != 0;
        if (strcmp(d->vendor, f->vendor) == 0 && d->device == f->device && d->slice == f->slice && !is_other)
            return (int)i;
    }
    return -1;
}

static void holders_add(struct holders_search *s, int place, const struct gpu_holding *holding,
                        bool is_ours) {
    if (s->n == GPU_HOLDERS_MAX) {
        holders_note(s, "there are more of them than are listed");
        return;
    }
    struct gpu_holder *h = &s->found[s->n++];
    *h = (struct gpu_holder){.holding = *holding, .is_ours = is_ours, .uid = -1, .rank = -1};
    h->holding.place = place;
}

/* Of a vendor: those of its devices that are used. A device is skipped unless it, or a slice of it, is. */
static void holders_list(struct holders_search *s, const struct gpu_source *source) {
    static struct gpu_facts facts[GPU_MAX];
    static struct gpu_holding list[GPU_HOLDERS_MAX];
    struct gpu_skipped skipped;
    char why[GPU_WHY] = "";
    bool is_host = holders_counts_as_host();
    memset(skipped.is_skipped, true, sizeof skipped.is_skipped);
    for (size_t i = 0; i < s->n_devices; i++)
        if (s->used[i] && strcmp(s->devices[i].vendor, source->vendor) == 0)
            skipped.is_skipped[s->devices[i].device] = false;
    int devices = source->open(&skipped, holders_enter, NULL, facts, GPU_MAX, why);
    if (devices <= 0) {
        holders_note(s, why);
        return;
    }
    why[0] = '\0';
    size_t n = source->list_holdings(list, GPU_HOLDERS_MAX, why);
    holders_note(s, why);
    if (!is_host)
        holders_note(s, "in a container, processes outside of it may be missing");
    for (size_t i = 0; i < n; i++) {
        int place = list[i].place < devices ? holders_place(s, &facts[list[i].place]) : -1;
        if (place < 0)
            holders_note(s, "the GPUs are not the same as before: ask again");
        else if (s->used[place])
            holders_add(s, place, &list[i], is_host || !source->counts_as_host);
    }
}

static void holders_search(void *arg) {
    struct holders_search *s = arg;
    static const struct gpu_source *const sources[] = {&gpu_source_nvml, &gpu_source_amd};
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++)
        for (size_t k = 0; k < s->n_devices; k++)
            if (s->used[k] && strcmp(s->devices[k].vendor, sources[i]->vendor) == 0) {
                holders_list(s, sources[i]);
                break;
            }
}

/* Drivers may name the thread that began to use the device: two rows of a process become one. True: `h` is
 * left out. */
static bool holders_merge(struct holders_search *s, const struct gpu_holder *h) {
    for (struct gpu_holder *known = s->found; known < h; known++)
        if (known->holding.place == h->holding.place && known->holding.pid == h->holding.pid) {
            known->holding.mem_used_mb = fmax(known->holding.mem_used_mb, h->holding.mem_used_mb);
            return true;
        }
    return false;
}

/* In another child: the environment of a process may block its reader, which is not the fault of the driver. */
static void holders_name(void *arg) {
    struct holders_search *s = arg;
    size_t n = s->n;
    s->n = 0;
    for (size_t i = 0; i < n; i++) {
        struct gpu_holder *h = &s->found[s->n];
        struct procfs_status st;
        struct rank_env rank;
        *h = s->found[i];
        if (h->is_ours && procfs_read_status(h->holding.pid, 0, &st) == 0) {
            if (st.tgid > 0 && st.tgid != h->holding.pid && procfs_read_status((pid_t)st.tgid, 0, &st) == 0)
                h->holding.pid = (int32_t)st.tgid;
            snprintf(h->command, sizeof h->command, "%s", st.name);
            h->uid = st.uid;
            if (rank_env_read(&rank, h->holding.pid) == 0 && rank.source)
                h->rank = rank.rank;
        }
        s->n += !holders_merge(s, h);
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

/* Why the driver is not to be asked now; "" it may. A list waits for all devices of a driver. */
static void holders_refuse(const struct holders_search *s, const struct gpu_device *devices, char *why) {
    uint64_t blocked = atomic_load(&holders_blocked_ns), now = clock_mono_ns();
    double ago_s = (double)(now - blocked) / (double)CLOCK_NS_PER_S;
    why[0] = '\0';
    for (size_t i = 0; i < s->n_devices; i++)
        for (size_t k = 0; k < s->n_devices && devices[i].newest.state == GPU_SILENT; k++)
            if (s->used[k] && strcmp(s->devices[k].vendor, s->devices[i].vendor) == 0)
                snprintf(why, GPU_WHY, "GPU %d does not answer, and a list of processes waits for all",
                         (int)s->devices[i].device);
    if (blocked && ago_s < HOLDERS_RETRY_S)
        snprintf(why, GPU_WHY, "the driver did not answer %.0f s ago; it is asked again after %d s", ago_s,
                 HOLDERS_RETRY_S);
}

int gpu_holders_read(const struct gpu_device *devices, const bool *used, size_t n, struct gpu_holder *list,
                     size_t cap, char *why) {
    struct holders_search s = {.n_devices = n < GPU_MAX ? n : GPU_MAX};
    for (size_t i = 0; i < s.n_devices; i++) {
        s.devices[i] = devices[i].facts;
        s.used[i] = used[i] && devices[i].facts.device >= 0 && devices[i].facts.device < GPU_MAX;
    }
    holders_refuse(&s, devices, why);
    if (why[0])
        return -1;
    enum guard_end end = guard_run_about(getpid(), holders_search, &s, sizeof s, HOLDERS_PATIENCE_MS);
    if (end == GUARD_DONE) {
        atomic_store(&holders_blocked_ns, 0);
        s.n = s.n < GPU_HOLDERS_MAX ? s.n : GPU_HOLDERS_MAX;
        s.why[sizeof s.why - 1] = '\0';
        if (s.n && guard_run(holders_name, &s, sizeof s, TARGET_POLL_MS) != GUARD_DONE)
            holders_note(&s, "names of processes could not be read");
        return holders_copy(&s, list, cap, why);
    }
    if (end == GUARD_BLOCKED)
        atomic_store(&holders_blocked_ns, clock_mono_ns());
    snprintf(why, GPU_WHY, "%s",
             end == GUARD_BLOCKED                  ? "the driver has not answered for 3 s"
             : end == GUARD_BROKEN                 ? "the process that asks the driver has crashed"
             : end == GUARD_NONE && errno == EBUSY ? "the driver still has an earlier question"
                                                   : "the driver could not be asked");
    return -1;
}
