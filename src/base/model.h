/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model: the nouns that every part of the project speaks of: a target, its threads, their frames, a sample, a status.
 *
 * Plain data. pystack and the agent fill it, wire carries it, client, tui and cli read it. What is not known is
 * MODEL_UNKNOWN, NAN, 0 or NULL as each field says, and is shown as unknown. Strings and arrays belong to the
 * snapshot's arena. Units are in the names.
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
    MODEL_GIL_NONE,    /* neither holds nor waits */
    MODEL_GIL_WAITING, /* asleep on the GIL's own condition variable */
    MODEL_GIL_HOLDING,
};

enum model_frame_kind {
    MODEL_FRAME_PYTHON = 0,
    MODEL_FRAME_NATIVE,
    MODEL_FRAME_ENTRY, /* no function: the Python frames up to here were run by one call of the interpreter's loop */
};

/* What became of native frames that were asked for. */
enum model_native {
    MODEL_NATIVE_NONE = 0, /* not asked for */
    MODEL_NATIVE_MERGED,   /* Python and native frames are one list, in the order of the calls */
    MODEL_NATIVE_APART,    /* they do not fit together: all native frames, then all Python frames */
    MODEL_NATIVE_UNKNOWN,  /* native frames are not to be had: Python frames alone */
};

enum model_mode {
    MODEL_MODE_AGENT = 0, /* the agent in the target reports */
    MODEL_MODE_READONLY,  /* read from outside, nothing injected */
    MODEL_MODE_RECORDED,  /* it has ended: read from what it left */
};

/* How threads that run are sampled. */
enum model_sampling {
    MODEL_SAMPLING_EXACT = 0, /* they are asked by a signal and copy their own frames */
    MODEL_SAMPLING_GENTLE,    /* no signal is sent: stacks of running threads may be torn */
};

enum model_local_kind {
    MODEL_LOCAL_VARIABLE = 0,
    MODEL_LOCAL_ARGUMENT,
    MODEL_LOCAL_CELL, /* shared with functions within */
    MODEL_LOCAL_FREE, /* of a function around it */
};

/* Where the object that a variable refers to lies: for asking more about it. Addresses of the target. */
struct model_place {
    uint64_t slot;   /* of the variable; 0: it is in the dict of its frame, under its name */
    uint64_t cell;   /* that the variable refers to, with the object in it; 0: to the object itself */
    uint64_t object; /* what it refers to */
    bool told;       /* the text says what it is; else that it is an object of its type */
    bool made;       /* its type was made by the program: it may have a repr of its own */
};

/* An argument or local variable that has a value. */
struct model_local {
    const char *name;
    const char *type; /* name of its type; NULL unknown */
    const char *text; /* its value in short, as repr() would have it; NULL unknown */
    enum model_local_kind kind;
    const struct model_place *place; /* NULL: there is no more to ask; not sent */
};

/* Those of one frame, in the order of the code. */
struct model_locals {
    struct model_local *items;
    size_t n;
    bool truncated;                      /* a limit left some out */
    uint64_t tstate, frame, code, instr; /* as they were read, for asking more; not sent */
};

/* One frame of a stack. */
struct model_frame {
    enum model_frame_kind kind;
    const char *func;   /* qualified name where the interpreter keeps one; NULL unknown */
    const char *file;   /* co_filename as the interpreter has it; NULL unknown */
    int line;           /* current line (not the function's first); 0 unknown */
    const char *module; /* native: file of the library or program; NULL unknown (code made at run time) */
    uint64_t
        address; /* native: of the instruction, as the module's file counts; without a module, in memory. 0: unknown,
                           and unknown is what called the frame before */
};

enum model_task_state {
    MODEL_TASK_UNKNOWN = 0,
    MODEL_TASK_PENDING, /* it waits for something, or for its turn */
    MODEL_TASK_RUNNING, /* its loop is in it now */
};

/* A task of asyncio that is not done. */
struct model_task {
    uint64_t id;      /* its address: another task's once it is gone */
    int64_t tid;      /* the thread that runs its loop; MODEL_UNKNOWN */
    const char *name; /* NULL: it has none (before 3.8), or unknown */
    const char *coro; /* qualified name of its coroutine; NULL unknown */
    enum model_task_state state;
    bool truncated; /* frames or tasks that await it were left out */
    struct model_frame
        *frames; /* of what it awaits and that awaits ..., innermost first; its coroutine is last */
    size_t n_frames;
    uint64_t *awaited_by; /* ids of tasks that wait for it, as far as known */
    size_t n_awaited_by;
};

