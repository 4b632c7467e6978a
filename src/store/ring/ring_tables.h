/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_tables: every table there is, with every column: what the agent writes, what the client reads and explains.
 *
 * One row a table. The order of a table's columns is the order of the values given to ring_append; the enums below name them.
 * To add a table, add a row; to add a column, add it at the end of its table: readers find columns by name. Each column says who may
 * see it (wire/access.h); after a change `make access` writes docs/access.md anew.
 */
#ifndef STORE_RING_RING_TABLES_H
#define STORE_RING_RING_TABLES_H

#include "store/ring/ring.h"

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
    RING_VARIABLES,
    RING_LOADERS,
    RING_TRACE,
    RING_NONFINITE,
    RING_STATUS,
    RING_FACTS,
    RING_EVENTS,
    RING_TABLE_KEPT, /* so many have a ring */
    /* made when they are read */
    RING_BACKTRACE = RING_TABLE_KEPT,
    RING_THREADS,
    RING_PROCESS,
    RING_SYSTEM_THREADS,
    RING_CONFIG,
    RING_LOADER_WORKERS,
    RING_MODULES,
    RING_TENSORS,
    RING_TENSOR_GROWTH,
    RING_TENSOR_STATISTICS,
    RING_TENSOR_HOLDERS,
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
    RING_STEPS_GC_MS,
    RING_STEPS_LOSS,
    RING_STEPS_LR,
    RING_STEPS_GRAD_NORM,
    RING_STEPS_NONFINITE,
    RING_STEPS_EPOCH,
    RING_STEPS_COUNT
};

enum ring_spans_column {
    RING_SPANS_TIMESTAMP = 0,
    RING_SPANS_NAME,
    RING_SPANS_DURATION_MS,
    RING_SPANS_TID,
    RING_SPANS_STEP,
    RING_SPANS_KIND, /* enum steps_kind, or RING_SPAN_PROFILER */
    RING_SPANS_CALLS,
    RING_SPANS_COUNT
};

#define RING_SPAN_PROFILER 6 /* label of operations that torch.profiler has told */

enum ring_variables_column {
    RING_VARIABLES_TIMESTAMP = 0,
    RING_VARIABLES_STEP,
    RING_VARIABLES_FUNC,
    RING_VARIABLES_NAME,
    RING_VARIABLES_VALUE,
    RING_VARIABLES_TEXT,
    RING_VARIABLES_COUNT
};

enum ring_loaders_column {
    RING_LOADERS_TIMESTAMP = 0,
    RING_LOADERS_LOADER,
    RING_LOADERS_WORKERS,
    RING_LOADERS_PREFETCH,
    RING_LOADERS_OUTSTANDING,
    RING_LOADERS_READY,
    RING_LOADERS_SENT,
    RING_LOADERS_RECEIVED,
    RING_LOADERS_WAIT_MS,
    RING_LOADERS_BATCHES,
    RING_LOADERS_DATASET,
    RING_LOADERS_COUNT
};

enum ring_trace_column {
    RING_TRACE_TIMESTAMP = 0,
    RING_TRACE_STEP,
    RING_TRACE_SEQ,
    RING_TRACE_OPERATION,
    RING_TRACE_MODULE,
    RING_TRACE_STAGE, /* enum ring_stage */
    RING_TRACE_DURATION_MS,
    RING_TRACE_ALLOCATED_MB,
    RING_TRACE_MAX_ALLOCATED_MB,
    RING_TRACE_CACHED_MB,
    RING_TRACE_CALLS,
    RING_TRACE_BYTES,
    RING_TRACE_COUNT
};

enum ring_nonfinite_column {
    RING_NONFINITE_TIMESTAMP = 0,
    RING_NONFINITE_STEP,
    RING_NONFINITE_MODULE,
    RING_NONFINITE_CLASS,
    RING_NONFINITE_STAGE, /* enum hunt_stage; RING_NONFINITE_NONE */
    RING_NONFINITE_WHAT,
    RING_NONFINITE_NAN,
    RING_NONFINITE_INF,
    RING_NONFINITE_ELEMENTS,
    RING_NONFINITE_INPUT_MIN,
    RING_NONFINITE_INPUT_MAX,
    RING_NONFINITE_INPUT_NONFINITE,
    RING_NONFINITE_PARAMETER,
    RING_NONFINITE_STACK,
    RING_NONFINITE_COUNT
};

#define RING_NONFINITE_NONE 3

enum ring_stage { RING_STAGE_STEP = 0, RING_STAGE_FORWARD, RING_STAGE_BACKWARD };

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

enum ring_events_column {
    RING_EVENTS_TIMESTAMP = 0,
    RING_EVENTS_KIND, /* RING_EVENT_... */
    RING_EVENTS_CLIENT_UID,
    RING_EVENTS_CLIENT_PID,
    RING_EVENTS_TEXT,
    RING_EVENTS_COUNT
};

#define RING_EVENT_EVAL "eval"
#define RING_EVENT_EVAL_REFUSED "eval refused"
#define RING_EVENT_REFUSED "refused"
#define RING_EVENT_UNCAUGHT "uncaught exception"
#define RING_EVENT_FATAL "fatal signal"
#define RING_EVENT_FATAL_STACK "fatal signal: stack"

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

/* What one must be allowed to have all of the table: what the most private of its columns needs. Rows travel with all columns and
 * all strings of a chunk, so who may see some of them gets none by `pull`. */
enum wire_access ring_table_access(const struct ring_table_def *def);

/* The same of a column, by its name; WIRE_VALUES of one that the table does not have. */
enum wire_access ring_column_access(const struct ring_table_def *def, const char *name);

/* The table of that name or alias; NULL. */
const struct ring_table_def *ring_table_find(const char *name);

#endif
