/* SPDX-License-Identifier: Apache-2.0 */
/* live_proc: see live_tables.h. The kernel's facts about the process and its threads, read by
 * this program: the job does no work for it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/procfs.h"
#include "client/sql/live_tables.h"
#include "store/ring/ring_tables.h"

#define LIVE_PROC_INTERVAL_NS (100 * 1000 * 1000L) /* between two readings of CPU clocks */
#define LIVE_PROC_CMD_MAX ((size_t)64 * 1024)
#define LIVE_PROC_MIB (1024.0 * 1024.0)

static void live_proc_pause(void) {
    struct timespec interval = {.tv_nsec = LIVE_PROC_INTERVAL_NS};
    while (nanosleep(&interval, &interval) != 0 && errno == EINTR)
        ;
}

static int live_proc_read(const char *path, char *buf, size_t cap) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, buf, cap - 1);
    if (fd >= 0)
        close(fd);
    if (n < 0)
        return -1;
    buf[n] = '\0';
    return 0;
}

void live_read_wchan(pid_t pid, pid_t tid, char *buf, size_t cap) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/wchan", (int)pid, (int)tid);
    if (live_proc_read(path, buf, cap) != 0 || strcmp(buf, "0") == 0)
        buf[0] = '\0';
}

/* CPU time of another process in nanoseconds; UINT64_MAX unknown. */
static uint64_t live_proc_cpu_ns(pid_t pid) {
    clockid_t clock;
    struct timespec t;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) != 0)
        return UINT64_MAX;
    return (uint64_t)t.tv_sec * CLOCK_NS_PER_S + (uint64_t)t.tv_nsec;
}

/* The same for a thread: the first number of its schedstat (Linux,
 * Documentation/scheduler/sched-stats). */
static uint64_t live_proc_thread_ns(pid_t pid, pid_t tid) {
    char path[64], text[128], *end;
    snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", (int)pid, (int)tid);
    if (live_proc_read(path, text, sizeof text) != 0)
        return UINT64_MAX;
    uint64_t ns = strtoull(text, &end, 10);
    return end == text ? UINT64_MAX : ns;
}

static double live_proc_pct(uint64_t before, uint64_t after, uint64_t elapsed_ns) {
    if (before == UINT64_MAX || after == UINT64_MAX || after < before || elapsed_ns == 0)
        return NAN;
    return 100.0 * (double)(after - before) / (double)elapsed_ns;
}

static int64_t live_proc_count_fds(pid_t pid) {
    char path[64];
    int64_t n = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *d = opendir(path);
    if (!d)
        return RING_INT_NULL;
    for (struct dirent *entry; (entry = readdir(d));)
        n += entry->d_name[0] != '.';
    closedir(d);
    return n;
}

static int64_t live_proc_label(char state) {
    int label = ring_state_label(state);
    return label < 0 ? RING_INT_NULL : label;
}

int live_scan_process(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e) {
    struct live_target *t = arg;
    pid_t pid = t->addr.pid;
    struct procfs_status st;
    struct strbuf cmd;
    double cpu_pct = NAN;
    if (columns >> RING_PROCESS_CPU_PCT & 1) {
        uint64_t before = live_proc_cpu_ns(pid), began = clock_mono_ns();
        live_proc_pause();
        uint64_t after = live_proc_cpu_ns(pid);
        cpu_pct = live_proc_pct(before, after, clock_mono_ns() - began);
    }
    if (procfs_read_status(pid, 0, &st) != 0) {
        live_lost(t, e);
        t->failure = *e;
        return -1;
    }
    strbuf_init(&cmd, LIVE_PROC_CMD_MAX);
    bool named = procfs_read_cmdline(pid, &cmd) == 0 && cmd.len > 0;
    double started = procfs_started_at(pid);
    union ring_value row[RING_PROCESS_COUNT] = {
        [RING_PROCESS_PPID].i = st.ppid < 0 ? RING_INT_NULL : st.ppid,
        [RING_PROCESS_CMD].s = named ? strbuf_str(&cmd) : st.name,
        [RING_PROCESS_STATE].i = live_proc_label(st.state),
        [RING_PROCESS_CPU_PCT].f = cpu_pct,
        [RING_PROCESS_RSS_MB].f = st.rss_bytes < 0 ? NAN : (double)st.rss_bytes / LIVE_PROC_MIB,
        [RING_PROCESS_THREADS].i = st.threads < 0 ? RING_INT_NULL : st.threads,
        [RING_PROCESS_FDS].i = columns >> RING_PROCESS_FDS & 1 ? live_proc_count_fds(pid) : RING_INT_NULL,
        [RING_PROCESS_UPTIME_S].f = clock_epoch_s() - started,
    };
    sql_sink_put(sink, row);
    strbuf_fini(&cmd);
    return 0;
}

