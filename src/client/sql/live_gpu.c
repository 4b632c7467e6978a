/* SPDX-License-Identifier: Apache-2.0 */
/* live_gpu: see live_tables.h. The GPUs of a process, and their past since this program reads them
 * (client/gpu/gpu_poller.h); who has memory there. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "client/gpu/gpu_holders.h"
#include "client/gpu/gpu_poller.h"
#include "client/gpu/gpu_row.h"
#include "client/gpu/gpu_visible.h"
#include "client/sql/live_tables.h"
#include "client/target/target.h"
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

/* The GPUs of this machine; those of the process are chosen. Their number; 0: a note about `table` has the
 * reason. */
static size_t live_gpu_find(struct live_target *t, pid_t pid, const char *table, struct sql_sink *sink,
                            struct gpu_device *list) {
    char why[512];
    gpu_poller_wait(live_gpu_stop, sink);
    size_t n = gpu_poller_devices(list, GPU_MAX);
    if (n == 0) {
        gpu_poller_why(why, sizeof why);
        live_virtual_note(t, table, why[0] ? why : "the GPUs of this machine have not been read yet");
        return 0;
    }
    live_gpu_choose(t, pid, list, n);
    bool any = false;
    for (size_t i = 0; i < n; i++)
        any = any || t->gpus.used[i];
    if (!any)
        live_virtual_note(t, table, "the process was started without a GPU (CUDA_VISIBLE_DEVICES)");
    return any ? n : 0;
}

static void live_gpu_scan_of(struct live_target *t, pid_t pid, struct sql_sink *sink) {
    struct gpu_device list[GPU_MAX];
    struct live_gpu_scan s = {.list = list, .target = t, .sink = sink};
    if (live_gpu_find(t, pid, "gpu_metrics", sink, list))
        gpu_poller_each(t->gpus.used, live_gpu_put, &s);
}

/* The pid of the target, if it runs here; 0: a note has the reason why that is not known. 0 or -1. */
static int live_gpu_find_here(struct live_target *t, const char *table, pid_t *pid, struct err *e) {
    *pid = 0;
    if (live_remote_find_here(t, pid, e) != 0)
        return -1;
    if (*pid <= 0)
        live_virtual_note(t, table,
                          "the process runs on another machine: start probing there to read its GPUs");
    return 0;
}

int live_scan_gpu(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e) {
    struct live_target *t = arg;
    (void)columns;
    (void)e;
    live_gpu_scan_of(t, t->addr.pid, sink);
    return 0;
}

int live_scan_gpu_remote(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e) {
    struct live_target *t = arg;
    pid_t pid;
    (void)columns;
    if (live_gpu_find_here(t, "gpu_metrics", &pid, e) != 0)
        return -1;
    if (pid > 0)
        live_gpu_scan_of(t, pid, sink);
    return 0;
}

/* ---- who has memory there ---- */

/* A user's name may come over a network: it is looked up once. */
struct live_gpu_user {
    int64_t uid;
    char name[256];
};

static int live_gpu_put_holder(const struct live_target *t, const struct gpu_device *d,
                               const struct gpu_holder *h, pid_t pid, struct live_gpu_user *user,
                               struct sql_sink *sink) {
    char command[sizeof h->command * 4];
    text_sanitize(command, sizeof command, h->command);
    if (h->uid != user->uid) {
        user->uid = h->uid;
        user->name[0] = '\0';
        if (h->uid >= 0)
            target_user_name(h->uid, user->name, sizeof user->name);
    }
    double mb = h->holding.mem_used_mb, total = d->newest.mem_total_mb;
    union ring_value row[RING_GPU_PROCESSES_COUNT] = {
        [RING_GPU_PROCESSES_DEVICE].i = d->facts.device,
        [RING_GPU_PROCESSES_SLICE].i = d->facts.slice < 0 ? RING_INT_NULL : d->facts.slice,
        [RING_GPU_PROCESSES_PID].i = h->holding.pid,
        [RING_GPU_PROCESSES_RANK].i = h->rank < 0 ? RING_INT_NULL : h->rank,
        [RING_GPU_PROCESSES_COMMAND].s = command[0] ? command : NULL,
        [RING_GPU_PROCESSES_USER].s = user->name[0] ? user->name : NULL,
        [RING_GPU_PROCESSES_MEM].f = mb,
        [RING_GPU_PROCESSES_SHARE].f = total > 0 ? 100 * mb / total : NAN,
        [RING_GPU_PROCESSES_OWN].i = h->is_ours ? h->holding.pid == pid : RING_INT_NULL,
        [RING_GPU_PROCESSES_ASSUMED].i = t->gpus.is_assumed,
    };
    return sql_sink_put(sink, row);
}

static void live_gpu_scan_holders(struct live_target *t, pid_t pid, struct sql_sink *sink) {
    struct gpu_device list[GPU_MAX];
    char why[GPU_WHY];
    size_t n = live_gpu_find(t, pid, "gpu_processes", sink, list);
    struct gpu_holder *holders = n ? calloc(GPU_HOLDERS_MAX, sizeof *holders) : NULL;
    if (n && !holders)
        live_virtual_note(t, "gpu_processes", "out of memory for them");
    if (!holders)
        return;
    struct live_gpu_user user = {.uid = -1};
    int found = gpu_holders_read(list, t->gpus.used, n, holders, GPU_HOLDERS_MAX, why);
    if (why[0])
        live_virtual_note(t, "gpu_processes", why);
    for (int i = 0; i < found; i++) {
        int place = holders[i].holding.place;
        if (live_gpu_put_holder(t, &list[place], &holders[i], pid, &user, sink) != 0)
            break;
    }
    free(holders);
}

int live_scan_gpu_processes(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e) {
    struct live_target *t = arg;
    (void)columns;
    (void)e;
    live_gpu_scan_holders(t, t->addr.pid, sink);
    return 0;
}

int live_scan_gpu_processes_remote(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e) {
    struct live_target *t = arg;
    pid_t pid;
    (void)columns;
    if (live_gpu_find_here(t, "gpu_processes", &pid, e) != 0)
        return -1;
    if (pid > 0)
        live_gpu_scan_holders(t, pid, sink);
    return 0;
}
