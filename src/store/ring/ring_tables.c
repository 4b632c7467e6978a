/* SPDX-License-Identifier: Apache-2.0 */
/* ring_tables: see ring_tables.h. */
#include "store/ring/ring_tables.h"

#include <string.h>

#include "store/ring/ring_tables_virtual.h"

static const char *const ring_gil_labels[] = {"none", "waiting", "held", NULL};
static const char *const ring_kind_labels[] = {"python", "native", NULL};
static const char *const ring_state_labels[] = {"R", "S", "D", "T", "t", "Z", "X", "I", NULL};

static const char *const ring_nonfinite_labels[] = {"none", "loss", "grad_norm", "both", NULL};
static const char *const ring_span_labels[] = {"user", "optimizer",  "loader",   "comm",
                                               "ddp",  "checkpoint", "profiler", NULL};
static const char *const ring_stage_labels[] = {"step", "forward", "backward", NULL};
static const char *const ring_nonfinite_stage_labels[] = {"forward", "backward", "gradient", "none", NULL};

#define RING_TIME                                                                                            \
    { "timestamp", RING_TIMESTAMP, "s", "when, in seconds since the epoch, UTC", NULL, WIRE_READ_ONLY }
#define RING_END                                                                                             \
    { .name = NULL }

static const struct ring_column_def ring_samples[] = {
    RING_TIME,
    {"tid", RING_INT32, NULL, "thread, as the kernel numbers it", NULL, WIRE_READ_ONLY},
    {"thread", RING_TEXT, NULL, "its name: threading.Thread.name, else the kernel's", NULL, WIRE_READ_ONLY},
    {"stack_id", RING_ID, NULL, "its stack, innermost frame (python.stacks); fold(stack_id) writes it out",
     NULL, WIRE_READ_ONLY},
    {"on_cpu", RING_BOOL, NULL, "1: its CPU clock had moved since the last look", NULL, WIRE_READ_ONLY},
    {"gil", RING_ENUM, NULL, "held, waiting or none", ring_gil_labels, WIRE_READ_ONLY},
    {"gc", RING_BOOL, NULL, "1: within a garbage collection", NULL, WIRE_READ_ONLY},
    {"torn", RING_BOOL, NULL, "1: it moved while it was read, the stack may mix two moments", NULL,
     WIRE_READ_ONLY},
    RING_END,
};
_Static_assert(sizeof ring_samples / sizeof ring_samples[0] == RING_SAMPLES_COUNT + 1, "columns of samples");

static const struct ring_column_def ring_stacks[] = {
    {"stack_id", RING_ID, NULL, "a stack is its innermost node", NULL, WIRE_READ_ONLY},
    {"parent_id", RING_ID, NULL, "the stack of its caller; NULL for the outermost frame", NULL,
     WIRE_READ_ONLY},
    {"frame_id", RING_ID, NULL, "the frame (python.frames)", NULL, WIRE_READ_ONLY},
    {"depth", RING_UINT32, "frames", "frames below it, 0 for the outermost", NULL, WIRE_READ_ONLY},
    RING_END,
};
_Static_assert(sizeof ring_stacks / sizeof ring_stacks[0] == RING_STACKS_COUNT + 1, "columns of stacks");

static const struct ring_column_def ring_frames[] = {
    {"frame_id", RING_ID, NULL, "number of the frame", NULL, WIRE_READ_ONLY},
    {"func", RING_TEXT, NULL, "function, with the names around it where the interpreter keeps them", NULL,
     WIRE_READ_ONLY},
    {"file", RING_TEXT, NULL, "file, as the interpreter has it; the library of a native frame", NULL,
     WIRE_READ_ONLY},
    {"lineno", RING_INT32, NULL, "current line, not the function's first; NULL for a native frame", NULL,
     WIRE_READ_ONLY},
    {"kind", RING_ENUM, NULL, "python; native where probing.native is on", ring_kind_labels, WIRE_READ_ONLY},
    RING_END,
};
_Static_assert(sizeof ring_frames / sizeof ring_frames[0] == RING_FRAMES_COUNT + 1, "columns of frames");

