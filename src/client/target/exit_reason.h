/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exit_reason: how a process ended, as far as it can be known afterwards. Nothing is guessed: what leaves no trace is said to be unknown.
 */
#ifndef CLIENT_TARGET_EXIT_REASON_H
#define CLIENT_TARGET_EXIT_REASON_H

#include <stdbool.h>
#include <stddef.h>

#include "client/target/rings.h"

/* A line about the end of the process whose tables lie at `place`; `pid` is its number as from here, 0 unknown. */
void exit_reason_explain(const struct rings_place *place, pid_t pid, char *buf, size_t cap);

/* The same of the kernel's log (a record of /dev/kmsg): does it say that process `pid` was killed for want of memory? `*at_s` is when,
 * in seconds since boot. Its parser, for tests. */
bool exit_reason_parse_kmsg(const char *record, pid_t pid, double *at_s);

#endif
