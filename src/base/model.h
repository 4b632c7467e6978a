/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model: the structs shared by every part of the project: a target, its threads, their frames, a
 * sample, a status.
 *
 * Plain data. pystack and the agent fill it, wire carries it, client, tui and cli read it.
 * Unknown values are MODEL_UNKNOWN, NAN, 0 or NULL, as each field says, and are shown as
 * unknown. Strings and arrays belong to the snapshot's arena. Units are in the names.
 */
#ifndef BASE_MODEL_H
#define BASE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

#define MODEL_UNKNOWN (-1)

enum model_gil {
    MODEL_GIL_UNKNOWN = 0,
    MODEL_GIL_NONE,    /* neither holds it nor waits for it */
    MODEL_GIL_WAITING, /* asleep on the GIL's own condition variable */
    MODEL_GIL_HOLDING,
};

enum model_frame_kind {
    MODEL_FRAME_PYTHON = 0,
    MODEL_FRAME_NATIVE,
    /* not a function: one call of the interpreter's loop ran the Python frames up to here */
    MODEL_FRAME_ENTRY,
};

/* State of the requested native frames. */
enum model_native {
    MODEL_NATIVE_NONE = 0, /* not asked for */
    MODEL_NATIVE_MERGED,   /* Python and native frames are one list, in the order of the calls */
    MODEL_NATIVE_APART,    /* they do not fit together: all native frames, then all Python frames */
    MODEL_NATIVE_UNKNOWN,  /* native frames are not available: Python frames alone */
};

enum model_mode {
    MODEL_MODE_AGENT = 0, /* the agent in the target reports */
    MODEL_MODE_READONLY,  /* read from outside, nothing injected */
    MODEL_MODE_RECORDED,  /* the target has ended: read from what it left */
};

/* How running threads are sampled. */
enum model_sampling {
    MODEL_SAMPLING_EXACT = 0, /* a signal asks them, and they copy their own frames */
    MODEL_SAMPLING_GENTLE,    /* no signal is sent: stacks of running threads may be torn */
};

enum model_local_kind {
    MODEL_LOCAL_VARIABLE = 0,
    MODEL_LOCAL_ARGUMENT,
    MODEL_LOCAL_CELL, /* shared with nested functions */
    MODEL_LOCAL_FREE, /* from an enclosing function */
};

/* Where the object of a variable is, for further questions about it. Addresses of the target. */
struct model_place {
    uint64_t slot; /* of the variable; 0: in the dict of its frame, under its name */
    /* the cell that contains the object; 0: the variable refers to the object itself */
    uint64_t cell;
    uint64_t object; /* the object */
    /* true if the text describes the value; false if it only says that it is an object of its
     * type */
    bool told;
    bool made; /* the program defined its type, which may have a repr of its own */
};

/* An argument or local variable that has a value. */
struct model_local {
    const char *name;
    const char *type; /* name of its type; NULL unknown */
    const char *text; /* its value in short, like repr(); NULL unknown */
    enum model_local_kind kind;
    const struct model_place *place; /* NULL: nothing more to ask; not sent */
};

/* The variables of one frame, in the order of the code. */
struct model_locals {
    struct model_local *items;
    size_t n;
    bool truncated;                      /* a limit left some out */
    uint64_t tstate, frame, code, instr; /* as they were read, for further questions; not sent */
};

/* One frame of a stack. */
struct model_frame {
    enum model_frame_kind kind;
    const char *func; /* qualified name where the interpreter keeps one; NULL unknown */
    const char *file; /* co_filename as the interpreter has it; NULL unknown */
    int line;         /* current line (not the function's first); 0 unknown */
    /* native: file of the library or program; NULL unknown (code made at run time) */
    const char *module;
    /* native: of the instruction, relative to the module's file; without a module, in memory. 0:
     * unknown, and so is the caller of the frame before */
    uint64_t address;
};

enum model_task_state {
    MODEL_TASK_UNKNOWN = 0,
    MODEL_TASK_PENDING, /* it waits for something, or for its turn */
    MODEL_TASK_RUNNING, /* its loop runs it now */
};

/* A task of asyncio that is not done. */
struct model_task {
    uint64_t id;      /* its address, reused once it is gone */
    int64_t tid;      /* the thread that runs its loop; MODEL_UNKNOWN */
    const char *name; /* NULL: it has none (before 3.8), or unknown */
    const char *coro; /* qualified name of its coroutine; NULL unknown */
    enum model_task_state state;
    bool truncated; /* frames, or tasks that await it, were left out */
    /* of what it awaits and that awaits ..., innermost first; its coroutine is last */
    struct model_frame *frames;
    size_t n_frames;
    uint64_t *awaited_by; /* ids of tasks that wait for it, as far as known */
    size_t n_awaited_by;
};

