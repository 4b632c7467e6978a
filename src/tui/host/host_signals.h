/* SPDX-License-Identifier: Apache-2.0 */
/* host_signals: the signals that a program on a terminal answers, as a descriptor for its loop. Any thread started later leaves them
 * to it. */
#ifndef TUI_HOST_HOST_SIGNALS_H
#define TUI_HOST_HOST_SIGNALS_H

#include "base/err.h"

/* Block them and make the descriptor, which is readable when one came; SIGPIPE is ignored. The caller closes it. -1 with the error. */
int host_signals_open(struct err *e);

/* The next one; 0 none has come. */
int host_signals_next(int fd);

#endif
