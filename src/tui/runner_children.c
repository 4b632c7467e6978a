/* SPDX-License-Identifier: Apache-2.0 */
/* runner_children: the processes that the target has started, on the runner's loop; see runner_internal.h. */
#include "tui/runner_internal.h"

void runner_pace_children(struct runner *r) {
    enum children_pace pace = r->app->data.paused && !data_is_recorded(&r->app->data) ? CHILDREN_STILL
                              : app_shows_children(r->app)                            ? CHILDREN_OFTEN
                                                                                      : CHILDREN_SELDOM;
    if (pace != r->children_pace)
        children_set_pace(r->children, pace);
    r->children_pace = pace;
}

static void runner_on_children(void *arg) {
    struct runner *r = arg;
    struct children_list list;
    if (!r->children || !children_take(r->children, &list))
        return;
    runner_set_time(r);
    app_take_children(r->app, &list);
    runner_want_paint(r);
}

/* What the target has started is a help, not what was asked for: without it the screen is as good. */
void runner_follow_children(struct runner *r, pid_t pid) {
    struct err e;
    r->children = pid > 0 ? children_start(pid, &e) : NULL;
    r->children_pace = CHILDREN_OFTEN;
    runner_pace_children(r);
    if (r->children)
        r->children_watch = loop_watch_fd(r->loop, children_fd(r->children), runner_on_children, r, &e);
}

void runner_leave_children(struct runner *r) {
    loop_unwatch(r->children_watch);
    children_stop(r->children);
    r->children_watch = NULL;
    r->children = NULL;
}
