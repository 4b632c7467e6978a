/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate: what a thread of this process looks at before it asks for the GIL, and what it may touch once it has it.
 *
 * A wait for the GIL cannot be given up, and one during finalisation ends or hangs the thread. So the GIL is looked at from
 * memory first. Once it is held no thread of the main interpreter can change a frame: what a variable refers to is certain
 * if its frame is among those of a living thread state. Without a GIL (free-threaded builds) nothing here is certain, and
 * nothing is said. Used by the pystack's thread.
 */
#ifndef PYSTACK_GATE_H
#define PYSTACK_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/model.h"
#include "pystack/pystack.h"

/* The main interpreter's GIL at one moment. */
struct pystack_gate {
    bool finalizing;
    bool none;          /* there is no GIL to wait for */
    bool held;          /* by somebody */
    uint64_t holder;    /* address of his thread state; 0 unknown */
    int64_t holder_tid; /* 0 unknown */
    uint64_t mark;      /* of his innermost frames and their variables: tells whether he gets on */
};

/* Look. 0, or -1 when the interpreter cannot be read (it may be going). */
int pystack_gate_read(struct pystack *ps, struct pystack_gate *out);

/* Address of the word that is not 0 while the interpreter is finalised; 0 when this version keeps it elsewhere. */
uint64_t pystack_gate_word(const struct pystack *ps);

/* Did the holder change, or get on, between two looks? Then he lets go when he is asked to. */
bool pystack_gate_moved(const struct pystack_gate *before, const struct pystack_gate *after);

/* With the GIL held: addresses of the code objects that the threads of the main interpreter are in, each thread's innermost, but not that of
 * thread state `but`. They live as long as the GIL is held. Their number; -1: a thread could not be read, or there are more than
 * `cap`. */
ssize_t pystack_gate_codes(struct pystack *ps, uint64_t but, uint64_t *codes, size_t cap);

enum pystack_place_state {
    PYSTACK_PLACE_GONE = 0, /* the frame is no more, or the variable refers to something else */
    PYSTACK_PLACE_MOVED,    /* still there, but the frame has gone on since */
    PYSTACK_PLACE_SAME,
};

/* Frames of one thread that were found to live, for several places in a row. Zeroed to begin; holds while the GIL does. */
struct pystack_living {
    uint64_t tstate;
    uint64_t frames[PYSTACK_MAX_FRAMES];
    size_t n;
};

/* With the GIL held: does the variable `name` still refer to the object it did when `l` was read? `l->frame` and the local's
 * `place` are as pystack_snapshot_locals left them. */
enum pystack_place_state pystack_place_check(struct pystack *ps, struct pystack_living *living,
                                             const struct model_locals *l, const struct model_local *local);

/* The same for what the variable refers to now, whatever that is: into `*object`. Gone: its frame is, or it has no value. */
enum pystack_place_state pystack_place_read(struct pystack *ps, struct pystack_living *living,
                                            const struct model_locals *l, const struct model_local *local,
                                            uint64_t *object);

/* With the GIL held: call `fn` with every variable of the function in whose frame `l` was read that has a value now, until it returns
 * false; in one that may be a cell (`cell`) there may be a cell object, with the value in it. 0, or -1: the frame is gone, or it is of
 * a module or class. */
int pystack_place_each(struct pystack *ps, const struct model_locals *l,
                       bool (*fn)(void *arg, const char *name, uint64_t object, bool cell), void *arg);

#endif
