/* SPDX-License-Identifier: Apache-2.0 */
/*
 * action_table: every action with its name, its keys by default, its help and the contexts that it is for, in one table.
 *
 * The table feeds the dispatcher, the footer, the help screen and --list-keys; a key is bound once in a context, which a
 * test holds. What opens a screen is a row of the screen's file (keys/screen_list.h).
 */
#ifndef TUI_CORE_ACTION_TABLE_H
#define TUI_CORE_ACTION_TABLE_H

#include "tui/keys/action.h"

#define ACTION_MAX_ROWS 512

/* All rows, those of the screens among them; ends with ACTION_NONE. */
const struct action_def *action_table(void);

/* Row of an action in a context, or NULL. */
const struct action_def *action_row(enum action action, enum action_context context);

/* Row of that name in a context, or NULL. */
const struct action_def *action_named(const char *name, enum action_context context);

/* "threads", "stack", ... */
const char *action_context_name(enum action_context context);

/* Title of a context in the help. */
const char *action_context_title(enum action_context context);

#endif
