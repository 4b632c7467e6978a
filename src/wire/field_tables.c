/* SPDX-License-Identifier: Apache-2.0 */
/* field_tables: which members of the model travel, and their names; see field.h. */
#include "base/model.h"
#include "wire/field.h"

/* Enumerators have a row form of their own (F_ENUM), because an enum is an int to the compiler. */
#define F(type, member, name) F_OF(type, member, name, WIRE_READ_ONLY)
/* A member that is, or may be, a value of the job. */
#define F_VALUE(type, member, name) F_OF(type, member, name, WIRE_VALUES)
#define F_OF(type, member, name, needs)                                                                                \
    {                                                                                                                  \
        .key = (name), .offset = offsetof(type, member), .access = (needs),                                          \
        .kind = _Generic(((type *)0)->member, bool : FIELD_BOOL, char : FIELD_CHAR, int8_t : FIELD_INT8, int : FIELD_INT, \
                         int64_t : FIELD_INT64, uint32_t : FIELD_UINT32, uint64_t : FIELD_UINT64, double : FIELD_DOUBLE,  \
                         const char * : FIELD_STR) \
    }
#define F_ENUM(type, member, name, largest)                                                                  \
    {                                                                                                        \
        .key = (name), .offset = offsetof(type, member), .kind = FIELD_ENUM, .max = (largest),               \
        .access = WIRE_READ_ONLY                                                                             \
    }
/* for whoever may change the job */
#define F_ANY(type, member, name) F_OF(type, member, name, WIRE_CHANGES)
/* A member that most messages do not use. */
#define F_SPARSE(type, member, name) F_SPARSE_OF(type, member, name, WIRE_READ_ONLY)
#define F_SPARSE_ENUM(type, member, name, largest)                                                           \
    {                                                                                                        \
        .key = (name), .offset = offsetof(type, member), .kind = FIELD_ENUM, .max = (largest),               \
        .sparse = true, .access = WIRE_READ_ONLY                                                             \
    }
#define F_SPARSE_OF(type, member, name, needs)                                                                                              \
    {                                                                                                                                       \
        .key = (name), .offset = offsetof(type, member), .sparse = true, .access = (needs),                                               \
        .kind = _Generic(((type *)0)->member, uint32_t : FIELD_UINT32, uint64_t : FIELD_UINT64,                          \
                         const char * : FIELD_STR) \
    }
/* `bytes`: the size of a shown row without its texts; 0 where it is shown only as part of
 * others. Tasks count more, because each is searched for in the tasks that await it. */
#define TABLE(id, type, text, rows, bytes)                                                                   \
    const struct field_table id = {.name = (text),                                                           \
                                   .fields = (rows),                                                         \
                                   .n = sizeof(rows) / sizeof *(rows),                                       \
                                   .stride = sizeof(type),                                                   \
                                   .shown = (bytes)};                                                        \
    _Static_assert(sizeof(rows) / sizeof *(rows) <= FIELD_MAX, "a table is longer than FIELD_MAX")

static const struct field field_target[] = {
    F(struct model_target, pid, "pid"),
    F(struct model_target, uid, "uid"),
    F(struct model_target, host, "host"),
    F_VALUE(struct model_target, cmdline, "cmdline"),
    F(struct model_target, exe, "exe"),
    F(struct model_target, python, "python"),
    F(struct model_target, torch, "torch"),
    F(struct model_target, rank, "rank"),
    F(struct model_target, started_at, "started_at"),
    F_ENUM(struct model_target, mode, "mode", MODEL_MODE_READONLY),
    F(struct model_target, agent_version, "agent_version"),
    F(struct model_target, discovery, "discovery"),
    F(struct model_target, python_untested, "python_untested"),
};
TABLE(FIELD_TARGET, struct model_target, "target", field_target, 0);

static const struct field field_process[] = {
    F(struct model_process, cpu_pct, "cpu_pct"),
    F(struct model_process, uptime_s, "uptime_s"),
    F(struct model_process, rss_bytes, "rss_bytes"),
    F(struct model_process, n_threads, "n_threads"),
    F(struct model_process, agent_cpu_pct, "agent_cpu_pct"),
    F(struct model_process, agent_rss_bytes, "agent_rss_bytes"),
};
TABLE(FIELD_PROCESS, struct model_process, "process", field_process, 0);

