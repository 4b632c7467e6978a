/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target: see target.h. Resolves the user's text to an address, and an address to an agent that
 * answers.
 */
#include "client/target/target.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/container.h"
#include "base/endpoint.h"
#include "base/model.h"
#include "base/option.h"
#include "base/procfs.h"
#include "base/strbuf.h"
#include "client/target/exit_reason.h"
#include "client/guard.h"
#include "client/target/rings.h"
#include "client/target/tcp.h"
#include "pystack/remote_exec.h"
#include "pystack/pystack.h"
#include "store/recording/archive.h"

#define TARGET_AGENT_FILE "libprobing.so"
/* time that attaching may take beyond its limit, to undo its work */
#define TARGET_BLOCKED_MS 5500U
/* to wait for a Python process that has just started, to attach to it, or otherwise to read it */
#define TARGET_REACH_MS 9000U

static bool target_all_digits(const char *s, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!isdigit((unsigned char)s[i]))
            return false;
    return n > 0;
}

/* True if the process exists although /proc does not show it. Then the error explains this. */
static bool target_is_hidden(pid_t pid, struct err *e) {
    enum procfs_hiding hiding = procfs_hiding();
    if (hiding == PROCFS_HIDES_NOTHING || (kill(pid, 0) != 0 && errno != EPERM))
        return false;
    err_set(e, ERR_ATTACH,
            hiding == PROCFS_HIDES_ALL
                ? "process %d cannot be read: /proc is not mounted here ('mount -t proc proc /proc' as root)"
                : "process %d is not visible: /proc is mounted with hidepid: run this as root or its user",
            (int)pid);
    return true;
}

/* No `what` ("process 4242") is here. */
static int target_refuse_missing(const char *what, struct err *e) {
    struct container here;
    char text[sizeof e->text];
    container_find(&here);
    container_put_missing(&here, what, text, sizeof text);
    return err_set(e, ERR_ATTACH, "%s", text);
}

/* Use the recording at `place` as the target; `pid` in our numbering, 0 unknown. */
static int target_use_recording(const struct rings_place *place, pid_t pid, struct target_address *addr,
                                struct err *e) {
    char how[sizeof addr->why], user[40], whose[64] = "";
    if (strlen(place->path) >= sizeof addr->recorded)
        return err_set(e, ERR_FAILED, "%s: the path is too long", place->path);
    *addr = (struct target_address){.mode = MODEL_MODE_RECORDED};
    snprintf(addr->recorded, sizeof addr->recorded, "%s", place->path);
    exit_reason_explain(place, pid, how, sizeof how);
    /* Anyone may write tables that claim any process: the note names their owner. */
    if (place->owner != geteuid()) {
        target_user_name(place->owner, user, sizeof user);
        snprintf(whose, sizeof whose, "tables of user %s; ", user);
    }
    snprintf(addr->why, sizeof addr->why, "%s%.*s", whose, (int)(sizeof addr->why - strlen(whose) - 1), how);
    return 0;
}

/* ---- within a limit ---- */

/* Run guard_run and turn its result into an error: 0 the work is done, or -1 with the error. */
static int target_within(void (*work)(void *arg), void *arg, size_t size, pid_t pid, const char *path,
                         struct err *e) {
    switch (guard_run(work, arg, size, TARGET_POLL_MS)) {
    case GUARD_DONE:
        return 0;
    case GUARD_NONE:
        return err_set_errno(e, ERR_FAILED, errno, "cannot start the process that reads others");
    case GUARD_BROKEN:
        return err_set(e, ERR_ATTACH, "the process that read %s has crashed", pid > 0 ? "its files" : path);
    case GUARD_INTERRUPTED:
    case GUARD_BLOCKED:
        break;
    }
    return guard_explain_blocked(pid, path, TARGET_POLL_MS, e);
}

struct target_dead {
    struct rings_place place;
    struct err error;
    pid_t pid;
    int rc;
};

static void target_find_dead(void *arg) {
    struct target_dead *d = arg;
    d->rc = rings_find_dead(d->pid, &d->place, &d->error);
}

