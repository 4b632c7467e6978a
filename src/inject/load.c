/* SPDX-License-Identifier: Apache-2.0 */
/* load: see load.h. */
#include "inject/load.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/procfs.h"
#include "base/text.h"
#include "inject/borrow.h"
#include "inject/thread.h"

#define LOAD_FILE_LINK "/memfd:" AGENT_MEMFD_NAME
#define LOAD_LOOK_NS (1 * CLOCK_NS_PER_MS)
#define LOAD_START_GRACE_NS (2000 * CLOCK_NS_PER_MS) /* for an agent that is in its entry already */
#define LOAD_GONE_NS (500 * CLOCK_NS_PER_MS)

static void load_set(struct target *t, uint64_t params_at, size_t field) {
    int32_t one = 1;
    (void)thread_write(t->pid, params_at + field, &one, sizeof one);
}

static int load_lost(struct target *t, struct err *e) {
    struct procfs_stat st;
    if (procfs_read_stat(t->pid, 0, &st) != 0 || st.state == 'Z' || st.state == 'X')
        return err_set(e, ERR_LOST, "process %d ended while it was being attached to", (int)t->pid);
    return err_set(e, ERR_FAILED, "process %d: the thread made in it cannot be read any more", (int)t->pid);
}

/* Wait until the thread's phase is at least `phase`. The phase, or -1 when the params are gone, or 0 at the deadline. */
static int32_t load_wait(struct target *t, uint64_t params_at, int32_t phase, uint64_t deadline_ns) {
    long nap_ns = 0;
    for (;;) {
        int32_t now = borrow_read_i32(t, params_at, offsetof(struct stub_params, phase));
        if (now < 0 || now >= phase)
            return now;
        if (clock_mono_ns() > deadline_ns)
            return 0;
        thread_nap(&nap_ns);
    }
}

/* The params vanish with the region: then nothing of ours is left. */
static void load_wait_gone(struct target *t, uint64_t params_at) {
    uint64_t until = clock_mono_ns() + LOAD_GONE_NS;
    long nap_ns = 0;
    while (borrow_read_i32(t, params_at, offsetof(struct stub_params, phase)) >= 0 && clock_mono_ns() < until)
        thread_nap(&nap_ns);
}

static int load_write_file(struct target *t, uint64_t params_at, const uint8_t *bytes, size_t size,
                           struct err *e) {
    char path[64];
    int32_t number = borrow_read_i32(t, params_at, offsetof(struct stub_params, fd));
    (void)snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)t->pid, (int)number);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return err_set_errno(e, ERR_ATTACH, errno, "process %d: its memory file cannot be opened",
                             (int)t->pid);
    size_t done = 0;
    while (done < size) {
        ssize_t n = write(fd, bytes + done, size - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            int saved = n < 0 ? errno : EIO;
            (void)close(fd);
            return err_set_errno(e, ERR_ATTACH, saved, "process %d: the agent cannot be copied into it",
                                 (int)t->pid);
        }
        done += (size_t)n;
    }
    (void)close(fd);
    return 0;
}

/* What the thread said when it did not start an agent. */
static int load_explain(struct target *t, const struct stub_params *p, struct err *e) {
    char text[256];
    int pid = (int)t->pid;
    (void)text_sanitize(text, sizeof text, p->start.error);
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
    case STUB_CANCELLED:
        return err_set(e, ERR_ATTACH, "process %d was too slow to load the agent; try again", pid);
    default:
        return err_set(e, ERR_ATTACH, "process %d: the agent answered %d", pid, (int)p->result);
    }
}

static int load_too_late(struct target *t, uint64_t params_at, struct err *e) {
    struct procfs_stat st;
    int32_t phase = borrow_read_i32(t, params_at, offsetof(struct stub_params, phase));
    if (procfs_read_stat(t->pid, 0, &st) != 0 || st.state == 'Z')
        return load_lost(t, e);
    const char *where = phase == STUB_LOADING
                            ? "waiting for its dynamic loader, which is busy loading something else"
                        : phase == STUB_STARTING ? "starting the agent"
                                                 : "waiting for a processor";
    return err_set(e, ERR_ATTACH,
                   "process %d: the agent was not up in time (still %s); it is taken back, try again",
                   (int)t->pid, where);
}

/* Wait for the last word. On the deadline the thread is told to take it back, except when the agent is being started. */
static int load_wait_done(struct target *t, uint64_t params_at, uint64_t deadline_ns, struct err *e) {
    int32_t phase = load_wait(t, params_at, STUB_DONE, deadline_ns);
    if (phase == STUB_DONE)
        return 0;
    if (phase < 0)
        return load_lost(t, e);
    load_set(t, params_at, offsetof(struct stub_params, cancel));
    phase = load_wait(t, params_at, STUB_STARTING, clock_mono_ns() + LOAD_LOOK_NS);
    if (phase == STUB_STARTING)
        phase = load_wait(t, params_at, STUB_DONE, clock_mono_ns() + LOAD_START_GRACE_NS);
    return phase == STUB_DONE ? 0 : load_too_late(t, params_at, e);
}

static int load_match_map(const struct procfs_map *map, void *arg) {
    (void)arg;
    return strncmp(map->path, LOAD_FILE_LINK, sizeof LOAD_FILE_LINK - 1) == 0;
}

/* Is there another memory file like ours, open or mapped? Everybody makes theirs first and looks then, so of two at the
 * same time at least one sees the other. */
static bool load_is_alone(struct target *t, int32_t our_fd) {
    char path[64], link[64];
    bool alone = true;
    (void)snprintf(path, sizeof path, "/proc/%d/fd", (int)t->pid);
    DIR *dir = opendir(path);
    for (struct dirent *d; dir && alone && (d = readdir(dir));) {
        ssize_t n = readlinkat(dirfd(dir), d->d_name, link, sizeof link - 1);
        link[n > 0 ? n : 0] = '\0';
        alone = strncmp(link, LOAD_FILE_LINK, sizeof LOAD_FILE_LINK - 1) != 0 || atoi(d->d_name) == our_fd;
    }
    if (dir)
        (void)closedir(dir);
    return alone && procfs_each_map(t->pid, load_match_map, NULL) == 0;
}

int load_agent(struct target *t, uint64_t params_at, const uint8_t *bytes, size_t size, uint64_t deadline_ns,
               struct stub_params *out, struct err *e) {
    int32_t phase = load_wait(t, params_at, bytes ? STUB_WAITING : STUB_BORN, deadline_ns);
    if (phase < 0)
        return load_lost(t, e);
    int failed = phase == 0 ? load_too_late(t, params_at, e) : 0;
    if (phase == STUB_WAITING &&
        !load_is_alone(t, borrow_read_i32(t, params_at, offsetof(struct stub_params, fd))))
        failed = 1;
    else if (phase == STUB_WAITING)
        failed = load_write_file(t, params_at, bytes, size, e);
    if (failed)
        load_set(t, params_at, offsetof(struct stub_params, cancel));
    load_set(t, params_at, offsetof(struct stub_params, go));
    if (failed) {
        load_wait_gone(t, params_at);
        return failed;
    }
    if (load_wait_done(t, params_at, deadline_ns, e) != 0)
        return -1;
    if (mem_read(&t->mem, params_at, out, sizeof *out) != 0)
        return load_lost(t, e);
    load_set(t, params_at, offsetof(struct stub_params, ack));
    if (out->result == STUB_STARTED)
        return 0;
    load_wait_gone(t, params_at);
    return out->result == STUB_ALREADY ? 0 : load_explain(t, out, e);
}
