/* SPDX-License-Identifier: Apache-2.0 */
/* tour_job: see tour_job.h. prctl(2) PR_SET_PDEATHSIG, signalfd(2). */
#include "tui/host/tour_job.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/endpoint.h"
#include "client/output.h"
#include "client/progress.h"
#include "client/target/launch.h"

#define TOUR_JOB_FILE "train.py"
#define TOUR_JOB_OUTPUT "output"
#define TOUR_JOB_DATA "data"
#define TOUR_JOB_ASK_MS 20000   /* for a Python to start, and to find its torch */
#define TOUR_JOB_STEP_MS 180000 /* for the first step: importing torch may take a minute */
#define TOUR_JOB_END_MS 3000    /* for the job to end by itself */
#define TOUR_JOB_POLL_MS 50
#define TOUR_JOB_TAIL 600

/* The assembler embeds the files (mk/build.mk lists them). */
#define TOUR_JOB_EMBED(name)                                                                                 \
    extern const char tour_job_##name[];                                                                     \
    __asm__(".pushsection .rodata\n"                                                                         \
            ".global tour_job_" #name "\n"                                                                   \
            ".hidden tour_job_" #name "\n"                                                                   \
            ".type tour_job_" #name ", @object\n"                                                            \
            "tour_job_" #name ":\n"                                                                          \
            ".incbin \"examples/" #name ".py\"\n"                                                            \
            ".byte 0\n"                                                                                      \
            ".size tour_job_" #name ", . - tour_job_" #name "\n"                                             \
            ".popsection\n");
TOUR_JOB_EMBED(slow_train)
TOUR_JOB_EMBED(train_plain)

/* Without an answer it is not a Python that can run the job. */
static const char tour_job_question[] =
    "import sys\n"
    "assert sys.version_info >= (3, 6)\n"
    "from importlib.util import find_spec\n"
    "sys.stdout.write('%d%s' % (find_spec('torch') is not None, sys.executable))\n";

static void tour_job_sleep(unsigned ms) {
    struct timespec t = {.tv_nsec = (long)ms * 1000000};
    nanosleep(&t, NULL);
}

static void tour_job_unblock(void) {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Standard input from nowhere, output and errors to `fd`. */
static void tour_job_redirect(int fd) {
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null, STDIN_FILENO);
    dup2(fd >= 0 ? fd : null, STDOUT_FILENO);
    dup2(fd >= 0 ? fd : null, STDERR_FILENO);
}

/* ---- which Python ---- */

/* Read until the end, or for so long. */
static void tour_job_read(int fd, unsigned ms, char *buf, size_t cap) {
    uint64_t until_ns = clock_mono_ns() + ms * CLOCK_NS_PER_MS, now_ns;
    size_t n = 0;
    while (n + 1 < cap && (now_ns = clock_mono_ns()) < until_ns) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, (int)((until_ns - now_ns) / CLOCK_NS_PER_MS) + 1) < 0 && errno == EINTR)
            continue;
        ssize_t got = p.revents ? read(fd, buf + n, cap - 1 - n) : 0;
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    buf[n] = '\0';
}

/* Ask a Python where it is, and whether it has torch. False: it does not answer. */
static bool tour_job_ask(struct tour_job *j, const char *python) {
    char answer[PATH_MAX + 1] = "", *argv[] = {(char *)python, (char *)"-c", (char *)tour_job_question, NULL};
    int ends[2], status = -1;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    pid_t child = fork();
    if (child == 0) {
        tour_job_redirect(-1);
        dup2(ends[1], STDOUT_FILENO);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execvp(python, argv);
        _exit(127);
    }
    close(ends[1]);
    if (child > 0) {
        tour_job_read(ends[0], TOUR_JOB_ASK_MS, answer, sizeof answer);
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
    }
    close(ends[0]);
    answer[strcspn(answer, "\n")] = '\0';
    if ((answer[0] != '0' && answer[0] != '1') || answer[1] != '/')
        return false;
    j->has_torch = answer[0] == '1';
    snprintf(j->python, sizeof j->python, "%s", answer + 1);
    return true;
}

static int tour_job_find_python(struct tour_job *j, struct err *e) {
    const char *named = getenv("PYTHON");
    const char *const names[] = {"python3", "python"};
    struct tour_job first = {.python = ""};
    if (named && *named)
        return tour_job_ask(j, named)
                   ? 0
                   : err_set(e, ERR_FAILED, "PYTHON=%s does not run as a Python 3.6 or newer", named);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (!tour_job_ask(j, names[i]))
            continue;
        if (j->has_torch)
            return 0;
        if (!first.python[0])
            snprintf(first.python, sizeof first.python, "%s", j->python);
    }
    snprintf(j->python, sizeof j->python, "%s", first.python);
    j->has_torch = false;
    return j->python[0] ? 0
                        : err_set(e, ERR_FAILED,
                                  "the tour needs a Python 3.6 or newer, and there is none along PATH: name "
                                  "one with PYTHON=PATH");
}

/* ---- its files ---- */

