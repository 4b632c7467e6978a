/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target_list: the Python processes of this machine, from procfs.
 *
 * It attaches to no process, and reads memory only of processes whose threads may not be
 * borrowed: their interpreter may offer an interface of its own (PEP 768). Versions come from
 * the names of mapped files. A process that ends during the inspection is left out.
 *
 * The command line, maps and files of a process may be where only the process itself answers
 * (FUSE), and a thread that waits for them cannot be woken. So a child inspects the processes
 * and reports them one by one (guard.h). If a process blocks the child, both are left alone, and
 * another child continues behind that process.
 */
#include "client/target/target.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <pwd.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/endpoint.h"
#include "base/model.h"
#include "base/procfs.h"
#include "base/strbuf.h"
#include "client/guard.h"
#include "inject/inject.h"
#include "pystack/remote_exec.h"
#include "pystack/pystack.h"

#define TARGET_NO_MEMORY "out of memory for the list of processes"
#define TARGET_MAX_PIDS 65536
#define TARGET_CMDLINE_MAX 4096
#define TARGET_SWEEP 4096     /* sockets per sweep */
#define TARGET_SWEEP_AGE_S 10 /* a younger one may still be in creation */
#define TARGET_MAX_ANCESTORS 64
#define TARGET_LIST_MS (600 * 1000U) /* for all of a machine's processes */
#define TARGET_RETRY_MS 250          /* per process, once one has timed out */
/* after so many blocking processes of one user, the others of that user are skipped */
#define TARGET_BLOCKED_OF_USER 8
#define TARGET_BLOCKED_MAX 24 /* after so many in all, all others are skipped */

/* Find "3.11" in a path that contains a version, such as .../libpython3.11.so.1.0 or
 * .../lib/python3.11/lib-dynload/x.so. */
