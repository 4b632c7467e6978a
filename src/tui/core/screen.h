/* SPDX-License-Identifier: Apache-2.0 */
/*
 * screen: what a screen is: one descriptor with what it draws, what it does with an action, and its
 * status line. Screens know nothing of terminals, sockets or clocks: they read the app's data and
 * draw cells.
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

/* How a typed line reaches a screen. SCREEN_REDRAW: the key that opened the prompt was pressed
 * again. */
enum screen_typed { SCREEN_TYPING, SCREEN_ACCEPT, SCREEN_CANCEL, SCREEN_REDRAW };

/* Something that a screen shows. */
struct screen_pick {
    int64_t tid;                     /* of a thread; 0: none */
    const struct model_frame *frame; /* of a stack; NULL: none. Borrowed */
    /* The frame stands for its function, its line, or its module */
    enum flame_by by;
    pid_t pid; /* the child process that it belongs to; 0: the target */
};

/* Rows that can be tagged, for tagging.h; all functions are set. Rows count from 0, as they are
 * shown. */
struct screen_rows {
    struct tags *(*tags)(void *state, struct app *app);
    int (*count)(const void *state, const struct app *app);
    int (*selected)(const void *state, const struct app *app); /* -1: none */

    /* Identifies it for as long as the target is shown. */
    uint64_t (*key)(const void *state, const struct app *app, int row);

    /* What it is, and its texts, as of screen_def.pick; appended. */
    void (*put)(const void *state, const struct app *app, int row, struct screen_pick *what,
                struct strbuf *one, struct strbuf *whole);

    bool stays; /* tagging does not move the selection: there is no next row */

    /* Other rows are to be shown now. */
    void (*renew)(void *state, struct app *app);
};

/* Which samples a screen shows. */
struct screen_choice {
    /* The caller sets its window */
    struct flame_query query;
    /* As it was typed; NULL: none */
    const char *filter;
    /* For rows that are modules */
    void (*name_module)(const struct model_frame *f, char *buf, size_t cap);
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
    /* A tab beside others, at the first key that opens it; else above another screen */
    bool is_tab;
    bool needs_torch;    /* it shows what torch has: its tab is dim in a job without it */
    bool needs_gpu;      /* it is offered only where the target has a GPU */
    bool is_overlay;     /* drawn over the screen below, which stays visible */
    bool needs_samples;  /* the stream of samples runs while it is open */
    bool shows_children; /* the target's children are read often, while it is shown */
    bool tells_arms;     /* it shows what is armed in the job, and for whom */
    bool needs_phases;   /* while it is shown, forward and backward of every step are known */
    /* While it is open, what the kernel says about the process is read, and the agent's status. */
    bool needs_vitals;
    /* It shows what was typed or has happened in this session: a single snapshot has no picture of
     * it */
    bool of_session;
    bool of_job;    /* it shows the ranks of a job, and so does the header: app_job.h */
    bool shows_job; /* it shows the job where none of its ranks is open, */
    bool reads_job; /* or the tables of it, if a database has them */
    bool is_kept;   /* opened again, it has kept its state */
    /* Of the struct behind `state`; zeroed before init */
    size_t state_size;
    void (*init)(void *state, struct app *app); /* may be NULL, like all functions but draw */
    void (*fini)(void *state);

    struct action_def opens[SCREEN_MAX_OPENS]; /* rows of the action that opens it */
    enum action_context keys;                  /* whose keys it reads ... */
    /* ... or, if that changes, a function that returns the current one. */
    enum action_context (*context)(const void *state);
    /* Names of its contexts, if there are several or the title differs from the screen's. */
    struct screen_context contexts[SCREEN_MAX_CONTEXTS];

    /* The view of its rows: does what the screen does not (actions, typed text, mouse, pick, tags).
     * May change with the state. */
    struct view *(*view)(void *state);

    /* Draw into `area`, which is at least LAYOUT_MIN_COLS wide. May adjust its own scroll position;
     * changes nothing else. */
    void (*draw)(void *state, struct app *app, struct grid *g, struct rect area);

    /* Do an action; false when it is not for this screen. */
    bool (*act)(void *state, struct app *app, enum action action);

    /* A key without an action: typed text. False: the key has no meaning. */
    bool (*key)(void *state, struct app *app, uint32_t key);

    /* Text that is pasted while no prompt is open. */
    void (*paste)(void *state, struct app *app, const char *text);

    /* Time has passed. */
    void (*tick)(void *state, struct app *app);

    /* A click or wheel inside the area last drawn; false: no meaning there. */
    bool (*mouse)(void *state, struct app *app, const struct input_event *e);

    /* The data changed. */
    void (*update)(void *state, struct app *app);

    /* Text of a prompt: search (ACTION_SEARCH), filter (ACTION_FILTER), or what the screen asked
     * for; true if something matches. */
    bool (*typed)(void *state, struct app *app, enum action what, const char *text, enum screen_typed phase);

    /* What is selected, and its texts for copying: the thing itself, and the whole row or stack.
     * False: nothing is selected. */
    bool (*pick)(const void *state, const struct app *app, struct screen_pick *what, struct strbuf *one,
                 struct strbuf *whole);

    const struct screen_rows *rows; /* that can be tagged, if there is no view; NULL: none */

    /* Which samples it shows, for an export; all of the window if it leaves `out` as it is. */
    void (*choose)(const void *state, struct screen_choice *out);

    /* Go to what was picked on another screen: a thread, a function. False: it is not here. */
    bool (*show)(void *state, struct app *app, const struct screen_pick *what);

    /* What the prompt starts with when the filter is edited. */
    const char *(*typed_before)(const void *state, enum action what);

    /* Is a label of the footer shown as on (upper case)? */
    bool (*is_on)(const void *state, const struct app *app, enum action action);

    /* Left part of the status line. */
    void (*status)(const void *state, const struct app *app, struct strbuf *out);

    /* That it brings, see command.h; ends with a NULL name. NULL: none */
    const struct command_def *commands;
};

#define SCREEN_EXTERN(NAME, name) extern const struct screen_def screen_##name;
SCREEN_LIST(SCREEN_EXTERN, ACTION_NOTHING)

/* All screens, in the order of screen_list.h; ends with NULL. */
extern const struct screen_def *const screen_list[];

/* The screen that an action opens; NULL: none. */
const struct screen_def *screen_of_action(enum action action);

/* The `i`th tab in the order of the line of tabs; NULL: there are fewer. */
const struct screen_def *screen_tab(int i);

/* The key that shows a tab, as the line of tabs writes it. */
char screen_tab_key(const struct screen_def *def);

/* The context whose keys a screen reads now; all of its contexts, as ACTION_IN. */
enum action_context screen_context(const struct screen_def *def, const void *state);
uint64_t screen_contexts(const struct screen_def *def);

#endif
