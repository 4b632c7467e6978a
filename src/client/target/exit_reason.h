/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exit_reason: how a process ended, as far as traces show it afterwards. Nothing is guessed:
 * without a trace it is unknown.
 */
#ifndef CLIENT_TARGET_EXIT_REASON_H
#define CLIENT_TARGET_EXIT_REASON_H

#include <stdbool.h>
#include <stddef.h>

#include "client/target/rings.h"

/* A line about the end of the process whose tables are at `place`; `pid` in our numbering, 0
 * unknown. */
void exit_reason_explain(const struct rings_place *place, pid_t pid, char *buf, size_t cap);

/* Whether such a line is of a process that was killed, or has failed. */
bool exit_reason_is_trouble(const char *line);

/* Parse a record of the kernel's log (/dev/kmsg): true if it says that process `pid` was killed
 * for lack of memory. `*at_s` is the time, in seconds since boot. For tests too. */
bool exit_reason_parse_kmsg(const char *record, pid_t pid, double *at_s);

#endif
