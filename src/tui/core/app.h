/* SPDX-License-Identifier: Apache-2.0 */
/*
 * app: everything that the program knows: the data of the targets, the open screens, the prompt,
 * the message line, and the requests that are under way.
 *
 * The app is the program without its surroundings: events and data go in (app_input.h, app_take.h),
 * cells come out (app_draw.h), and it calls its host (struct app_host). The host, or a test, feeds it
 * and says what time it is. One thread.
 *
 * This header has all structs; each names the header with the functions that change it. Here are
 * only functions that need no other part of the app.
 */
#ifndef TUI_CORE_APP_H
#define TUI_CORE_APP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "client/fleet/engine_jobs.h"
#include "client/history.h"
#include "client/repl/magic.h"
#include "client/repl/repl_engine.h"
#include "client/samples/sample_store.h"
#include "client/session/debug_command.h"
#include "client/session/session.h"
#include "client/symbols/source_text.h"
#include "client/target/target.h"
#include "tui/core/settings.h"
#include "tui/keys/action.h"
#include "tui/model/data.h"
#include "tui/model/gpus.h"
#include "tui/model/job_history.h"
#include "tui/model/log.h"
#include "tui/theme/theme.h"
#include "tui/view/grid.h"
#include "tui/view/list.h"
#include "tui/view/prompt.h"
#include "tui/view/tags.h"
#include "tui/workers/querier.h"
#include "wire/wire.h"

struct command_choices;
struct export_job;
struct job_shot;
struct screen_def;

/* ---- what is around the app ---- */

/*
 * What the app requests from the program around it: the terminal, files, the job, other threads. The
 * host of src/tui/host does it; a test gives one that notes the requests.
 *
 * The app and its screens call these while they handle a key, data or a tick. So no function here
 * changes the app's data or screens before the app has returned: it acts outwards immediately, or
 * notes the request and does it on the host's next turn, before the next event. The result, a
 * failure included, reaches the app by the app's functions (app_take_..., app_repl_refused ...) on
 * such a turn; only a message may come immediately. A function that returns int reports its failure
 * itself: 0, or -1 with the error.
 *
 * Called from app_new on, when the host must be able to note requests already, and never from
 * app_free. All on one thread.
 */
struct app_host {
    void *arg; /* the first parameter of every function */

    /* --- the program and its terminal --- */
    void (*quit)(void *arg);
    void (*suspend)(void *arg);
    void (*repaint)(void *arg); /* the whole terminal, as after garbage */
    void (*set_mouse)(void *arg, bool on);
    void (*set_theme)(void *arg, const char *name); /* with the colours that are set */
    void (*list_themes)(void *arg);                 /* answered by app_take_themes */

    /* --- files of the user --- */
    void (*save_settings)(void *arg); /* to config.config_path */
    /* Fill `h`, which is empty, with what earlier runs left under that name (history_path). */
    int (*open_history)(void *arg, const char *name, struct history *h, struct err *e);
    /* To the clipboard; `what`: "the frame" */
    void (*copy)(void *arg, const char *what, const char *text, size_t len);
    void (*write)(void *arg, struct export_job *job); /* taken over; answered by app_export_done */
    /* `file` as the process names it; `pid` 0: it is not known, or gone; `line` 0: not known. */
    void (*edit)(void *arg, pid_t pid, const char *file, int line);
    /* The lines of app->source_asked, of the target; answered by app_take_source */
    void (*read_source)(void *arg);

    /* --- targets --- */
    void (*list_processes)(void *arg); /* answered by app_take_processes */
    void (*list_jobs)(void *arg);      /* of config.job_server; answered by app_take_jobs */
    /* `host`: where the process is; NULL: here. Answered by app_attach_done */
    void (*attach)(void *arg, pid_t pid, const char *host);
    void (*show_target)(void *arg, int target); /* by its number in app->targets */
    void (*open_diff)(void *arg, const char *name);
    /* The ranks of a job, each second; answered by app_job_take or app_job_refused. */
    void (*watch_job)(void *arg, const char *target);

    /* Queries are for the tables of that job in a database, while no process is shown. */
    void (*query_job)(void *arg, const char *target);
    void (*find_job)(void *arg, pid_t pid); /* of the target; answered by app_job_take_offer */

