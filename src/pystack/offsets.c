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

/* ---- versions that are supported ---- */

static const struct pystack_version version_rows[] = {
    {3, 4, false, PYSTACK_SOURCE_TABLE, PYSTACK_TESTED_NOT, false, false},
    {3, 5, false, PYSTACK_SOURCE_TABLE, PYSTACK_TESTED_NOT, false, false},
    {3, 6, false, PYSTACK_SOURCE_TABLE, PYSTACK_TESTED_IN_CI, false, true},
    {3, 7, false, PYSTACK_SOURCE_TABLE, PYSTACK_TESTED_IN_CI, false, true},
    {3, 8, false, PYSTACK_SOURCE_TABLE, PYSTACK_TESTED_IN_CI, false, true},
    {3, 9, false, PYSTACK_SOURCE_TABLE, PYSTACK_TESTED_IN_CI, false, true},
    {3, 10, false, PYSTACK_SOURCE_TABLE, PYSTACK_TESTED_IN_CI, false, true},
    {3, 11, false, PYSTACK_SOURCE_TABLE, PYSTACK_TESTED_IN_CI, false, true},
    {3, 12, false, PYSTACK_SOURCE_TABLE, PYSTACK_TESTED_IN_CI, false, true},
    {3, 13, false, PYSTACK_SOURCE_PUBLISHED, PYSTACK_TESTED_IN_CI, true, true},
    {3, 13, true, PYSTACK_SOURCE_PUBLISHED, PYSTACK_TESTED_MATRIX, true, true},
    {3, 14, false, PYSTACK_SOURCE_PUBLISHED, PYSTACK_TESTED_MATRIX, true, true},
    {3, 14, true, PYSTACK_SOURCE_PUBLISHED, PYSTACK_TESTED_MATRIX, true, true},
    {3, 15, false, PYSTACK_SOURCE_PUBLISHED, PYSTACK_TESTED_MATRIX, true, true},
    {3, 15, true, PYSTACK_SOURCE_PUBLISHED, PYSTACK_TESTED_NOT, true, false},
};

#define VERSION_ROWS (sizeof version_rows / sizeof version_rows[0])

const struct pystack_version *pystack_version_all(size_t *n) {
    *n = VERSION_ROWS;
    return version_rows;
}

const struct pystack_version *pystack_version_find(int major, int minor, bool free_threaded) {
    for (size_t i = 0; i < VERSION_ROWS; i++)
        if (version_rows[i].major == major && version_rows[i].minor == minor &&
            version_rows[i].free_threaded == free_threaded)
            return &version_rows[i];
    return NULL;
}
