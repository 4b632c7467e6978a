/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch: start a command with the agent in it, by LD_PRELOAD (see agent/autostart.h for what happens in it).
 *
 * This process becomes the command: same pid, so signals, terminal and exit status are its own.
 */
#ifndef CLIENT_TARGET_LAUNCH_H
#define CLIENT_TARGET_LAUNCH_H

#include <stdbool.h>

#include "base/err.h"

/* Become `command` (ends with NULL; found along PATH). `nested`: with the agent in the Python processes it starts, too. Returns only
 * on failure: -1 with the error; nothing has happened then. */
int launch_command(char *const *command, bool nested, struct err *e);

/* Can the program at `path` take the agent? 0, or -1 with the error: ERR_ATTACH when it cannot, ERR_FAILED when it cannot be read. */
int launch_check_program(const char *path, struct err *e);

#endif