    /* --- the target that is shown --- */
    /* WIRE_THREADS, WIRE_STATUS or WIRE_INTERRUPT */
    void (*request)(void *arg, enum wire_method method);
    /* Answered by app_take_locals */
    int (*ask_details)(void *arg, const struct wire_threads *want, struct err *e);
    int (*arm)(void *arg, const struct wire_arm *want, struct err *e);
    int (*disarm)(void *arg, const struct wire_arm *want, struct err *e);
    int (*configure)(void *arg, const struct wire_config *want, struct err *e);
    /* What is asked for stays the app's until the answer: app_repl_take, app_debug_take or
     * app_repl_refused. */
    void (*eval)(void *arg, const struct wire_eval *want);
    /* WIRE_DEBUG, _PAUSE, _CATCH */
    void (*debug)(void *arg, enum wire_method method, const struct wire_debug *want);

    /* --- its tables --- */
    /* Begin what app->query.pending says, once nothing runs; answered by app_take_answer */
    void (*run_query)(void *arg);
    void (*cancel_query)(void *arg);
    /* Run the feeds that app_feed_next names, in turn; answered by app_take_feed. */
    void (*read_feeds)(void *arg);
    /* Moved out of *m; answered by app_repl_take_query. */
    void (*run_magic)(void *arg, struct magic *m, int cols);
    void (*cancel_magic)(void *arg);
};

/* Does nothing: for pictures of a screen, where nobody presses keys. */
extern const struct app_host app_host_none;

/* ---- the app as it was started ---- */

#define APP_MAX_SCREENS 8
#define APP_MAX_THEMES 64
#define APP_FAST_S 0.25 /* below this delay samples are requested as often as snapshots */
/* While the view is frozen: time between two snapshots, and between two batches of samples */
#define APP_PAUSED_S 5.0
/* They continue so long after the screen is left: no gap for who returns soon */
#define APP_SAMPLE_STAY_S 10

struct app_config {
    const char *diff; /* a recording to compare with from the start; NULL: none */
    double delay_s;   /* between snapshots; 0: a single snapshot */
    double sample_hz; /* the rate that is requested where a screen needs samples; 0: the default */
    bool ascii;
    bool mouse;
    const char *filter;              /* at the start; NULL: none */
    bool pick;                       /* start by choosing a process */
    const char *job_server;          /* start by choosing a job of this database; NULL: no */
    const char *job;                 /* a job to watch from the start; NULL: none */
    const char *job_filter;          /* of its ranks; NULL: all */
    bool job_is_closed;              /* its ranks cannot be opened: there is no way to their hosts */
    const struct screen_def *screen; /* the first; NULL: as the settings say */
    bool readonly;                   /* refuse actions that change the target */
    bool is_utf8;                    /* more than ASCII can be drawn */
    bool hide_idle;                  /* at the start */
    bool tour;                       /* begin with the tour (tour.h) */
    /* The user's settings: delay, rate, ascii, mouse, filter, ... come from there; NULL: from above */
    const struct settings *settings;
    const char *config_path;     /* where settings are saved; "" or NULL: nowhere */
    const struct app_host *host; /* does what the app requests; copied. NULL: nobody */
    double began_s;              /* when attaching began, on the caller's clock; 0: unknown */
};

/* ---- open screens ---- */

/* app_screen.h: one open screen. */
struct app_screen {
    const struct screen_def *def;
    void *state;
};

/* app_draw.h: where the names of the screens were drawn. */
struct app_tabs {
    int row, col; /* row -1: nowhere */
    int cols;     /* that they may take */
    int form;     /* how they were written, see app_draw.c */
};

/* ---- which time is shown ---- */

/* window.h: the time that all screens show. */
struct window {
    enum sample_store_window which;  /* as it was chosen; window_which says which one applies */
    enum sample_store_window before; /* the last one that was not a span */
    unsigned version;                /* incremented by each change */
};

/* app_history.h: the span of samples that the user had set, kept while an earlier moment is
 * shown. */
struct app_history {
    bool has_span, was_set;
    double from_s, to_s;
    bool into_span; /* the moment was reached because a span became the window */
};

/* app_diff.h: what that time is compared with. */
struct app_diff {
    bool on;
    bool has_span;                 /* compare with a span that was chosen */
    double span_from_s, span_to_s; /* on the samples' clock */
    bool has_other;                /* compare with a recording: `other` */
    struct sample_store *other;    /* its samples; NULL: none have arrived yet */
    char name[128];                /* as the user typed it */
    bool has_failed;               /* it cannot be read; the log has the reason */
    /* What was shown when SAMPLE_STORE_OTHER was last made; 0: never made */
    double made_from_s, made_to_s;
    uint64_t ids; /* of the tally at that time */
    enum sample_store_window made_for;
    unsigned pauses; /* of the data at that time */
};

