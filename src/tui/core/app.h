/* SPDX-License-Identifier: Apache-2.0 */
/*
 * app: all that the program knows: the data of the targets, the open screens, the prompt, the message line, and what is under
 * way.
 *
 * The app is the program without its surroundings: events and data go in (app_input.h, app_take.h), cells come out
 * (app_draw.h), and calls of its host (app_host.h). The host, or a test, feeds it. Time is what the caller says it is. One
 * thread.
 *
 * Here are only the structs, each with the header of the functions that change it.
 */
#ifndef TUI_CORE_APP_H
#define TUI_CORE_APP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "client/history.h"
#include "client/repl/repl_engine.h"
#include "client/samples/sample_store.h"
#include "client/session/debug_command.h"
#include "client/session/session.h"
#include "client/symbols/source_text.h"
#include "client/target/target.h"
#include "tui/core/app_host.h"
#include "tui/core/settings.h"
#include "tui/keys/action.h"
#include "tui/model/data.h"
#include "tui/model/log.h"
#include "tui/theme/theme.h"
#include "tui/view/grid.h"
#include "tui/view/list.h"
#include "tui/view/prompt.h"
#include "tui/view/tags.h"
#include "tui/workers/querier.h"
#include "wire/wire.h"

struct command_choices;
struct screen_def;

/* ---- the app as it was started ---- */

#define APP_MAX_SCREENS 8
#define APP_MAX_THEMES 64
#define APP_FAST_S 0.25     /* who wants snapshots more often wants samples as often, too */
#define APP_PAUSED_S 5.0    /* while the view is paused: time between two snapshots, and batches of samples */
#define APP_SAMPLE_HZ 100.0 /* asked for where a screen needs samples */
#define APP_SAMPLE_STAY_S 10 /* they go on so long when it is left: who comes back soon has no gap */

struct app_config {
    const char *diff; /* a recording to compare with from the start; NULL none */
    double delay_s;   /* between snapshots; 0 for a single look */
    bool ascii;
    bool mouse;
    const char *filter; /* to start with; NULL none */
    bool pick;          /* start with the choice of a process */
    bool readonly;      /* actions that change the target are refused */
    bool is_utf8;       /* the locale's characters are */
    bool hide_idle;     /* to start with */
    const struct settings *
        settings; /* what the user has set: delay, ascii, mouse, filter, ... are from there; NULL: as above */
    const char *config_path;     /* where settings are saved; "" or NULL nowhere */
    const struct app_host *host; /* does what the app asks for; copied. NULL: nobody */
    double began_s;              /* when attaching to the target began, on the caller's clock; 0 not known */
};

/* ---- open screens ---- */

/* app_screen.h: one open screen. */
struct app_screen {
    const struct screen_def *def;
    void *state;
};

/* tabs.h: where the names of the screens were drawn. */
struct app_tabs {
    int row, col; /* row -1: they were not */
    int form;     /* as they were written, see tabs.c */
};

/* ---- which time is shown ---- */

/* window.h: the time that all screens show. */
struct window {
    enum sample_store_window which;  /* as it was chosen; for what it is see window_which */
    enum sample_store_window before; /* the last one that was no span */
    unsigned version;                /* counts up with each change */
};

/* app_history.h: the span of samples that the user had set, while that of an earlier moment is shown. */
struct app_history {
    bool has_span, was_set;
    double from_s, to_s;
    bool into_span; /* the moment was stepped to because a span was made the window */
};

/* app_diff.h: what that time is compared with. */
struct app_diff {
    bool on;
    bool has_span;                 /* a span was chosen: it is what is compared with */
    double span_from_s, span_to_s; /* on the samples' clock */
    bool has_other;                /* a recording was given: `other` is what is compared with */
    struct sample_store *other;    /* its samples; NULL: none came yet */
    char name[128];                /* as it was given */
    bool has_failed;               /* it cannot be read; the log says why */
    double made_from_s, made_to_s; /* what was shown when SAMPLE_STORE_OTHER was last made; 0 never */
    uint64_t ids;                  /* of the tally then */
    enum sample_store_window made_for;
    unsigned pauses; /* of the data then */
};

/* ---- several targets ---- */

