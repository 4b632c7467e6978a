/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_targets: sessions with several targets, all at once. What comes of the one that is shown goes to the host, as with one target
 * alone; of the others comes a snapshot now and then, which goes aside (targets.h). On the loop's thread.
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
    struct session *session; /* NULL: it could not be begun */
};

struct host_targets {
    struct loop *loop;
    struct app *app;
    const struct session_handler *shown; /* takes what comes of the one that is shown, with `arg` */
    void (*came)(void *arg);             /* something of another was taken */
    void *arg;
    enum model_sampling sampling;
    double budget_pct;
    struct host_target items[TARGETS_MAX];
};

/* Take a target in and connect; one that is there already is not taken again. `name`: what it was asked for by; NULL: its pid. Its number,
 * or -1 with the error. */
int host_targets_add(struct host_targets *t, const struct target_address *addr, const char *name,
                     struct err *e);

/* Show another one. The streams of the one that was shown are slowed; those of the new one are the caller's to ask for. */
void host_targets_show(struct host_targets *t, int i);

/* The session of the one that is shown. */
struct session *host_targets_session(const struct host_targets *t);

void host_targets_fini(struct host_targets *t);

#endif
