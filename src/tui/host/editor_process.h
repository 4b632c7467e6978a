/* SPDX-License-Identifier: Apache-2.0 */
/*
 * editor_process: the user's editor, on a file and a line, as a child that has the terminal.
 *
 * sh parses the command, as git and crontab have it, so it may have arguments; the file is an
 * argument of its own that no shell parses. While the editor runs, the signals that a terminal
 * sends to both are for it alone: SIGQUIT is ignored here (SIGINT and SIGTSTP arrive through the
 * caller's signalfd). One thread.
 */
#ifndef TUI_HOST_EDITOR_PROCESS_H
#define TUI_HOST_EDITOR_PROCESS_H

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

#define EDITOR_PROCESS_ARGUMENTS 3

struct editor_process {
    pid_t pid;             /* 0: none */
    int pidfd;             /* readable when it has ended; -1: not supported by this kernel */
    struct sigaction quit; /* the earlier handler of SIGQUIT */
    char command[256];
};

/* How an editor is given a line: arguments after its command. */
struct editor_process_arguments {
    char text[EDITOR_PROCESS_ARGUMENTS][PATH_MAX + 32];
    size_t n;
};

/* $VISUAL, else $EDITOR, else "vi". */
const char *editor_process_command(void);

/* The arguments that make `command` open `path` at `line` (0: at its beginning): "+12 FILE" for vi,
 * nano and emacs, "-g FILE:12" for code, "FILE:12" for hx, zed and subl. */
void editor_process_arguments(const char *command, const char *path, int line,
                              struct editor_process_arguments *out);

/* Start it on our terminal. 0, or -1 with the error. */
int editor_process_start(struct editor_process *p, const char *command, const char *path, int line,
                         struct err *e);

/* Wait for its end, if it has not ended yet. 0; -1 with the error: it could not run. */
int editor_process_finish(struct editor_process *p, struct err *e);

/* Abandon it. */
void editor_process_leave(struct editor_process *p);

#endif
