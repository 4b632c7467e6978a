/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runner_internal: what the files of the runner share: its state, what paints and subscribes (runner.c), what finds and changes the target
 * (runner_open.c). On the loop's thread.
 */
#ifndef TUI_RUNNER_INTERNAL_H
#define TUI_RUNNER_INTERNAL_H

#include "client/children.h"
#include "client/loop.h"
#include "tui/attach.h"
#include "tui/lister.h"
#include "tui/runner.h"
#include "tui/runner_row_actions.h"
#include "tui/runner_theme.h"
#include "tui/runner_query.h"
#include "tui/runner_source.h"
#include "tui/runner_targets.h"

struct runner {
    const struct runner_config *config;
    struct app *app;
    struct loop *loop;
    struct term *term; /* NULL until there is something to show */
    struct grid grid;
    struct session *session;       /* with the target that is shown */
    struct runner_targets targets; /* several: the sessions are theirs */
    struct loop_timer *paint, *open, *tick, *list;
    struct loop_watch *input, *signals, *attaching, *listed, *children_watch;
    struct lister *lister;     /* NULL: a target was named */
    struct children *children; /* of the target */
    enum children_pace children_pace;
    struct attach attach;
    struct runner_query query;
    struct proc_stats_reader vitals;
    struct runner_row_actions hands;
    struct runner_source source;
    struct runner_theme looks;
    int signal_fd;
    bool sampling;         /* samples are subscribed to */
    bool native;           /* with native frames */
    bool slowed;           /* the view is paused, and the streams are slow */
    double batch_s;        /* between two batches of samples, as it was asked for; 0: as the agent likes */
    bool moved;            /* the target is another than the one it began with */
    uint64_t painted_ns;   /* the last frame */
    uint64_t paint_due_ns; /* when the paint timer ends; 0: it is not set */
    uint64_t retry_us;     /* > 0: the terminal takes nothing, and is asked again after so long */
    bool stopping;
    struct err error; /* why it ends, when not by the user's wish */
    bool failed;
};

/* ---- runner.c ---- */

/* What comes of a session; `arg` is the runner. */
extern const struct session_handler runner_handler;

void runner_set_time(struct runner *r);

/* Paint if something changed, as soon as there may be a frame again. */
void runner_want_paint(struct runner *r);

/* Show something: once, further calls do nothing. */
void runner_open_term(struct runner *r);

/* Look at a target; the one before is closed first by runner_close_session. 0, or -1 with the error. */
int runner_open_session(struct runner *r, const struct session_address *addr, struct err *e);
void runner_close_session(struct runner *r);

/* Streams of the session as the app wants them now; samples with all definitions anew if `again`. */
void runner_subscribe(struct runner *r);
void runner_follow_pause(struct runner *r);
void runner_follow_samples(struct runner *r, bool again);

/* ---- runner_children.c ---- */

/* Processes that the target has started, from here on; no more. */
void runner_follow_children(struct runner *r, pid_t pid);
void runner_leave_children(struct runner *r);

/* They are read as often as they are looked at; not at all while the view is paused. */
void runner_pace_children(struct runner *r);

/* ---- runner_open.c ---- */

/* Several targets were named: connect with all, look at the first. 0, or -1 with the error. */
int runner_open_all(struct runner *r, struct err *e);

/* Look at another one of them. */
void runner_switch(struct runner *r, int i);

/* The choice of a process: make the list, and take it when it is there; again after a while. */
void runner_list(struct runner *r);
void runner_on_listed(void *arg);
void runner_on_list(void *arg);

/* Attach to one, and look at it. */
void runner_attach(struct runner *r, pid_t pid);

#endif