static const struct field field_snapshot[] = {
    F(struct model_snapshot, timestamp, "timestamp"),
    F(struct model_snapshot, seq, "seq"),
    F(struct model_snapshot, gil_tid, "gil_tid"),
    F(struct model_snapshot, cost_us, "cost_us"),
    F(struct model_snapshot, incomplete, "incomplete"),
    F(struct model_snapshot, gil_enabled, "gil_enabled"),
    F(struct model_snapshot, gc_running, "gc_running"),
    F_ENUM(struct model_snapshot, sampling, "sampling", MODEL_SAMPLING_GENTLE),
};
TABLE(FIELD_SNAPSHOT, struct model_snapshot, "snapshot", field_snapshot, 0);

static const struct field field_threads[] = {
    F(struct model_thread, tid, "tid"),
    F(struct model_thread, ident, "ident"),
    F(struct model_thread, name, "name"),
    F(struct model_thread, native_name, "native_name"),
    F(struct model_thread, state, "state"),
    F(struct model_thread, on_cpu, "on_cpu"),
    F_ENUM(struct model_thread, gil, "gil", MODEL_GIL_HOLDING),
    F(struct model_thread, cpu_pct, "cpu_pct"),
    F(struct model_thread, has_python, "has_python"),
    F(struct model_thread, torn, "torn"),
    F(struct model_thread, truncated, "truncated"),
    F(struct model_thread, gil_for_us, "gil_for_us"),
    F(struct model_thread, gc, "gc"),
    F_SPARSE(struct model_thread, same_us, "same_us"),
    F_SPARSE_ENUM(struct model_thread, wait.kind, "wait_kind", MODEL_WAIT_KINDS - 1),
    F_SPARSE(struct model_thread, wait.flags, "wait_flags"),
    F_SPARSE(struct model_thread, wait.tid, "wait_tid"),
    F_SPARSE(struct model_thread, wait.pid, "wait_pid"),
    F_SPARSE(struct model_thread, wait.for_us, "wait_for_us"),
    F_SPARSE(struct model_thread, wait.left_us, "wait_left_us"),
    F_SPARSE(struct model_thread, wait.what, "wait_what"),
    F_SPARSE_OF(struct model_thread, wait.detail, "wait_detail", WIRE_VALUES),
};
TABLE(FIELD_THREADS, struct model_thread, "threads", field_threads, 2048);

static const struct field field_frames[] = {
    F(struct model_frame, func, "func"),
    F(struct model_frame, file, "file"),
    F(struct model_frame, line, "line"),
    F_ENUM(struct model_frame, kind, "kind", MODEL_FRAME_ENTRY),
    F_SPARSE(struct model_frame, module, "module"),
    F_SPARSE(struct model_frame, address, "address"),
};
TABLE(FIELD_FRAMES, struct model_frame, "frames", field_frames, 0);

static const struct field field_locals_frames[] = {
    F(struct field_locals, thread, "thread"),
    F(struct field_locals, depth, "depth"),
    F(struct field_locals, count, "count"),
    F(struct field_locals, truncated, "truncated"),
};
TABLE(FIELD_LOCALS_FRAMES, struct field_locals, "locals", field_locals_frames, 0);

static const struct field field_locals[] = {
    F_VALUE(struct model_local, name, "name"),
    F_VALUE(struct model_local, type, "type"),
    F_VALUE(struct model_local, text, "text"),
    F_ENUM(struct model_local, kind, "kind", MODEL_LOCAL_FREE),
};
TABLE(FIELD_LOCALS, struct model_local, "locals", field_locals, 192);

static const struct field field_tasks[] = {
    F(struct model_task, id, "id"),
    F(struct model_task, tid, "tid"),
    F(struct model_task, name, "name"),
    F(struct model_task, coro, "coro"),
    F_ENUM(struct model_task, state, "state", MODEL_TASK_RUNNING),
    F(struct model_task, truncated, "truncated"),
};
TABLE(FIELD_TASKS, struct model_task, "tasks", field_tasks, 2048);

static const struct field field_batch[] = {
    F(struct model_sample_batch, epoch, "epoch"),
    F(struct model_sample_batch, period_us, "period_us"),
    F_ENUM(struct model_sample_batch, mode, "mode", MODEL_SAMPLING_GENTLE),
    F(struct model_sample_batch, cost_pct, "cost_pct"),
    F(struct model_sample_batch, budget_pct, "budget_pct"),
};
TABLE(FIELD_BATCH, struct model_sample_batch, "samples", field_batch, 0);

