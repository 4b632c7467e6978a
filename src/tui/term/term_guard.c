/* SPDX-License-Identifier: Apache-2.0 */
/* term_guard: see term_guard.h. */
#include "tui/term/term_guard.h"

#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <termios.h>
#include <unistd.h>

#define GUARD_STACK ((size_t)64 * 1024)

const char term_guard_reset[] = "\033[?2026l\033[?2004l\033[?1006l\033[?1003l\033[?1002l\033[?1000l\033[?"
                                "1049l\033[?25h\033[?1l\033>\033[0m\r";

static const int guard_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGQUIT};
#define GUARD_SIGNALS (sizeof guard_signals / sizeof guard_signals[0])

static struct {
    volatile sig_atomic_t armed;
    int fd, out_fd;
    bool is_tty;
    struct termios saved;
    struct sigaction before[GUARD_SIGNALS];
    void *stack;
    int held_stderr; /* where stderr went before; -1: it is not collected */
    int stderr_file;
} guard = {.fd = -1, .out_fd = -1, .held_stderr = -1, .stderr_file = -1};

static void guard_write(int fd, const char *s, size_t n) {
    ssize_t rc = write(fd, s, n);
    (void)rc;
}

static void guard_crash(int sig) {
    static const char message[] =
        "probing-top: it crashed; the terminal is restored, the target is unharmed\r\n";
    if (guard.armed) {
        guard.armed = 0;
        guard_write(guard.out_fd, term_guard_reset, strlen(term_guard_reset));
        if (guard.is_tty)
            tcsetattr(guard.fd, TCSANOW, &guard.saved);
        if (guard.held_stderr >= 0)
            dup2(guard.held_stderr, STDERR_FILENO);
        guard_write(STDERR_FILENO, message, sizeof message - 1);
    }
    signal(sig, SIG_DFL);
    raise(sig);
}

/* exit() was called somewhere below. */
static void guard_at_exit(void) {
    if (!guard.armed)
        return;
    guard.armed = 0;
    guard_write(guard.out_fd, term_guard_reset, strlen(term_guard_reset));
    term_guard_set_saved();
    term_guard_release_stderr();
}

void term_guard_arm(int fd, int out_fd) {
    static bool registered;
    guard.fd = fd;
    guard.out_fd = out_fd;
    guard.is_tty = tcgetattr(fd, &guard.saved) == 0;
    guard.stack = malloc(GUARD_STACK);
    if (guard.stack) {
        stack_t ss = {.ss_sp = guard.stack, .ss_size = GUARD_STACK};
        sigaltstack(&ss, NULL);
    }
    struct sigaction sa = {.sa_handler = guard_crash, .sa_flags = SA_ONSTACK | SA_RESETHAND | SA_NODEFER};
    sigemptyset(&sa.sa_mask);
    for (size_t i = 0; i < GUARD_SIGNALS; i++)
        sigaction(guard_signals[i], &sa, &guard.before[i]);
    if (!registered)
        registered = atexit(guard_at_exit) == 0;
    guard.armed = 1;
}

void term_guard_disarm(void) {
    if (!guard.armed)
        return;
    guard.armed = 0;
    for (size_t i = 0; i < GUARD_SIGNALS; i++)
        sigaction(guard_signals[i], &guard.before[i], NULL);
    stack_t off = {.ss_flags = SS_DISABLE};
    sigaltstack(&off, NULL);
    free(guard.stack);
    guard.stack = NULL;
}

bool term_guard_set_raw(void) {
    if (!guard.is_tty)
        return false;
    struct termios raw = guard.saved;
    raw.c_iflag &= ~(tcflag_t)(ICRNL | INLCR | IGNCR | IXON | ISTRIP);
    raw.c_oflag &= ~(tcflag_t)(ONLCR);
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ECHONL | IEXTEN);
    raw.c_lflag |= ISIG;
    /* ctrl-c is a key, in order with the others: as a signal it would overtake and discard them. */
    raw.c_cc[VINTR] = _POSIX_VDISABLE;
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    return tcsetattr(guard.fd, TCSANOW, &raw) == 0;
}

void term_guard_set_saved(void) {
    if (guard.is_tty)
        tcsetattr(guard.fd, TCSANOW, &guard.saved);
}

void term_guard_keep_stderr(void) {
    if (guard.held_stderr >= 0 || !isatty(STDERR_FILENO))
        return;
    guard.stderr_file = memfd_create("stderr", MFD_CLOEXEC);
    if (guard.stderr_file < 0)
        return;
    guard.held_stderr = dup(STDERR_FILENO);
    if (guard.held_stderr >= 0)
        dup2(guard.stderr_file, STDERR_FILENO);
}

/* What a terminal would obey becomes '?', byte by byte, because the program may be ending by a
 * signal. A C1 control in UTF-8 begins with 0xc2; `*before`: the byte before these. */
static void guard_clean(char *text, size_t n, unsigned char *before) {
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f || (*before == 0xc2 && c >= 0x80 && c < 0xa0))
            text[i] = '?';
        *before = c;
    }
}

void term_guard_release_stderr(void) {
    if (guard.held_stderr >= 0) {
        dup2(guard.held_stderr, STDERR_FILENO);
        close(guard.held_stderr);
    }
    guard.held_stderr = -1;
    if (guard.stderr_file < 0)
        return;
    char buf[4096];
    unsigned char before = 0;
    ssize_t n;
    lseek(guard.stderr_file, 0, SEEK_SET);
    while ((n = read(guard.stderr_file, buf, sizeof buf)) > 0) {
        guard_clean(buf, (size_t)n, &before);
        guard_write(STDERR_FILENO, buf, (size_t)n);
    }
    close(guard.stderr_file);
    guard.stderr_file = -1;
}
