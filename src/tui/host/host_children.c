/* SPDX-License-Identifier: Apache-2.0 */
/* host_children: the processes that the target has started, on the runner's loop; see host_internal.h. */
#include "tui/host/host_internal.h"

void host_pace_children(struct host *r) {
    enum children_pace pace = r->app->data.paused && !data_is_recorded(&r->app->data) ? CHILDREN_STILL
                              : app_shows_children(r->app)                            ? CHILDREN_OFTEN
                                                                                      : CHILDREN_SELDOM;
    if (pace != r->children_pace)
        children_set_pace(r->children, pace);
    r->children_pace = pace;
}

static void host_on_children(void *arg) {
    struct host *r = arg;
    struct children_list list;
    if (!r->children || !children_take(r->children, &list))
        return;
    host_set_time(r);
    app_take_children(r->app, &list);
    host_want_paint(r);
}

/* What the target has started is a help, not what was asked for: without it the screen is as good. */
void host_follow_children(struct host *r, pid_t pid) {
    struct err e;
    r->children = pid > 0 ? children_start(pid, &e) : NULL;
    r->children_pace = CHILDREN_OFTEN;
    host_pace_children(r);
    if (r->children)
        r->children_watch = loop_watch_fd(r->loop, children_fd(r->children), host_on_children, r, &e);
}

void host_leave_children(struct host *r) {
    loop_unwatch(r->children_watch);
    children_stop(r->children);
    r->children_watch = NULL;
    r->children = NULL;
}
