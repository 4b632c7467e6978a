/* SPDX-License-Identifier: Apache-2.0 */
/* collect: see collect.h. Files: proc(5). getrusage(2) also counts threads that have ended. */
#include "agent/tables/collect.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/model.h"
#include "base/procfs.h"

#define COLLECT_FOUND_NS (60 * CLOCK_NS_PER_S) /* how long the control groups found are believed */
#define COLLECT_SMAPS_NS (30 * CLOCK_NS_PER_S)
/* for a larger process the shares of memory are not read */
#define COLLECT_SMAPS_RSS ((int64_t)512 * 1024 * 1024)
/* nor if that takes longer, because its memory is locked meanwhile */
#define COLLECT_SMAPS_LONG_NS (5 * CLOCK_NS_PER_MS)
/* what is looked at over many seconds; less often while the process does nothing */
#define COLLECT_HOST_NS (10 * CLOCK_NS_PER_S)
#define COLLECT_HOST_IDLE_NS (30 * CLOCK_NS_PER_S)
#define COLLECT_WORKS_PCT 1.0
#define COLLECT_CPUS_MAX 8192
#define COLLECT_FDS_MAX 65536
#define COLLECT_FILE 4096
#define COLLECT_STATUS ((size_t)16 * 1024) /* it has a line with all groups */
/* how long the files of a thread that does not run are believed: others may rename it */
#define COLLECT_STILL_NS (10 * CLOCK_NS_PER_S)

void collect_fini(struct collect *c) {
    free(c->threads);
    reread_close(&c->status);
    reread_close(&c->io);
    reread_close(&c->stat);
    cgroup_close(&c->groups);
    *c = (struct collect){.threads = NULL};
}

size_t collect_bytes(const struct collect *c) { return c->n_threads * sizeof *c->threads; }

/* ---- files that are read now and then ---- */

/* They are short, so their duration stands for CPU time: that needs no call of the kernel, and one in
 * which we lost the CPU is an outlier (cost.h). */
static bool collect_is_due(const struct collect_rare *r, uint64_t now_ns, uint64_t *began_ns) {
    if (r->off || now_ns < r->due_ns)
        return false;
    *began_ns = clock_mono_ns();
    return true;
}

static void collect_done(struct collect_rare *r, uint64_t now_ns, uint64_t every_ns, uint64_t began_ns) {
    bool stretched;
    cost_add(&r->cost, clock_mono_ns() - began_ns);
    /* Half a second less, so that a file to be read every second is due each time. */
    r->due_ns =
        now_ns + cost_interval_ns(&r->cost, every_ns, COLLECT_RARE_PCT, &stretched) - CLOCK_NS_PER_S / 2;
}

/* The value after a key at the beginning of a line; MODEL_UNKNOWN if there is none. */
static int64_t collect_field(const char *text, const char *key) {
    size_t n = strlen(key);
    for (const char *line = text; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL)
        if (strncmp(line, key, n) == 0)
            return strtoll(line + n, NULL, 10);
    return MODEL_UNKNOWN;
}

/* The same in bytes, of a field in KiB. */
static int64_t collect_field_bytes(const char *text, const char *key) {
    int64_t kib = collect_field(text, key);
    return kib < 0 || kib > INT64_MAX / 1024 ? MODEL_UNKNOWN : kib * 1024;
}

/* Open descriptors of the job: those of its first thread; ours are separate (fds.h). From Linux
 * 6.2 on it is the folder's size. */
static int64_t collect_count_fds(void) {
    struct stat st;
    if (stat("/proc/self/fd", &st) == 0 && st.st_size > 0)
        return st.st_size;
    DIR *d = opendir("/proc/self/fd");
    int64_t n = 0;
    if (!d)
        return MODEL_UNKNOWN;
    for (struct dirent *entry; n <= COLLECT_FDS_MAX && (entry = readdir(d));)
        n += entry->d_name[0] != '.';
    closedir(d);
    return n > COLLECT_FDS_MAX ? MODEL_UNKNOWN : n;
}

