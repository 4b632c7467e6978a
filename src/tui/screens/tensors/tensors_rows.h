/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensors_rows: the rows of the Tensors screen, from the table of live tensors: tensors in groups,
 * with totals that count each storage once, and growth since a mark. Pure.
 */
#ifndef TUI_SCREENS_TENSORS_TENSORS_ROWS_H
#define TUI_SCREENS_TENSORS_TENSORS_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/sql/result.h"
#include "tui/view/outline.h"

/* What tensors are grouped by. */
enum tensor_group {
    TENSOR_BY_MODULE = 0,
    TENSOR_BY_KIND,
    TENSOR_BY_SHAPE,
    TENSOR_BY_DTYPE,
    TENSOR_BY_DEVICE,
    TENSOR_BY_STORAGE,
    TENSOR_BY_NOTHING,
    TENSOR_GROUPS,
};

/* A tensor, or a group of them. Texts belong to the result; NULL and NAN: unknown. */
struct tensor_row {
    const char *name, *kind, *type, *shape, *dtype, *device, *module;
    double bytes;           /* of a group: of its storages, each counted once */
    double storage_bytes;   /* of everything that shares its memory */
    int64_t storage_id, id; /* APP_FEED_UNKNOWN */
    double age_s, first_step;
    double growth;                   /* bytes more than at the mark; NAN: no mark */
    int shared, requires_grad, grad; /* -1: unknown */
    bool is_by_module;               /* it is below its module */
    size_t line;                     /* in the result */
    size_t count;                    /* of a group: how many; 0: it is a tensor */
    char text[40];                   /* of a group without a name */
};

/* Tensors of one reading. Keeps a reference of the result. */
struct tensor_table {
    struct result *rows;
    struct tensor_row *items;
    size_t n;
    double bytes;    /* of all storages, each counted once */
    size_t storages; /* how many */
};

/* What the outline's nodes are made of. */
struct tensor_rows {
    struct tensor_row *groups;
    size_t n_groups;
};

/* The rows of nodes are struct tensor_row; with a mark there is one more column. */
extern const struct outline_def tensor_outline, tensor_outline_marked;
int tensor_column_bytes(void);

/* Read a result; NULL, or out of memory: an empty table. */
void tensor_table_init(struct tensor_table *t, struct result *rows);
void tensor_table_fini(struct tensor_table *t);

/* Make nodes from a table, with growth since `mark` (NULL: none), and give them to the outline.
 * Replaces `r`, which belongs to them. */
void tensor_rows_build(struct tensor_rows *r, struct tensor_table *t, const struct tensor_table *mark,
                       enum tensor_group by, struct outline *out);
void tensor_rows_fini(struct tensor_rows *r);

const char *tensor_group_name(enum tensor_group by);

/* "+1.5 GiB", "-12 B", "0". */
void tensor_put_growth(char *buf, size_t cap, double bytes);

#endif