#define TARGETS_MAX 16           /* more are refused: each costs a session and what is known of it */
#define TARGETS_BACKGROUND_S 2.0 /* between two snapshots of one that is not shown */

/* targets.h: one of several. */
struct app_target {
    pid_t pid;        /* as seen from here; 0 unknown */
    char name[128];   /* as it was asked for */
    struct data data; /* while it is not shown */
};

struct app_targets {
    struct app_target items[TARGETS_MAX];
    int n;            /* 0: there is one target alone */
    int shown;        /* which of them */
    struct tags tags; /* that are tagged in the list of them, by their numbers, from 1 */
    struct data_children
        rows; /* those not shown, for Threads: shots and texts are borrowed from their data */
    struct data_child row_items[TARGETS_MAX];
};

/* ---- tables ---- */

#define APP_FEED_TEXT 1024

/* app_feed.h: one for each table that a screen shows. */
enum app_feed_id {
    FEED_TENSORS = 0,
    FEED_TENSOR_GROWTH,
    FEED_TENSOR,  /* what is asked of one alone: figures, */
    FEED_HOLDERS, /* and what holds it */
    FEED_MODULES,
    FEED_ARMED,
    FEED_LOADERS,
    FEED_LOADER_WORKERS,
    FEED_VERDICTS, /* no query: verdicts are judged, see querier_judge */
    FEED_STEPS,
    FEED_STEP_SAMPLES,
    FEED_COUNT,
};

struct app_feed {
    char text[APP_FEED_TEXT]; /* of the query */
    bool wanted, running;     /* asked for and not begun; begun and not answered */
    bool again;               /* it was, because it was time, and not because somebody wants it now */
    double asked_s;           /* when, on the caller's clock */
    bool is_answered;         /* once at least: rows, or verdicts, are there */
    struct result *rows;      /* the newest; NULL none yet. Owned */
    struct verdicts verdicts; /* the same of FEED_VERDICTS. Owned */
    double answered_s;        /* when they came */
    double elapsed_s;         /* how long they took */
    bool truncated;           /* there are more */
    struct err error;         /* of the newest answer; ERR_OK: it went well */
    char note[256];           /* what cannot be seen and why; "" nothing */
    double failed_s;          /* since when answers are errors; 0 they are not */
    unsigned version;         /* counts answers */
};

struct app_feeds {
    struct app_feed feeds[FEED_COUNT];
};

/* app_query.h: queries of the SQL screen. */
enum app_query_request { APP_QUERY_NONE = 0, APP_QUERY_TABLES, APP_QUERY_RUN, APP_QUERY_EXPORT };

struct app_query {
    enum app_query_request pending; /* asked for and not begun; cleared by the host that begins it */
    char *text;                     /* of the query that runs, or ran last; owned */
    struct querier_export exported; /* with APP_QUERY_EXPORT */
    bool running;                   /* asked for, and not answered */
    bool exporting;                 /* what runs is an export */
    bool is_listing;                /* what runs lists the tables: `pending` may wait for its end */
    double began_s;                 /* since when, on the caller's clock */
    struct querier_answer answer;   /* of the last query */
    unsigned answers;               /* how many queries were answered */
    struct catalog *catalog;        /* the newest; NULL: not known yet */
    unsigned catalogs;              /* how many there were */
    char note[640];                 /* what cannot be seen and why */
    struct history history;
    bool has_history;    /* it was opened */
    char saved_dir[512]; /* where the user's queries are kept; "" nowhere */
    double watch_s;      /* > 0: the query is run again and again */
    double due_s;        /* when next, on the caller's clock */
};

/* ---- code and debuggers in the job ---- */

/* app_repl.h: code for the job, one thing at a time. */
/* What became of a question, for who asked it. */
enum app_repl_end { APP_REPL_ANSWERED, APP_REPL_REFUSED };

struct app_repl {
    struct repl_engine engine;
    double began_s;            /* of the question, on the caller's clock */
    unsigned answers;          /* questions that have ended: */
    enum repl_ask ended;       /* the last one, */
    enum app_repl_end end;     /* and how; then of WHOLE: */
    enum repl_code code_state; /* the state of the code */
    struct strbuf names;       /* and of NAMES: a line each */
    struct strbuf log;         /* lines with a pager_mark each */
    unsigned logged;           /* changes with it */
    struct strbuf last;        /* the result of the last code, as text */
    bool to_output;            /* the screen is to give the keys to the output */
    bool has_history;          /* it was opened */
};

