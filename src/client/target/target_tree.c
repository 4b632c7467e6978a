/* SPDX-License-Identifier: Apache-2.0 */
/* target_tree: see target_tree.h. */
#include "client/target/target_tree.h"

#include <string.h>

struct target_tree {
    const struct target_process *const *rows;
    size_t n;
    struct target_tree_row *out;
    size_t n_out;
};

static bool target_tree_has(const struct target_tree *t, pid_t pid) {
    for (size_t i = 0; pid && i < t->n; i++)
        if (t->rows[i]->pid == pid)
            return true;
    return false;
}

static bool target_tree_is_out(const struct target_tree *t, const struct target_process *p) {
    for (size_t i = 0; i < t->n_out; i++)
        if (t->out[i].process == p)
            return true;
    return false;
}

/* Add the processes below `parent` (0: those without a parent here), each with its own children. */
static void target_tree_add(struct target_tree *t, pid_t parent, int depth, uint32_t last) {
    size_t before = t->n; /* the previous child */
    for (size_t i = 0; i <= t->n; i++) {
        bool is_child =
            i < t->n && (parent ? t->rows[i]->parent == parent : !target_tree_has(t, t->rows[i]->parent));
        if (!is_child && i < t->n)
            continue;
        if (before < t->n && !target_tree_is_out(t, t->rows[before])) {
            uint32_t branch = last | (i == t->n ? 1U << depth : 0);
            t->out[t->n_out++] = (struct target_tree_row){t->rows[before], depth, branch};
            bool deeper = depth + 1 < TARGET_TREE_MAX_DEPTH;
            target_tree_add(t, t->rows[before]->pid, deeper ? depth + 1 : depth, deeper ? branch : last);
        }
        before = i;
    }
}

void target_tree_arrange(const struct target_process *const *rows, size_t n, struct target_tree_row *out) {
    struct target_tree t = {.rows = rows, .n = n, .out = out};
    target_tree_add(&t, 0, 0, 0);
    /* Pids that were reused during the listing can name each other as parents. */
    for (size_t i = 0; i < n; i++)
        if (!target_tree_is_out(&t, rows[i]))
            out[t.n_out++] = (struct target_tree_row){.process = rows[i]};
}

/* The rails of depths 1 to `depth`. */
static void target_tree_rails(const struct target_tree_row *row, int depth, bool ascii, char *buf) {
    buf[0] = '\0';
    for (int d = 1; d <= depth && d < TARGET_TREE_MAX_DEPTH; d++)
        strcat(buf, row->last >> d & 1 ? "   " : ascii ? "|  " : "\xe2\x94\x82  ");
}

void target_tree_prefix(const struct target_tree_row *row, bool ascii, char *buf) {
    target_tree_rails(row, row->depth - 1, ascii, buf);
    if (row->depth == 0)
        return;
    bool last = row->last >> row->depth & 1;
    strcat(buf, ascii  ? (last ? "`- " : "|- ")
                : last ? "\xe2\x94\x94\xe2\x94\x80 "
                       : "\xe2\x94\x9c\xe2\x94\x80 ");
}

void target_tree_indent(const struct target_tree_row *row, bool ascii, char *buf) {
    target_tree_rails(row, row->depth, ascii, buf);
}
