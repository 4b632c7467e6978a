/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate: what a thread of this process checks before it asks for the GIL, and what it may touch
 * once it has it.
 *
 * A wait for the GIL cannot be given up, and one during finalisation ends or hangs the thread.
 * So the GIL is first read from memory. While it is held no thread of the main interpreter can
 * change a frame: the object of a variable is certain if its frame is among those of a live
 * thread state. Without a GIL (free-threaded builds) nothing here is certain, and nothing is
 * reported. Used by the pystack's thread.
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
    bool none;          /* this Python has no GIL */
    bool held;          /* by any thread */
    uint64_t holder;    /* address of the holder's thread state; 0 unknown */
    int64_t holder_tid; /* 0 unknown */
    /* of the holder's innermost frames and their variables: shows whether it progresses */
    uint64_t mark;
};

/* Read it. 0, or -1 if the interpreter cannot be read (it may be ending). */
int pystack_gate_read(struct pystack *ps, struct pystack_gate *out);

/* Address of the word that is not 0 during finalisation; 0 if this version has it elsewhere. */
uint64_t pystack_gate_word(const struct pystack *ps);

/* True if the holder changed or progressed between two readings: then it lets go when asked to. */
bool pystack_gate_moved(const struct pystack_gate *before, const struct pystack_gate *after);

/* With the GIL held: the addresses of the innermost code objects of the main interpreter's
 * threads, except that of thread state `but`. They live as long as the GIL is held. Returns
 * their number; -1 if a thread could not be read, or there are more than `cap`. */
ssize_t pystack_gate_codes(struct pystack *ps, uint64_t but, uint64_t *codes, size_t cap);

enum pystack_place_state {
    PYSTACK_PLACE_GONE = 0, /* the frame is gone, or the variable refers to another object */
    PYSTACK_PLACE_MOVED,    /* still there, but the frame has moved on since */
    PYSTACK_PLACE_SAME,
};

/* Live frames of one thread, for several places in a row. Start with zeros; valid while the GIL
 * is held. */
struct pystack_living {
    uint64_t tstate;
    uint64_t frames[PYSTACK_MAX_FRAMES];
    size_t n;
};

/* With the GIL held: whether the variable `name` still refers to the same object as when `l` was
 * read. `l->frame` and the local's `place` are as pystack_snapshot_locals left them. */
enum pystack_place_state pystack_place_check(struct pystack *ps, struct pystack_living *living,
                                             const struct model_locals *l, const struct model_local *local);

/* The same for the object that the variable refers to now, into `*object`. Gone: the frame is
 * gone, or the variable has no value. */
enum pystack_place_state pystack_place_read(struct pystack *ps, struct pystack_living *living,
                                            const struct model_locals *l, const struct model_local *local,
                                            uint64_t *object);

/* With the GIL held: call `fn` with every variable that has a value now, of the function in
 * whose frame `l` was read, until it returns false. For one that may be a cell (`cell`) the
 * object may be a cell with the value in it. 0, or -1 if the frame is gone, or is of a module or
 * class. */
int pystack_place_each(struct pystack *ps, const struct model_locals *l,
                       bool (*fn)(void *arg, const char *name, uint64_t object, bool cell), void *arg);

#endif
