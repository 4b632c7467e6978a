/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target_list: the Python processes of this machine, from procfs.
 *
 * Nothing is attached to, and no memory is read but of those whose threads may not be borrowed: an interpreter may have a door of its
 * own. Versions come from the names of mapped files. A process that ends while it is looked at is left out.
 */
#include "client/target.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/endpoint.h"
#include "base/model.h"
#include "base/procfs.h"
#include "base/strbuf.h"
#include "inject/inject.h"
#include "pystack/door.h"
#include "pystack/pystack.h"

#define TARGET_MAX_PIDS 65536
#define TARGET_CMDLINE_MAX 4096
#define TARGET_SWEEP 4096     /* sockets looked at */
#define TARGET_SWEEP_AGE_S 10 /* one just being made is not dead */
#define TARGET_MAX_ANCESTORS 64

/* "3.11" out of a path that names a version, such as .../libpython3.11.so.1.0 or .../lib/python3.11/lib-dynload/x.so. */
static int target_version_in(const char *path, char *out, size_t cap) {
    for (const char *p = path; (p = strstr(p, "python3.")); p++) {
        const char *minor = p + strlen("python3.");
        size_t n = 0;
        while (isdigit((unsigned char)minor[n]))
            n++;
        if (n == 0 || n > 2)
            continue;
        (void)snprintf(out, cap, "3.%.*s", (int)n, minor);
        return 1;
    }
    return 0;
}

static int target_on_map(const struct procfs_map *map, void *arg) {
    return target_version_in(map->path, arg, sizeof(((struct target_process *)0)->python));
}

static void target_fill_python(struct target_process *p) {
    char exe[512];
    const char *base = procfs_read_exe(p->pid, exe, sizeof exe) == 0 ? strrchr(exe, '/') : NULL;
    /* The program's own name first: an embedded or virtual environment's path may name others. */
    if (!base || !target_version_in(base, p->python, sizeof p->python))
        (void)procfs_each_map(p->pid, target_on_map, p->python);
}

void target_user_name(int64_t uid, char *buf, size_t cap) {
    struct passwd pw, *found = NULL;
    char room[4096];
    if (getpwuid_r((uid_t)uid, &pw, room, sizeof room, &found) == 0 && found)
        (void)snprintf(buf, cap, "%s", found->pw_name);
    else
        (void)snprintf(buf, cap, "%lld", (long long)uid);
}

static void target_fill_times(struct target_process *p) {
    struct procfs_stat st;
    double started = procfs_started_at(p->pid);
    p->uptime_s = isnan(started) ? NAN : clock_epoch_s() - started;
    p->cpu_pct = NAN;
    if (procfs_read_stat(p->pid, 0, &st) == 0 && p->uptime_s > 0)
        p->cpu_pct =
            (double)(st.utime_ticks + st.stime_ticks) / (double)procfs_ticks_per_s() / p->uptime_s * 100.0;
}

/* Opening this file asks for the same permission as reading the memory in any other way. */
static bool target_may_read(pid_t pid) {
    char path[32];
    (void)snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        (void)close(fd);
    return fd >= 0;
}

/* Would injecting go by the interpreter's own door, as no thread may be borrowed (`why`)? `why` is extended when it is shut. */
static bool target_has_door(pid_t pid, struct err *why) {
    struct pystack_door door;
    struct err barred = *why, shut;
    struct pystack *ps = pystack_open(pid, &shut);
    bool has = ps && !pystack_get_info(ps)->finalizing && pystack_has_door(ps);
    bool open = has && pystack_find_door(ps, &door, &shut) == 0;
    pystack_close(ps);
    if (has && !open)
        (void)err_set(why, barred.code, "%s; nor would its Python let us in: %s", barred.text, shut.text);
    return open;
}

static void target_fill_agent(struct target_process *p) {
    char path[ENDPOINT_PATH_MAX];
    struct err why;
    p->attached =
        endpoint_path_from_outside(path, sizeof path, p->pid, NULL) == 0 && endpoint_probe(path) == 1;
    if (p->attached)
        doors_read(&p->doors, p->pid, path);
    int may = inject_check(p->pid, &why);
    p->by_door = may == INJECT_ONLY_BY_DOOR && target_has_door(p->pid, &why);
    p->inspectable = may == 0 || p->by_door;
    p->readable = target_may_read(p->pid);
    if (!p->inspectable)
        (void)snprintf(p->why_not, sizeof p->why_not, "%.*s", (int)sizeof p->why_not - 1, why.text);
}