/* CPUs that the first thread of the job may run on, and its group may use; NAN unknown. */
static double collect_count_cpus(const struct cgroup *g) {
    unsigned long mask[COLLECT_CPUS_MAX / (8 * sizeof(unsigned long))];
    long bytes = syscall(SYS_sched_getaffinity, getpid(), sizeof mask, mask);
    double quota = cgroup_read_cpus(g), n = 0;
    for (long i = 0; i < bytes / (long)sizeof mask[0]; i++)
        n += __builtin_popcountl(mask[i]);
    if (n == 0)
        return NAN;
    return quota < n ? quota : n;
}

/* The share of all CPUs' time that the machine under this one gave to others. */
static double collect_read_steal_pct(struct collect *c) {
    char text[512];
    uint64_t ticks = 0, stolen = 0;
    if (reread_file(&c->stat, "/proc/stat", c->keep, text, sizeof text) <= 0 || strncmp(text, "cpu ", 4) != 0)
        return NAN;
    char *at = text + 4, *end;
    for (int i = 0; i < 8; i++, at = end) { /* user nice system idle iowait irq softirq steal */
        uint64_t v = strtoull(at, &end, 10);
        if (end == at)
            return NAN;
        ticks += v;
        stolen = v;
    }
    bool known = c->host_ticks && ticks > c->host_ticks && stolen >= c->host_stolen;
    double pct = known ? 100.0 * (double)(stolen - c->host_stolen) / (double)(ticks - c->host_ticks) : NAN;
    c->host_ticks = ticks;
    c->host_stolen = stolen;
    return pct;
}

static void collect_read_rare(struct collect *c, uint64_t now_ns, struct collect_process *out) {
    char text[COLLECT_FILE];
    uint64_t began;
    if (collect_is_due(&c->fds, now_ns, &began)) {
        out->fds = collect_count_fds();
        collect_done(&c->fds, now_ns, CLOCK_NS_PER_S, began);
    }
    if (collect_is_due(&c->cgroup, now_ns, &began)) {
        if (c->found_ns == 0 || now_ns - c->found_ns > COLLECT_FOUND_NS) {
            c->groups.keep = c->keep;
            cgroup_find(&c->groups, "/proc/self");
            c->found_ns = now_ns;
        }
        cgroup_read_memory(&c->groups, &out->cgroup_memory, &out->cgroup_limit);
        out->throttled_s = cgroup_read_throttled_s(&c->groups);
        collect_done(&c->cgroup, now_ns, CLOCK_NS_PER_S, began);
    }
    bool works = out->cpu_pct >= COLLECT_WORKS_PCT || out->major_faults > c->major_faults;
    c->major_faults = out->major_faults;
    if (c->found_ns && collect_is_due(&c->host, now_ns, &began)) {
        out->memory_pressure_s = cgroup_read_pressure_s(&c->groups, CGROUP_PRESSURE_MEMORY);
        out->io_pressure_s = cgroup_read_pressure_s(&c->groups, CGROUP_PRESSURE_IO);
        out->cpus = collect_count_cpus(&c->groups);
        out->steal_pct = collect_read_steal_pct(c);
        collect_done(&c->host, now_ns, works ? COLLECT_HOST_NS : COLLECT_HOST_IDLE_NS, began);
    }
    if (out->rss_bytes >= 0 && out->rss_bytes <= COLLECT_SMAPS_RSS &&
        collect_is_due(&c->smaps, now_ns, &began)) {
        if (procfs_read_file(0, 0, "smaps_rollup", text, sizeof text) > 0)
            out->pss_bytes = collect_field_bytes(text, "Pss:");
        c->smaps.off = out->pss_bytes < 0 || clock_mono_ns() - began > COLLECT_SMAPS_LONG_NS;
        collect_done(&c->smaps, now_ns, COLLECT_SMAPS_NS, began);
    }
}

/* ---- the process ---- */