static const struct ring_column_def ring_thread_history[] = {
    RING_TIME,
    {"tid", RING_INT32, NULL, "thread, as the kernel numbers it", NULL, WIRE_READ_ONLY},
    {"name", RING_TEXT, NULL, "threading.Thread.name; NULL for a thread without Python", NULL,
     WIRE_READ_ONLY},
    {"native_name", RING_TEXT, NULL, "the kernel's name", NULL, WIRE_READ_ONLY},
    {"state", RING_ENUM, NULL, "the kernel's letter: R runs or could, S sleeps, D waits for a device",
     ring_state_labels, WIRE_READ_ONLY},
    {"cpu_pct", RING_DOUBLE, "%", "of one core, in the second before", NULL, WIRE_READ_ONLY},
    {"wchan", RING_TEXT, NULL, "where in the kernel it waits", NULL, WIRE_READ_ONLY},
    {"voluntary_switches", RING_INT64, NULL, "times it gave up its CPU since it began", NULL, WIRE_READ_ONLY},
    {"involuntary_switches", RING_INT64, NULL, "times its CPU was taken away since it began", NULL,
     WIRE_READ_ONLY},
    {"minor_faults", RING_INT64, NULL, "page faults without a disk since it began", NULL, WIRE_READ_ONLY},
    {"major_faults", RING_INT64, NULL, "page faults with a disk since it began", NULL, WIRE_READ_ONLY},
    {"cpu", RING_INT32, NULL, "the CPU it ran on last", NULL, WIRE_READ_ONLY},
    RING_END,
};
_Static_assert(sizeof ring_thread_history / sizeof ring_thread_history[0] == RING_THREAD_COUNT + 1,
               "columns of threads");

static const struct ring_column_def ring_process_history[] = {
    RING_TIME,
    {"cpu_pct", RING_DOUBLE, "%", "of one core, all threads, in the second before", NULL, WIRE_READ_ONLY},
    {"rss_bytes", RING_INT64, "bytes", "memory in RAM", NULL, WIRE_READ_ONLY},
    {"pss_bytes", RING_INT64, "bytes", "memory in RAM, shared pages divided among their users", NULL,
     WIRE_READ_ONLY},
    {"swap_bytes", RING_INT64, "bytes", "memory swapped out", NULL, WIRE_READ_ONLY},
    {"threads", RING_INT32, NULL, "threads of the process", NULL, WIRE_READ_ONLY},
    {"fds", RING_INT32, NULL, "open file descriptors", NULL, WIRE_READ_ONLY},
    {"voluntary_switches", RING_INT64, NULL, "times a thread gave up its CPU since the start", NULL,
     WIRE_READ_ONLY},
    {"involuntary_switches", RING_INT64, NULL, "times a thread's CPU was taken away since the start", NULL,
     WIRE_READ_ONLY},
    {"minor_faults", RING_INT64, NULL, "page faults without a disk since the start", NULL, WIRE_READ_ONLY},
    {"major_faults", RING_INT64, NULL, "page faults with a disk since the start", NULL, WIRE_READ_ONLY},
    {"read_bytes", RING_INT64, "bytes", "read from storage since the start", NULL, WIRE_READ_ONLY},
    {"written_bytes", RING_INT64, "bytes", "written to storage since the start", NULL, WIRE_READ_ONLY},
    {"cgroup_memory_bytes", RING_INT64, "bytes", "memory that its cgroup uses", NULL, WIRE_READ_ONLY},
    {"cgroup_limit_bytes", RING_INT64, "bytes", "memory that its cgroup may use; NULL without a limit", NULL,
     WIRE_READ_ONLY},
    {"throttled_s", RING_DOUBLE, "s", "time its cgroup was kept from running since the start", NULL,
     WIRE_READ_ONLY},
    RING_END,
};
_Static_assert(sizeof ring_process_history / sizeof ring_process_history[0] == RING_PROCESS_COUNT + 1,
               "columns of process");

static const struct ring_column_def ring_memory[] = {
    RING_TIME,
    {"memory_mb", RING_DOUBLE, "MiB", "memory of the process: in RAM and swapped out", NULL, WIRE_READ_ONLY},
    {"rss_mb", RING_DOUBLE, "MiB", "of that, in RAM", NULL, WIRE_READ_ONLY},
    {"gpu_allocated_mb", RING_DOUBLE, "MiB", "in torch's tensors on GPUs", NULL, WIRE_READ_ONLY},
    {"gpu_reserved_mb", RING_DOUBLE, "MiB", "held by torch's allocator on GPUs", NULL, WIRE_READ_ONLY},
    {"gc_objects", RING_INT64, NULL,
     "objects that the last full garbage collection left alive, as len(gc.get_objects(generation=2)) was "
     "right after it; NULL: there was none yet, or this CPython does not keep the number (only 3.7 to 3.13 "
     "do)",
     NULL, WIRE_READ_ONLY},
    RING_END,
};
_Static_assert(sizeof ring_memory / sizeof ring_memory[0] == RING_MEMORY_COUNT + 1, "columns of memory");

