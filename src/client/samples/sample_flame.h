/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample_flame: the samples of a store as a flame graph that follows them, and what it knows of one of its frames.
 *
 * An update costs by the entries that changed since the one before, whether samples came or left the window, not by all
 * there are. Nodes keep their numbers while the store's numbers and the granularity stay. As bounded as the store, of which
 * the tree has at most a node for each stack and two more. One thread.
 */
#ifndef CLIENT_SAMPLES_SAMPLE_FLAME_H
#define CLIENT_SAMPLES_SAMPLE_FLAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/model.h"
#include "client/samples/sample_store.h"
#include "flame/flame.h"

#define FLAME_FRAMELESS 1U /* the node of threads without a Python frame, below the root */

/* What one node is: a function, a line of it, or a module (frames of one module that call each other are one). */
enum flame_by { FLAME_BY_FUNCTION = 0, FLAME_BY_LINE, FLAME_BY_MODULE, FLAME_BYS };

/* Which samples count. */
enum flame_time { FLAME_ON_CPU = 0, FLAME_ALL_TIME, FLAME_GIL_HOLDING, FLAME_TIMES };

/* Only stacks in which a frame matches, or (negated) none does. */
struct flame_filter {
    bool (*matches)(const void *arg, const struct model_frame *frame); /* NULL: all stacks */
    const void *arg;
    bool negated;
    unsigned version; /* another one: `matches` says something else now */
};

struct flame_query {
    enum sample_store_window window;
    enum flame_by by;
    enum flame_time time;
    int64_t tid; /* 0: all threads */
    uint32_t
        module; /* 1 + a frame of the counts: only what its module does, from where it is entered; 0: all modules */
    bool hides_native; /* native frames are their callers' */
    struct flame_filter filter;
    struct flame_filter kept; /* and of those only stacks that have one of these frames; never negated */
};

/* A line of a function. */
struct flame_line {
    int line;
    struct flame_weight weight; /* of the line and what it calls */
};

/* A thread with samples in the window, whichever count. */
struct flame_thread {
    int64_t tid;
    int64_t samples;
};

struct sample_flame;

struct sample_flame *sample_flame_new(void); /* NULL without memory */
void sample_flame_free(struct sample_flame *f);

/* Make the tree that of the store as it is now, which must live as long as the tree is read, or until the next update. 0, or
 * -1 without memory: then the tree is empty. */
int sample_flame_update(struct sample_flame *f, const struct sample_store *store,
                        const struct flame_query *query);

/* Forget the store and all that was made of it. */
void sample_flame_clear(struct sample_flame *f);

/* The tree, the same one as long as `f` lives: at least the root and the frameless, or empty. A node's frame is one of the
 * counts' that stands for it: by function its line means nothing, by module neither does its function. */
struct flame *sample_flame_tree(const struct sample_flame *f);

/* Frames of the counts that the tree knows: greater than the number of any frame in it; and one of them. */
size_t sample_flame_count_frames(const struct sample_flame *f);
const struct model_frame *sample_flame_frame(const struct sample_flame *f, uint32_t frame);

/* What tells the module of a frame: its file, or for native ones the library. NULL: unknown. */
const char *sample_flame_module(const struct model_frame *f);

/* Threads, by tid. */
const struct flame_thread *sample_flame_threads(const struct sample_flame *f, size_t *n);

/* Node in which a stack of the counts ends (STACK_COUNTS_NO_STACK: the frameless); FLAME_NO_NODE when there is none. */
uint32_t sample_flame_find_stack(const struct sample_flame *f, uint32_t stack);

/* ---- one frame, wherever it is ---- */

/* A frame that calls it or is called by it. */
struct flame_call {
    const struct model_frame *frame; /* NULL: nobody, it is the outermost */
    uint32_t node; /* one of its nodes: of a caller that of the first call, of a callee its own */
    struct flame_weight weight; /* of the calls */
};

struct flame_calls {
    struct flame_call *callers, *callees; /* by weight, the largest first */
    size_t n_callers, n_callees;
    struct flame_line *lines; /* by weight; none where a node is a module */
    size_t n_lines;
    struct flame_weight self, total; /* of all nodes of the frame */
};

/* Who calls the frame of a node, whom it calls, and in which of its lines the time is. A stack in which the same call, or
 * line, recurs counts once. Costs by the stacks there are. Replaces what was there. 0, or -1 without memory: empty. */
int flame_calls_build(struct flame_calls *c, const struct sample_flame *f, uint32_t node);
void flame_calls_fini(struct flame_calls *c);

#endif
