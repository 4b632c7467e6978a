/* SPDX-License-Identifier: Apache-2.0 */
/* attach: see attach.h. */
#include "tui/host/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define ATTACH_LONGEST_MS 15000 /* then the helper is abandoned, with a message */

/* The message in the pipe: less than PIPE_BUF, so it arrives whole or not at all. */
struct attach_answer {
    int rc;
    struct target_address addr;
    struct err error;
};

_Static_assert(sizeof(struct attach_answer) <= 4096, "the answer fits into one write to a pipe");

/* The helper process. */
static void attach_help(const char *target, const struct relay_tunnel *there,
                        const struct target_options *how, int fd) {
    struct attach_answer answer;
    sigset_t none;
    memset(&answer, 0, sizeof answer);
    setpgid(0, 0);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0)
        for (int i = 0; i < 3; i++)
            dup2(null, i);
    answer.rc = there ? relay_tunnel_open(there, &answer.addr, &answer.error)
                      : target_resolve(target, &answer.addr, &answer.error);
    if (answer.rc == 0)
        answer.rc = target_reach(&answer.addr, how, &answer.error);
    ssize_t n = write(fd, &answer, sizeof answer);
    _exit(n == (ssize_t)sizeof answer ? 0 : 1);
}

static void attach_close(int fd) {
    if (fd >= 0)
        close(fd);
}

int attach_start(struct attach *a, const char *target, const struct relay_tunnel *there,
                 const struct target_options *how, struct err *e) {
    struct relay_tunnel tunnel = there ? *there : (struct relay_tunnel){.reach = NULL};
    int fds[2] = {-1, -1}, end[2] = {-1, -1};
    bool ok = pipe2(fds, O_CLOEXEC) == 0 && (!there || pipe2(end, O_CLOEXEC) == 0);
    pid_t pid = ok ? fork() : -1;
    int error = errno;
    if (pid == 0) {
        close(fds[0]);
        attach_close(end[1]); /* only this program's is to count */
        tunnel.end_fd = end[0];
        attach_help(target, there ? &tunnel : NULL, how, fds[1]);
    }
    attach_close(fds[1]);
    attach_close(end[0]);
    *a = (struct attach){.helper = pid, .fd = fds[0], .tunnel = end[1]};
    if (pid > 0)
        return 0;
    attach_abandon(a);
    return err_set_errno(e, ERR_FAILED, error, "cannot start attaching");
}

/* Wait until the pipe is readable; false: that took too long. */
static bool attach_wait(int fd) {
    uint64_t end = clock_mono_ns() + ATTACH_LONGEST_MS * CLOCK_NS_PER_MS;
    for (;;) {
        uint64_t now = clock_mono_ns();
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int rc = now < end ? poll(&p, 1, (int)((end - now) / CLOCK_NS_PER_MS) + 1) : 0;
        if (rc > 0)
            return true;
        if (rc == 0 || errno != EINTR)
            return false;
    }
}

/* The answer of the helper. 0, or -1 with the error. */
static int attach_take(struct attach *a, struct target_address *addr, struct err *e) {
    struct attach_answer answer;
    bool in_time = attach_wait(a->fd);
    ssize_t n = in_time ? read(a->fd, &answer, sizeof answer) : -1;
    waitpid(a->helper, NULL, in_time ? 0 : WNOHANG);
    if (!in_time)
        return err_set(e, ERR_ATTACH, "attaching takes more than %d s: try again, or see 'probing status'",
                       ATTACH_LONGEST_MS / 1000);
    if (n != (ssize_t)sizeof answer)
        return err_set(e, ERR_FAILED, "the helper that attaches ended without an answer");
    if (answer.rc != 0) {
        answer.error.text[sizeof answer.error.text - 1] = '\0';
        *e = answer.error;
        return -1;
    }
    *addr = answer.addr;
    return 0;
}

void attach_abandon(struct attach *a) {
    if (a->helper) {
        attach_close(a->fd);
        attach_close(a->tunnel);
    }
    *a = (struct attach){.fd = -1, .tunnel = -1};
}

int attach_finish(struct attach *a, struct target_address *addr, int *tunnel, struct err *e) {
    int rc = attach_take(a, addr, e);
    if (rc == 0 && tunnel) {
        *tunnel = a->tunnel;
        a->tunnel = -1;
    }
    attach_abandon(a);
    return rc;
}
