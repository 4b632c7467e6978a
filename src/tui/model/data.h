/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data: what is known of the target, as the screens read it.
 *
 * Holds the newest snapshot; while the view is frozen also the one that was on the screen, which
 * nothing replaces; and the samples added up, once some were requested. Fed by the session (or a
 * test). It has no clock: the caller gives times. One thread.
 */
#ifndef TUI_MODEL_DATA_H
#define TUI_MODEL_DATA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/model.h"
#include "client/session/children.h"
#include "client/session/session.h"
#include "client/target/proc_stats.h"
#include "client/samples/sample_store.h"
#include "tui/model/arms.h"
#include "tui/model/debuggers.h"
#include "tui/model/data_shot.h"
#include "tui/model/meter.h"
#include "tui/theme/theme.h"

struct snapshot_history;

/* A Python process that the target has started. */
struct data_child {
    pid_t pid;
    bool attached;
    char *cmdline;  /* owned */
    struct err why; /* why it cannot be read; ERR_OK: it can */
    struct target_tree_row tree;
    struct data_shot shot;
};

/* All of them, in the order of the tree. */
struct data_children {
    struct data_child *items;
    size_t n;
    size_t left_out; /* too many to read */
};

#define EVENTS_GC_RUNS 8 /* threads that collect at the same time */

/* Numbers with a history, one value a snapshot; for the rate, one a batch. */
enum events_meter {
    EVENTS_CPU_MAIN,   /* % of one core: the main thread, */
    EVENTS_CPU_PYTHON, /* other threads that run Python, */
    EVENTS_CPU_NATIVE, /* and those that do not: OpenMP, autograd, CUDA */
    EVENTS_GIL_WAIT,   /* 100: somebody waits for the GIL, 0: nobody */
    EVENTS_RSS,        /* bytes */
    EVENTS_AGENT,      /* % of one core */
    EVENTS_RATE,       /* samples a second of every thread */
    EVENTS_METERS,
};

/* A thread that collects garbage, as far as it was observed. */
struct events_run {
    int64_t tid; /* 0: unused */
    double first_s, last_s;
    unsigned looks;
};

struct events {
    struct meter meters[EVENTS_METERS];
    struct proc_stats vitals; /* valid where vitals_at_s > 0 */
    double vitals_at_s;       /* when they were read, on the caller's clock */
    double budget_pct;        /* % of one core that observing may cost; 0: unknown */
    double agent_began_s;     /* when it was loaded, on the caller's clock; 0: unknown */
    double status_at_s;       /* when the agent was last asked for its status; 0: never */
    int64_t others;           /* other clients of the agent, as far as it reports them */
    bool steps_told;          /* torch reports training steps */
    char steps_note[160];     /* why it does not; "": it does, or that is unknown */
    uint64_t holds;           /* how often the agent had the GIL, */
    double hold_us;           /* and for how long at most; NAN: never, or unknown */
    char way[64];             /* how the agent was loaded; "": unknown */
    double gc_s;              /* length of the last long collection; 0: none was seen */
    double gc_at_s;           /* and its end, in seconds since the epoch */
    char gc_who[64];
    /* for the events */
    double began_s;   /* when the attach began, on the caller's clock; 0: unknown */
    char reason[128]; /* why it reconnects, as last reported */
    bool was_connected, silent, stopped, is_low;
    double stopped_at_s, newest_s;
    uint64_t missed, dropped;               /* as last reported */
    uint64_t missed_before, dropped_before; /* as last counted */
    uint64_t missed_all, dropped_all;
    double losses_at_s;
    /* From samples, and from snapshots. */
    struct events_run runs[EVENTS_GC_RUNS], looks[EVENTS_GC_RUNS];
    double samples_at_s;
    double rate_told;
    unsigned low_batches;
};

struct data {
    struct model_target target;
    bool has_target;
    struct data_shot live; /* the newest */
    struct data_shot held; /* the one shown while frozen, once a newer one has arrived */
    struct data_children children, held_children;
    bool holds_children;           /* held_children are shown, like `held` */
    struct snapshot_history *past; /* earlier snapshots; NULL: none yet */
    /* An earlier snapshot, shown while it is valid; the view is frozen then. */
    struct data_shot stepped;
    bool paused;
    unsigned pauses; /* how often it was frozen, unfrozen, or stepped */
    enum session_state state;
    struct err why;    /* the reason of the last change of state */
    double retry_at_s; /* while reconnecting: when the next try is due, on the caller's clock */
    uint64_t received; /* snapshots so far */
    uint64_t missed;   /* notifications that this session has lost */
    /* Stacks of running threads that were read so far, and how many of them moved meanwhile. */
    uint64_t ran, torn;
    struct meter cpu; /* of the process, % of one core, per snapshot */
    struct meter gil; /* 100: held, 0: free; per snapshot */
    struct meter gc;  /* 100: garbage is being collected, 0: not; per snapshot */
    /* The last answer to a request for more (locals, tasks) about one thread. */
    struct model_snapshot locals;
    /* When it was last requested, on the caller's clock; 0: never. */
    double locals_asked_s;
    struct wire_threads locals_want; /* what was requested, and of which thread */
    bool locals_awaited;             /* there is no answer yet */
    bool native_refused;             /* this source has no native frames */
    struct sample_store *tally;      /* NULL: no samples yet */
    struct events pulse;             /* its recent past in numbers, and events */
    struct debuggers holds;          /* debuggers in the job */
    struct arms arms;                /* what is armed in the job */
    /* Of a recording: the end of its time, on the caller's clock; 0: unknown yet. */
    double past_at_s;
};