static int target_resolve_pid(const char *text, struct target_address *addr, struct err *e) {
    struct procfs_status st;
    errno = 0;
    long pid = strtol(text, NULL, 10);
    bool may_be = errno == 0 && pid > 0 && pid <= INT_MAX;
    if (may_be && procfs_is_gone((pid_t)pid)) {
        /* Anyone may have made a folder with our name, on a file system of their own. */
        struct target_dead past = {.pid = (pid_t)pid};
        if (target_within(target_find_dead, &past, sizeof past, 0, "a folder of tables in /dev/shm or /tmp",
                          e) != 0)
            return -1;
        if (past.rc < 0)
            *e = past.error;
        if (past.rc != 0)
            return past.rc < 0 ? -1 : target_use_recording(&past.place, (pid_t)pid, addr, e);
    }
    bool is_there = may_be && procfs_read_status((pid_t)pid, 0, &st) == 0;
    if (may_be && !is_there && target_is_hidden((pid_t)pid, e))
        return -1;
    if (!is_there) {
        char what[64];
        snprintf(what, sizeof what, "process %.40s", text);
        return target_refuse_missing(what, e);
    }
    if (st.tgid > 0 && st.tgid != pid)
        return err_set(e, ERR_ATTACH, "%ld is a thread of process %lld: give that pid", pid,
                       (long long)st.tgid);
    addr->pid = (pid_t)pid;
    addr->path[0] = '\0';
    return 0;
}

