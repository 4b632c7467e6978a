/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols_module: one file's symbols and lines. Private to the helper for symbols: whatever a
 * file does to elfutils, it does there.
 */
#ifndef CLIENT_SYMBOLS_SYMBOLS_MODULE_H
#define CLIENT_SYMBOLS_SYMBOLS_MODULE_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "client/symbols/symbol.h"

struct symbols_file;

/* Read the file `fd`, which is closed. NULL if it has no readable symbols. It is kept until the
 * process ends. */
struct symbols_file *symbols_module_open(int fd);

/* Fill `list`, which has room for SYMBOLS_MAX_INLINED; strings go to the arena. `address` is the
 * file's own. Returns their number, 1 or more. */
size_t symbols_module_find(struct symbols_file *f, uint64_t address, struct symbol *list, struct arena *text,
                           enum native_role *role);

#endif
