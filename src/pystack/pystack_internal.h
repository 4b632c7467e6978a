/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pystack_internal: shared by the files of pystack.
 *
 * One struct pystack belongs to one thread. Addresses are of the target; nothing read from it is
 * trusted.
 */
#ifndef PYSTACK_PYSTACK_INTERNAL_H
#define PYSTACK_PYSTACK_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/table.h"
#include "pystack/codes.h"
#include "pystack/dicts.h"
#include "pystack/native.h"
#include "pystack/pystack.h"
#include "pystack/reader.h"

struct procfs_stat;
struct waits;

#define PYSTACK_MAX_INTERPRETERS 256
#define PYSTACK_NAME_MAX 256                     /* bytes of a thread's name */
#define PYSTACK_MAX_RAW (2 * PYSTACK_MAX_FRAMES) /* including those that stand for no function */
#define PYSTACK_MAX_MARKS 9
#define PYSTACK_VERIFIED 64     /* innermost frames that are read twice */
#define PYSTACK_CHUNK_MAX 65536 /* bytes of the data stack copied in one read */

/* threading.Thread.name of one thread. */
struct pystack_name {
    int64_t interpreter;
    uint64_t ident;
    uint64_t serial; /* of the thread state that had it when the name was read; 0 none had */
    char *text;
};

struct pystack_names {
    struct pystack_name *items;
    size_t n, cap;
    struct table places;                             /* of identifiers */
    uint64_t tried_ns;                               /* last attempt to read them; 0 never */
    uint64_t took_ns;                                /* time of that attempt */
    unsigned failures;                               /* in a row */
    bool without_threading;                          /* the main interpreter has not imported it */
    uint32_t hint_threading, hint_active, hint_name; /* places in dicts, see pystack_dict_find */
};

/* CPU time at two earlier moments, the older first; at_ns 0: none. A rate covers a second or
 * more, whoever reads it and how often. */
struct pystack_rate {
    uint64_t cpu_ns[2], at_ns[2];
};

/* An OS thread as of the previous snapshot. */
struct pystack_clock {
    pid_t tid; /* in our numbering */
    uint64_t cpu_ns;
    struct pystack_rate rate;
    /* clock ticks since boot: distinguishes a thread from its successor of the same number */
    uint64_t started;
    enum model_gil gil;
    uint64_t gil_since_ns; /* it has waited for or held the GIL at least since then; 0 unknown */
    uint64_t gil_switches, gil_tstate;
};

/* An OS thread of the target: our number for it and its own. They differ only across pid
 * namespaces. */
struct pystack_tid {
    pid_t outer;
    int64_t inner;
};

/* A word that changes when threads or interpreters are made. */
struct pystack_mark {
    uint64_t addr, value;
};

/* A frame as it is in memory. */
struct pystack_raw_frame {
    uint64_t addr, previous, code;
    uint64_t instr; /* address of an instruction (3.11 on) or f_lasti */
    uint32_t tlbc;  /* number of the executed copy of the code; 0 the one in the code object */
    uint8_t owner;
    bool entry; /* 3.11: a call of the interpreter's loop began with it */
};

struct pystack {
    struct pystack_reader reader;
    struct pystack_info info;
    pid_t pid; /* for procfs: 0 is ourselves */
    bool self;
    struct mem_identity identity; /* of the program that was opened; of another process */
    bool other_namespace;         /* the target numbers its threads differently */
    uint64_t tstate_current;      /* 3.6: addresses of _PyThreadState_Current, */
    /* of the first of the GIL's primitives (0 unknown), */
    uint64_t static_gil;
    /* of gil_switch_number and collecting (0 unknown), */
    uint64_t static_switches, static_collecting;
    uint64_t static_gc_stats;            /* of generation_stats (0 unknown), */
    uint64_t static_other;               /* and of the other variable that may be interp_head; 0 none */
    int64_t attached;                    /* see pystack_find_attached, */
    uint64_t resident_from, resident_to; /* and pystack_find_resident */
    bool attached_searched;
    int pthread_tries;   /* searches for the offset so far */
    int32_t pthread_tid; /* offset of the thread id in struct pthread; -1 not found (yet) */
    struct pystack_codes codes;
    struct pystack_names names;
    struct pystack_stopper stopper; /* stop NULL: none */
    uint64_t stopped_ns;            /* of the thread read last */
    /* the thread being read was stopped where it ran, perhaps within a change of its frames */
    bool standing;
    struct model_frame *frames;    /* PYSTACK_MAX_FRAMES */
    uint64_t *places;              /* their addresses */
    struct pystack_raw_frame *raw; /* PYSTACK_MAX_RAW */
    uint8_t *chunk[2];             /* two copies of the newest chunk, PYSTACK_CHUNK_MAX each */
    uint64_t chunk_addr;
    size_t chunk_len;
    struct pystack_tid *tids; /* PYSTACK_MAX_THREADS, of the last listing */
    pid_t *numbers;           /* PYSTACK_MAX_THREADS */
    size_t n_tids;
    /* the last list of threads lacks a GIL holder, or whether there is one is unknown */
    bool holder_unlisted;
    struct pystack_mark marks[PYSTACK_MAX_MARKS]; /* as of the last list of threads */
    size_t n_marks;                               /* 0: they would not fit */
    uint64_t unborn,
        /* a thread state whose thread had not begun in the last list (0 none), and since when */
        unborn_ns;
    /* previous snapshot */
    uint64_t seq;
    uint64_t until_ns;                          /* deadline of the present snapshot */
    struct pystack_clock *clocks, *clocks_next; /* PYSTACK_MAX_THREADS each */
    size_t n_clocks;
    struct pystack_rate process_rate;
    double started_at;
    struct pystack_asker asker;
    pid_t main_tid; /* in the target's numbering */
    /* MODEL_FRAME_ENTRY follows the frames where a call of the interpreter's loop ends */
    bool entries;
    struct native_request native_request;
    struct native *native; /* NULL: native frames were never requested */
    /* of a thread that sleeps or was stopped; allocated with `native` */
    struct native_copy *native_copy;
    struct native_hint *native_hints;  /* NATIVE_HINTS; ends of threads' stacks */
    size_t native_hint;                /* of the thread being read */
    struct model_frame *native_frames; /* NATIVE_MAX_FRAMES; of the last thread read */
    size_t n_native_frames;
    struct waits *waits;     /* waits.h; NULL: no snapshot so far */
    struct loaders *loaders; /* loaders.c; NULL: no search so far */
};

