/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensors_rows: the rows of the Tensors screen, from the table of live tensors: tensors in groups, with totals in which a storage counts
 * once, and what grew since a mark. Pure.
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

/* A tensor, or a group of them. Texts are the result's; NULL and NAN are unknown. */
struct tensor_row {
    const char *name, *kind, *type, *shape, *dtype, *device, *module;
    double bytes;           /* of a group: of its storages, each once */
    double storage_bytes;   /* of all it shares its memory with */
    int64_t storage_id, id; /* APP_FEED_UNKNOWN */
    double age_s, first_step;
    double growth;                   /* bytes more than at the mark; NAN there is none */
    int shared, requires_grad, grad; /* -1 unknown */
    bool is_by_module;               /* it stands below its module */
    size_t line;                     /* of the result */
    size_t count;                    /* of a group: how many; 0 it is a tensor */
    char text[40];                   /* of a group without a name of its own */
};

/* Tensors as they were read. Keeps a reference of the result. */
struct tensor_table {
    struct result *rows;
    struct tensor_row *items;
    size_t n;
    double bytes;    /* of all storages, each once */
    size_t storages; /* how many */
};

/* What the outline's nodes are made of. */
struct tensor_rows {
    struct tensor_row *groups;
    size_t n_groups;
};

/* Nodes' rows are struct tensor_row; with a mark there is a column more. */
extern const struct outline_def tensor_outline, tensor_outline_marked;
int tensor_column_bytes(void);

/* Read a result; NULL: an empty table. Out of memory: the same. */
void tensor_table_init(struct tensor_table *t, struct result *rows);
void tensor_table_fini(struct tensor_table *t);

/* Make nodes of a table, with growth since `mark` (NULL none), and give them to the outline. Replaces `r`, which belongs to them. */
void tensor_rows_build(struct tensor_rows *r, struct tensor_table *t, const struct tensor_table *mark,
                       enum tensor_group by, struct outline *out);
void tensor_rows_fini(struct tensor_rows *r);

const char *tensor_group_name(enum tensor_group by);

/* "+1.5 GiB", "-12 B", "0". */
void tensor_put_growth(char *buf, size_t cap, double bytes);

#endif
