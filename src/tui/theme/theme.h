/* SPDX-License-Identifier: Apache-2.0 */
/*
 * theme: how each role looks, at each colour depth.
 *
 * Screens name roles, never colours. A theme gives every role a foreground, a background and
 * attributes in true colour, optionally others for 16 colours, and attributes for no colour at all;
 * the depth is chosen when it is drawn. Files are small and readable (see themes/default.theme); a
 * mistake in one is a warning with file:line and never ends the program. Pure but for theme_load,
 * which reads files.
 */
#ifndef TUI_THEME_THEME_H
#define TUI_THEME_THEME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"

/* Roles: id, name in theme files, purpose. To add one, add a row; the default theme must give it a
 * colour. */
#define THEME_ROLES(X)                                                                                       \
    X(ROLE_TEXT, "text", "everything that has no role of its own")                                           \
    X(ROLE_MUTED, "muted", "what matters less: separators, units, what is unknown")                          \
    X(ROLE_LABEL, "label", "names of facts in the header")                                                   \
    X(ROLE_VALUE, "value", "the facts")                                                                      \
    X(ROLE_TITLE, "title", "title of a pane")                                                                \
    X(ROLE_TITLE_FOCUS, "title.focus", "title of the pane that has the keys")                                \
    X(ROLE_BORDER, "border", "line between panes")                                                           \
    X(ROLE_TABLE_HEAD, "table.head", "names of columns")                                                     \
    X(ROLE_TABLE_SORT, "table.sort", "name of the column sorted by")                                         \
    X(ROLE_SELECTION, "selection", "the selected row where the keys go")                                     \
    X(ROLE_SELECTION_OTHER, "selection.other", "the selected row of the other pane")                         \
    X(ROLE_MATCH, "match", "text that was searched for")                                                     \
    X(ROLE_TAG, "tag", "the sign of a tagged row")                                                           \
    X(ROLE_STATE_RUN, "state.run", "a running thread")                                                       \
    X(ROLE_STATE_SLEEP, "state.sleep", "a sleeping thread")                                                  \
    X(ROLE_STATE_DISK, "state.disk", "a thread that cannot be interrupted")                                  \
    X(ROLE_STATE_STOP, "state.stop", "a stopped or traced thread, a zombie")                                 \
    X(ROLE_GIL_HELD, "gil.held", "holds the GIL")                                                            \
    X(ROLE_GIL_WAITING, "gil.waiting", "waits for the GIL")                                                  \
    X(ROLE_CPU_LOW, "cpu.low", "next to no CPU")                                                             \
    X(ROLE_CPU_MID, "cpu.mid", "some CPU")                                                                   \
    X(ROLE_CPU_HIGH, "cpu.high", "most of a core or more")                                                   \
    X(ROLE_FUNC, "func", "a Python function of the job itself")                                              \
    X(ROLE_FUNC_LIBRARY, "func.library", "a Python function of a library")                                   \
    X(ROLE_FUNC_NATIVE, "func.native", "a native function")                                                  \
    X(ROLE_FILE, "file", "a path")                                                                           \
    X(ROLE_LINE, "line", "a line number")                                                                    \
    X(ROLE_DEPTH, "depth", "number of a frame")                                                              \
    X(ROLE_METER_CPU, "meter.cpu", "history of CPU")                                                         \
    X(ROLE_METER_GIL, "meter.gil", "history of the GIL")                                                     \
    X(ROLE_CONN_OK, "conn.ok", "connected")                                                                  \
    X(ROLE_CONN_WAIT, "conn.wait", "connecting, reconnecting")                                               \
    X(ROLE_CONN_LOST, "conn.lost", "the target is gone")                                                     \
    X(ROLE_STATUS, "status", "the status line")                                                              \
    X(ROLE_STATUS_ON, "status.on", "a mode that is on: frozen, filtered")                                    \
    X(ROLE_STATUS_BAD, "status.bad", "something that failed")                                                \
    X(ROLE_BANNER, "banner", "a line across the screen that must be seen")                                   \
    X(ROLE_FOOTER_KEY, "footer.key", "keys in the last line")                                                \
    X(ROLE_FOOTER_LABEL, "footer.label", "what they do")                                                     \
    X(ROLE_SQL_KEYWORD, "sql.keyword", "SELECT, FROM, ...")                                                  \
    X(ROLE_SQL_FUNCTION, "sql.function", "a function in a query")                                            \
    X(ROLE_SQL_STRING, "sql.string", "a text in a query")                                                    \
    X(ROLE_SQL_NUMBER, "sql.number", "a number in a query")                                                  \
    X(ROLE_SQL_COMMENT, "sql.comment", "a comment in a query")                                               \
    X(ROLE_SQL_ERROR, "sql.error", "where a query is wrong")                                                 \
    X(ROLE_SQL_NULL, "sql.null", "a value that is not there")                                                \
    X(ROLE_FLAME_OWN_1, "flame.own.1", "a cell of the job's own code; which of the three goes by its name")  \
    X(ROLE_FLAME_OWN_2, "flame.own.2", "another")                                                            \
    X(ROLE_FLAME_OWN_3, "flame.own.3", "and another")                                                        \
    X(ROLE_FLAME_LIBRARY_1, "flame.library.1", "a cell of a library's code, the same")                       \
    X(ROLE_FLAME_LIBRARY_2, "flame.library.2", "another")                                                    \
    X(ROLE_FLAME_LIBRARY_3, "flame.library.3", "and another")                                                \
    X(ROLE_FLAME_NATIVE, "flame.native", "a cell of native code")                                            \
    X(ROLE_FLAME_OUTER, "flame.outer", "a cell around the others: all threads, callers of what is zoomed")   \
    X(ROLE_FLAME_SMALL, "flame.small", "a cell of frames that are too small to see")                         \
    X(ROLE_FLAME_SELECTION, "flame.selection", "the selected cell")                                          \
    X(ROLE_FLAME_MATCH, "flame.match", "a cell that was searched for")                                       \
    X(ROLE_DIFF_MORE_1, "diff.more.1", "has a larger share than before, by less than 2 percentage points")   \
    X(ROLE_DIFF_MORE_2, "diff.more.2", "by less than 10")                                                    \
    X(ROLE_DIFF_MORE_3, "diff.more.3", "by 10 and more")                                                     \
    X(ROLE_DIFF_LESS_1, "diff.less.1", "has a smaller share than before, the same three")                    \
    X(ROLE_DIFF_LESS_2, "diff.less.2", "by less than 10")                                                    \
    X(ROLE_DIFF_LESS_3, "diff.less.3", "by 10 and more")                                                     \
    X(ROLE_DIFF_SAME, "diff.same", "has about the share it had")                                             \
    X(ROLE_PROMPT, "prompt", "the line that is typed")                                                       \
    X(ROLE_PROMPT_FAILED, "prompt.failed", "the same when nothing matches")                                  \
    X(ROLE_HELP_GROUP, "help.group", "headings of the help")                                                 \
    X(ROLE_HELP_KEY, "help.key", "keys in the help")

