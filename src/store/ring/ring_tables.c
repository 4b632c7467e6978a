/* SPDX-License-Identifier: Apache-2.0 */
/* ring_tables: see ring_tables.h. */
#include "store/ring/ring_tables.h"

#include <string.h>
#include <strings.h>

#define RING_HOURS 3600.0

#define LABELS(name, ...) static const char *const ring_##name##_labels[] = {__VA_ARGS__, NULL};
#include "store/ring/tables.def"

#define KEPT_TABLE(id, ...) static const struct ring_column_def ring_columns_##id[] = {
#define LIVE_TABLE(id, ...) static const struct ring_column_def ring_columns_##id[] = {
#define PYTHON_TABLE(id, ...) static const struct ring_column_def ring_columns_##id[] = {
#define COLUMN(id, name, type, unit, access, help) {name, RING_##type, unit, help, NULL, WIRE_##access},
#define ENUM(id, name, labels, access, help)                                                                 \
    {name, RING_ENUM, NULL, help, ring_##labels##_labels, WIRE_##access},
#define TABLE_END(id)                                                                                        \
    { .name = NULL }                                                                                         \
    }                                                                                                        \
    ;
#include "store/ring/tables.def"

const struct ring_table_def RING_TABLES[RING_TABLE_COUNT] = {
#define KEPT_TABLE(id, name, alias, cost, weight, retention_s, text_percent, help)                           \
    [RING_##id] = {name, alias, help, RING_COST_##cost, weight, retention_s, text_percent, ring_columns_##id},
#define LIVE_TABLE(id, name, scan, remote, help)                                                             \
    [RING_##id] = {name, NULL, help, RING_COST_NOW, 0, 0, 0, ring_columns_##id},
#define PYTHON_TABLE(id, name, unit, function, roots, key, help)                                             \
    [RING_##id] = {name, NULL, help, RING_COST_NOW, 0, 0, 0, ring_columns_##id},
#include "store/ring/tables.def"
};

int ring_state_label(char state) {
    for (int i = 0; ring_state_labels[i]; i++)
        if (ring_state_labels[i][0] == state)
            return i;
    return -1;
}

enum wire_access ring_table_access(const struct ring_table_def *def) {
    enum wire_access most = WIRE_READ_ONLY;
    for (const struct ring_column_def *c = def->columns; c->name; c++)
        most = c->access > most ? c->access : most;
    return most;
}

enum wire_access ring_column_access(const struct ring_table_def *def, const char *name) {
    for (const struct ring_column_def *c = def->columns; c->name; c++)
        if (strcmp(c->name, name) == 0)
            return c->access;
    return WIRE_VALUES;
}

const struct ring_table_def *ring_table_find(const char *name) {
    for (size_t i = 0; i < RING_TABLE_COUNT; i++)
        if (strcasecmp(RING_TABLES[i].name, name) == 0 ||
            (RING_TABLES[i].alias && strcasecmp(RING_TABLES[i].alias, name) == 0))
            return &RING_TABLES[i];
    return NULL;
}
