/* SPDX-License-Identifier: Apache-2.0 */
/* attach_all: see attach_all.h. */
#include "tui/host/attach_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/jobs/jobs_here.h"
#include "tui/host/attach.h"

/* `alone`: it is the only one, and only the helper examines it. */
static int attach_all_add(struct attach_all *all, const char *text, bool alone, struct err *e) {
    struct target_address addr = {.pid = 0};
    if (!alone && target_resolve(text, &addr, e) != 0)
        return -1;
    for (int i = 0; i < all->n; i++)
        if (addr.pid > 0 && all->addrs[i].pid == addr.pid)
            return 0; /* two helpers would disturb each other */
    if (all->n == TARGETS_MAX)
        return err_set(e, ERR_USAGE, "at most %d targets at a time: '%s' is too many", TARGETS_MAX, text);
    if (strlen(text) >= sizeof all->texts[0])
        return err_set(e, ERR_USAGE, "the target '%.60s...' is too long", text);
    snprintf(all->texts[all->n], sizeof all->texts[0], "%s", text);
    all->names[all->n] = all->texts[all->n];
    all->addrs[all->n] = addr;
    all->n++;
    return 0;
}

static int attach_all_add_pid(struct attach_all *all, pid_t pid, struct err *e) {
    char text[24];
    snprintf(text, sizeof text, "%ld", (long)pid);
    return attach_all_add(all, text, false, e);
}

/* The ranks of a job. */
static int attach_all_add_job(struct attach_all *all, const char *text, struct err *e) {
    pid_t *pids;
    ssize_t n = jobs_here_resolve(text, &pids, e);
    int rc = n < 0 ? -1 : 0;
    if (n > TARGETS_MAX)
        rc = err_set(e, ERR_USAGE,
                     "at most %d targets at a time: '%s' has %zd ranks here, and %s/0-%d is a part",
                     TARGETS_MAX, text, n, text, TARGETS_MAX - 1);
    for (ssize_t i = 0; rc == 0 && i < n; i++)
        rc = attach_all_add_pid(all, pids[i], e);
    free(pids);
    return rc;
}

int attach_all_read(struct attach_all *all, const char *const *typed, int n, struct err *e) {
    all->n = 0;
    for (int i = 0; i < n; i++) {
        pid_t pids[TARGETS_MAX];
        if (jobs_is_target(typed[i])) {
            if (attach_all_add_job(all, typed[i], e) != 0)
                return -1;
            continue;
        }
        size_t named = target_named(typed[i], pids, TARGETS_MAX);
        if (named > TARGETS_MAX)
            return err_set(e, ERR_USAGE, "at most %d targets at a time: '%s' is the name of %zu processes",
                           TARGETS_MAX, typed[i], named);
        if (named < 2 && attach_all_add(all, typed[i], n == 1, e) != 0)
            return -1;
        for (size_t k = 0; named > 1 && k < named; k++)
            if (attach_all_add_pid(all, pids[k], e) != 0)
                return -1;
    }
    return 0;
}

int attach_all_run(struct attach_all *all, const struct target_options *how, struct err *e) {
    struct attach attaches[TARGETS_MAX];
    int begun = 0, rc = 0;
    while (begun < all->n && rc == 0) {
        rc = attach_start(&attaches[begun], all->names[begun], NULL, how, e);
        begun += rc == 0;
    }
    for (int i = 0; i < begun; i++) { /* wait for all that were started */
        struct err why;
        if (attach_finish(&attaches[i], &all->addrs[i], NULL, &why) == 0 || rc != 0)
            continue;
        *e = why;
        rc = -1;
    }
    return rc;
}
