/* SPDX-License-Identifier: Apache-2.0 */
/*
 * screen: what a screen is: one descriptor with what it draws, what it does with an action, what it says in the status
 * line. Screens know nothing of terminals, sockets or clocks: they read the app's data and draw cells.
 *
 * To add one: a file in screens/ that defines a const struct screen_def, and a row of screen_list.h
 * (docs/dev/adding-a-screen.md).
 */
#ifndef TUI_CORE_SCREEN_H
#define TUI_CORE_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/model.h"
#include "base/strbuf.h"
#include "client/samples/sample_flame.h"
#include "tui/keys/action.h"
#include "tui/keys/input.h"
#include "tui/view/grid.h"
#include "tui/view/match.h"
#include "tui/view/tags.h"

struct app;
struct app_screen;
struct command_def;
struct view;

/* How a typed line reaches a screen. SCREEN_REDRAW: the key that opened the prompt was pressed in it. */
enum screen_typed { SCREEN_TYPING, SCREEN_ACCEPT, SCREEN_CANCEL, SCREEN_REDRAW };

/* Something that a screen shows. */
struct screen_pick {
    int64_t tid;                     /* of a thread; 0 none */
    const struct model_frame *frame; /* of a stack; NULL none. Borrowed */
    enum flame_by by;                /* the frame's function is meant, that line, or its module */
    pid_t pid; /* of the process it is of, when that is a child of the target; 0: the target */
};

/* Rows that can be tagged, for tagging.h; all functions are there. Rows count from 0, as they are shown now. */
struct screen_rows {
    struct tags *(*tags)(void *state, struct app *app);
    int (*count)(const void *state, const struct app *app);
    int (*selected)(const void *state, const struct app *app); /* -1 none */

    /* What tells it from all others, for as long as the target is looked at. */
    uint64_t (*key)(const void *state, const struct app *app, int row);

    /* What it is, and its texts, as of screen_def.pick; appended. */
    void (*put)(const void *state, const struct app *app, int row, struct screen_pick *what,
                struct strbuf *one, struct strbuf *whole);

    bool stays; /* what was tagged stays selected: there is no next row */

    /* Other rows are to be shown than before. */
    void (*renew)(void *state, struct app *app);
};

/* Which of the samples a screen shows. */
struct screen_choice {
    struct flame_query query; /* its window is the caller's business */
    const char *filter;       /* as it was typed; NULL none */
    void (*name_module)(const struct model_frame *f, char *buf, size_t cap); /* of one that knows modules */
};

#define SCREEN_MAX_OPENS 2
#define SCREEN_MAX_CONTEXTS 3

/* The row of a key that opens a screen from every tab. */
#define SCREEN_TAB_KEY(NAME, name, key, help)                                                                \
    { ACTION_SHOW_##NAME, name, ACTION_TABS, {key}, NULL, 0, help }

/* A context of a screen, as the help and --list-keys name it. */
struct screen_context {
    enum action_context context;
    const char *name, *title;
};

struct screen_def {
    const char *name;  /* as in docs and tests */
    const char *title; /* in the line of tabs */
    bool is_tab;     /* it stands beside others, by the first key that opens it; else it lies over another */
    bool is_overlay; /* drawn over the screen below it, which is drawn too */
    bool needs_samples; /* the stream of samples comes while it is open */
    bool
        shows_children; /* of the target, as they are now: they are read seldom while another one is looked at */
    bool tells_arms,    /* what is armed in the job, and for whom */
        needs_vitals; /* what the kernel says of the process is read, and the agent asked about itself, while it is open */
    bool of_session; /* what was typed or happened while the program runs: of one look there is no picture */
    bool is_kept;    /* opened again, it is as it was left */
    size_t state_size;                          /* of the struct that `state` points to; zeroed before init */
    void (*init)(void *state, struct app *app); /* may be NULL, like all functions but draw */
    void (*fini)(void *state);

    struct action_def opens[SCREEN_MAX_OPENS]; /* rows of the action that opens it */
    enum action_context keys;                  /* whose keys are read ... */
    /* ... or, if that changes, a function that says it now. */
    enum action_context (*context)(const void *state);
    /* Names of its contexts, if there are several or the title is another than the screen's. */
    struct screen_context contexts[SCREEN_MAX_CONTEXTS];

    /* The view of its rows: does what a screen does not (actions, typed text, mouse, pick, tags). May change with the state. */
    struct view *(*view)(void *state);

    /* Draw into `area`, which is at least LAYOUT_MIN_COLS wide. May settle its own scroll position; changes nothing else. */
    void (*draw)(void *state, struct app *app, struct grid *g, struct rect area);

    /* Do an action; false when it is not for this screen. */
    bool (*act)(void *state, struct app *app, enum action action);

    /* A key that is no action there: text that is typed. False when it is nothing. */
    bool (*key)(void *state, struct app *app, uint32_t key);

    /* Text that is pasted while no prompt is open. */
    void (*paste)(void *state, struct app *app, const char *text);

    /* Time went by. */
    void (*tick)(void *state, struct app *app);

    /* A click or wheel inside the area last drawn; false when it means nothing there. */
    bool (*mouse)(void *state, struct app *app, const struct input_event *e);

    /* The data changed. */
    void (*update)(void *state, struct app *app);

    /* Text of a prompt: search (ACTION_SEARCH), filter (ACTION_FILTER), or what the screen asked for; true when something matches. */
    bool (*typed)(void *state, struct app *app, enum action what, const char *text, enum screen_typed phase);

    /* What is selected, and what is copied of it: the thing itself, and the row or stack with all there is. False: nothing is. */
    bool (*pick)(const void *state, const struct app *app, struct screen_pick *what, struct strbuf *one,
                 struct strbuf *whole);

    const struct screen_rows *rows; /* that can be tagged, of one without a view; NULL none */

    /* Which samples it shows, for an export of them; all of the window when it does not say (`out` says that before). */
    void (*choose)(const void *state, struct screen_choice *out);

    /* Go to what was picked elsewhere: a thread, a function. False when it is not here. */
    bool (*show)(void *state, struct app *app, const struct screen_pick *what);

    /* What the prompt starts with when the filter is edited. */
    const char *(*typed_before)(const void *state, enum action what);

    /* Is a label of the footer to be shown as on (upper case)? */
    bool (*is_on)(const void *state, const struct app *app, enum action action);

    /* Left part of the status line. */
    void (*status)(const void *state, const struct app *app, struct strbuf *out);

    const struct command_def *commands; /* that it brings, see command.h; ends with a NULL name. NULL none */
};

#define SCREEN_EXTERN(NAME, name) extern const struct screen_def screen_##name;
SCREEN_LIST(SCREEN_EXTERN, ACTION_NOTHING)

/* All of them, as screen_list.h has them; ends with NULL. */
extern const struct screen_def *const screen_list[];

/* The screen that an action opens; NULL: it opens none. */
const struct screen_def *screen_of_action(enum action action);

/* The `i`th of the screens that are tabs, in the order in which they are offered; NULL there are not so many. */
const struct screen_def *screen_tab(int i);

/* The key that shows a tab, as it is written there. */
char screen_tab_key(const struct screen_def *def);

/* The context whose keys a screen reads now; all that it has, as ACTION_IN. */
enum action_context screen_context(const struct screen_def *def, const void *state);
unsigned screen_contexts(const struct screen_def *def);

#endif
