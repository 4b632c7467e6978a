/* SPDX-License-Identifier: Apache-2.0 */
/* endpoints_file: see endpoints_file.h. */
#include "agent/access/endpoints_file.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/address.h"
#include "base/endpoint.h"

#define ENDPOINTS_FILE_MAX 4 /* there are three: pause, catch, debugpy */
#define ENDPOINTS_FILE_WORD 16
#define ENDPOINTS_FILE_NEW ".new"

struct endpoints_file_one {
    char what[ENDPOINTS_FILE_WORD]; /* "" if free */
    char address[ADDRESS_MAX];
};

static struct {
    pthread_mutex_t lock;
    struct endpoints_file_one all[ENDPOINTS_FILE_MAX];
    char file[ENDPOINT_PATH_MAX]; /* "" if there is no agent; only for the server's thread */
    bool eval, stale;
    void (*nudge)(void *arg);
    void *arg;
} endpoints_file_state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void endpoints_file_lock(void) { pthread_mutex_lock(&endpoints_file_state.lock); }

static void endpoints_file_unlock(void) { pthread_mutex_unlock(&endpoints_file_state.lock); }

/* With the lock: the file's text. Returns its length. */
static size_t endpoints_file_put(char *text, size_t cap) {
    size_t n = (size_t)snprintf(text, cap, "eval %s\n", endpoints_file_state.eval ? "on" : "off");
    for (const struct endpoints_file_one *one = endpoints_file_state.all;
         one < endpoints_file_state.all + ENDPOINTS_FILE_MAX; one++)
        if (one->what[0])
            n += (size_t)snprintf(text + n, cap - n, "%s %s\n", one->what, one->address);
    endpoints_file_state.stale = false;
    return n;
}

/* Without the lock, because a thread that has the GIL may wait for it. A file that cannot be
 * written is removed: then a reader reports that the endpoints are unknown. */
static void endpoints_file_replace(const char *file, const char *text, size_t n) {
    char next[ENDPOINT_PATH_MAX + sizeof ENDPOINTS_FILE_NEW];
    snprintf(next, sizeof next, "%s" ENDPOINTS_FILE_NEW, file);
    unlink(next); /* left by a killed process with the same number */
    int fd = open(next, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool done = fd >= 0 && fchmod(fd, 0600) == 0 && write(fd, text, n) == (ssize_t)n;
    if (fd >= 0)
        close(fd);
    if (done && rename(next, file) == 0)
        return;
    unlink(next);
    unlink(file);
}

void endpoints_file_begin(const char *socket, bool eval, void (*nudge)(void *arg), void *arg) {
    endpoints_file_lock();
    endpoints_file_state.eval = eval;
    endpoints_file_state.nudge = nudge;
    endpoints_file_state.arg = arg;
    endpoints_file_state.stale = true;
    if (endpoint_state_file(endpoints_file_state.file, sizeof endpoints_file_state.file, socket) != 0)
        endpoints_file_state.file[0] = '\0';
    endpoints_file_unlock();
    endpoints_file_write();
}

void endpoints_file_end(void) {
    endpoints_file_lock();
    endpoints_file_state.nudge = NULL;
    endpoints_file_unlock();
    if (endpoints_file_state.file[0])
        unlink(endpoints_file_state.file);
    endpoints_file_state.file[0] = '\0';
}

void endpoints_file_in_child(void) {
    endpoints_file_state.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    endpoints_file_state.file[0] = '\0';
    endpoints_file_state.nudge = NULL;
    for (int i = 0; i < ENDPOINTS_FILE_MAX; i++)
        endpoints_file_state.all[i].what[0] = '\0';
}

void endpoints_file_say(const char *what, const char *address) {
    struct endpoints_file_one *room = NULL;
    endpoints_file_lock();
    for (int i = ENDPOINTS_FILE_MAX - 1; i >= 0; i--)
        if (!endpoints_file_state.all[i].what[0] && (!room || !room->what[0]))
            room = &endpoints_file_state.all[i];
        else if (strcmp(endpoints_file_state.all[i].what, what) == 0)
            room = &endpoints_file_state.all[i];
    if (room) {
        snprintf(room->what, sizeof room->what, "%s", address[0] ? what : "");
        snprintf(room->address, sizeof room->address, "%s", address);
        endpoints_file_state.stale = true;
        if (endpoints_file_state.nudge)
            endpoints_file_state.nudge(endpoints_file_state.arg);
    }
    endpoints_file_unlock();
}

void endpoints_file_set_eval(bool on) {
    endpoints_file_lock();
    endpoints_file_state.stale |= endpoints_file_state.eval != on;
    endpoints_file_state.eval = on;
    endpoints_file_unlock();
    endpoints_file_write();
}

void endpoints_file_write(void) {
    char text[ENDPOINTS_FILE_MAX * (ENDPOINTS_FILE_WORD + ADDRESS_MAX) + 16];
    endpoints_file_lock();
    size_t n = endpoints_file_state.stale && endpoints_file_state.file[0]
                   ? endpoints_file_put(text, sizeof text)
                   : 0;
    endpoints_file_unlock();
    if (n > 0)
        endpoints_file_replace(endpoints_file_state.file, text, n);
}
