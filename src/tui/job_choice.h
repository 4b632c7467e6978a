/* SPDX-License-Identifier: Apache-2.0 */
/* job_choice: which job of a database is meant: the one that its address names, or the only one. */
#ifndef TUI_JOB_CHOICE_H
#define TUI_JOB_CHOICE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* Write the address with the job to `out`. 0, or -1 with the error. If none is named and there are several: with
 * `may_choose` 1, and the address without a job; else that is an error. */
int job_choice_read(const char *address, bool may_choose, char *out, size_t cap, struct err *e);

#endif
