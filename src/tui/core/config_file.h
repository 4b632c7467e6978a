/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_file: the user's file of settings and keys.
 *
 * Lines "setting = value" (settings.h), then in a section [keys] "CONTEXT.ACTION = KEY KEY"
 * (action_keys.h); a line that starts with # is a comment. A mistake is a warning with its line and
 * never keeps the program from starting. The file is written only when the user asks for it: whole
 * or not at all, readable by its owner alone, never through a link and never over a file of
 * somebody else; comments and unknown lines stay. Bounded: CONFIG_FILE_MAX bytes.
 */
#ifndef TUI_CORE_CONFIG_FILE_H
#define TUI_CORE_CONFIG_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "tui/core/settings.h"

#define CONFIG_FILE_MAX ((size_t)64 * 1024)
#define CONFIG_FILE_PATH 4096

/* Where the file is: $PROBING_TOP_CONFIG, else probing-top/config in $XDG_CONFIG_HOME or ~/.config.
 * False if none of these is set; then `path` is "". */
bool config_file_path(char *path, size_t cap);

/* The folder "probing-top" of $XDG_CONFIG_HOME or ~/.config, found the same way. */
bool config_file_folder(char *path, size_t cap);

/* Read a file's text into `s` and the keys. Warnings are appended, "SOURCE:LINE: ..." each; NULL
 * drops them. */
void config_file_parse(struct settings *s, const char *text, size_t len, const char *source,
                       struct strbuf *warnings);

/* Read the file; a missing one counts as empty. */
void config_file_read(struct settings *s, const char *path, struct strbuf *warnings);

/* The whole of a regular file that fits into `text`. 0, or -1 with errno. */
int config_file_load(const char *path, struct strbuf *text);

/* The `text` of a file with the settings that were changed by hand replaced or added. */
void config_file_edit(const struct settings *s, const char *text, size_t len, struct strbuf *out);

/* Save what was changed by hand; it counts as read from the file then. -1 with the error: the file
 * is unchanged. */
int config_file_save(struct settings *s, const char *path, struct err *e);

/* Everything that is in effect, as such a file. */
void config_file_print(const struct settings *s, const char *path, struct strbuf *out);

#endif
