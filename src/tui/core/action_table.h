/* SPDX-License-Identifier: Apache-2.0 */
/*
 * action_table: every action with its name, default keys, help and contexts, in one table.
 *
 * The table feeds the dispatcher, the footer, the help screen and --list-keys. A key is bound once
 * in a context; a test checks it. The row that opens a screen is in the screen's file
 * (keys/screen_list.h).
 */
#ifndef TUI_CORE_ACTION_TABLE_H
#define TUI_CORE_ACTION_TABLE_H

#include "tui/keys/action.h"

#define ACTION_MAX_ROWS 512

/* All rows, including those of the screens; ends with ACTION_NONE. */
const struct action_def *action_table(void);

/* The row of an action in a context, or NULL. */
const struct action_def *action_row(enum action action, enum action_context context);

/* The row with that name in a context, or NULL. */
const struct action_def *action_named(const char *name, enum action_context context);

/* "threads", "stack", ... */
const char *action_context_name(enum action_context context);

/* Title of a context in the help. */
const char *action_context_title(enum action_context context);

#endif
