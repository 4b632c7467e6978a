/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_theme: the theme on the host's loop, how the terminal is used, and the settings file.
 *
 * The files of the theme are watched: when an editor saves one (or at SIGUSR2), they are read
 * again. A line with a mistake is skipped with a warning, as at the start. Settings are written on
 * request. One thread.
 */
#ifndef TUI_HOST_HOST_THEME_H
#define TUI_HOST_HOST_THEME_H

#include "client/loop.h"
#include "tui/core/app.h"
#include "tui/term/term.h"
#include "tui/theme/theme.h"

struct host_theme {
    struct app *app;
    struct loop *loop;
    struct term **term;         /* the host's: NULL there until it is open */
    void (*changed)(void *arg); /* there is something to paint */
    void *arg;

    struct theme theme; /* the one that is shown */
    struct theme_path path;
    char name[SETTINGS_TEXT]; /* its name; may be THEME_AUTO */
    enum theme_background background;
    struct theme_files files;
    int inotify; /* -1: files cannot be watched */
    struct loop_watch *watch;
    int wd[THEME_MAX_FILES]; /* of the folder of each file; -1: none */
};

/* Begin with the theme that was loaded by the name in the app's settings, and report the warnings.
 * Sets everything except app, loop, term, changed and arg. */
void host_theme_begin(struct host_theme *l, const struct term_config *term, const struct theme_path *path,
                      const char *warnings);
void host_theme_end(struct host_theme *l);

/* Open the terminal with the current theme and colours. NULL with the error. */
struct term *host_theme_open(const struct host_theme *l, const struct term_config *config, struct err *e);

/* Load the theme `name`, or (l->name) read the current one again. If there is none of that name
 * nothing changes. */
void host_theme_load(struct host_theme *l, const char *name);

/* Ask the terminal for its background, if the theme depends on it and it is unknown. */
void host_theme_ask(struct host_theme *l);

/* The terminal's answer, a colour. */
void host_theme_take_background(struct host_theme *l, const char *color);

/* Give the app the names of all themes. */
void host_theme_list(struct host_theme *l);

/* Write the settings that were changed. The outcome is a message. */
void host_theme_save_settings(struct host_theme *l);

/* Read the theme again, as after its file was saved. */
void host_theme_reload(struct host_theme *l);

#endif
