/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nonfinite: the first number of a training step that is not finite: in what modules are given and give back, in the gradients of that, in
 * the gradients of parameters when an optimizer's step begins.
 *
 * The job's own thread looks (tensor_read.h), in hooks of torch that module_hooks.h puts in; it ends with the first that is found in
 * a forward pass. What is on a GPU is only known after the step: then the python worker reads it. Memory is fixed but for that.
 */
#ifndef AGENT_TORCH_NONFINITE_H
#define AGENT_TORCH_NONFINITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/torch/module_calls.h"
#include "agent/torch/tensor_read.h"
#include "agent/python/worker.h"

#define NONFINITE_BYTES (4ULL << 30) /* of numbers that are looked at in a step */
#define NONFINITE_STACK 2000
#define NONFINITE_GRADIENTS 256 /* parameters whose gradients are not finite, that are kept */
#define NONFINITE_WANTED (NONFINITE_GRADIENTS + 2)
#define NONFINITE_WHAT 160
#define NONFINITE_KEYWORD 32

enum nonfinite_stage { NONFINITE_FORWARD = 0, NONFINITE_BACKWARD, NONFINITE_GRADIENT };

/* Of what it is the number. */
struct nonfinite_place {
    uint64_t ns;
    uint64_t module, type; /* addresses; 0 of a gradient of a parameter, */
    uint64_t parameter;    /* which has this */
    uint32_t round;        /* the step, counted from the first that was looked at */
    int32_t call;          /* number of the call in that */
    int32_t index;         /* which tensor of the input or output; which parameter of the group */
    int32_t group;         /* of the optimizer */
    enum nonfinite_stage stage;
    bool is_input;                   /* of the call; else its output */
    char keyword[NONFINITE_KEYWORD]; /* of an input that is given by one; "" by position */
};

/* One that was found. */
struct nonfinite_find {
    bool is;
    struct nonfinite_place at;
    struct tensor_numbers numbers;
    bool has_inputs; /* of the call: */
    struct tensor_numbers inputs;
    char parameter[64];          /* of the module itself that is not finite either; "" none */
    char stack[NONFINITE_STACK]; /* "" not known */
};

/* What there was. */
struct nonfinite_counts {
    uint32_t rounds;  /* steps that began */
    uint64_t tensors; /* that were looked at, */
    uint64_t skipped; /* and that could not be; */
    uint64_t beyond;  /* that were too many to be */
    uint64_t parameters;
    uint64_t unlooked; /* calls of modules of which it is not known what they were given by keyword */
    uint64_t unread;   /* what a GPU has told could not be read */
    uint64_t
        passed; /* gradients on the way that were not finite, and reached no parameter: a GradScaler leaves out such steps */
    uint64_t own_ns;     /* what looking took */
    bool has_optimizers; /* torch tells when an optimizer's step begins */
};

/* The name of something at which one was found. */
struct nonfinite_name {
    uint64_t id;     /* of a module or a parameter */
    uint64_t module; /* which has it, or is it */
    char name[64];   /* of the parameter in it; "" of a module */
    char path[160], type[64];
};

/* What is to be said of it. */
struct nonfinite_verdict {
    const struct nonfinite_find *find; /* NULL: nothing was found */
    const struct nonfinite_name *name; /* NULL: not known */
    char what[NONFINITE_WHAT];         /* "output 0", "weight.grad" */
};

/* ---- the sampler's ---- */

/* Before a window opens. */
void nonfinite_clear(void);
const struct nonfinite_counts *nonfinite_get_counts(void);

/* Once it was settled: addresses of what is to be named; how many. */
size_t nonfinite_get_wanted(uint64_t *out);

/* The first of all: `calls` is of the last step. */
void nonfinite_judge(const struct module_calls *calls, const struct nonfinite_name *names, size_t n,
                     struct nonfinite_verdict *out);

/* ---- the worker's, with the GIL ---- */

/* Take what the unit tells of torch for tensor_read.h: items of a tuple from `first` on. `has_optimizers`: their steps are told. 0 or -1. */
int nonfinite_begin(const struct pyapi *api, struct pystack *ps, struct pyapi_object *tuple, ssize_t first,
                    bool has_optimizers);

/* Read some of what was looked at later. True when there is more. */
bool nonfinite_settle(struct worker *w);

/* Let go of everything of the job's. */
void nonfinite_end(void);

/* ---- the job's threads, with the GIL. True, but where it says otherwise: it is over. Leave no exception. ---- */

/* A new step begins, with the outermost call of a module. False: it does not, for one was found in the last; unless it `goes_on`, for an
 * optimizer's step may yet tell that this was without effect. */
bool nonfinite_on_round(bool goes_on);
/* A module is called, with the tuple of its arguments, and those that call_keywords.h finds; it has returned. */
bool nonfinite_on_call(const struct nonfinite_place *at, struct pyapi_object *inputs);
bool nonfinite_on_return(const struct nonfinite_place *at, struct pyapi_object *module,
                         struct pyapi_object *output);
/* The gradient of a tensor of its output is there. */
void nonfinite_on_gradient(const struct nonfinite_place *at, struct pyapi_object *gradient);
/* An optimizer's step begins. */
bool nonfinite_on_optimizer(uint64_t ns, struct pyapi_object *optimizer);
/* So long it took. */
void nonfinite_spend(uint64_t ns);

#endif
