/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stop: see stop.h. ptrace(2): a released thread shows no trace of its stop, except for the
 * calls that syscall_restart_rewind knows.
 */
#include "inject/stop.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/ptrace.h>
#include <time.h>

#include "base/clock.h"
#include "base/container.h"
#include "base/procfs.h"
#include "inject/syscall_restart.h"
#include "inject/check.h"

/* another of our programs releases a thread within milliseconds */
#define STOP_BUSY_NS (3 * CLOCK_NS_PER_S)
#define STOP_RETRY_NS (5 * CLOCK_NS_PER_MS)
/* a thread that waits for a processor must get one to stop */
#define STOP_WAIT_NS (50 * CLOCK_NS_PER_MS)

void stop_init(struct stop *s, pid_t pid) { *s = (struct stop){.pid = pid}; }

struct stop_trial {
    pid_t pid;
    int errnum;
};

/* Seizing and ending stops nothing: the kernel releases the thread. */
static void *stop_try(void *arg) {
    struct stop_trial *t = arg;
    t->errnum = ptrace(PTRACE_SEIZE, t->pid, 0, 0) == 0 ? 0 : errno;
    return NULL;
}

/* True for one of our programs, which soon lets go. */
static bool stop_is_ours(int64_t tracer) {
    char name[64];
    return procfs_read_comm((pid_t)tracer, 0, name, sizeof name) == 0 && check_is_ours(name);
}

/* Like stop_check, for this moment; `is_busy`: another of our programs is at work. */
static int stop_check_now(pid_t pid, bool *is_busy, struct err *e) {
    struct stop_trial trial = {.pid = pid};
    struct procfs_status st;
    struct container here;
    pthread_t thread;
    *is_busy = false;
    if (procfs_is_gone(pid) || procfs_read_status(pid, 0, &st) != 0)
        return err_set(e, ERR_LOST, "process %d has ended", (int)pid);
    if (st.tracer_pid > 0) {
        bool ours = stop_is_ours(st.tracer_pid);
        *is_busy = ours || procfs_is_gone((pid_t)st.tracer_pid); /* it has ended meanwhile */
        return err_set(
            e, ERR_ATTACH,
            "process %d is being traced by process %lld%s, so its threads cannot be stopped by us: "
            "%s, or read without --block",
            (int)pid, (long long)st.tracer_pid, ours ? " of ours" : "",
            ours ? "try again" : "end that one first");
    }
    int rc = pthread_create(&thread, NULL, stop_try, &trial);
    if (rc != 0)
        return err_set_errno(e, ERR_FAILED, rc, "cannot create a thread");
    pthread_join(thread, NULL);
    if (trial.errnum) {
        *is_busy = procfs_read_status(pid, 0, &st) == 0 && st.tracer_pid > 0; /* since the check */
        container_find(&here);
        return err_set(e, ERR_ATTACH,
                       "not allowed to stop threads of process %d (%s): %s, or read without --block",
                       (int)pid, strerror(trial.errnum), container_remedy(here.kind));
    }
    return 0;
}

int stop_check(pid_t pid, struct err *e) {
    uint64_t until = clock_mono_ns() + STOP_BUSY_NS;
    bool is_busy;
    int rc;
    while ((rc = stop_check_now(pid, &is_busy, e)) != 0 && is_busy && clock_mono_ns() < until)
        nanosleep(&(struct timespec){0, STOP_RETRY_NS}, NULL);
    return rc;
}

/* Wait up to `wait_ns` for the stop, and undo its effect on an interrupted call immediately. A
 * thread about to take a signal counts as stopped; it takes the signal when it is released. 1
 * stopped, 0 not yet, -1 gone. */
static int stop_wait(struct thread *t, uint64_t wait_ns) {
    struct user_regs_struct regs;
    switch (thread_wait(t, wait_ns)) {
    case THREAD_SIGNAL:
        t->deliver = t->signal;
        return 1;
    case THREAD_STOPPED:
        if (thread_get_regs(t, &regs) == 0)
            syscall_restart_settle(t, &regs);
        return 1;
    case THREAD_SYSCALL:
        return 1;
    case THREAD_TIMEOUT:
        return 0;
    case THREAD_GONE:
        break;
    }
    return -1;
}

/* True if it sleeps in a call that a stop may end with a part of its work done. */
static bool stop_ends_partly(pid_t pid, pid_t tid) {
    struct procfs_syscall call;
    return procfs_read_syscall(pid, tid, &call) == 0 && syscall_restart_is_partial(pid, &call);
}

int stop_thread(struct stop *s, pid_t tid) {
    struct thread *t = &s->thread;
    stop_tend(s);
    *t = (struct thread){.pid = s->pid, .tid = tid};
    if (s->n_late == STOP_MAX_LATE || stop_ends_partly(s->pid, tid) || thread_seize(t, NULL) != 0) {
        s->refused++;
        return -1;
    }
    int rc = ptrace(PTRACE_INTERRUPT, tid, 0, 0) == 0 ? stop_wait(t, STOP_WAIT_NS) : -1;
    if (rc == 1) {
        s->stops++;
        return 0;
    }
    s->refused++;
    thread_relax();
    if (rc == 0)
        s->late[s->n_late++] = *t;
    return -1;
}

uint64_t stop_release(struct stop *s) {
    thread_release(&s->thread);
    return s->thread.stopped_ns;
}

bool stop_tend(struct stop *s) {
    size_t kept = 0;
    for (size_t i = 0; i < s->n_late; i++) {
        struct thread t = s->late[i];
        int rc = stop_wait(&t, 0);
        if (rc == 0)
            s->late[kept++] = t;
        else if (rc == 1)
            thread_release(&t);
    }
    s->n_late = kept;
    return kept > 0;
}
