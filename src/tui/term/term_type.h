/* SPDX-License-Identifier: Apache-2.0 */
/* term_type: can a terminal of this type show our screens? Asks terminfo, not the terminal. */
#ifndef TUI_TERM_TERM_TYPE_H
#define TUI_TERM_TERM_TYPE_H

#include "base/err.h"

/* Asks terminfo. `fd` is the terminal's output. 0, or -1 with the error. */
int term_type_check(const char *type, int fd, struct err *e);

/* Colours of a terminal of this type by terminfo: -1: none, -2: the type is unknown. */
int term_type_colors(const char *type, int fd);

#endif