static const struct field field_frame_defs[] = {
    F(struct model_frame_def, frame_id, "id"),
    F(struct model_frame_def, frame.func, "func"),
    F(struct model_frame_def, frame.file, "file"),
    F(struct model_frame_def, frame.line, "line"),
    F_ENUM(struct model_frame_def, frame.kind, "kind", MODEL_FRAME_ENTRY),
    F_SPARSE(struct model_frame_def, frame.module, "module"),
    F_SPARSE(struct model_frame_def, frame.address, "address"),
};
TABLE(FIELD_FRAME_DEFS, struct model_frame_def, "frames", field_frame_defs, 0);

static const struct field field_stack_defs[] = {
    F(struct model_stack_def, stack_id, "id"),
    F(struct model_stack_def, parent_id, "parent"),
    F(struct model_stack_def, frame_id, "frame"),
};
TABLE(FIELD_STACK_DEFS, struct model_stack_def, "stacks", field_stack_defs, 0);

static const struct field field_thread_defs[] = {
    F(struct model_thread_def, tid, "tid"),
    F(struct model_thread_def, name, "name"),
    F(struct model_thread_def, native_name, "native_name"),
};
TABLE(FIELD_THREAD_DEFS, struct model_thread_def, "threads", field_thread_defs, 0);

static const struct field field_samples[] = {
    F(struct model_sample, timestamp, "timestamp"),
    F(struct model_sample, tid, "tid"),
    F(struct model_sample, stack_id, "stack"),
    F_SPARSE(struct model_sample, native_id, "native"),
    F(struct model_sample, on_cpu, "on_cpu"),
    F(struct model_sample, torn, "torn"),
    F_ENUM(struct model_sample, gil, "gil", MODEL_GIL_HOLDING),
    F(struct model_sample, gc, "gc"),
};
const struct field_table FIELD_SAMPLES = {.name = "samples",
                                          .fields = field_samples,
                                          .n = sizeof field_samples / sizeof *field_samples,
                                          .stride = sizeof(struct model_sample),
                                          .repeats = true,
                                          .cycle = 1};

static const struct field field_status[] = {
#define STATUS_COUNT(member, ...) F(struct model_status, member, #member),
#define STATUS_INTEGER STATUS_COUNT
#define STATUS_NUMBER STATUS_COUNT
#define STATUS_FLAG STATUS_COUNT
#define STATUS_TEXT STATUS_COUNT
#include "base/model_status.def"
};
TABLE(FIELD_STATUS, struct model_status, "status", field_status, 0);

static const struct field field_table_rows[] = {
    F(struct model_table, rows, "rows"),     F(struct model_table, bytes, "bytes"),
    F(struct model_table, lost, "lost"),     F(struct model_table, oldest, "oldest"),
    F(struct model_table, newest, "newest"), F(struct model_table, name, "name"),
};
TABLE(FIELD_TABLES, struct model_table, "tables", field_table_rows, 256);

static const struct field field_setting_rows[] = {
    F(struct model_setting, given, "given"),
    F(struct model_setting, key, "key"),
    F(struct model_setting, value, "value"),
    F(struct model_setting, unit, "unit"),
    F(struct model_setting, default_value, "otherwise"),
    F(struct model_setting, help, "help"),
};
TABLE(FIELD_SETTINGS, struct model_setting, "settings", field_setting_rows, 256);

static const struct field field_lease_rows[] = {
    F(struct model_lease, what, "what"),           F(struct model_lease, owners, "owners"),
    F(struct model_lease, by_config, "by_config"), F(struct model_lease, held_s, "held_s"),
    F(struct model_lease, left_s, "left_s"),       F(struct model_lease, looks, "looks"),
    F(struct model_lease, cost_pct, "cost_pct"),   F(struct model_lease, armed, "armed"),
    F(struct model_lease, note, "note"),           F(struct model_lease, file, "file"),
};
TABLE(FIELD_LEASES, struct model_lease, "leases", field_lease_rows, 512);

static const struct field field_debugger_rows[] = {
    F(struct model_debugger, what, "what"),       F(struct model_debugger, state, "state"),
    F(struct model_debugger, address, "address"), F_VALUE(struct model_debugger, text, "text"),
    F(struct model_debugger, uid, "uid"),         F(struct model_debugger, pid, "pid"),
    F(struct model_debugger, held_s, "held_s"),   F(struct model_debugger, left_s, "left_s"),
    F(struct model_debugger, used, "used"),
};
TABLE(FIELD_HOLDS, struct model_debugger, "holds", field_debugger_rows, 512);

