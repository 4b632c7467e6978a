/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_tables: every table there is, with every column: what the agent writes, what the client
 * reads and explains.
 *
 * Tables and columns are rows of tables.def. RING_SAMPLES is a table's place in RING_TABLES,
 * RING_SAMPLES_TID that of a column in its values, RING_SAMPLES_COUNT their number.
 */
#ifndef STORE_RING_RING_TABLES_H
#define STORE_RING_RING_TABLES_H

#include "store/ring/ring.h"

enum ring_table {
#define KEPT_TABLE(id, ...) RING_##id,
/* number of tables with a ring */
#define KEPT_END RING_TABLE_KEPT, RING_TABLE_LAST_KEPT = RING_TABLE_KEPT - 1,
#define LIVE_TABLE(id, ...) RING_##id,
#define PYTHON_TABLE(id, ...) RING_##id,
#include "store/ring/tables.def"
    RING_TABLE_COUNT
};

extern const struct ring_table_def RING_TABLES[RING_TABLE_COUNT];

/* For each table the places of its columns. */
#define KEPT_TABLE(id, ...) enum {
#define LIVE_TABLE(id, ...) enum {
#define PYTHON_TABLE(id, ...) enum {
#define COLUMN(id, ...) RING_##id,
#define TABLE_END(id)                                                                                        \
    RING_##id##_COUNT                                                                                        \
    }                                                                                                        \
    ;
#include "store/ring/tables.def"

#define RING_SPAN_PROFILER 6 /* label of operations that torch.profiler has reported, */
#define RING_SPAN_GPU 7      /* and of what it has seen of a GPU in a step */

/* Labels of python.collectives. */
#define RING_COLLECTIVE_OPEN 0
#define RING_COLLECTIVE_DONE 1
#define RING_COLLECTIVE_SPAN 0
#define RING_COLLECTIVE_TLS 1

#define RING_NONFINITE_NONE 3 /* label of a stage that is not known */

enum ring_stage { RING_STAGE_STEP = 0, RING_STAGE_FORWARD, RING_STAGE_BACKWARD };

/* Kinds of probing.events. */
#define RING_EVENT_EVAL "eval"
#define RING_EVENT_EVAL_REFUSED "eval refused"
#define RING_EVENT_REFUSED "refused"
#define RING_EVENT_UNCAUGHT "uncaught exception"
#define RING_EVENT_FATAL "fatal signal"
#define RING_EVENT_FATAL_STACK "fatal signal: stack"

/* Keys of probing.facts. The newest row of a key holds; without a value it no longer does. */
#define RING_FACT_CMD "cmd"
#define RING_FACT_EXE "exe"
#define RING_FACT_STARTED_AT "started_at"
#define RING_FACT_AGENT "agent"
#define RING_FACT_PYTHON "python"
#define RING_FACT_TORCH "torch"
#define RING_FACT_ENV "env." /* followed by a name of CONFIG_ENV_ALLOW */

/* Value of a state column for the kernel's letter; -1 unknown. */
int ring_state_label(char state);

/* Access level for the whole table: that of its most private column. Rows travel with all
 * columns and all strings of a chunk, so a client without it gets none by `pull`. */
enum wire_access ring_table_access(const struct ring_table_def *def);

/* The same for a column by its name; WIRE_VALUES if the table lacks it. */
enum wire_access ring_column_access(const struct ring_table_def *def, const char *name);

/* The table of that name or alias, in any case, as SQL has it; NULL. */
const struct ring_table_def *ring_table_find(const char *name);

#endif
