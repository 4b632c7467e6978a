/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target_tree: processes below their parents. Pure.
 */
#ifndef CLIENT_TARGET_TARGET_TREE_H
#define CLIENT_TARGET_TARGET_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/target/target.h"

#define TARGET_TREE_MAX_DEPTH 16 /* deeper ones are drawn at that depth */
#define TARGET_TREE_PREFIX 128   /* bytes of a prefix */

struct target_tree_row {
    const struct target_process *process;
    int depth;     /* 0: no parent */
    uint32_t last; /* bit d: at depth d, this row's branch is the last of its siblings */
};

/* Put each of `rows` below its parent, if that is among them; siblings keep their order. `out`
 * has room for n. */
void target_tree_arrange(const struct target_process *const *rows, size_t n, struct target_tree_row *out);

/* The branches before a row's name: "│  └─ " or, with `ascii`, "|  `- "; "" at depth 0. `buf`:
 * TARGET_TREE_PREFIX bytes. */
void target_tree_prefix(const struct target_tree_row *row, bool ascii, char *buf);

/* The prefix of further lines of the same row. */
void target_tree_indent(const struct target_tree_row *row, bool ascii, char *buf);

#endif