/* ---- several targets ---- */

#define TARGETS_MAX 16           /* more are refused: each costs a session and a sample store */
#define TARGETS_BACKGROUND_S 2.0 /* between two snapshots of a hidden target */

/* targets.h: one of several. */
struct app_target {
    pid_t pid;        /* as seen from here; 0: unknown */
    char name[128];   /* as the user typed it */
    struct data data; /* while it is hidden */
};

struct app_targets {
    struct app_target items[TARGETS_MAX];
    int n;            /* 0: there is only one target */
    int shown;        /* the number of the one that is shown */
    struct tags tags; /* tagged rows of the Targets screen, by target number, from 1 */
    /* The hidden ones, for Threads: shots and texts are borrowed from their data */
    struct data_children rows;
    struct data_child row_items[TARGETS_MAX];
};

/* ---- the ranks of a job ---- */

/* The process that is shown is a rank, or the launcher, of a job that is not watched yet. */
struct app_job_offer {
    pid_t pid;    /* 0: none is */
    char job[80]; /* its name */
    int32_t rank; /* -1: the launcher */
    int32_t world;
};

/* Whether it is a launcher was looked for when it had so many children, the most so far. */
struct app_job_search {
    pid_t pid;
    size_t children;
};

/* app_job.h: the job whose ranks are watched. */
struct app_job {
    char target[512];              /* as it was named; "": none is watched */
    struct job_shot *shot;         /* the newest; owned */
    struct job_history past;       /* those before it; of a database only what is shown: it has them */
    struct job_shot *read;         /* of the past, as the database has it; owned */
    const struct job_shot *frozen; /* what a frozen view shows: one of these */
    double moment;                 /* of the past, that is shown or being read of a database; NAN: none */
    bool has_past;                 /* it is a database */
    char tables[512];              /* whose tables are read: the job at a moment; "": none yet */
    double arrived_s;
    struct err error; /* why there is no newer one; ERR_OK: there is */
    int32_t rank;     /* that is selected; -1: none */
    int32_t opening;  /* being attached to; -1: none */
    int32_t opened;   /* attached to last; -1: none */
    bool shows;       /* then one of its screens is shown */
    struct tags tags; /* tagged ranks: their number, from 1 */
    char filter[256]; /* for Ranks, from another screen or the command line; "": none */
    struct app_job_offer offer;
    struct app_job_search search;
};

/* The jobs of a database, to choose one. */
struct app_jobs {
    struct engine_jobs list;
    bool is_known;    /* it was read at least once */
    struct err error; /* why the newest list is not there; ERR_OK: it is */
};

/* ---- tables ---- */

#define APP_FEED_TEXT 1024

/* app_feed.h: one for each table that a screen shows. */
enum app_feed_id {
    FEED_TENSORS = 0,
    FEED_TENSOR_GROWTH,
    FEED_TENSOR,  /* for one tensor only: figures, */
    FEED_HOLDERS, /* and the objects that hold it */
    FEED_MODULES,
    FEED_ARMED,
    FEED_LOADERS,
    FEED_LOADER_WORKERS,
    FEED_VERDICTS, /* not a query: see querier_judge */
    FEED_JOB,      /* what the header says of the training: a row */
    FEED_STEPS,
    FEED_STEP_SAMPLES,
    FEED_STEP_STACKS,    /* of these samples */
    FEED_MEMORY,         /* its past, */
    FEED_MEMORY_PROCESS, /* from the kernel, too */
    FEED_MEMORY_SITES,   /* lines that allocate, */
    FEED_MEMORY_STACKS,  /* their stacks, */
    FEED_MEMORY_HOLDERS, /* and what variables hold */
    FEED_GPU,            /* its last minutes: `gpus`, */
    FEED_GPU_MEMORY,     /* and what torch has there, */
    FEED_GPU_BLOCKS,     /* and which stacks have allocated it; */
    FEED_GPU_PROCESSES,  /* who else has memory there */
    FEED_COUNT,
};

