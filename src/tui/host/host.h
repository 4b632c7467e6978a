/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host: the app on a real terminal, a real session and a real clock, all on one loop and one
 * thread.
 *
 * Input comes before data; painting happens when something has changed, at most 30 times a second,
 * and not while the terminal does not read. Ends when the user quits, on SIGTERM, SIGHUP or SIGINT,
 * and when the terminal is gone.
 */
#ifndef TUI_HOST_HOST_H
#define TUI_HOST_HOST_H

#include "base/err.h"
#include "client/hosts/fleet_reach.h"
#include "client/loop.h"
#include "client/session/session.h"
#include "tui/core/app.h"
#include "tui/term/term.h"

struct host_config {
    struct app_config app;
    struct term_config term;
    const struct theme_path *themes;      /* where themes are found; NULL: nowhere */
    const struct target_address *address; /* of each target; NULL: the user picks a process, or a rank */
    const char *const *names;             /* as the user typed each */
    int n_targets;
    enum model_sampling sampling;    /* how running threads are sampled */
    double budget_pct;               /* % of one core that observing may cost; 0: the default */
    const char *warnings;            /* of the start, one a line; NULL: none */
    struct target_options how;       /* for attaching to the process that the user picks */
    const struct fleet_reach *reach; /* where the ranks of a job are */
};

/* Run until the end. Exit status 0 or 4; or -1 with the error, which the caller prints: the
 * terminal is restored. */
int host_run(const struct host_config *config, struct err *e);

#endif