static const struct ring_column_def ring_gc[] = {
    RING_TIME,
    {"generation", RING_INT32, NULL, "0 young, 1, 2 everything", NULL, WIRE_READ_ONLY},
    {"duration_ms", RING_DOUBLE, "ms",
     "how long they took; NULL: not known, of what counters tell up to Python 3.14", NULL, WIRE_READ_ONLY},
    {"collected", RING_INT64, NULL, "objects freed by it", NULL, WIRE_READ_ONLY},
    {"step", RING_INT64, NULL, "the training step it fell into; NULL: unknown, or there is none", NULL,
     WIRE_READ_ONLY},
    {"collections", RING_INT64, NULL,
     "1; more: so many of a second that only the collector's counters tell of", NULL, WIRE_READ_ONLY},
    {"uncollectable", RING_INT64, NULL, "objects found that cannot be freed", NULL, WIRE_READ_ONLY},
    RING_END,
};
_Static_assert(sizeof ring_gc / sizeof ring_gc[0] == RING_GC_COUNT + 1, "columns of gc");

static const struct ring_column_def ring_steps[] = {
    {"timestamp", RING_TIMESTAMP, "s", "when it ended, in seconds since the epoch, UTC", NULL,
     WIRE_READ_ONLY},
    {"step", RING_INT64, NULL, "its number, counted from the first that the agent saw", NULL, WIRE_READ_ONLY},
    {"duration_ms", RING_DOUBLE, "ms",
     "from the end of the step before to the end of its last Optimizer.step; NULL of the first", NULL,
     WIRE_READ_ONLY},
    {"data_ms", RING_DOUBLE, "ms", "fetching batches from a DataLoader; NULL: there is none", NULL,
     WIRE_READ_ONLY},
    {"forward_ms", RING_DOUBLE, "ms",
     "from the arrival of the batch to the backward pass; NULL of steps that were not looked into", NULL,
     WIRE_READ_ONLY},
    {"backward_ms", RING_DOUBLE, "ms", "in backward passes; NULL of steps that were not looked into", NULL,
     WIRE_READ_ONLY},
    {"optimizer_ms", RING_DOUBLE, "ms", "in Optimizer.step and zero_grad", NULL, WIRE_READ_ONLY},
    {"comm_ms", RING_DOUBLE, "ms",
     "while a collective of torch.distributed went on, mostly beside other work; NULL: there was none ever",
     NULL, WIRE_READ_ONLY},
    {"other_ms", RING_DOUBLE, "ms", "the rest; NULL where forward and backward are", NULL, WIRE_READ_ONLY},
    {"gc_ms", RING_DOUBLE, "ms", "of all that, collecting garbage on any thread; NULL: not known", NULL,
     WIRE_READ_ONLY},
    {"loss", RING_DOUBLE, NULL, "the loss, where it is found; NULL: not known, or no finite number", NULL,
     WIRE_READ_ONLY},
    {"lr", RING_DOUBLE, NULL, "learning rate of the optimizer's first group; NULL: not known", NULL,
     WIRE_READ_ONLY},
    {"grad_norm", RING_DOUBLE, NULL,
     "norm of all gradients: the variable grad_norm or total_norm; else, in traced steps with one optimizer, "
     "of its gradients as its step began, after clipping; NULL: not known, or no finite number",
     NULL, WIRE_READ_ONLY},
    {"nonfinite", RING_ENUM, NULL,
     "loss, grad_norm or both: that was NaN or infinite; none: what is known is finite; NULL: not known",
     ring_nonfinite_labels, WIRE_READ_ONLY},
    {"epoch", RING_INT64, NULL,
     "the job's own number of it, from a variable of that name; NULL: there is none", NULL, WIRE_READ_ONLY},
    RING_END,
};
_Static_assert(sizeof ring_steps / sizeof ring_steps[0] == RING_STEPS_COUNT + 1, "columns of steps");