struct app_feed {
    char text[APP_FEED_TEXT];     /* of the query */
    char answered[APP_FEED_TEXT]; /* of the one that gave the rows */
    bool wanted, running;         /* requested and not begun; begun and not answered */
    bool again;                   /* requested because it was due, not because the user waits for it */
    double asked_s;               /* when, on the caller's clock */
    bool is_answered;             /* at least once: there are rows, or verdicts */
    struct result *rows;          /* the newest; NULL: none yet. Owned */
    struct verdicts verdicts;     /* the newest of FEED_VERDICTS. Owned */
    double answered_s;            /* when they arrived */
    double elapsed_s;             /* how long the query took */
    bool truncated;               /* there are more rows */
    struct err error;             /* of the newest answer; ERR_OK: none */
    char note[256];               /* what cannot be seen, and why; "": nothing */
    double failed_s;              /* since when answers are errors; 0: they are not */
    unsigned version;             /* counts answers */
};

struct app_feeds {
    struct app_feed feeds[FEED_COUNT];
    struct gpus gpus; /* of the newest answer */
};

/* app_query.h: queries of the SQL screen. */
enum app_query_request { APP_QUERY_NONE = 0, APP_QUERY_TABLES, APP_QUERY_RUN, APP_QUERY_EXPORT };

struct app_query {
    /* Requested and not begun; cleared by the host when it begins */
    enum app_query_request pending;
    char *text;                     /* of the query that is running, or ran last; owned */
    struct querier_export exported; /* with APP_QUERY_EXPORT */
    bool running;                   /* requested and not answered */
    bool exporting;                 /* an export is running */
    /* The list of tables is being read: `pending` may wait for its end */
    bool is_listing;
    double began_s;               /* when it began, on the caller's clock */
    struct querier_answer answer; /* of the last query */
    unsigned answers;             /* how many queries have been answered */
    struct catalog *catalog;      /* the newest; NULL: unknown yet */
    unsigned catalogs;            /* how many have arrived */
    char note[640];               /* what cannot be seen, and why */
    struct history history;
    bool has_history;    /* it has been opened */
    char saved_dir[512]; /* where the user's queries are kept; "": nowhere */
    double watch_s;      /* > 0: the query is repeated */
    double due_s;        /* when it is next due, on the caller's clock */
};

/* ---- code and debuggers in the job ---- */

/* How a question has ended, for whoever asked it. */
enum app_repl_end { APP_REPL_ANSWERED, APP_REPL_REFUSED };

/* app_repl.h: code for the job, one thing at a time. */
struct app_repl {
    struct repl_engine engine;
    double began_s;            /* when it was asked, on the caller's clock */
    unsigned answers;          /* questions that have ended: */
    enum repl_ask ended;       /* the last one, */
    enum app_repl_end end;     /* and how; then of WHOLE: */
    enum repl_code code_state; /* the state of the code */
    struct strbuf names;       /* and of NAMES: one a line */
    struct strbuf log;         /* lines, each after its pager_mark */
    unsigned logged;           /* counts changes of it */
    struct strbuf last;        /* the result of the last code, as text */
    bool to_output;            /* the screen should focus the output */
    bool has_history;          /* it has been opened */
};

/* app_debug.h: a debugger that was started from here. */
struct app_debug {
    const struct debug_command_def *def; /* what is requested; NULL: nothing */
    struct wire_debug want;              /* and how; owned */
    bool exposed;                        /* others can reach its address */
    bool debugs;                         /* debugpy listens because of us */
};

/* app_arm.h: a local variable whose value is to be recorded. */
struct app_watch {
    char expr[256]; /* toggle this one once the agent has sent its settings; "": none */
};

/* ---- what is typed and done ---- */

/* command.h: the line behind the colon. */
struct command_line {
    struct history history;
    bool has_history; /* it has been opened */
    long at;          /* the entry that is shown; -1: what was typed */
    char typed[PROMPT_MAX];
    struct command_choices *choices; /* made when first needed; NULL: not yet, or out of memory */
    bool listing;                    /* they are shown */
    struct list list;
};

/* app_ask.h: a question before something is done to the job. */
struct app_ask {
    enum action action;        /* that waits for the answer; ACTION_NONE: nothing is asked */
    bool agreed[ACTION_COUNT]; /* to these, in this session */
};

/* tour.h: the walk through the screens. */
struct app_tour {
    bool on;
    int page;       /* of tour_pages */
    unsigned typed; /* pages whose text is in the editor: 1 << page */
    bool is_typing; /* keys go to the editor */
};

/* row_actions.h: what is done with the selected row. */
struct row_actions {
    int menu_row, menu_col; /* where the menu was opened with the mouse; -1: by a key */
    bool readonly;          /* refuse what changes the target */
};

