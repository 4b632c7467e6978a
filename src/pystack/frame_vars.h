/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame_vars: variables of a thread's own frames, looked at by the thread itself, many times: at each step of a training.
 *
 * The thread stands still while it looks, so its frames and what they refer to do too, with or without the GIL. Names that
 * may be asked for are set before; where they are in a function is found once and remembered. Nothing is locked or
 * allocated, no Python is run, no reference taken; memory is read as base/read_cache.h does. One thread at a time.
 */
#ifndef PYSTACK_FRAME_VARS_H
#define PYSTACK_FRAME_VARS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/read_cache.h"
#include "base/watch.h"
#include "pystack/dicts.h"
#include "pystack/pystack.h"
#include "pystack/scalars.h"

#define PYSTACK_FRAME_VARS_FRAMES 48 /* innermost ones that are looked at */
#define PYSTACK_FRAME_VARS_CODES 64  /* functions that are remembered */
#define PYSTACK_FRAME_VARS_NAMES 48  /* that may be asked for */
#define PYSTACK_FRAME_VARS_NAME 64
#define PYSTACK_FRAME_VARS_PLACES 16 /* steps of paths that are remembered */
#define PYSTACK_FRAME_VARS_FUNC 128

/* What tells a code object from another at the same address. */
struct pystack_frame_vars_words {
    uint64_t name, file, names, qualname;
    uint64_t flags; /* co_flags */
};

/* Where the names are in a function. */
struct pystack_frame_vars_code {
    uint64_t addr; /* 0 free */
    struct pystack_frame_vars_words words;
    bool in_dict; /* of a module: its variables lie in a dict, of which this was seen: */
    struct pystack_dict_table dict;
    char func[PYSTACK_FRAME_VARS_NAME], file[256];
    char qualname[PYSTACK_FRAME_VARS_FUNC]; /* "" before 3.11 */
    int32_t at[PYSTACK_FRAME_VARS_NAMES];   /* slot or entry; -1 none */
    bool cell[PYSTACK_FRAME_VARS_NAMES];
    uint64_t used, sure,
        told; /* numbers of looks: it was met; its words were seen to be what they were; so were its names */
};

struct pystack_frame_vars_frame {
    uint64_t addr;
    struct pystack_frame_vars_code *code;
    bool opened;   /* of a module: its dict was looked for in this look, and: */
    uint64_t dict; /* 0: there is none that can be read */
    struct pystack_dict_table table;
};

/* Where a step of a path led the last time. */
struct pystack_frame_vars_place {
    const struct watch_part *part; /* NULL: free */
    uint32_t index;
};

struct pystack_frame_vars {
    struct pystack_reader reader;
    struct read_cache recall;
    struct values values;
    uint64_t looks;
    size_t n_names;
    char names[PYSTACK_FRAME_VARS_NAMES][PYSTACK_FRAME_VARS_NAME];
    size_t n, max_frames; /* that are looked at; after init, all that there is room for */
    struct pystack_frame_vars_frame frames[PYSTACK_FRAME_VARS_FRAMES]; /* innermost first */
    uint64_t sure_ns; /* when all functions were looked at, whatever was known of them */
    struct pystack_frame_vars_place places[PYSTACK_FRAME_VARS_PLACES];
    size_t next_place;
    struct pystack_frame_vars_code codes[PYSTACK_FRAME_VARS_CODES];
};

/* For looks at the process that `ps` reads, which is this one. `torch`: its version; "" none. */
void pystack_frame_vars_init(struct pystack_frame_vars *l, struct pystack *ps, const char *torch);

/* What may be asked for: numbers of names are places in this list. */
void pystack_frame_vars_set_names(struct pystack_frame_vars *l, const char *const *names, size_t n);

/* The frames of thread state `tstate`, which is the calling thread's. Their number, l->n. */
size_t pystack_frame_vars_begin(struct pystack_frame_vars *l, uint64_t tstate);

/* The object that a variable of frame `frame` refers to; 0: there is none of that name, or it has no value. */
uint64_t pystack_frame_vars_local(struct pystack_frame_vars *l, size_t frame, size_t name);

/* From an object along `parts`: attributes of instances that they keep themselves, items of lists, tuples and dicts; of modules
 * of torch their parameters, buffers and modules too. 0: there is none. */
uint64_t pystack_frame_vars_follow(struct pystack_frame_vars *l, uint64_t object,
                                   const struct watch_part *parts, size_t n);

/* Is the frame of the function that an expression names: "train", "Trainer.fit", "module.Trainer.fit"? "" is every one. */
bool pystack_frame_vars_is_func(struct pystack_frame_vars *l, size_t frame, const char *func);

#endif
