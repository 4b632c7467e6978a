/* SPDX-License-Identifier: Apache-2.0 */
/*
 * autostart_match: what the environment variable PROBING asks for in a process, judged by its command line alone.
 *
 * Pure. "1" means this process, "2" this one and those it starts, "regex:PATTERN" (POSIX, extended) those whose command line
 * matches, anything else the name of a script or program. Nothing, and "0", mean nobody.
 */
#ifndef AGENT_AUTOSTART_MATCH_H
#define AGENT_AUTOSTART_MATCH_H

#include <stddef.h>

#include "base/err.h"

#define AUTOSTART_MATCH_VARIABLE "PROBING"
#define AUTOSTART_MATCH_NAME_MAX 256

enum autostart_match {
    AUTOSTART_MATCH_NONE = 0,
    AUTOSTART_MATCH_ONCE,   /* this process, none that it starts */
    AUTOSTART_MATCH_NESTED, /* this process and those that it starts */
    AUTOSTART_MATCH_MATCH,  /* this process, because it matches */
};

/* Judge `value` (NULL: not set). `words` are the process's arguments, each ended by a NUL, `len` bytes in all; NULL: they are
 * not known, and nothing matches. One of enum wish, or -1 with the error: the pattern is not one. */
int autostart_match_judge(const char *value, const char *words, size_t len, struct err *e);

/* What a Python's arguments say it runs: the script's path, the module's name after -m, "-c"; "" a prompt or standard input. */
void autostart_match_find_script(const char *words, size_t len, char *buf, size_t cap);

#endif
