/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runner_targets: sessions with several targets, all at once. What comes of the one that is shown goes to the runner, as with one target
 * alone; of the others comes a snapshot now and then, which goes aside (targets.h). On the loop's thread.
 */
#ifndef TUI_RUNNER_TARGETS_H
#define TUI_RUNNER_TARGETS_H

#include "client/loop.h"
#include "client/session.h"
#include "tui/app.h"

/* A target and the session with it; `addr.pid` may be 0. */
struct runner_target {
    struct runner_targets *all;
    int index;
    struct session_address addr;
    struct session *session; /* NULL: it could not be begun */
};

struct runner_targets {
    struct loop *loop;
    struct app *app;
    const struct session_handler *shown; /* takes what comes of the one that is shown, with `arg` */
    void (*came)(void *arg);             /* something of another was taken */
    void *arg;
    enum model_sampling sampling;
    double budget_pct;
    struct runner_target items[TARGETS_MAX];
};

/* Take a target in and connect; one that is there already is not taken again. `name`: what it was asked for by; NULL: its pid. Its number,
 * or -1 with the error. */
int runner_targets_add(struct runner_targets *t, const struct session_address *addr, const char *name,
                       struct err *e);

/* Show another one. The streams of the one that was shown are slowed; those of the new one are the caller's to ask for. */
void runner_targets_show(struct runner_targets *t, int i);

/* The session of the one that is shown. */
struct session *runner_targets_session(const struct runner_targets *t);

void runner_targets_fini(struct runner_targets *t);

#endif
