/* SPDX-License-Identifier: Apache-2.0 */
/*
 * autostart: how the agent begins in a process that nobody injects into.
 *
 * Preloaded (LD_PRELOAD), a constructor looks at this process alone: no Python among its symbols, or no wish (autostart_match.h), and nothing
 * happens, ever. Else a thread of ours waits, with a bound, until the interpreter is initialised, and starts the agent. Loaded by
 * probing.pth, the interpreter calls probing_autostart. Injected, nothing of this runs.
 */
#ifndef AGENT_AUTOSTART_H
#define AGENT_AUTOSTART_H

#include <stdbool.h>
#include <stddef.h>

/* Start the agent if `value` (as of PROBING) wishes it here. 1: it runs; 0: not wished for; -1: one line in `error`. */
__attribute__((visibility("default"))) int probing_autostart(const char *value, char *error, size_t cap);

/* `list`, as of LD_PRELOAD, without the entries whose last part is `name`, into `buf`. True when there was one. */
bool autostart_take_out(const char *list, const char *name, char *buf, size_t cap);

#endif
