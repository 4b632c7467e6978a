/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps: training steps, derived from the begins and ends of torch's operations (spans.h) as
 * they arrive.
 *
 * Torch names its operations: "Optimizer.step#AdamW.step", "enumerate(DataLoader)#..." and so
 * on. A step ends with the last Optimizer.step before the next batch is fetched, so several
 * optimizers for one batch are one step. In a job without a loader it ends when an optimizer
 * that has taken a step takes another (then it is unknown which one is the last of a step, only
 * that each takes one), or, if the optimizers are not known, with every Optimizer.step of the
 * same name. Unknown values of a step are marked unknown: before the first complete step, and in
 * steps with dropped events. Steps are counted from the agent's start. Pure: no clock, no torch,
 * no table. One thread.
 *
 * A collective of NCCL or XCCL ends for torch when it was enqueued: how long it went on is unknown,
 * and so is the time in collectives of a step that has one.
 */
#ifndef AGENT_TORCH_STEPS_H
#define AGENT_TORCH_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/torch/spans.h"

#define STEPS_MEMBERS 8              /* optimizers of one step that are distinguished */
#define STEPS_OPEN 64                /* operations that are tracked at a time */
#define STEPS_UNKNOWN (-1)           /* a time that is unknown */
#define STEPS_STEP "Optimizer.step#" /* prefix of its name */
/* the key of the backward pass, which is not an operation of torch */
#define STEPS_BACKWARD 1U
/* a collective that has gone on for so long is reported while it does */
#define STEPS_OPEN_NS 1000000000ULL
/* if no batch is fetched so long after an Optimizer.step, the step was over */
#define STEPS_SETTLE_NS 2000000000ULL

enum steps_kind {
    STEPS_USER = 0,
    STEPS_OPTIMIZER,
    STEPS_LOADER,
    STEPS_COMM,
    STEPS_DDP,
    STEPS_CHECKPOINT,
    STEPS_KINDS
};

/* An operation that has ended. */
struct steps_span {
    uint64_t begin_ns, end_ns; /* monotonic */
    int64_t step;              /* the step in which it ended; the first is 1 */
    int32_t tid;
    enum steps_kind kind;
    int64_t seq;   /* of collectives: a running number, from 1; else 0 */
    bool enqueues; /* the end is that of its enqueuing */
    struct spans_comm comm;
    char name[SPANS_NAME];
};

/* A step that has ended. Times in ns; STEPS_UNKNOWN. */
struct steps_step {
    int64_t step;
    uint64_t end_ns; /* monotonic */
    int64_t duration_ns;
    int64_t data_ns; /* fetching batches; unknown in a job without a loader */
    /* before backward passes, since the batch was ready or the previous backward pass ended */
    int64_t forward_ns;
    int64_t backward_ns;  /* only while these are watched */
    int64_t optimizer_ns; /* Optimizer.step and zero_grad */
    /* during collective operations of torch.distributed; unknown if there never was one, or the
     * end of one is not seen */
    int64_t comm_ns;
    int64_t other_ns; /* the rest; unknown unless all of the above except comm_ns are known */
    int64_t gc_ns;    /* collecting garbage, in all of that; unknown unless that is reported */
    struct spans_reading reading;
};

struct steps_handler {
    void (*on_span)(void *arg, const struct steps_span *s);
    void (*on_step)(void *arg, const struct steps_step *s);
    void *arg;
    /* A collective that goes on: `end_ns` is the time until which it has. For steps_report_open. */
    void (*on_open)(void *arg, const struct steps_span *s);
};

struct steps_open {
    uint64_t key; /* 0 if free */
    uint64_t begin_ns;
    int32_t tid;
    enum steps_kind kind;
    int64_t seq; /* see steps_span; 0 */
    bool enqueues, reported;
    struct spans_comm comm;
    char name[SPANS_NAME];
};

