/* SPDX-License-Identifier: Apache-2.0 */
/* symbols_helper: see symbols_helper.h. posix_spawn(3), unix(7), cmsg(3). */
#include "client/symbols/symbols_helper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/procfs.h"
#include "client/symbols/symbols_serve.h"

#define HELPER_MAX_DEATHS 3
#define HELPER_ANSWER_S 10 /* wall-clock; the limit of CPU time is lower */
/* for all answers about one file; recovers at a tenth of the time that passes */
#define HELPER_FILE_S 8
#define HELPER_BUFFER (512 * 1024)
#define HELPER_NOBODY 65534

struct symbols_helper {
    pid_t target;
    pid_t pid; /* 0: none runs */
    int fd;
    unsigned number, deaths;
    bool has_note;
    char note[320];
    char packet[SYMBOLS_ANSWER_MAX + 1]; /* one more, to notice one that is too long */
};

static bool helper_may_start; /* this program knows the mode */

void symbols_helper_begin(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[0], SYMBOLS_SERVE_NAME) == 0)
        symbols_serve(argv[1], argv[2]);
    helper_may_start = true;
}

struct symbols_helper *symbols_helper_new(pid_t target) {
    struct symbols_helper *h = calloc(1, sizeof *h);
    if (h) {
        h->target = target;
        h->fd = -1;
    }
    return h;
}

/* End it. Returns its waitpid status. */
static int helper_end(struct symbols_helper *h) {
    int status = 0;
    if (h->fd >= 0)
        close(h->fd);
    h->fd = -1;
    if (h->pid > 0) {
        /* One that has ended by itself keeps its reason. */
        kill(h->pid, SIGKILL);
        while (waitpid(h->pid, &status, 0) < 0 && errno == EINTR)
            ;
    }
    h->pid = 0;
    return status;
}

void symbols_helper_free(struct symbols_helper *h) {
    if (!h)
        return;
    helper_end(h);
    free(h);
}

void symbols_helper_adopt(struct symbols_helper *h, int fd) {
    helper_end(h);
    h->fd = fd;
    h->number++;
}

const char *symbols_helper_take_note(struct symbols_helper *h) {
    bool has_note = h->has_note;
    h->has_note = false;
    return has_note ? h->note : NULL;
}

static void helper_say(struct symbols_helper *h, const char *what, const char *path) {
    h->has_note = true;
    snprintf(h->note, sizeof h->note, "native names: the helper %s on %.200s%s", what, path ? path : "a name",
             h->deaths < HELPER_MAX_DEATHS ? "" : "; no other is started");
}

/* ---- starting ---- */

/* In the child, which shares our memory until it becomes another program, as in posix_spawn. 0,
 * or an error number. */
