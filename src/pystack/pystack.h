/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pystack: reads CPython from memory, in this process or another, without its help.
 *
 * Opening discovers the interpreter by an ordered list of named, validated strategies. Reading
 * never takes the GIL, never writes, never faults. A pystack belongs to one thread; it caches
 * code objects and thread names. Versions: offsets.c. Layouts: generated tables up to 3.12
 * (tools/), _Py_DebugOffsets from 3.13 on (Include/internal/pycore_debug_offsets.h,
 * pycore_runtime.h).
 */
#ifndef PYSTACK_PYSTACK_H
#define PYSTACK_PYSTACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/model.h"

#define PYSTACK_MAX_FRAMES 2048 /* frames kept of one stack */
/* fewer for fuzzers, so that they reach the last one: mk/test.mk */
#ifndef PYSTACK_MAX_THREADS
#define PYSTACK_MAX_THREADS 16384 /* threads of one process */
#endif

struct pystack;

/* Result of discovery. Strings live as long as the pystack. */
struct pystack_info {
    int major, minor, micro;
    /* "3.11.7"; as in sys.abiflags "t" (free-threaded) and "d" (debug build) may follow */
    char version[32];
    const char *discovery; /* name of the strategy that won */
    uint64_t runtime;      /* address of _PyRuntime; 3.6: of interp_head */
    bool finalizing;       /* at the time of pystack_open */
    bool untested;         /* a version the tests of which nobody runs, see offsets.c */
    bool free_threaded;    /* built without a GIL, which may have been turned on */
    bool debug_build;
};

/* One Python thread state. */
struct pystack_thread {
    uint64_t tstate; /* its address */
    uint64_t serial; /* the interpreter's own number for it: unlike the address, never reused */
    uint64_t ident;  /* pthread_self */
    int64_t tid;     /* OS thread in the target's numbering; 0 unknown */
    int64_t interpreter;
    uint64_t interp;  /* its address */
    uint64_t seen_ns; /* monotonic: last time it was seen */
    bool holds_gil;
    /* Of its interpreter, read just before `holds_gil`. */
    bool gil_counted;      /* gil_switches is known */
    uint64_t gil_switches; /* how often the GIL went to another thread */
    uint64_t gil_holder;   /* thread state that holds it; 0 nobody, or unknown */
    int8_t gil_enabled;    /* 0: there is none, or it is off */
    int8_t collecting;     /* 1 garbage is being collected, 0 not, MODEL_UNKNOWN */
    const char *name;      /* threading.Thread.name; NULL unknown; owned by the given arena */
};

/* The descriptor of /proc/PID/mem if memory is read through it, because process_vm_readv is
 * refused; otherwise -1. */
int pystack_own_file(const struct pystack *ps);

/* True if the process still runs the program that was opened. If not, recent reads may belong to
 * another program; a snapshot taken across the change fails by itself. Always true for this
 * process. */
bool pystack_is_same(const struct pystack *ps);

/* From now on read through `mem`, which must outlive `ps`: the image that the caller is about to
 * write to (mem_open_image). */
struct mem;
void pystack_read_through(struct pystack *ps, const struct mem *mem);

/* Discover the interpreter of process `pid` (0: this process). NULL with the error: ERR_ATTACH
 * "not Python", "Python 3.x is not supported", "not initialised", "permission", ERR_LOST if it
 * died. Freed by pystack_close. */
struct pystack *pystack_open(pid_t pid, struct err *e);

/* What a process that could not be opened may still become. */
enum pystack_lack {
    PYSTACK_LACKS_RIGHT = 0, /* may not be read, is gone, or has an unknown version: permanent */
    /* has no interpreter, or no valid one; perhaps not yet, in a new process */
    PYSTACK_LACKS_INTERPRETER,
    PYSTACK_LACKS_START, /* has one that is not initialised, or no longer */
};

/* The same; `*lack` receives the reason of a failure. */
struct pystack *pystack_open_young(pid_t pid, enum pystack_lack *lack, struct err *e);
void pystack_close(struct pystack *ps);

const struct pystack_info *pystack_get_info(const struct pystack *ps);

/* True if the interpreter is still there, as far as one check shows. Cheap. It may have been
 * finalised, or its library unloaded. */
bool pystack_is_there(struct pystack *ps);

/* Whether process `pid` has a CPython, by its mappings alone (cheap; no memory is read): 1 yes,
 * 0 no, -1 with errno. */
int pystack_is_python(pid_t pid);

/* All Python thread states of all interpreters, allocated in `arena`. Returns their number, or
 * -1 (inconsistent read). */
ssize_t pystack_read_threads(struct pystack *ps, struct arena *arena, struct pystack_thread **out);

/* Sort them by tid. A thread that runs several interpreters has a thread state in each: first the one that it
 * runs, as far as the list shows. */
void pystack_sort_threads(const struct pystack *ps, struct pystack_thread *list, size_t n);

