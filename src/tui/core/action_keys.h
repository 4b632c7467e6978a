/* SPDX-License-Identifier: Apache-2.0 */
/*
 * action_keys: other keys for actions, as the user's file gives them: "threads.pause" has "p Space".
 *
 * Checked line by line; a line that is wrong changes nothing and gives a reason. When all lines are read, keys that two
 * actions of a context would have are settled: the user's line wins over the table, the earlier of two lines over the later.
 * Changes the keys of action.h; of the same thread.
 */
#ifndef TUI_CORE_ACTION_KEYS_H
#define TUI_CORE_ACTION_KEYS_H

#include "base/err.h"
#include "base/strbuf.h"

/* Give "CONTEXT.ACTION" (or "all.ACTION": in every context that has it) the keys named in `keys`, with blanks between them;
 * "none": it has none. `line` of the file, from 1. -1 with ERR_USAGE and the reason; then all is as it was. */
int action_keys_bind(const char *name, const char *keys, int line, struct err *e);

/* All lines are read: no key means two things in a context from here on. What was taken away is a warning each,
 * "SOURCE:LINE: ..."; `warnings` may be NULL. */
void action_keys_settle(const char *source, struct strbuf *warnings);

/* Lines "CONTEXT.ACTION = KEYS" for every action, in the order of the table, context by context; those that are other than the
 * table's have "# SOURCE:LINE" over them. */
void action_keys_print(const char *source, struct strbuf *out);

#endif
