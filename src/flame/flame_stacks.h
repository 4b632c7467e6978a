/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flame_stacks: sums of samples as text, one line a stack, and as a tree of the same names.
 *
 * Frames with the same name below the same caller are one frame. Names come from the job: they
 * are sanitised, and a ';', which separates them, becomes ':'. Memory use is proportional to the
 * number of stacks. One thread.
 */
#ifndef FLAME_FLAME_STACKS_H
#define FLAME_FLAME_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "flame/flame.h"
#include "flame/stack_counts.h"

/* The wanted samples and their format. */
struct flame_stacks {
    const struct stack_counts *counts;
    int64_t pid;
    bool process; /* a frame for the process, "process PID", around all */
    /* a frame for the thread, "thread NAME (TID)"; otherwise threads without a Python frame are
     * omitted */
    bool threads;
    bool by_function; /* "func (file.py)", not "func (file.py:12)" */
    bool in_us;       /* weights are microseconds, not samples */
};

/* One line a stack, frames from the outermost inwards, separated by ';', the weight at the end:
 * the input of flame graph programs (stackcollapse's format). Sorted, so two can be compared. 0,
 * or -1 without memory or room in `out`. */
int flame_stacks_put_folded(const struct flame_stacks *s, struct strbuf *out);

struct flame_stacks_tree {
    struct flame *tree;            /* its root is "all"; keys are numbers of names */
    bool in_us;                    /* weights are in microseconds: wanted, and times are known */
    size_t threads;                /* number of threads with samples */
    struct flame_weight frameless; /* of the omitted threads */
    /* Names: */
    struct arena text;
    const char **names;
    size_t n_names, cap_names;
    uint32_t *slots; /* open addressing: 1 + name; 0 free */
    size_t n_slots;
    uint32_t *of_frame; /* per frame of the counts: 1 + name; 0: none yet */
};

/* 0, or -1 without memory, or if it would take too long. Call flame_stacks_fini also on failure. */
int flame_stacks_build(struct flame_stacks_tree *t, const struct flame_stacks *s);
void flame_stacks_fini(struct flame_stacks_tree *t);

const char *flame_stacks_name(const struct flame_stacks_tree *t, uint32_t node);

/* A weight in the unit of the tree. */
double flame_stacks_weight(const struct flame_stacks_tree *t, struct flame_weight w);

#endif