#define THEME_ENUM(id, name, help) id,
enum theme_role { THEME_ROLES(THEME_ENUM) ROLE_COUNT };
#undef THEME_ENUM

enum theme_attr {
    THEME_BOLD = 1,
    THEME_DIM = 2,
    THEME_REVERSE = 4,
    THEME_UNDERLINE = 8,
    THEME_ITALIC = 16,
};

enum theme_depth { THEME_MONO = 0, THEME_8, THEME_16, THEME_256 };

enum theme_color_kind { THEME_COLOR_DEFAULT = 0, THEME_COLOR_INDEX, THEME_COLOR_RGB };

struct theme_color {
    enum theme_color_kind kind;
    uint32_t value; /* index 0..255, or 0xRRGGBB */
};

struct theme_style {
    struct theme_color fg, bg;
    unsigned attrs; /* THEME_BOLD | ... */
};

struct theme {
    char name[64];
    struct theme_style color[ROLE_COUNT];
    struct theme_style color16[ROLE_COUNT]; /* where has16 is set: for 16 colours or fewer */
    bool has16[ROLE_COUNT];
    unsigned mono[ROLE_COUNT]; /* attributes without colour */
};

/* A role as a terminal of some depth shows it: colour numbers, -1: the terminal's own. */
struct theme_attrs {
    int fg, bg;
    unsigned attrs;
};

