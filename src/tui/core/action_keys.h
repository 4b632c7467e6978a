/* SPDX-License-Identifier: Apache-2.0 */
/*
 * action_keys: the keys that actions have: those of the table, or those that the user's file gives them.
 *
 * The table has names of keys; they become codes (keys/input.h) once, as those of the user's file do when it is loaded, and a
 * key that is pressed is compared with codes. The file may give an action other keys in a context: "threads.pause" has
 * "p Space". It is checked line by line; a wrong line changes nothing and gives a reason. When all lines are loaded, keys
 * that two actions of a context would have are settled: the user's line wins over the table, the earlier of two lines
 * over the later. Used by the thread that draws.
 */
#ifndef TUI_CORE_ACTION_KEYS_H
#define TUI_CORE_ACTION_KEYS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "tui/keys/action.h"

/* What `key` does in `context`; ACTION_NONE nothing. */
enum action action_find(enum action_context context, uint32_t key);

/* Code (keys/input.h) of the `i`th key that a row has in a context, by the table or by the user's file; INPUT_NONE: it has no more. */
uint32_t action_key(const struct action_def *row, enum action_context context, size_t i);

/* Keys of a row in a context as text: "F3 /"; "" when it has none. */
void action_keys_text(const struct action_def *row, enum action_context context, char *buf, size_t cap);

/* Give "CONTEXT.ACTION" (or "all.ACTION": in every context that has it) the keys named in `text`, separated by blanks;
 * "none" takes all from it. `line` of the file, from 1. -1 with ERR_USAGE and the reason; then nothing has changed. */
int action_bind_keys(const char *name, const char *text, int line, struct err *e);

/* All lines are loaded: no key means two things in a context from here on. What was taken away is a warning each,
 * "SOURCE:LINE: ..."; `warnings` may be NULL. */
void action_settle_keys(const char *source, struct strbuf *warnings);

/* All rows have the keys of the table again. */
void action_reset_keys(void);

/* Lines "CONTEXT.ACTION = KEYS" for every action, in the order of the table, context by context; those that are other
 * than the table's have "# SOURCE:LINE" over them. */
void action_print_keys(const char *source, struct strbuf *out);

/* The text of --list-keys: a line for each context and key. */
void action_list_keys(struct strbuf *out);

#endif