static const struct ring_column_def ring_spans[] = {
    {"timestamp", RING_TIMESTAMP, "s", "when it began, in seconds since the epoch, UTC", NULL,
     WIRE_READ_ONLY},
    {"operation_name", RING_TEXT, NULL, "as torch, or record_function of the job, names it", NULL,
     WIRE_READ_ONLY},
    {"duration_ms", RING_DOUBLE, "ms", "how long it took", NULL, WIRE_READ_ONLY},
    {"tid", RING_INT32, NULL, "thread that began it, as the kernel numbers it", NULL, WIRE_READ_ONLY},
    {"step", RING_INT64, NULL, "the training step that it ended in (python.steps)", NULL, WIRE_READ_ONLY},
    {"kind", RING_ENUM, NULL,
     "optimizer, loader, comm, ddp, checkpoint (by samples: to about the time between two), profiler (all of "
     "a name, thread and step that torch.profiler has seen), or user: any other",
     ring_span_labels, WIRE_READ_ONLY},
    {"calls", RING_INT64, NULL, "how many operations the row adds up; NULL: it is one", NULL, WIRE_READ_ONLY},
    RING_END,
};
_Static_assert(sizeof ring_spans / sizeof ring_spans[0] == RING_SPANS_COUNT + 1, "columns of spans");

static const struct ring_column_def ring_variables[] = {
    {"timestamp", RING_TIMESTAMP, "s", "when it was looked at, in seconds since the epoch, UTC", NULL,
     WIRE_READ_ONLY},
    {"step", RING_INT64, NULL, "the training step that went on (python.steps); NULL: none was seen yet", NULL,
     WIRE_READ_ONLY},
    {"func", RING_TEXT, NULL, "the function it is a variable of", NULL, WIRE_READ_ONLY},
    {"name", RING_TEXT, NULL, "the expression, as probing.torch_profiling says it", NULL, WIRE_VALUES},
    {"value", RING_DOUBLE, NULL, "its value, if that is a finite number", NULL, WIRE_VALUES},
    {"text", RING_TEXT, NULL, "its value as text; cut; NULL: it was no number, text or tensor of one number",
     NULL, WIRE_VALUES},
    RING_END,
};
_Static_assert(sizeof ring_variables / sizeof ring_variables[0] == RING_VARIABLES_COUNT + 1,
               "columns of variables");

static const struct ring_column_def ring_loaders[] = {
    RING_TIME,
    {"loader", RING_INT64, NULL, "the iterator of a DataLoader, as Python's id() numbers it", NULL,
     WIRE_READ_ONLY},
    {"workers", RING_INT32, NULL, "worker processes; 0: batches are made where they are asked for", NULL,
     WIRE_READ_ONLY},
    {"prefetch", RING_INT32, "batches", "that each worker is asked for ahead; NULL without workers", NULL,
     WIRE_READ_ONLY},
    {"outstanding", RING_INT64, "batches",
     "asked for, and not yet taken out of the workers' queue; NULL without workers", NULL, WIRE_READ_ONLY},
    {"ready", RING_INT64, "batches", "made, and waiting to be given out; 0 and the training waits", NULL,
     WIRE_READ_ONLY},
    {"sent", RING_INT64, "batches", "asked for, since this iterator began", NULL, WIRE_READ_ONLY},
    {"received", RING_INT64, "batches", "of these, come in turn and given out", NULL, WIRE_READ_ONLY},
    {"wait_ms", RING_DOUBLE, "ms",
     "mean wait for a batch in the second before; NULL: there was none, or several loaders of its kind", NULL,
     WIRE_READ_ONLY},
    {"batches", RING_INT64, "batches", "given to the training in the second before", NULL, WIRE_READ_ONLY},
    {"dataset", RING_TEXT, NULL, "class of its dataset", NULL, WIRE_READ_ONLY},
    RING_END,
};
_Static_assert(sizeof ring_loaders / sizeof ring_loaders[0] == RING_LOADERS_COUNT + 1, "columns of loaders");

static const struct ring_column_def ring_trace[] = {
    {"timestamp", RING_TIMESTAMP, "s", "when the step began, in seconds since the epoch, UTC", NULL,
     WIRE_READ_ONLY},
    {"step", RING_INT64, NULL, "the training step (python.steps); NULL: not known", NULL, WIRE_READ_ONLY},
    {"seq", RING_INT32, NULL, "place of the module in the step, by its first call; 0 is the step itself",
     NULL, WIRE_READ_ONLY},
    {"operation_name", RING_TEXT, NULL, "class of the module; 'step': all of it", NULL, WIRE_READ_ONLY},
    {"module", RING_TEXT, NULL,
     "its path below the module that the job calls, '' for that itself; NULL: it is gone", NULL,
     WIRE_READ_ONLY},
    {"stage", RING_ENUM, NULL, "step, forward or backward", ring_stage_labels, WIRE_READ_ONLY},
    {"duration_ms", RING_DOUBLE, "ms",
     "of all its calls in the step, with the modules within it, without what telling took; NULL: not known",
     NULL, WIRE_READ_ONLY},
    {"allocated_mb", RING_DOUBLE, "MiB", "in torch's tensors on GPUs; NULL: there are none", NULL,
     WIRE_READ_ONLY},
    {"max_allocated_mb", RING_DOUBLE, "MiB", "the most of that so far", NULL, WIRE_READ_ONLY},
    {"cached_mb", RING_DOUBLE, "MiB", "held by torch's allocator on GPUs", NULL, WIRE_READ_ONLY},
    {"calls", RING_INT32, NULL, "how often it was called in the step", NULL, WIRE_READ_ONLY},
    {"activation_bytes", RING_INT64, "bytes", "of the tensors that it returned; NULL: not known", NULL,
     WIRE_READ_ONLY},
    RING_END,
};
_Static_assert(sizeof ring_trace / sizeof ring_trace[0] == RING_TRACE_COUNT + 1, "columns of trace");

