/* SPDX-License-Identifier: Apache-2.0 */
/* host_signals: see host_signals.h. */
#include "tui/host/host_signals.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/signalfd.h>
#include <unistd.h>

int host_signals_open(struct err *e) {
    static const int wanted[] = {SIGWINCH, SIGTSTP, SIGUSR2, SIGINT, SIGTERM, SIGHUP};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        sigaddset(&set, wanted[i]);
    (void)signal(SIGPIPE, SIG_IGN);
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0)
        return err_set_errno(e, ERR_FAILED, errno, "cannot block signals");
    int fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    return fd >= 0 ? fd : err_set_errno(e, ERR_FAILED, errno, "cannot watch signals");
}

int host_signals_next(int fd) {
    struct signalfd_siginfo info;
    return read(fd, &info, sizeof info) == (ssize_t)sizeof info ? (int)info.ssi_signo : 0;
}
