/* SPDX-License-Identifier: Apache-2.0 */
/*
 * modules_rows: the rows of the Modules screen, from the table of modules: the tree of a model, in the order in which it was defined. Pure.
 */
#ifndef TUI_SCREENS_MODULES_MODULES_ROWS_H
#define TUI_SCREENS_MODULES_MODULES_ROWS_H

#include "tui/view/outline.h"

/* Texts are the result's; NULL, NAN and -1 are unknown. */
struct module_row {
    const char *path, *parent, *name, *class, *dtype, *device, *root, *nan;
    double parameters, own_parameters, bytes, hooks, forward_ms, backward_ms, calls, activation_bytes,
        grad_norm;
    int training, compiled, is_nan;
    double share; /* of the time of the slowest: 0 to 1; NAN unknown */
    bool ascii, flat;
    size_t line; /* of the result */
};

struct module_rows {
    struct result *rows; /* a reference */
    struct module_row *items;
    size_t n;
    size_t roots;             /* models */
    double parameters, bytes; /* of those */
    bool is_traced;           /* times are known of some */
    size_t n_nan;             /* that had a value that is no number */
};

/* Nodes' rows are struct module_row; where times are known there are columns more. */
extern const struct outline_def module_outline, module_outline_traced;

/* Make nodes of a result (NULL: none) and give them to the outline. Replaces what was there. */
void module_rows_build(struct module_rows *r, struct result *rows, struct outline *out);
void module_rows_fini(struct module_rows *r);

/* "3.17M": a count for people; "?" unknown. */
void module_put_count(char *buf, size_t cap, double n);

#endif
