/* SPDX-License-Identifier: Apache-2.0 */
/* load: see load.h. */
#include "inject/load.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/procfs.h"
#include "base/text.h"
#include "inject/borrow.h"
#include "inject/thread.h"

#define LOAD_FILE_LINK "/memfd:" AGENT_MEMFD_NAME
/* the name of an open memory file in /proc */
#define LOAD_FILE_LINK_WHOLE LOAD_FILE_LINK " (deleted)"
#define LOAD_MAX_TIDS 1024
#define LOAD_POLL_NS (1 * CLOCK_NS_PER_MS)
#define LOAD_START_GRACE_NS (2000 * CLOCK_NS_PER_MS) /* for an agent that is already in its entry */
#define LOAD_GONE_NS (500 * CLOCK_NS_PER_MS)
/* beyond the time limit: a busy loader may never end */
#define LOAD_LATE_NS (100 * CLOCK_NS_PER_MS)

static void load_set(struct target *t, uint64_t params_at, size_t field) {
    int32_t one = 1;
    mem_write(&t->mem, params_at + field, &one, sizeof one);
}

/* The params are gone: -1 with the process; 1 with the thread, which has given up on us. */
static int load_lost(struct target *t, struct err *e) {
    return mem_is_gone(&t->mem) || procfs_is_gone(t->pid) ? target_lost(t, e) : 1;
}

/* Wait until the thread's phase is at least `phase`, and show it that we are alive. Returns the
 * phase, -1 if the params are gone, or 0 at the deadline or when `stop_asked` returns true. */
static int32_t load_wait(struct target *t, uint64_t params_at, int32_t phase, uint64_t deadline_ns,
                         bool (*stop_asked)(void)) {
    long nap_ns = 0;
    for (int32_t pulse = 1;; pulse++) {
        int32_t now = borrow_read_i32(t, params_at, offsetof(struct stub_params, phase));
        if (now < 0 || now >= phase)
            return now;
        if (clock_mono_ns() > deadline_ns || (stop_asked && stop_asked()))
            return 0;
        mem_write(&t->mem, params_at + offsetof(struct stub_params, pulse), &pulse, sizeof pulse);
        thread_nap(&nap_ns);
    }
}

/* The params vanish with the region, and the thread soon after: then nothing of ours is left. */
static bool load_is_gone(struct target *t, uint64_t params_at) {
    pid_t tids[LOAD_MAX_TIDS];
    char name[sizeof STUB_THREAD_NAME + 1];
    if (borrow_read_i32(t, params_at, offsetof(struct stub_params, phase)) >= 0)
        return false;
    ssize_t n = procfs_list_tids(t->pid, tids, LOAD_MAX_TIDS);
    for (ssize_t i = 0; i < n && i < LOAD_MAX_TIDS; i++)
        if (procfs_read_comm(t->pid, tids[i], name, sizeof name) == 0 && strcmp(name, STUB_THREAD_NAME) == 0)
            return false;
    return true;
}

static void load_wait_gone(struct target *t, uint64_t params_at, uint64_t wait_ns) {
    uint64_t until = clock_mono_ns() + wait_ns;
    long nap_ns = 0;
    while (!load_is_gone(t, params_at) && clock_mono_ns() < until)
        thread_nap(&nap_ns);
}

/* ---- the memory file ---- */

/* The target supplies everything here: the descriptor's number and what it refers to. It may be
 * anything, and something else a moment later: a file of ours that it has opened with O_PATH, a
 * FIFO or a device, a file system that does not answer. So it is taken without being opened
 * (O_PATH), examined without asking its file system (AT_STATX_DONT_SYNC), and written to only if
 * it is an empty memory file of our name, through the target's own descriptor of that very file. */

