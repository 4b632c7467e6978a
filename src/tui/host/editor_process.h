/* SPDX-License-Identifier: Apache-2.0 */
/*
 * editor_process: the user's editor, on a file and a line, as a child that has the terminal.
 *
 * The command is read by sh, as git and crontab read it, so it may have arguments; the file is an argument of its own and never
 * read by a shell. While the editor runs, signals that a terminal sends to both are its own: SIGQUIT is ignored here (SIGINT and
 * SIGTSTP come through the caller's signalfd). One thread.
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
    int pidfd;             /* readable when it has ended; -1: this kernel has none */
    struct sigaction quit; /* as SIGQUIT was handled before */
    char command[256];
};

/* How a line is told to an editor: as arguments after its command. */
struct editor_process_arguments {
    char text[EDITOR_PROCESS_ARGUMENTS][PATH_MAX + 32];
    size_t n;
};

/* $VISUAL, else $EDITOR, else "vi". */
const char *editor_process_command(void);

/* The arguments that make `command` open `path` at `line` (0: at its beginning): "+12 FILE" as vi, nano and emacs have it, "-g
 * FILE:12" of code, "FILE:12" of hx, zed and subl. */
void editor_process_arguments(const char *command, const char *path, int line,
                              struct editor_process_arguments *out);

/* Start it on our terminal. 0, or -1 with the error. */
int editor_process_start(struct editor_process *p, const char *command, const char *path, int line,
                         struct err *e);

/* Wait for its end, if it has not ended yet. 0; -1 with the error: it could not be run. */
int editor_process_finish(struct editor_process *p, struct err *e);

/* Let it be. */
void editor_process_leave(struct editor_process *p);

#endif
