/* SPDX-License-Identifier: Apache-2.0 */
/* opened: see opened.h. */
#include "agent/opened.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/address.h"
#include "base/endpoint.h"

#define OPENED_MAX 4 /* there are three: pause, catch, debugpy */
#define OPENED_WORD 16
#define OPENED_NEW ".new"

struct opened_one {
    char what[OPENED_WORD]; /* "": none */
    char address[ADDRESS_MAX];
};

static struct {
    pthread_mutex_t lock;
    struct opened_one all[OPENED_MAX];
    char file[ENDPOINT_PATH_MAX]; /* "": there is no agent; the server's thread's alone */
    bool eval, stale;
    void (*nudge)(void *arg);
    void *arg;
} opened_state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void opened_lock(void) { (void)pthread_mutex_lock(&opened_state.lock); }

static void opened_unlock(void) { (void)pthread_mutex_unlock(&opened_state.lock); }

/* Under the lock: the file's text. Its length. */
static size_t opened_put(char *text, size_t cap) {
    size_t n = (size_t)snprintf(text, cap, "eval %s\n", opened_state.eval ? "on" : "off");
    for (const struct opened_one *one = opened_state.all; one < opened_state.all + OPENED_MAX; one++)
        if (one->what[0])
            n += (size_t)snprintf(text + n, cap - n, "%s %s\n", one->what, one->address);
    opened_state.stale = false;
    return n;
}

/* Without the lock, for which a thread may wait that has the GIL. One that cannot be written is taken away: then it is not known what is
 * open, which is what a reader says. */
static void opened_replace(const char *file, const char *text, size_t n) {
    char next[ENDPOINT_PATH_MAX + sizeof OPENED_NEW];
    (void)snprintf(next, sizeof next, "%s" OPENED_NEW, file);
    (void)unlink(next); /* of a process of this number that was killed */
    int fd = open(next, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool done = fd >= 0 && fchmod(fd, 0600) == 0 && write(fd, text, n) == (ssize_t)n;
    if (fd >= 0)
        (void)close(fd);
    if (done && rename(next, file) == 0)
        return;
    (void)unlink(next);
    (void)unlink(file);
}

void opened_begin(const char *socket, bool eval, void (*nudge)(void *arg), void *arg) {
    opened_lock();
    opened_state.eval = eval;
    opened_state.nudge = nudge;
    opened_state.arg = arg;
    opened_state.stale = true;
    if (endpoint_opened_file(opened_state.file, sizeof opened_state.file, socket) != 0)
        opened_state.file[0] = '\0';
    opened_unlock();
    opened_write();
}

void opened_end(void) {
    opened_lock();
    opened_state.nudge = NULL;
    opened_unlock();
    if (opened_state.file[0])
        (void)unlink(opened_state.file);
    opened_state.file[0] = '\0';
}

void opened_in_child(void) {
    opened_state.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    opened_state.file[0] = '\0';
    opened_state.nudge = NULL;
    for (int i = 0; i < OPENED_MAX; i++)
        opened_state.all[i].what[0] = '\0';
}

void opened_say(const char *what, const char *address) {
    struct opened_one *room = NULL;
    opened_lock();
    for (int i = OPENED_MAX - 1; i >= 0; i--)
        if (!opened_state.all[i].what[0] && (!room || !room->what[0]))
            room = &opened_state.all[i];
        else if (strcmp(opened_state.all[i].what, what) == 0)
            room = &opened_state.all[i];
    if (room) {
        (void)snprintf(room->what, sizeof room->what, "%s", address[0] ? what : "");
        (void)snprintf(room->address, sizeof room->address, "%s", address);
        opened_state.stale = true;
        if (opened_state.nudge)
            opened_state.nudge(opened_state.arg);
    }
    opened_unlock();
}

void opened_set_eval(bool on) {
    opened_lock();
    opened_state.stale |= opened_state.eval != on;
    opened_state.eval = on;
    opened_unlock();
    opened_write();
}

void opened_write(void) {
    char text[OPENED_MAX * (OPENED_WORD + ADDRESS_MAX) + 16];
    opened_lock();
    size_t n = opened_state.stale && opened_state.file[0] ? opened_put(text, sizeof text) : 0;
    opened_unlock();
    if (n > 0)
        opened_replace(opened_state.file, text, n);
}
