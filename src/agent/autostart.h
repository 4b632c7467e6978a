/* SPDX-License-Identifier: Apache-2.0 */
/*
 * autostart: starts the agent in a process without an injector.
 *
 * Preloaded (LD_PRELOAD), a constructor checks this process: without Python among its symbols,
 * or without a request (autostart_match.h), nothing ever happens. Otherwise a thread of ours
 * waits, with a bound, until the interpreter is initialised, and starts the agent. Loaded by
 * probing.pth, the interpreter calls probing_autostart. If the agent is injected, none of this
 * runs.
 */
#ifndef AGENT_AUTOSTART_H
#define AGENT_AUTOSTART_H

#include <stdbool.h>
#include <stddef.h>

/* Start the agent if `value` (of PROBING) asks for it here. 1: it runs; 0: not asked for; -1:
 * one line in `error`. */
__attribute__((visibility("default"))) int probing_autostart(const char *value, char *error, size_t cap);

/* Copy `list`, in the format of LD_PRELOAD, to `buf` without the entries whose last part is
 * `name`. True if there was one. */
bool autostart_take_out(const char *list, const char *name, char *buf, size_t cap);

#endif
