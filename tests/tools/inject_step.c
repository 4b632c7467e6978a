/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inject_step: one injection that is sent a signal at a step of one's choice. For tests.
 *
 * A step is whatever the injector does to the target: a ptrace request, a write to its memory or to its memory file, a
 * signal. The linker's --wrap leads the library's calls through here (mk/test.mk), so the library itself has no such door.
 * `half` lets a write stop in the middle. Step 0 is none. The steps until then, or all, are printed as one line of JSON, each
 * with the time since the first in microseconds; what came of it follows on a line of its own. STEP_TO_JOB in the environment
 * is a signal that the job is sent at that step before.
 *
 * usage: inject_step before|after|half STEP SIGNAL PID AGENT [TIMEOUT_MS]
 */
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "inject/inject.h"

#define STEP_MAX 4096

enum step_when { STEP_BEFORE, STEP_AFTER, STEP_HALF };

static struct step_plan {
    enum step_when when;
    int number, signal;
    int to_job; /* a signal that the job gets then, too, with the number of the step */
    pid_t pid;
    int done;
    struct {
        char name[32];
        uint64_t at_ns;
    } seen[STEP_MAX];
} step_plan;

long __real_ptrace(int request, pid_t tid, void *addr, void *data);
long __wrap_ptrace(int request, pid_t tid, void *addr, void *data);
ssize_t __real_pwrite(int fd, const void *buf, size_t n, off_t at);
ssize_t __wrap_pwrite(int fd, const void *buf, size_t n, off_t at);
ssize_t __real_write(int fd, const void *buf, size_t n);
ssize_t __wrap_write(int fd, const void *buf, size_t n);

static const char *step_ptrace_name(int request) {
    switch (request) {
    case PTRACE_SEIZE:
        return "SEIZE";
    case PTRACE_INTERRUPT:
        return "INTERRUPT";
    case PTRACE_CONT:
        return "CONT";
    case PTRACE_SYSCALL:
        return "SYSCALL";
    case PTRACE_DETACH:
        return "DETACH";
    case PTRACE_GETREGSET:
        return "GETREGSET";
    case PTRACE_SETREGSET:
        return "SETREGSET";
    case PTRACE_GETSIGMASK:
        return "GETSIGMASK";
    case PTRACE_SETSIGMASK:
        return "SETSIGMASK";
    default:
        return "another request";
    }
}

static void step_print(void) {
    const struct step_plan *p = &step_plan;
    int n = p->done < STEP_MAX ? p->done : STEP_MAX;
    (void)printf("\"steps\":[");
    for (int i = 0; i < n; i++)
        (void)printf("%s[\"%s\",%" PRIu64 "]", i ? "," : "", p->seen[i].name,
                     (p->seen[i].at_ns - p->seen[0].at_ns) / 1000);
    (void)printf("]}\n");
}

/* Says what was done so far; a deadly signal leaves no time for it afterwards. */
static void step_signal(void) {
    if (step_plan.to_job)
        (void)sigqueue(step_plan.pid, step_plan.to_job, (union sigval){.sival_int = step_plan.number});
    (void)printf("{\"signalled\":true,");
    step_print();
    (void)fflush(stdout);
    /* This thread does no further step: SIGKILL ends it, SIGSTOP stops it (sent to the process it might be taken by another, later). */
    if (step_plan.signal == SIGSTOP)
        (void)syscall(SYS_tgkill, getpid(), gettid(), SIGSTOP);
    else
        (void)syscall(SYS_kill, getpid(), step_plan.signal);
}

/* The next step begins. Is it to be done by half? */
static bool step_begin(const char *name) {
    struct step_plan *p = &step_plan;
    if (p->done < STEP_MAX) {
        (void)snprintf(p->seen[p->done].name, sizeof p->seen[0].name, "%s", name);
        p->seen[p->done].at_ns = clock_mono_ns();
    }
    p->done++;
    if (p->done == p->number && p->when == STEP_BEFORE)
        step_signal();
    return p->done == p->number && p->when == STEP_HALF;
}

static void step_end(void) {
    if (step_plan.done == step_plan.number && step_plan.when != STEP_BEFORE)
        step_signal();
}

long __wrap_ptrace(int request, pid_t tid, void *addr, void *data) {
    (void)step_begin(step_ptrace_name(request));
    long rc = __real_ptrace(request, tid, addr, data);
    step_end();
    return rc;
}

ssize_t __wrap_pwrite(int fd, const void *buf, size_t n, off_t at) {
    if (step_begin("memory"))
        n /= 2;
    ssize_t done = __real_pwrite(fd, buf, n, at);
    step_end();
    return done;
}

ssize_t __wrap_write(int fd, const void *buf, size_t n) {
    if (step_begin("file"))
        n /= 2;
    ssize_t done = __real_write(fd, buf, n);
    step_end();
    return done;
}

int main(int argc, char **argv) {
    struct err e = {0};
    struct inject_result r;
    if (argc < 6) {
        (void)fprintf(stderr, "usage: inject_step before|after|half STEP SIGNAL PID AGENT [TIMEOUT_MS]\n");
        return 2;
    }
    step_plan.when = argv[1][0] == 'b' ? STEP_BEFORE : argv[1][0] == 'a' ? STEP_AFTER : STEP_HALF;
    step_plan.number = atoi(argv[2]);
    step_plan.signal = atoi(argv[3]);
    step_plan.pid = (pid_t)atoi(argv[4]);
    step_plan.to_job = getenv("STEP_TO_JOB") ? atoi(getenv("STEP_TO_JOB")) : 0;
    struct inject_request req = {.pid = (pid_t)atoi(argv[4]), .agent_path = argv[5]};
    if (argc > 6)
        req.timeout_ms = (unsigned)atoi(argv[6]);
    sigset_t asked;
    (void)sigemptyset(&asked);
    (void)sigaddset(&asked, SIGINT);
    (void)sigaddset(&asked, SIGTERM);
    (void)sigaddset(&asked, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, &asked, NULL); /* as the verb does: they stay pending until the end */
    if (inject_process(&req, &r, &e) != 0) {
        (void)fprintf(stderr, "%s\n", e.text);
        if (step_plan.number)
            return err_exit_status(&e);
        (void)printf("{\"failed\":true,");
    } else {
        (void)printf("{\"already\":%s,\"reused\":%s,\"stopped_us\":%" PRIu64 ",\"moment\":\"%s\",",
                     r.already ? "true" : "false", r.reused ? "true" : "false", r.stopped_us, r.moment);
    }
    step_print();
    return 0;
}
