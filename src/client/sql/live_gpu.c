/* SPDX-License-Identifier: Apache-2.0 */
/* live_gpu: see live_tables.h. The GPUs of a process, and their past since this program reads them
 * (client/gpu/gpu_poller.h). */
#include <string.h>

#include "client/gpu/gpu_poller.h"
#include "client/gpu/gpu_row.h"
#include "client/gpu/gpu_visible.h"
#include "client/sql/live_tables.h"
#include "store/ring/ring_tables.h"

static bool live_gpu_stop(void *arg) { return sql_sink_cancelled(arg); }

/* Choose the devices of the process: once, unless there are others now. */
static void live_gpu_choose(struct live_target *t, pid_t pid, const struct gpu_device *list, size_t n) {
    if (t->gpus.pid == pid && t->gpus.n == n)
        return;
    memset(t->gpus.used, 0, sizeof t->gpus.used);
    if (gpu_visible_of(pid, list, n, t->gpus.used, &t->gpus.is_assumed) != 0) {
        const struct gpu_visible_env nothing = {.local = -1};
        gpu_visible_choose(&nothing, list, n, t->gpus.used);
        t->gpus.is_assumed = true;
    }
    t->gpus.pid = pid;
    t->gpus.n = n;
}

struct live_gpu_scan {
    const struct gpu_device *list;
    const struct live_target *target;
    struct sql_sink *sink;
};

static int live_gpu_put(size_t device, const struct gpu_values *v, void *arg) {
    const struct live_gpu_scan *s = arg;
    char reasons[GPU_ROW_REASONS];
    union ring_value row[RING_GPU_COUNT];
    gpu_row_fill(row, &s->list[device].facts, v, s->target->gpus.is_assumed, reasons);
    return sql_sink_put(s->sink, row);
}

static int live_gpu_scan_of(struct live_target *t, pid_t pid, struct sql_sink *sink) {
    struct gpu_device list[GPU_MAX];
    char why[512];
    gpu_poller_wait(live_gpu_stop, sink);
    size_t n = gpu_poller_devices(list, GPU_MAX);
    if (n == 0) {
        gpu_poller_why(why, sizeof why);
        live_virtual_note(t, "gpu_metrics", why[0] ? why : "the GPUs of this machine have not been read yet");
        return 0;
    }
    live_gpu_choose(t, pid, list, n);
    bool any = false;
    for (size_t i = 0; i < n; i++)
        any = any || t->gpus.used[i];
    if (!any)
        live_virtual_note(t, "gpu_metrics", "the process was started without a GPU (CUDA_VISIBLE_DEVICES)");
    struct live_gpu_scan s = {.list = list, .target = t, .sink = sink};
    gpu_poller_each(t->gpus.used, live_gpu_put, &s);
    return 0;
}

int live_scan_gpu(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e) {
    struct live_target *t = arg;
    (void)columns;
    (void)e;
    return live_gpu_scan_of(t, t->addr.pid, sink);
}

int live_scan_gpu_remote(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e) {
    struct live_target *t = arg;
    pid_t pid = 0;
    (void)columns;
    if (live_remote_find_here(t, &pid, e) != 0)
        return -1;
    if (pid > 0)
        return live_gpu_scan_of(t, pid, sink);
    live_virtual_note(t, "gpu_metrics",
                      "the process runs on another machine: start probing there to read its GPUs");
    return 0;
}
