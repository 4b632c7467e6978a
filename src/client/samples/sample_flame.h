/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample_flame: the samples of a store as a flame graph that follows them, and details of one of
 * its frames.
 *
 * The cost of an update grows with the entries that have changed since the last one, whether
 * samples arrived or left the window, not with all entries. Nodes keep their numbers while the
 * store's numbers and the granularity stay. Bounded by the store: the tree has at most one node
 * for each stack, and two more. One thread.
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

/* The meaning of a node: a function, a line of it, or a module (frames of one module that call
 * each other are one). */
enum flame_by { FLAME_BY_FUNCTION = 0, FLAME_BY_LINE, FLAME_BY_MODULE, FLAME_BYS };

/* The samples that count. */
enum flame_time { FLAME_ON_CPU = 0, FLAME_ALL_TIME, FLAME_GIL_HOLDING, FLAME_TIMES };

/* Only stacks with a matching frame, or (negated) without one. */
struct flame_filter {
    bool (*matches)(const void *arg, const struct model_frame *frame); /* NULL: all stacks */
    const void *arg;
    bool negated;
    unsigned version; /* changes when `matches` returns other results */
};

struct flame_query {
    enum sample_store_window window;
    enum flame_by by;
    enum flame_time time;
    int64_t tid; /* 0: all threads */
    /* 1 + a frame of the counts: only stacks of its module, from where it is entered; 0: all
     * modules */
    uint32_t module;
    bool hides_native; /* native frames count as their callers */
    struct flame_filter filter;
    /* of those, only stacks that have one of these frames; never negated */
    struct flame_filter kept;
};

/* A line of a function. */
struct flame_line {
    int line;
    struct flame_weight weight; /* of the line and its callees */
};

/* A thread with samples in the window, of any kind of time. */
struct flame_thread {
    int64_t tid;
    int64_t samples;
};

struct sample_flame;

struct sample_flame *sample_flame_new(void); /* NULL without memory */
void sample_flame_free(struct sample_flame *f);

/* Update the tree to the store's current state. The store must live until the next update, or as
 * long as the tree is read. 0, or -1 without memory: then the tree is empty. */
int sample_flame_update(struct sample_flame *f, const struct sample_store *store,
                        const struct flame_query *query);

/* Forget the store and all results from it. */
void sample_flame_clear(struct sample_flame *f);

/* The tree, the same one as long as `f` lives: at least the root and the node without frames, or
 * empty. A node's frame is one of several in the counts: by function its line has no meaning, by
 * module neither has its function. */
struct flame *sample_flame_tree(const struct sample_flame *f);

/* Number of frames of the counts that the tree knows, greater than the number of any frame in
 * it; and one of these frames. */
size_t sample_flame_count_frames(const struct sample_flame *f);
const struct model_frame *sample_flame_frame(const struct sample_flame *f, uint32_t frame);

/* The module of a frame: its file, or the library of a native one. NULL: unknown. */
const char *sample_flame_module(const struct model_frame *f);

/* Threads, by tid. */
const struct flame_thread *sample_flame_threads(const struct sample_flame *f, size_t *n);

/* Node in which a stack of the counts ends (STACK_COUNTS_NO_STACK: without frames);
 * FLAME_NO_NODE if there is none. */
uint32_t sample_flame_find_stack(const struct sample_flame *f, uint32_t stack);

/* ---- one frame, wherever it is ---- */

/* A frame that calls the frame or is called by it. */
struct flame_call {
    const struct model_frame *frame; /* NULL: it is the outermost and has no caller */
    /* one of its nodes: for a caller the one of the first call, for a callee its own */
    uint32_t node;
    struct flame_weight weight; /* of the calls */
};

struct flame_calls {
    struct flame_call *callers, *callees; /* by weight, the largest first */
    size_t n_callers, n_callees;
    struct flame_line *lines; /* by weight; none if a node is a module */
    size_t n_lines;
    struct flame_weight self, total; /* of all nodes of the frame */
};

/* Find the callers and callees of a node's frame, and the time of each of its lines. A stack
 * with a recursive call, or line, counts once. The cost grows with the number of stacks.
 * Replaces the old result. 0, or -1 without memory: then it is empty. */
int flame_calls_build(struct flame_calls *c, const struct sample_flame *f, uint32_t node);
void flame_calls_fini(struct flame_calls *c);

#endif
