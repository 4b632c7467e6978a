/* SPDX-License-Identifier: Apache-2.0 */
/*
 * action: what a key can do: the actions, the contexts in which keys are read, and the row that the
 * table has for an action.
 *
 * The rows are in core/action_table.h, their current keys in core/action_keys.h. To add an action:
 * a line in the enum, a row in action_table.c, and the screen's answer (docs/dev/adding-a-key.md).
 * A row of screen_list.h makes the contexts of a screen and the action that opens it.
 */
#ifndef TUI_KEYS_ACTION_H
#define TUI_KEYS_ACTION_H

#include <stdint.h>

#include "tui/keys/screen_list.h"

#define ACTION_OF_SCREEN(NAME, name) ACTION_SHOW_##NAME,
#define ACTION_CONTEXT_OF_SCREEN(NAME, name) CONTEXT_##NAME,
#define ACTION_CONTEXT(NAME) CONTEXT_##NAME,
#define ACTION_NOTHING(NAME)

/* Where keys are read: the part of a screen that has the focus. */
enum action_context { SCREEN_LIST(ACTION_CONTEXT_OF_SCREEN, ACTION_CONTEXT) CONTEXT_COUNT };

#define ACTION_IN(c) (UINT64_C(1) << (c))
#define ACTION_EVERYWHERE (ACTION_IN(CONTEXT_COUNT) - 1)
/* Where text is typed. */
#define ACTION_TYPED                                                                                         \
    (ACTION_IN(CONTEXT_SQL) | ACTION_IN(CONTEXT_SQL_COMPLETE) | ACTION_IN(CONTEXT_REPL) |                    \
     ACTION_IN(CONTEXT_REPL_COMPLETE))
/* Where letters are keys. */
#define ACTION_LETTERS (ACTION_EVERYWHERE & ~ACTION_TYPED)
/* What is above a screen for a short time. */
#define ACTION_OVERLAYS (ACTION_IN(CONTEXT_HELP) | ACTION_IN(CONTEXT_MENU) | ACTION_IN(CONTEXT_EXPORT))
/* Beside contexts, for a row that opens a screen: the contexts of all tabs where letters are keys;
 * of those only the ones that show the job, not what was typed or has happened in this session. */
#define ACTION_TABS (UINT64_C(1) << 60)
#define ACTION_VIEWS (UINT64_C(1) << 61)
/* Beside contexts: it acts on the selected row, and the row's menu has it. */
#define ACTION_FOR_ROW (UINT64_C(1) << 62)
/* Beside contexts: it changes the target, so --readonly refuses it. */
#define ACTION_CHANGES (UINT64_C(1) << 63)

_Static_assert(CONTEXT_COUNT <= 60, "contexts and what stands beside them share a number");

