/* SPDX-License-Identifier: Apache-2.0 */
/*
 * autostart_match: decides from the environment variable PROBING and the command line whether a
 * process gets an agent.
 *
 * Pure. "1" means this process, "2" this one and its children, "regex:PATTERN" (POSIX, extended)
 * processes whose command line matches, anything else the name of a script or program. An empty
 * value and "0" mean no process.
 */
#ifndef AGENT_AUTOSTART_MATCH_H
#define AGENT_AUTOSTART_MATCH_H

#include <stddef.h>

#include "base/err.h"

#define AUTOSTART_MATCH_VARIABLE "PROBING"
#define AUTOSTART_MATCH_NAME_MAX 256

enum autostart_match {
    AUTOSTART_MATCH_NONE = 0,
    AUTOSTART_MATCH_ONCE,   /* this process, but not its children */
    AUTOSTART_MATCH_NESTED, /* this process and its children */
    AUTOSTART_MATCH_MATCH,  /* this process, because it matches */
};

/* Judge `value` (NULL: not set). `words` are the process's arguments, each ended by a NUL, `len`
 * bytes in all; NULL: they are unknown, and nothing matches. One of enum autostart_match, or -1
 * with the error: the pattern is invalid. */
int autostart_match_judge(const char *value, const char *words, size_t len, struct err *e);

/* Find the program in the arguments of a Python: the script's path, the module's name after -m,
 * "-c"; "" for a prompt or standard input. */
void autostart_match_find_script(const char *words, size_t len, char *buf, size_t cap);

#endif
