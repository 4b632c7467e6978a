/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_state: what one process of a job does at one moment, from outside: whether it lives, where
 * its training thread stands, what it waits for, and for how long the thread has not run.
 *
 * A plain struct without pointers, so that a child (guard.h) can send it. Nothing is asked of the
 * process: it is read, through pystack and /proc.
 */
#ifndef CLIENT_FLEET_RANK_STATE_H
#define CLIENT_FLEET_RANK_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/model.h"
#include "pystack/pystack.h"

/* A frame. `func` is "" if it is not known. */
struct rank_place {
    char func[96], file[192];
    int32_t line;
};

struct rank_state {
    double at_s;        /* when it was read, on the monotonic clock */
    bool gone;          /* there is no such process, or only a zombie is left */
    char state;         /* of the training thread, the kernel's letter; '?' unknown */
    bool traced;        /* by a debugger */
    double still_s;     /* the thread has not run for so long; NAN unknown */
    uint64_t cpu_ns;    /* of the process */
    uint64_t thread_ns; /* of the thread */
    uint64_t bytes;     /* that the process has read and written */
    char wchan[48];     /* where in the kernel the thread sleeps */

    bool has_stack;              /* the rest is known */
    char why[160];               /* or why not */
    uint64_t stack;              /* a hash of all frames */
    struct rank_place leaf, own; /* the innermost frame; the innermost of the job's own code */
    struct rank_place at;        /* of the job's own code, where it does what `doing` says; else own */
    char doing[16], phase[16];   /* as verdict_places.h has them */
    bool in_backward;            /* its innermost frame is a backward pass */
    char collective[96];         /* "all_reduce": it is in that of torch.distributed; "" it is not */
    enum model_wait_kind wait;
    double left_s; /* until it wakes up by itself; NAN: it does not, or unknown */
    char waits_for[192];
    int8_t gc; /* 1 it collects garbage */
    bool has_gil;
    /* it waits for the GIL: who has it */
    bool needs_gil;
    char holder[64];
    struct rank_place holder_at;
};

/* Make everything unknown. */
void rank_state_init(struct rank_state *s);

/* Read process `pid`. `ps` is its interpreter, opened here at the first time and kept; the caller
 * frees it by pystack_close. */
void rank_state_read(struct rank_state *s, pid_t pid, struct pystack **ps);

/* The same from a snapshot of its threads. Pure; for tests. */
void rank_state_take(struct rank_state *s, const struct model_snapshot *snapshot);

/* Whether it waits for other ranks, as far as its stack shows it. */
bool rank_state_waits_for_ranks(const struct rank_state *s);

#endif