/* Lines of a source file that a screen shows. */
struct app_source {
    char path[1024]; /* the file requested last; "": none */
    int from;        /* the first line */
};

/* ---- all of it ---- */

struct app {
    struct app_config config;
    struct settings settings;
    struct data data;           /* of the target that is shown */
    struct app_targets targets; /* all of them, if there are several */
    struct app_job job;         /* of which the target is a rank */
    struct app_history history;
    struct app_diff diff;
    struct window window; /* the time that the screens show */
    double now_s;         /* the caller's clock, monotonic */
    double epoch_s;       /* seconds since the epoch at now_s */
    struct app_screen screens[APP_MAX_SCREENS];
    int n_screens;
    struct app_screen kept[APP_MAX_SCREENS]; /* closed ones that keep their state */
    int n_kept;
    double samples_until_s;     /* while no open screen needs samples: when they stop */
    struct rect body;           /* where the top screen was drawn */
    int drawn_rows, drawn_cols; /* of the whole terminal, when it was last drawn */
    int footer_row;             /* -1: not drawn */
    struct app_tabs tabs;
    bool folded; /* the header takes one line */
    bool too_small;
    bool mouse;

    struct prompt prompt;
    enum action prompt_for; /* ACTION_NONE: no prompt is open */
    bool prompt_failed;
    int cursor_row, cursor_col; /* of the terminal's cursor; -1: hidden */

    char message[512];
    bool message_is_bad;
    struct log *log; /* of events */

    struct target_process *processes; /* of the picker */
    size_t n_processes;
    bool has_processes;
    char hidden[160]; /* why some are missing; "": unknown */
    double began_s;   /* when the last attach began; 0: unknown */
    struct app_jobs jobs;
    pid_t attaching; /* > 0: an attach is under way */
    pid_t pid;       /* of the target, as seen from here; 0: unknown */
    pid_t came_from; /* > 0: the target is a child that was opened from this process */

    char themes[APP_MAX_THEMES][THEME_MAX_NAME]; /* their names */
    size_t n_themes;

    struct app_query query;
    struct app_repl repl;
    struct app_debug debug;
    struct app_feeds feeds; /* tables that screens show */
    struct app_watch watch;
    struct command_line command;
    struct app_ask ask;
    struct app_tour tour;
    struct row_actions row_actions;
    pid_t attach_more[TARGETS_MAX]; /* to be attached to next: several were chosen together */
    int n_attach_more;
    bool attaches_several; /* the current attach is one of these */
    struct tags threads;   /* tagged rows of all screens whose rows are threads */
    /* Tagged functions, lines and modules of all screens of samples: by pick_frame_key */
    struct tags functions;

    bool native;        /* samples are requested with native frames, */
    uint64_t native_on; /* and these screens show them: ACTION_IN of their contexts */
    struct app_source source_asked;
    struct source_text *source; /* read last; NULL: nothing yet */

    struct app_host host;
    bool dirty;
};

/* ---- the message line: what is said to the user until the next key ---- */

/* A message. Bad ones go to the log, too. */
void app_message(struct app *a, bool is_bad, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* A bad message about a key or a command that has no effect: not an event for the log. */
void app_refuse(struct app *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- a line that the user types below the screen ---- */

/* Ask for a line that begins with `text`; the screen gets it by `typed`. */
void app_prompt(struct app *a, enum action what, const char *label, const char *text);

/* Load the history of that name, the first time that it is needed. */
void app_open_history(struct app *a, const char *name, struct history *h, bool *is_open);

/* ---- what a screen requests besides snapshots and samples ---- */

/* Request the variables, tasks or native frames of a thread; the answer is moved out of *s. */
void app_ask_details(struct app *a, const struct wire_threads *want);
void app_take_locals(struct app *a, struct model_snapshot *s);

/* Request the lines of a file of the target, from line `from` on: they arrive in app->source. The
 * same request again does nothing. */
void app_want_source(struct app *a, const char *path, int from);

/* They were read, or could not be; takes ownership. */
void app_take_source(struct app *a, struct source_text *text);
void app_forget_source(struct app *a);

/* Attach to a process, or to one of another host of the job; answered by app_attach_done. */
void app_attach(struct app *a, pid_t pid);
void app_attach_there(struct app *a, pid_t pid, const char *host);

/* Leave the program. */
void app_quit(struct app *a);

#endif