pid_t *live_list_tids(pid_t pid, size_t *n) {
    pid_t first;
    *n = 0;
    ssize_t found = procfs_list_tids(pid, &first, 1);
    if (found <= 0)
        return NULL;
    pid_t *tids = calloc((size_t)found, sizeof *tids);
    ssize_t again = tids ? procfs_list_tids(pid, tids, (size_t)found) : 0;
    if (again <= 0) {
        free(tids);
        return NULL;
    }
    *n = (size_t)(again < found ? again : found);
    return tids;
}

struct live_proc_thread {
    pid_t tid;
    uint64_t cpu_ns, at_ns;
};

static void live_proc_put_thread(pid_t pid, const struct live_proc_thread *before, uint64_t columns,
                                 struct sql_sink *sink) {
    struct procfs_status st;
    char wchan[64] = "";
    /* it has ended */
    if (procfs_read_status(pid, before->tid, &st) != 0)
        return;
    double cpu_pct = NAN;
    if (columns >> RING_SYSTEM_THREADS_CPU_PCT & 1) {
        uint64_t after = live_proc_thread_ns(pid, before->tid);
        cpu_pct = live_proc_pct(before->cpu_ns, after, clock_mono_ns() - before->at_ns);
    }
    if (columns >> RING_SYSTEM_THREADS_WCHAN & 1)
        live_read_wchan(pid, before->tid, wchan, sizeof wchan);
    union ring_value row[RING_SYSTEM_THREADS_COUNT] = {
        [RING_SYSTEM_THREADS_TID].i = st.ns_pid > 0 ? st.ns_pid : before->tid,
        [RING_SYSTEM_THREADS_NATIVE_NAME].s = st.name,
        [RING_SYSTEM_THREADS_STATE].i = live_proc_label(st.state),
        [RING_SYSTEM_THREADS_CPU_PCT].f = cpu_pct,
        [RING_SYSTEM_THREADS_WCHAN].s = wchan[0] ? wchan : NULL,
    };
    sql_sink_put(sink, row);
}

int live_scan_system_threads(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e) {
    struct live_target *t = arg;
    pid_t pid = t->addr.pid;
    size_t n;
    pid_t *tids = live_list_tids(pid, &n);
    struct live_proc_thread *threads = tids ? calloc(n, sizeof *threads) : NULL;
    if (!threads) {
        (void)(tids ? err_set(e, ERR_FAILED, "out of memory for %zu threads", n) : live_lost(t, e));
        t->failure = *e;
        free(tids);
        return -1;
    }
    bool measure = columns >> RING_SYSTEM_THREADS_CPU_PCT & 1;
    for (size_t i = 0; measure && i < n; i++) {
        threads[i].cpu_ns = live_proc_thread_ns(pid, tids[i]);
        threads[i].at_ns = clock_mono_ns();
    }
    if (measure)
        live_proc_pause();
    for (size_t i = 0; i < n && !sql_sink_cancelled(sink); i++) {
        threads[i].tid = tids[i];
        live_proc_put_thread(pid, &threads[i], columns, sink);
    }
    free(threads);
    free(tids);
    return 0;
}