enum action {
    ACTION_NONE = 0,
    SCREEN_LIST(ACTION_OF_SCREEN, ACTION_NOTHING) /* each opens a screen */
    ACTION_SCREEN_NEXT,
    ACTION_SCREEN_PREV,
    ACTION_UP,
    ACTION_DOWN,
    ACTION_LEFT,
    ACTION_RIGHT,
    ACTION_HALF_UP,
    ACTION_HALF_DOWN,
    ACTION_PAGE_UP,
    ACTION_PAGE_DOWN,
    ACTION_FIRST,
    ACTION_LAST,
    ACTION_SEARCH,
    ACTION_SEARCH_NEXT,
    ACTION_SEARCH_PREV,
    ACTION_FILTER,
    ACTION_SORT_PREV,
    ACTION_SORT_NEXT,
    ACTION_SORT_INVERT,
    ACTION_SORT_CPU,
    ACTION_PAUSE,
    ACTION_HISTORY_OLDER,
    ACTION_HISTORY_NEWER,
    ACTION_END,
    ACTION_HIDE_IDLE,
    ACTION_HIDE_NATIVE,
    ACTION_SHOW_ALL,
    ACTION_THREAD_PREV,
    ACTION_THREAD_NEXT,
    ACTION_RANK_PREV,
    ACTION_RANK_NEXT,
    ACTION_OPEN_RANK,
    ACTION_ALL_RANKS,
    ACTION_OPEN_CLASS,
    ACTION_FOCUS,
    ACTION_ZOOM,
    ACTION_OPEN_STACK,
    ACTION_OPEN_CHILD,
    ACTION_OPEN_LINE,
    ACTION_DEBUG,
    ACTION_SWITCH_TARGET,
    ACTION_OPEN_CALLS,
    ACTION_OPEN_LOADER,
    ACTION_OPEN_GPU,
    ACTION_OPEN_MODULE,
    ACTION_OPEN_TENSOR,
    ACTION_OPEN_MEMORY,
    ACTION_TENSOR_GROWTH,
    ACTION_TENSOR_STATISTICS,
    ACTION_GROUP,
    ACTION_TREE,
    ACTION_FOLD,
    ACTION_UNFOLD,
    ACTION_FOLD_ALL,
    ACTION_SCROLL_LEFT,
    ACTION_SCROLL_RIGHT,
    ACTION_TIME_ENTER,
    ACTION_TIME_SELECT,
    ACTION_TIME_BACK,
    ACTION_TIME_FORTH,
    ACTION_TIME_SHORTER,
    ACTION_TIME_LONGER,
    ACTION_FLAME_ZOOM,
    ACTION_FLAME_OUT,
    ACTION_FLAME_FLIP,
    ACTION_FLAME_MODULE,
    ACTION_DETAILS,
    ACTION_BY_LINE,
    ACTION_ON_CPU,
    ACTION_WINDOW,
    ACTION_MARK,
    ACTION_DIFF,
    ACTION_COMPARE,
    ACTION_DIFF_BEFORE,
    ACTION_ZERO,
    ACTION_THRESHOLD_UP,
    ACTION_THRESHOLD_DOWN,
    ACTION_LOCALS,
    ACTION_WATCH_LOCAL,
    ACTION_TRACE,
    ACTION_TRACE_MEMORY,
    ACTION_NAN_SEARCH,
    ACTION_PROFILER,
    ACTION_NATIVE,
    ACTION_REPR,
    ACTION_TASKS,
    ACTION_ATTACH,
    ACTION_OPEN_JOB,
    ACTION_RUN_ENTRY,
    ACTION_REFRESH,
    ACTION_TAG,
    ACTION_UNTAG,
    ACTION_TAGGED,
    ACTION_SLOWER,
    ACTION_FASTER,
    ACTION_METERS,
    ACTION_SETUP_CHANGE,
    ACTION_SAVE_SETTINGS,
    ACTION_THEME_KEEP,
    ACTION_MOUSE,
    ACTION_BACK,
    ACTION_REDRAW,
    ACTION_SUSPEND,
    ACTION_QUIT,
    ACTION_QUIT_NOW,
    ACTION_COMMAND_LINE,
    ACTION_COPY,
    ACTION_COPY_ROW,
    ACTION_EDIT_FILE,
    ACTION_ROW_IN_FLAME,
    ACTION_ROW_IN_TOP,
    ACTION_ROW_IN_THREADS,
    ACTION_SQL_RUN,
    ACTION_SQL_ENTER,
    ACTION_SQL_CANCEL,
    ACTION_SQL_TO_SHEET,
    ACTION_SQL_TO_EDITOR,
    ACTION_SQL_SAVED,
    ACTION_SQL_TABLES,
    ACTION_SQL_WATCH,
    ACTION_SQL_COMPLETE,
    ACTION_SQL_ACCEPT,
    ACTION_SQL_PREVIOUS,
    ACTION_SQL_NEXT,
    ACTION_SQL_HISTORY,
    ACTION_SHEET_OPEN,
    ACTION_SHEET_ASCEND,
    ACTION_SHEET_DESCEND,
    ACTION_SHEET_SORT,
    ACTION_SHEET_NARROW,
    ACTION_SHEET_WIDEN,
    ACTION_SHEET_FIT,
    ACTION_SHEET_HIDE,
    ACTION_SHEET_BAR,
    ACTION_SHEET_VERTICAL,
    ACTION_SHEET_DESCRIBE,
    ACTION_SHEET_FREQUENCY,
    ACTION_SHEET_FIRST_COLUMN,
    ACTION_SHEET_LAST_COLUMN,
    ACTION_EDIT_LEFT,
    ACTION_EDIT_RIGHT,
    ACTION_EDIT_UP,
    ACTION_EDIT_DOWN,
    ACTION_EDIT_WORD_LEFT,
    ACTION_EDIT_WORD_RIGHT,
    ACTION_EDIT_LINE_BEGIN,
    ACTION_EDIT_LINE_END,
    ACTION_EDIT_TEXT_BEGIN,
    ACTION_EDIT_TEXT_END,
    ACTION_EDIT_NEWLINE,
    ACTION_EDIT_ERASE,
    ACTION_EDIT_DELETE,
    ACTION_EDIT_KILL_LINE,
    ACTION_EDIT_KILL_TO_BEGIN,
    ACTION_EDIT_KILL_BLANK,
    ACTION_EDIT_KILL_WORD_LEFT,
    ACTION_EDIT_KILL_WORD_RIGHT,
    ACTION_EDIT_YANK,
    ACTION_EDIT_UNDO,
    ACTION_EDIT_REDO,
    ACTION_COUNT,
};

#define ACTION_MAX_KEYS 4
#define ACTION_KEY_NAME 16 /* of a key's name, including its NUL */

struct action_def {
    enum action action;
    const char *name; /* as in --list-keys */
    /* ACTION_IN(...) of every context that has it; ACTION_FOR_ROW, ACTION_CHANGES. */
    uint64_t contexts;
    /* Default keys by name (input.h); the footer shows the first. */
    const char *keys[ACTION_MAX_KEYS];
    const char *label; /* in the footer; NULL: not there */
    int rank;          /* in the footer: higher ones are dropped first when there is no room */
    const char *help;
};

#endif
