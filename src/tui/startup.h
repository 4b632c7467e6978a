/* SPDX-License-Identifier: Apache-2.0 */
/*
 * startup: what the program begins with: the settings file, the command line over it, the theme
 * that they name, and where all of these are. A mistake in a file is a warning, one on the command
 * line an error. Before the terminal is touched.
 */
#ifndef TUI_STARTUP_H
#define TUI_STARTUP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "tui/core/config_file.h"
#include "tui/core/settings.h"
#include "tui/main_options.h"
#include "tui/theme/theme.h"

struct startup {
    struct settings settings;
    char config_path[CONFIG_FILE_PATH]; /* "": nowhere */
    char themes_user[CONFIG_FILE_PATH], themes_beside[CONFIG_FILE_PATH], themes_above[CONFIG_FILE_PATH],
        themes_installed[CONFIG_FILE_PATH];
    struct theme_path theme_path; /* points into this struct */
    struct theme theme;
    struct strbuf warnings; /* one a line */
};

/* Read the file (including its keys), then the command line. -1 with ERR_USAGE for the latter. Call
 * startup_fini in either case. */
int startup_read(struct startup *s, const struct main_options *o, struct err *e);
void startup_fini(struct startup *s);

/* Load the theme. One that the command line names must exist; a missing one of the file is replaced
 * by the default. */
int startup_load_theme(struct startup *s, struct err *e);

#define STARTUP_MAX_THEMES 64

/* Names of the themes that are found, at most `max`. Returns their number. */
size_t startup_list_themes(char names[][THEME_MAX_NAME], size_t max);

/* The same for --help. */
void startup_put_themes(struct strbuf *out);

#endif
