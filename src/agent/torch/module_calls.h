/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module_calls: the calls of torch.nn modules in one training step, with the time of each, forward and backward.
 *
 * A call begins and ends on the thread that trains, calls nest. Autograd has no modules: the backward of a call begins when the
 * gradient of its output is there, and ends when that of its input is; where the input needs none, or is shared with calls
 * that come later, with the next backward of a call that is not within this one, or with the whole pass. Time that telling
 * itself takes is left out. Pure: no clock, no torch; memory is fixed. One thread at a time.
 */
#ifndef AGENT_TORCH_MODULE_CALLS_H
#define AGENT_TORCH_MODULE_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MODULE_CALLS_MAX 8192 /* of a step; more are counted and not kept */
#define MODULE_CALLS_DEPTH 256
#define MODULE_CALLS_SUMS 2048 /* modules */
#define MODULE_CALLS_PASSES 64 /* backward passes */

/* A moment: of the monotonic clock, and how much of the time until then was ours. */
struct module_time {
    uint64_t ns; /* 0: not known */
    uint64_t own_ns;
};

struct module_call {
    uint64_t module, type; /* addresses: names are found later */
    struct module_time begin, end, back_begin, back_end;
    int64_t bytes;  /* of its output; -1 not known */
    int32_t parent; /* the call within which it is; -1 none */
};

struct module_calls {
    struct module_call calls[MODULE_CALLS_MAX];
    size_t n, lost;
    int32_t stack[MODULE_CALLS_DEPTH];
    size_t depth;
    struct module_time passes[MODULE_CALLS_PASSES]; /* when they ended */
    size_t n_passes;
    uint64_t own_ns;
};

/* What was seen of a module. */
struct module_sum {
    uint64_t module, type;
    uint32_t calls, backwards;        /* calls that have ended; backwards of them */
    uint64_t forward_ns, backward_ns; /* of all of them together */
    int64_t bytes;                    /* of their outputs; -1 not known of one */
};

void module_calls_clear(struct module_calls *c);

/* A module is called; number of the call, or -1: it is not kept. */
int32_t module_calls_begin(struct module_calls *c, uint64_t module, uint64_t type, uint64_t ns);

/* It has returned; those within it that did not were left by an exception. Number of the call, or -1. */
int32_t module_calls_end(struct module_calls *c, uint64_t module, uint64_t ns);

/* The gradient of the output of a call is there; that of an input. */
void module_calls_back_begin(struct module_calls *c, int32_t call, uint64_t ns);
void module_calls_back_end(struct module_calls *c, int32_t call, uint64_t ns);

/* So much of the time so far was ours. */
void module_calls_own(struct module_calls *c, uint64_t ns);

/* A backward pass has ended. */
void module_calls_pass(struct module_calls *c, uint64_t ns);

/* The step is over: ends of backwards are put right. False without memory. */
bool module_calls_finish(struct module_calls *c);

/* Add up per module, in the order of their first calls. Number of modules, at most `cap`. */
size_t module_calls_sum(const struct module_calls *c, struct module_sum *out, size_t cap);

#endif