/* One OS thread of the target, with its Python stack if it has one. */
struct model_thread {
    int64_t tid;             /* as the target's own pid namespace numbers it */
    uint64_t ident;          /* pthread_self of the thread = threading.get_ident(); 0 when it has no Python */
    const char *name;        /* threading.Thread.name; NULL unknown or no Python */
    const char *native_name; /* /proc comm; NULL unknown */
    char state;              /* R S D T t Z X I as the kernel says; '?' unknown */
    int8_t on_cpu;           /* 1 its CPU clock advanced since the last look, 0 not, MODEL_UNKNOWN */
    enum model_gil gil;
    double gil_for_us;   /* waiting or held: for at least so long, see pystack_snapshot; NAN unknown */
    int8_t gc;           /* 1 it collects garbage, 0 not, MODEL_UNKNOWN */
    double cpu_pct;      /* of one core, over the last second or more; NAN unknown (the first look) */
    bool has_python;     /* it has a Python thread state */
    bool torn;           /* it moved while it was read: the frames may mix two moments */
    bool truncated;      /* frames beyond the limit were left out (the outermost ones) */
    uint64_t stopped_us; /* how long it was made to stand still for this look; 0: it was not */
    uint64_t same_us;    /* each look of the sampler has found the same stack for so long; 0 not known */
    enum model_native
        native; /* see client/symbols/native.h; before, native frames stand in front of the Python frames */
    struct model_frame *frames; /* innermost first */
    size_t n_frames;
    const struct model_locals *
        *locals; /* of each frame, NULL where they are not known; NULL: not asked for */
};

/* The process, once per snapshot. */
struct model_process {
    double cpu_pct;       /* of one core, over the last second or more; NAN unknown (the first look) */
    double uptime_s;      /* since the process started; NAN unknown */
    int64_t rss_bytes;    /* MODEL_UNKNOWN */
    int64_t n_threads;    /* OS threads, ours included; MODEL_UNKNOWN */
    double agent_cpu_pct; /* what the agent itself costs, of one core; NAN unknown or no agent */
    int64_t
        agent_rss_bytes; /* memory the agent holds (its heap and stacks, counted by itself); MODEL_UNKNOWN */
};

/* All threads at one moment. */
struct model_snapshot {
    double timestamp;             /* seconds since the epoch, UTC */
    uint64_t seq;                 /* counts up within one agent */
    int64_t gil_tid;              /* holder's tid; 0 nobody; MODEL_UNKNOWN */
    int8_t gil_enabled;           /* 0: this Python has none, or it is turned off; MODEL_UNKNOWN */
    int8_t gc_running;            /* 1 garbage is being collected, 0 not, MODEL_UNKNOWN */
    enum model_sampling sampling; /* how stacks of threads that run were got */
    double cost_us;               /* how long taking this snapshot took; NAN unknown */
    struct model_process process;
    struct model_thread *threads; /* the agent's own threads are left out; main thread first, then by tid */
    size_t n_threads;
    struct model_task *tasks; /* one thread's after the other's; NULL: not asked for, or not known */
    size_t n_tasks;
    const char *note;        /* what was asked for and could not be had, and why; NULL nothing */
    const char *native_note; /* why names of native frames are missing, when that is news; NULL nothing */
    uint64_t dropped;        /* notifications this session lost before this one */
    bool incomplete;         /* a limit cut threads, frames or tasks off */
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
    const char *torch;  /* "2.13.0", NULL when torch is not loaded (as far as can be seen) */
    int64_t rank;       /* from RANK in the environment; MODEL_UNKNOWN */
    double started_at;  /* seconds since the epoch; NAN unknown */
    enum model_mode mode;
    const char *mode_reason;   /* read-only, recorded: why, how it ended; NULL unknown or not */
    double seen_until;         /* recorded: time of the last that is known, seconds since the epoch */
    double seen_s;             /* recorded: time that the samples that were read cover */
    bool seen_is_cut;          /* recorded: there are older ones, which were too many to be read */
    bool blocking;             /* read-only: running threads are stopped while they are looked at */
    const char *agent_version; /* NULL without an agent */
    const char *discovery;     /* name of the strategy that found the interpreter */
    bool python_untested;      /* nobody runs tests over this CPython */
    struct arena arena;
};

/* Node of the stack trie: a frame below its caller. Ids count from 1, parents come before children; parent 0 = root. */
struct model_stack_def {
    uint32_t stack_id;
    uint32_t parent_id;
    uint32_t frame_id;
};

struct model_frame_def {
    uint32_t frame_id;
    struct model_frame frame;
};

