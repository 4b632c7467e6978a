/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module_calls: the calls of torch.nn modules in one training step, with the time of each,
 * forward and backward.
 *
 * A call begins and ends on the thread that trains; calls nest. Autograd has no modules: the
 * backward of a call begins when the gradient of its output is ready, and ends when that of its
 * input is. If the input needs no gradient, or is shared with later calls, it ends with the next
 * backward of a call that is not within this one, or with the whole pass. The time of the
 * measurement itself is left out. Pure: no clock, no torch; memory is fixed. One thread at a
 * time.
 */
#ifndef AGENT_TORCH_MODULE_CALLS_H
#define AGENT_TORCH_MODULE_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MODULE_CALLS_MAX 8192 /* of a step; further ones are only counted */
#define MODULE_CALLS_DEPTH 256
#define MODULE_CALLS_SUMS 2048 /* modules */
#define MODULE_CALLS_PASSES 64 /* backward passes */

/* A time of the monotonic clock, with the part of the time before it that was ours. */
struct module_time {
    uint64_t ns; /* 0 if unknown */
    uint64_t own_ns;
};

struct module_call {
    uint64_t module, type; /* addresses: names are found later */
    struct module_time begin, end, back_begin, back_end;
    int64_t bytes;  /* of its output; -1 if unknown */
    int32_t parent; /* the enclosing call; -1 if none */
};

struct module_calls {
    struct module_call calls[MODULE_CALLS_MAX];
    size_t n, lost;
    int32_t stack[MODULE_CALLS_DEPTH];
    size_t depth;
    struct module_time passes[MODULE_CALLS_PASSES]; /* their ends */
    size_t n_passes;
    uint64_t own_ns;
};

/* The sums of a module. */
struct module_sum {
    uint64_t module, type;
    uint32_t calls, backwards;        /* calls that have ended; their backwards */
    uint64_t forward_ns, backward_ns; /* of all of them together */
    int64_t bytes;                    /* of their outputs; -1 if one is unknown */
};

void module_calls_clear(struct module_calls *c);

/* A module is called. Returns the number of the call, or -1: it is not stored. */
int32_t module_calls_begin(struct module_calls *c, uint64_t module, uint64_t type, uint64_t ns);

/* It has returned; calls within it that did not return were left by an exception. Returns the
 * number of the call, or -1. */
int32_t module_calls_end(struct module_calls *c, uint64_t module, uint64_t ns);

/* The gradient of a call's output is ready; the one of an input is. */
void module_calls_back_begin(struct module_calls *c, int32_t call, uint64_t ns);
void module_calls_back_end(struct module_calls *c, int32_t call, uint64_t ns);

/* That much of the time so far was ours. */
void module_calls_own(struct module_calls *c, uint64_t ns);

/* A backward pass has ended. */
void module_calls_pass(struct module_calls *c, uint64_t ns);

/* The step is over: corrects the ends of backwards. False without memory. */
bool module_calls_finish(struct module_calls *c);

/* Sum up per module, in the order of their first calls. Returns the number of modules, at most
 * `cap`. */
size_t module_calls_sum(const struct module_calls *c, struct module_sum *out, size_t cap);

#endif
