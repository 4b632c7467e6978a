/* SPDX-License-Identifier: Apache-2.0 */
/* relay_child: see relay_child.h. */
#include "client/hosts/relay_child.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "client/guard.h"

#define RELAY_CHILD_ERRORS ((size_t)64 * 1024)     /* bytes; more is not an error, but a flood */
#define RELAY_CHILD_END_NS (300 * CLOCK_NS_PER_MS) /* until it is asked harder */

/* In the child: its descriptors in their places, and no others. */
static void relay_child_begin(const int *fds, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    setsid();
    /* above the places, so that none is overwritten before it is used */
    int high[3];
    for (int i = 0; i < 3; i++)
        high[i] = fcntl(fds[i], F_DUPFD, 3);
    for (int i = 0; i < 3; i++)
        if (high[i] < 0 || dup2(high[i], i) < 0)
            _exit(1);
    guard_close_from(3);
}

/* In the child. */
static _Noreturn void relay_child_exec(char *const *words) {
    static const char failed[] = ": cannot be started: ";
    sigset_t none;
    for (int i = 1; i < NSIG; i++)
        signal(i, SIG_DFL);
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
    execvp(words[0], words);
    const char *why = errno == ENOENT ? "there is no such program" : "it is not a program for this machine";
    if (write(2, words[0], strlen(words[0])) < 0 || write(2, failed, sizeof failed - 1) < 0 ||
        write(2, why, strlen(why)) < 0)
        _exit(126);
    _exit(127);
}

static int relay_child_fork(struct relay_child *c, const int *fds, char *const *words, relay_serve_fn serve) {
    sigset_t all, kept;
    /* no handler of ours runs in the child */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &kept);
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        relay_child_begin(fds, parent);
        if (words)
            relay_child_exec(words);
        _exit(serve(0, 1) == 0 ? 0 : 1);
    }
    int saved = errno;
    pthread_sigmask(SIG_SETMASK, &kept, NULL);
    errno = saved;
    c->pid = child;
    return child < 0 ? -1 : 0;
}

static void relay_child_close(int *fd) {
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

int relay_child_start(struct relay_child *c, char *const *words, relay_serve_fn serve, struct err *e) {
    int in[2] = {-1, -1}, out[2] = {-1, -1}, errors[2] = {-1, -1};
    int rc =
        pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0 || pipe2(errors, O_CLOEXEC) != 0 ? -1 : 0;
    const int theirs[] = {in[0], out[1], errors[1]};
    if (rc == 0 && (fcntl(in[1], F_SETFL, O_NONBLOCK) != 0 || fcntl(out[0], F_SETFL, O_NONBLOCK) != 0 ||
                    fcntl(errors[0], F_SETFL, O_NONBLOCK) != 0))
        rc = -1;
    *c = (struct relay_child){.in = in[1], .out = out[0], .errors = errors[0]};
    if (rc == 0)
        rc = relay_child_fork(c, theirs, words, serve);
    int saved = errno;
    relay_child_close(&in[0]);
    relay_child_close(&out[1]);
    relay_child_close(&errors[1]);
    if (rc == 0)
        return 0;
    relay_child_close(&c->in);
    relay_child_close(&c->out);
    relay_child_close(&c->errors);
    c->pid = 0;
    return err_set_errno(e, ERR_FAILED, saved, "cannot start a relay");
}

int relay_child_read_errors(struct relay_child *c) {
    char data[4096];
    ssize_t n = c->errors >= 0 ? read(c->errors, data, sizeof data) : -1;
    if (n == 0)
        relay_child_close(&c->errors);
    if (n <= 0)
        return 0;
    size_t room = sizeof c->said - 1, add = (size_t)n < room ? (size_t)n : room;
    size_t kept = strlen(c->said);
    size_t stay = kept < room - add ? kept : room - add;
    memmove(c->said, c->said + kept - stay, stay);
    for (size_t i = 0; i < add; i++) {
        char ch = data[(size_t)n - add + i];
        c->said[stay + i] = ch ? ch : ' ';
    }
    c->said[stay + add] = '\0';
    c->n_errors += (size_t)n;
    return c->n_errors > RELAY_CHILD_ERRORS ? -1 : 0;
}

void relay_child_put_errors(const struct relay_child *c, char *buf, size_t cap) {
    char line[sizeof c->said];
    size_t n = strlen(c->said);
    while (n > 0 && strchr("\r\n \t", c->said[n - 1]))
        n--;
    size_t from = n;
    while (from > 0 && c->said[from - 1] != '\n')
        from--;
    memcpy(line, c->said + from, n - from);
    line[n - from] = '\0';
    text_sanitize(buf, cap, line);
}

void relay_child_end(struct relay_child *c, bool hard) {
    relay_child_close(&c->in);
    relay_child_close(&c->out);
    relay_child_close(&c->errors);
    if (!c->pid || c->until_ns)
        return;
    c->until_ns = clock_mono_ns() + RELAY_CHILD_END_NS;
    if (hard) {
        c->signal = SIGTERM;
        kill(-c->pid, c->signal);
    }
}

bool relay_child_is_over(struct relay_child *c) {
    if (!c->pid)
        return true;
    if (!c->until_ns)
        return false;
    siginfo_t done = {.si_pid = 0};
    if (waitid(P_PID, (id_t)c->pid, &done, WEXITED | WNOHANG | WNOWAIT) != 0 || done.si_pid == c->pid) {
        /* it may have left others behind, such as a shell's; as long as nobody waited for it the number is
         * nobody else's */
        if (done.si_pid == c->pid)
            kill(-c->pid, SIGKILL);
        waitpid(c->pid, NULL, WNOHANG);
        c->pid = 0;
        return true;
    }
    if (clock_mono_ns() < c->until_ns)
        return false;
    if (c->signal == SIGKILL) {
        c->pid = 0; /* it is stuck in the kernel, and ends when that lets go of it */
        return true;
    }
    c->signal = c->signal == SIGTERM ? SIGKILL : SIGTERM;
    kill(-c->pid, c->signal);
    c->until_ns = clock_mono_ns() + RELAY_CHILD_END_NS;
    return false;
}