/* Size of the file, and 0; or -1 with a description of what it is instead. */
static int load_judge_file(int fd, const struct statx *ours, struct statx *st, const char **what) {
    char self[32], link[64];
    *st = (struct statx){.stx_mask = 0};
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(self, link, sizeof link - 1);
    link[n > 0 ? n : 0] = '\0';
    if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, st) != 0)
        *what = "it cannot be read";
    else if (S_ISFIFO(st->stx_mode))
        *what = "it is a FIFO";
    else if (S_ISSOCK(st->stx_mode))
        *what = "it is a socket";
    else if (S_ISCHR(st->stx_mode) || S_ISBLK(st->stx_mode))
        *what = "it is a device";
    else if (!S_ISREG(st->stx_mode))
        *what = "it is not a regular file";
    /* all memory files are on one that only the kernel mounts */
    else if (st->stx_dev_major != ours->stx_dev_major || st->stx_dev_minor != ours->stx_dev_minor ||
             st->stx_nlink != 0)
        *what = "it is a file on a file system";
    else if (strcmp(link, LOAD_FILE_LINK_WHOLE) != 0)
        *what = "it is another memory file";
    else if (st->stx_size != 0)
        *what = "it is not empty";
    else
        return 0;
    return -1;
}

static bool load_is_same_file(const struct statx *a, const struct statx *b) {
    return a->stx_ino == b->stx_ino && a->stx_dev_major == b->stx_dev_major &&
           a->stx_dev_minor == b->stx_dev_minor;
}

/* The target's own descriptor, if the kernel provides it (Linux 5.6) and no filter of ours
 * forbids it; otherwise one of our own for what `taken` stands for, which was checked. Or -1
 * with errno. */
static int load_get_file(const struct target *t, int number, int taken) {
    char self[32];
    int fd = t->process < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, t->process, number, 0);
    if (fd >= 0 || (t->process >= 0 && errno != ENOSYS && errno != EPERM))
        return fd;
    snprintf(self, sizeof self, "/proc/self/fd/%d", taken);
    return open(self, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

/* A descriptor for writing to its empty memory file, or -1 with the error. */
static int load_open_file(struct target *t, int number, struct statx *st, struct err *e) {
    char path[64];
    const char *what = NULL;
    struct statx ours = {.stx_mask = 0}, now;
    int pid = (int)t->pid, fd = -1, taken = -1;
    int own = memfd_create("probing-look", MFD_CLOEXEC);
    int looked = own >= 0 ? statx(own, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &ours) : -1;
    int saved = errno;
    if (own >= 0)
        close(own);
    if (looked != 0)
        return err_set_errno(e, ERR_FAILED, saved, "cannot make a memory file (memfd_create)");
    snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, number);
    taken = number >= 0 ? file_take(AT_FDCWD, path, FILE_LINKS_FOLLOWED) : -1;
    if (taken < 0) {
        return err_set_errno(e, ERR_ATTACH, number >= 0 ? errno : EBADF,
                             "process %d: its memory file cannot be opened", pid);
    }
    if (load_judge_file(taken, &ours, st, &what) == 0) {
        fd = load_get_file(t, number, taken);
        saved = errno;
        if (fd < 0)
            what = "it cannot be opened for writing";
        else if (load_judge_file(fd, &ours, &now, &what) == 0 && !load_is_same_file(st, &now))
            what = "it was replaced by another file";
        else if (!what && (fcntl(fd, F_GETFL) & (O_ACCMODE | O_PATH)) != O_RDWR &&
                 (fcntl(fd, F_GETFL) & (O_ACCMODE | O_PATH)) != O_WRONLY)
            what = "it is not open for writing";
    }
    close(taken);
    if (!what)
        return fd;
    if (fd >= 0)
        close(fd);
    return err_set(
        e, ERR_ATTACH,
        "process %d does not give an empty memory file for the agent (%s): nothing was written to it", pid,
        what);
}

