/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loaders: iterators of torch's DataLoader and their worker processes, found and read from memory.
 *
 * An iterator is mostly held by nothing but the loop that runs through it: on the stack of values of a frame, or of a
 * generator's; or it is `self` of a function that runs. So words of frames are looked at, whatever they are: one is an iterator
 * if what it points to has that type. Nothing is held, no GIL is needed, and of a job that hangs the same can be told. A word may
 * be left over from what was there before: what is read of an iterator that is gone does not hold together, and it is left out.
 * Sources: torch/utils/data/dataloader.py of 1.13 to 2.13, multiprocessing/queues.py, popen_fork.py, Modules/_multiprocessing/
 * semaphore.c, Objects/enumobject.c, genobject.c. Used by the pystack's thread.
 */
#ifndef PYSTACK_LOADERS_H
#define PYSTACK_LOADERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "pystack/pystack.h"

#define PYSTACK_LOADERS 16
#define PYSTACK_LOADER_WORKERS 128

/* A worker process, by its number. */
struct pystack_loader_worker {
    int64_t pid;         /* as the target numbers it; MODEL_UNKNOWN */
    int8_t active;       /* 1 the loader still asks it, 0 no longer, MODEL_UNKNOWN */
    int64_t outstanding; /* batches it was asked for that have not been taken out of the queue */
};

/* An iterator. Numbers MODEL_UNKNOWN are not known, or it has none. */
struct pystack_loader {
    uint64_t addr;    /* of the object: another may come to lie there when it is gone */
    bool processes;   /* it has worker processes; else batches are made where they are asked for */
    char dataset[64]; /* name of the class of its dataset; "" unknown */
    int64_t workers, prefetch, persistent;
    int64_t sent, received,
        outstanding; /* batches, as the iterator counts them: asked for, given out in turn, on the way */
    int64_t ready;   /* of these: made, and not yet taken */
    int64_t yielded; /* given to the loop since it began (again) */
    size_t n;        /* of `worker` */
    struct pystack_loader_worker worker[PYSTACK_LOADER_WORKERS];
};

/* Iterators that are found in frames of the threads, PYSTACK_LOADERS at most: their addresses. Looks at a few thousand words: some
 * milliseconds. Number, or -1 when the threads cannot be read. */
ssize_t pystack_find_loaders(struct pystack *ps, uint64_t *addrs);

/* Read the iterator at `addr`. 0, or -1: there is none (any more). */
int pystack_read_loader(struct pystack *ps, uint64_t addr, struct pystack_loader *out);

#endif