static const struct ring_column_def ring_nonfinite[] = {
    {"timestamp", RING_TIMESTAMP, "s", "when it was there, in seconds since the epoch, UTC", NULL,
     WIRE_READ_ONLY},
    {"step", RING_INT64, NULL, "the training step (python.steps); NULL: not known", NULL, WIRE_READ_ONLY},
    {"module", RING_TEXT, NULL,
     "path of the module below the one that the job calls, '' for that itself; NULL: not known, or none",
     NULL, WIRE_READ_ONLY},
    {"class", RING_TEXT, NULL, "its class", NULL, WIRE_READ_ONLY},
    {"stage", RING_ENUM, NULL,
     "forward; backward: gradient of what a module gave; gradient: of a parameter, when the optimizer's step "
     "began; none: all was finite",
     ring_nonfinite_stage_labels, WIRE_READ_ONLY},
    {"what", RING_TEXT, NULL,
     "of what: 'input 0', 'input mask' by keyword, 'output 0', 'gradient of output 0', 'weight.grad'; of "
     "none: what was looked at",
     NULL, WIRE_READ_ONLY},
    {"nan", RING_INT64, NULL, "numbers of it that are NaN", NULL, WIRE_READ_ONLY},
    {"inf", RING_INT64, NULL, "and that are infinite", NULL, WIRE_READ_ONLY},
    {"elements", RING_INT64, NULL, "numbers in it", NULL, WIRE_READ_ONLY},
    {"input_min", RING_DOUBLE, NULL,
     "smallest finite number of what the module was called with; NULL: not known", NULL, WIRE_READ_ONLY},
    {"input_max", RING_DOUBLE, NULL, "and the largest", NULL, WIRE_READ_ONLY},
    {"input_nonfinite", RING_INT64, NULL, "numbers of it that are not finite; NULL: not known", NULL,
     WIRE_READ_ONLY},
    {"parameter", RING_TEXT, NULL,
     "a parameter of the module itself that was not finite then; NULL: none that is known", NULL,
     WIRE_READ_ONLY},
    {"stack", RING_TEXT, NULL,
     "Python stack of the thread, innermost first, without torch's own calls of modules; NULL: it had none",
     NULL, WIRE_READ_ONLY},
    RING_END,
};
_Static_assert(sizeof ring_nonfinite / sizeof ring_nonfinite[0] == RING_NONFINITE_COUNT + 1,
               "columns of nonfinite");

static const struct ring_column_def ring_status[] = {
    RING_TIME,
    {"uptime_s", RING_DOUBLE, "s", "since the agent started", NULL, WIRE_READ_ONLY},
    {"cpu_s", RING_DOUBLE, "s", "CPU time of the agent's threads so far", NULL, WIRE_READ_ONLY},
    {"overhead_pct", RING_DOUBLE, "%", "CPU of the agent, of one core, over the last seconds", NULL,
     WIRE_READ_ONLY},
    {"rss_bytes", RING_INT64, "bytes", "memory that the agent holds", NULL, WIRE_READ_ONLY},
    {"rate_hz", RING_DOUBLE, "Hz", "samples of a thread a second, as asked for", NULL, WIRE_READ_ONLY},
    {"samples", RING_INT64, NULL, "looks at threads so far", NULL, WIRE_READ_ONLY},
    {"torn", RING_INT64, NULL, "of those, with a stack that may mix two moments", NULL, WIRE_READ_ONLY},
    {"dropped", RING_INT64, NULL, "samples that no client got", NULL, WIRE_READ_ONLY},
    {"us_per_sample", RING_DOUBLE, "us", "CPU time of one look", NULL, WIRE_READ_ONLY},
    {"clients", RING_INT32, NULL, "connected now", NULL, WIRE_READ_ONLY},
    RING_END,
};
_Static_assert(sizeof ring_status / sizeof ring_status[0] == RING_STATUS_COUNT + 1, "columns of status");