/* app_debug.h: a debugger that was begun from here. */
struct app_debug {
    const struct debug_command_def *def; /* what is asked; NULL nothing is */
    struct wire_debug want;              /* so; owned */
    bool exposed;                        /* and others may reach its address */
    bool debugs;                         /* debugpy listens that was begun from here */
};

/* app_watch.h: a local variable whose value is to be recorded. */
struct app_watch {
    char expr[256]; /* begin or end to watch this, once the agent has sent its settings; "" nothing */
};

/* ---- what is typed and done ---- */

/* command_line.h: the line behind the colon. */
struct command_line {
    struct history history;
    bool has_history; /* it was opened */
    long at;          /* entry that is shown; -1: what was typed */
    char typed[PROMPT_MAX];
    struct command_choices *choices; /* NULL: there was no memory; made when it is first needed */
    bool listing;                    /* they are shown */
    struct list list;
};

/* row_actions.h: what is done with the selected row. */
struct row_actions {
    int menu_row, menu_col; /* where the menu was asked for with the mouse; -1: by a key */
    bool readonly;          /* nothing that changes the target */
};

/* app_details.h: lines of a source file that a screen shows. */
struct app_source {
    char path[1024]; /* that were asked for last; "" none, */
    int from;        /* from this line on */
};

/* ---- all of it ---- */

struct app {
    struct app_config config;
    struct settings settings;
    struct data data;           /* of the target that is shown */
    struct app_targets targets; /* all of them, where there are several */
    struct app_history past;
    struct app_diff diff;
    struct window window; /* of time, that screens look at */
    double now_s;         /* the caller's clock, monotonic */
    double epoch_s;       /* the time of day at now_s */
    struct app_screen screens[APP_MAX_SCREENS];
    int n_screens;
    struct app_screen kept[APP_MAX_SCREENS]; /* closed ones that are opened again as they were */
    int n_kept;
    double samples_until_s;     /* while no open screen needs samples: when they may end */
    struct rect body;           /* where the top screen was drawn */
    int drawn_rows, drawn_cols; /* of the whole screen, when it was last drawn */
    int footer_row;             /* -1: not drawn */
    struct app_tabs tabs;
    bool folded; /* the header takes one line */
    bool too_small;
    bool mouse;

    struct prompt prompt;
    enum action prompt_for; /* ACTION_NONE: no prompt is open */
    bool prompt_failed;
    int cursor_row, cursor_col; /* of the terminal's cursor; -1 hidden */

    char message[512];
    bool message_is_bad;
    struct log *log; /* what happened */

    struct target_process *processes; /* of the picker */
    size_t n_processes;
    bool has_processes;
    char hidden[160]; /* why some cannot be seen; "" no reason is known */
    double began_s;   /* when the last attach began; 0 not known */
    pid_t attaching;  /* > 0: an attach is under way */
    pid_t pid;        /* of the target, as seen from here; 0 unknown */
    pid_t came_from;  /* > 0: the process that the target was opened from, as its child */

    char themes[APP_MAX_THEMES][THEME_MAX_NAME]; /* their names */
    size_t n_themes;

    struct app_query query;
    struct app_repl repl;
    struct app_debug told;
    struct app_feeds feeds; /* tables that screens show */
    struct app_watch watch;
    struct command_line command;
    struct row_actions hands;
    pid_t attach_more[TARGETS_MAX]; /* that are to be attached to next: several were chosen together */
    int n_attach_more;
    bool attaches_several; /* the one that is attached to is one of these */
    struct tags threads;   /* that are tagged, on all screens whose rows are threads */
    struct tags functions; /* and lines and modules, on all screens of samples: by pick_frame_key */

    bool native;        /* samples come with native frames, */
    unsigned native_on; /* and these screens show them: ACTION_IN of their contexts */
    struct app_source source_asked;
    struct source_text *source; /* what was read last; NULL nothing yet */

    struct app_host host;
    bool dirty;
};

#endif
