/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_tables: every table there is, with every column: what the agent writes, what the client reads and explains.
 *
 * One row a table. The order of a table's columns is the order of the values given to ring_append; the enums below name them.
 * To add a table, add a row; to add a column, add it at the end of its table: readers find columns by name.
 */
#ifndef STORE_RING_TABLES_H
#define STORE_RING_TABLES_H

#include "store/ring.h"

enum ring_table {
    /* collected always */
    RING_SAMPLES = 0,
    RING_STACKS,
    RING_FRAMES,
    RING_THREAD_HISTORY,
    RING_PROCESS_HISTORY,
    RING_MEMORY,
    RING_GC,
    RING_STEPS,
    RING_SPANS,
    RING_STATUS,
    RING_FACTS,
    RING_TABLE_KEPT, /* so many have a ring */
    /* made when they are read */
    RING_BACKTRACE = RING_TABLE_KEPT,
    RING_THREADS,
    RING_PROCESS,
    RING_SYSTEM_THREADS,
    RING_CONFIG,
    RING_TABLE_COUNT
};

extern const struct ring_table_def RING_TABLES[RING_TABLE_COUNT];

/* Columns, in the order of their values. */
enum ring_samples_column {
    RING_SAMPLES_TIMESTAMP = 0,
    RING_SAMPLES_TID,
    RING_SAMPLES_THREAD,
    RING_SAMPLES_STACK_ID,
    RING_SAMPLES_ON_CPU,
    RING_SAMPLES_GIL, /* enum model_gil less one; unknown is unknown */
    RING_SAMPLES_GC,
    RING_SAMPLES_TORN,
    RING_SAMPLES_COUNT
};

enum ring_stacks_column {
    RING_STACKS_ID = 0,
    RING_STACKS_PARENT,
    RING_STACKS_FRAME,
    RING_STACKS_DEPTH,
    RING_STACKS_COUNT
};

enum ring_frames_column {
    RING_FRAMES_ID = 0,
    RING_FRAMES_FUNC,
    RING_FRAMES_FILE,
    RING_FRAMES_LINENO,
    RING_FRAMES_KIND, /* enum model_frame_kind */
    RING_FRAMES_COUNT
};

enum ring_thread_column {
    RING_THREAD_TIMESTAMP = 0,
    RING_THREAD_TID,
    RING_THREAD_NAME,
    RING_THREAD_NATIVE_NAME,
    RING_THREAD_STATE, /* ring_state_label */
    RING_THREAD_CPU_PCT,
    RING_THREAD_WCHAN,
    RING_THREAD_VOLUNTARY,
    RING_THREAD_INVOLUNTARY,
    RING_THREAD_MINOR_FAULTS,
    RING_THREAD_MAJOR_FAULTS,
    RING_THREAD_CPU,
    RING_THREAD_COUNT
};

enum ring_process_column {
    RING_PROCESS_TIMESTAMP = 0,
    RING_PROCESS_CPU_PCT,
    RING_PROCESS_RSS,
    RING_PROCESS_PSS,
    RING_PROCESS_SWAP,
    RING_PROCESS_THREADS,
    RING_PROCESS_FDS,
    RING_PROCESS_VOLUNTARY,
    RING_PROCESS_INVOLUNTARY,
    RING_PROCESS_MINOR_FAULTS,
    RING_PROCESS_MAJOR_FAULTS,
    RING_PROCESS_READ,
    RING_PROCESS_WRITTEN,
    RING_PROCESS_CGROUP_MEMORY,
    RING_PROCESS_CGROUP_LIMIT,
    RING_PROCESS_THROTTLED_S,
    RING_PROCESS_COUNT
};

enum ring_memory_column {
    RING_MEMORY_TIMESTAMP = 0,
    RING_MEMORY_MB,
    RING_MEMORY_RSS_MB,
    RING_MEMORY_GPU_ALLOCATED_MB,
    RING_MEMORY_GPU_RESERVED_MB,
    RING_MEMORY_GC_OBJECTS,
    RING_MEMORY_COUNT
};

enum ring_gc_column {
    RING_GC_TIMESTAMP = 0,
    RING_GC_GENERATION,
    RING_GC_DURATION_MS,
    RING_GC_COLLECTED,
    RING_GC_STEP,
    RING_GC_COLLECTIONS,
    RING_GC_UNCOLLECTABLE,
    RING_GC_COUNT
};

enum ring_steps_column {
    RING_STEPS_TIMESTAMP = 0,
    RING_STEPS_STEP,
    RING_STEPS_DURATION_MS,
    RING_STEPS_DATA_MS,
    RING_STEPS_FORWARD_MS,
    RING_STEPS_BACKWARD_MS,
    RING_STEPS_OPTIMIZER_MS,
    RING_STEPS_COMM_MS,
    RING_STEPS_OTHER_MS,
    RING_STEPS_COUNT
};

enum ring_spans_column {
    RING_SPANS_TIMESTAMP = 0,
    RING_SPANS_NAME,
    RING_SPANS_DURATION_MS,
    RING_SPANS_TID,
    RING_SPANS_STEP,
    RING_SPANS_KIND, /* enum steps_kind */
    RING_SPANS_COUNT
};

enum ring_status_column {
    RING_STATUS_TIMESTAMP = 0,
    RING_STATUS_UPTIME_S,
    RING_STATUS_CPU_S,
    RING_STATUS_OVERHEAD_PCT,
    RING_STATUS_RSS,
    RING_STATUS_RATE_HZ,
    RING_STATUS_SAMPLES,
    RING_STATUS_TORN,
    RING_STATUS_DROPPED,
    RING_STATUS_US_PER_SAMPLE,
    RING_STATUS_CLIENTS,
    RING_STATUS_COUNT
};

enum ring_facts_column {
    RING_FACTS_TIMESTAMP = 0,
    RING_FACTS_KEY, /* RING_FACT_... */
    RING_FACTS_VALUE,
    RING_FACTS_COUNT
};

/* Keys of probing.facts. The newest row of a key is what is true; without a value: no longer. */
#define RING_FACT_CMD "cmd"
#define RING_FACT_EXE "exe"
#define RING_FACT_STARTED_AT "started_at"
#define RING_FACT_AGENT "agent"
#define RING_FACT_PYTHON "python"
#define RING_FACT_TORCH "torch"
#define RING_FACT_ENV "env." /* and a name of CONFIG_ENV_ALLOW */

/* Value of a state column for the kernel's letter; -1 unknown. */
int ring_state_label(char state);

/* The table of that name or alias; NULL. */
const struct ring_table_def *ring_table_find(const char *name);

#endif
