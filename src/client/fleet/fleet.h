/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fleet: what is known of all ranks of a job, whoever has found it out: screens, verbs, tables and
 * verdicts know only this.
 *
 * Filled by fleet_links.h. Plain data in one arena, made again from the newest reports: constant until the
 * next time, and read by the thread that owns it.
 */
#ifndef CLIENT_FLEET_FLEET_H
#define CLIENT_FLEET_FLEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "client/jobs/job_find.h"
#include "client/jobs/rank_set.h"
#include "client/fleet/report.h"
#include "client/fleet/stack_classes.h"

/* What a rank does, as far as one can see from outside. X(id, the glyph of a grid, its word) */
#define FLEET_STATES(X)                                                                                      \
    X(UNKNOWN, '?', "no news")                                                                               \
    X(COMPUTES, '.', "computes")                                                                             \
    X(COLLECTIVE, 'c', "collective")                                                                         \
    X(GPU, 's', "waits for GPU")                                                                             \
    X(LOADER, 'd', "loader")                                                                                 \
    X(GC, 'g', "gc")                                                                                         \
    X(CHECKPOINT, 'k', "checkpoint")                                                                         \
    X(WAITS, 'w', "waits")                                                                                   \
    X(STOPPED, 'T', "stopped")                                                                               \
    X(GONE, 'x', "ended")                                                                                    \
    X(MISSING, '-', "missing")

#define FLEET_STATE(id, glyph, word) FLEET_##id,
enum fleet_state { FLEET_STATES(FLEET_STATE) FLEET_STATE_COUNT };

char fleet_state_glyph(enum fleet_state s);
const char *fleet_state_word(enum fleet_state s);

/* A host of the job. */
struct fleet_node {
    const char *host;  /* "" unknown yet */
    const char *via;   /* how it is reached: "local", "ssh" */
    const char *state; /* "ok", "ranks missing", "no such job", "starting", "no answer" */
    struct report_job job;
    double rtt_ms, cost_pct; /* of its relay; NAN unknown */
    /* its clock is ahead of this host's by so much, give or take the error; NAN unknown */
    double clock_offset_ms, clock_error_ms;
    int64_t lost;     /* rows that its relay could not write; REPORT_NO_INT: it writes none */
    double seen_at;   /* its last answer, seconds since the epoch; NAN none yet */
    bool is_silent;   /* there is no news of its ranks: it has not answered yet, or no longer does */
    const char *note; /* NULL none */
};

/* The frames of a stack, kept as long as a rank has it. */
struct fleet_stack {
    int64_t id;
    struct model_frame *frames; /* innermost first */
    size_t n_frames;
    /* of its outermost frame that does something, of its outermost part of a step, and of its innermost
     * frames: verdict_places_find; NULL none */
    const char *doing, *phase, *wait;
    uint32_t own;     /* the innermost frame of the job's own code; n_frames: there is none */
    bool is_gpu;      /* it waits for its device */
    bool in_backward; /* its innermost frame is a backward pass */
};

struct fleet_rank {
    int32_t rank, local_rank; /* local_rank -1 unknown */
    uint32_t node;            /* of `nodes` */
    bool is_second;           /* another host has it; only while it is made */
    bool is_silent;           /* its host does not answer: what is known of it is of an earlier time */
    pid_t pid;                /* 0: it is missing */
    enum fleet_state state;
    double taken_at; /* seconds since the epoch; NAN never */
    double since;    /* it has had this stack since then, or longer; NAN unknown */
    int64_t step;    /* REPORT_NO_INT unknown, as all numbers of steps without an agent */
    double step_at, step_ms, data_ms, gc_ms, comm_ms;
    /* its steps without waiting for others, how much later than the first it comes to collectives, in
     * how many steps it is the last: straggler.h; NAN unknown */
    double own_ms, lag_ms, last;
    int32_t role;                             /* ranks that end their steps together; -1 unknown */
    int64_t shift;                            /* its step s is step s + shift in `fan` */
    bool is_slow;                             /* it makes the others wait */
    double cpu_pct, thread_cpu_pct;           /* of one core: the process, its main thread; NAN unknown */
    int64_t rss_bytes;                        /* REPORT_NO_INT unknown */
    double gpu_util, gpu_mem_mb, gpu_power_w; /* of its GPUs; NAN unknown, or none */
    const char *gpu_devices;                  /* their numbers: "0,1"; NULL unknown, or none */
    bool agent;
    char letter;                     /* the kernel's, of its main thread; '?' unknown */
    const char *wait_what;           /* "all_reduce of torch.distributed, group of 8"; NULL unknown */
    const struct fleet_stack *stack; /* NULL unknown */
    /* where it is: the innermost frame of the job's own code, without one its innermost; NULL unknown */
    const struct model_frame *at;
    uint32_t class_number; /* of `classes`; STACK_CLASSES_NONE: its stack is unknown, or old */
    const char *note;      /* NULL none */
};

/* What is known of a class of stacks (stack_classes.h), by its number. */
struct fleet_class {
    double since;       /* all of its ranks are in it since then, or longer */
    bool is_majority;   /* no other has as many ranks, and it has more than half of them */
    bool in_collective; /* most of its ranks are in one */
};

/* The duration of a step in all ranks of a role. */
struct fleet_fan {
    int32_t role;
    uint32_t n; /* ranks of which it is known */
    int64_t step;
    float least, median, most; /* ms */
};

struct straggler_verdict;

struct fleet {
    char job[JOB_NAME_MAX]; /* "" unknown yet */
    int32_t world;          /* 0 unknown */
    double taken_at;        /* of the newest report; NAN none yet */
    uint64_t round;         /* how many rounds are complete */
    struct fleet_node *nodes;
    size_t n_nodes;
    struct fleet_rank *ranks; /* by rank; missing ones, too */
    size_t n_ranks;
    struct rank_set present, missing, elsewhere;
    struct stack_classes stacks; /* of the ranks whose stack is known, on hosts that answer */
    struct fleet_class *classes; /* for each of stacks.n_classes */
    const char *note;            /* what is left out, and why; NULL nothing */
    /* by role and step; and what was judged of the roles (pace.h) */
    struct fleet_fan *fan;
    size_t n_fan;
    struct straggler_verdict *slow;
    size_t n_slow;
    struct arena arena;
};

/* The rank of that number; NULL: it is not known. */
const struct fleet_rank *fleet_find(const struct fleet *f, int32_t rank);

/* How long ago, at the time of the newest report; NAN unknown. */
double fleet_age_s(const struct fleet *f, double at);

/* ---- for what fills it ---- */

#define FLEET_BYTES ((size_t)64 * 1024 * 1024)
#define FLEET_MISSING_MAX 1024 /* of those that are listed; a job may be promised a million */

/* The last report of a rank, and whose it is. */
struct fleet_report {
    struct report_rank row;
    uint32_t node;
    const struct fleet_stack *stack;
    bool is_second;  /* another host has it */
    bool is_silent;  /* its host does not answer, */
    double silent_s; /* for so long */
};

/* What a stack is about, of its frames. */
void fleet_stack_describe(struct fleet_stack *s);

/* Make it again from nodes and reports, whose texts and stacks outlive it. Of several that claim a
 * rank the first that is not `is_second` has it. 0, or -1 without memory: then it is empty. */
int fleet_build(struct fleet *f, const struct fleet_node *nodes, size_t n_nodes,
                const struct fleet_report *reports, size_t n);
void fleet_fini(struct fleet *f);

#endif
