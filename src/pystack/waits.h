/* SPDX-License-Identifier: Apache-2.0 */
/*
 * waits: what threads that are off the CPU wait for, from memory and /proc.
 *
 * The system call says how a thread waits, its innermost frames what for: the object whose lock
 * lies at the address of the futex, `self` of the frames of threading, queue and others, the file
 * behind the descriptor. An RLock knows its owner; the holder of a Lock is whoever is inside `with`
 * of it, and is only named if that is one thread. Unknown is unknown. Part of a snapshot, used by the
 * pystack's thread; a thread that has not moved keeps its answer.
 */
#ifndef PYSTACK_WAITS_H
#define PYSTACK_WAITS_H

#include <stddef.h>
#include <stdint.h>

#include "pystack/pystack_internal.h"

/* A snapshot of `n` OS threads begins. */
void pystack_waits_begin(struct pystack *ps, size_t n);

/* The thread of that clock, which is the one whose frames were read last, of thread state `tstate`,
 * or has none. `same`: it has not run since the snapshot before. `index`: its place among the
 * threads of the snapshot. */
void pystack_waits_add(struct pystack *ps, const struct pystack_clock *clock, uint64_t tstate, bool same,
                       size_t index, struct model_snapshot *out);

/* All threads are there: who holds what, and who waits for whom. */
void pystack_waits_end(struct pystack *ps, const struct pystack_thread *threads, size_t n,
                       struct model_snapshot *out);

#endif
