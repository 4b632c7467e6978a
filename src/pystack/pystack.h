/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pystack: reads CPython from memory, in this process or another, without its help.
 *
 * Opening discovers the interpreter by an ordered list of named, validated strategies. Reading never takes the GIL,
 * never writes, never faults. A pystack belongs to one thread; it caches code objects and thread names.
 * Versions: offsets.c. Layouts: generated tables up to 3.12 (tools/), _Py_DebugOffsets from 3.13 on
 * (Include/internal/pycore_debug_offsets.h, pycore_runtime.h).
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

#define PYSTACK_MAX_FRAMES 2048  /* frames kept of one stack */
#ifndef PYSTACK_MAX_THREADS      /* fewer for fuzzers, which reach the last one then: mk/test.mk */
#define PYSTACK_MAX_THREADS 4096 /* threads of one process */
#endif

struct pystack;

/* What was found. Strings live as long as the pystack. */
struct pystack_info {
    int major, minor, micro;
    char version[32]; /* "3.11.7"; as in sys.abiflags "t" (free-threaded) and "d" (debug build) may follow */
    const char *discovery; /* name of the strategy that won */
    uint64_t runtime;      /* address of _PyRuntime; 3.6: of interp_head */
    bool finalizing;       /* at the time of pystack_open */
    bool untested;         /* a version the tests of which nobody runs, see offsets.c */
    bool free_threaded;    /* built without a GIL; it may have been turned on */
    bool debug_build;
};

/* One Python thread state. */
struct pystack_thread {
    uint64_t tstate; /* its address */
    uint64_t serial; /* the interpreter's own number for it: unlike the address, never used again */
    uint64_t ident;  /* pthread_self */
    int64_t tid;     /* OS thread as the target numbers it; 0 unknown */
    int64_t interpreter;
    uint64_t interp;  /* its address */
    uint64_t seen_ns; /* monotonic: it was there then */
    bool holds_gil;
    /* Of its interpreter, read just before `holds_gil`. */
    bool gil_counted;      /* gil_switches is known */
    uint64_t gil_switches; /* how often the GIL has gone to another thread */
    uint64_t gil_holder;   /* thread state that holds it; 0 nobody, or not known */
    int8_t gil_enabled;    /* 0: there is none, or it is turned off */
    int8_t collecting;     /* 1 garbage is being collected, 0 not, MODEL_UNKNOWN */
    const char *name;      /* threading.Thread.name; NULL unknown; owned by the arena given */
};

/* Is memory read through /proc/PID/mem, because process_vm_readv is refused? Then its descriptor, else -1. */
int pystack_own_file(const struct pystack *ps);

/* Does the process still run the program that was opened? Else what has been read of it lately may be another program's: a
 * snapshot that is taken over that fails by itself. Always true of this process. */
bool pystack_is_same(const struct pystack *ps);

/* From now on read through `mem`, which must outlive `ps`: the image that somebody is about to write to (mem_open_image). */
struct mem;
void pystack_read_through(struct pystack *ps, const struct mem *mem);

/* Discover the interpreter of process `pid` (0: this process). NULL with the error: ERR_ATTACH "not Python", "Python 3.x is
 * not supported", "not initialised", "permission", ERR_LOST when it died. Freed by pystack_close. */
struct pystack *pystack_open(pid_t pid, struct err *e);

/* What a process that could not be opened may still become. */
enum pystack_lack {
    PYSTACK_LACKS_RIGHT = 0, /* it may not be read, is gone, or of no version that we know: it stays so */
    PYSTACK_LACKS_INTERPRETER, /* there is none, or none that makes sense; in one that has just begun perhaps not yet */
    PYSTACK_LACKS_START, /* there is one that is not initialised, or no longer */
};

/* The same; which of them it is into `*lack` when it fails. */
struct pystack *pystack_open_young(pid_t pid, enum pystack_lack *lack, struct err *e);
void pystack_close(struct pystack *ps);

const struct pystack_info *pystack_get_info(const struct pystack *ps);

/* Is the interpreter still there, as far as one look can tell? Cheap. It may have been finalised, or its library unloaded. */
bool pystack_is_there(struct pystack *ps);

/* Is there a CPython in process `pid`, judged by its mappings alone (cheap; no memory is read)? 1 yes, 0 no, -1 with errno. */
int pystack_is_python(pid_t pid);

