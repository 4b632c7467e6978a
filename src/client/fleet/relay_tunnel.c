/* SPDX-License-Identifier: Apache-2.0 */
/* relay_tunnel: see relay_tunnel.h. */
#include "client/fleet/relay_tunnel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "client/hosts/byte_pipe.h"
#include "client/fleet/report.h"
#include "client/guard.h"
#include "wire/pipe.h"
#include "wire/wire.h"

#define TUNNEL_START_NS (30 * CLOCK_NS_PER_S) /* for a relay to reach the agent */
#define TUNNEL_POLL_MS 200
#define TUNNEL_CONNECTIONS 16 /* at a time */
#define TUNNEL_ASK 1          /* number of the request */

/* How opening it went; less than PIPE_BUF. */
struct tunnel_report {
    int rc;
    char path[RELAY_TUNNEL_PATH];
    struct err error;
};

_Static_assert(sizeof(struct tunnel_report) <= 4096, "the report fits into one write to a pipe");

/* ---- a connection to the agent ---- */

static int tunnel_write(int fd, const char *data, size_t len) {
    for (size_t at = 0; at < len;) {
        ssize_t n = write(fd, data + at, len - at);
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return -1;
        if (n < 0 && poll(&p, 1, TUNNEL_POLL_MS) < 0 && errno != EINTR)
            return -1;
        at += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

static int tunnel_ask(const struct relay_tunnel *t, int fd) {
    struct wire_rows_ask ask = {
        .table = REPORT_TO,
        .args = {{.key = "pid", .number = t->pid}, {.key = "attach", .number = t->attach}},
        .n_args = 2};
    struct strbuf message, bytes;
    strbuf_init(&message, WIRE_MAX_MESSAGE);
    strbuf_init(&bytes, 0);
    int rc =
        wire_put_rows_ask(&message, TUNNEL_ASK, &ask) != 0 || pipe_put(&bytes, message.data, message.len) != 0
            ? -1
            : tunnel_write(fd, bytes.data, bytes.len);
    strbuf_fini(&message);
    strbuf_fini(&bytes);
    return rc;
}

/* What it was said. 0, or -1 with the error. */
static int tunnel_take_answer(const void *data, size_t len, struct err *e) {
    enum wire_error code;
    struct wire_message *m = wire_parse(data, len, e);
    const char *why = m ? wire_message_error(m, &code) : NULL;
    char clean[400];
    int rc = m ? 0 : -1;
    if (m && (wire_message_type(m) != WIRE_RESPONSE || wire_message_id(m) != TUNNEL_ASK))
        rc = err_set(e, ERR_FAILED, "it sent what it was not asked for");
    else if (why) {
        text_sanitize(clean, sizeof clean, why);
        rc = err_set(e, ERR_ATTACH, "%s", clean);
    }
    wire_message_free(m);
    return rc;
}

/* Read until the answer is there. */
static int tunnel_wait(const struct relay_tunnel *t, struct relay_child *c, struct pipe_reader *in,
                       struct err *e) {
    uint64_t until = clock_mono_ns() + TUNNEL_START_NS;
    const void *message;
    char data[4096];
    size_t len;
    bool asked = false;
    while (clock_mono_ns() < until) {
        struct pollfd fds[] = {{.fd = c->out, .events = POLLIN}, {.fd = c->errors, .events = POLLIN}};
        if (poll(fds, 2, TUNNEL_POLL_MS) < 0 && errno != EINTR)
            return err_set_errno(e, ERR_FAILED, errno, "cannot wait for a relay");
        if (relay_child_read_errors(c) != 0)
            return err_set(e, ERR_ATTACH, "it prints errors without an end");
        ssize_t n = fds[0].revents ? read(c->out, data, sizeof data) : -1;
        if (n == 0 || (n < 0 && fds[0].revents && errno != EAGAIN && errno != EINTR))
            return err_set(e, ERR_ATTACH, "it has ended");
        if (n < 0)
            continue;
        if (pipe_reader_add(in, data, (size_t)n) != 0)
            return err_set(e, ERR_FAILED, "out of memory for an answer");
        int rc = pipe_reader_next(in, &message, &len, e);
        if (rc > 0)
            return tunnel_take_answer(message, len, e);
        if (rc < 0)
            return -1;
        if (in->is_begun && !asked && tunnel_ask(t, c->in) != 0)
            return err_set(e, ERR_ATTACH, "it has ended");
        asked = in->is_begun;
    }
    return err_set(e, ERR_ATTACH, "it did not answer in time");
}

/* Start a relay that is a pipe to the agent. 0, or -1 with the error. */
static int tunnel_connect(const struct relay_tunnel *t, const struct relay_words *words,
                          struct relay_child *c, struct err *e) {
    struct pipe_reader in;
    struct err why = {0};
    char errors[sizeof c->said];
    if (relay_child_start(c, words->n ? words->words : NULL, t->reach->serve, e) != 0)
        return -1;
    pipe_reader_init(&in, false);
    int rc = words->script ? tunnel_write(c->in, words->script, strlen(words->script)) : 0;
    if (rc != 0)
        err_set(&why, ERR_ATTACH, "it has ended");
    else
        rc = tunnel_wait(t, c, &in, &why);
    pipe_reader_fini(&in);
    if (rc == 0)
        return 0;
    relay_child_put_errors(c, errors, sizeof errors);
    relay_child_end(c, true);
    return err_set(e, ERR_ATTACH, "%.96s: %.300s%s%.160s", t->host, err_text(&why), errors[0] ? ": " : "",
                   errors);
}

/* Carry what comes through a connection, in a child of its own. */
static void tunnel_carry(const struct relay_tunnel *t, const struct relay_words *words, struct relay_child *c,
                         int fd) {
    struct err e;
    if (!c->pid && tunnel_connect(t, words, c, &e) != 0)
        _exit(1);
    byte_pipe_run((struct byte_end){c->out, c->in}, (struct byte_end){fd, fd}, c->errors);
    relay_child_end(c, false);
    while (!relay_child_is_over(c))
        nanosleep(&(struct timespec){.tv_nsec = (long)CLOCK_NS_PER_MS}, NULL);
    _exit(0);
}

/* ---- the process that listens ---- */

static int tunnel_listen(char path[RELAY_TUNNEL_PATH], struct err *e) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const char *run = getenv("XDG_RUNTIME_DIR");
    struct stat st;
    bool mine = run && run[0] == '/' && strlen(run) < 64 && stat(run, &st) == 0 && st.st_uid == geteuid();
    char folder[96];
    snprintf(folder, sizeof folder, "%s/probing-to-XXXXXX", mine ? run : "/tmp");
    if (!mkdtemp(folder))
        return err_set_errno(e, ERR_FAILED, errno, "cannot make a folder for a socket in %s",
                             mine ? run : "/tmp");
    snprintf(path, RELAY_TUNNEL_PATH, "%s/sock", folder);
    snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && bind(fd, (const struct sockaddr *)&at, sizeof at) == 0 &&
        listen(fd, TUNNEL_CONNECTIONS) == 0)
        return fd;
    err_set_errno(e, ERR_FAILED, errno, "cannot listen at %s", path);
    if (fd >= 0)
        close(fd);
    unlink(path);
    rmdir(folder);
    return -1;
}