/* snapshot.c: CPU time of a thread, in our numbering. */
uint64_t pystack_thread_cpu(const struct pystack *ps, pid_t tid, const struct procfs_stat *st);

/* snapshot.c: true if the present snapshot has taken longer than it may. */
bool pystack_is_late(const struct pystack *ps);

/* pystack.c: pystack_open by one strategy alone (NULL: all), so that tests can try each. */
struct pystack *pystack_open_by(pid_t pid, const char *strategy, struct err *e);

/* pystack.c: read from `mem`, laid out as in `off`, with _PyRuntime at `runtime`, without
 * discovery. The kernel's facts are those of this process. For tests and fuzzing. NULL without
 * memory. */
struct pystack *pystack_open_memory(const struct mem *mem, const struct pystack_offsets *off,
                                    uint64_t runtime);

/* gil.c: address of the GIL of the interpreter at `interp`. 0 or -1. */
int pystack_find_gil(struct pystack *ps, uint64_t interp, uint64_t *gil);

/* attached.c: distance from pthread_self to the word in which a thread keeps the thread state that
 * it is attached with; the same for all threads, 0 unknown. From 3.13 on, with a GIL: there a thread
 * sets the word after it has taken the GIL, and clears it before it lets go. Of this process; called
 * by a thread that runs no Python, other than the main thread. Calls a function of Python's that
 * returns that word. */
int64_t pystack_find_attached(struct pystack *ps);

/* resident.c: True if what the loader has mapped as `info` contains `addr`; `*base`: its lowest address. */
struct dl_phdr_info;
bool pystack_image_has(const struct dl_phdr_info *info, uint64_t addr, uint64_t *base);

/* resident.c: where the runtime's variables lie, [*from, *to), if they stay as long as the process:
 * the program is a `python`, and they are its own, or those of a library that was loaded with it.
 * Equal if that is not certain. Of this process, from 3.11 on, with a GIL. */
void pystack_find_resident(struct pystack *ps, uint64_t *from, uint64_t *to);

/* threads.c: the number that distinguishes a thread state from a later one at the same address.
 * 0 or -1. */
int pystack_read_serial(struct pystack *ps, const struct pystack_thread *t, uint64_t *serial);

/* gil.c: how often the GIL at `gil` went to another thread. 0, or -1 if unknown. */
int pystack_read_gil_switches(struct pystack *ps, uint64_t gil, uint64_t *switches);

/* gil.c: whether the GIL at `gil` is in use: 1, 0 or MODEL_UNKNOWN. */
int8_t pystack_read_gil_enabled(struct pystack *ps, uint64_t gil);

/* gil.c: address of the flag of the interpreter at `interp` that it collects garbage; 0 unknown. */
uint64_t pystack_find_collecting(const struct pystack *ps, uint64_t interp);

/* gil.c: whether the interpreter collects garbage: 1, 0 or MODEL_UNKNOWN. */
int8_t pystack_read_collecting(struct pystack *ps, uint64_t interp);

/* gil.c: thread state that holds the GIL at `gil`: its address, 0 nobody. 0 or -1. */
int pystack_read_gil_holder(struct pystack *ps, uint64_t gil, uint64_t *tstate);

/* threads.c: list the OS threads into ps->tids. Total number (more than ps->n_tids: not all
 * fit), or -1 with errno. */
ssize_t pystack_list_tids(struct pystack *ps);

/* threads.c: the target's number of the OS thread whose pthread_self is `ident`; 0 unknown.
 * Finds the offset when needed. */
int64_t pystack_tid_of_ident(struct pystack *ps, uint64_t ident);

/* threads.c: is process `pid` in another pid namespace than we are? */
bool pystack_in_other_namespace(pid_t pid);