/* The theme that is compiled in. */
void theme_init_default(struct theme *t);

/* Text of the compiled-in theme, the same as themes/default.theme. */
extern const char theme_default_text[];

#define THEME_MAX_FILES 10
#define THEME_MAX_FILE_NAME 1024
#define THEME_MAX_NAME 48 /* of a theme's name or path, including its NUL */

/* Files that a theme was read from: its own and those that it inherits. */
struct theme_files {
    char paths[THEME_MAX_FILES][THEME_MAX_FILE_NAME];
    size_t n;
};

/* How to find themes: folders tried in this order; NULL ends. Unreadable ones are skipped. */
struct theme_path {
    const char *dirs[5];
    struct theme_files *files; /* gets the files that are read; NULL: not needed */
};

/* The name that stands for the theme of the terminal's background: "light" on a light one, else
 * "default". */
#define THEME_AUTO "auto"

enum theme_background { THEME_BACKGROUND_UNKNOWN = 0, THEME_BACKGROUND_DARK, THEME_BACKGROUND_LIGHT };

/* The background by COLORFGBG ("15;0": the last is its colour, as rxvt and Konsole set it; may be
 * NULL), and by the colour of a terminal's answer: "rgb:ffff/ffff/ffff" or with fewer digits. */
enum theme_background theme_background_by_env(const char *colorfgbg);
enum theme_background theme_background_by_color(const char *color);

/* The theme that THEME_AUTO is there. */
const char *theme_auto_name(enum theme_background background);

/* Load by name or file into `t`; THEME_AUTO is "default" here. Warnings are appended to `warnings` (may be NULL), a line each. -1
 * with ERR_USAGE if there is no such theme; `t` is the default then. */
int theme_load(struct theme *t, const char *name_or_file, const struct theme_path *path,
               struct strbuf *warnings, struct err *e);

/* Read a theme's text over `t`, which holds what it inherits until an "inherit" line says
 * otherwise. A line with a mistake is skipped, with a warning: the role stays as inherited. `path`
 * may be NULL: then only "default" can be inherited. */
void theme_parse(struct theme *t, const char *text, size_t len, const char *source,
                 const struct theme_path *path, struct strbuf *warnings);

/* The look of a role at a depth. "default" in a role is the colour of the role text; in text itself
 * it is the terminal's own. */
struct theme_attrs theme_resolve(const struct theme *t, enum theme_role role, enum theme_depth depth);

/* Names of the themes in the folders, sorted, each once; THEME_AUTO and "default" are always among
 * them. Returns how many, `cap` at most. */
size_t theme_list(const struct theme_path *path, char (*names)[THEME_MAX_NAME], size_t cap);

const char *theme_role_name(enum theme_role role);
const char *theme_role_help(enum theme_role role);

/* The nearest of xterm's 256, 16 or 8 colours to 0xRRGGBB; and the colour of one of the 256. */
int theme_color_to_256(uint32_t rgb);
int theme_color_to_16(uint32_t rgb);
uint32_t theme_color_rgb(int index);

/* The rule of --color: `when` is auto, always, never, 16 or 256 (NULL: auto), `no_color` the
 * environment's NO_COLOR (may be NULL), `colors` the number that terminfo offers. -1 with ERR_USAGE
 * for another `when`. */
int theme_choose_depth(const char *when, const char *no_color, int colors, enum theme_depth *out,
                       struct err *e);

#endif
