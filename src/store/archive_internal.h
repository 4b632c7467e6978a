/* SPDX-License-Identifier: Apache-2.0 */
/* archive_internal: what writing and reading a recording share: how tables and types are called there. */
#ifndef STORE_ARCHIVE_INTERNAL_H
#define STORE_ARCHIVE_INTERNAL_H

#include <stddef.h>

#include "store/ring.h"

/* "python.samples" is stored as python_samples. */
void archive_table_name(const char *full, char *buf, size_t cap);

/* How a column is declared, so that SQLite keeps its values as they are. */
const char *archive_type(enum ring_type type);

#endif
