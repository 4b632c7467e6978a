/* SPDX-License-Identifier: Apache-2.0 */
/*
 * versions: the CPythons that are supported, one row each.
 *
 * The one list from which discovery decides, errors speak and the README's table is made (tools/readme_versions.sh). Plain
 * data, read-only.
 */
#ifndef PYSTACK_VERSIONS_H
#define PYSTACK_VERSIONS_H

#include <stdbool.h>
#include <stddef.h>

/* Where the places of what is read come from. */
enum pystack_version_source {
    PYSTACK_SOURCE_TABLE,     /* generated from the headers of that version (tools/gen_offsets.py) */
    PYSTACK_SOURCE_PUBLISHED, /* _Py_DebugOffsets of the running interpreter, the rest from the table */
};

/* Who runs the tests of a version. */
enum pystack_version_tested {
    PYSTACK_TESTED_NOT,    /* nobody */
    PYSTACK_TESTED_IN_CI,  /* `make test`, where that version is installed */
    PYSTACK_TESTED_MATRIX, /* `make matrix`, which installs it */
};

struct pystack_version {
    int major, minor;
    bool free_threaded;
    enum pystack_version_source source;
    enum pystack_version_tested tested;
    bool debug_builds; /* --with-pydebug can be read too */
    bool exact;        /* a running thread can copy its own frames (self.h); else it is read passively */
};

/* The row of a version and build, or NULL when it is not supported. */
const struct pystack_version *pystack_version_find(int major, int minor, bool free_threaded);

/* All rows, oldest first. */
const struct pystack_version *pystack_version_all(size_t *n);

#endif
