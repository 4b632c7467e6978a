/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pystack_versions: prints the supported versions of CPython as a table in Markdown, for docs/pythons.md (tools/versions_table.sh).
 */
#include <stdio.h>

#include "pystack/offsets.h"

static const char *versions_source(const struct pystack_version *v) {
    return v->source == PYSTACK_SOURCE_PUBLISHED ? "`_Py_DebugOffsets`" : "its headers";
}

static const char *versions_tested(const struct pystack_version *v) {
    switch (v->tested) {
    case PYSTACK_TESTED_IN_CI:
        return "`make test`";
    case PYSTACK_TESTED_MATRIX:
        return "`make matrix`";
    case PYSTACK_TESTED_NOT:
        break;
    }
    return "nothing yet";
}

int main(void) {
    size_t n;
    const struct pystack_version *rows = pystack_version_all(&n);
    (void)puts("| CPython | offsets from | stacks of running threads | debug builds | tested by |");
    (void)puts("|---|---|---|---|---|");
    for (size_t i = 0; i < n; i++)
        (void)printf("| %d.%d%s | %s | %s | %s | %s |\n", rows[i].major, rows[i].minor,
                     rows[i].free_threaded ? " free-threaded" : "", versions_source(&rows[i]),
                     rows[i].exact ? "exact" : "passive, torn ones marked",
                     rows[i].debug_builds ? "read" : "refused", versions_tested(&rows[i]));
    return 0;
}
