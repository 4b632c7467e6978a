/* SPDX-License-Identifier: Apache-2.0 */
/*
 * modules_rows: the rows of the Modules screen, from the table of modules: the tree of a model, in
 * the order of its definition. Pure.
 */
#ifndef TUI_SCREENS_MODULES_MODULES_ROWS_H
#define TUI_SCREENS_MODULES_MODULES_ROWS_H

#include "tui/view/outline.h"

/* Texts belong to the result; NULL, NAN and -1: unknown. */
struct module_row {
    const char *path, *parent, *name, *class, *dtype, *device, *root, *nan;
    double parameters, own_parameters, bytes, hooks, forward_ms, backward_ms, calls, activation_bytes,
        grad_norm;
    int training, compiled, is_nan;
    double share; /* share of the time of the slowest: 0 to 1; NAN: unknown */
    bool ascii, flat;
    size_t line; /* in the result */
};

struct module_rows {
    struct result *rows; /* one reference */
    struct module_row *items;
    size_t n;
    size_t roots;             /* models */
    double parameters, bytes; /* of those */
    bool is_traced;           /* times of some are known */
    size_t n_nan;             /* that had a non-finite value */
};

/* The rows of nodes are struct module_row; if times are known there are more columns. */
extern const struct outline_def module_outline, module_outline_traced;

/* Make nodes from a result (NULL: none) and give them to the outline. Replaces the earlier ones. */
void module_rows_build(struct module_rows *r, struct result *rows, struct outline *out);
void module_rows_fini(struct module_rows *r);

/* "3.17M": a count for people; "?": unknown. */
void module_put_count(char *buf, size_t cap, double n);

#endif
