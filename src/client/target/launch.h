/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch: starts a command with the agent in it, by LD_PRELOAD (see agent/autostart.h for the
 * agent's side).
 *
 * This process becomes the command: same pid, so signals, terminal and exit status are its own.
 */
#ifndef CLIENT_TARGET_LAUNCH_H
#define CLIENT_TARGET_LAUNCH_H

#include <stdbool.h>

#include "base/err.h"

/* Become `command` (ends with NULL; found along PATH). `nested`: the Python processes that it
 * starts get the agent too. Returns only on failure: -1 with the error; then nothing has
 * happened. */
int launch_command(char *const *command, bool nested, struct err *e);

/* Check that the program at `path` can take the agent. 0, or -1 with the error: ERR_ATTACH if it
 * cannot, ERR_FAILED if it cannot be read. */
int launch_check_program(const char *path, struct err *e);

#endif
