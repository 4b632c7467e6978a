/* SPDX-License-Identifier: Apache-2.0 */
/*
 * self: a thread's own frames, copied by the thread itself within a signal handler.
 *
 * A thread cannot change its frames while it copies them, so the copy is of one moment.
 * Everything here up to pystack_self_decode is async-signal-safe: no lock, no allocation, a bounded
 * number of steps, no read that can fault. Memory is read through the kernel, or directly where it
 * cannot go away while the handler runs. The owner of the pystack turns the copy into names and
 * lines later.
 */
#ifndef PYSTACK_SELF_H
#define PYSTACK_SELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "pystack/codes.h"
#include "pystack/native.h"
#include "pystack/pystack.h"
#include "pystack/reader.h"

/* including those that stand for no function */
#define PYSTACK_SELF_FRAMES (PYSTACK_MAX_FRAMES + 64)
/* of memory copied, see struct pystack_self_region */
#define PYSTACK_SELF_BYTES 49152
#define PYSTACK_SELF_REGIONS 48
#define PYSTACK_SELF_KEYS 24
#define PYSTACK_SELF_SPANS 3

/* A frame as it was in memory. */
struct pystack_self_frame {
    uint64_t addr;
    uint64_t code;
    uint64_t instr; /* address of an instruction (3.11 on) or f_lasti */
    uint32_t tlbc;  /* number of the executed copy of the code */
    uint16_t key;   /* keys[key - 1] describes its code; 0 none */
    uint8_t owner;
    bool entry; /* 3.11: see struct pystack_raw_frame */
};

/* A piece of copied memory. What was used of those of the last time is read first, all together. */
struct pystack_self_region {
    uint64_t addr;
    uint32_t len, at;            /* bytes, and their offset in `bytes` */
    uint64_t used_from, used_to; /* addresses; used_to 0: nothing was used */
};

/* Memory that the thread reads directly. */
struct pystack_self_span {
    uint64_t from, to;
};

enum pystack_self_end {
    PYSTACK_SELF_WHOLE = 0,
    PYSTACK_SELF_TRUNCATED, /* the outermost frames are missing */
    PYSTACK_SELF_BROKEN,    /* an invalid link: to be asked again */
    PYSTACK_SELF_GONE,      /* the thread state no longer belongs to this thread */
    /* this thread may not read memory through the kernel: a seccomp filter of its own */
    PYSTACK_SELF_REFUSED,
};

/* True if threads of this Python can copy themselves. Whether each of its instructions leaves
 * consistent frames was examined and measured version by version. */
bool pystack_self_supports(const struct pystack_info *info);

/* Code objects that the decoder has seen lately: the copier need not describe them. Written by
 * the owner of the pystack, read by handlers; a stale answer costs an unknown frame at worst. */
#define PYSTACK_KNOWN_SLOTS 8192
struct pystack_known {
    uint64_t addrs[PYSTACK_KNOWN_SLOTS];
};

struct pystack_self {
    /* set before */
    struct pystack_reader reader; /* of this process, this copy's own */
    struct pystack_thread thread;
    uint64_t gil; /* address of the GIL (3.6: of _PyThreadState_Current); 0 unknown */
    uint64_t gc;  /* and of the flag that garbage is being collected; 0 unknown */
    const struct pystack_known *known;
    struct native_copy *native; /* registers and stack go there too; NULL: not requested */
    /* The thread's own stack, of which all from the stack pointer on is mapped as long as it lives.
     * Set after pystack_self_prepare; equal if that is not certain. */
    uint64_t stack_low, stack_high;
    int64_t attached;                  /* see pystack_find_attached */
    struct pystack_self_span resident; /* see pystack_find_resident */
    bool own;                          /* `thread` is whichever thread copies: see pystack_self_copy_own */
    /* the copy */
    enum pystack_self_end end;
    enum model_gil gil_state; /* held, none or unknown: a running thread does not wait */
    int8_t gc_state;          /* 1 it collects garbage, 0 not, MODEL_UNKNOWN */
    uint64_t taken_ns;        /* monotonic */
    size_t n_frames;
    size_t n_keys;
    size_t n_regions, n_bytes;
    size_t last;                 /* the last region that was used */
    bool is_read;                /* the regions were read */
    bool is_attached;            /* the thread holds the GIL */
    bool is_direct;              /* its thread state cannot go away */
    uint64_t chunk, chunk_limit; /* of the data stack, as they were found to belong together */
    bool is_first_chunk;         /* it has no other below it */
    size_t n_spans;
    struct pystack_self_span spans[PYSTACK_SELF_SPANS];
    bool state_joined; /* the GIL's region has the collector's flag, too */
    /* the last region is replaced again and again */
    bool spilled;
    struct iovec remote[PYSTACK_SELF_REGIONS]; /* here, and not on the stack of the thread */
    bool cyclic;                               /* frames led back to one of them */
    uint64_t reads;                            /* calls of the kernel */
    struct pystack_self_region regions[PYSTACK_SELF_REGIONS];
    struct pystack_code_key keys[PYSTACK_SELF_KEYS];
    uint8_t bytes[PYSTACK_SELF_BYTES];
    struct pystack_self_frame frames[PYSTACK_SELF_FRAMES];
};

/* Prepare `s` for a copy of `t`. The results of an earlier copy of the same thread serve as a
 * hint. Not in a handler. */
void pystack_self_prepare(struct pystack *ps, struct pystack_self *s, const struct pystack_thread *t,
                          const struct pystack_known *known);

/* The same before one more copy of the same thread, by its handler: what the last copy used is
 * read first. Async-signal-safe. */
void pystack_self_reuse(struct pystack_self *s);

/* Copy the calling thread's frames. `stack_pointer` is where it was interrupted. Async-signal-safe. */
void pystack_self_copy(struct pystack_self *s, uint64_t stack_pointer);

/* Prepare `s`, with a `native` of NULL, for copies by any threads, one at a time. Not in a handler. */
void pystack_self_prepare_own(struct pystack *ps, struct pystack_self *s, const struct pystack_known *known);

/* Copy the calling thread's frames; it has the thread state at `tstate`. What is known of the GIL
 * and the collector is unknown then. Async-signal-safe. */
void pystack_self_copy_own(struct pystack_self *s, uint64_t tstate);

/* The copy as frames (innermost first) in `arena`. Frames whose code is no longer certain have
 * neither name nor line and are counted in `*unknown`. Returns their number, or -1 if the copy
 * is not valid. */
ssize_t pystack_self_decode(struct pystack *ps, const struct pystack_self *s, struct pystack_known *known,
                            struct arena *arena, struct model_frame **out, bool *truncated,
                            uint64_t *unknown);

/* What is decoded of a copy. */
struct pystack_self_result {
    uint64_t taken_ns;
    enum pystack_self_end end;
    enum model_gil gil_state;
    int8_t gc_state;
    size_t n_frames, n_keys;
    const struct pystack_self_frame *frames;
    const struct pystack_code_key *keys;
};

/* The same for copies that were all made before pystack_self_begin, without another function of pystack
 * in between: the texts that they share are in `arena` once. The frames are valid until the next
 * call. */
void pystack_self_begin(struct pystack *ps, struct arena *arena);
ssize_t pystack_self_decode_next(struct pystack *ps, const struct pystack_self_result *s,
                                 struct pystack_known *known, struct model_frame **out, bool *truncated,
                                 uint64_t *unknown);

#endif