static void tunnel_remove(const char *path) {
    char folder[RELAY_TUNNEL_PATH];
    unlink(path);
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    rmdir(folder);
}

/* Close what leads to a relay that is another process's, or has ended: nobody signals its number then. */
static void tunnel_drop(struct relay_child *c) {
    c->pid = 0;
    relay_child_end(c, false);
}

/* Accept until the owner has ended. */
static void tunnel_serve(const struct relay_tunnel *t, const struct relay_words *words,
                         struct relay_child *first, int listener, int owner) {
    struct relay_child none = {.in = -1, .out = -1, .errors = -1};
    pid_t relay = first->pid; /* until it ends; connections are counted without it */
    size_t running = 0;
    for (;;) {
        struct pollfd fds[] = {{.fd = running < TUNNEL_CONNECTIONS ? listener : -1, .events = POLLIN},
                               {.fd = owner, .events = POLLIN}};
        int n = poll(fds, 2, TUNNEL_POLL_MS);
        for (pid_t ended; (ended = waitpid(-1, NULL, WNOHANG)) > 0;)
            if (ended == relay) {
                tunnel_drop(first);
                relay = 0;
            } else
                running -= running > 0;
        if ((owner >= 0 && fds[1].revents) || (owner < 0 && kill(t->owner, 0) != 0))
            return;
        int fd = n > 0 && fds[0].revents ? accept4(listener, NULL, NULL, SOCK_CLOEXEC) : -1;
        if (fd < 0)
            continue;
        pid_t self = getpid(), child = fork();
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != self)
                _exit(1);
            close(listener);
            tunnel_carry(t, words, first->pid ? first : &none, fd);
        }
        running += child > 0;
        close(fd);
        /* it is the child's now; its process stays ours, to be waited for */
        if (child > 0)
            tunnel_drop(first);
    }
}