/* Times of a step, ns. */
struct steps_sums {
    int64_t data_ns, forward_ns, backward_ns, optimizer_ns, comm_ns, gc_ns;
    bool odd;   /* a backward pass within an optimizer: its parts cannot be separated */
    bool blind; /* a collective whose end is not seen */
};

/* The state of the current step. */
struct steps_now {
    bool whole;                   /* its beginning is known, and none of its events was dropped */
    uint64_t begin_ns;            /* the end of the previous step */
    unsigned optimizers;          /* Optimizer.step that have begun */
    unsigned ended;               /* and that have ended */
    uint64_t optimized_ns;        /* end of the last one; 0 if none has ended */
    struct spans_reading reading; /* the values at their ends */
    struct steps_sums sums;       /* up to then */
    /* and since: the next step's, if there is no further Optimizer.step in this one */
    struct steps_sums rest;
    unsigned depth;            /* current Optimizer operations on the thread */
    uint64_t forward_from_ns;  /* from then on the time is that of a forward pass */
    uint64_t backward_from_ns; /* begin of the current backward pass; 0 if none */
    char first[SPANS_NAME];    /* name of the first Optimizer.step */
    char last[SPANS_NAME];     /* and of the current one */
    /* it belongs to this step or not, depending on its optimizer, which is reported later */
    bool asks;
    uint64_t members[STEPS_MEMBERS]; /* optimizers that have taken a step in this one */
    size_t n_members;
};

struct steps {
    struct steps_open open[STEPS_OPEN];
    struct steps_now now;
    int64_t count;              /* steps that have ended */
    unsigned per_step;          /* Optimizer.step in the last of them */
    int32_t tid;                /* the thread that trains; 0 if unknown */
    bool has_loader;            /* it fetches batches from a DataLoader */
    bool has_comm;              /* a collective was seen */
    int64_t comm_count;         /* collectives that have begun */
    unsigned going_comm;        /* current collectives */
    uint64_t comm_from_ns;      /* the time since which there is at least one */
    int64_t comm_ns;            /* of the current step */
    uint64_t backward_since_ns; /* backward passes are watched since then; 0: they are not */
    bool has_backward;          /* and a complete step was seen since */
    uint64_t gc_since_ns;       /* garbage collections are reported since then; 0: they are not */
    uint64_t seen_ns;           /* the last event of that thread */
    uint64_t lost;              /* events dropped so far: see steps_expect */
};

void steps_init(struct steps *s);

/* That many events were dropped before the first one. */
void steps_expect(struct steps *s, uint64_t lost);

/* Take an event, in order; if it shows that others before it were dropped, the current step
 * becomes unknown. */
void steps_take(struct steps *s, const struct spans_event *e, const struct steps_handler *h);

/* All reported events were taken: if more than that were dropped by now, the current step is
 * unknown. */
void steps_lose(struct steps *s, uint64_t lost);

/* Nothing arrived until `ns`: a step that is over by now ends. */
void steps_settle(struct steps *s, uint64_t ns, const struct steps_handler *h);

/* Report collectives that have gone on for STEPS_OPEN_NS at `ns`, each once. */
void steps_report_open(struct steps *s, uint64_t ns, const struct steps_handler *h);

/* True if an operation of that name goes on within a backward pass, if there is one: a collective, with which gradients
 * are reduced meanwhile, or one with "backward" in its name and gathering parameters, as of FSDP. */
bool steps_is_in_backward(const char *name);

/* Backward passes are reported (STEPS_BACKWARD) from `ns` on; 0: no longer. */
void steps_begin_backward(struct steps *s, uint64_t ns);

/* Garbage collections are reported from `ns` on; 0: no longer. */
void steps_begin_gc(struct steps *s, uint64_t ns);

/* True if a complete step was seen since backward passes are reported. */
bool steps_has_backward(const struct steps *s);

/* "user", "optimizer", ... ends with NULL. */
extern const char *const steps_kind_names[STEPS_KINDS + 1];

#endif
