/* SPDX-License-Identifier: Apache-2.0 */
/* rank_gpu: see rank_gpu.h. */
#include "relay/rank_gpu.h"

#include <math.h>

#include "base/clock.h"
#include "client/gpu/gpu_poller.h"
#include "client/gpu/gpu_visible.h"

#define RANK_GPU_MAX 256 /* ranks of this host whose devices are remembered */
/* until a search that failed is repeated, at first and at most: it may take its time each time */
#define RANK_GPU_RETRY_NS CLOCK_NS_PER_S
#define RANK_GPU_RETRY_MAX_NS (64 * CLOCK_NS_PER_S)

static struct rank_gpu_known {
    pid_t pid; /* 0 free */
    size_t n;  /* devices of the host at that time */
    bool used[GPU_MAX], is_assumed;
    uint64_t retry_at_ns, retry_ns; /* 0: it is known */
    uint64_t used_ns;               /* when it was asked for last */
} rank_gpu_known[RANK_GPU_MAX];

/* Its place, or the one that nobody has asked for longest. */
static struct rank_gpu_known *rank_gpu_place(pid_t pid) {
    struct rank_gpu_known *oldest = rank_gpu_known;
    for (size_t i = 0; i < RANK_GPU_MAX; i++) {
        if (rank_gpu_known[i].pid == pid)
            return &rank_gpu_known[i];
        if (rank_gpu_known[i].used_ns < oldest->used_ns)
            oldest = &rank_gpu_known[i];
    }
    return oldest;
}

/* Which of the devices a rank uses; none where that cannot be known. */
static const struct rank_gpu_known *rank_gpu_find(pid_t pid, const struct gpu_device *list, size_t n) {
    struct rank_gpu_known *k = rank_gpu_place(pid);
    bool is_same = k->pid == pid && k->n == n;
    k->used_ns = clock_mono_ns();
    if (is_same && (!k->retry_ns || k->used_ns < k->retry_at_ns))
        return k;
    uint64_t retry_ns = is_same ? k->retry_ns * 2 : RANK_GPU_RETRY_NS;
    *k = (struct rank_gpu_known){.pid = pid, .n = n, .used_ns = k->used_ns};
    if (gpu_visible_of(pid, list, n, k->used, &k->is_assumed) != 0) {
        k->retry_ns = retry_ns < RANK_GPU_RETRY_MAX_NS ? retry_ns : RANK_GPU_RETRY_MAX_NS;
        k->retry_at_ns = clock_mono_ns() + k->retry_ns;
    }
    return k;
}

void rank_gpu_fill(struct report_rank *report) {
    struct gpu_device list[GPU_MAX];
    double busy = 0, used_mb = NAN;
    size_t n_busy = 0;
    gpu_poller_keep();
    size_t n = gpu_poller_devices(list, GPU_MAX);
    if (n == 0 || report->pid <= 0)
        return;
    const bool *used = rank_gpu_find((pid_t)report->pid, list, n)->used;
    for (size_t i = 0; i < n; i++) {
        const struct gpu_values *v = &list[i].newest;
        if (!used[i] || v->state != GPU_OK)
            continue;
        if (!isnan(v->util_pct)) {
            busy += v->util_pct;
            n_busy++;
        }
        if (!isnan(v->mem_used_mb))
            used_mb = (isnan(used_mb) ? 0 : used_mb) + v->mem_used_mb;
    }
    if (n_busy)
        report->gpu_util = busy / (double)n_busy;
    report->gpu_mem_mb = used_mb;
}

void rank_gpu_each(pid_t pid, void (*put)(void *arg, const struct gpu_device *device, bool is_assumed),
                   void *arg) {
    struct gpu_device list[GPU_MAX];
    gpu_poller_keep();
    size_t n = gpu_poller_devices(list, GPU_MAX);
    const struct rank_gpu_known *known = n > 0 && pid > 0 ? rank_gpu_find(pid, list, n) : NULL;
    for (size_t i = 0; known && i < n; i++)
        if (known->used[i])
            put(arg, &list[i], known->is_assumed);
}
