/* SPDX-License-Identifier: Apache-2.0 */
/*
 * screens: every screen there is, one line each, and the parts they share.
 */
#ifndef TUI_SCREENS_SCREENS_H
#define TUI_SCREENS_SCREENS_H

#include "tui/core/app.h"
#include "tui/core/screen.h"

extern const struct screen_def screen_overview; /* meters, functions, events */
extern const struct screen_def screen_log;      /* what happened */
extern const struct screen_def screen_threads;  /* threads and the stack of one */
extern const struct screen_def screen_top;      /* functions by their share of the time */
extern const struct screen_def screen_flame;    /* the tree of calls, as wide as its share of the time */
extern const struct screen_def screen_sql;      /* queries and their results */
extern const struct screen_def screen_repl;     /* code that runs in the job */
extern const struct screen_def screen_targets;  /* several targets, to switch between */
extern const struct screen_def screen_timeline; /* what each thread did when */
extern const struct screen_def screen_steps;    /* training steps, what they are spent on */
extern const struct screen_def screen_tensors;  /* the tensors there are, in groups, and which grow */
extern const struct screen_def screen_modules;  /* the modules of models, as trees */
extern const struct screen_def screen_loader;   /* how the training is fed */
extern const struct screen_def screen_picker;   /* choice of a process */
extern const struct screen_def screen_menu;     /* what can be done with the selected row */
extern const struct screen_def screen_export;   /* what is shown, to a file */
extern const struct screen_def screen_setup;    /* what can be set */
extern const struct screen_def screen_themes;   /* choice of a theme */
extern const struct screen_def screen_help;     /* keys, made from the action table */

/* Screens that an action opens over the one that is shown. */
struct screen_opening {
    enum action action;
    const struct screen_def *def;
};

/* All of them; ends with ACTION_NONE. */
extern const struct screen_opening screen_openings[];

/* The header that stands over every screen: rows it takes, and drawing it. */
int header_rows(const struct app *app, int screen_rows);
void header_draw(const struct app *app, struct grid *g, struct rect area);

/* In place of everything when the terminal is too small. */
void toosmall_draw(const struct app *app, struct grid *g);

#endif
