/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame_vars: variables of a thread's own frames, read by the thread itself, many times: at each
 * training step.
 *
 * The thread stands still while it reads, and so do its frames and what they refer to, with or
 * without the GIL. The names to read are set in advance; their places in a function are found
 * once and remembered. Nothing is locked or allocated, no Python is run, no reference taken;
 * memory is read as in pystack/read_cache.h. One thread at a time.
 */
#ifndef PYSTACK_FRAME_VARS_H
#define PYSTACK_FRAME_VARS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pystack/read_cache.h"
#include "base/watch.h"
#include "pystack/dicts.h"
#include "pystack/pystack.h"
#include "pystack/scalars.h"

#define PYSTACK_FRAME_VARS_FRAMES 48 /* innermost ones that are read */
#define PYSTACK_FRAME_VARS_CODES 64  /* functions that are remembered */
#define PYSTACK_FRAME_VARS_NAMES 48  /* names that can be read */
#define PYSTACK_FRAME_VARS_NAME 64
#define PYSTACK_FRAME_VARS_PLACES 16 /* steps of paths that are remembered */
#define PYSTACK_FRAME_VARS_FUNC 128

/* What distinguishes a code object from another at the same address. */
struct pystack_frame_vars_words {
    uint64_t name, file, names, qualname;
    uint64_t flags; /* co_flags */
};

/* Places of the names in a function. */
struct pystack_frame_vars_code {
    uint64_t addr; /* 0 free */
    struct pystack_frame_vars_words words;
    bool in_dict; /* of a module: its variables are in a dict, of which these are known: */
    struct pystack_dict_table dict;
    char func[PYSTACK_FRAME_VARS_NAME], file[256];
    char qualname[PYSTACK_FRAME_VARS_FUNC]; /* "" before 3.11 */
    int32_t at[PYSTACK_FRAME_VARS_NAMES];   /* slot or entry; -1 none */
    bool cell[PYSTACK_FRAME_VARS_NAMES];
    uint64_t used, sure,
        /* numbers of readings: it was met; its words were confirmed; its names were confirmed */
        named;
};

struct pystack_frame_vars_frame {
    uint64_t addr;
    struct pystack_frame_vars_code *code;
    bool opened;   /* of a module: its dict was looked up in this reading */
    uint64_t dict; /* 0: there is no readable one */
    struct pystack_dict_table table;
};

/* Where a step of a path led last. */
struct pystack_frame_vars_place {
    const struct watch_part *part; /* NULL: free */
    uint32_t index;
};

struct pystack_frame_vars {
    struct pystack_reader reader;
    struct mem mem; /* never through a descriptor */
    struct read_cache cache;
    struct values values;
    uint64_t readings;
    size_t n_names;
    char names[PYSTACK_FRAME_VARS_NAMES][PYSTACK_FRAME_VARS_NAME];
    size_t n, max_frames; /* that are read; after init, all that there is room for */
    struct pystack_frame_vars_frame frames[PYSTACK_FRAME_VARS_FRAMES]; /* innermost first */
    uint64_t sure_ns; /* last reading in which all functions were examined */
    struct pystack_frame_vars_place places[PYSTACK_FRAME_VARS_PLACES];
    size_t next_place;
    struct pystack_frame_vars_code codes[PYSTACK_FRAME_VARS_CODES];
};

/* Prepare readings of the process that `ps` reads, which is this one. `torch`: its version; ""
 * none. */
void pystack_frame_vars_init(struct pystack_frame_vars *l, struct pystack *ps, const char *torch);

/* Set the names that can be read: a name's number is its index in this list. */
void pystack_frame_vars_set_names(struct pystack_frame_vars *l, const char *const *names, size_t n);

/* Read the frames of thread state `tstate`, which is the calling thread's. Returns their number,
 * l->n. */
size_t pystack_frame_vars_begin(struct pystack_frame_vars *l, uint64_t tstate);

/* The object of a variable of frame `frame`; 0 if there is none of that name, or it has no
 * value. */
uint64_t pystack_frame_vars_local(struct pystack_frame_vars *l, size_t frame, size_t name);

/* Follow `parts` from an object: attributes that instances have themselves, items of lists,
 * tuples and dicts; for torch modules their parameters, buffers and modules too. 0 if there is
 * none. */
uint64_t pystack_frame_vars_follow(struct pystack_frame_vars *l, uint64_t object,
                                   const struct watch_part *parts, size_t n);

/* True if the frame is of the function in an expression: "train", "Trainer.fit",
 * "module.Trainer.fit"; "" matches every one. */
bool pystack_frame_vars_is_func(struct pystack_frame_vars *l, size_t frame, const char *func);

#endif