/* 1 filled, 0 not a Python process or gone, -1 out of memory. */
static int target_fill(struct target_process *p, pid_t pid) {
    struct procfs_status st;
    if (pystack_is_python(pid) != 1 || procfs_read_status(pid, 0, &st) != 0)
        return 0;
    *p = (struct target_process){.pid = pid, .ppid = st.ppid, .uid = st.uid, .threads = st.threads};
    p->rss_bytes = st.rss_bytes;
    struct strbuf cmd;
    strbuf_init(&cmd, TARGET_CMDLINE_MAX);
    (void)procfs_read_cmdline(pid, &cmd);
    p->cmdline = strdup(cmd.len ? strbuf_str(&cmd) : st.name);
    strbuf_fini(&cmd);
    if (!p->cmdline)
        return -1;
    target_user_name(p->uid, p->user, sizeof p->user);
    target_fill_times(p);
    target_fill_python(p);
    if (pystack_find_torch(pid, p->torch, sizeof p->torch) != 0)
        p->torch[0] = '\0';
    target_fill_agent(p);
    return 1;
}

/* Who has started it: past shells and the like, up to one that is in the list. */
static pid_t target_find_parent(const struct target_process *list, size_t n, int64_t ppid) {
    struct procfs_stat st;
    for (int up = 0; up < TARGET_MAX_ANCESTORS && ppid > 1; up++) {
        for (size_t i = 0; i < n; i++)
            if (list[i].pid == ppid)
                return list[i].pid;
        if (procfs_read_stat((pid_t)ppid, 0, &st) != 0)
            break;
        ppid = st.ppid;
    }
    return 0;
}

static ssize_t target_all_pids(pid_t **out, struct err *e) {
    pid_t *pids = calloc(TARGET_MAX_PIDS, sizeof *pids);
    if (!pids)
        return err_set(e, ERR_FAILED, "out of memory for the list of processes");
    ssize_t n = procfs_list_pids(pids, TARGET_MAX_PIDS);
    if (n < 0) {
        int saved = errno;
        free(pids);
        return err_set_errno(e, ERR_FAILED, saved, "/proc cannot be read");
    }
    *out = pids;
    return n > TARGET_MAX_PIDS ? TARGET_MAX_PIDS : n;
}

ssize_t target_list(struct target_process **out, struct err *e) {
    *out = NULL;
    pid_t *pids = NULL;
    ssize_t n_pids = procfs_hiding() == PROCFS_HIDES_ALL ? 0 : target_all_pids(&pids, e);
    if (n_pids < 0)
        return -1;
    struct target_process *list = NULL;
    size_t n = 0, cap = 0;
    pid_t self = getpid();
    for (ssize_t i = 0; i < n_pids; i++) {
        if (pids[i] == self)
            continue;
        if (n == cap) {
            size_t wider = cap ? cap * 2 : 16;
            struct target_process *grown = realloc(list, wider * sizeof *grown);
            if (!grown)
                goto no_memory;
            list = grown;
            cap = wider;
        }
        int rc = target_fill(&list[n], pids[i]);
        if (rc < 0)
            goto no_memory;
        n += (size_t)rc;
    }
    free(pids);
    for (size_t i = 0; i < n; i++)
        list[i].parent = target_find_parent(list, n, list[i].ppid);
    *out = list;
    return (ssize_t)n;
no_memory:
    free(pids);
    target_list_free(list, n);
    return err_set(e, ERR_FAILED, "out of memory for the list of processes");
}

void target_hidden(char *buf, size_t cap) {
    const char *why = "";
    switch (procfs_hiding()) {
    case PROCFS_HIDES_NOTHING:
        break;
    case PROCFS_HIDES_OTHERS:
        why = "processes of other users are not visible: /proc is mounted with hidepid; root sees them";
        break;
    case PROCFS_HIDES_ALL:
        why = "no process is visible: /proc is not mounted here; 'mount -t proc proc /proc' as root";
        break;
    }
    (void)snprintf(buf, cap, "%s", why);
}

void target_sweep(void) {
    char dir[ENDPOINT_PATH_MAX];
    if (endpoint_dir(dir, sizeof dir, geteuid()) == 0)
        (void)endpoint_sweep(dir, TARGET_SWEEP, TARGET_SWEEP_AGE_S);
}

void target_list_free(struct target_process *list, size_t n) {
    for (size_t i = 0; i < n; i++)
        free(list[i].cmdline);
    free(list);
}
