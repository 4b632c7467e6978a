/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outside_python: reads a Python process from outside, through pystack; a reader for outside.h.
 *
 * Nothing is written to the target and nothing is left in it. With `block`, running threads are
 * stopped one at a time while their frames are read. If the target execs another Python, that
 * one is found. The reader's thread.
 */
#ifndef CLIENT_SESSION_OUTSIDE_PYTHON_H
#define CLIENT_SESSION_OUTSIDE_PYTHON_H

#include "client/session/outside.h"
#include "client/session/session.h"

extern const struct outside_reader outside_python_reader;

/* Its argument, for the process that `addr` names; freed by its close. NULL without memory. */
void *outside_python_new(const struct target_address *addr, struct err *e);

#endif
