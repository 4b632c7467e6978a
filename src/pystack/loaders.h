/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loaders: iterators of torch's DataLoader and their worker processes, found and read from
 * memory.
 *
 * Usually only the loop that runs through it refers to an iterator: it is on the value stack of
 * a frame or generator, or is `self` of a running function. So all words of frames are examined:
 * one is an iterator if what it points to has that type. No reference or GIL is needed, so it
 * works for a job that hangs. A stale word may remain; an iterator that is gone is not
 * consistent and is left out. Sources: torch/utils/data/dataloader.py of 1.13 to 2.13,
 * multiprocessing/queues.py, popen_fork.py, Modules/_multiprocessing/semaphore.c,
 * Objects/enumobject.c, genobject.c. Used by the pystack's thread.
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
    int64_t pid;         /* in the target's numbering; MODEL_UNKNOWN */
    int8_t active;       /* 1 the loader still uses it, 0 no longer, MODEL_UNKNOWN */
    int64_t outstanding; /* batches requested from it and not taken out of the queue */
};

/* An iterator. MODEL_UNKNOWN numbers are unknown, or do not apply. */
struct pystack_loader {
    uint64_t addr; /* of the object; reused when it is gone */
    /* it has worker processes; otherwise batches are made by the loop's own thread */
    bool processes;
    char dataset[64]; /* class name of its dataset; "" unknown */
    int64_t workers, prefetch, persistent;
    int64_t sent, received,
        /* batches, in the iterator's count: requested, returned in turn, under way */
        outstanding;
    int64_t ready;   /* of these: made, and not yet taken */
    int64_t yielded; /* given to the loop since it (re)started */
    size_t n;        /* of `worker` */
    struct pystack_loader_worker worker[PYSTACK_LOADER_WORKERS];
};

/* Find iterators in frames of the threads, PYSTACK_LOADERS at most: their addresses. Examines a
 * few thousand words: some milliseconds. Returns the number, or -1 if the threads cannot be
 * read. */
ssize_t pystack_find_loaders(struct pystack *ps, uint64_t *addrs);

/* True if the object at `addr` is still an iterator of a DataLoader; `*processes`: with workers. */
bool pystack_is_loader(struct pystack *ps, uint64_t addr, bool *processes);

/* Read the iterator at `addr`. 0, or -1 if there is none (any more). */
int pystack_read_loader(struct pystack *ps, uint64_t addr, struct pystack_loader *out);

#endif
