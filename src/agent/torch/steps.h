/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps: training steps, made out of the beginnings and ends of torch's operations (spans.h) as they come.
 *
 * Torch names what it does: "Optimizer.step#AdamW.step", "enumerate(DataLoader)#..." and so on. A step ends with the last
 * Optimizer.step before the next batch is fetched, so several optimizers of one batch are one step; in a job without a
 * loader it ends when an optimizer that has taken a step takes another (which of them is the last of a step is then not known, but
 * that each takes one), or, where it is not known which they are, with every Optimizer.step of the same name. What is not known of a step is unknown: what came before the first whole one, and what
 * events were lost of. Steps are counted from where we came in. Pure: no clock, no torch, no table. One thread.
 */
#ifndef AGENT_TORCH_STEPS_H
#define AGENT_TORCH_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/torch/spans.h"

#define STEPS_MEMBERS 8               /* optimizers of one step that are told apart */
#define STEPS_OPEN 64                 /* operations that go on at once and are kept in mind */
#define STEPS_UNKNOWN (-1)            /* of a time */
#define STEPS_STEP "Optimizer.step#"  /* begins the name of one */
#define STEPS_BACKWARD 1U             /* the key of the backward pass, which is no operation of torch's */
#define STEPS_SETTLE_NS 2000000000ULL /* after an Optimizer.step without a batch: the step was over */

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
    int64_t step;              /* in which it ended; the first is 1 */
    int32_t tid;
    enum steps_kind kind;
    char name[SPANS_NAME];
};

/* A step that has ended. Times in ns; STEPS_UNKNOWN. */
struct steps_step {
    int64_t step;
    uint64_t end_ns; /* monotonic */
    int64_t duration_ns;
    int64_t data_ns;     /* fetching batches; unknown in a job without a loader */
    int64_t forward_ns;  /* before backward passes, since the batch, or the backward pass before, was there */
    int64_t backward_ns; /* only while these are looked at */
    int64_t optimizer_ns; /* Optimizer.step and zero_grad */
    int64_t
        comm_ns; /* while a collective operation of torch.distributed went on; unknown where there was none ever */
    int64_t other_ns; /* the rest; unknown unless all of the above are but comm_ns */
    int64_t gc_ns;    /* of all that, collecting garbage; unknown unless that is told */
    struct spans_reading look;
};

struct steps_handler {
    void (*on_span)(void *arg, const struct steps_span *s);
    void (*on_step)(void *arg, const struct steps_step *s);
    void *arg;
};

struct steps_open {
    uint64_t key; /* 0 free */
    uint64_t begin_ns;
    int32_t tid;
    enum steps_kind kind;
    char name[SPANS_NAME];
};

/* Times of a step, ns. */
struct steps_sums {
    int64_t data_ns, forward_ns, backward_ns, optimizer_ns, comm_ns, gc_ns;
    bool odd; /* a backward pass within an optimizer: its parts cannot be told apart */
};

/* What has been seen of the step that goes on. */
struct steps_now {
    bool whole;                /* its beginning is known, and nothing of it was lost */
    uint64_t begin_ns;         /* the end of the step before */
    unsigned optimizers;       /* Optimizer.step that have begun */
    unsigned ended;            /* and that have ended */
    uint64_t optimized_ns;     /* the last of them ended; 0 none has */
    struct spans_reading look; /* what was found at the ends of them */
    struct steps_sums sums;    /* up to then, */
    struct steps_sums rest;    /* and since: the next step's, if there is no further Optimizer.step in this */
    unsigned depth;            /* Optimizer operations that go on, on the thread */
    uint64_t forward_from_ns;  /* from when on time is that of a forward pass */
    uint64_t backward_from_ns; /* a backward pass goes on since; 0 none */
    char first[SPANS_NAME];    /* name of the first Optimizer.step */
    char last[SPANS_NAME];     /* and of that which goes on */
    bool asks;                 /* whether that is of this step is known when it tells which optimizer it is */
    uint64_t members[STEPS_MEMBERS]; /* optimizers that have taken a step in this one */
    size_t n_members;
};

struct steps {
    struct steps_open open[STEPS_OPEN];
    struct steps_now now;
    int64_t count;              /* steps that have ended */
    unsigned per_step;          /* Optimizer.step in the last of them */
    int32_t tid;                /* the thread that trains; 0 not known */
    bool has_loader;            /* it fetches batches from a DataLoader */
    bool has_comm;              /* a collective was seen */
    unsigned going_comm;        /* collectives that go on */
    uint64_t comm_from_ns;      /* since when there is at least one */
    int64_t comm_ns;            /* of the step that goes on */
    uint64_t backward_since_ns; /* backward passes are looked at since; 0 they are not */
    bool has_backward;          /* and a whole step was seen since */
    uint64_t gc_since_ns;       /* collections of garbage are told since; 0 they are not */
    uint64_t seen_ns;           /* the last event of that thread */
    uint64_t lost;              /* events that were, so far: see steps_expect */
};

void steps_init(struct steps *s);

/* So many events were lost before the first that comes. */
void steps_expect(struct steps *s, uint64_t lost);

/* Take an event, in their order; one that says that others before it were lost makes the step unknown that goes on. */
void steps_take(struct steps *s, const struct spans_event *e, const struct steps_handler *h);

/* All that was told has been taken: if more than that were lost by now, the step that goes on is unknown. */
void steps_lose(struct steps *s, uint64_t lost);

/* Nothing came until `ns`: a step that is over by now ends. */
void steps_settle(struct steps *s, uint64_t ns, const struct steps_handler *h);

/* Backward passes are told (STEPS_BACKWARD) from `ns` on; 0: no longer. */
void steps_begin_backward(struct steps *s, uint64_t ns);

/* Collections of garbage are told from `ns` on; 0: no longer. */
void steps_begin_gc(struct steps *s, uint64_t ns);

/* Has a whole step been seen since backward passes are told? */
bool steps_has_backward(const struct steps *s);

/* "user", "optimizer", ... ends with NULL. */
extern const char *const steps_kind_names[STEPS_KINDS + 1];

#endif