void collect_read_process(struct collect *c, uint64_t now_ns, struct collect_process *out) {
    struct rusage usage;
    char text[COLLECT_STATUS];
    uint64_t cpu = clock_process_cpu_ns();
    *out = (struct collect_process){.cpu_pct = NAN,
                                    .rss_bytes = MODEL_UNKNOWN,
                                    .pss_bytes = MODEL_UNKNOWN,
                                    .swap_bytes = MODEL_UNKNOWN,
                                    .threads = MODEL_UNKNOWN,
                                    .fds = MODEL_UNKNOWN,
                                    .voluntary = MODEL_UNKNOWN,
                                    .involuntary = MODEL_UNKNOWN,
                                    .minor_faults = MODEL_UNKNOWN,
                                    .major_faults = MODEL_UNKNOWN,
                                    .read_bytes = MODEL_UNKNOWN,
                                    .written_bytes = MODEL_UNKNOWN,
                                    .cgroup_memory = MODEL_UNKNOWN,
                                    .cgroup_limit = MODEL_UNKNOWN,
                                    .throttled_s = NAN,
                                    .cpus = NAN,
                                    .memory_pressure_s = NAN,
                                    .io_pressure_s = NAN,
                                    .steal_pct = NAN};
    if (c->process_ns && now_ns > c->process_ns && cpu >= c->process_cpu_ns)
        out->cpu_pct = 100.0 * (double)(cpu - c->process_cpu_ns) / (double)(now_ns - c->process_ns);
    c->process_ns = now_ns;
    c->process_cpu_ns = cpu;
    /* Three of its fifty fields: procfs_read_status looks for all that anybody wants. */
    if (reread_file(&c->status, "/proc/self/status", c->keep, text, sizeof text) > 0) {
        out->rss_bytes = collect_field_bytes(text, "VmRSS:");
        out->swap_bytes = collect_field_bytes(text, "VmSwap:");
        out->threads = collect_field(text, "Threads:");
    }
    c->process_threads = out->threads;
    if (getrusage(RUSAGE_SELF, &usage) == 0) {
        out->voluntary = usage.ru_nvcsw;
        out->involuntary = usage.ru_nivcsw;
        out->minor_faults = usage.ru_minflt;
        out->major_faults = usage.ru_majflt;
    }
    if (reread_file(&c->io, "/proc/self/io", c->keep, text, sizeof text) > 0) {
        out->read_bytes = collect_field(text, "read_bytes:");
        out->written_bytes = collect_field(text, "write_bytes:");
    }
    collect_read_rare(c, now_ns, out);
}

/* ---- threads ---- */

static const struct collect_thread *collect_find(const struct collect *c, pid_t tid, size_t *from) {
    while (*from < c->n_threads && c->threads[*from].tid < tid)
        (*from)++;
    return *from < c->n_threads && c->threads[*from].tid == tid ? &c->threads[*from] : NULL;
}

/* Read the facts about a thread that may have changed; `before` are the previous ones (NULL: it
 * is new); `rested`: it has not run since. 0, or -1: it is gone. */