/* The name of the thread whose `n` states these are: another interpreter may count it as its own main thread,
 * so the oldest interpreter that has one decides. NULL unknown. */
const char *pystack_name_of_thread(const struct pystack_thread *states, size_t n);

/* Sort, and keep one for each thread, so that none is counted twice: the first that has a frame. Returns how
 * many are left; those whose tid is unknown all are. */
size_t pystack_keep_one_state(struct pystack *ps, struct pystack_thread *list, size_t n);

/* Where the same thread state is in an earlier list: `n` items of `size` bytes, each with a
 * struct pystack_thread as its first member. `guess`: where it is as a rule. -1: it was not
 * there. */
ssize_t pystack_find_thread(const struct pystack_thread *thread, const void *list, size_t n, size_t size,
                            size_t guess);

/* True if a thread state or interpreter was made since pystack_read_threads. (Ended ones show by
 * their clocks.) Cheap. */
bool pystack_threads_changed(struct pystack *ps);

/* True if the thread holds its interpreter's GIL now; t->holds_gil is from the time when the
 * threads were read. */
bool pystack_has_gil(struct pystack *ps, const struct pystack_thread *t);

/* Frames of one thread, innermost first, allocated in `arena` with their strings. Sets `*torn`
 * if the thread moved during the read (its current frame is not the one the walk began with, or
 * a link did not hold). Returns their number, or -1 (nothing valid, or the thread state belongs
 * to another thread by now). */
ssize_t pystack_read_frames(struct pystack *ps, const struct pystack_thread *t, struct arena *arena,
                            struct model_frame **out, bool *torn, bool *truncated);

/* Whether any thread runs the code object at address `code`, innermost or as a caller: 1, 0, or
 * -1 if unknown (a thread moves, has too many frames, or there are more than `max_threads`).
 * Follows links alone: a fraction of the cost of frames. The result holds as long as nothing can
 * run, that is, with the GIL held. */
int pystack_runs_code(struct pystack *ps, uint64_t code, size_t max_threads);

/* Stops a thread of the target. */
struct pystack_stopper {
    /* `tid` in our numbering; 0: it stands still until go; -1: it runs */
    int (*stop)(void *arg, pid_t tid);
    /* release it: returns how long it stood still, in nanoseconds */
    uint64_t (*go)(void *arg);
    void *arg;
};

/* From now on stop running threads to read their frames; sleeping threads are read as before,
 * unless with native frames. NULL: never stop. Copied. */
void pystack_set_stopper(struct pystack *ps, const struct pystack_stopper *stopper);

/* How long the last thread read was stopped; 0 if it was not. */
uint64_t pystack_stopped_ns(const struct pystack *ps);

/* Our number of the thread whose own number is `tid` (they differ across pid namespaces; 0
 * unknown), as of the last pystack_snapshot or pystack_refresh_tids. */
pid_t pystack_outer_tid(const struct pystack *ps, int64_t tid);
int pystack_refresh_tids(struct pystack *ps);

/* GIL state of one OS thread: held (from the runtime), waiting (asleep in futex(2) on the GIL's
 * own condition variable, from /proc/PID/task/TID/syscall), none, or unknown if that file may
 * not be read. */
enum model_gil pystack_read_gil(struct pystack *ps, const struct pystack_thread *t);

/* Whether the thread collects garbage. 1 while its interpreter does and the thread, whose GIL
 * state is `gil`, holds the GIL (while a finalizer or callback of the collection lets go of it,
 * the thread that has it then); 0 if not; MODEL_UNKNOWN. */
int8_t pystack_read_gc(struct pystack *ps, const struct pystack_thread *t, enum model_gil gil);

/* The part of sys.modules that was seen. */
struct pystack_modules {
    uint64_t entries;
    uint32_t n;
    bool found;
};

/* True if the main interpreter has made sys.stdout. Python 3.6 reports itself initialised long
 * before; for later versions, which are exact, this is always true. */
bool pystack_has_streams(struct pystack *ps);

/* True if the main interpreter has a module of that name, even one that is still being imported.
 * Only new entries since the last call are read: `seen` tracks that and starts with zeros. One
 * name for each `seen`. */
bool pystack_has_module(struct pystack *ps, const char *name, struct pystack_modules *seen);

#define PYSTACK_GENERATIONS 3
#define PYSTACK_MAX_COUNTERS 16 /* interpreters whose collector's counters are read */

/* The garbage collector's counters since its start, as in gc.get_stats(). */
struct pystack_gc_generation {
    int64_t collections, collected, uncollectable;
    double duration_s; /* of all of them together; NAN: not counted (up to 3.14) */
};

struct pystack_gc {
    int64_t interpreter;
    bool settled; /* no collection was under way: all counters belong together */
    /* Objects that the last full collection has left in the oldest generation; MODEL_UNKNOWN:
     * none yet, or not counted. */
    int64_t long_lived;
    struct pystack_gc_generation generations[PYSTACK_GENERATIONS]; /* the youngest first */
};