/* What a thread that is off the CPU waits for. */
enum model_wait_kind {
    MODEL_WAIT_UNKNOWN = 0,
    MODEL_WAIT_GIL,
    MODEL_WAIT_LOCK, /* threading.Lock; those of a Condition too */
    MODEL_WAIT_RLOCK,
    MODEL_WAIT_CONDITION,
    MODEL_WAIT_EVENT,
    MODEL_WAIT_SEMAPHORE,
    MODEL_WAIT_BARRIER,
    MODEL_WAIT_QUEUE,
    MODEL_WAIT_FUTURE,
    MODEL_WAIT_THREAD,       /* the end of another thread */
    MODEL_WAIT_PROCESS_LOCK, /* a lock or semaphore of multiprocessing */
    MODEL_WAIT_NATIVE_LOCK,  /* a futex that is not of an object of Python */
    MODEL_WAIT_SLEEP,
    MODEL_WAIT_SOCKET,
    MODEL_WAIT_PIPE,
    MODEL_WAIT_TERMINAL,
    MODEL_WAIT_FILE,
    MODEL_WAIT_FILE_LOCK,
    MODEL_WAIT_POLL, /* any of several descriptors */
    MODEL_WAIT_LOOP, /* events of a loop of asyncio */
    MODEL_WAIT_CHILD,
    MODEL_WAIT_LOADER,     /* a batch of a DataLoader */
    MODEL_WAIT_COLLECTIVE, /* other ranks, in torch.distributed */
    MODEL_WAIT_STOPPED,    /* a signal that continues it */
    MODEL_WAIT_UNRECORDED, /* not known, of a thread that sleeps in a recording */
    MODEL_WAIT_KINDS
};

#define MODEL_WAIT_LIKELY 1U   /* for `tid` there are good reasons, but no proof */
#define MODEL_WAIT_GUESSED 2U  /* of those: it may as well have let go since */
#define MODEL_WAIT_TIMED 4U    /* it gives up by itself */
#define MODEL_WAIT_DEADLOCK 8U /* it waits for a thread that, in the end, waits for this one */

struct model_wait {
    enum model_wait_kind kind;
    uint32_t flags; /* MODEL_WAIT_... */
    /* the thread and the process that hold it, or from which it comes, in the target's numbering; 0
     * unknown */
    uint64_t tid, pid;
    uint64_t for_us;    /* it has waited for so long, at least; 0 unknown */
    uint64_t left_us;   /* until it gives up or wakes up; 0 unknown */
    const char *what;   /* "RLock cache.lock"; NULL unknown */
    const char *detail; /* with values of the job: paths, addresses of peers; NULL none */
};

static inline bool model_wait_is_known(const struct model_wait *w) {
    return w->kind != MODEL_WAIT_UNKNOWN && w->kind != MODEL_WAIT_UNRECORDED;
}

/* One OS thread of the target, with its Python stack if it has one. */
struct model_thread {
    int64_t tid; /* as the target's own pid namespace numbers it */
    /* pthread_self of the thread = threading.get_ident(); 0 when it has no Python */
    uint64_t ident;
    const char *name;        /* threading.Thread.name; NULL unknown or no Python */
    const char *native_name; /* /proc comm; NULL unknown */
    char state;              /* R S D T t Z X I as the kernel says; '?' unknown */
    /* 1 its CPU clock advanced since the last snapshot, 0 not, MODEL_UNKNOWN */
    int8_t on_cpu;
    enum model_gil gil;
    /* time waiting or holding, a lower bound (see pystack_snapshot); NAN unknown */
    double gil_for_us;
    int8_t gc; /* 1 it collects garbage, 0 not, MODEL_UNKNOWN */
    /* of one core, over the last second or more; NAN unknown (the first snapshot) */
    double cpu_pct;
    bool has_python;     /* it has a Python thread state */
    bool torn;           /* it moved during the read: the frames may mix two moments */
    bool truncated;      /* frames beyond the limit were left out (the outermost ones) */
    uint64_t stopped_us; /* how long this snapshot stopped it; 0 not at all */
    uint64_t same_us;    /* for so long every sample had the same stack; 0 unknown */
    struct model_wait wait;
    /* see client/symbols/native.h; before that, native frames stand in front of the Python
     * frames */
    enum model_native native;
    struct model_frame *frames; /* innermost first */
    size_t n_frames;
    const struct model_locals **locals; /* of each frame, NULL where unknown; NULL: not asked for */
};

/* The process, once per snapshot. */
struct model_process {
    /* of one core, over the last second or more; NAN unknown (the first snapshot) */
    double cpu_pct;
    double uptime_s;      /* since the process started; NAN unknown */
    int64_t rss_bytes;    /* MODEL_UNKNOWN */
    int64_t n_threads;    /* OS threads, ours included; MODEL_UNKNOWN */
    double agent_cpu_pct; /* the agent's own cost, of one core; NAN unknown or no agent */
    /* the agent's memory (its heap and stacks, counted by itself); MODEL_UNKNOWN */
    int64_t agent_rss_bytes;
};

