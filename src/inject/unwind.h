/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unwind: what a thread is in the middle of, from a copy of its registers and stack.
 *
 * The stack comes from the copy, everything else from the target's memory (base/unwind_space.h).
 * The thread may be running meanwhile: the caller checks afterwards that registers and stack are
 * still those of the copy.
 */
#ifndef INJECT_UNWIND_H
#define INJECT_UNWIND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/user.h>

#include "inject/target.h"

#define UNWIND_STACK_MAX ((size_t)256 * 1024)
#define UNWIND_MAX_FRAMES 1024

struct unwind_copy {
    struct user_regs_struct regs;
    uint64_t stack_at; /* address of stack[0] */
    size_t stack_len;
    uint8_t stack[UNWIND_STACK_MAX];
};

struct unwind_result {
    enum target_place worst; /* of all frames */
    int frames;
    bool out_of_time;
    size_t stack_used; /* bytes of the copy that the frames span */
};

struct unwinder;

/* A cache and an unwinder for one target (borrowed). NULL when there is no memory. */
struct unwinder *unwinder_new(struct target *t);
void unwinder_free(struct unwinder *u);

/* Unwind `copy`. `budget_ns` 0: no limit of time. */
void unwinder_run(struct unwinder *u, const struct unwind_copy *copy, uint64_t budget_ns,
                  struct unwind_result *out);

#endif
