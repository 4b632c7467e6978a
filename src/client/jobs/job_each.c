/* SPDX-License-Identifier: Apache-2.0 */
/* job_each: see job_each.h. */
#include "client/jobs/job_each.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "client/guard.h"
#include "client/session/eject.h"
#include "inject/inject.h"

#define JOB_EACH_MS 20000U /* for one of them, which has limits of its own below that */
#define JOB_EACH_POLL_MS 20

/* One that is worked on. */
struct job_slot {
    struct job_task *task; /* NULL: free */
    struct guard guard;
    uint64_t until_ns;
};

struct job_run {
    void (*work)(struct job_task *task);
    struct job_task *task; /* of the child that starts */
    struct job_slot slots[JOB_EACH_TOGETHER];
    size_t busy;
    bool asked; /* to end */
};

static bool job_is_asked(void) {
    sigset_t pending;
    return sigpending(&pending) == 0 &&
           (sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1 ||
            sigismember(&pending, SIGHUP) == 1);
}

static void job_fail(struct job_task *task, enum err_code code, const char *what) {
    task->rc = err_set(&task->error, code, "process %d: %s", (int)task->pid, what);
}

/* In the child. */
static void job_work(void *arg, int fd) {
    struct job_run *run = arg;
    run->work(run->task);
    send(fd, run->task, sizeof *run->task, MSG_NOSIGNAL);
}

static void job_begin(struct job_run *run, struct job_task *task) {
    struct job_slot *slot = run->slots;
    /* Yama lets only an ancestor trace it: we may be one, a child of ours is not */
    if (inject_is_for_parents(task->pid)) {
        run->work(task);
        return;
    }
    while (slot->task)
        slot++;
    run->task = task;
    if (guard_start(&slot->guard, job_work, run, task->pid, JOB_EACH_MS) != 0) {
        job_fail(task, ERR_ATTACH,
                 errno == EBUSY ? "an earlier attempt is still stuck there"
                                : "no process can be made that works on it");
        return;
    }
    slot->task = task;
    slot->until_ns = clock_mono_ns() + JOB_EACH_MS * CLOCK_NS_PER_MS;
    run->busy++;
}

/* Take the result, if it is there or its time is over. */
static void job_end(struct job_run *run, struct job_slot *slot, bool readable) {
    struct job_task done;
    if (readable) {
        if (recv(slot->guard.fd, &done, sizeof done, MSG_DONTWAIT) == sizeof done)
            *slot->task = done;
        else
            job_fail(slot->task, ERR_ATTACH, "the process that worked on it has crashed");
    } else if (clock_mono_ns() > slot->until_ns)
        guard_explain_blocked(slot->task->pid, NULL, JOB_EACH_MS, &slot->task->error), slot->task->rc = -1;
    else
        return;
    guard_stop(&slot->guard, slot->task->pid);
    slot->task = NULL;
    run->busy--;
}

static void job_wait(struct job_run *run) {
    struct pollfd fds[JOB_EACH_TOGETHER];
    for (size_t i = 0; i < JOB_EACH_TOGETHER; i++)
        fds[i] = (struct pollfd){.fd = run->slots[i].task ? run->slots[i].guard.fd : -1, .events = POLLIN};
    if (poll(fds, JOB_EACH_TOGETHER, JOB_EACH_POLL_MS) < 0)
        return;
    if (!run->asked && job_is_asked()) {
        run->asked = true;
        for (size_t i = 0; i < JOB_EACH_TOGETHER; i++)
            if (run->slots[i].task)
                kill(run->slots[i].guard.child, SIGTERM);
    }
    for (size_t i = 0; i < JOB_EACH_TOGETHER; i++)
        if (run->slots[i].task)
            job_end(run, &run->slots[i], fds[i].revents != 0);
}

void job_each(struct job_task *tasks, size_t n, void (*work)(struct job_task *task)) {
    struct job_run run = {.work = work};
    for (size_t next = 0; next < n || run.busy > 0;) {
        if (next < n && run.asked)
            job_fail(&tasks[next++], ERR_FAILED, "interrupted; it is as it was");
        else if (next < n && run.busy < JOB_EACH_TOGETHER)
            job_begin(&run, &tasks[next++]);
        else
            job_wait(&run);
    }
}

void job_attach(struct job_task *task) {
    struct target_address addr = {.pid = task->pid};
    task->rc = target_attach(&addr, 0, &task->result, &task->error);
}

void job_detach(struct job_task *task) {
    struct target_address addr = {.pid = task->pid};
    task->rc = eject_agent(&addr, &task->error);
}

const char *job_attached(const struct job_task *t) {
    return t->rc < 0           ? "failed"
           : t->result.already ? "already loaded"
           : t->result.reused  ? "started again"
                               : "loaded";
}

const char *job_detached(const struct job_task *t) {
    return t->rc < 0 ? "failed" : t->rc == 0 ? "none there" : "ejected";
}