static int collect_read_thread(struct collect_thread *t, const struct collect_thread *before, pid_t tid,
                               uint64_t now_ns, uint64_t elapsed_ns, bool rested) {
    struct procfs_stat stat;
    char text[COLLECT_STATUS];
    uint64_t wait_ns, times;
    *t = before
             ? *before
             : (struct collect_thread){
                   .tid = tid, .voluntary = MODEL_UNKNOWN, .involuntary = MODEL_UNKNOWN, .cpu_wait_s = NAN};
    if (!before || !rested)
        t->cpu_ns = clock_thread_cpu_ns(tid);
    t->cpu_pct = NAN;
    if (before && elapsed_ns && t->cpu_ns >= before->cpu_ns)
        t->cpu_pct = 100.0 * (double)(t->cpu_ns - before->cpu_ns) / (double)elapsed_ns;
    /* Its clock was read before its files: what they said then is what it is still in. */
    bool still = before && before->cpu_ns == t->cpu_ns && t->cpu_ns > 0;
    if (still && now_ns - before->read_ns < COLLECT_STILL_NS)
        return 0;
    if (procfs_read_stat(0, tid, &stat) != 0)
        return -1;
    bool same = still && before->state == stat.state;
    t->read_ns = now_ns;
    t->state = stat.state;
    t->minor_faults = stat.minor_faults;
    t->major_faults = stat.major_faults;
    t->cpu = stat.cpu;
    snprintf(t->native_name, sizeof t->native_name, "%s", stat.comm);
    if (!still)
        t->cpu_wait_s = procfs_read_cpu_wait(0, tid, &wait_ns, &times) == 0 ? (double)wait_ns / 1e9 : NAN;
    if (same)
        return 0;
    t->voluntary = t->involuntary = MODEL_UNKNOWN;
    if (procfs_read_file(0, tid, "status", text, sizeof text) > 0) {
        t->voluntary = collect_field(text, "voluntary_ctxt_switches:");
        t->involuntary = collect_field(text, "nonvoluntary_ctxt_switches:");
    }
    /* Empty or "0": it runs, or the kernel does not show it. */
    if (stat.state == 'R' || procfs_read_file(0, tid, "wchan", t->wchan, sizeof t->wchan) <= 0 ||
        strcmp(t->wchan, "0") == 0)
        t->wchan[0] = '\0';
    return 0;
}

static bool collect_is_skipped(pid_t tid, const int64_t *skip, size_t n_skip) {
    for (size_t i = 0; i < n_skip; i++)
        if (skip[i] == tid)
            return true;
    return false;
}

/* Read each of the listed threads. 0, or -1 without memory. */
static int collect_read_all(struct collect *c, const pid_t *tids, size_t n, uint64_t now_ns,
                            const int64_t *skip, size_t n_skip) {
    struct collect_thread *threads = calloc(n ? n : 1, sizeof *threads);
    size_t kept = 0, from = 0;
    if (!threads)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (!collect_is_skipped(tids[i], skip, n_skip) &&
            collect_read_thread(&threads[kept], collect_find(c, tids[i], &from), tids[i], now_ns,
                                c->threads_ns ? now_ns - c->threads_ns : 0, c->nobody_ran) == 0)
            kept++;
    free(c->threads);
    c->threads = threads;
    c->n_threads = kept;
    c->threads_ns = now_ns;
    return 0;
}

/* The threads that there are, at most COLLECT_MAX_THREADS, ascending; or -1. As many as before are
 * the same ones: one that has ended since is found gone, and then there are too many or too few. */
static ssize_t collect_list_tids(const struct collect *c, uint64_t now_ns, size_t n_skip, pid_t *tids) {
    if (c->process_ns == now_ns && c->process_threads == (int64_t)(c->n_threads + n_skip)) {
        for (size_t i = 0; i < c->n_threads; i++)
            tids[i] = c->threads[i].tid;
        return (ssize_t)c->n_threads;
    }
    ssize_t n = procfs_list_tids(0, tids, COLLECT_MAX_THREADS);
    return n < COLLECT_MAX_THREADS ? n : COLLECT_MAX_THREADS;
}

int collect_read_threads(struct collect *c, uint64_t now_ns, const int64_t *skip, size_t n_skip) {
    if (now_ns < c->threads_due_ns)
        return 0;
    uint64_t cpu = clock_self_cpu_ns();
    pid_t *tids = calloc(COLLECT_MAX_THREADS, sizeof *tids);
    ssize_t n = tids ? collect_list_tids(c, now_ns, n_skip, tids) : -1;
    int rc = n < 0 ? -1 : collect_read_all(c, tids, (size_t)n, now_ns, skip, n_skip);
    free(tids);
    cost_add(&c->threads_cost, clock_self_cpu_ns() - cpu);
    c->threads_due_ns =
        now_ns - CLOCK_NS_PER_S / 2 +
        cost_interval_ns(&c->threads_cost, CLOCK_NS_PER_S, COLLECT_THREADS_PCT, &c->threads_stretched);
    return rc == 0 ? 1 : -1;
}