/* All Python thread states of all interpreters, allocated in `arena`. Number, or -1 (inconsistent read). */
ssize_t pystack_read_threads(struct pystack *ps, struct arena *arena, struct pystack_thread **out);

/* Where the same thread state is in an earlier list: `n` items of `size` bytes, each with a struct pystack_thread as its first member.
 * `guess`: where it is as a rule. -1: it was not there. */
ssize_t pystack_find_thread(const struct pystack_thread *thread, const void *list, size_t n, size_t size,
                            size_t guess);

/* Has a thread state or interpreter been made since pystack_read_threads? (Ended ones show by their clocks.) Cheap. */
bool pystack_threads_changed(struct pystack *ps);

/* Does the thread hold its interpreter's GIL now? t->holds_gil is as it was when the threads were read. */
bool pystack_has_gil(struct pystack *ps, const struct pystack_thread *t);

/* Frames of one thread, innermost first, allocated in `arena` with their strings. `*torn` is set when the thread moved
 * meanwhile (its current frame is not the one the walk began with, or a link did not hold). Number, or -1 (nothing that
 * makes sense, or the thread state is another thread's by now). */
ssize_t pystack_read_frames(struct pystack *ps, const struct pystack_thread *t, struct arena *arena,
                            struct model_frame **out, bool *torn, bool *truncated);

/* Does any thread run the code object at address `code`, innermost or as a caller? 1, 0, or -1: that cannot be told now (a thread
 * moves, has too many frames, or there are more than `max_threads`). Follows links alone: a fraction of what frames cost. What it
 * says holds as long as nothing can run, that is, with the GIL held. */
int pystack_runs_code(struct pystack *ps, uint64_t code, size_t max_threads);

/* Makes a thread of the target stand still. */
struct pystack_stopper {
    int (*stop)(void *arg, pid_t tid); /* `tid` as we number it; 0: it stands still until go; -1: it runs */
    uint64_t (*go)(void *arg);         /* let it go: how long it stood still, in nanoseconds */
    void *arg;
};

/* From now on frames of threads that run are read while they stand still; those of sleeping threads as before. NULL: never. Copied. */
void pystack_set_stopper(struct pystack *ps, const struct pystack_stopper *hold);

/* How long the thread stood still whose frames were read last; 0: it did not. */
uint64_t pystack_stopped_ns(const struct pystack *ps);

/* The number we know the thread by that calls itself `tid` (they differ across pid namespaces; 0 unknown), as far as it was
 * there when pystack_snapshot or pystack_refresh_tids looked last. */
pid_t pystack_outer_tid(const struct pystack *ps, int64_t tid);
int pystack_refresh_tids(struct pystack *ps);

/* GIL state of one OS thread: held (from the runtime), waiting (asleep in futex(2) on the GIL's own condition variable, from
 * /proc/PID/task/TID/syscall), none, or unknown when that file may not be read. */
enum model_gil pystack_read_gil(struct pystack *ps, const struct pystack_thread *t);

/* Does the thread collect garbage? 1 while its interpreter does and the thread, which has the GIL in this state `gil`, holds it
 * (while a finalizer or callback of the collection lets go of the GIL, whoever has it then); 0 not; MODEL_UNKNOWN. */
int8_t pystack_read_gc(struct pystack *ps, const struct pystack_thread *t, enum model_gil gil);

/* What was seen of sys.modules. */
struct pystack_modules {
    uint64_t entries;
    uint32_t n;
    bool found;
};

/* Has the main interpreter got as far as to have made sys.stdout? Python 3.6 calls itself initialised long before; of later ones,
 * which know better, this is always true. */
bool pystack_has_streams(struct pystack *ps);

/* Does the main interpreter have a module of that name, be it still being imported? Only what has come since the last time is
 * read: `seen` is kept for that, zeros at first. One name for each `seen`. */
bool pystack_has_module(struct pystack *ps, const char *name, struct pystack_modules *seen);

#define PYSTACK_GENERATIONS 3
#define PYSTACK_MAX_COUNTERS 16 /* interpreters whose collectors' counters are read */

/* What the garbage collector counts, since it began, as gc.get_stats() tells it. */
struct pystack_gc_generation {
    int64_t collections, collected, uncollectable;
    double duration_s; /* of all of them together; NAN: not counted (up to 3.14) */
};