static const struct ring_column_def ring_facts[] = {
    RING_TIME,
    {"key", RING_TEXT, NULL,
     "cmd, exe, started_at (seconds since the epoch), agent, python, torch (versions), env.NAME (what "
     "probing.env_allow names)",
     NULL, WIRE_READ_ONLY},
    {"value", RING_TEXT, NULL, "what it is; NULL: it is so no longer, as python's when it was finalised",
     NULL, WIRE_VALUES},
    RING_END,
};
_Static_assert(sizeof ring_facts / sizeof ring_facts[0] == RING_FACTS_COUNT + 1, "columns of facts");

static const struct ring_column_def ring_events[] = {
    RING_TIME,
    {"kind", RING_TEXT, NULL,
     "eval: code was to be run in the job; eval refused; refused: somebody was turned away, or wanted what "
     "they may not; uncaught exception: see probing TARGET catch",
     NULL, WIRE_READ_ONLY},
    {"client_uid", RING_INT64, NULL, "user who asked for it; NULL: not known", NULL, WIRE_READ_ONLY},
    {"client_pid", RING_INT32, NULL, "process that asked for it, as the job numbers it; NULL: not known",
     NULL, WIRE_READ_ONLY},
    {"text", RING_TEXT, NULL,
     "what was asked for: the first 80 characters of the code; or who was refused, and why; of an exception "
     "the end of its traceback",
     NULL, WIRE_VALUES},
    RING_END,
};
_Static_assert(sizeof ring_events / sizeof ring_events[0] == RING_EVENTS_COUNT + 1, "columns of events");

/* ---- made when they are read ---- */

static const struct ring_column_def ring_backtrace[] = {
    {"tid", RING_INT32, NULL, "thread, as the kernel numbers it", NULL, WIRE_READ_ONLY},
    {"thread", RING_TEXT, NULL, "its name", NULL, WIRE_READ_ONLY},
    {"depth", RING_INT32, "frames", "0 is the innermost frame", NULL, WIRE_READ_ONLY},
    {"func", RING_TEXT, NULL, "function", NULL, WIRE_READ_ONLY},
    {"file", RING_TEXT, NULL, "file, as the interpreter has it", NULL, WIRE_READ_ONLY},
    {"lineno", RING_INT32, NULL, "current line", NULL, WIRE_READ_ONLY},
    {"kind", RING_ENUM, NULL, "python or native", ring_kind_labels, WIRE_READ_ONLY},
    {"locals", RING_TEXT, NULL, "arguments and variables, as JSON; NULL when they were not asked for", NULL,
     WIRE_VALUES},
    RING_END,
};

static const struct ring_column_def ring_threads[] = {
    {"tid", RING_INT32, NULL, "thread, as the kernel numbers it", NULL, WIRE_READ_ONLY},
    {"name", RING_TEXT, NULL, "threading.Thread.name", NULL, WIRE_READ_ONLY},
    {"native_name", RING_TEXT, NULL, "the kernel's name", NULL, WIRE_READ_ONLY},
    {"state", RING_ENUM, NULL, "the kernel's letter", ring_state_labels, WIRE_READ_ONLY},
    {"on_cpu", RING_BOOL, NULL, "1: its CPU clock has moved since the last look", NULL, WIRE_READ_ONLY},
    {"gil", RING_ENUM, NULL, "held, waiting or none", ring_gil_labels, WIRE_READ_ONLY},
    {"cpu_pct", RING_DOUBLE, "%", "of one core", NULL, WIRE_READ_ONLY},
    {"wchan", RING_TEXT, NULL, "where in the kernel it waits", NULL, WIRE_READ_ONLY},
    {"func", RING_TEXT, NULL, "innermost Python function", NULL, WIRE_READ_ONLY},
    {"file", RING_TEXT, NULL, "its file", NULL, WIRE_READ_ONLY},
    {"lineno", RING_INT32, NULL, "its current line", NULL, WIRE_READ_ONLY},
    RING_END,
};

