/* SPDX-License-Identifier: Apache-2.0 */
/* job_choice: which job of a database is meant: the one that its address names, the only one, or the one that is
 * chosen from a list. */
#ifndef TUI_JOB_CHOICE_H
#define TUI_JOB_CHOICE_H

#include <stddef.h>

#include "base/err.h"

/* Write the address with the job to `out`. Without a name the jobs are listed on the terminal, and one is asked for
 * there. 0, or -1 with the error: without a terminal one has to be named. */
int job_choice_read(const char *address, char *out, size_t cap, struct err *e);

#endif
