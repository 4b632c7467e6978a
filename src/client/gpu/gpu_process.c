/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_process: see gpu_process.h. */
#include "client/gpu/gpu_process.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "client/gpu/gpu_poller.h"
#include "client/gpu/gpu_visible.h"

#define GPU_PROCESS_MAX 256 /* processes whose devices are remembered */
/* until a search that failed is repeated, at first and at most: it may take its time each time */
#define GPU_PROCESS_RETRY_NS CLOCK_NS_PER_S
#define GPU_PROCESS_RETRY_MAX_NS (64 * CLOCK_NS_PER_S)

static struct gpu_process_known {
    pid_t pid; /* 0 free */
    size_t n;  /* devices of the host at that time */
    bool used[GPU_MAX], is_assumed;
    uint64_t retry_at_ns, retry_ns; /* 0: it is known */
    uint64_t used_ns;               /* when it was asked for last */
} gpu_process_known[GPU_PROCESS_MAX];
static pthread_mutex_t gpu_process_lock = PTHREAD_MUTEX_INITIALIZER;

/* Its place, or the one that nobody has asked for longest. */
static struct gpu_process_known *gpu_process_place(pid_t pid) {
    struct gpu_process_known *oldest = gpu_process_known;
    for (size_t i = 0; i < GPU_PROCESS_MAX; i++) {
        if (gpu_process_known[i].pid == pid)
            return &gpu_process_known[i];
        if (gpu_process_known[i].used_ns < oldest->used_ns)
            oldest = &gpu_process_known[i];
    }
    return oldest;
}

/* Which of the devices a process uses; none where that cannot be known. */
static const struct gpu_process_known *gpu_process_find(pid_t pid, const struct gpu_device *list, size_t n) {
    struct gpu_process_known *k = gpu_process_place(pid);
    bool is_same = k->pid == pid && k->n == n;
    k->used_ns = clock_mono_ns();
    if (is_same && (!k->retry_ns || k->used_ns < k->retry_at_ns))
        return k;
    uint64_t retry_ns = is_same ? k->retry_ns * 2 : GPU_PROCESS_RETRY_NS;
    *k = (struct gpu_process_known){.pid = pid, .n = n, .used_ns = k->used_ns};
    if (gpu_visible_of(pid, list, n, k->used, &k->is_assumed) != 0) {
        k->retry_ns = retry_ns < GPU_PROCESS_RETRY_MAX_NS ? retry_ns : GPU_PROCESS_RETRY_MAX_NS;
        k->retry_at_ns = clock_mono_ns() + k->retry_ns;
    }
    return k;
}

/* A sum of which a part is known. */
static void gpu_process_add(double *sum, double v) {
    if (!isnan(v))
        *sum = (isnan(*sum) ? 0 : *sum) + v;
}

/* Add a device to the list, once for all of its slices. */
static void gpu_process_add_device(char *list, int32_t device) {
    char number[16];
    size_t len = strlen(list);
    int n = snprintf(number, sizeof number, "%s%d", len ? "," : "", (int)device);
    const char *last = strrchr(list, ',');
    if (strcmp(last ? last + 1 : list, number + (len > 0)) == 0)
        return;
    bool fits = len + (size_t)n + strlen("..") < GPU_PROCESS_DEVICES;
    if (fits || !strchr(list, '.'))
        snprintf(list + len, GPU_PROCESS_DEVICES - len, "%s", fits ? number : "..");
}

void gpu_process_read(pid_t pid, struct gpu_use *out) {
    struct gpu_device list[GPU_MAX];
    size_t n_busy = 0;
    *out = (struct gpu_use){.util_pct = NAN, .mem_used_mb = NAN, .power_w = NAN};
    gpu_poller_keep();
    size_t n = gpu_poller_devices(list, GPU_MAX);
    if (n == 0 || pid <= 0)
        return;
    pthread_mutex_lock(&gpu_process_lock);
    const bool *used = gpu_process_find(pid, list, n)->used;
    for (size_t i = 0; i < n; i++) {
        const struct gpu_values *v = &list[i].newest;
        if (used[i])
            gpu_process_add_device(out->devices, list[i].facts.device);
        if (!used[i] || v->state != GPU_OK)
            continue;
        gpu_process_add(&out->util_pct, v->util_pct);
        gpu_process_add(&out->mem_used_mb, v->mem_used_mb);
        gpu_process_add(&out->power_w, v->power_w);
        n_busy += !isnan(v->util_pct);
    }
    pthread_mutex_unlock(&gpu_process_lock);
    if (n_busy)
        out->util_pct /= (double)n_busy;
}

void gpu_process_each(pid_t pid, void (*put)(void *arg, const struct gpu_device *device, bool is_assumed),
                      void *arg) {
    struct gpu_device list[GPU_MAX];
    gpu_poller_keep();
    size_t n = gpu_poller_devices(list, GPU_MAX);
    if (n == 0 || pid <= 0)
        return;
    pthread_mutex_lock(&gpu_process_lock);
    const struct gpu_process_known known = *gpu_process_find(pid, list, n);
    pthread_mutex_unlock(&gpu_process_lock);
    for (size_t i = 0; i < n; i++)
        if (known.used[i])
            put(arg, &list[i], known.is_assumed);
}
