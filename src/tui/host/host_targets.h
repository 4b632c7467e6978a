/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_targets: sessions with several targets together. Data of the shown one go to the host, as
 * with a single target; the others send a snapshot now and then, which is put aside (targets.h). On
 * the loop's thread.
 */
#ifndef TUI_HOST_HOST_TARGETS_H
#define TUI_HOST_HOST_TARGETS_H

#include "client/loop.h"
#include "client/session/session.h"
#include "tui/core/app.h"

/* A target and the session with it; `addr.pid` may be 0. */
struct host_target {
    struct host_targets *all;
    int index;
    struct target_address addr;
    struct session *session; /* NULL: it could not begin */
};

struct host_targets {
    struct loop *loop;
    struct app *app;
    const struct session_handler *shown; /* handles data of the shown one, with `arg` */
    void (*came)(void *arg);             /* data of another one were taken */
    void *arg;
    enum model_sampling sampling;
    double budget_pct;
    struct host_target items[TARGETS_MAX];
};

/* Add a target and connect; one that exists is not added again. `name`: as the user typed it; NULL:
 * its pid. Its number, or -1 with the error. */
int host_targets_add(struct host_targets *t, const struct target_address *addr, const char *name,
                     struct err *e);

/* Show another one. Slows the streams of the last one; the caller subscribes to those of the new
 * one. */
void host_targets_show(struct host_targets *t, int i);

/* The session of the shown one. */
struct session *host_targets_session(const struct host_targets *t);

void host_targets_fini(struct host_targets *t);

#endif
