/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_theme: the theme on the host's loop, how the terminal is used, and the settings file: what the app asks for is done.
 *
 * The files of the theme are watched: saved by an editor, they are read again (so they are at SIGUSR2). A line with a mistake is
 * skipped with a warning, then as at the start. Settings are written when asked for. One thread.
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
    struct term **term;         /* of the host: NULL there until it is open */
    void (*changed)(void *arg); /* there is something to paint */
    void *arg;

    struct theme theme; /* as it is shown */
    struct theme_path path;
    char name[SETTINGS_TEXT]; /* of it */
    struct theme_files files;
    int inotify; /* -1: files cannot be watched */
    struct loop_watch *watch;
    int wd[THEME_MAX_FILES]; /* of the folder each file is in; -1 none */
};

/* Begin with the theme that was loaded by the name in the app's settings, and say what there was to say of it. All but app,
 * loop, term, changed and arg is set here. */
void host_theme_begin(struct host_theme *l, const struct term_config *term, const struct theme_path *path,
                      const char *warnings);
void host_theme_end(struct host_theme *l);

/* Open the terminal with the theme and the colours that are set. NULL with the error. */
struct term *host_theme_open(const struct host_theme *l, const struct term_config *config, struct err *e);

/* Load the theme `name`, or (l->name) read the one that is shown again. When there is none of that name nothing is changed. */
void host_theme_load(struct host_theme *l, const char *name);

/* Give the app the names of all themes. */
void host_theme_list(struct host_theme *l);

/* Write the settings that were changed. What came of it is a message. */
void host_theme_save_settings(struct host_theme *l);

/* Read the theme again, as when its file was saved. */
void host_theme_reload(struct host_theme *l);

#endif