/* Pid of the process that listens at `path`, in our numbering; 0 if unknown. */
static pid_t target_socket_owner(const char *path) {
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    struct ucred peer = {0};
    socklen_t len = sizeof peer;
    if (strlen(path) >= sizeof sa.sun_path)
        return 0;
    memcpy(sa.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return 0;
    bool known = connect(fd, (const struct sockaddr *)&sa, sizeof sa) == 0 &&
                 getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0;
    close(fd);
    return known && peer.pid > 0 ? peer.pid : 0;
}

struct target_socket {
    char path[ENDPOINT_PATH_MAX];
    int there, error;
    pid_t owner;
};

static void target_inspect_socket(void *arg) {
    struct target_socket *s = arg;
    s->there = endpoint_probe(s->path);
    s->error = errno;
    s->owner = s->there > 0 ? target_socket_owner(s->path) : 0;
}

static int target_resolve_socket(const char *path, struct target_address *addr, struct err *e) {
    struct target_socket s = {.there = -1};
    if (!path[0])
        return err_set(e, ERR_USAGE, "'unix:' needs the path of a socket: unix:PATH");
    if (strlen(path) >= ENDPOINT_PATH_MAX)
        return err_set(e, ERR_ATTACH, "%s: the path of a unix socket has at most %d bytes", path,
                       ENDPOINT_PATH_MAX - 1);
    snprintf(s.path, sizeof s.path, "%s", path);
    if (target_within(target_inspect_socket, &s, sizeof s, 0, path, e) != 0)
        return -1;
    if (s.there < 0)
        return err_set_errno(e, ERR_ATTACH, s.error, "cannot connect to %s", path);
    if (s.there == 0)
        return err_set(
            e, ERR_ATTACH,
            "nothing listens at %s: the process that made it has ended or its agent was ejected; give a pid",
            path);
    snprintf(addr->path, sizeof addr->path, "%s", path);
    addr->pid = s.owner;
    return 0;
}

static bool target_is_host_port(const char *text) {
    const char *colon = strrchr(text, ':');
    return colon && colon > text && target_all_digits(colon + 1, strlen(colon + 1)) && !strchr(text, '/');
}

/* True if `word` (of `n` bytes) equals `name` or ends in "/name". */
static bool target_word_is(const char *word, size_t n, const char *name) {
    size_t m = strlen(name);
    if (n < m || memcmp(word + n - m, name, m) != 0)
        return false;
    return n == m || word[n - m - 1] == '/';
}

/* The names of a process are its comm, its program and its first argument that is not an option:
 * the script, or the module after -m. */
static bool target_has_name(const struct target_process *p, const char *name) {
    char comm[64];
    if (procfs_read_comm(p->pid, 0, comm, sizeof comm) == 0 && strcmp(comm, name) == 0)
        return true;
    bool program = true;
    for (const char *w = p->cmdline; *w;) {
        size_t n = strcspn(w, " ");
        if (n && (program || w[0] != '-'))
            if (target_word_is(w, n, name))
                return true;
        if (!program && w[0] != '-')
            return false;
        program = false;
        w += n + strspn(w + n, " ");
    }
    return false;
}

/* Forked workers of a match (DataLoader's) have its name too; the wanted process is their
 * parent. */
static bool target_parent_matches(const struct target_process *list, const bool *match, size_t n, size_t i) {
    for (size_t k = 0; k < n; k++)
        if (match[k] && list[k].pid == list[i].ppid)
            return true;
    return false;
}

#define TARGET_NAME_MAX 64

/* Put the last part of the process's script, or module behind -m; "" if it has none. */
static void target_put_script(const struct target_process *p, char *buf, size_t cap) {
    buf[0] = '\0';
    const char *w = p->cmdline + strcspn(p->cmdline, " ");
    for (w += strspn(w, " "); *w == '-'; w += strspn(w, " "))
        w += strcspn(w, " ");
    size_t n = strcspn(w, " ");
    for (size_t i = 0; i < n; i++)
        if (w[i] == '/') {
            w += i + 1;
            n -= i + 1;
            i = SIZE_MAX;
        }
    snprintf(buf, cap, "%.*s", (int)n, w);
}

/* No process has the name: find one that begins with it, or is nearly it. */
static int target_refuse_name(const struct target_process *list, size_t n, const char *name, struct err *e) {
    char(*scripts)[TARGET_NAME_MAX] = calloc(n + 1, sizeof *scripts);
    const char **names = calloc(n + 1, sizeof *names), *near = NULL;
    size_t len = strlen(name), count = 0;
    for (size_t i = 0; scripts && names && i < n && len > 0; i++) {
        target_put_script(&list[i], scripts[i], sizeof scripts[i]);
        if (scripts[i][0])
            names[count++] = scripts[i];
        if (!near && strncmp(scripts[i], name, len) == 0)
            near = scripts[i];
    }
    if (names && !near)
        near = option_suggest(name, names);
    if (near) {
        err_set(e, ERR_ATTACH, "no Python process is named '%s': did you mean '%s'?", name, near);
    } else if (strchr(name, ',')) {
        err_set(e, ERR_ATTACH, "no Python process is named '%s': give each target with its own -t", name);
    } else {
        char what[320];
        snprintf(what, sizeof what, "Python process is named '%.256s'", name);
        target_refuse_missing(what, e);
    }
    free(names);
    free(scripts);
    return -1;
}

static int target_choose(const struct target_process *list, const bool *match, size_t n, const char *name,
                         struct target_address *addr, struct err *e) {
    size_t found = 0;
    struct strbuf pids;
    strbuf_init(&pids, 200);
    for (size_t i = 0; i < n; i++) {
        if (!match[i] || target_parent_matches(list, match, n, i))
            continue;
        strbuf_addf(&pids, "%s%d", found ? ", " : "", (int)list[i].pid);
        addr->pid = list[i].pid;
        found++;
    }
    int rc = 0;
    if (found == 0)
        rc = target_refuse_name(list, n, name, e);
    else if (found > 1)
        rc = err_set(e, ERR_ATTACH, "%zu processes are named '%s': give one of the pids %s", found, name,
                     strbuf_str(&pids));
    strbuf_fini(&pids);
    addr->path[0] = '\0';
    return rc;
}

static int target_resolve_name(const char *name, struct target_address *addr, struct err *e) {
    struct target_process *list;
    ssize_t n = target_list(&list, e);
    if (n < 0)
        return -1;
    bool *match = calloc((size_t)n + 1, sizeof *match);
    int rc = -1;
    if (!match) {
        err_set(e, ERR_FAILED, "out of memory for the list of processes");
    } else {
        for (ssize_t i = 0; i < n; i++)
            match[i] = target_has_name(&list[i], name);
        rc = target_choose(list, match, (size_t)n, name, addr, e);
    }
    free(match);
    target_list_free(list, (size_t)n);
    return rc;
}

/* True if `text` is the path of a folder or of a recording. */
static bool target_is_recording(const char *text) {
    struct stat st;
    return stat(text, &st) == 0 && (S_ISDIR(st.st_mode) || (S_ISREG(st.st_mode) && archive_is_one(text)));
}

/* Resolve the path of a folder of tables or of a recording. */
static int target_resolve_recording(const char *path, struct target_address *addr, struct err *e) {
    struct rings_place place;
    if (archive_is_one(path)) {
        *addr = (struct target_address){.mode = MODEL_MODE_RECORDED};
        if (strlen(path) >= sizeof addr->recorded)
            return err_set(e, ERR_ATTACH, "%s: the path is too long", path);
        snprintf(addr->recorded, sizeof addr->recorded, "%s", path);
        snprintf(addr->why, sizeof addr->why, "a recording");
        return 0;
    }
    int there = rings_inspect(path, &place, e);
    if (there == 0)
        err_set(e, ERR_ATTACH, "%s: there are no tables of a process in it", path);
    if (there <= 0) {
        e->code = ERR_ATTACH;
        return -1;
    }
    return target_use_recording(&place, 0, addr, e);
}

/* True if the text can only be the name of a process. */
static bool target_is_name(const char *text) {
    return text && text[0] && !target_all_digits(text, strlen(text)) && strncmp(text, "unix:", 5) != 0 &&
           !target_is_recording(text) && !target_is_host_port(text);
}

size_t target_named(const char *text, pid_t *pids, size_t cap) {
    struct target_process *list;
    struct err e;
    size_t found = 0;
    ssize_t n = target_is_name(text) ? target_list(&list, &e) : 0;
    if (n <= 0)
        return 0;
    bool *match = calloc((size_t)n, sizeof *match);
    for (ssize_t i = 0; match && i < n; i++)
        match[i] = target_has_name(&list[i], text);
    for (size_t i = 0; match && i < (size_t)n; i++) {
        if (!match[i] || target_parent_matches(list, match, (size_t)n, i))
            continue;
        if (found < cap)
            pids[found] = list[i].pid;
        found++;
    }
    free(match);
    target_list_free(list, (size_t)n);
    return found;
}

int target_resolve(const char *text, struct target_address *addr, struct err *e) {
    *addr = (struct target_address){.pid = 0};
    if (!text || !text[0])
        return err_set(e, ERR_USAGE, "the target is empty: give a pid, a name of a process, or unix:PATH");
    if (target_all_digits(text, strlen(text)))
        return target_resolve_pid(text, addr, e);
    if (strncmp(text, "unix:", 5) == 0)
        return target_resolve_socket(text + 5, addr, e);
    if (target_is_recording(text))
        return target_resolve_recording(text, addr, e);
    if (target_is_host_port(text))
        return tcp_resolve(text, addr->path, sizeof addr->path, e);
    return target_resolve_name(text, addr, e);
}

static int target_try_file(char *buf, size_t cap, const char *dir, const char *below, const char *name) {
    int n = snprintf(buf, cap, "%s%s/%s", dir, below, name);
    return n > 0 && (size_t)n < cap && access(buf, R_OK) == 0 ? 0 : -1;
}

int target_find_ours(const char *name, char *buf, size_t cap) {
    char dir[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", dir, sizeof dir - 1);
    if (len > 0) {
        dir[len] = '\0';
        *strrchr(dir, '/') = '\0';
        if (target_try_file(buf, cap, dir, "", name) == 0 ||
            target_try_file(buf, cap, dir, "/../lib/probing", name) == 0)
            return 0;
    }
    return target_try_file(buf, cap, PROBING_LIBDIR, "", name);
}

int target_find_agent(char *buf, size_t cap, struct err *e) {
    const char *given = getenv("PROBING_AGENT");
    if (given && given[0]) {
        int n = snprintf(buf, cap, "%s", given);
        if (n < 0 || (size_t)n >= cap)
            return err_set(e, ERR_ATTACH, "PROBING_AGENT is too long for a path");
        if (access(buf, R_OK) != 0)
            return err_set_errno(e, ERR_ATTACH, errno,
                                 "the agent file %s, named by PROBING_AGENT, cannot be read", buf);
        return 0;
    }
    if (target_find_ours(TARGET_AGENT_FILE, buf, cap) == 0)
        return 0;
    return err_set(
        e, ERR_ATTACH,
        "the agent file %s is missing: it belongs beside this program or in %s; build it (make), or name it "
        "with PROBING_AGENT",
        TARGET_AGENT_FILE, PROBING_LIBDIR);
}

/* The error for a request that needs an agent when the process has ended. */
static int target_no_agent(const struct target_address *addr, struct err *e) {
    return err_set(e, ERR_LOST,
                   "the process of %s has ended (%s): only its tables remain, which backtrace, query, "
                   "tables, memory and catch --status read",
                   addr->recorded, addr->why);
}

/* ---- facts about a living target ---- */

/* Read once and passed on, in the child (target_work). Each use checks again whether the process
 * is still the same one, and whether it is stopped. */
struct target_facts {
    struct pystack *python; /* owned; NULL: not opened yet */
    /* Where an agent listens, if there is one; "" not known yet. */
    char endpoint[ENDPOINT_PATH_MAX];
    bool has_agent;
};

/* The open interpreter, opened again if the process has become another program. NULL with the
 * error. */
static struct pystack *target_facts_open(struct target_facts *f, pid_t pid, struct err *e) {
    if (f->python && pystack_is_same(f->python))
        return f->python;
    pystack_close(f->python);
    return f->python = pystack_open(pid, e);
}

/* Check whether there is an agent. 0, or -1 with the error if that failed. */
static int target_facts_probe(struct target_facts *f, pid_t pid, struct err *e) {
    if (f->endpoint[0])
        return 0;
    if (endpoint_path_from_outside(f->endpoint, sizeof f->endpoint, pid, e) != 0)
        return f->endpoint[0] = '\0', -1;
    f->has_agent = endpoint_probe(f->endpoint) == 1;
    return 0;
}

/* ---- a process that has just started ---- */

/* 'python train.py & probing $!' finds the process before it is a Python: first a child of the
 * shell that has not called exec yet, then a loader without the C library, then an uninitialised
 * interpreter. */

/* younger: it may not have called exec yet, or only a program that calls exec again */
#define TARGET_YOUNG_S 2.0
/* older: if the interpreter is not initialised now, it has ended or never will be */
#define TARGET_STARTING_S 60.0
/* between two checks, which use at most half of the time */
#define TARGET_POLL_NS (10 * CLOCK_NS_PER_MS)

/* True if another check is useful, after one that returned `lack`. */
static bool target_may_become(pid_t pid, enum pystack_lack lack) {
    struct procfs_stat st;
    double age_s = clock_epoch_s() - procfs_started_at(pid);
    if (procfs_is_gone(pid) || procfs_read_stat(pid, 0, &st) != 0 || st.state == 'T' || st.state == 't')
        return false;
    return lack != PYSTACK_LACKS_RIGHT &&
           age_s < (lack == PYSTACK_LACKS_START ? TARGET_STARTING_S : TARGET_YOUNG_S);
}

/* True if a deferred signal asks us to end. */
static bool target_stop_asked(void) {
    sigset_t pending;
    return sigpending(&pending) == 0 &&
           (sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1 ||
            sigismember(&pending, SIGHUP) == 1);
}

/* Wait, for `timeout_ms` at most, until a process that has just started is a readable Python, or
 * clearly will not be one soon: the next check explains why. It does not wait for older
 * processes. 0, or -1 with the error if a signal asks us to end. */
static int target_await_python(struct target_facts *f, pid_t pid, unsigned timeout_ms, struct err *e) {
    uint64_t until = clock_mono_ns() + timeout_ms * CLOCK_NS_PER_MS;
    double age_s = clock_epoch_s() - procfs_started_at(pid);
    if (!(age_s < TARGET_STARTING_S)) /* or unknown */
        return 0;
    for (;;) {
        enum pystack_lack lack;
        struct err ignored;
        uint64_t began = clock_mono_ns();
        f->python = pystack_open_young(pid, &lack, &ignored);
        uint64_t now = clock_mono_ns(), pause = now - began > TARGET_POLL_NS ? now - began : TARGET_POLL_NS;
        if (f->python || !target_may_become(pid, lack) || now + pause >= until)
            return 0;
        if (target_stop_asked())
            return err_set(e, ERR_FAILED, "interrupted; process %d is as it was", (int)pid);
        nanosleep(&(struct timespec){.tv_sec = (time_t)(pause / CLOCK_NS_PER_S),
                                     .tv_nsec = (long)(pause % CLOCK_NS_PER_S)},
                  NULL);
    }
}

/* ---- an agent ---- */

struct target_finding {
    struct target_address addr;
    struct err error;
    int rc;
};

static void target_find_here(void *arg) {
    struct target_finding *f = arg;
    struct target_address *addr = &f->addr;
    f->rc = -1;
    if (!addr->path[0] &&
        endpoint_path_from_outside(addr->path, ENDPOINT_PATH_MAX, addr->pid, &f->error) != 0)
        return;
    f->rc = endpoint_probe(addr->path);
    int saved = errno;
    /* The obstacle between us and its socket is the one between us and the process; inject_check
     * knows the reason. */
    if (f->rc >= 0 || (addr->pid > 0 && inject_check(addr->pid, &f->error) != 0))
        return;
    err_set_errno(&f->error, ERR_ATTACH, saved, "the agent's socket %s cannot be reached", addr->path);
}

int target_find_endpoint(struct target_address *addr, struct err *e) {
    struct target_finding f = {.addr = *addr};
    if (addr->recorded[0])
        return target_no_agent(addr, e);
    /* the first request will show whether it is an agent */
    if (tcp_is(addr->path))
        return 1;
    if (target_within(target_find_here, &f, sizeof f, addr->pid, addr->path, e) != 0)
        return -1;
    *addr = f.addr;
    if (f.rc < 0 && e)
        *e = f.error;
    return f.rc;
}

/* For the injector, which cannot read an interpreter itself. */
static int target_find_remote_exec(void *arg, const struct mem *mem, struct inject_remote_exec *out,
                                   struct err *e) {
    struct pystack *python = arg;
    struct pystack_remote_exec door;
    pystack_read_through(python, mem);
    if (pystack_find_remote_exec(python, &door, e) != 0)
        return -1;
    if (!pystack_is_same(python))
        return err_set(e, ERR_ATTACH, "it started another program (exec) in the meantime");
    *out = (struct inject_remote_exec){.path = door.path,
                                       .path_size = door.path_size,
                                       .pending = door.pending,
                                       .breaker = door.breaker,
                                       .breaker_set = door.breaker_set};
    if (pystack_refresh_tids(python) == 0)
        out->tid = pystack_outer_tid(python, door.tid);
    return 0;
}

/* Check before injecting: the permission, that it is a supported Python, and that the agent's
 * file exists. `*refused` is set if injecting is impossible but reading is not. */
static int target_inject(struct target_facts *f, pid_t pid, unsigned timeout_ms, struct inject_result *result,
                         bool *refused, struct err *e) {
    char agent[PATH_MAX];
    struct err barred = {0};
    *refused = true;
    int may = inject_check(pid, &barred);
    if (may < 0)
        return *e = barred, -1;
    *refused = false;
    struct pystack *python = target_facts_open(f, pid, e);
    if (!python)
        return -1;
    struct inject_request request = {.pid = pid, .agent_path = agent};
    request.timeout_ms = timeout_ms ? timeout_ms : TARGET_ATTACH_TIMEOUT_MS;
    if (pystack_has_remote_exec(python)) {
        request.find_remote_exec = target_find_remote_exec;
        request.find_remote_exec_arg = python;
    }
    int rc = -1;
    if (pystack_get_info(python)->finalizing) {
        *refused = true;
        err_set(e, ERR_ATTACH,
                "process %d is ending: its Python is being shut down and can only be read from outside",
                (int)pid);
    } else if (may == INJECT_ONLY_REMOTE_EXEC && !request.find_remote_exec) {
        *refused = true;
        *e = barred;
    } else if (target_find_agent(agent, sizeof agent, e) == 0) {
        rc = inject_process(&request, result, e);
        *refused = rc != 0 && e->code != ERR_LOST;
    }
    /* it may have read through the injector's memory, which has gone (target_find_remote_exec) */
    pystack_close(python);
    f->python = NULL;
    return rc;
}

static int target_attach_or(struct target_facts *f, struct target_address *addr, unsigned timeout_ms,
                            struct inject_result *out, bool *refused, struct err *e) {
    struct inject_result result = {.already = true};
    uint64_t began = clock_mono_ns();
    *refused = false;
    if (addr->recorded[0])
        return target_no_agent(addr, e);
    if (!addr->path[0]) {
        if (target_facts_probe(f, addr->pid, e) != 0)
            return -1;
        snprintf(result.endpoint, sizeof result.endpoint, "%s", f->endpoint);
        if (!f->has_agent && target_inject(f, addr->pid, timeout_ms, &result, refused, e) != 0) {
            /* whatever failed, attaching failed */
            if (e->code == ERR_FAILED)
                e->code = ERR_ATTACH;
            return -1;
        }
        snprintf(addr->path, sizeof addr->path, "%s", result.endpoint);
    } else {
        snprintf(result.endpoint, sizeof result.endpoint, "%.*s", ENDPOINT_PATH_MAX - 1, addr->path);
    }
    if (result.already && !result.total_us)
        result.total_us = (clock_mono_ns() - began) / CLOCK_NS_PER_US;
    if (out)
        *out = result;
    return 0;
}

static int target_await(struct target_facts *f, const struct target_address *addr, unsigned timeout_ms,
                        struct err *e) {
    return addr->path[0] || addr->recorded[0] ? 0 : target_await_python(f, addr->pid, timeout_ms, e);
}

static int target_attach_here(struct target_facts *f, struct target_address *addr, unsigned timeout_ms,
                              struct inject_result *out, struct err *e) {
    bool refused;
    uint64_t began = clock_mono_ns();
    if (target_await(f, addr, timeout_ms, e) != 0)
        return -1;
    uint64_t waited_ms = (clock_mono_ns() - began) / CLOCK_NS_PER_MS;
    return target_attach_or(f, addr, waited_ms < timeout_ms ? timeout_ms - (unsigned)waited_ms : 1, out,
                            &refused, e);
}

/* Read it from outside, if its interpreter can be found. */
static int target_read_only(struct target_facts *f, struct target_address *addr, bool block, const char *why,
                            struct err *e) {
    struct err from_outside;
    if (!target_facts_open(f, addr->pid, &from_outside)) {
        /* If reading is not permitted either, the error of the injector's check is more useful. */
        if (from_outside.code != ERR_ATTACH || inject_check(addr->pid, e) == 0)
            *e = from_outside;
        return -1;
    }
    addr->mode = MODEL_MODE_READONLY;
    addr->block = block;
    addr->path[0] = '\0';
    snprintf(addr->why, sizeof addr->why, "%s", why);
    return 0;
}

/* An agent cannot answer while the process is stopped, but the process can be read. The error
 * then says so and names its tracer, which has to continue it. A stop by another of our programs
 * is short. */
static bool target_is_stopped(pid_t pid, struct err *e) {
    struct procfs_status st;
    if (pid <= 0 || procfs_read_status(pid, 0, &st) != 0 || (st.state != 'T' && st.state != 't'))
        return false;
    if (st.tracer_pid > 0)
        return inject_check(pid, e) < 0;
    err_set(e, ERR_ATTACH, "process %d is stopped, so no agent can answer: continue it (kill -CONT %d)",
            (int)pid, (int)pid);
    return true;
}

static int target_reach_here(struct target_facts *f, struct target_address *addr,
                             const struct target_options *o, struct err *e) {
    struct err why;
    bool refused;
    if (addr->recorded[0] && o->block)
        return err_set(e, ERR_USAGE, "--block stops threads: the process of %s has ended", addr->recorded);
    if (addr->recorded[0])
        return 0;
    if (target_await(f, addr, TARGET_ATTACH_TIMEOUT_MS, e) != 0)
        return -1;
    if (o->no_inject || o->block) {
        const char *option = o->block ? "--block" : "--no-inject";
        if (addr->path[0])
            return err_set(e, ERR_USAGE, "%s reads a process, not the socket of an agent: give its pid",
                           option);
        return target_read_only(f, addr, o->block, option, e);
    }
    if (o->readonly && !addr->path[0]) {
        if (target_facts_probe(f, addr->pid, e) != 0 || !f->has_agent)
            return target_read_only(f, addr, false, "--readonly", e);
    }
    if (!addr->path[0] && target_is_stopped(addr->pid, e))
        return target_read_only(f, addr, false, e->text, &why);
    if (target_attach_or(f, addr, 0, NULL, &refused, e) == 0)
        return 0;
    return refused ? target_read_only(f, addr, false, e->text, &why) : -1;
}

/* ---- targets that block their readers ---- */

struct target_work {
    struct target_address addr;
    struct target_options how;
    struct inject_result result;
    struct err error;
    unsigned timeout_ms;
    bool attach;    /* target_attach, otherwise target_reach */
    bool was_there; /* it existed at the beginning: if it is gone later, it was lost */
    int rc;
};

static void target_work(void *arg) {
    struct target_work *w = arg;
    struct target_facts facts = {.python = NULL};
    w->was_there = w->addr.pid > 0 && !procfs_is_gone(w->addr.pid);
    w->rc = w->attach ? target_attach_here(&facts, &w->addr, w->timeout_ms, &w->result, &w->error)
                      : target_reach_here(&facts, &w->addr, &w->how, &w->error);
    pystack_close(facts.python);
    /* An error found while the process was ending is not the reason. */
    if (w->rc != 0 && w->error.code == ERR_ATTACH && w->was_there && procfs_is_ending(w->addr.pid))
        err_set(&w->error, ERR_LOST, "process %d ended while it was being attached to", (int)w->addr.pid);
}

/* In a child, unless nothing of the target is to be read, or Yama lets only its parent trace it. */
static int target_do(struct target_work *w) {
    bool nothing = w->addr.path[0] || w->addr.recorded[0] || w->addr.pid <= 0;
    if (nothing || inject_is_for_parents(w->addr.pid)) {
        target_work(w);
        return w->rc;
    }
    int pid = (int)w->addr.pid;
    uint64_t began = clock_mono_ns();
    switch (guard_run(target_work, w, sizeof *w, w->timeout_ms + TARGET_BLOCKED_MS)) {
    case GUARD_DONE:
        return w->rc;
    case GUARD_NONE:
        return err_set_errno(&w->error, ERR_FAILED, errno, "no process can be made that attaches");
    case GUARD_BROKEN:
        return err_set(
            &w->error, ERR_ATTACH,
            "the process that attaches to process %d has crashed: the state of the attach is unknown", pid);
    case GUARD_INTERRUPTED:
        return err_set(&w->error, ERR_ATTACH, "interrupted; process %d blocked its reader and was given up",
                       pid);
    case GUARD_BLOCKED:
        break;
    }
    return err_set(
        &w->error, ERR_ATTACH,
        "process %d blocks its reader (its memory or its file system does not answer): given up after %u s",
        pid, (unsigned)((clock_mono_ns() - began) / CLOCK_NS_PER_S));
}

int target_attach(struct target_address *addr, unsigned timeout_ms, struct inject_result *out,
                  struct err *e) {
    struct target_work w = {.addr = *addr, .attach = true};
    w.timeout_ms = timeout_ms ? timeout_ms : TARGET_ATTACH_TIMEOUT_MS;
    int rc = target_do(&w);
    *addr = w.addr;
    if (rc != 0 && e)
        *e = w.error;
    if (rc == 0 && out)
        *out = w.result;
    return rc;
}

int target_reach(struct target_address *addr, const struct target_options *o, struct err *e) {
    struct target_work w = {.addr = *addr, .how = *o, .timeout_ms = TARGET_REACH_MS};
    int rc = target_do(&w);
    *addr = w.addr;
    if (rc != 0 && e)
        *e = w.error;
    return rc;
}