/* frames.c: like pystack_read_frames, within a call that has started (pystack_codes_begin).
 * `retry_moved`: if the thread moved in between, try again. */
ssize_t pystack_walk_frames(struct pystack *ps, const struct pystack_thread *t, struct arena *arena,
                            struct model_frame **out, bool *torn, bool *truncated, bool retry_moved);

/* frames.c: the innermost frame of a thread state (0: none); the frame at `addr`. 0 or -1. */
int pystack_read_first_frame(struct pystack *ps, uint64_t tstate, uint64_t *frame);
int pystack_read_raw_frame(struct pystack *ps, uint64_t addr, struct pystack_raw_frame *f);

/* Parse the frame with these bytes; `addr` is not changed. Async-signal-safe. */
static inline void pystack_parse_frame(const struct pystack_offsets *o, const uint8_t *bytes,
                                       struct pystack_raw_frame *f) {
    bool object = o->frame_style == PYSTACK_FRAME_OBJECT;
    f->previous = pystack_get_u64(bytes, o->frame_previous);
    f->code = pystack_get_u64(bytes, o->frame_code) & ~(uint64_t)o->tag_bits;
    f->tlbc = o->code_tlbc ? (uint32_t)pystack_get_i32(bytes, o->frame_tlbc_index) : 0;
    f->instr = object ? (uint64_t)(int64_t)pystack_get_i32(bytes, o->frame_instr)
                      : pystack_get_u64(bytes, o->frame_instr);
    f->owner = object ? 0 : bytes[o->frame_owner];
    /* is_entry */
    f->entry = o->minor == 11 && o->frame_owner > 0 && bytes[o->frame_owner - 1] != 0;
}

/* True if the frame stands for an entry into C, not for a function. */
static inline bool pystack_is_shim(const struct pystack_offsets *o, const struct pystack_raw_frame *f) {
    return o->frame_style != PYSTACK_FRAME_OBJECT &&
           (f->owner == o->owner_shim || f->owner == o->owner_bottom);
}

/* True if a call of the interpreter's loop (_PyEval_EvalFrameDefault) ends with this frame, seen
 * from within. Up to 3.10 each call runs one frame; 3.11 marks the frame it began with, later
 * ones put a frame that stands for no function there. In 3.15 the chain ends in such a frame of
 * the thread state, which no call has entered: it is at no instruction (Python/pystate.c). */
static inline bool pystack_ends_entry(const struct pystack_offsets *o, const struct pystack_raw_frame *f) {
    if (o->frame_style == PYSTACK_FRAME_OBJECT)
        return true;
    return o->minor == 11 ? f->entry : f->owner == o->owner_shim && f->instr != 0;
}

/* frames.c: mark the end of an entry in ps->frames, if requested. 0, or 1 if there is no more
 * room. */
int pystack_put_entry(struct pystack *ps, const struct pystack_raw_frame *f, size_t *n);

/* frames.c: the byte of the code that the frame is at; negative before the first. 0, or -1 if the
 * instruction is not of this code. */
int pystack_frame_position(struct pystack_reader *r, const struct pystack_raw_frame *f,
                           const struct pystack_code *code, int64_t *at);

/* frames.c: append the frame's function to ps->frames, which has `*n`; one that has not begun is
 * left out. 0, 1 if there is no more room, -1 if the frame is not of this code. */
int pystack_put_frame(struct pystack *ps, const struct pystack_raw_frame *f, struct pystack_code *code,
                      size_t *n);

/* names.c: give the threads their names, copied to `arena`. Reads them again when they are old,
 * or sooner if one is missing. */
void pystack_names_put(struct pystack *ps, struct pystack_thread *threads, size_t n, struct arena *arena);
void pystack_names_fini(struct pystack_names *names);

/* snapshot.c: as pystack_walk_frames while the thread stands still, if there is a stopper
 * (pystack_set_stopper). */
ssize_t pystack_walk_stopped(struct pystack *ps, const struct pystack_thread *t, struct arena *arena,
                             struct model_frame **out, bool *torn, bool *truncated, bool retry_moved);

/* facts.c: public part of the version that the text of torch/version.py gives: "2.13.0" of
 * "2.13.0+cpu". 0 or -1. */
int pystack_parse_torch_version(const char *text, char *buf, size_t cap);

/* threads.c: call `fn` with each interpreter until it returns non-zero. Returns that value, or
 * 0; -1 if the list is broken. */
int pystack_each_interpreter(struct pystack *ps,
                             int (*fn)(struct pystack *ps, uint64_t interp, int64_t id, void *arg),
                             void *arg);

/* ---- snapshot.c: native frames ---- */

/* After pystack_native_begin and the thread's Python frames: put the native frames before them.
 * `copied` is the result of that call; `moved`: it has run since. */
void pystack_native_attach(struct pystack *ps, pid_t outer_tid, bool copied, bool moved,
                           struct model_thread *t, struct arena *arena);

void pystack_native_fini(struct pystack *ps);

/* waits.c */
void pystack_waits_fini(struct pystack *ps);

#endif
