/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pystack_internal: what the files of pystack share.
 *
 * One struct pystack belongs to one thread. Addresses are of the target; nothing read from it is trusted.
 */
#ifndef PYSTACK_PYSTACK_INTERNAL_H
#define PYSTACK_PYSTACK_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "pystack/codes.h"
#include "pystack/dicts.h"
#include "pystack/native.h"
#include "pystack/pystack.h"
#include "pystack/reader.h"

#define PYSTACK_MAX_INTERPRETERS 256
#define PYSTACK_NAME_MAX 256                     /* bytes of a thread's name */
#define PYSTACK_MAX_RAW (2 * PYSTACK_MAX_FRAMES) /* with those that stand for no function */
#define PYSTACK_MAX_MARKS 9
#define PYSTACK_VERIFIED 64     /* innermost frames that are looked at twice */
#define PYSTACK_CHUNK_MAX 65536 /* bytes of the data stack copied at once */

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
    uint64_t tried_ns;                               /* when they were last read or tried to be; 0 never */
    uint64_t took_ns;                                /* to read them then */
    unsigned failures;                               /* in a row */
    bool without_threading;                          /* the main interpreter has not imported it */
    uint32_t hint_threading, hint_active, hint_name; /* places in dicts, see pystack_dict_find */
};

/* CPU time at two earlier moments, the older first; at_ns 0: there was none. A rate is one of a second or more, however many look, and
 * however often. */
struct pystack_rate {
    uint64_t cpu_ns[2], at_ns[2];
};

/* What was seen of an OS thread at the previous snapshot. */
struct pystack_clock {
    pid_t tid; /* as we number it */
    uint64_t cpu_ns;
    struct pystack_rate rate;
    uint64_t started; /* clock ticks since boot: tells a thread from its successor of the same number */
    enum model_gil gil;
    uint64_t gil_since_ns; /* it waits for or holds the GIL at least since then; 0 unknown */
    uint64_t gil_switches, gil_tstate;
};

/* An OS thread of the target: our number for it and its own. They differ only across pid namespaces. */
struct pystack_tid {
    pid_t outer;
    int64_t inner;
};

/* A word that changes when threads or interpreters are made. */
struct pystack_mark {
    uint64_t addr, value;
};

/* A frame as it lies in memory. */
struct pystack_raw_frame {
    uint64_t addr, previous, code;
    uint64_t instr; /* address of an instruction (3.11 on) or f_lasti */
    uint32_t tlbc;  /* number of the copy of the code that is executed; 0 the one in the code object */
    uint8_t owner;
    bool entry; /* 3.11: a call of the interpreter's loop began with it */
};

struct pystack {
    struct pystack_reader reader;
    struct pystack_info info;
    pid_t pid; /* for procfs: 0 is ourselves */
    bool self;
    struct mem_identity identity;                /* of the program that was opened; of another process */
    bool other_namespace;                        /* the target numbers its threads otherwise than we do */
    uint64_t tstate_current;                     /* 3.6: addresses of _PyThreadState_Current, */
    uint64_t static_gil;                         /* of the first of the GIL's primitives (0 not known), */
    uint64_t static_switches, static_collecting; /* of gil_switch_number and collecting (0 not known), */
    uint64_t static_gc_stats;                    /* of generation_stats (0 not known), */
    uint64_t static_other; /* and of the other variable that may be interp_head; 0 none */
    int pthread_tries;     /* searches for the offset so far */
    int32_t pthread_tid;   /* offset of the thread id in struct pthread; -1 not found (yet) */
    struct pystack_codes codes;
    struct pystack_names names;
    struct pystack_stopper hold; /* stop NULL: none */
    uint64_t stopped_ns;         /* of the thread read last */
    bool
        standing; /* the thread that is read was stopped where it ran, perhaps within a change of its frames */
    struct model_frame *frames;    /* PYSTACK_MAX_FRAMES */
    uint64_t *places;              /* where each of them lies */
    struct pystack_raw_frame *raw; /* PYSTACK_MAX_RAW */
    uint8_t *chunk[2];             /* two copies of the newest chunk, PYSTACK_CHUNK_MAX each */
    uint64_t chunk_addr;
    size_t chunk_len;
    struct pystack_tid *tids; /* PYSTACK_MAX_THREADS, of the last listing */
    pid_t *numbers;           /* PYSTACK_MAX_THREADS */
    size_t n_tids;
    bool
        holder_unlisted; /* the last list of threads lacks one that holds a GIL, or whether one is held is not known */
    struct pystack_mark marks[PYSTACK_MAX_MARKS]; /* as of the last list of threads */
    size_t n_marks;                               /* 0: they would not fit */
    uint64_t unborn,
        unborn_ns; /* a thread state whose thread had not begun in the last list (0 none), since when */
    /* previous snapshot */
    uint64_t seq;
    uint64_t until_ns;                          /* when the snapshot that is made is left as it is */
    struct pystack_clock *clocks, *clocks_next; /* PYSTACK_MAX_THREADS each */
    size_t n_clocks;
    struct pystack_rate process_rate;
    double started_at;
    struct pystack_asker asker;
    pid_t main_tid; /* as the target numbers it */
    bool entries;   /* frames are followed by MODEL_FRAME_ENTRY where a call of the interpreter's loop ends */
    struct native_request native_wish;
    struct native *native;             /* NULL: native frames were never asked for */
    struct native_copy *native_copy;   /* of a thread that sleeps or was held; allocated with `native` */
    struct native_hint *native_hints;  /* NATIVE_HINTS; where stacks of threads end */
    size_t native_hint;                /* of the thread being read */
    struct model_frame *native_frames; /* NATIVE_MAX_FRAMES; of the thread that was read last */
    size_t n_native_frames;
};

