/* SPDX-License-Identifier: Apache-2.0 */
/* What is collected of the process and its threads: against the kernel read otherwise, and control groups of both versions, made up. */
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cgroup.h"
#include "agent/tables/collect.h"
#include "base/clock.h"
#include "base/model.h"

static char root[64];

static int make_root(void **state) {
    (void)state;
    (void)snprintf(root, sizeof root, "/tmp/collect-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state) {
    char command[128];
    (void)state;
    (void)snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command);
}

/* A file below `root`, with the folders that lead to it. */
static void put(const char *path, const char *text) {
    char full[512];
    (void)snprintf(full, sizeof full, "%s/%s", root, path);
    for (char *slash = strchr(full + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(full, 0700);
        *slash = '/';
    }
    FILE *f = fopen(full, "we");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void find(struct cgroup *g, const char *groups, const char *mounts) {
    char proc[128];
    put("proc/cgroup", groups);
    put("proc/mountinfo", mounts);
    (void)snprintf(proc, sizeof proc, "%s/proc", root);
    cgroup_find(g, proc);
}

/* mountinfo whose hierarchies are mounted below `root`. */
static const char *mounted(const char *format) {
    static char text[2048];
    int n = 0;
    for (const char *p = format; *p; p++)
        n += snprintf(text + n, sizeof text - (size_t)n, *p == '@' ? "%s" : "%.1s", *p == '@' ? root : p);
    return text;
}

static void check(struct cgroup *g, int64_t used, int64_t limit, double throttled) {
    int64_t u, l;
    cgroup_read_memory(g, &u, &l);
    assert_int_equal(u, used);
    assert_int_equal(l, limit);
    double t = cgroup_read_throttled_s(g);
    assert_true(isnan(throttled) ? isnan(t) : fabs(t - throttled) < 1e-9);
}

#define HIDDEN (-2) /* its group cannot be seen */

static void check_kills(const char *groups, const char *mounts, int64_t kills) {
    char proc[128], folder[CGROUP_PATH];
    put("proc/cgroup", groups);
    put("proc/mountinfo", mounts);
    (void)snprintf(proc, sizeof proc, "%s/proc", root);
    int rc = cgroup_find_memory_of(proc, proc, folder, sizeof folder);
    assert_int_equal(rc, kills == HIDDEN ? -1 : 0);
    if (rc == 0)
        assert_int_equal(cgroup_read_memory_kills(folder), kills);
}

static void version_2(void **state) {
    struct cgroup g = {.keep = false};
    const char *mounts =
        mounted("25 1 0:1 / /proc rw - proc proc rw\n30 1 0:26 / @/fs rw,nosuid - cgroup2 cgroup2 rw\n");
    (void)state;
    put("fs/a/b/memory.current", "1000\n");
    put("fs/a/b/memory.max", "max\n");
    put("fs/a/b/cpu.max", "max 100000\n");
    put("fs/a/b/cpu.stat", "usage_usec 5\nnr_throttled 1\nthrottled_usec 1500000\n");
    put("fs/a/memory.current", "7000\n");
    put("fs/a/memory.max", "max\n");
    find(&g, "0::/a/b\n", mounts);
    assert_true(g.unified);
    check(&g, 1000, MODEL_UNKNOWN, 1.5);
    /* A limit of a group around it counts, with what that uses; the tightest one does. */
    put("fs/a/memory.max", "8000\n");
    put("fs/a/b/memory.max", "5000\n");
    put("fs/a/cpu.max", "50000 100000\n");
    put("fs/a/cpu.stat", "usage_usec 5\nthrottled_usec 250000\n");
    find(&g, "0::/a/b\n", mounts);
    check(&g, 7000, 8000, 0.25);
    put("fs/a/b/memory.max", "1500\n");
    find(&g, "0::/a/b\n", mounts);
    check(&g, 1000, 1500, 0.25);
    check_kills("0::/a/b\n", mounts, MODEL_UNKNOWN);
    put("fs/a/b/memory.events", "low 0\nhigh 0\nmax 7\noom 2\noom_kill 3\noom_group_kill 1\n");
    check_kills("0::/a/b\n", mounts, 3);
    put("fs/a/b/memory.events", "low 0\noom_kill x\n");
    check_kills("0::/a/b\n", mounts, MODEL_UNKNOWN);
    check_kills("0::/../../elsewhere\n", mounts, HIDDEN);
    check_kills("0::/a/gone\n", mounts, HIDDEN);
    /* Nothing of the group can be seen: what is mounted is what there is. */
    find(&g, "0::/../../elsewhere\n", mounts);
    check(&g, MODEL_UNKNOWN, MODEL_UNKNOWN, NAN);
}

static void version_1(void **state) {
    struct cgroup g = {.keep = false};
    const char *mounts = mounted("31 1 0:27 /docker/x @/memory rw - cgroup cgroup rw,memory\n"
                                 "32 1 0:28 /docker/x @/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
                                 "33 1 0:29 / @/unified rw - cgroup2 cgroup2 rw\n");
    const char *groups = "5:cpu,cpuacct:/docker/x\n4:memory:/docker/x/y\n1:name=systemd:/\n0::/docker/x\n";
    (void)state;
    put("memory/memory.usage_in_bytes", "4096\n");
    put("memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("memory/y/memory.usage_in_bytes", "2048\n");
    put("memory/y/memory.limit_in_bytes", "9223372036854771712\n");
    put("cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
    put("cpu,cpuacct/cpu.stat", "nr_periods 0\nnr_throttled 0\nthrottled_time 2500000000\n");
    find(&g, groups, mounts);
    assert_false(g.unified);
    check(&g, 2048, MODEL_UNKNOWN, 2.5);
    put("memory/memory.limit_in_bytes", "1048576\n");
    find(&g, groups, mounts);
    check(&g, 4096, 1048576, 2.5);
    put("memory/y/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 12\n");
    check_kills(groups, mounts, 12);
    put("memory/y/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\n");
    check_kills(groups, mounts, MODEL_UNKNOWN);
    check_kills("4:memory:/docker/other\n", mounts, HIDDEN);
}

static void nothing_there(void **state) {
    struct cgroup g = {.keep = false};
    (void)state;
    find(&g, "", "");
    check(&g, MODEL_UNKNOWN, MODEL_UNKNOWN, NAN);
    find(&g, "0::/a\n:::\nx\n\n7:memory\n",
         "1 2 3\n - cgroup2 \n - cgroup \n1 1 0:1 / /nowhere rw - cgroup2 x rw\n");
    check(&g, MODEL_UNKNOWN, MODEL_UNKNOWN, NAN);
    cgroup_find(&g, "/nonexistent");
    check(&g, MODEL_UNKNOWN, MODEL_UNKNOWN, NAN);
}

/* ---- the process ---- */

static int64_t read_field(const char *path, const char *key) {
    char line[256];
    long long v = -1;
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        if (strncmp(line, key, strlen(key)) == 0)
            v = strtoll(line + strlen(key), NULL, 10);
    (void)fclose(f);
    return v;
}

static void the_process(void **state) {
    struct collect c = {.threads = NULL};
    struct collect_process p;
    struct rusage before, after;
    (void)state;
    assert_int_equal(getrusage(RUSAGE_SELF, &before), 0);
    collect_read_process(&c, clock_mono_ns(), &p);
    assert_int_equal(getrusage(RUSAGE_SELF, &after), 0);
    assert_true(isnan(p.cpu_pct));
    assert_in_range(p.voluntary, before.ru_nvcsw, after.ru_nvcsw);
    assert_in_range(p.minor_faults, before.ru_minflt, after.ru_minflt);
    assert_in_range(p.major_faults, before.ru_majflt, after.ru_majflt);
    assert_int_equal(p.threads, read_field("/proc/self/status", "Threads:"));
    assert_int_equal(p.swap_bytes, read_field("/proc/self/status", "VmSwap:") * 1024);
    int64_t rss = read_field("/proc/self/status", "VmRSS:") * 1024;
    assert_in_range(p.rss_bytes, rss * 3 / 4, rss * 5 / 4);
    assert_true(p.pss_bytes > 0 && p.pss_bytes <= rss * 5 / 4);
    /* Descriptors: one more is one more. */
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int64_t fds = p.fds;
    assert_true(fd >= 0 && fds >= 3);
    c.fds.due_ns = 0;
    collect_read_process(&c, clock_mono_ns() + 1, &p);
    assert_int_equal(p.fds, fds + 1);
    (void)close(fd);
    assert_int_equal(p.pss_bytes, MODEL_UNKNOWN); /* not so often */
    /* Half a second later all of the CPU time since shows, in percent of the time between. */
    uint64_t at = c.process_ns, cpu = c.process_cpu_ns;
    while (clock_process_cpu_ns() - cpu < 20 * CLOCK_NS_PER_MS) {
    }
    collect_read_process(&c, at + CLOCK_NS_PER_S, &p);
    assert_in_range((uint64_t)(p.cpu_pct * 1000), 2000,
                    100.0 * (double)(clock_process_cpu_ns() - cpu) / 1e9 * 1000 + 1);
    collect_fini(&c);
}

/* ---- threads ---- */

struct sleeper {
    pthread_t thread;
    pid_t tid;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool ready, end;
};

static void *sleep_until_told(void *arg) {
    struct sleeper *s = arg;
    (void)pthread_setname_np(pthread_self(), "a sleeper");
    (void)pthread_mutex_lock(&s->lock);
    s->tid = (pid_t)syscall(SYS_gettid);
    s->ready = true;
    (void)pthread_cond_broadcast(&s->wake);
    while (!s->end)
        (void)pthread_cond_wait(&s->wake, &s->lock);
    (void)pthread_mutex_unlock(&s->lock);
    return NULL;
}

static void begin_sleeper(struct sleeper *s) {
    *s = (struct sleeper){.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};
    assert_int_equal(pthread_create(&s->thread, NULL, sleep_until_told, s), 0);
    (void)pthread_mutex_lock(&s->lock);
    while (!s->ready)
        (void)pthread_cond_wait(&s->wake, &s->lock);
    (void)pthread_mutex_unlock(&s->lock);
    /*
     * Until it has left its processor: its clock and its counts stand still then. State S in `stat` is not enough,
     * a thread is in it before it leaves; `syscall` says "running" until it has left.
     */
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", (int)s->tid);
    for (int i = 0; i < 10000; i++) {
        char text[512];
        FILE *f = fopen(path, "re");
        bool asleep = f && fgets(text, sizeof text, f) && atol(text) == SYS_futex;
        if (f)
            fclose(f);
        if (asleep)
            return;
        (void)usleep(1000);
    }
    fail_msg("the thread does not sleep");
}

static void end_sleeper(struct sleeper *s) {
    (void)pthread_mutex_lock(&s->lock);
    s->end = true;
    (void)pthread_cond_broadcast(&s->wake);
    (void)pthread_mutex_unlock(&s->lock);
    assert_int_equal(pthread_join(s->thread, NULL), 0);
}

static const struct collect_thread *find_thread(const struct collect *c, pid_t tid) {
    for (size_t i = 0; i < c->n_threads; i++)
        if (c->threads[i].tid == tid)
            return &c->threads[i];
    return NULL;
}

static void its_threads(void **state) {
    struct collect c = {.threads = NULL};
    struct sleeper s;
    char path[64];
    (void)state;
    begin_sleeper(&s);
    uint64_t now = clock_mono_ns();
    assert_int_equal(collect_read_threads(&c, now, NULL, 0), 1);
    assert_int_equal(collect_read_threads(&c, now + 1, NULL, 0), 0);
    const struct collect_thread *t = find_thread(&c, s.tid), *self = find_thread(&c, getpid());
    assert_true(t && self);
    assert_true(isnan(t->cpu_pct));
    assert_string_equal(t->native_name, "a sleeper");
    assert_int_equal(t->state, 'S');
    assert_int_equal(self->state, 'R');
    assert_int_equal(t->cpu_ns, clock_thread_cpu_ns(s.tid));
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/status", (int)s.tid);
    assert_int_equal(t->voluntary, read_field(path, "voluntary_ctxt_switches:"));
    assert_int_equal(t->involuntary, read_field(path, "nonvoluntary_ctxt_switches:"));
    assert_true(t->cpu >= 0 && t->cpu < sysconf(_SC_NPROCESSORS_CONF));
    /* Again: the one that slept has used nothing, this one has. */
    now += 2 * CLOCK_NS_PER_S;
    assert_int_equal(collect_read_threads(&c, now, NULL, 0), 1);
    t = find_thread(&c, s.tid);
    assert_true(t && t->cpu_pct == 0 && find_thread(&c, getpid())->cpu_pct > 0);
    assert_int_equal(t->voluntary, read_field(path, "voluntary_ctxt_switches:"));
    /* Those that are the agent's own are left out; those that have ended are gone. */
    int64_t skip = s.tid;
    assert_int_equal(collect_read_threads(&c, now + 2 * CLOCK_NS_PER_S, &skip, 1), 1);
    assert_null(find_thread(&c, s.tid));
    pid_t tid = s.tid;
    end_sleeper(&s);
    assert_int_equal(collect_read_threads(&c, now + 4 * CLOCK_NS_PER_S, NULL, 0), 1);
    assert_null(find_thread(&c, tid));
    assert_non_null(find_thread(&c, getpid()));
    collect_fini(&c);
}

/* One that does not run is what it was: its files are read again later, for the name that others give it. */
static void a_still_thread_is_believed(void **state) {
    struct collect c = {.threads = NULL};
    struct sleeper s;
    (void)state;
    begin_sleeper(&s);
    uint64_t now = clock_mono_ns();
    assert_int_equal(collect_read_threads(&c, now, NULL, 0), 1);
    assert_int_equal(pthread_setname_np(s.thread, "renamed"), 0);
    assert_int_equal(collect_read_threads(&c, now + 2 * CLOCK_NS_PER_S, NULL, 0), 1);
    const struct collect_thread *t = find_thread(&c, s.tid);
    assert_true(t && t->state == 'S' && t->cpu_pct == 0);
    assert_string_equal(t->native_name, "a sleeper");
    assert_int_equal(collect_read_threads(&c, now + 11 * CLOCK_NS_PER_S, NULL, 0), 1);
    t = find_thread(&c, s.tid);
    assert_true(t && t->state == 'S');
    assert_string_equal(t->native_name, "renamed");
    /* It has run: all of it is new at once. */
    assert_int_equal(pthread_setname_np(s.thread, "again"), 0);
    (void)pthread_mutex_lock(&s.lock);
    (void)pthread_cond_broadcast(&s.wake);
    (void)pthread_mutex_unlock(&s.lock);
    for (int i = 0; i < 10000 && clock_thread_cpu_ns(s.tid) == t->cpu_ns; i++)
        (void)usleep(1000);
    int64_t voluntary = t->voluntary;
    assert_int_equal(collect_read_threads(&c, now + 13 * CLOCK_NS_PER_S, NULL, 0), 1);
    t = find_thread(&c, s.tid);
    assert_true(t && t->cpu_pct > 0 && t->voluntary >= voluntary);
    assert_string_equal(t->native_name, "again");
    end_sleeper(&s);
    collect_fini(&c);
}

/* As it is read in the agent: the process first, whose number of threads says whether they must be listed. */
static void read_both(struct collect *c, uint64_t now) {
    struct collect_process p;
    collect_read_process(c, now, &p);
    assert_int_equal(collect_read_threads(c, now, NULL, 0), 1);
}

static void threads_that_come_and_go_are_seen(void **state) {
    struct collect c = {.keep = true};
    struct sleeper s[3];
    (void)state;
    uint64_t now = clock_mono_ns();
    begin_sleeper(&s[0]);
    read_both(&c, now);
    assert_non_null(find_thread(&c, s[0].tid));
    begin_sleeper(&s[1]);
    read_both(&c, now += 2 * CLOCK_NS_PER_S);
    assert_true(find_thread(&c, s[0].tid) && find_thread(&c, s[1].tid));
    /* One goes and another one comes: as many as before. The one is gone at once, the other there a second later. */
    pid_t tid = s[0].tid;
    end_sleeper(&s[0]);
    begin_sleeper(&s[2]);
    read_both(&c, now += 2 * CLOCK_NS_PER_S);
    assert_null(find_thread(&c, tid));
    read_both(&c, now += 2 * CLOCK_NS_PER_S);
    assert_true(find_thread(&c, s[1].tid) && find_thread(&c, s[2].tid));
    tid = s[1].tid;
    end_sleeper(&s[1]);
    read_both(&c, now += 2 * CLOCK_NS_PER_S);
    assert_true(!find_thread(&c, tid) && find_thread(&c, s[2].tid));
    assert_non_null(find_thread(&c, getpid()));
    end_sleeper(&s[2]);
    collect_fini(&c);
}

/* Files that stay open say what they say now, and are closed at the end. */
static void files_are_kept_open(void **state) {
    struct collect c = {.keep = true};
    struct collect_process p;
    (void)state;
    int free_one = open("/dev/null", O_RDONLY | O_CLOEXEC);
    (void)close(free_one);
    collect_read_process(&c, clock_mono_ns(), &p);
    int64_t rss = p.rss_bytes;
    assert_true(c.status.number > 0 && c.io.number > 0 && rss > 0);
    const size_t more = (size_t)64 << 20;
    char *memory = malloc(more);
    assert_non_null(memory);
    memset(memory, 1, more);
    collect_read_process(&c, clock_mono_ns(), &p);
    assert_true(p.rss_bytes - rss > (int64_t)(more / 2));
    free(memory);
    collect_fini(&c);
    int again = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_int_equal(again, free_one);
    (void)close(again);
    struct reread f = {.number = 0};
    char text[64];
    assert_true(reread_file(&f, "/nonexistent", true, text, sizeof text) < 0 && f.number == 0);
    assert_true(reread_file(&f, "/proc/self/comm", false, text, sizeof text) > 0 && f.number == 0);
    assert_true(reread_file(&f, "/proc/self", true, text, sizeof text) < 0 && f.number == 0);
}

/* What costs more than its share is done less often. */
static void a_dear_look_is_rare(void **state) {
    struct collect c = {.threads_cost = {.run_ns = 50 * CLOCK_NS_PER_MS, .runs = 100}};
    (void)state;
    uint64_t now = clock_mono_ns();
    assert_int_equal(collect_read_threads(&c, now, NULL, 0), 1);
    assert_true(c.threads_stretched);
    assert_int_equal(collect_read_threads(&c, now + 10 * CLOCK_NS_PER_S, NULL, 0), 0);
    assert_int_equal(collect_read_threads(&c, now + 60 * CLOCK_NS_PER_S, NULL, 0), 1);
    collect_fini(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(version_2, make_root, remove_root),
        cmocka_unit_test_setup_teardown(version_1, make_root, remove_root),
        cmocka_unit_test_setup_teardown(nothing_there, make_root, remove_root),
        cmocka_unit_test(the_process),
        cmocka_unit_test(its_threads),
        cmocka_unit_test(a_still_thread_is_believed),
        cmocka_unit_test(threads_that_come_and_go_are_seen),
        cmocka_unit_test(files_are_kept_open),
        cmocka_unit_test(a_dear_look_is_rare),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
