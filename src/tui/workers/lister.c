/* SPDX-License-Identifier: Apache-2.0 */
/* lister: see lister.h. */
#include "tui/workers/lister.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/work.h"

#define LISTER_STOP_S 1

struct lister {
    struct work work;
    /* The worker's while it is running. */
    struct target_process *list;
    ssize_t n;
    char hidden[TARGET_HIDDEN_MAX];
    struct err error;
};

static void lister_run(void *arg) {
    struct lister *l = arg;
    target_sweep();
    target_hidden(l->hidden, sizeof l->hidden);
    l->n = target_list(&l->list, &l->error);
}

struct lister *lister_new(struct err *e) {
    struct lister *l = calloc(1, sizeof *l);
    int rc = l ? work_init(&l->work) : ENOMEM;
    if (rc == 0)
        return l;
    err_set_errno(e, ERR_FAILED, rc, "cannot look for processes");
    free(l);
    return NULL;
}

int lister_fd(const struct lister *l) { return l->work.fd; }

int lister_start(struct lister *l, struct err *e) {
    if (l->work.is_running)
        return 0;
    l->list = NULL;
    l->n = 0;
    int rc = work_start(&l->work, lister_run, l);
    return rc == 0 ? 0 : err_set_errno(e, ERR_FAILED, rc, "cannot look for processes");
}

ssize_t lister_take(struct lister *l, struct target_process **out, char *hidden, size_t cap, struct err *e) {
    *out = NULL;
    if (!work_finish(&l->work))
        return -2;
    snprintf(hidden, cap, "%s", l->hidden);
    *out = l->list;
    l->list = NULL;
    if (l->n < 0)
        *e = l->error;
    return l->n < 0 ? -1 : l->n;
}

void lister_free(struct lister *l) {
    if (!l || !work_stop(&l->work, LISTER_STOP_S))
        return;
    if (l->list)
        target_list_free(l->list, l->n > 0 ? (size_t)l->n : 0);
    free(l);
}
