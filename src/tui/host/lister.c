/* SPDX-License-Identifier: Apache-2.0 */
/* lister: see lister.h. */
#include "tui/host/lister.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define LISTER_STOP_S 1

struct lister {
    pthread_t thread;
    bool busy; /* the thread is there; what follows is its own until the descriptor is readable */
    int fd;
    struct target_process *list;
    ssize_t n;
    char hidden[TARGET_HIDDEN_MAX];
    struct err error;
};

static void *lister_main(void *arg) {
    struct lister *l = arg;
    uint64_t one = 1;
    target_sweep();
    target_hidden(l->hidden, sizeof l->hidden);
    l->n = target_list(&l->list, &l->error);
    ssize_t n = write(l->fd, &one, sizeof one);
    (void)n; /* a counter that is full is readable already */
    return NULL;
}

struct lister *lister_new(struct err *e) {
    struct lister *l = calloc(1, sizeof *l);
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (!l || fd < 0) {
        (void)err_set_errno(e, ERR_FAILED, l ? errno : ENOMEM, "cannot look for processes");
        if (fd >= 0)
            (void)close(fd);
        free(l);
        return NULL;
    }
    l->fd = fd;
    return l;
}

int lister_fd(const struct lister *l) { return l->fd; }

int lister_start(struct lister *l, struct err *e) {
    sigset_t all, kept;
    if (l->busy)
        return 0;
    l->list = NULL;
    l->n = 0;
    (void)sigfillset(&all); /* signals are the loop's */
    (void)pthread_sigmask(SIG_SETMASK, &all, &kept);
    int rc = pthread_create(&l->thread, NULL, lister_main, l);
    (void)pthread_sigmask(SIG_SETMASK, &kept, NULL);
    if (rc != 0)
        return err_set_errno(e, ERR_FAILED, rc, "cannot look for processes");
    l->busy = true;
    return 0;
}

ssize_t lister_take(struct lister *l, struct target_process **out, char *hidden, size_t cap, struct err *e) {
    uint64_t count;
    *out = NULL;
    if (!l->busy || read(l->fd, &count, sizeof count) != (ssize_t)sizeof count)
        return -2;
    (void)pthread_join(l->thread, NULL); /* it has nothing left to do */
    l->busy = false;
    (void)snprintf(hidden, cap, "%s", l->hidden);
    *out = l->list;
    l->list = NULL;
    if (l->n < 0)
        *e = l->error;
    return l->n < 0 ? -1 : l->n;
}

void lister_free(struct lister *l) {
    struct timespec until;
    if (!l)
        return;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += LISTER_STOP_S;
    if (l->busy && pthread_timedjoin_np(l->thread, NULL, &until) != 0) {
        (void)pthread_detach(l->thread);
        return; /* what it still uses is left with it */
    }
    if (l->list)
        target_list_free(l->list, l->n > 0 ? (size_t)l->n : 0);
    (void)close(l->fd);
    free(l);
}
