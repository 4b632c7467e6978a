/* SPDX-License-Identifier: Apache-2.0 */
/* grow: see grow.h. */
#include "base/grow.h"

#include <stdlib.h>
#include <string.h>

#define GROW_FIRST 128

int grow_array(void *where, size_t item_size, size_t n, size_t *cap) {
    void *items;
    size_t want = *cap ? *cap : GROW_FIRST;
    if (n <= *cap)
        return 0;
    while (want < n)
        want *= 2;
    memcpy(&items, where, sizeof items);
    items = realloc(items, want * item_size);
    if (!items)
        return -1;
    memcpy(where, &items, sizeof items);
    *cap = want;
    return 0;
}
