/* SPDX-License-Identifier: Apache-2.0 */
/* querier_export: a result, as it is shown, becomes a file. On the querier's thread. */
#ifndef TUI_HOST_QUERIER_EXPORT_H
#define TUI_HOST_QUERIER_EXPORT_H

#include <stdatomic.h>
#include <stdbool.h>

#include "tui/host/querier.h"

/* The name of the format that a file's name asks for by its end: "csv" of "a.csv"; NULL with ERR_USAGE when there is none of that name. */
const char *querier_export_format(const char *path, struct err *e);

/* Write it: the file is replaced in one step, or not at all. Stops early when `*ending` is set. 0, or -1 with the error. */
int querier_export_write(const struct querier_export *x, const atomic_bool *ending, struct err *e);

#endif
