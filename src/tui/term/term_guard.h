/* SPDX-License-Identifier: Apache-2.0 */
/*
 * term_guard: restores the terminal when the program crashes, and keeps stderr off the screen.
 *
 * The handlers run on a stack of their own, use only write(2), tcsetattr(3) and dup2(2), and raise
 * the signal again. What was written to stderr meanwhile is shown afterwards.
 */
#ifndef TUI_TERM_TERM_GUARD_H
#define TUI_TERM_TERM_GUARD_H

#include <stdbool.h>

/* Switches off every mode that term switches on, and leaves the alternate screen. */
extern const char term_guard_reset[];

/* Save the terminal's settings and handle crashes from here on. `fd` is the terminal's input,
 * `out_fd` its output. */
void term_guard_arm(int fd, int out_fd);
void term_guard_disarm(void);

/* Settings for keys one by one, or the saved ones. False: it is not a terminal. */
bool term_guard_set_raw(void);
void term_guard_set_saved(void);

/* Collect what is written to stderr, if that is a terminal; show it and write through again. */
void term_guard_keep_stderr(void);
void term_guard_release_stderr(void);

#endif