/* All threads at one moment. */
struct model_snapshot {
    double timestamp;             /* seconds since the epoch, UTC */
    uint64_t seq;                 /* counts up within one agent */
    int64_t gil_tid;              /* holder's tid; 0 nobody; MODEL_UNKNOWN */
    int8_t gil_enabled;           /* 0: this Python has no GIL, or it is off; MODEL_UNKNOWN */
    int8_t gc_running;            /* 1 garbage is being collected, 0 not, MODEL_UNKNOWN */
    enum model_sampling sampling; /* how stacks of running threads were read */
    double cost_us;               /* how long taking this snapshot took; NAN unknown */
    struct model_process process;
    /* the agent's own threads are left out; main thread first, then by tid */
    struct model_thread *threads;
    size_t n_threads;
    struct model_task *tasks; /* grouped by thread; NULL: not asked for, or unknown */
    size_t n_tasks;
    const char *note; /* what was asked for and is missing, and why; NULL nothing */
    /* why names of native frames are missing, if that is new; NULL nothing */
    const char *native_note;
    uint64_t dropped; /* notifications that this session lost before this one */
    bool incomplete;  /* a limit cut threads, frames or tasks off */
    struct arena arena;
};

/* What the target is; fixed for the life of a connection. */
struct model_target {
    int64_t pid; /* in its own pid namespace */
    int64_t uid;
    const char *host;
    const char *cmdline; /* arguments joined by spaces */
    const char *exe;
    const char *python; /* "3.11.7" */
    const char *torch;  /* "2.13.0"; NULL if torch is not loaded, as far as can be seen */
    int64_t rank;       /* from the environment (base/rank_env.h); MODEL_UNKNOWN */
    double started_at;  /* seconds since the epoch; NAN unknown */
    enum model_mode mode;
    /* read-only: the reason; recorded: how it ended; NULL unknown or neither */
    const char *mode_reason;
    double seen_until;         /* recorded: the last known time, seconds since the epoch */
    double seen_s;             /* recorded: seconds that the samples read cover */
    bool seen_is_cut;          /* recorded: there are older samples, too many to read */
    bool blocking;             /* read-only: running threads are stopped for a snapshot */
    const char *agent_version; /* NULL without an agent */
    const char *discovery;     /* name of the strategy that found the interpreter */
    bool python_untested;      /* the tests do not cover this CPython */
    struct arena arena;
};

/* Node of the stack trie: a frame below its caller. Ids count from 1, parents come before
 * children; parent 0 = root. */
struct model_stack_def {
    uint32_t stack_id;
    uint32_t parent_id;
    uint32_t frame_id;
};

struct model_frame_def {
    uint32_t frame_id;
    struct model_frame frame;
};

/* A thread of the sample stream, sent once and again when its name changes. */
struct model_thread_def {
    int64_t tid;
    const char *name;
    const char *native_name;
};

/* One sample of one thread. */
struct model_sample {
    double timestamp;
    int64_t tid;
    uint32_t stack_id; /* 0: no Python frame */
    /* the stack with native frames before the Python frames and their entries; 0 unknown */
    uint32_t native_id;
    uint32_t merged_id; /* within the agent: the stack with native frames in their place; 0 none */
    int8_t on_cpu;
    bool torn;
    enum model_gil gil;
    int8_t gc; /* 1 it collects garbage, 0 not, MODEL_UNKNOWN */
};

/* One batch for a subscriber. Definitions come before the samples that use them. */
struct model_sample_batch {
    /* ids of different epochs are unrelated: the receiver forgets all ids when it changes */
    uint32_t epoch;
    /* mean time between two samples of a thread in this batch: the weight of a sample */
    double period_us;
    /* time that each of its samples stands for, if known; NULL: period_us */
    double *us;
    uint64_t dropped;         /* samples that this session has lost since it subscribed */
    enum model_sampling mode; /* how stacks of running threads were read */
    /* cost of sampling, of one core, over the last seconds; NAN unknown */
    double cost_pct;
    double budget_pct; /* its limit; NAN unknown */
    struct model_frame_def *frames;
    size_t n_frames;
    struct model_stack_def *stacks;
    size_t n_stacks;
    struct model_thread_def *threads;
    size_t n_threads;
    struct model_sample *samples;
    size_t n_samples;
    /* why names of native frames are missing, if that is new; NULL nothing */
    const char *native_note;
    struct arena arena;
};

/* A table of the agent. */
struct model_table {
    const char *name; /* "python.samples" */
    uint64_t rows;    /* rows in it now */
    uint64_t bytes;   /* its size, used or not */
    uint64_t lost;    /* rows that could not be written */
    /* times of its rows, seconds since the epoch; NAN if it has no rows or no time */
    double oldest, newest;
};