/* 0, or -1 if it is too long. */
static int tour_job_path(const struct tour_job *j, const char *name, char *buf, size_t cap) {
    int n = snprintf(buf, cap, "%s/%s", j->folder, name);
    return n > 0 && (size_t)n < cap ? 0 : -1;
}

static int tour_job_write_files(struct tour_job *j, struct err *e) {
    const char *tmp = getenv("TMPDIR"), *source = j->has_torch ? tour_job_slow_train : tour_job_train_plain;
    char path[PATH_MAX + 16];
    snprintf(j->folder, sizeof j->folder, "%.3000s/probing-tour-XXXXXX", tmp && tmp[0] == '/' ? tmp : "/tmp");
    if (!mkdtemp(j->folder)) {
        int saved = errno;
        j->folder[0] = '\0';
        return err_set_errno(e, ERR_FAILED, saved,
                             "cannot make a folder for the tour's job in %s: set TMPDIR",
                             tmp && tmp[0] == '/' ? tmp : "/tmp");
    }
    tour_job_path(j, TOUR_JOB_FILE, path, sizeof path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    size_t len = strlen(source);
    bool done = fd >= 0 && write(fd, source, len) == (ssize_t)len;
    int saved = errno;
    if (fd >= 0)
        close(fd);
    return done ? 0 : err_set_errno(e, ERR_FAILED, saved, "cannot write %s", path);
}

static int tour_job_remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw) {
    (void)st;
    (void)kind;
    (void)ftw;
    return remove(path);
}