void data_init(struct data *d);
void data_fini(struct data *d);

/* Take a target or a snapshot: the struct is moved out of `*t` and `*s`, which are left zeroed. */
void data_take_target(struct data *d, struct model_target *t);
void data_take_snapshot(struct data *d, struct model_snapshot *s, double now_s);

/* Take the children of the target; moved out of `*l`, which is left empty. */
void data_take_children(struct data *d, struct children_list *l, double now_s);

/* The children that the screens show. */
const struct data_children *data_shown_children(const struct data *d);

/* Take a batch of samples. False: its definitions must be sent again, and the counts are lost. */
bool data_take_samples(struct data *d, const struct model_sample_batch *b, double now_s);

/* Take an answer with locals; moved out of `*s`. */
void data_take_locals(struct data *d, struct model_snapshot *s);

/* The thread of the last answer with locals; NULL: that is not of `tid`. */
const struct model_thread *data_locals_of(const struct data *d, int64_t tid);

/* The same, if it has native frames or says why not. */
const struct model_thread *data_native_of(const struct data *d, int64_t tid);

/* The answer with the tasks of thread `tid`, or why there are none; NULL: no answer yet. */
const struct model_snapshot *data_tasks_for(const struct data *d, int64_t tid);

/* Is it time to request this? Then that is noted. The same is requested at most once a second,
 * something else or another thread immediately, and nothing while the view is frozen. */
bool data_want_details(struct data *d, const struct wire_threads *want, double now_s);

void data_set_state(struct data *d, enum session_state state, const struct err *why, double retry_at_s);

/* Freeze what is shown, or show the newest again. */
void data_set_paused(struct data *d, bool paused);

/* What the screens show; NULL before the first snapshot. */
const struct data_shot *data_shown(const struct data *d);

/* How a step through the past ended. */
enum data_step { DATA_STEP_DONE = 0, DATA_STEP_END, DATA_STEP_FAILED };

/* Show the snapshot before (-1) or after (1) the one that is shown, and freeze the view. END: there
 * is none. */
enum data_step data_step(struct data *d, int step);

/* Show the newest snapshot within a time, in seconds since the epoch; DATA_STEP_END: there is
 * none. */
enum data_step data_step_into(struct data *d, double from_s, double to_s);

/* Is an earlier snapshot shown? */
bool data_is_stepped(const struct data *d);

/* Time between what is shown and the newest, in seconds; NAN: unknown. */
double data_shown_age(const struct data *d);

/* For how many seconds a thread of a shot has shown the same stack; NAN: unknown (first snapshot,
 * no frames). */
double data_stack_age(const struct data_shot *shot, size_t thread);

/* The share of the last DATA_GIL_TICKS snapshots in which a thread of a shot held the GIL, and in
 * which it waited for it, where that is known. 0 to 100; NAN: unknown. */
void data_gil_share(const struct data_shot *shot, size_t thread, double *held, double *waiting);

/* Threads that wait for the GIL in a snapshot; `*longest_us` is the longest wait that is known. */
size_t data_gil_waiters(const struct model_snapshot *s, double *longest_us);

/* 100: the GIL is held in a snapshot, 0: it is free; NAN: unknown, or there is none. */
double data_gil_level(const struct model_snapshot *s);

/* Name of a thread for people: Python's, else the kernel's, else "?". */
const char *data_thread_name(const struct model_thread *t);

/* A command line without the folders of its program: "python train.py" for "/usr/bin/python
 * train.py". */
const char *data_short_command(const char *cmdline);

/* How a frame's function is drawn: as the job's own, of a library (by the folders where Python
 * keeps those), or native. */
enum theme_role data_frame_role(const struct model_frame *f);

/* The thread with that tid in a shot, or NULL. */
const struct model_thread *data_find_thread(const struct data_shot *shot, int64_t tid);

/* It had ended before it was opened: there is only what it left. */
bool data_is_recorded(const struct data *d);

/* The connection has ended for good. */
bool data_is_over(const struct data *d);

#endif