/* In the child. */
static _Noreturn void tunnel_run(const struct relay_tunnel *t, const struct relay_words *words, int answer) {
    struct tunnel_report report = {.rc = 0};
    struct relay_child first = {.in = -1, .out = -1, .errors = -1};
    sigset_t none;
    setsid();
    for (int i = 1; i < NSIG; i++)
        signal(i, SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
    guard_drop_files(answer);
    int owner = (int)syscall(SYS_pidfd_open, t->owner, 0);
    int listener = tunnel_listen(report.path, &report.error);
    report.rc = listener < 0 ? -1 : tunnel_connect(t, words, &first, &report.error);
    bool ok = write(answer, &report, sizeof report) == (ssize_t)sizeof report && report.rc == 0;
    close(answer);
    if (ok)
        tunnel_serve(t, words, &first, listener, owner);
    if (listener >= 0)
        tunnel_remove(report.path);
    relay_child_end(&first, true);
    while (!relay_child_is_over(&first))
        nanosleep(&(struct timespec){.tv_nsec = (long)CLOCK_NS_PER_MS}, NULL);
    /* connections end with this process */
    _exit(0);
}

int relay_tunnel_open(const struct relay_tunnel *t, char path[RELAY_TUNNEL_PATH], struct err *e) {
    struct tunnel_report report;
    int fds[2] = {-1, -1};
    struct relay_words *words = malloc(sizeof *words);
    if (!words)
        return err_set(e, ERR_FAILED, "out of memory for a command");
    if (relay_via_words(&t->reach->via, t->host, words, e) != 0) {
        free(words);
        return -1;
    }
    pid_t child = pipe2(fds, O_CLOEXEC) == 0 ? fork() : -1;
    int saved = errno;
    if (child == 0)
        tunnel_run(t, words, fds[1]);
    free(words);
    if (fds[1] >= 0)
        close(fds[1]);
    ssize_t n = child > 0 ? read(fds[0], &report, sizeof report) : -1;
    if (fds[0] >= 0)
        close(fds[0]);
    if (child < 0)
        return err_set_errno(e, ERR_FAILED, saved, "cannot start a relay");
    if (n != (ssize_t)sizeof report)
        return err_set(e, ERR_FAILED, "the process that reaches %.96s has ended without an answer", t->host);
    if (report.rc != 0) {
        waitpid(child, NULL, 0);
        *e = report.error;
        return -1;
    }
    snprintf(path, RELAY_TUNNEL_PATH, "%s", report.path);
    return 0;
}
