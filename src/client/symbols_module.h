/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols_module: one file's symbols and lines. Private to symbols.
 */
#ifndef CLIENT_SYMBOLS_MODULE_H
#define CLIENT_SYMBOLS_MODULE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "client/symbols.h"

struct symbols_module {
    struct symbols_module *next;
    char *path;
    struct symbols_file *file; /* NULL: it could not be read */
};

/* Open the file that process `pid` knows by `path`. One that cannot be read has no symbols; NULL without memory. */
struct symbols_module *symbols_module_open(pid_t pid, const char *path);
void symbols_module_free(struct symbols_module *m);

/* Fill `list`, which has room for SYMBOLS_MAX_INLINED; strings go to the arena. Number, 1 or more. */
size_t symbols_module_find(struct symbols_module *m, uint64_t address, struct symbol *list,
                           struct arena *text, enum native_role *role);

#endif
