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
#include <sys/signalfd.h>
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
#include "client/session/session.h"
#include "client/target/tunnel_reason.h"
#include "wire/pipe.h"
#include "wire/wire.h"

#define TUNNEL_START_NS (SESSION_TUNNEL_S * CLOCK_NS_PER_S) /* for a relay to reach the agent */
#define TUNNEL_POLL_MS 200
#define TUNNEL_CONNECTIONS 16 /* at a time */
#define TUNNEL_ASK 1          /* number of the request */
#define TUNNEL_GONE 2         /* exit status of what carries a connection: the process there has ended */

/* How opening it went; less than PIPE_BUF. */
struct tunnel_report {
    int rc;
    char path[RELAY_TUNNEL_PATH];
    struct err error;
};

_Static_assert(sizeof(struct tunnel_report) <= 4096, "the report fits into one write to a pipe");

/* ---- a connection to the agent ---- */

/* How one is made. */
struct tunnel_try {
    int client;   /* whom it is for; -1 nobody yet */
    bool is_left; /* who has left meanwhile */
    bool is_gone; /* there is no such process on the host */
};

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
static int tunnel_take_answer(const void *data, size_t len, struct tunnel_try *how, struct err *e) {
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
        how->is_gone = code == WIRE_E_BAD_PARAMS;
    }
    wire_message_free(m);
    return rc;
}

/* Read until the answer is there, or whom it is for has left. */
static int tunnel_wait(const struct relay_tunnel *t, struct relay_child *c, struct tunnel_try *how,
                       struct pipe_reader *in, struct err *e) {
    uint64_t until = clock_mono_ns() + TUNNEL_START_NS;
    const void *message;
    char data[4096];
    size_t len;
    bool asked = false;
    while (clock_mono_ns() < until) {
        struct pollfd fds[] = {{.fd = c->out, .events = POLLIN},
                               {.fd = c->errors, .events = POLLIN},
                               {.fd = how->client, .events = POLLRDHUP}};
        if (poll(fds, 3, TUNNEL_POLL_MS) < 0 && errno != EINTR)
            return err_set_errno(e, ERR_FAILED, errno, "cannot wait for a relay");
        if ((how->is_left = fds[2].revents != 0))
            return err_set(e, ERR_ATTACH, "nobody waits for it");
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
            return tunnel_take_answer(message, len, how, e);
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
                          struct relay_child *c, struct tunnel_try *how, struct err *e) {
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
        rc = tunnel_wait(t, c, how, &in, &why);
    pipe_reader_fini(&in);
    if (rc == 0)
        return 0;
    relay_child_put_errors(c, errors, sizeof errors);
    relay_child_end(c, true);
    return err_set(e, ERR_ATTACH, "%.96s: %.300s%s%.160s", t->host, err_text(&why), errors[0] ? ": " : "",
                   errors);
}

/* Carry what comes through a connection, in a child of its own. */
static void tunnel_carry(const struct relay_tunnel *t, const struct relay_words *words, const char *path,
                         struct relay_child *c, int fd) {
    struct err e;
    struct tunnel_try how = {.client = fd};
    if (!c->pid && tunnel_connect(t, words, c, &how, &e) != 0) {
        if (!how.is_left)
            tunnel_reason_put(path, err_text(&e));
        _exit(how.is_gone ? TUNNEL_GONE : 1);
    }
    tunnel_reason_remove(path);
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
    tunnel_reason_remove(path);
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    rmdir(folder);
}

/* Close what leads to a relay that is another process's, or has ended: nobody signals its number then. */
static void tunnel_drop(struct relay_child *c) {
    c->pid = 0;
    relay_child_end(c, false);
}

/* The connections of a tunnel. */
struct tunnel_connections {
    /* Those that have sent nothing so far. A relay is started only for who sends something: others look whether
     * anybody listens, and leave. */
    int silent[TUNNEL_CONNECTIONS];
    size_t n_silent;
    size_t n_carried; /* each by a child of its own */
    pid_t relay;      /* the first relay, which is a child, too; 0 it has ended */
    int ended;        /* readable when a child has ended; -1: that has to be looked for */
};

/* From here on the end of a child is read from a descriptor: an idle tunnel never wakes up. */
static int tunnel_watch_children(void) {
    sigset_t ended;
    sigemptyset(&ended);
    sigaddset(&ended, SIGCHLD);
    pthread_sigmask(SIG_BLOCK, &ended, NULL);
    return signalfd(-1, &ended, SFD_NONBLOCK | SFD_CLOEXEC);
}

/* 1: it has sent something; 0: not yet; -1: it has left. */
static int tunnel_peek(int fd) {
    char byte;
    ssize_t n = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n > 0 ? 1 : n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

/* Wait for children that have ended. True: the process on the host has ended. */
static bool tunnel_reap(struct tunnel_connections *t, struct relay_child *first) {
    struct signalfd_siginfo seen;
    bool gone = false;
    int status;
    while (t->ended >= 0 && read(t->ended, &seen, sizeof seen) > 0)
        continue;
    for (pid_t child; (child = waitpid(-1, &status, WNOHANG)) > 0;)
        if (child == t->relay) {
            tunnel_drop(first);
            t->relay = 0;
        } else {
            t->n_carried -= t->n_carried > 0;
            gone |= WIFEXITED(status) && WEXITSTATUS(status) == TUNNEL_GONE;
        }
    return gone;
}

/* Give a connection to a child. */
static void tunnel_start_carrying(const struct relay_tunnel *t, const struct relay_words *words,
                                  const char *path, struct tunnel_connections *all, struct relay_child *first,
                                  int listener, int fd) {
    struct relay_child none = {.in = -1, .out = -1, .errors = -1};
    pid_t self = getpid(), child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != self)
            _exit(1);
        close(listener);
        /* whose end nobody would see otherwise */
        for (size_t i = 0; i < all->n_silent; i++)
            close(all->silent[i]);
        tunnel_carry(t, words, path, first->pid ? first : &none, fd);
    }
    if (child < 0)
        return;
    all->n_carried++;
    /* it is the child's now; its process stays ours, to be waited for */
    tunnel_drop(first);
}