static const struct ring_column_def ring_process[] = {
    {"ppid", RING_INT32, NULL, "parent", NULL, WIRE_READ_ONLY},
    {"cmd", RING_TEXT, NULL, "command line", NULL, WIRE_VALUES},
    {"state", RING_ENUM, NULL, "the kernel's letter", ring_state_labels, WIRE_READ_ONLY},
    {"cpu_pct", RING_DOUBLE, "%", "of one core", NULL, WIRE_READ_ONLY},
    {"rss_mb", RING_DOUBLE, "MiB", "memory in RAM", NULL, WIRE_READ_ONLY},
    {"threads", RING_INT32, NULL, "threads of the process", NULL, WIRE_READ_ONLY},
    {"fds", RING_INT32, NULL, "open file descriptors", NULL, WIRE_READ_ONLY},
    {"uptime_s", RING_DOUBLE, "s", "since the process started", NULL, WIRE_READ_ONLY},
    RING_END,
};

static const struct ring_column_def ring_system_threads[] = {
    {"tid", RING_INT32, NULL, "thread, as the kernel numbers it", NULL, WIRE_READ_ONLY},
    {"native_name", RING_TEXT, NULL, "the kernel's name", NULL, WIRE_READ_ONLY},
    {"state", RING_ENUM, NULL, "the kernel's letter", ring_state_labels, WIRE_READ_ONLY},
    {"cpu_pct", RING_DOUBLE, "%", "of one core", NULL, WIRE_READ_ONLY},
    {"wchan", RING_TEXT, NULL, "where in the kernel it waits", NULL, WIRE_READ_ONLY},
    RING_END,
};

static const struct ring_column_def ring_config[] = {
    {"key", RING_TEXT, NULL, "name of the setting", NULL, WIRE_READ_ONLY},
    {"value", RING_TEXT, NULL, "what it is now", NULL, WIRE_READ_ONLY},
    {"default", RING_TEXT, NULL, "what it is when nobody sets it", NULL, WIRE_READ_ONLY},
    {"help", RING_TEXT, NULL, "what it does", NULL, WIRE_READ_ONLY},
    RING_END,
};

static const struct ring_column_def ring_loader_workers[] = {
    {"loader", RING_INT64, NULL, "the iterator of a DataLoader (python.loaders)", NULL, WIRE_READ_ONLY},
    {"worker", RING_INT32, NULL, "number of the worker", NULL, WIRE_READ_ONLY},
    {"worker_pid", RING_INT32, NULL, "its process, as the target numbers it", NULL, WIRE_READ_ONLY},
    {"alive", RING_BOOL, NULL, "1: the process is there and no zombie", NULL, WIRE_READ_ONLY},
    {"state", RING_ENUM, NULL, "the kernel's letter", ring_state_labels, WIRE_READ_ONLY},
    {"cpu_pct", RING_DOUBLE, "%", "of one core", NULL, WIRE_READ_ONLY},
    {"rss_bytes", RING_INT64, "bytes", "memory in RAM, what it shares with the job too", NULL,
     WIRE_READ_ONLY},
    {"outstanding", RING_INT64, "batches", "it was asked for, and that have not been given out", NULL,
     WIRE_READ_ONLY},
    {"func", RING_TEXT, NULL, "innermost Python function of its main thread; NULL: it may not be read", NULL,
     WIRE_READ_ONLY},
    {"file", RING_TEXT, NULL, "its file", NULL, WIRE_READ_ONLY},
    {"lineno", RING_INT32, NULL, "its current line", NULL, WIRE_READ_ONLY},
    RING_END,
};

#define RING_HOURS 3600.0