/* snapshot.c: has what is read for it taken longer than it may? */
bool pystack_is_late(const struct pystack *ps);

/* pystack.c: pystack_open by one strategy alone (NULL: all). Lets tests try each. */
struct pystack *pystack_open_by(pid_t pid, const char *strategy, struct err *e);

/* pystack.c: read from `mem`, laid out as `off` says, with _PyRuntime at `runtime`; nothing is discovered. The kernel's facts
 * are those of this process. For tests and fuzzing. NULL without memory. */
struct pystack *pystack_open_memory(const struct mem *mem, const struct pystack_offsets *off,
                                    uint64_t runtime);

/* gil.c: address of the GIL of the interpreter at `interp`. 0 or -1. */
int pystack_find_gil(struct pystack *ps, uint64_t interp, uint64_t *gil);

/* threads.c: the number that tells a thread state from a later one in the same place. 0 or -1. */
int pystack_read_serial(struct pystack *ps, const struct pystack_thread *t, uint64_t *serial);

/* gil.c: how often the GIL at `gil` has gone to another thread. 0, or -1: it is not known. */
int pystack_read_gil_switches(struct pystack *ps, uint64_t gil, uint64_t *switches);

/* gil.c: is there a GIL at `gil` that is in use? 1, 0 or MODEL_UNKNOWN. */
int8_t pystack_read_gil_enabled(struct pystack *ps, uint64_t gil);

/* gil.c: where the interpreter at `interp` says whether it collects garbage; 0 not known. */
uint64_t pystack_find_collecting(const struct pystack *ps, uint64_t interp);

/* gil.c: does the interpreter collect garbage? 1, 0 or MODEL_UNKNOWN. */
int8_t pystack_read_collecting(struct pystack *ps, uint64_t interp);

/* gil.c: thread state that holds the GIL at `gil`: its address, 0 nobody. 0 or -1. */
int pystack_read_gil_holder(struct pystack *ps, uint64_t gil, uint64_t *tstate);

/* threads.c: list the OS threads into ps->tids. Total number (more than ps->n_tids: not all fit), or -1 with errno. */
ssize_t pystack_list_tids(struct pystack *ps);

/* threads.c: the target's number of the OS thread whose pthread_self is `ident`; 0 unknown. Finds the offset when needed. */
int64_t pystack_tid_of_ident(struct pystack *ps, uint64_t ident);

/* threads.c: is process `pid` in another pid namespace than we are? */
bool pystack_in_other_namespace(pid_t pid);

/* frames.c: as pystack_read_frames within a call that began before (pystack_codes_begin). `retry_moved`: when the thread
 * moved meanwhile, try again. */
ssize_t pystack_walk_frames(struct pystack *ps, const struct pystack_thread *t, struct arena *arena,
                            struct model_frame **out, bool *torn, bool *truncated, bool retry_moved);

