/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_feed: the feeds on the runner's loop: what screens show of tables is asked for, one at a time, by a querier of its own, so that
 * the SQL screen's never waits for it. Opened with the first wish. One thread.
 */
#ifndef TUI_HOST_HOST_FEED_H
#define TUI_HOST_HOST_FEED_H

#include <stdbool.h>

#include "client/loop.h"
#include "client/session/session.h"
#include "tui/core/app.h"

struct host_feed {
    struct loop *loop;
    struct app *app;
    void (*answered)(void *arg); /* the app took an answer */
    void (*followed)(void *arg); /* the same of one that is asked for again and again: the picture may wait */
    void *arg;
    struct querier *querier; /* NULL until something is asked for */
    struct loop_watch *watch;
    struct target_address address;
    bool has_address;
    enum app_feed_id id; /* of what is under way, or was last */
};

/* The target is another from here on; NULL none. */
void host_feed_set_target(struct host_feed *r, const struct target_address *addr);

/* Begin what the app asks for, if nothing is under way. */
void host_feed_apply(struct host_feed *r);

#endif
