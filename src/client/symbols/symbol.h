/* SPDX-License-Identifier: Apache-2.0 */
/* symbol: the functions at an address of native code, with their files and lines. */
#ifndef CLIENT_SYMBOLS_SYMBOL_H
#define CLIENT_SYMBOLS_SYMBOL_H

#include <stddef.h>

#include "pystack/native_merge.h"

#define SYMBOLS_MAX_INLINED 16 /* functions at one address, one within the other */

struct symbol {
    const char *func; /* NULL unknown */
    const char *file; /* of the source; NULL unknown */
    int line;         /* 0 unknown */
};

struct symbols_place {
    /* innermost first: the last is the function, those before it are inlined in it */
    const struct symbol *list;
    size_t n; /* 1 or more */
    enum native_role role;
};

#endif