/* name, alias, help, cost, weight, retention in seconds, percent for strings, columns */
const struct ring_table_def RING_TABLES[RING_TABLE_COUNT] = {
    [RING_SAMPLES] = {"python.samples", NULL, "one look at one thread", RING_COST_BACKGROUND, 48,
                      4 * RING_HOURS, 4, ring_samples},
    [RING_STACKS] = {"python.stacks", NULL, "a frame below its caller; a stack is a path of them",
                     RING_COST_BACKGROUND, 10, 0, 0, ring_stacks},
    [RING_FRAMES] = {"python.frames", NULL, "a function at a line", RING_COST_BACKGROUND, 10, 0, 70,
                     ring_frames},
    [RING_THREAD_HISTORY] = {"system.threads_history", NULL, "a thread, once a second", RING_COST_BACKGROUND,
                             16, 4 * RING_HOURS, 10, ring_thread_history},
    [RING_PROCESS_HISTORY] = {"system.process_history", NULL, "the process, once a second",
                              RING_COST_BACKGROUND, 6, 24 * RING_HOURS, 0, ring_process_history},
    [RING_MEMORY] = {"python.memory", "memory_usage", "memory, once a second", RING_COST_BACKGROUND, 4,
                     24 * RING_HOURS, 0, ring_memory},
    [RING_GC] = {"python.gc", NULL,
                 "garbage collections: each, or those of a second where only counters tell of them",
                 RING_COST_BACKGROUND, 3, 24 * RING_HOURS, 0, ring_gc},
    [RING_STEPS] = {"python.steps", NULL, "a training step: from one optimizer step to the next",
                    RING_COST_BACKGROUND, 12, 24 * RING_HOURS, 0, ring_steps},
    [RING_SPANS] = {"profiling_data", NULL,
                    "an operation that torch, or the job by record_function, has named", RING_COST_BACKGROUND,
                    8, 4 * RING_HOURS, 10, ring_spans},
    [RING_VARIABLES] = {"python.variables", NULL,
                        "a value that is watched, at a step or when its function returns",
                        RING_COST_BACKGROUND, 4, 24 * RING_HOURS, 20, ring_variables},
    [RING_LOADERS] = {"python.loaders", NULL, "an iterator of a DataLoader, once a second",
                      RING_COST_BACKGROUND, 4, 24 * RING_HOURS, 5, ring_loaders},
    [RING_TRACE] = {"python.torch_trace", NULL,
                    "a module in a training step that was looked into (probing.trace_rate), or the step",
                    RING_COST_BACKGROUND, 6, 24 * RING_HOURS, 10, ring_trace},
    [RING_NONFINITE] =
        {"python.nonfinite", NULL,
         "the first number that was not finite in steps that were looked into (nan), or that all were",
         RING_COST_PROBE, 2, 24 * RING_HOURS, 30, ring_nonfinite},
    [RING_STATUS] = {"probing.status", NULL, "the agent about itself, once a second", RING_COST_BACKGROUND, 3,
                     24 * RING_HOURS, 0, ring_status},
    [RING_FACTS] = {"probing.facts", NULL, "something that the process is, since it is known",
                    RING_COST_BACKGROUND, 1, 0, 60, ring_facts},
    [RING_EVENTS] = {"probing.events", NULL,
                     "something that a client has had done in the job, or has waited for",
                     RING_COST_BACKGROUND, 1, 0, 60, ring_events},
    [RING_BACKTRACE] = {"python.backtrace", NULL, "a frame of a thread, now", RING_COST_NOW, 0, 0, 0,
                        ring_backtrace},
    [RING_THREADS] = {"python.threads", NULL, "a Python thread, now", RING_COST_NOW, 0, 0, 0, ring_threads},
    [RING_PROCESS] = {"system.process", NULL, "the process, now", RING_COST_NOW, 0, 0, 0, ring_process},
    [RING_SYSTEM_THREADS] = {"system.threads", NULL, "a thread of any kind, now", RING_COST_NOW, 0, 0, 0,
                             ring_system_threads},
    [RING_LOADER_WORKERS] = {"python.loader_workers", NULL, "a worker process of a DataLoader, now",
                             RING_COST_NOW, 0, 0, 0, ring_loader_workers},
    [RING_CONFIG] = {"probing.config", NULL, "a setting of the agent", RING_COST_NOW, 0, 0, 0, ring_config},
    [RING_MODULES] = {"python.modules", NULL, "a module of a model, now", RING_COST_NOW, 0, 0, 0,
                      ring_modules},
    [RING_TENSORS] = {"python.tensors", NULL, "a tensor that the job holds, now", RING_COST_NOW, 0, 0, 0,
                      ring_tensors},
    [RING_TENSOR_GROWTH] = {"python.tensor_growth", NULL, "tensors alike, now and at an earlier look",
                            RING_COST_NOW, 0, 0, 0, ring_tensor_growth},
    [RING_TENSOR_STATISTICS] = {"python.tensor_statistics", NULL, "a tensor's numbers, now: WHERE id = ...",
                                RING_COST_NOW, 0, 0, 0, ring_tensor_statistics},
    [RING_TENSOR_HOLDERS] = {"python.tensor_holders", NULL, "what holds a tensor, now: WHERE id = ...",
                             RING_COST_NOW, 0, 0, 0, ring_tensor_holders},
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
        if (strcmp(RING_TABLES[i].name, name) == 0 ||
            (RING_TABLES[i].alias && strcmp(RING_TABLES[i].alias, name) == 0))
            return &RING_TABLES[i];
    return NULL;
}