static int load_write_file(struct target *t, uint64_t params_at, const uint8_t *bytes, size_t size,
                           struct err *e) {
    struct statx st, now = {.stx_mask = 0};
    int32_t number = borrow_read_i32(t, params_at, offsetof(struct stub_params, fd));
    int fd = load_open_file(t, number, &st, e);
    if (fd < 0)
        return -1;
    size_t done = 0;
    int rc = 0;
    while (rc == 0 && done < size) {
        ssize_t n = write(fd, bytes + done, size - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            rc = err_set_errno(e, ERR_ATTACH, n < 0 ? errno : EIO,
                               "process %d: the agent cannot be copied into it", (int)t->pid);
        else
            done += (size_t)n;
    }
    if (rc == 0 && (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &now) != 0 ||
                    !load_is_same_file(&st, &now) || now.stx_size != size))
        rc = err_set(e, ERR_ATTACH, "process %d: the agent's memory file was changed while it was written to",
                     (int)t->pid);
    close(fd);
    return rc;
}

/* The thread's reason for not starting an agent. */
static int load_explain(struct target *t, const struct stub_params *p, struct err *e) {
    char text[256];
    int pid = (int)t->pid;
    text_sanitize(text, sizeof text, p->start.error);
    switch (p->result) {
    case STUB_REFUSED:
        return err_set(e, ERR_ATTACH, "process %d: the agent could not start: %s", pid,
                       text[0] ? text : "no reason given");
    case STUB_NO_MEMFD:
        return err_set_errno(e, ERR_ATTACH, p->sys_errno,
                             "process %d cannot make a memory file (memfd_create)", pid);
    case STUB_NO_LOAD:
        return err_set(e, ERR_ATTACH, "process %d could not load the agent: %s", pid,
                       text[0] ? text : "no reason given");
    case STUB_NO_ENTRY:
        return err_set(e, ERR_ATTACH, "process %d loaded the agent but did not find %s in it", pid,
                       AGENT_ENTRY);
    default:
        return err_set(e, ERR_ATTACH, "process %d: the agent answered %d", pid, (int)p->result);
    }
}

static int load_interrupted(const struct target *t, struct err *e) {
    return err_set(e, ERR_FAILED, "interrupted; process %d is as it was", (int)t->pid);
}

/* Why we go without a result, from the phase read after `cancel` was set: -1 with the error, or
 * 1 if the params are gone. */
static int load_too_late(struct target *t, const struct load_request *req, int32_t phase, struct err *e) {
    if (mem_is_gone(&t->mem) || procfs_is_gone(t->pid))
        return target_lost(t, e);
    if (phase < 0)
        return 1;
    if (phase == STUB_STARTING) /* nobody can cancel it there */
        return err_set(e, ERR_ATTACH,
                       "process %d: the agent is still being started, which takes too long: it will be ready "
                       "soon or end by itself; try again",
                       (int)t->pid);
    if (req->stop_asked())
        return load_interrupted(t, e);
    const char *where = phase == STUB_LOADING
                            ? "waiting for its dynamic loader, which is busy loading something else"
                            : "waiting for a processor";
    return err_set(e, ERR_ATTACH,
                   "process %d: the agent was not up in time (still %s); the attach was undone, try again",
                   (int)t->pid, where);
}

/* Wait for the final result: 0, or what load_agent returns. At the deadline the thread is asked
 * to cancel, except while the agent is being started. */
static int load_wait_done(struct target *t, const struct load_request *req, struct err *e) {
    uint64_t at = req->params_at;
    int32_t phase = load_wait(t, at, STUB_DONE, req->deadline_ns, req->stop_asked);
    if (phase == STUB_DONE)
        return 0;
    if (phase < 0)
        return load_lost(t, e);
    load_set(t, at, offsetof(struct stub_params, cancel));
    phase = load_wait(t, at, STUB_STARTING, clock_mono_ns() + LOAD_POLL_NS, NULL);
    if (phase == STUB_STARTING)
        phase = load_wait(t, at, STUB_DONE, clock_mono_ns() + LOAD_START_GRACE_NS, NULL);
    if (phase == STUB_DONE)
        return 0;
    /* It may have got further meanwhile: a machine that stalls gives it all the time it needs. */
    phase = borrow_read_i32(t, at, offsetof(struct stub_params, phase));
    if (phase == STUB_DONE)
        return 0;
    int rc = load_too_late(t, req, phase, e);
    if (phase != STUB_STARTING)
        load_wait_gone(t, at, LOAD_LATE_NS);
    return rc;
}

