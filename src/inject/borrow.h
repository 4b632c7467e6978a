/* SPDX-License-Identifier: Apache-2.0 */
/*
 * borrow: run something on a stopped thread and restore it, bit for bit.
 *
 * From borrow_begin on the thread has frames on its own stack (sigreturn_chain.h) through which
 * it restores itself if we die; everything that runs on it ends there. borrow_end restores
 * registers, vector state, mask and the stack bytes, and releases it.
 */
#ifndef INJECT_BORROW_H
#define INJECT_BORROW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "inject/sigreturn_chain.h"
#include "inject/stub.h"
#include "inject/target.h"
#include "inject/thread.h"

struct borrow {
    struct target *target;
    struct thread *thread; /* stopped, clean */
    struct user_regs_struct regs;
    uint64_t mask;
    uint64_t deadline_ns; /* CLOCK_MONOTONIC */
    size_t xstate_len;
    uint64_t way_back; /* the stack pointer at which our code returns */
    bool settled;      /* copied from the thread */
    bool masked;       /* the thread has our signal mask */
    /* it is restoring or has restored itself: nothing left to restore */
    bool left;
    uint64_t region, region_size, params_at; /* 0: no region */
    uint8_t xstate[THREAD_XSTATE_MAX];
    uint8_t under[SIGRETURN_CHAIN_MAX]; /* the stack bytes below the frames */
    struct sigreturn_chain chain;
};

#define BORROW_NO_STACK 1

/* Prepare; everything must be done by `deadline_ns` (CLOCK_MONOTONIC). 0; -1 with the error; or
 * BORROW_NO_STACK with the error: another thread, or this one later, may do. Then the thread is
 * unchanged (still stopped). */
int borrow_begin(struct borrow *b, struct target *target, struct thread *thread, uint64_t deadline_ns,
                 struct err *e);

/* Make and fill the region: code, stack, `params` (whose region and chain fields are filled
 * here). 0 or -1. */
int borrow_make_region(struct borrow *b, struct stub_params *params, struct err *e);

/* Unmap the region again. Only while nothing runs in it. */
void borrow_drop_region(struct borrow *b);

/* Run the stub's first part: create the thread. 0 if it was created; -1 with the error if it was
 * not (the region is then useless); -2 with the error if it may still be: then the region must
 * stay. */
int borrow_create_thread(struct borrow *b, struct err *e);

/* Restore everything and release the thread. */
void borrow_end(struct borrow *b);

/* Read one 32-bit field of the params in the region; -1 if it cannot be read. */
int32_t borrow_read_i32(struct target *t, uint64_t params_at, size_t offset);

#endif
