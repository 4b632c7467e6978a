/* SPDX-License-Identifier: Apache-2.0 */
/* offsets: see offsets.h. */
#include "pystack/offsets.h"

const struct pystack_offsets *pystack_offsets_all(size_t *n) {
    *n = pystack_offsets_table_size;
    return pystack_offsets_table;
}

const struct pystack_offsets *pystack_offsets_find(int major, int minor, bool free_threaded) {
    for (size_t i = 0; i < pystack_offsets_table_size; i++)
        if (pystack_offsets_table[i].major == major && pystack_offsets_table[i].minor == minor &&
            (pystack_offsets_table[i].free_threaded != 0) == free_threaded)
            return &pystack_offsets_table[i];
    return NULL;
}