/* Accept until the owner has ended, or wants it no longer, or the process on the host has ended. */
static void tunnel_serve(const struct relay_tunnel *t, const struct relay_words *words, const char *path,
                         struct relay_child *first, int listener, int owner) {
    struct tunnel_connections all = {.relay = first->pid, .ended = tunnel_watch_children()};
    int wait_ms = owner >= 0 && all.ended >= 0 ? -1 : TUNNEL_POLL_MS;
    while (!tunnel_reap(&all, first)) {
        bool full = all.n_carried + all.n_silent >= TUNNEL_CONNECTIONS;
        struct pollfd fds[4 + TUNNEL_CONNECTIONS] = {{.fd = full ? -1 : listener, .events = POLLIN},
                                                     {.fd = owner, .events = POLLIN},
                                                     {.fd = t->end_fd, .events = POLLIN},
                                                     {.fd = all.ended, .events = POLLIN}};
        for (size_t i = 0; i < all.n_silent; i++)
            fds[4 + i] = (struct pollfd){.fd = all.silent[i], .events = POLLIN | POLLRDHUP};
        int n = poll(fds, 4 + all.n_silent, wait_ms);
        if (fds[1].revents || fds[2].revents || (owner < 0 && kill(t->owner, 0) != 0))
            return;
        for (size_t i = all.n_silent; n > 0 && i-- > 0;) {
            int fd = all.silent[i], sent = tunnel_peek(fd);
            if (sent == 0)
                continue;
            all.silent[i] = all.silent[--all.n_silent];
            if (sent > 0)
                tunnel_start_carrying(t, words, path, &all, first, listener, fd);
            close(fd);
        }
        int fd = n > 0 && fds[0].revents ? accept4(listener, NULL, NULL, SOCK_CLOEXEC) : -1;
        if (fd >= 0)
            all.silent[all.n_silent++] = fd;
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
    guard_drop_files(answer, t->end_fd);
    int owner = (int)syscall(SYS_pidfd_open, t->owner, 0);
    int listener = tunnel_listen(report.path, &report.error);
    struct tunnel_try how = {.client = -1};
    report.rc = listener < 0 ? -1 : tunnel_connect(t, words, &first, &how, &report.error);
    bool ok = write(answer, &report, sizeof report) == (ssize_t)sizeof report && report.rc == 0;
    close(answer);
    if (ok)
        tunnel_serve(t, words, report.path, &first, listener, owner);
    if (listener >= 0)
        tunnel_remove(report.path);
    relay_child_end(&first, true);
    while (!relay_child_is_over(&first))
        nanosleep(&(struct timespec){.tv_nsec = (long)CLOCK_NS_PER_MS}, NULL);
    /* connections end with this process */
    _exit(0);
}

int relay_tunnel_begin(const struct relay_tunnel *t, struct relay_tunnel_start *s, struct err *e) {
    int fds[2] = {-1, -1};
    struct relay_words *words = malloc(sizeof *words);
    *s = (struct relay_tunnel_start){.fd = -1};
    snprintf(s->host, sizeof s->host, "%s", t->host);
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
    s->child = child;
    s->fd = fds[0];
    if (child > 0)
        return 0;
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
    return err_set_errno(e, ERR_FAILED, saved, "cannot start a relay");
}

/* Wait until the pipe is readable. */
static bool tunnel_await(int fd, uint64_t until_ns) {
    for (;;) {
        uint64_t now = clock_mono_ns();
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int rc = poll(&p, 1, now < until_ns ? (int)((until_ns - now) / CLOCK_NS_PER_MS) + 1 : 0);
        if (rc >= 0 || errno != EINTR)
            return rc > 0;
    }
}

int relay_tunnel_end(struct relay_tunnel_start *s, uint64_t until_ns, struct target_address *addr,
                     struct err *e) {
    struct tunnel_report report;
    bool is_done = tunnel_await(s->fd, until_ns);
    ssize_t n = is_done ? read(s->fd, &report, sizeof report) : -1;
    /* from here on its answer would find nobody, and it ends by itself */
    close(s->fd);
    s->fd = -1;
    if (!is_done)
        return err_set(e, ERR_ATTACH, "%s: it did not answer in time", s->host);
    if (n != (ssize_t)sizeof report)
        return err_set(e, ERR_FAILED, "the process that reaches %s has ended without an answer", s->host);
    if (report.rc != 0) {
        waitpid(s->child, NULL, 0);
        *e = report.error;
        return -1;
    }
    *addr = (struct target_address){.tunnel = s->child};
    snprintf(addr->path, sizeof addr->path, "%s", report.path);
    snprintf(addr->host, sizeof addr->host, "%s", s->host);
    return 0;
}

int relay_tunnel_open(const struct relay_tunnel *t, struct target_address *addr, struct err *e) {
    struct relay_tunnel_start s;
    if (relay_tunnel_begin(t, &s, e) != 0)
        return -1;
    return relay_tunnel_end(&s, clock_mono_ns() + RELAY_TUNNEL_S * CLOCK_NS_PER_S, addr, e);
}