/* A thread of the stream of samples, sent once and again when its name changes. */
struct model_thread_def {
    int64_t tid;
    const char *name;
    const char *native_name;
};

/* One look at one thread. */
struct model_sample {
    double timestamp;
    int64_t tid;
    uint32_t stack_id; /* 0: no Python frame */
    uint32_t
        native_id; /* the stack with native frames before the Python frames and their entries; 0: not known */
    uint32_t
        merged_id; /* within the agent: the stack with native frames where they belong; 0: there is none */
    int8_t on_cpu;
    bool torn;
    enum model_gil gil;
    int8_t gc; /* 1 it collects garbage, 0 not, MODEL_UNKNOWN */
};

/* What a subscriber to samples gets at once. Definitions come before the samples that use them. */
struct model_sample_batch {
    uint32_t epoch; /* ids of different epochs are unrelated: the receiver forgets all ids when it changes */
    double period_us; /* mean time between two looks at a thread in this batch: the weight of a sample */
    double *us;       /* time that each of its samples stands for, where that is known; NULL: period_us */
    uint64_t dropped; /* samples lost to this session since it subscribed */
    enum model_sampling mode; /* how stacks of threads that run were got */
    double cost_pct;          /* what it costs, of one core, over the last seconds; NAN unknown */
    double budget_pct;        /* and what it may cost; NAN unknown */
    struct model_frame_def *frames;
    size_t n_frames;
    struct model_stack_def *stacks;
    size_t n_stacks;
    struct model_thread_def *threads;
    size_t n_threads;
    struct model_sample *samples;
    size_t n_samples;
    const char *native_note; /* why names of native frames are missing, when that is news; NULL nothing */
    struct arena arena;
};

/* A table of the agent. */
struct model_table {
    const char *name; /* "python.samples" */
    uint64_t rows;    /* that are kept */
    uint64_t bytes;   /* that it takes, used or not */
    uint64_t lost;    /* rows that could not be written */
    double oldest,
        newest; /* times of the rows kept, seconds since the epoch; NAN none, or they have no time */
};

/* Something that can be set. */
struct model_setting {
    const char *key, *value, *default_value; /* "probing.budget", "1", and what it is when nobody sets it */
    const char *unit, *help;
    bool given; /* somebody has set it */
};

/* The agent about itself. */
/* Something that is armed in the job, or wanted, until those who want it are gone. */
struct model_lease {
    const char *what;
    int64_t owners;   /* clients that want it */
    bool by_config;   /* and the configuration */
    double held_s;    /* since the first of them did */
    double left_s;    /* until it ends; NAN no limit */
    int64_t looks;    /* training steps that were looked into */
    double cost_pct;  /* what looking has added to the job's time so far, of all of it; NAN not known yet */
    bool armed;       /* hooks are in the job at this moment */
    const char *note; /* what it waits for, why it cannot, or what has come of it; NULL nothing */
    const char *file; /* that it has written; NULL none */
};

/* A debugger in the job, whoever asked for it. */
struct model_debugger {
    const char *what; /* "debug", "pause" or "catch" */
    const char *
        state; /* of debug "listening"; of pause "held"; of catch "armed", or "kept": a thread that has raised */
    const char *address; /* where it is; NULL nowhere yet */
    const char *text;    /* of "kept": what was raised, and in which thread; NULL nothing */
    int64_t uid, pid;    /* of the process that asked for it, as the agent sees it; -1 not known */
    double held_s;       /* it is in that state */
    double left_s;       /* until it ends; NAN no limit */
    bool used;           /* somebody is connected to it */
};

/* Where clients may come in by TCP. */
struct model_endpoint {
    const char *address;
    bool looking;     /* who comes by it may look, and no more */
    int64_t clients;  /* who have come by it and are there */
    int64_t waiting;  /* connections that have not said yet who they are */
    uint64_t entered; /* so far, and those turned away: */
    uint64_t refused;
    const char
        *note; /* the last that was turned away, and why; or why it could not be opened; NULL nothing */
};