/* frames.c: the innermost frame of a thread state (0: none); the frame at `addr`. 0 or -1. */
int pystack_read_first_frame(struct pystack *ps, uint64_t tstate, uint64_t *frame);
int pystack_read_raw_frame(struct pystack *ps, uint64_t addr, struct pystack_raw_frame *f);

/* The frame whose bytes these are; `addr` is not touched. Async-signal-safe. */
static inline void pystack_parse_frame(const struct pystack_offsets *o, const uint8_t *bytes,
                                       struct pystack_raw_frame *f) {
    bool object = o->frame_style == PYSTACK_FRAME_OBJECT;
    f->previous = pystack_get_u64(bytes, o->frame_previous);
    f->code = pystack_get_u64(bytes, o->frame_code) & ~(uint64_t)o->tag_bits;
    f->tlbc = o->code_tlbc ? (uint32_t)pystack_get_i32(bytes, o->frame_tlbc_index) : 0;
    f->instr = object ? (uint64_t)(int64_t)pystack_get_i32(bytes, o->frame_instr)
                      : pystack_get_u64(bytes, o->frame_instr);
    f->owner = object ? 0 : bytes[o->frame_owner];
    f->entry = o->minor == 11 && o->frame_owner > 0 && bytes[o->frame_owner - 1] != 0; /* is_entry */
}

/* Does the frame stand for an entry into C, not for a function? */
static inline bool pystack_is_shim(const struct pystack_offsets *o, const struct pystack_raw_frame *f) {
    return o->frame_style != PYSTACK_FRAME_OBJECT &&
           (f->owner == o->owner_shim || f->owner == o->owner_bottom);
}

/* Does a call of the interpreter's loop (_PyEval_EvalFrameDefault) end with this frame, seen from within? Up to 3.10 each
 * call runs one frame; 3.11 marks the frame it began with, later ones put a frame that stands for no function there. In 3.15 the
 * chain ends in such a frame of the thread state, which no call has entered: it is at no instruction (Python/pystate.c). */
static inline bool pystack_ends_entry(const struct pystack_offsets *o, const struct pystack_raw_frame *f) {
    if (o->frame_style == PYSTACK_FRAME_OBJECT)
        return true;
    return o->minor == 11 ? f->entry : f->owner == o->owner_shim && f->instr != 0;
}

/* frames.c: mark the end of an entry in ps->frames, where that is asked for. 0, or 1 when there is no more room. */
int pystack_put_entry(struct pystack *ps, const struct pystack_raw_frame *f, size_t *n);

/* frames.c: append what the frame is of to ps->frames, which holds `*n`; one that has not begun is left out. 0, 1 when there
 * is no more room, -1 when the frame is not of this code. */
int pystack_put_frame(struct pystack *ps, const struct pystack_raw_frame *f, struct pystack_code *code,
                      size_t *n);

/* names.c: give the threads their names, copied to `arena`. Reads them again when they are old, or sooner if one is missed. */
void pystack_names_put(struct pystack *ps, struct pystack_thread *threads, size_t n, struct arena *arena);
void pystack_names_fini(struct pystack_names *names);

/* snapshot.c: as pystack_walk_frames while the thread stands still, where there is something to hold it (pystack_set_stopper). */
ssize_t pystack_walk_stopped(struct pystack *ps, const struct pystack_thread *t, struct arena *arena,
                             struct model_frame **out, bool *torn, bool *truncated, bool retry_moved);

/* facts.c: public part of the version that the text of torch/version.py gives: "2.13.0" of "2.13.0+cpu". 0 or -1. */
int pystack_parse_torch_version(const char *text, char *buf, size_t cap);

/* threads.c: call `fn` with each interpreter until it returns non-zero: that value, or 0. -1 when the list is broken. */
int pystack_each_interpreter(struct pystack *ps,
                             int (*fn)(struct pystack *ps, uint64_t interp, int64_t id, void *arg),
                             void *arg);

/* ---- snapshot.c: native frames ---- */

/* After pystack_native_begin and the thread's Python frames: put the native frames before them. `copied` is what that said,
 * `moved`: it has run since. */
void pystack_native_attach(struct pystack *ps, pid_t outer_tid, bool copied, bool moved,
                           struct model_thread *t, struct arena *arena);

void pystack_native_fini(struct pystack *ps);

#endif
