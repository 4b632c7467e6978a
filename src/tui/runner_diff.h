/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runner_diff: the recording that the target is compared with, on the loop of the runner: a second session, of which only
 * samples are asked. One thread.
 */
#ifndef TUI_RUNNER_DIFF_H
#define TUI_RUNNER_DIFF_H

#include "base/err.h"
#include "client/loop.h"
#include "client/session.h"
#include "tui/app.h"

struct runner_diff {
    struct app *app;
    struct loop *loop;
    struct session *session;    /* NULL: nothing is compared with a recording */
    void (*changed)(void *arg); /* samples have come */
    void *arg;
};

/* Find the recording or the process that has ended that `text` names. 0, or -1 with ERR_USAGE: it is neither. */
int runner_diff_resolve(const char *text, struct session_address *addr, struct err *e);

/* Open the one that the app wishes for, if it does: its samples go to the app from here on. What is wrong with it is a message.
 * A session from before ends. */
void runner_diff_apply(struct runner_diff *r);
void runner_diff_close(struct runner_diff *r);

#endif