static const struct field field_endpoint_rows[] = {
    F(struct model_endpoint, address, "address"), F(struct model_endpoint, looking, "looking"),
    F(struct model_endpoint, clients, "clients"), F(struct model_endpoint, waiting, "waiting"),
    F(struct model_endpoint, entered, "entered"), F(struct model_endpoint, refused, "refused"),
    F(struct model_endpoint, note, "note"),
};
TABLE(FIELD_DOORS, struct model_endpoint, "doors", field_endpoint_rows, 256);

/* ---- debug, pause, catch ---- */

#define FIELD_OF_DEBUG                                                                                       \
    F_ENUM(struct wire_debug, action, "action", WIRE_DEBUG_END),                                             \
        F_ANY(struct wire_debug, timeout_s, "timeout_s"), F_ANY(struct wire_debug, leased, "leased"),        \
        F_ANY(struct wire_debug, host, "host"), F_ANY(struct wire_debug, port, "port")

static const struct field field_debug[] = {
    FIELD_OF_DEBUG,
    F_ANY(struct wire_debug, path, "path"),
    F_ANY(struct wire_debug, exposed, "exposed"),
};
TABLE(FIELD_DEBUG, struct wire_debug, "debug", field_debug, 0);

static const struct field field_pdb[] = {
    FIELD_OF_DEBUG,
    F_ANY(struct wire_debug, limit_s, "limit_s"),
};
TABLE(FIELD_PDB, struct wire_debug, "pdb", field_pdb, 0);

#define FIELD_OF_DEBUGGER                                                                                    \
    F_ANY(struct wire_debugger, refused, "refused"), F_ANY(struct wire_debugger, raised, "raised"),          \
        F_ANY(struct wire_debugger, timed_out, "timed_out"),                                                 \
        F_ANY(struct wire_debugger, unended, "unended"), F_ANY(struct wire_debugger, on, "on"),              \
        F_ANY(struct wire_debugger, was, "was"), F_ANY(struct wire_debugger, client, "client")
#define FIELD_OF_PDB                                                                                         \
    F_ANY(struct wire_debugger, address, "address"), F_ANY(struct wire_debugger, token, "token"),            \
        F_ANY(struct wire_debugger, left_s, "left_s")

static const struct field field_debugpy[] = {
    FIELD_OF_DEBUGGER,
    F_ANY(struct wire_debugger, missing, "missing"),
    F_ANY(struct wire_debugger, other, "other"),
    F_ANY(struct wire_debugger, host, "host"),
    F_ANY(struct wire_debugger, port, "port"),
    F_ANY(struct wire_debugger, module, "module"),
    F_ANY(struct wire_debugger, version, "version"),
    F_ANY(struct wire_debugger, user, "user"),
    F_ANY(struct wire_debugger, cwd, "cwd"),
    F_ANY(struct wire_debugger, compiles, "compiles"),
};
TABLE(FIELD_DEBUGPY, struct wire_debugger, "debug", field_debugpy, 0);

static const struct field field_paused[] = {FIELD_OF_DEBUGGER, FIELD_OF_PDB};
TABLE(FIELD_PAUSED, struct wire_debugger, "pause", field_paused, 0);

static const struct field field_paused_threads[] = {
    F_ANY(struct wire_paused_thread, tid, "tid"),
    F_ANY(struct wire_paused_thread, held, "held"),
    F_ANY(struct wire_paused_thread, name, "name"),
    F_ANY(struct wire_paused_thread, where, "where"),
};
TABLE(FIELD_PAUSED_THREADS, struct wire_paused_thread, "threads", field_paused_threads, 256);

static const struct field field_caught[] = {
    FIELD_OF_DEBUGGER,
    FIELD_OF_PDB,
    F_ANY(struct wire_debugger, exception, "exception"),
    F_ANY(struct wire_debugger, thread, "thread"),
    F_ANY(struct wire_debugger, traceback, "traceback"),
    F_ANY(struct wire_debugger, signals, "signals"),
    F_ANY(struct wire_debugger, left_alone, "left_alone"),
    F_ANY(struct wire_debugger, limit_s, "limit_s"),
    F_ANY(struct wire_debugger, all_threads, "all_threads"),
};
TABLE(FIELD_CAUGHT, struct wire_debugger, "catch", field_caught, 0);

const struct field_table *field_debug_params(enum wire_method method) {
    return method == WIRE_DEBUG ? &FIELD_DEBUG : &FIELD_PDB;
}

const struct field_table *field_debug_answer(enum wire_method method) {
    return method == WIRE_DEBUG ? &FIELD_DEBUGPY : method == WIRE_PAUSE ? &FIELD_PAUSED : &FIELD_CAUGHT;
}