/* The counters of each interpreter (up to 3.8 there is one set for the process, as interpreter
 * 0), PYSTACK_MAX_COUNTERS at most. Returns their number; -1 if they cannot be read now (`*why`
 * is NULL), or in this Python (`*why` is the reason, a static text). */
ssize_t pystack_read_gc_stats(struct pystack *ps, struct pystack_gc *out, const char **why);

/* Lets a running thread copy its own frames (self.h). Returns their number, innermost first, or
 * -1: they are then read from here. */
struct pystack_asker {
    ssize_t (*read)(void *arg, const struct pystack_thread *t, struct arena *arena, struct model_frame **out,
                    bool *truncated, enum model_gil *gil, int8_t *gc);
    /* NULL, or: lets a running thread without Python copy its registers and stack, for native.h. */
    void (*native)(void *arg, int64_t tid);
    void *arg;
};

/* Read the names of threads again in the next snapshot, however recent they are. */
void pystack_read_names_anew(struct pystack *ps);

/* threading's name of the thread whose pthread_self is `ident`, read now. Uses no memory of
 * malloc's, whose lock a crashed thread may hold. 0, or -1 if it has no readable name. */
int pystack_read_name(struct pystack *ps, uint64_t ident, char *buf, size_t cap);

/* Snapshots use it for running threads; asker->read NULL: no thread is asked. */
void pystack_set_asker(struct pystack *ps, const struct pystack_asker *asker);

/* Everything together: every OS thread except those in `skip`, with names, state, CPU, GIL and
 * frames; process facts too. The call initialises `out`, which the caller owns
 * (model_snapshot_fini), on failure too. CPU figures are relative to the previous call on the
 * same pystack. So is the time for which a thread has waited for the GIL or held it: since the
 * first of consecutive calls that saw it so, between which the GIL went to no other thread. 0,
 * or -1 with the error (ERR_LOST if the process is gone). */
int pystack_snapshot(struct pystack *ps, const int64_t *skip, size_t n_skip, struct model_snapshot *out,
                     struct err *e);

/* What a snapshot reads beside the frames. */
struct pystack_locals_request {
    int64_t tid;         /* locals of this thread, in the target's numbering; 0: of all */
    bool without_locals; /* or of none */
    bool alone;          /* no other thread than `tid`, so nobody who holds what it waits for */
    /* tasks of asyncio: from 3.14 on; out->tasks stays NULL if they cannot be read */
    bool tasks;
};

/* The same with locals of frames: at most 64 per frame, texts of 200 bytes; for all together
 * 16,384 and a megabyte, for one thread 1,024 and 128 KiB; when a limit was reached the snapshot
 * is incomplete. It costs more than frames do, so only for clients that ask. `request` NULL: none. */
int pystack_snapshot_locals(struct pystack *ps, const int64_t *skip, size_t n_skip,
                            const struct pystack_locals_request *request, struct model_snapshot *out,
                            struct err *e);

/* Offset in a thread state of this version of the pointer that is set last when it is made.
 * Until then it is in the list, but nothing may be done to it (3.11: Python/pystate.c,
 * init_threadstate). 0: in this version states are complete before they are listed. */
int32_t pystack_thread_ready_offset(const struct pystack *ps);

/* True if tasks can be read from memory in this version, once asyncio is loaded. */
bool pystack_knows_tasks(const struct pystack *ps);

/* Describe process `pid` (0: this one), with its interpreter (NULL: not found). The
 * call initialises `out`, which the caller owns (model_target_fini). Missing facts are unknown;
 * mode and agent are left to the caller. */
void pystack_read_target(pid_t pid, struct pystack *ps, struct model_target *out);

/* Version of the PyTorch that process `pid` (0: this one) has loaded, from the mapping of its
 * library and the version file beside it; no Python is run. 0, or -1 if torch is not loaded or
 * its version cannot be found (then "" is stored if it is loaded). */
int pystack_find_torch(pid_t pid, char *buf, size_t cap);

/* Which rank of how many this process is in the largest group of torch.distributed, from memory:
 * for programs that decide this themselves (torch.multiprocessing.spawn, Lightning) no environment
 * has it. Believed only if Python's list of ranks and the C++ object of the group have the same
 * number. 0, or -1: there is no group, or it is not as known. */
int pystack_find_rank(struct pystack *ps, int32_t *rank, int32_t *world);

/* The rank of a process whose environment has `rank` (-1: none) of `world`: the rank in memory, too,
 * where the environment has none or one of one. Such a one is that of a step of Slurm in which the
 * program itself starts its ranks. `ps` may be NULL. */
int32_t pystack_choose_rank(struct pystack *ps, int32_t rank, int32_t world);

/* The rank of process `pid` (0: this one), from its environment or, if it has loaded torch, so. -1:
 * it has none, or that may not be read. */
int32_t pystack_rank_of(pid_t pid);

#endif
