/* SPDX-License-Identifier: Apache-2.0 */
/*
 * discover: finds the interpreter of a process. See discover.c.
 */
#ifndef PYSTACK_DISCOVER_H
#define PYSTACK_DISCOVER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "pystack/pystack_internal.h"

/* Fill the offsets and the info of `ps`, whose memory is open, for process `pid` (0 ourselves), by the strategies in their
 * order, or by the one called `only`. 0, or -1 with the error and what it lacks. */
int pystack_discover(struct pystack *ps, pid_t pid, const char *only, enum pystack_lack *lack, struct err *e);

/* Is this the path of a Python executable or library? The version it names is stored, 0 where it names none. */
bool pystack_version_of_name(const char *path, int *major, int *minor);

#endif
