/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_diff: the recording that the target is compared with, on the loop of the host: a second
 * session, which requests only samples. One thread.
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
    struct session *session;    /* NULL: not comparing with a recording */
    void (*changed)(void *arg); /* samples have arrived */
    void *arg;
};

/* Find the recording, or the ended process, that `text` names. 0, or -1 with ERR_USAGE: it is
 * neither. */
int host_diff_resolve(const char *text, struct target_address *addr, struct err *e);

/* Open the one of that name: its samples go to the app from here on. Errors are a message. Ends an
 * earlier session. */
void host_diff_open(struct host_diff *r, const char *name);
void host_diff_close(struct host_diff *r);

#endif
