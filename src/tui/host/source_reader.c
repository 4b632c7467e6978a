/* SPDX-License-Identifier: Apache-2.0 */
/* source_reader: see source_reader.h. */
#include "tui/host/source_reader.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define SOURCE_READER_STOP_S 1

struct source_reader {
    pthread_t thread;
    bool busy; /* the thread is there; what follows is its own until the descriptor is readable */
    int fd;
    pid_t pid;
    char path[1024];
    int from;
    struct source_text *text;
};

static void *source_reader_main(void *arg) {
    struct source_reader *r = arg;
    struct err e;
    uint64_t one = 1;
    (void)source_read(r->text, r->pid, r->path, r->from, &e);
    ssize_t n = write(r->fd, &one, sizeof one);
    (void)n; /* a counter that is full is readable already */
    return NULL;
}

struct source_reader *source_reader_new(struct err *e) {
    struct source_reader *r = calloc(1, sizeof *r);
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (!r || fd < 0) {
        (void)err_set_errno(e, ERR_FAILED, r ? errno : ENOMEM, "cannot read source files");
        if (fd >= 0)
            (void)close(fd);
        free(r);
        return NULL;
    }
    r->fd = fd;
    return r;
}

int source_reader_fd(const struct source_reader *r) { return r->fd; }

bool source_reader_is_busy(const struct source_reader *r) { return r->busy; }

int source_reader_start(struct source_reader *r, pid_t pid, const char *path, int from, struct err *e) {
    sigset_t all, kept;
    if (r->busy)
        return 0;
    r->text = calloc(1, sizeof *r->text);
    r->pid = pid;
    r->from = from;
    (void)snprintf(r->path, sizeof r->path, "%s", path);
    (void)sigfillset(&all); /* signals are the loop's */
    (void)pthread_sigmask(SIG_SETMASK, &all, &kept);
    int rc = r->text ? pthread_create(&r->thread, NULL, source_reader_main, r) : ENOMEM;
    (void)pthread_sigmask(SIG_SETMASK, &kept, NULL);
    r->busy = rc == 0;
    if (rc == 0)
        return 0;
    free(r->text);
    r->text = NULL;
    return err_set_errno(e, ERR_FAILED, rc, "cannot read %s", path);
}

struct source_text *source_reader_take(struct source_reader *r) {
    uint64_t count;
    if (!r->busy || read(r->fd, &count, sizeof count) != (ssize_t)sizeof count)
        return NULL;
    (void)pthread_join(r->thread, NULL); /* it has nothing left to do */
    r->busy = false;
    struct source_text *text = r->text;
    r->text = NULL;
    return text;
}

void source_reader_free(struct source_reader *r) {
    struct timespec until;
    if (!r)
        return;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += SOURCE_READER_STOP_S;
    if (r->busy && pthread_timedjoin_np(r->thread, NULL, &until) != 0) {
        (void)pthread_detach(r->thread);
        return; /* what it still uses is left with it */
    }
    free(r->text);
    (void)close(r->fd);
    free(r);
}