struct pystack_gc {
    int64_t interpreter;
    bool settled; /* no collection was going on: all of what was counted belongs together */
    /* Objects that the last full collection has left in the oldest generation; MODEL_UNKNOWN: none was done yet, or it is not kept. */
    int64_t long_lived;
    struct pystack_gc_generation generations[PYSTACK_GENERATIONS]; /* the youngest first */
};

/* The counters of each interpreter (up to 3.8 there are some of the process only, as interpreter 0): PYSTACK_MAX_COUNTERS of them at
 * most. Number; -1: they cannot be read, now (`*why` is NULL), or in this Python (`*why` says why, a static text). */
ssize_t pystack_read_gc_stats(struct pystack *ps, struct pystack_gc *out, const char **why);

/* Has a thread that runs copy its own frames (self.h). Number, innermost first, or -1: they are not to be had, and are then
 * read from here. */
struct pystack_asker {
    ssize_t (*read)(void *arg, const struct pystack_thread *t, struct arena *arena, struct model_frame **out,
                    bool *truncated, enum model_gil *gil, int8_t *gc);
    /* NULL, or: has a thread without Python that runs copy its registers and stack, for native.h. */
    void (*native)(void *arg, int64_t tid);
    void *arg;
};

/* The next look reads the names of threads, however lately that was done. */
void pystack_read_names_anew(struct pystack *ps);

/* What threading calls the thread whose pthread_self is `ident`, read now. It takes no memory of malloc's, whose lock a thread that
 * has crashed may have. 0, or -1: it has no name, or none that can be read. */
int pystack_read_name(struct pystack *ps, uint64_t ident, char *buf, size_t cap);

/* Snapshots ask it for the threads that run; NULL as asker->read: nobody is asked. */
void pystack_set_asker(struct pystack *ps, const struct pystack_asker *asker);

/* Everything at once: every OS thread but those in `skip`, with names, state, CPU, GIL and frames; process facts too.
 * `out` is initialised by this call and owned by the caller (model_snapshot_fini), on failure too. CPU figures are against
 * the previous call on the same pystack, and so is how long a thread has waited for the GIL or held it: since the first of the
 * calls in a row that saw it so, between which the GIL did not go to any other thread. 0, or -1 with the error (ERR_LOST when the process is gone). */
int pystack_snapshot(struct pystack *ps, const int64_t *skip, size_t n_skip, struct model_snapshot *out,
                     struct err *e);

/* What a snapshot is to read beside the frames. */
struct pystack_locals_request {
    int64_t tid;         /* locals of this thread, as the target numbers it; 0: of all */
    bool without_locals; /* or of none */
    bool tasks;          /* tasks of asyncio: from 3.14 on; out->tasks stays NULL where they cannot be read */
};

/* The same with locals of frames: at most 64 of a frame, texts of 200 bytes; of all together 16,384 and a megabyte, of one
 * thread 1,024 and 128 KiB; when a limit was reached the snapshot is incomplete. It costs more than frames do, so it is for
 * those who ask. `wish` NULL: none. */
int pystack_snapshot_locals(struct pystack *ps, const int64_t *skip, size_t n_skip,
                            const struct pystack_locals_request *wish, struct model_snapshot *out,
                            struct err *e);

/* Where a thread state of this version has the pointer that it gets last when it is made; until then it is among the others, but nothing may
 * be done to it (3.11: Python/pystate.c, init_threadstate). 0: those of this version are whole before they are found. */
int32_t pystack_thread_ready_offset(const struct pystack *ps);

/* Can tasks be read from memory in this version, as far as asyncio is loaded? */
bool pystack_knows_tasks(const struct pystack *ps);

/* What process `pid` (0: this one) is, with what `info` says of its interpreter (NULL: not found). `out` is initialised by this
 * call and owned by the caller (model_target_fini); what cannot be found out is unknown; mode and agent are left to the caller. */
void pystack_read_target(pid_t pid, const struct pystack_info *info, struct model_target *out);

/* Version of PyTorch that process `pid` (0: this one) has loaded, from the mapping of its library and the version file
 * beside it; no Python is run. 0, or -1 when torch is not loaded or its version cannot be found (then "" is stored if it
 * is loaded). */
int pystack_find_torch(pid_t pid, char *buf, size_t cap);

#endif
