/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flame_stacks: samples added up as they are written down: a line a stack, and a tree of the same names.
 *
 * Frames whose names read the same are one, below the same caller. Names come from the job: they are cleaned, and a ';',
 * which separates them, becomes ':'. Allocates as much as the counts have stacks. One thread.
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

/* Which samples, and how they are written. */
struct flame_stacks {
    const struct stack_counts *counts;
    int64_t pid;
    bool process; /* a frame for the process, "process PID", around all */
    bool
        threads; /* a frame for the thread, "thread NAME (TID)"; else threads without a Python frame are left out */
    bool by_function; /* "func (file.py)", not "func (file.py:12)" */
    bool in_us;       /* weights are microseconds, not samples */
};

/* One line a stack, frames from the outermost inwards, separated by ';', the weight at the end: what flame graph programs
 * read (stackcollapse's format). Sorted, so two can be compared. 0, or -1 without memory or room in `out`. */
int flame_stacks_put_folded(const struct flame_stacks *s, struct strbuf *out);

struct flame_stacks_tree {
    struct flame *tree;            /* its root is "all"; keys are numbers of names */
    bool in_us;                    /* what weights are: asked for, and there is time */
    size_t threads;                /* that have samples */
    struct flame_weight frameless; /* of threads that were left out */
    /* Names: */
    struct arena text;
    const char **names;
    size_t n_names, cap_names;
    uint32_t *slots; /* open addressing: 1 + name; 0 free */
    size_t n_slots;
    uint32_t *of_frame; /* per frame of the counts: 1 + name; 0 not yet */
};

/* 0, or -1 without memory, or when it would take too long. flame_stacks_fini frees, on failure too. */
int flame_stacks_build(struct flame_stacks_tree *t, const struct flame_stacks *s);
void flame_stacks_fini(struct flame_stacks_tree *t);

const char *flame_stacks_name(const struct flame_stacks_tree *t, uint32_t node);

/* A weight in the unit of the tree. */
double flame_stacks_weight(const struct flame_stacks_tree *t, struct flame_weight w);

#endif