static void tour_job_remove_files(const struct tour_job *j) {
    if (j->folder[0])
        nftw(j->folder, tour_job_remove_one, 8, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* The end of what the job has printed. */
static void tour_job_read_output(const struct tour_job *j, char *buf, size_t cap) {
    char path[PATH_MAX + 16];
    buf[0] = '\0';
    tour_job_path(j, TOUR_JOB_OUTPUT, path, sizeof path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    off_t size = lseek(fd, 0, SEEK_END), from = size > (off_t)cap - 1 ? size - ((off_t)cap - 1) : 0;
    ssize_t n = pread(fd, buf, cap - 1, from);
    buf[n > 0 ? n : 0] = '\0';
    close(fd);
}

/* ---- the guardian ---- */

/* The child that becomes the job: with the agent in it, where it can be preloaded. */
static void tour_job_exec(const struct tour_job *j) {
    char script[PATH_MAX + 16], output[PATH_MAX + 16], data[PATH_MAX + 16];
    char *argv[] = {(char *)j->python, (char *)"-u", script, NULL};
    struct err e;
    tour_job_path(j, TOUR_JOB_FILE, script, sizeof script);
    tour_job_path(j, TOUR_JOB_OUTPUT, output, sizeof output);
    tour_job_path(j, TOUR_JOB_DATA, data, sizeof data);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int fd = open(output, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    tour_job_redirect(fd);
    tour_job_unblock();
    setenv("PROBING_DATA_DIR", data, 1); /* its tables are not kept, */
    setenv("TMPDIR", j->folder, 1);      /* nor what torch leaves */
    setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
    launch_command(argv, false, &e);
    execv(j->python, argv);
    _exit(127);
}

/* True if the job has ended: then it is reaped. What it has left in its group is killed before, while
 * nobody else can have its number. */
static bool tour_job_reap(pid_t job) {
    siginfo_t info = {.si_pid = 0};
    if (waitid(P_PID, (id_t)job, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != job)
        return false;
    kill(-job, SIGKILL);
    waitpid(job, NULL, 0);
    return true;
}

/* Wait for the end of the program. True if the job has ended before, and is reaped. */
static bool tour_job_watch(pid_t job, int fd, int signals) {
    struct pollfd p[] = {{.fd = fd, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
    struct signalfd_siginfo info;
    bool gone = false;
    for (bool ends = false; !ends;) {
        p[1].revents = 0;
        if (poll(p, 2, -1) < 0 && errno != EINTR)
            break;
        ends = p[0].revents != 0;
        if (!p[1].revents || read(signals, &info, sizeof info) != (ssize_t)sizeof info)
            continue;
        gone = gone || (info.ssi_signo == SIGCHLD && tour_job_reap(job));
        ends |= info.ssi_signo == SIGTERM;
    }
    return gone;
}

/* ^C, as a user would end it; then the hard way. */
static void tour_job_kill(pid_t job) {
    kill(-job, SIGINT);
    for (unsigned ms = 0; ms < TOUR_JOB_END_MS; ms += TOUR_JOB_POLL_MS) {
        if (tour_job_reap(job))
            return;
        tour_job_sleep(TOUR_JOB_POLL_MS);
    }
    kill(-job, SIGKILL);
    waitpid(job, NULL, 0);
}

/* The agent's socket, and what lies beside it: an ended Python leaves them. */
static void tour_job_remove_endpoint(pid_t job) {
    int (*const beside[])(char *buf, size_t cap, const char *socket) = {
        endpoint_tcp_file, endpoint_header_file, endpoint_state_file};
    char path[ENDPOINT_PATH_MAX], other[ENDPOINT_PATH_MAX];
    if (endpoint_path(path, sizeof path, geteuid(), job) != 0)
        return;
    unlink(path);
    for (size_t i = 0; i < sizeof beside / sizeof beside[0]; i++)
        if (beside[i](other, sizeof other, path) == 0)
            unlink(other);
}

/* The guardian's life. `report` receives the pid of the job. */
static void tour_job_guard(const struct tour_job *j, pid_t parent, int fd, int report) {
    sigset_t set;
    setsid(); /* no key of the terminal reaches it, or the job */
    prctl(PR_SET_NAME, "tour-guardian");
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* something else may hold the other end of fd */
    signal(SIGHUP, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int signals = signalfd(-1, &set, SFD_CLOEXEC);
    pid_t job = signals >= 0 && getppid() == parent ? fork() : -1;
    if (job == 0)
        tour_job_exec(j);
    tour_job_redirect(-1);
    if (job > 0) {
        setpgid(job, job);
        bool reported = write(report, &job, sizeof job) == (ssize_t)sizeof job;
        if (!reported || !tour_job_watch(job, fd, signals))
            tour_job_kill(job);
        tour_job_remove_endpoint(job);
    }
    tour_job_remove_files(j);
    _exit(0);
}

static int tour_job_start_guardian(struct tour_job *j, struct err *e) {
    int held[2], report[2];
    pid_t parent = getpid();
    if (pipe2(held, O_CLOEXEC) != 0)
        return err_set_errno(e, ERR_FAILED, errno, "cannot make a pipe");
    if (pipe2(report, O_CLOEXEC) != 0) {
        int saved = errno;
        close(held[0]);
        close(held[1]);
        return err_set_errno(e, ERR_FAILED, saved, "cannot make a pipe");
    }
    j->guardian = fork();
    if (j->guardian == 0) {
        close(held[1]);
        close(report[0]);
        tour_job_guard(j, parent, held[0], report[1]);
    }
    int saved = errno;
    close(held[0]);
    close(report[1]);
    bool done = j->guardian > 0 && read(report[0], &j->pid, sizeof j->pid) == (ssize_t)sizeof j->pid;
    close(report[0]);
    j->fd = held[1];
    return done ? 0 : err_set_errno(e, ERR_FAILED, saved, "cannot start the tour's job");
}

/* ---- start and end ---- */

/* Does a line begin like that? */
static bool tour_job_has_line(const char *text, const char *begin) {
    for (const char *at = text; (at = strstr(at, begin)); at++)
        if (at == text || at[-1] == '\n')
            return true;
    return false;
}

static int tour_job_wait(struct tour_job *j, struct err *e) {
    char tail[TOUR_JOB_TAIL];
    for (unsigned ms = 0; ms < TOUR_JOB_STEP_MS; ms += TOUR_JOB_POLL_MS) {
        bool is_alive = kill(j->pid, 0) == 0;
        tour_job_read_output(j, tail, sizeof tail);
        if (is_alive && tour_job_has_line(tail, "step "))
            return 0;
        if (!is_alive) {
            size_t n = strlen(tail);
            while (n > 0 && tail[n - 1] == '\n')
                tail[--n] = '\0';
            const char *last = strrchr(tail, '\n');
            return err_set(e, ERR_FAILED, "the tour's job ended before its first step: %.300s",
                           last ? last + 1 : tail);
        }
        tour_job_sleep(TOUR_JOB_POLL_MS);
    }
    return err_set(e, ERR_FAILED, "the tour's job made no step within %d s", TOUR_JOB_STEP_MS / 1000);
}

static int tour_job_try(struct tour_job *j, struct err *e) {
    j->guardian = 0;
    j->fd = -1;
    output_say("probing-top: starting a job for the tour: %s, %s\n", j->python,
               j->has_torch ? "with torch" : "without torch");
    int rc = tour_job_write_files(j, e) == 0 ? tour_job_start_guardian(j, e) : -1;
    if (rc == 0) {
        progress_begin("waiting for its first step", 0, "^C ends it");
        rc = tour_job_wait(j, e);
        progress_end();
    }
    if (rc == 0)
        return 0;
    if (j->guardian <= 0)
        tour_job_remove_files(j);
    tour_job_end(j);
    return -1;
}

int tour_job_start(struct tour_job *j, struct err *e) {
    *j = (struct tour_job){.fd = -1};
    if (tour_job_find_python(j, e) != 0)
        return -1;
    if (tour_job_try(j, e) == 0)
        return 0;
    if (!j->has_torch)
        return -1;
    output_say("probing-top: %s\n", e->text); /* a broken torch, maybe */
    j->has_torch = false;
    return tour_job_try(j, e);
}

void tour_job_end(struct tour_job *j) {
    if (j->fd >= 0)
        close(j->fd);
    j->fd = -1;
    while (j->guardian > 0 && waitpid(j->guardian, NULL, 0) < 0 && errno == EINTR)
        ;
    j->guardian = 0;
}
