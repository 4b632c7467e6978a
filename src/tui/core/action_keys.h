/* SPDX-License-Identifier: Apache-2.0 */
/*
 * action_keys: the keys of actions: those of the table, or those that the user's file gives them.
 *
 * The table has names of keys. They are resolved to codes (keys/input.h) once, as those of the
 * user's file are when it is loaded, so that a key press compares codes. The file may give an
 * action other keys in a context: "threads.freeze" has "p Z". It is checked line by line; a
 * wrong line changes nothing and gives a reason. When all lines are loaded, keys that two actions
 * of a context would share are settled: the user's line wins over the table, the earlier of two
 * lines over the later. Used by the thread that draws.
 */
#ifndef TUI_CORE_ACTION_KEYS_H
#define TUI_CORE_ACTION_KEYS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "tui/keys/action.h"

/* What `key` does in `context`; ACTION_NONE: nothing. */
enum action action_find(enum action_context context, uint32_t key);

/* Code (keys/input.h) of the `i`th key of a row in a context, from the table or the user's file;
 * INPUT_NONE after the last one. */
uint32_t action_key(const struct action_def *row, enum action_context context, size_t i);

/* Keys of a row in a context as text: "/ F3"; "" when it has none. */
void action_keys_text(const struct action_def *row, enum action_context context, char *buf, size_t cap);

/* Give "CONTEXT.ACTION" ("all.ACTION": in every context that has it) the keys named in `text`,
 * separated by blanks; "none" removes all. `line` of the file counts from 1. -1 with ERR_USAGE and
 * the reason; nothing has changed then. */
int action_bind_keys(const char *name, const char *text, int line, struct err *e);

/* All lines are loaded: from here on no key means two things in a context. Each key that an action
 * loses is a warning, "SOURCE:LINE: ..."; `warnings` may be NULL. */
void action_settle_keys(const char *source, struct strbuf *warnings);

/* Give all rows the keys of the table again. */
void action_reset_keys(void);

/* Lines "CONTEXT.ACTION = KEYS" for every action, in the order of the table, context by context;
 * those that differ from the table have "# SOURCE:LINE" above them. */
void action_print_keys(const char *source, struct strbuf *out);

/* The text of --list-keys: a line for each context and key. */
void action_list_keys(struct strbuf *out);

#endif