static int load_match_map(const struct procfs_map *map, void *arg) {
    (void)arg;
    return strncmp(map->path, LOAD_FILE_LINK, sizeof LOAD_FILE_LINK - 1) == 0;
}

/* True if there is no other memory file like ours, open or mapped. Every injector makes its own
 * first and then looks, so of two at the same time at least one sees the other. */
static bool load_is_alone(struct target *t, const struct load_request *req, int32_t our_fd) {
    char path[64], link[64];
    bool alone = true;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)t->pid);
    DIR *dir = opendir(path);
    for (struct dirent *d; dir && alone && (d = readdir(dir));) {
        /* the target may have any number of them */
        if (clock_mono_ns() > req->deadline_ns || req->stop_asked())
            break;
        ssize_t n = readlinkat(dirfd(dir), d->d_name, link, sizeof link - 1);
        link[n > 0 ? n : 0] = '\0';
        alone = strncmp(link, LOAD_FILE_LINK, sizeof LOAD_FILE_LINK - 1) != 0 || atoi(d->d_name) == our_fd;
    }
    if (dir)
        closedir(dir);
    return alone && procfs_each_map(t->pid, load_match_map, NULL) == 0;
}

/* Hand the thread what it waits for. 0, 1 if another injector is at work, or -1 with the error. */
static int load_pass_request(struct target *t, const struct load_request *req, struct err *e) {
    int32_t phase = load_wait(t, req->params_at, req->bytes ? STUB_WAITING : STUB_BORN, req->deadline_ns,
                              req->stop_asked);
    if (phase < 0)
        return load_lost(t, e);
    if (phase == 0 || req->stop_asked())
        return load_too_late(t, req, borrow_read_i32(t, req->params_at, offsetof(struct stub_params, phase)),
                             e);
    if (phase != STUB_WAITING)
        return 0;
    if (!load_is_alone(t, req, borrow_read_i32(t, req->params_at, offsetof(struct stub_params, fd))))
        return 1;
    if (req->stop_asked())
        return load_interrupted(t, e);
    return load_write_file(t, req->params_at, req->bytes, req->size, e);
}

static int load_run(struct target *t, const struct load_request *req, struct stub_params *out,
                    struct err *e) {
    int failed = load_pass_request(t, req, e);
    if (failed)
        load_set(t, req->params_at, offsetof(struct stub_params, cancel));
    load_set(t, req->params_at, offsetof(struct stub_params, go));
    if (failed) {
        load_wait_gone(t, req->params_at, LOAD_GONE_NS);
        return failed;
    }
    failed = load_wait_done(t, req, e);
    if (failed)
        return failed;
    if (mem_read(&t->mem, req->params_at, out, sizeof *out) != 0)
        return load_lost(t, e);
    load_set(t, req->params_at, offsetof(struct stub_params, ack));
    if (out->result == STUB_STARTED)
        return 0;
    load_wait_gone(t, req->params_at, LOAD_GONE_NS);
    if (out->result == STUB_CANCELLED)
        return req->stop_asked() ? load_interrupted(t, e) : 1;
    return out->result == STUB_ALREADY ? 0 : load_explain(t, out, e);
}

int load_agent(struct target *t, const struct load_request *req, struct stub_params *out, struct err *e) {
    int rc = load_run(t, req, out, e);
    /* On a machine that stalls for seconds the thread may live longer than we wait for it. */
    if (rc == -1 && req->stop_asked() && !load_is_gone(t, req->params_at))
        return err_set(e, ERR_FAILED, "interrupted; the attach in process %d ends by itself in a moment",
                       (int)t->pid);
    return rc;
}
