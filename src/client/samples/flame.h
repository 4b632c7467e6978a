/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flame: the samples of a tally as a tree of calls: a node is a frame below its caller, with the time in it and below it.
 *
 * The tree follows the tally: an update costs by the entries that changed since the one before, whether samples came or
 * left the window, not by all there are. A node keeps its number while the tally's numbers and the granularity stay. As
 * bounded as the tally, of which it has at most a node for each stack and two more. One thread.
 */
#ifndef CLIENT_SAMPLES_FLAME_H
#define CLIENT_SAMPLES_FLAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/model.h"
#include "client/samples/sample_store.h"

#define FLAME_ROOT 0U      /* all of it */
#define FLAME_FRAMELESS 1U /* threads without a Python frame, below the root */
#define FLAME_NO_NODE UINT32_MAX

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
        module; /* 1 + a frame of the fold: only what its module does, from where it is entered; 0: all modules */
    bool hides_native; /* native frames are their callers' */
    struct flame_filter filter;
    struct flame_filter kept; /* and of those only stacks that have one of these frames; never negated */
};

struct flame_weight {
    int64_t ns; /* time that the samples stand for; 0 too where it is not known */
    int64_t samples;
};

struct flame_node {
    uint32_t parent; /* FLAME_NO_NODE of the root */
    uint32_t child;  /* the first; FLAME_NO_NODE */
    uint32_t next;   /* sibling; FLAME_NO_NODE */
    uint32_t frame;  /* of the fold, that stands for it; nothing of the root and the frameless */
    uint32_t stack;  /* of the fold, that ends here */
    uint32_t depth;  /* of the root 0 */
    bool is_sorted;  /* its children are */
    struct flame_weight self, total;
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

struct flame;

struct flame *flame_new(void); /* NULL without memory */
void flame_free(struct flame *f);

/* Make the tree that of `t` as it is now. The tally must live as long as the tree is read, or until the next update. 0, or
 * -1 without memory: then the tree is empty. */
int flame_update(struct flame *f, const struct sample_store *t, const struct flame_query *query);

/* Forget the tally and all that was made of it. */
void flame_clear(struct flame *f);

/* Another number than before: nodes are others now. */
uint64_t flame_identity(const struct flame *f);

size_t flame_count(
    const struct flame *f); /* nodes; at least the root and the frameless, unless there is no memory */
const struct flame_node *flame_node(const struct flame *f, uint32_t node);

/* Function, file and line of a node; by function its line means nothing, by module neither does its function. NULL of the
 * root and the frameless. */
const struct model_frame *flame_frame(const struct flame *f, uint32_t node);

/* Frames of the fold that the tree knows: greater than the number of any frame in it; and one of them. */
size_t flame_count_frames(const struct flame *f);
const struct model_frame *flame_known_frame(const struct flame *f, uint32_t frame);

/* What tells the module of a frame: its file, or for native ones the library. NULL: unknown. */
const char *flame_module_text(const struct model_frame *f);

/* The lines in which the function of a node's frame was seen, in no order; a stack in which a line recurs counts once. None where nodes
 * are modules. The caller frees `*lines`. 0, or -1 without memory. */
int flame_lines(const struct flame *f, uint32_t frame, struct flame_line **lines, size_t *n);

/* Threads, by tid. */
const struct flame_thread *flame_threads(const struct flame *f, size_t *n);

/* First of a node's children by name; `next` leads on. */
uint32_t flame_first_child(struct flame *f, uint32_t node);

/* Order of two nodes by name, as children stand; of two trees maybe, made by the same. */
int flame_compare_nodes(const struct flame *f, uint32_t node, const struct flame *g, uint32_t other);

/* Children by name before their callees: the node after `node` below `top`, or without its callees; FLAME_NO_NODE when there
 * is none. */
uint32_t flame_walk(struct flame *f, uint32_t top, uint32_t node, bool skip_callees);

/* What widths are made of: time, or samples where no time is known. */
int64_t flame_amount(const struct flame *f, struct flame_weight w);

/* Node in which a stack of the fold ends (STACK_COUNTS_NO_STACK: the frameless); FLAME_NO_NODE when there is none. */
uint32_t flame_find_stack(const struct flame *f, uint32_t stack);

/* Is `above` the node itself or one of its callers? */
bool flame_is_above(const struct flame *f, uint32_t above, uint32_t node);

#endif
