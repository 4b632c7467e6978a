/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_internal: what the files of the host share: its state, sessions, streams and painting
 * (host.c), and which target is shown (host_targets.c). On the loop's thread.
 */
#ifndef TUI_HOST_HOST_INTERNAL_H
#define TUI_HOST_HOST_INTERNAL_H

#include "client/session/children.h"
#include "client/loop.h"
#include "tui/host/attach.h"
#include "tui/workers/job_lister.h"
#include "tui/workers/lister.h"
#include "tui/host/host_diff.h"
#include "tui/host/host_job.h"
#include "tui/host/host_row_actions.h"
#include "tui/host/host_theme.h"
#include "tui/host/host_query.h"

struct host_config;

/* One of several targets and the session with it; `addr.pid` may be 0. */
struct host_target {
    struct host *host;
    int index;
    struct target_address addr;
    struct session *session; /* NULL: it could not begin */
    int tunnel;              /* as `tunnel` of the host, for this one */
};

/* Lines of source files, read by a worker. */
struct host_source {
    struct source_reader *reader; /* NULL until something is requested */
    struct loop_watch *watch;
    bool is_wanted; /* app->source_asked is to be read, once the reader is free */
};

/* What the app has requested while it handled something, and is done when it has returned; see
 * host_do_noted. */
enum host_note {
    HOST_LIST_PROCESSES = 1,
    HOST_LIST_THEMES = 2,
    HOST_SET_THEME = 4,
    HOST_OPEN_DIFF = 8,
    HOST_RUN_QUERY = 16,
    HOST_READ_FEEDS = 32,
    HOST_RUN_MAGIC = 64,
    HOST_EVAL = 128,
    HOST_ATTACH = 256,
    HOST_SHOW_TARGET = 512,
    HOST_DEBUG = 1024,
    HOST_WATCH_JOB = 2048,
    HOST_QUERY_JOB = 4096,
    HOST_LIST_JOBS = 8192,
};

struct host_noted {
    unsigned what; /* of enum host_note */
    char theme[SETTINGS_TEXT];
    char diff[512];
    char job[512];
    char job_tables[512];
    struct magic magic; /* owned */
    int magic_cols;
    struct wire_eval eval;          /* its code is owned by the app */
    const struct wire_debug *debug; /* owned by the app */
    enum wire_method debug_method;
    pid_t attach;
    char attach_host[HOST_NAME_SIZE]; /* "" this one */
    int show_target;
};

struct host {
    const struct host_config *config;
    struct app *app;
    struct loop *loop;
    struct term *term; /* NULL until there is something to show */
    struct grid grid;
    struct session *session; /* with the target that is shown */
    int tunnel; /* closed, it ends the tunnel to the only target (attach.h); -1: it is not another host's */
    struct host_target targets[TARGETS_MAX]; /* if there are several: the sessions belong to them */
    struct loop_timer *paint, *open, *tick, *list;
    struct loop_watch *input, *signals, *attaching, *listed, *children_watch;
    struct lister *lister;         /* of processes; NULL: the command line named a target */
    struct job_lister *job_lister; /* NULL: no job of a database is to be chosen */
    struct children *children;     /* of the target */
    enum children_pace children_pace;
    struct attach attach;
    struct host_query query;
    struct host_diff diff;
    struct host_job job;
    struct proc_stats_reader proc_stats;
    struct host_row_actions row_actions;
    struct host_source source;
    struct host_theme theme;
    struct host_noted noted;
    int signal_fd;
    bool sampling; /* samples are subscribed to */
    bool phases;   /* forward and backward of every step are armed */
    bool native;   /* native frames are requested with them */
    bool slowed;   /* the view is frozen, and the streams are slow */
    /* Requested time between two batches of samples; 0: as the agent likes. */
    double batch_s;
    double delay_s;        /* requested time between two snapshots */
    bool moved;            /* the user has picked a target since the start */
    uint64_t painted_ns;   /* time of the last frame */
    uint64_t paint_due_ns; /* when the paint timer ends; 0: it is not set */
    uint64_t retry_us;     /* > 0: the terminal does not read, and is tried again after this time */
    bool stopping;
    struct err error; /* why it ends, if the user did not end it */
    bool failed;
};

/* ---- host.c ---- */

/* Handles what arrives from a session; `arg` is the host. */
extern const struct session_handler host_handler;

void host_set_time(struct host *r);

/* Do what the app requested while it handled something. Call it after each call of the app that may
 * request something. */
void host_do_noted(struct host *r);

/* Paint if something has changed, as soon as a frame is allowed. */
void host_want_paint(struct host *r);

/* Open the terminal; further calls do nothing. */
void host_open_term(struct host *r);

/* Connect to the only target, and follow it; close the last one first with host_close_session. 0,
 * or -1 with the error. */
int host_open_session(struct host *r, const struct target_address *addr, struct err *e);

/* Leave the target that is shown; of several, its session stays open. */
void host_close_session(struct host *r);

/* Subscribe to snapshots, as often as the app wants them now. */
void host_subscribe(struct host *r);

/* Adapt the streams to the delay that the user wants, and slow them down while the view is frozen. */
void host_follow_pause(struct host *r);

/* Subscribe to samples, or end that, as the app wants now; with all definitions once more if
 * `again`. */
void host_follow_samples(struct host *r, bool again);
/* Arm forward and backward of every step, or disarm it, as the screens that are open want it. */
void host_follow_phases(struct host *r);

/* Follow the processes that the target starts; stop that. */
void host_follow_children(struct host *r, pid_t pid);
void host_leave_children(struct host *r);

/* Read them often where they are shown, else seldom; not while the view is frozen. */
void host_pace_children(struct host *r);

/* ---- host_targets.c ---- */

/* Several targets were named: connect to all, show the first. 0, or -1 with the error. */
int host_open_all(struct host *r, struct err *e);

/* Show another one of them; the one that was shown sends a snapshot now and then, no samples. */
void host_switch(struct host *r, int i);

/* Nobody asks the target behind a tunnel from here on. */
void host_end_tunnel(int *tunnel);

/* End the sessions with several. */
void host_close_targets(struct host *r);

/* The picker's list: make it, take it when it is done, and make it again after a while. */
void host_list(struct host *r);
void host_on_listed(void *arg);
void host_on_list(void *arg);

/* The jobs of a database: begin, 0, or -1 with the error; read them now, and again after a while. */
int host_open_jobs(struct host *r, struct err *e);
void host_list_jobs(struct host *r);

/* Attach to a process and show it. */
/* `host`: where it is; "": here. */
void host_attach(struct host *r, pid_t pid, const char *host);

#endif