/* One setting. */
struct model_setting {
    const char *key, *value, *default_value; /* "probing.budget", "1", and its default */
    const char *unit, *help;
    bool given; /* a user has set it */
};

/* Something that is, or is to be, armed in the job until its owners are gone. */
struct model_lease {
    const char *what;
    int64_t owners;   /* clients that want it */
    bool by_config;   /* the configuration wants it too */
    double held_s;    /* since the first owner */
    double left_s;    /* until it ends; NAN no limit */
    int64_t looks;    /* training steps that were traced */
    double cost_pct;  /* share of the job's time that tracing has added so far; NAN unknown yet */
    bool armed;       /* hooks are in the job now */
    const char *note; /* what it waits for, why it cannot, or its result; NULL nothing */
    const char *file; /* the file that it has written; NULL none */
};

/* A debugger in the job, whoever asked for it. */
struct model_debugger {
    const char *what; /* "debug", "pause" or "catch" */
    /* of debug "listening"; of pause "held"; of catch "armed", or "kept" with a thread that has
     * raised */
    const char *state;
    const char *address; /* where it listens; NULL nowhere yet */
    const char *text;    /* of "kept": the exception and its thread; NULL nothing */
    int64_t uid, pid;    /* of the process that asked for it, as the agent sees it; -1 unknown */
    double held_s;       /* seconds in that state */
    double left_s;       /* until it ends; NAN no limit */
    bool used;           /* a client is connected to it */
};

/* A TCP listener for clients. */
struct model_endpoint {
    const char *address;
    bool looking;     /* its clients are read-only */
    int64_t clients;  /* connected clients */
    int64_t waiting;  /* connections that have not identified themselves yet */
    uint64_t entered; /* clients admitted and refused so far */
    uint64_t refused;
    /* the last refused client and the reason, or why the listener could not open; NULL nothing */
    const char *note;
};

/* The agent about itself. */
struct model_status {
#define STATUS_COUNT(member, ...) uint64_t member;
#define STATUS_INTEGER(member, ...) int64_t member;
#define STATUS_NUMBER(member, ...) double member;
#define STATUS_FLAG(member, ...) bool member;
#define STATUS_TEXT(member, ...) const char *member;
#include "base/model_status.def"
    struct model_table *tables; /* in the arena */
    size_t n_tables;
    struct model_setting *settings; /* in the arena */
    size_t n_settings;
    struct model_lease *leases; /* in the arena */
    size_t n_leases;
    struct model_endpoint *doors; /* in the arena */
    size_t n_doors;
    struct model_debugger *holds; /* in the arena */
    size_t n_holds;
    struct arena arena;
};

/* Free what the arena holds and zero the struct. */
void model_snapshot_fini(struct model_snapshot *s);
void model_target_fini(struct model_target *t);
void model_sample_batch_fini(struct model_sample_batch *b);
void model_status_fini(struct model_status *s);

/* Remove all threads but `tid`, and their tasks, from a snapshot; all of them if it is not
 * there. */
void model_snapshot_keep(struct model_snapshot *s, int64_t tid);

/* "held", "waiting", "none", or NULL when unknown. */
const char *model_gil_name(enum model_gil g);

/* "variable", "argument", "cell" or "free". */
const char *model_local_kind_name(enum model_local_kind k);

/* Remove native frames and entries from all stacks: Python frames remain. */
void model_snapshot_strip_native(struct model_snapshot *s);

/* True if the snapshot has native frames or entries. */
bool model_snapshot_has_native(const struct model_snapshot *s);

/* The same snapshot without native frames and entries. `out` has its own lists in its own arena;
 * everything else is `s`'s and lives as long. 0, or -1 without memory; free `out` with
 * model_snapshot_fini in either case. */
int model_snapshot_copy_python(const struct model_snapshot *s, struct model_snapshot *out);

/* The same for one list. Returns the number of frames that remain. `locals` (of each frame;
 * NULL: none) is kept in step. */
size_t model_frames_strip_native(struct model_frame *frames, size_t n, const struct model_locals **locals);

/* "merged", "apart", or NULL when there are no native frames. */
const char *model_native_name(enum model_native n);

/* "pending", "running", or NULL when unknown. */
const char *model_task_state_name(enum model_task_state s);

/* "lock", "rlock", ...; NULL unknown. */
const char *model_wait_kind_name(enum model_wait_kind k);

/* "python" or "native". */
const char *model_frame_kind_name(enum model_frame_kind k);

/* "exact" or "gentle". */
const char *model_sampling_name(enum model_sampling s);

/* "agent", "readonly" or "recorded". */
const char *model_mode_name(enum model_mode m);

#endif
