/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_diff: the recording that the target is compared with, on the loop of the host: a second session, of which only
 * samples are asked. One thread.
 */
#ifndef TUI_HOST_HOST_DIFF_H
#define TUI_HOST_HOST_DIFF_H

#include "base/err.h"
#include "client/loop.h"
#include "client/session/session.h"
#include "tui/core/app.h"

struct host_diff {
    struct app *app;
    struct loop *loop;
    struct session *session;    /* NULL: nothing is compared with a recording */
    void (*changed)(void *arg); /* samples have come */
    void *arg;
};

/* Find the recording or the process that has ended that `text` names. 0, or -1 with ERR_USAGE: it is neither. */
int host_diff_resolve(const char *text, struct target_address *addr, struct err *e);

/* Open the one of that name: its samples go to the app from here on. What is wrong with it is a message. A session from before
 * ends. */
void host_diff_open(struct host_diff *r, const char *name);
void host_diff_close(struct host_diff *r);

#endif
