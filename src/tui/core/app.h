/* SPDX-License-Identifier: Apache-2.0 */
/*
 * app: the program without its surroundings: events and data go in, cells come out, and calls of its host (app_host.h).
 *
 * Holds the data, the open screens, the prompt and the message line. The host (or a test) feeds it. Time is what the caller
 * says it is. One thread.
 */
#ifndef TUI_CORE_APP_H
#define TUI_CORE_APP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "client/symbols/source_text.h"
#include "client/target/target.h"
#include "tui/core/app_arm.h"
#include "tui/core/app_diff.h"
#include "tui/core/app_feed.h"
#include "tui/core/app_host.h"
#include "tui/core/app_query.h"
#include "tui/core/app_repl.h"
#include "tui/core/app_debug.h"
#include "tui/core/app_watch.h"
#include "tui/core/command_line.h"
#include "tui/model/data.h"
#include "tui/core/row_actions.h"
#include "tui/keys/input.h"
#include "tui/model/log.h"
#include "tui/core/screen.h"
#include "tui/core/targets.h"
#include "tui/core/settings.h"
#include "tui/view/grid.h"
#include "tui/view/prompt.h"
#include "tui/view/tags.h"
#include "tui/core/window.h"

#define APP_MAX_SCREENS 8
#define APP_MAX_THEMES 64
#define APP_MIN_DELAY_S 0.033 /* as often as the screen is painted */
#define APP_FAST_S 0.25       /* who wants snapshots more often wants samples as often, too */
#define APP_MAX_DELAY_S 60.0
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

/* Lines of a source file that a screen shows. */
struct app_source {
    char path[1024]; /* that were asked for last; "" none, */
    int from;        /* from this line on */
};

/* One open screen. */
struct app_screen {
    const struct screen_def *def;
    void *state;
};

/* Where the names of the screens were drawn. */
struct app_tabs {
    int row, col; /* row -1: they were not */
    int form;     /* as they were written, see tabs.c */
};

/* The span of samples that the user had set, while that of a past moment is shown. */
struct app_history {
    bool has_span, was_set;
    double from_s, to_s;
    bool into_span; /* the moment was stepped to because a span was made the window */
};

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

/* Start with nothing known. NULL when memory is short. */
struct app *app_new(const struct app_config *config);
void app_free(struct app *a);

/* Tell the time, before anything else of a round. */
void app_set_time(struct app *a, double now_s, double epoch_s);

void app_input(struct app *a, const struct input_event *e);
void app_key(struct app *a, uint32_t key);

void app_take_target(struct app *a, struct model_target *t);     /* moved out of *t */
void app_take_snapshot(struct app *a, struct model_snapshot *s); /* moved out of *s */
/* False: the stream has to be subscribed to anew, for what it is defined by was lost. */
bool app_take_samples(struct app *a, const struct model_sample_batch *b);

/* Ask for the variables, tasks or native frames of a thread; the answer is moved out of *s. */
void app_ask_details(struct app *a, const struct wire_threads *want);
void app_take_locals(struct app *a, struct model_snapshot *s);
void app_set_state(struct app *a, enum session_state state, const struct err *why, double retry_in_s);

/* The agent about itself, borrowed; and what the kernel says of the target. */
void app_take_status(struct app *a, const struct model_status *s);
void app_take_proc_stats(struct app *a, const struct proc_stats *v);

/* Is there use for those now? The agent is asked once in any case: by which way it came in. */
bool app_wants_proc_stats(const struct app *a);
bool app_wants_status(const struct app *a);

/* Processes for the picker; the list is owned by the app from here. `hidden`: why some are missing; "" none. */
void app_take_processes(struct app *a, struct target_process *list, size_t n, const char *hidden);

/* Names of the themes there are, copied. */
void app_take_themes(struct app *a, char (*names)[THEME_MAX_NAME], size_t n);

/* The target's children; moved out of `*l`. */
void app_take_children(struct app *a, struct children_list *l);

/* Are they on the screen, be it under something that lies over it? */
bool app_shows_children(const struct app *a);

/* Another process is the target from here on: what was known is of the one before. */
void app_set_pid(struct app *a, pid_t pid);

/* Attach to a process. */
void app_attach(struct app *a, pid_t pid);

/* That has ended: NULL well, else why not. */
void app_attach_done(struct app *a, const struct err *why);

/* The next one of several that were chosen together, taken off; 0 none is left. */
pid_t app_attach_next(struct app *a);

/* Why what is shown does not move any more, or is read from outside though nobody asked for that; false when neither is so. */
bool app_banner(const struct app *a, char *buf, size_t cap);

/* Draw everything into `g`. */
void app_draw(struct app *a, struct grid *g);

/* Time between two snapshots as it is now: while the view is paused nobody looks at those that come, but for the header. */
double app_delay_s(const struct app *a);

/* Should a snapshot have come by now? */
bool app_is_late(const struct app *a);

/* Does what is drawn change by time alone (an age, a countdown)? */
bool app_needs_tick(const struct app *a);

/* Time went by: what is due is done. */
void app_tick(struct app *a);

/* Fill a history with what was kept under that name, the first time that it is needed. */
void app_open_history(struct app *a, const char *name, struct history *h, bool *is_open);

/* Leave the program. */
void app_quit(struct app *a);

/* Ask for a line, beginning with `text`; the screen gets it by `typed`. */
void app_prompt(struct app *a, enum action what, const char *label, const char *text);

/* Have lines of a file of the target read, from line `from` on: they come to app->source. Asked for again, nothing happens. */
void app_want_source(struct app *a, const char *path, int from);

/* They were read, or could not be; taken over. */
void app_take_source(struct app *a, struct source_text *text);
void app_forget_source(struct app *a);

/* All open screens look at the data again. */
void app_update_screens(struct app *a);

/* Is the stream of samples to come now? */
bool app_wants_samples(const struct app *a);

/* A line for the user, until the next key. What is bad is in the log, too. */
void app_message(struct app *a, bool is_bad, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* The same about what was typed a moment ago and led to nothing: no event to be remembered. */
void app_refuse(struct app *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Open a screen over the others, close the topmost. */
void app_push(struct app *a, const struct screen_def *def);
void app_pop(struct app *a);
struct app_screen *app_top(struct app *a);

/* Do an action as if its key had been pressed. */
void app_act(struct app *a, enum action action);

/* Open the screen of an action, as if its key had been pressed; it is the topmost then. False when it opens none. */
bool app_open(struct app *a, enum action action);

/* Freeze what all screens show, or show the newest again. */
void app_set_paused(struct app *a, bool paused);

/* Does the screen of a context show native frames? Begin with it, or end it: samples come with them while any screen does. */
bool app_shows_native(const struct app *a, enum action_context context);
void app_toggle_native(struct app *a, enum action_context context);

/* Change the delay by a step up or down. */
void app_step_delay(struct app *a, int step);

/* Exit status for leaving now: 4 when the target was lost, else 0. */
int app_exit_status(const struct app *a);

#endif