struct model_status {
    const char *agent_version;
    double uptime_s;
    double cpu_s;      /* CPU time of the agent's threads so far */
    int64_t rss_bytes; /* memory the agent holds; MODEL_UNKNOWN */
    int64_t clients;
    int64_t client_processes; /* that they are of: by TCP a user counts as one; 0 not told */
    /* sampler */
    double rate_hz; /* asked for now; 0 when nobody samples */
    double kept_hz; /* and kept; NAN nobody samples, or not known yet */
    uint64_t samples;
    uint64_t torn;
    uint64_t dropped;
    double us_per_sample; /* NAN before the first */
    const char *sampling; /* "exact", "gentle"; NULL nobody samples */
    uint64_t exact;       /* samples of running threads that copied their own frames */
    uint64_t signals_sent, signals_late, signals_refused;
    uint64_t
        calls_restarted; /* system calls that a signal of ours interrupted, and that began again by themselves */
    uint64_t calls_interrupted; /* the same, and their callers saw EINTR */
    uint64_t unknown_frames;    /* of exact samples: the code was gone before it was read */
    double us_per_signal;       /* spent in the handler, on the job's threads; NAN before the first */
    uint64_t gil_holds;         /* how often the python worker had the GIL */
    uint64_t gil_refused;       /* what it was asked for and did not do, mostly for want of the GIL */
    double us_per_gil_hold;     /* CPU time it used while it had the GIL; NAN never */
    double us_longest_gil_hold; /* and at most */
    double overhead_pct;        /* CPU of the agent, of one core, over the last seconds; NAN unknown */
    double budget_pct;          /* what the sampler may cost at most */
    bool stretched;             /* the interval is longer than asked for, to stay within the budget */
    uint64_t snapshots;
    uint64_t read_errors; /* reads of the interpreter that were refused or inconsistent */
    uint64_t arena_limit_hits;
    const char *discovery;
    const char *strategy; /* by which way the agent came in; NULL unknown */
    const char *endpoint;
    const char *note; /* a feature that turned itself off and why; NULL none */
    /* tables */
    double always_hz;         /* looks a second that are taken whether or not somebody asks; 0 none */
    const char *data_dir;     /* folder of the tables; NULL: they are in memory only, or there are none */
    const char *collect_note; /* what of the tables could not be done and why; NULL none */
    double
        collect_pct; /* CPU of writing them, of one core, over the last seconds, beside sampling; NAN unknown */
    double collect_us_per_s; /* the same since the agent began */
    double
        collect_threads_s; /* time between two looks at all threads, where that is more than a second; NAN not */
    uint64_t collect_missed;    /* samples that are in no table */
    uint64_t steps;             /* training steps seen */
    const char *hooks;          /* what tells of them, in the job; NULL nothing is armed */
    const char *steps_note;     /* why they are not told; NULL they are, or there is no torch */
    uint64_t spans, spans_lost; /* ends and beginnings of operations that were told, and lost */
    double us_per_span;         /* what telling one costs a thread of the job; NAN not measured yet */
    /* What else is told of in the job: variables at the ends of optimizer steps, garbage collections, returns of functions that are
     * watched; how often, and what one costs its thread; NAN not measured yet. */
    bool looks_on, gc_on, returns_on;
    uint64_t looks, gc_told, returns_told, values_lost;
    double us_per_look, us_per_gc, us_per_return;
    const char *hooks_note;     /* which of it cannot be told, and why; NULL none */
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

/* Leave thread `tid` in a snapshot as the only one, with its tasks; none when it is not there. */
void model_snapshot_keep(struct model_snapshot *s, int64_t tid);

/* "held", "waiting", "none", or NULL when unknown. */
const char *model_gil_name(enum model_gil g);

/* "variable", "argument", "cell" or "free". */
const char *model_local_kind_name(enum model_local_kind k);

/* Take native frames and entries out of all stacks: Python frames remain. */
void model_snapshot_strip_native(struct model_snapshot *s);

/* Are there native frames or entries? */
bool model_snapshot_has_native(const struct model_snapshot *s);

/* The same snapshot without native frames and entries. `out` has lists of its own, in its own arena; all else is that of `s` and
 * lives as long. 0, or -1 without memory; `out` is to be given back by model_snapshot_fini in either case. */
int model_snapshot_copy_python(const struct model_snapshot *s, struct model_snapshot *out);

/* The same of one list; number of frames that remain. `locals` (of each frame; NULL: none) is kept in step. */
size_t model_frames_strip_native(struct model_frame *frames, size_t n, const struct model_locals **locals);

/* "merged", "apart", or NULL when there are no native frames. */
const char *model_native_name(enum model_native n);

/* "pending", "running", or NULL when unknown. */
const char *model_task_state_name(enum model_task_state s);

/* "python" or "native". */
const char *model_frame_kind_name(enum model_frame_kind k);

/* "exact" or "gentle". */
const char *model_sampling_name(enum model_sampling s);

/* "agent", "readonly" or "recorded". */
const char *model_mode_name(enum model_mode m);

#endif
