/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nonfinite: the first number of a training step that is not finite: in arguments and results of
 * modules, in their gradients, in the gradients of parameters when an optimizer's step begins.
 *
 * The job's own thread checks (tensor_read.h), in hooks of torch that module_hooks.h installs;
 * the search ends with the first finding in a forward pass. Numbers on a GPU are only known
 * after the step: then the python worker reads them. Memory is fixed except for these.
 */
#ifndef AGENT_TORCH_NONFINITE_H
#define AGENT_TORCH_NONFINITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/torch/module_calls.h"
#include "agent/torch/tensor_read.h"
#include "agent/python/worker.h"

#define NONFINITE_BYTES (4ULL << 30) /* maximum that is checked in a step */
#define NONFINITE_STACK 2000
/* parameters with gradients that are not finite, of which a record is made */
#define NONFINITE_GRADIENTS 256
#define NONFINITE_WANTED (NONFINITE_GRADIENTS + 2)
#define NONFINITE_WHAT 160
#define NONFINITE_KEYWORD 32

enum nonfinite_stage { NONFINITE_FORWARD = 0, NONFINITE_BACKWARD, NONFINITE_GRADIENT };

/* The place of a number. */
struct nonfinite_place {
    uint64_t ns;
    uint64_t module, type; /* addresses; 0 for the gradient of a parameter */
    uint64_t parameter;    /* which has this address */
    uint64_t models;       /* calls of the model so far; of a gradient only */
    uint32_t round;        /* the step, counted from the first checked one */
    int32_t call;          /* number of the call in that step */
    int32_t index;         /* which tensor of the input or output; which parameter of the group */
    int32_t group;         /* of the optimizer */
    enum nonfinite_stage stage;
    bool is_input;                   /* an input of the call; otherwise its output */
    char keyword[NONFINITE_KEYWORD]; /* of a keyword argument; "" if positional */
};

/* A finding. */
struct nonfinite_find {
    bool is;
    struct nonfinite_place at;
    struct tensor_numbers numbers;
    bool has_inputs; /* of the call: */
    struct tensor_numbers inputs;
    /* a parameter of the module itself that is not finite either; "" if none */
    char parameter[64];
    char stack[NONFINITE_STACK]; /* "" if unknown */
};

/* Counts of a search. */
struct nonfinite_counts {
    uint32_t rounds;  /* steps that have begun */
    uint64_t tensors; /* tensors that were checked */
    uint64_t skipped; /* that could not be checked */
    uint64_t beyond;  /* that were beyond the limit */
    uint64_t parameters;
    uint64_t unlooked; /* calls of modules whose keyword arguments are unknown */
    uint64_t unread;   /* results of a GPU that could not be read */
    /* intermediate gradients that were not finite, and reached no parameter: a GradScaler skips
     * such steps */
    uint64_t passed;
    uint64_t undecided;  /* the same, where the search ended before the next optimizer's step */
    uint64_t own_ns;     /* time of the checks */
    bool has_optimizers; /* torch reports when an optimizer's step begins */
};

/* The name of the place of a finding. */
struct nonfinite_name {
    uint64_t id;     /* of a module or a parameter */
    uint64_t module; /* the module that has it, or itself */
    char name[64];   /* of the parameter in it; "" for a module */
    char path[160], type[64];
};

/* The result of a search. */
struct nonfinite_verdict {
    const struct nonfinite_find *find; /* NULL if there is no finding */
    const struct nonfinite_name *name; /* NULL if unknown */
    char what[NONFINITE_WHAT];         /* "output 0", "weight.grad" */
};

/* ---- for the sampler ---- */

/* Before a window opens. */
void nonfinite_clear(void);
const struct nonfinite_counts *nonfinite_get_counts(void);

/* After it was settled: the addresses that need a name. Returns their number. */
size_t nonfinite_get_wanted(uint64_t *out);

/* The first of all findings: `calls` is of the last step. A gradient on its way to the parameters
 * is none if optimizers' steps were seen, but not yet one after it: it is counted as undecided. */
void nonfinite_judge(const struct module_calls *calls, const struct nonfinite_name *names, size_t n,
                     struct nonfinite_verdict *out);

/* ---- for the worker, with the GIL ---- */

/* Take the parts of torch for tensor_read.h from the unit: items of a tuple from `first` on.
 * `has_optimizers`: their steps are reported. 0 or -1. */
int nonfinite_begin(const struct pyapi *api, struct pystack *ps, struct pyapi_object *tuple, ssize_t first,
                    bool has_optimizers);

/* Read some of the results that arrive later. True if there are more. */
bool nonfinite_settle(struct worker *w);

/* Release all objects of the job. */
void nonfinite_end(void);

/* ---- for the job's threads, with the GIL. True, unless described otherwise: the search is
 * over. Leave no exception. ---- */

/* A new step begins, with the outermost call of a module. False: it does not, because the last
 * one had a finding; unless it `goes_on`, because an optimizer's step may still show that the
 * finding had no effect. */
bool nonfinite_on_round(bool goes_on);
/* A module is called; `is_outermost`: not by another one. The first such is the model whose calls
 * are counted: a job may have others, and a loss is a module, too. */
void nonfinite_on_module(uint64_t module, bool is_outermost);
/* A module is called, with the tuple of its arguments, and with its keyword arguments; it has
 * returned. */
bool nonfinite_on_call(const struct nonfinite_place *at, struct pyapi_object *inputs);
bool nonfinite_on_return(const struct nonfinite_place *at, struct pyapi_object *module,
                         struct pyapi_object *output);
/* The gradient of a tensor of its output is ready. */
void nonfinite_on_gradient(const struct nonfinite_place *at, struct pyapi_object *gradient);
/* An optimizer's step begins. */
bool nonfinite_on_optimizer(uint64_t ns, struct pyapi_object *optimizer);
/* It took that long. */
void nonfinite_spend(uint64_t ns);

#endif
