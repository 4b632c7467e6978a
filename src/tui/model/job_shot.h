/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_shot: all ranks of a job at one moment, as the screens show them.
 *
 * A copy of a struct fleet that belongs to itself alone, so that a worker can go on with the fleet
 * while it is drawn, or frozen. It does not change once it is made. Unknown numbers are NAN or -1.
 */
#ifndef TUI_MODEL_JOB_SHOT_H
#define TUI_MODEL_JOB_SHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "client/fleet/fleet.h"
#include "client/fleet/fleet_verdict.h"
#include "client/jobs/rank_set.h"
#include "client/fleet/stack_classes.h"

struct job_shot_host {
    const char *name;
    bool is_here;       /* it is this host */
    double cost_pct;    /* of the relay there, of a core */
    const char *silent; /* why there is no news of its ranks; NULL: there is */
};

struct job_shot_rank {
    int32_t rank;
    int32_t host; /* of `hosts`; -1: none */
    pid_t pid;    /* on its host; 0: no process */
    enum fleet_state state;
    bool is_awaited;  /* others wait for it */
    bool is_late;     /* its step takes much longer than the last one did */
    double since_s;   /* for how long it has had its stack; NAN while its host gives no news */
    const char *what; /* the operation it waits in: "all_reduce"; NULL */
    int64_t step;
    double step_ms, own_ms, lag_ms;
    int32_t role;  /* of `fan`; -1 unknown */
    int64_t shift; /* its step s is step s + shift there */
    double cpu_pct;
    int64_t rss_bytes;
    double gpu_util, gpu_mem_mb;
    uint32_t leaf;        /* node of `stacks`: its innermost frame; the root: no stack is known */
    int32_t class_number; /* of `classes` */
    bool has_agent;
    const char *note; /* why something is not known; NULL */
};

struct job_shot_class {
    double since_s; /* for how long all of its ranks have been in it */
    bool is_majority;
};

enum job_shot_level { JOB_SHOT_NOTE, JOB_SHOT_WARNING, JOB_SHOT_BAD };

struct job_shot_verdict {
    const char *code; /* "HUNG" */
    enum job_shot_level level;
    const char *brief;     /* in a few words: "HUNG RANK 5" */
    const char *text;      /* a sentence, with its ranks */
    struct rank_set ranks; /* that it accuses */
};

struct job_shot {
    struct arena arena;
    const char *job; /* its name, "train.py-c4f2" */
    int32_t world;   /* ranks that it should have; 0 unknown */
    double at_s;     /* seconds since the epoch */
    bool is_final;   /* nothing newer comes: the job has ended */
    bool is_judged;  /* what is wrong was judged, which `verdicts` has if it is worth a warning */
    double moment;   /* of the past, that was asked for; NAN: it was the newest */
    double rate;     /* steps a second */
    /* for how long a rank that may wait for others has had its stack and ended no step, or more than half of all ranks */
    double still_s;
    struct job_shot_host *hosts;
    size_t n_hosts;
    struct job_shot_rank *ranks; /* by rank; missing ones, too */
    size_t n_ranks;
    struct stack_classes stacks;
    struct job_shot_class *classes;    /* for each of stacks.n_classes */
    struct job_shot_verdict *verdicts; /* the worst first */
    size_t n_verdicts;
    struct fleet_fan *fan; /* by role and step */
    size_t n_fan;
    const char *note; /* what is left out; NULL */
};

/* NULL: out of memory. */
struct job_shot *job_shot_new(const struct fleet *f);
/* Put in what was judged meanwhile, before what is there: what is worth a warning, and whom others wait
 * for. Before anybody has the shot. */
void job_shot_put_verdicts(struct job_shot *s, const struct fleet_verdicts *v);

#define JOB_SHOT_JUDGED_S 4.0 /* ranks stand still for so long: it is worth to judge */

/* The memory that it takes, in bytes. */
size_t job_shot_bytes(const struct job_shot *s);

void job_shot_free(struct job_shot *s); /* may be NULL */

/* A rank by its number, or by a pid of this host; NULL: there is none. */
const struct job_shot_rank *job_shot_find(const struct job_shot *s, int32_t rank);
const struct job_shot_rank *job_shot_find_pid(const struct job_shot *s, pid_t pid);

/* The name of a rank's host; NULL: not known. Is it this one? */
const char *job_shot_host_name(const struct job_shot *s, const struct job_shot_rank *r);
bool job_shot_is_here(const struct job_shot *s, const struct job_shot_rank *r);

/* How many hosts give no news. */
size_t job_shot_silent_hosts(const struct job_shot *s);

/* How many ranks are in a class; 0: there is none with that number. */
int32_t job_shot_class_ranks(const struct job_shot *s, int32_t class_number);

#endif