static int helper_spawn(struct symbols_helper *h, int theirs) {
    char uid[24] = "-1", gid[24] = "-1", library_path[4096];
    char *argv[] = {(char[]){SYMBOLS_SERVE_NAME}, uid, gid, NULL};
    char *env[] = {NULL, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t all, none;
    struct procfs_status who = {.uid = HELPER_NOBODY, .gid = HELPER_NOBODY};
    if (geteuid() == 0) {
        if (h->target > 0 && procfs_read_status(h->target, 0, &who) != 0)
            who.uid = who.gid = HELPER_NOBODY;
        snprintf(uid, sizeof uid, "%lld", (long long)who.uid);
        snprintf(gid, sizeof gid, "%lld", (long long)who.gid);
    }
    /* The place of our own libraries, and nothing else: no debuginfod server either. */
    const char *path = getenv("LD_LIBRARY_PATH");
    if (path &&
        (size_t)snprintf(library_path, sizeof library_path, "LD_LIBRARY_PATH=%s", path) < sizeof library_path)
        env[0] = library_path;
    sigfillset(&all);
    sigemptyset(&none);
    int rc = posix_spawn_file_actions_init(&files);
    if (rc != 0)
        return rc;
    rc = posix_spawnattr_init(&how);
    if (rc == 0) {
        rc = posix_spawn_file_actions_adddup2(&files, theirs, SYMBOLS_SOCKET);
        posix_spawnattr_setsigdefault(&how, &all);
        posix_spawnattr_setsigmask(&how, &none);
        /* Without a terminal: ^C is for us. */
        posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
        rc = rc == 0 ? posix_spawn(&h->pid, "/proc/self/exe", &files, &how, argv, env) : rc;
        posix_spawnattr_destroy(&how);
    }
    posix_spawn_file_actions_destroy(&files);
    if (rc != 0)
        h->pid = 0;
    return rc;
}

unsigned symbols_helper_running(const struct symbols_helper *h) { return h->fd >= 0 ? h->number : 0; }

unsigned symbols_helper_start(struct symbols_helper *h) {
    int ends[2], size = HELPER_BUFFER;
    if (h->fd >= 0)
        return h->number;
    if (!helper_may_start || h->deaths >= HELPER_MAX_DEATHS ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return 0;
    /* A different number: posix_spawn would leave a descriptor that is put in its own place
     * closed in the child. */
    int theirs = fcntl(ends[1], F_DUPFD_CLOEXEC, SYMBOLS_SOCKET + 1);
    close(ends[1]);
    setsockopt(theirs, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    int rc = theirs < 0 ? errno : helper_spawn(h, theirs);
    if (theirs >= 0)
        close(theirs);
    if (rc != 0) {
        char why[128];
        close(ends[0]);
        h->deaths = HELPER_MAX_DEATHS;
        snprintf(why, sizeof why, "cannot be started (%s), needed", strerror(rc));
        helper_say(h, why, NULL);
        return 0;
    }
    h->fd = ends[0];
    return ++h->number;
}

/* ---- asking ---- */

static int helper_send(const struct symbols_helper *h, const struct symbols_question *q, int fd) {
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.room = {0}};
    struct iovec part = {.iov_base = (void *)(uintptr_t)q,
                         .iov_len = offsetof(struct symbols_question, name) + strlen(q->name) + 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd >= 0) {
        message.msg_control = control.room;
        message.msg_controllen = sizeof control.room;
        struct cmsghdr *c = CMSG_FIRSTHDR(&message);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(c), &fd, sizeof fd);
    }
    return sendmsg(h->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -1 : 0;
}

/* Length of the next packet; 0 it has ended; -1 it takes too long. The kernel closes descriptors
 * that came along. */
static ssize_t helper_receive(struct symbols_helper *h, uint64_t until_ns) {
    for (;;) {
        ssize_t n = recv(h->fd, h->packet, sizeof h->packet, MSG_DONTWAIT);
        if (n >= 0)
            return n;
        if (errno != EAGAIN && errno != EINTR)
            return 0;
        uint64_t now = clock_mono_ns();
        if (now >= until_ns)
            return -1;
        struct pollfd wait = {.fd = h->fd, .events = POLLIN};
        poll(&wait, 1, (int)((until_ns - now) / 1000000) + 1);
    }
}

/* Send it the file it wants, or none. 0 or -1. */
static int helper_give(struct symbols_helper *h, struct symbols_files *files,
                       const struct symbols_want *want) {
    struct symbols_question q = {.what = SYMBOLS_FILE};
    int fd = files ? symbols_files_open_debug(files, want) : -1;
    int rc = helper_send(h, &q, fd);
    if (fd >= 0)
        close(fd);
    return rc;
}

/* End a useless helper and note why. */
static int helper_give_up(struct symbols_helper *h, const char *why, const char *path) {
    char text[64];
    int status = helper_end(h);
    h->deaths++;
    int sig = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (sig == SIGPROF || sig == SIGXCPU)
        why = "took too much time";
    else if (!why && sig)
        snprintf(text, sizeof text, "ended (signal %d)", sig);
    else if (!why)
        snprintf(text, sizeof text, "ended (status %d)", WEXITSTATUS(status));
    helper_say(h, why ? why : text, path);
    return -1;
}

/* True if the file has taken more than its share of time. One that is slow with each address
 * could block a stack for any time. */
static bool helper_is_slow(struct symbols_files *files, uint64_t began_ns) {
    uint64_t now = clock_mono_ns(), back = (now - files->asked_ns) / 10;
    files->spent_ns = (files->spent_ns > back ? files->spent_ns - back : 0) + (now - began_ns);
    files->asked_ns = now;
    return files->spent_ns > HELPER_FILE_S * UINT64_C(1000000000);
}

int symbols_helper_ask(struct symbols_helper *h, const struct symbols_question *q, int fd,
                       struct symbols_files *files, struct arena *text, struct symbol *list,
                       enum native_role *role) {
    struct symbols_want want;
    const char *path = files ? files->path : NULL;
    uint64_t began_ns = clock_mono_ns(), until_ns = began_ns + HELPER_ANSWER_S * UINT64_C(1000000000);
    if (h->fd < 0)
        return -1;
    int rc = helper_send(h, q, fd);
    for (unsigned asked = 0;; asked++) {
        ssize_t len = rc == 0 ? helper_receive(h, until_ns) : 0;
        if (len <= 0)
            return helper_give_up(h, len < 0 ? "took too much time" : NULL, path);
        if (symbols_want_read(h->packet, (size_t)len, &want) == 0 && asked < SYMBOLS_MAX_FILES_ASKED) {
            rc = helper_give(h, files, &want);
            continue;
        }
        int n = symbols_answer_read(h->packet, (size_t)len, text, list, role);
        if (n >= 0 && files && helper_is_slow(files, began_ns))
            return helper_give_up(h, "took too much time", path);
        if (n >= 0)
            return n;
        return text->failed ? -1 : helper_give_up(h, "gave an invalid answer", path);
    }
}