static int target_version_in(const char *path, char *out, size_t cap) {
    for (const char *p = path; (p = strstr(p, "python3.")); p++) {
        const char *minor = p + strlen("python3.");
        size_t n = 0;
        while (isdigit((unsigned char)minor[n]))
            n++;
        if (n == 0 || n > 2)
            continue;
        snprintf(out, cap, "3.%.*s", (int)n, minor);
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
        procfs_each_map(p->pid, target_on_map, p->python);
}

void target_user_name(int64_t uid, char *buf, size_t cap) {
    struct passwd pw, *found = NULL;
    char room[4096];
    if (getpwuid_r((uid_t)uid, &pw, room, sizeof room, &found) == 0 && found)
        snprintf(buf, cap, "%s", found->pw_name);
    else
        snprintf(buf, cap, "%lld", (long long)uid);
}

static bool target_is_adopted(pid_t pid, const struct procfs_stat *st) {
    struct procfs_stat parent;
    if (st->session <= 0 || st->session == pid)
        return false;
    return st->ppid == 1 || (st->ppid > 0 && procfs_read_stat((pid_t)st->ppid, 0, &parent) == 0 &&
                             parent.session > 0 && parent.session != st->session);
}

static void target_fill_times(struct target_process *p) {
    struct procfs_stat st;
    double started = procfs_started_at(p->pid);
    p->uptime_s = isnan(started) ? NAN : clock_epoch_s() - started;
    p->cpu_pct = NAN;
    if (procfs_read_stat(p->pid, 0, &st) != 0)
        return;
    p->start_ticks = st.start_ticks;
    p->is_adopted = target_is_adopted(p->pid, &st);
    if (p->uptime_s > 0)
        p->cpu_pct =
            (double)(st.utime_ticks + st.stime_ticks) / (double)procfs_ticks_per_s() / p->uptime_s * 100.0;
}

/* Opening this file needs the same permission as reading the memory in any other way. */
static bool target_may_read(pid_t pid) {
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* True if injecting would use the interpreter's own interface, because no thread may be borrowed
 * (`why`). `why` is extended if that interface is disabled. */
static bool target_has_remote_exec(pid_t pid, struct err *why) {
    struct pystack_remote_exec door;
    struct err barred = *why, shut;
    struct pystack *ps = pystack_open(pid, &shut);
    bool has = ps && !pystack_get_info(ps)->finalizing && pystack_has_remote_exec(ps);
    bool open = has && pystack_find_remote_exec(ps, &door, &shut) == 0;
    pystack_close(ps);
    if (has && !open)
        err_set(why, barred.code, "%s; its Python refused, too: %s", barred.text, shut.text);
    return open;
}

static void target_fill_agent(struct target_process *p) {
    char path[ENDPOINT_PATH_MAX];
    struct err why;
    p->attached =
        endpoint_path_from_outside(path, sizeof path, p->pid, NULL) == 0 && endpoint_probe(path) == 1;
    if (p->attached)
        endpoints_read(&p->doors, p->pid, path);
    int may = inject_check(p->pid, &why);
    p->by_door = may == INJECT_ONLY_REMOTE_EXEC && target_has_remote_exec(p->pid, &why);
    p->inspectable = may == 0 || may == INJECT_BUSY || p->by_door;
    p->readable = target_may_read(p->pid);
    if (!p->inspectable)
        snprintf(p->why_not, sizeof p->why_not, "%.*s", (int)sizeof p->why_not - 1, why.text);
}

/* Fill in the facts that the kernel knows without asking the process. -1: it is gone. */
static int target_fill_known(struct target_process *p, pid_t pid, char *name, size_t cap) {
    struct procfs_status st;
    if (procfs_read_status(pid, 0, &st) != 0)
        return -1;
    *p = (struct target_process){.pid = pid, .ppid = st.ppid, .uid = st.uid, .threads = st.threads};
    p->rss_bytes = st.rss_bytes;
    snprintf(name, cap, "%s", st.name);
    target_fill_times(p);
    return 0;
}

const struct rank_env_source target_rank_source = {.name = "python"};

/* What its launcher made it. */
static void target_fill_rank(struct target_process *p) {
    char path[32];
    struct stat st;
    rank_env_read(&p->env, p->pid);
    snprintf(path, sizeof path, "/proc/%d/ns/net", (int)p->pid);
    p->net_ns = stat(path, &st) == 0 ? st.st_ino : 0;
}

/* A rank that the program has made itself; see jobs_here. A program that does so in a step of Slurm
 * with one task has in all its ranks an environment that has rank 0 of 1. */
static void target_ask_python(struct target_process *p) {
    struct pystack *ps = pystack_open(p->pid, NULL);
    int32_t rank, world;
    if (ps && pystack_find_rank(ps, &rank, &world) == 0 && world <= RANK_ENV_LIMIT &&
        (world > 1 || !p->env.source))
        p->env = (struct rank_env){
            .source = &target_rank_source, .rank = rank, .world = world, .local = -1, .node = -1};
    pystack_close(ps);
}

/* The result of inspecting one process; sent as far as it is filled. */
struct target_found {
    pid_t pid;
    bool python; /* the rest is valid */
    struct target_process process;
    char cmdline[TARGET_CMDLINE_MAX + 1];
};

static void target_inspect(struct target_found *f, pid_t pid, bool brief) {
    struct target_process *p = &f->process;
    struct strbuf cmd;
    f->pid = pid;
    f->python = pystack_is_python(pid) == 1 && target_fill_known(p, pid, f->cmdline, sizeof f->cmdline) == 0;
    if (!f->python)
        return;
    strbuf_init(&cmd, TARGET_CMDLINE_MAX);
    procfs_read_cmdline(pid, &cmd);
    if (cmd.len)
        snprintf(f->cmdline, sizeof f->cmdline, "%s", strbuf_str(&cmd));
    strbuf_fini(&cmd);
    target_fill_rank(p);
    if (brief)
        return;
    target_fill_python(p);
    if (pystack_find_torch(pid, p->torch, sizeof p->torch) != 0)
        p->torch[0] = '\0';
    if (p->torch[0] && (!p->env.source || p->env.world == 1))
        target_ask_python(p);
    target_fill_agent(p);
}

/* The state while the list is made. */
struct target_making {
    const pid_t *pids;
    const bool *skip; /* processes that have blocked an earlier child */
    size_t n_pids, at;
    struct target_process *list;
    size_t n, cap, n_held;
    bool brief;        /* only what the kernel knows, */
    uint64_t until_ns; /* and what is known by then */
};

/* The child's work: inspect the processes from `at` on. */
static void target_inspect_rest(void *arg, int fd) {
    const struct target_making *m = arg;
    struct target_found found;
    for (size_t i = m->at; i < m->n_pids; i++) {
        if (m->skip[i])
            continue;
        memset(&found, 0, offsetof(struct target_found, cmdline) + 1);
        target_inspect(&found, m->pids[i], m->brief);
        size_t size = found.python ? offsetof(struct target_found, cmdline) + strlen(found.cmdline) + 1
                                   : offsetof(struct target_found, process);
        if (send(fd, &found, size, MSG_NOSIGNAL) != (ssize_t)size)
            return;
    }
}

/* 0, or -1 without memory. */
static int target_add(struct target_making *m, const struct target_process *p, const char *cmdline) {
    if (m->n == m->cap) {
        size_t wider = m->cap ? m->cap * 2 : 16;
        struct target_process *grown = realloc(m->list, wider * sizeof *grown);
        if (!grown)
            return -1;
        m->list = grown;
        m->cap = wider;
    }
    struct target_process *mine = &m->list[m->n];
    *mine = *p;
    mine->cmdline = strdup(cmdline);
    if (!mine->cmdline)
        return -1;
    if (!m->brief) /* a service may be asked for it */
        target_user_name(mine->uid, mine->user, sizeof mine->user);
    m->n++;
    return 0;
}

/* Add a process that blocks its readers, or is skipped with others of its user, with the
 * kernel's facts alone. */
static int target_add_blocked(struct target_making *m, pid_t pid, unsigned waited_ms) {
    struct target_process p;
    struct err why;
    char name[64];
    if (target_fill_known(&p, pid, name, sizeof name) != 0)
        return 0;
    p.held = true;
    if (waited_ms)
        guard_explain_blocked(pid, NULL, waited_ms, &why);
    else
        err_set(&why, ERR_ATTACH,
                "process %d was not read: other processes of its user block or crash the reader", (int)pid);
    snprintf(p.why_not, sizeof p.why_not, "%.*s", (int)sizeof p.why_not - 1, why.text);
    m->n_held += waited_ms != 0;
    return target_add(m, &p, name);
}

/* True if the limit of blocking processes is reached, in all or for that user. */
static bool target_is_enough(const struct target_making *m, pid_t pid) {
    struct procfs_status st;
    size_t of_user = 0;
    if (m->n_held == 0 || procfs_read_status(pid, 0, &st) != 0)
        return false;
    for (size_t i = 0; i < m->n; i++)
        of_user += m->list[i].held && m->list[i].uid == st.uid;
    return of_user >= TARGET_BLOCKED_OF_USER || m->n_held >= TARGET_BLOCKED_MAX;
}

/* Read the child's next report. 1; 0 if none came in time; -1 if the child has ended. */
static int target_hear(const struct guard *g, struct target_found *found, unsigned limit_ms) {
    struct pollfd p = {.fd = g->fd, .events = POLLIN};
    uint64_t until = clock_mono_ns() + limit_ms * CLOCK_NS_PER_MS, now;
    int rc = 0;
    while ((now = clock_mono_ns()) < until) {
        rc = poll(&p, 1, (int)((until - now) / CLOCK_NS_PER_MS) + 1);
        if (rc >= 0 || errno != EINTR)
            break;
    }
    return rc <= 0 ? 0 : recv(g->fd, found, sizeof *found, MSG_DONTWAIT) > 0 ? 1 : -1;
}

/* How long to wait for one report. */
static unsigned target_patience_ms(const struct target_making *m) {
    uint64_t now = clock_mono_ns();
    if (!m->brief)
        return m->n_held ? TARGET_RETRY_MS : TARGET_POLL_MS;
    uint64_t left_ms = m->until_ns > now ? (m->until_ns - now) / CLOCK_NS_PER_MS : 0;
    return left_ms < TARGET_RETRY_MS ? (unsigned)left_ms : TARGET_RETRY_MS;
}

/* Collect the reports of one child, until it ends or a process blocks it. 0, or -1 with the
 * error. */
static int target_inspect_some(struct target_making *m, struct err *e) {
    struct target_found found;
    struct guard g;
    unsigned limit_ms = target_patience_ms(m);
    if (m->skip[m->at] || target_is_enough(m, m->pids[m->at])) {
        pid_t pid = m->pids[m->at];
        if (m->brief) {
            m->at++;
            return 0;
        }
        unsigned waited_ms = m->skip[m->at++] ? TARGET_POLL_MS : 0;
        return target_add_blocked(m, pid, waited_ms) == 0 ? 0 : err_set(e, ERR_FAILED, TARGET_NO_MEMORY);
    }
    if (guard_start(&g, target_inspect_rest, m, 0, TARGET_LIST_MS) != 0)
        return err_set_errno(e, ERR_FAILED, errno, "cannot start the process that reads others");
    int rc = 0, heard = 1;
    while (rc == 0 && m->at < m->n_pids && !m->skip[m->at] &&
           (heard = target_hear(&g, &found, limit_ms)) > 0) {
        m->at++;
        if (!found.python)
            continue;
        /* Yama may let only the ancestors of a process trace it: we are one, the child is not. */
        if (!m->brief && !found.process.inspectable && inject_is_for_parents(found.pid))
            target_inspect(&found, found.pid, false);
        if (found.python)
            rc = target_add(m, &found.process, found.cmdline);
    }
    pid_t pid = heard <= 0 ? m->pids[m->at++] : 0;
    guard_stop(&g, pid);
    if (pid && !m->brief)
        rc = target_add_blocked(m, pid, heard == 0 ? limit_ms : 0);
    return rc == 0 ? 0 : err_set(e, ERR_FAILED, TARGET_NO_MEMORY);
}

/* The parent, past shells and the like: the nearest ancestor in the list. */
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
        return err_set(e, ERR_FAILED, TARGET_NO_MEMORY);
    ssize_t n = procfs_list_pids(pids, TARGET_MAX_PIDS);
    if (n < 0) {
        int saved = errno;
        free(pids);
        return err_set_errno(e, ERR_FAILED, saved, "/proc cannot be read");
    }
    *out = pids;
    return n > TARGET_MAX_PIDS ? TARGET_MAX_PIDS : n;
}

/* `limit_ms` > 0: the brief list. */
static ssize_t target_make_list(struct target_process **out, unsigned limit_ms, bool *is_cut, struct err *e) {
    *out = NULL;
    pid_t *pids = NULL;
    ssize_t n_pids = procfs_hiding() == PROCFS_HIDES_ALL ? 0 : target_all_pids(&pids, e);
    if (n_pids < 0)
        return -1;
    bool *skip = calloc((size_t)n_pids + 1, sizeof *skip);
    struct target_making m = {.pids = pids,
                              .skip = skip,
                              .brief = limit_ms > 0,
                              .until_ns = clock_mono_ns() + limit_ms * CLOCK_NS_PER_MS};
    pid_t self = getpid();
    for (ssize_t i = 0; i < n_pids; i++)
        if (pids[i] != self)
            pids[m.n_pids++] = pids[i];
    for (size_t i = 0; skip && i < m.n_pids; i++)
        skip[i] = guard_is_blocked(pids[i]);
    int rc = skip ? 0 : err_set(e, ERR_FAILED, TARGET_NO_MEMORY);
    while (rc == 0 && m.at < m.n_pids && !(m.brief && clock_mono_ns() >= m.until_ns))
        rc = target_inspect_some(&m, e);
    free(skip);
    free(pids);
    if (is_cut)
        *is_cut = m.at < m.n_pids;
    if (rc != 0) {
        target_list_free(m.list, m.n);
        return -1;
    }
    for (size_t i = 0; i < m.n; i++)
        m.list[i].parent = target_find_parent(m.list, m.n, m.list[i].ppid);
    *out = m.list;
    return (ssize_t)m.n;
}

ssize_t target_list(struct target_process **out, struct err *e) { return target_make_list(out, 0, NULL, e); }

ssize_t target_list_brief(struct target_process **out, unsigned limit_ms, bool *is_cut, struct err *e) {
    return target_make_list(out, limit_ms ? limit_ms : 1, is_cut, e);
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
    snprintf(buf, cap, "%s", why);
}

static void target_sweep_dir(void *arg) { endpoint_sweep(arg, TARGET_SWEEP, TARGET_SWEEP_AGE_S); }

void target_sweep(void) {
    char dir[ENDPOINT_PATH_MAX];
    /* In a shared /tmp it may be on another user's file system. */
    if (endpoint_dir(dir, sizeof dir, geteuid()) == 0)
        guard_run(target_sweep_dir, dir, sizeof dir, TARGET_POLL_MS);
}

void target_list_free(struct target_process *list, size_t n) {
    for (size_t i = 0; i < n; i++)
        free(list[i].cmdline);
    free(list);
}
