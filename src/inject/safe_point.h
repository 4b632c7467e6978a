/* SPDX-License-Identifier: Apache-2.0 */
/*
 * safe_point: which thread to borrow, and when.
 *
 * First threads asleep in a plain system call: stopped for an instant to copy registers, unwound
 * while they sleep on, stopped again, and taken if nothing has changed. Then running ones,
 * unwound while stopped, within a small budget. A thread inside the loader, an allocator, fork,
 * a signal handler and similar code is left alone.
 */
#ifndef INJECT_SAFE_POINT_H
#define INJECT_SAFE_POINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/agent_abi.h"
#include "base/err.h"
#include "base/procfs.h"
#include "inject/target.h"
#include "inject/thread.h"

/* Preference for a thread asleep in this call, lower is better; -1: never. `file` is the kind of
 * the first argument's descriptor, "" for none: a regular file may be on a network or in user
 * space, where an interruption is visible. */
int safe_point_rank_call(long nr, const char *file);

/* Name of a system call for people: "futex", "clock_nanosleep", or "system call 123". */
void safe_point_call_name(char *buf, size_t cap, long nr);

/* Where a thread was found. */
struct safe_point_found {
    enum agent_way way;
    char how[64];   /* "asleep in futex", "running, holding a stream's lock" */
    bool is_barred; /* none may be traced */
    bool is_busy;   /* because another of our programs traces them */
};

/* Find a thread until `deadline_ns`; `out` is then stopped and may be borrowed. 0, or -1 with
 * the error that names the obstacle. `stop_asked` is called now and then; true to give up. */
int safe_point_find(struct target *t, struct thread *out, uint64_t deadline_ns, bool (*stop_asked)(void),
                    struct safe_point_found *found, struct err *e);

#endif
