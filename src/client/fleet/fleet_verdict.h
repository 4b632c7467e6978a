/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fleet_verdict: what keeps a job of several ranks from going on, and which rank. Pure: two
 * readings of each rank, some seconds apart, lead to verdicts with their evidence.
 *
 * Who waits is known from the counters of the process groups (hang.h), or, where no agent has
 * given any, by stacks alone. What is wrong with the rank for which all others wait is read off its
 * own stack and the kernel. Against false alarms:
 *
 *   - nothing is said before a collective is open for `late_s`;
 *   - groups whose counters move between the readings do not count;
 *   - a rank that moves (another stack, CPU, data) is WAITS FOR, never HUNG;
 *   - HUNG takes two witnesses (counters and the rank's own thread), or a fact: no process, stopped,
 *     another operation, a circle of ranks that do not move;
 *   - a rank that itself waits for one that is not known is a note;
 *   - in the first collectives of a job, and while it compiles, there are warnings at most;
 *   - where all stand alike nobody is accused;
 *   - what GPUs do is evidence, and may name a suspect in the text; it changes nothing else;
 *   - what NCCL's RAS service knows is evidence, and changes nothing else.
 */
#ifndef CLIENT_FLEET_FLEET_VERDICT_H
#define CLIENT_FLEET_FLEET_VERDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "client/fleet/rank_probe.h"
#include "client/fleet/ras.h"
#include "client/jobs/rank_set.h"
#include "client/verdict/verdict.h"

#define FLEET_VERDICT_TEXT 640
#define FLEET_VERDICT_LATE_S 10.0
#define FLEET_VERDICT_SUSPECT_S 3.0
#define FLEET_VERDICT_APART_S 2.0  /* between the two readings */
#define FLEET_VERDICT_YOUNG_S 60.0 /* a job that has just begun may take so long */
#define FLEET_VERDICT_YOUNG 12     /* collectives of a job, all groups together, before that */

/* What is known of a rank of the job. */
struct fleet_verdict_rank {
    int32_t rank;
    pid_t pid; /* 0: this host was promised the rank, and has no process of it */
    const struct rank_reading *before, *now; /* NULL: not read. `before` NULL: there is one reading */
    double still_s;  /* it has not moved for so long, as far as it was watched; NAN unknown */
    double waits_s;  /* its thread has not run for so long; NAN unknown */
    double stands_s; /* its stack is the same for so long, as far as it was watched; NAN unknown */
    double uptime_s; /* of its process; NAN unknown */
};

struct fleet_verdict_case {
    const struct fleet_verdict_rank *ranks; /* by rank */
    size_t n;
    int32_t world;     /* of the job; 0 unknown */
    int32_t elsewhere; /* ranks that are not on this host */
    double late_s;     /* 0: FLEET_VERDICT_LATE_S */
    const struct ras_fact *ras;
    size_t n_ras;
};

enum fleet_verdict_code {
    FLEET_CODE_MOVING,    /* collectives are completed, or nobody waits for long */
    FLEET_CODE_WAITING,   /* some wait, and not for long yet */
    FLEET_CODE_UNKNOWN,   /* too little could be read */
    FLEET_CODE_WAITS_FOR, /* ... a rank that works, or may */
    FLEET_CODE_HUNG,
    FLEET_CODE_MISMATCH,
    FLEET_CODE_DEADLOCK,
    FLEET_CODE_ALL_ALIKE, /* all have entered the same, and it does not end */
    FLEET_CODE_STRAGGLER, /* the job moves, and some ranks make the others wait (pace.h) */
    FLEET_CODE_IMBALANCE, /* ... now this one, now that one */
    FLEET_CODES
};

/* Why a rank does not get there. */
enum fleet_verdict_cause {
    FLEET_CAUSE_NONE,
    FLEET_CAUSE_DEAD,
    FLEET_CAUSE_STOPPED,
    FLEET_CAUSE_TRACED,
    FLEET_CAUSE_MISMATCH,
    FLEET_CAUSE_ORDER, /* it waits in another group for those that wait for it */
    FLEET_CAUSE_GIL,
    FLEET_CAUSE_GC,
    FLEET_CAUSE_COMPILE,
    FLEET_CAUSE_LOADER,
    FLEET_CAUSE_CHECKPOINT,
    FLEET_CAUSE_LOADING,
    FLEET_CAUSE_EVALUATION,
    FLEET_CAUSE_PAUSED, /* by probing */
    FLEET_CAUSE_SLEEP,
    FLEET_CAUSE_DISK,
    FLEET_CAUSE_WAIT, /* for something in the process or outside of it */
    FLEET_CAUSE_CPU,
    FLEET_CAUSE_NETWORK, /* it has entered, and does not finish */
    /* the part of a step that takes longer */
    FLEET_CAUSE_DATA,
    FLEET_CAUSE_FORWARD,
    FLEET_CAUSE_BACKWARD,
    FLEET_CAUSE_COMPUTE, /* one of these two */
    FLEET_CAUSE_OPTIMIZER,
    FLEET_CAUSE_OTHER,
    FLEET_CAUSE_UNKNOWN,
    FLEET_CAUSES
};

/* One thing that was read, and by what. */
struct fleet_verdict_evidence {
    int32_t rank;        /* -1: of the job */
    const char *witness; /* "counters", "stack", "kernel", "gpu", "ras", "operations", "arrivals" */
    char text[256];
};

struct fleet_verdict {
    enum fleet_verdict_code code;
    enum verdict_level level;
    enum fleet_verdict_cause cause;
    struct rank_set ranks;   /* that are accused; empty: nobody */
    struct rank_set waiting; /* that wait for them */
    double since_s;          /* NAN unknown */
    bool by_stacks;          /* there are no counters */
    bool settled;            /* another reading, now, would not change it */
    char pg[48], op[32];     /* where they wait; "" unknown */
    int64_t number;          /* of the collective; 0 unknown */
    struct rank_place at;    /* the line of the first that is accused */
    char brief[96];
    char text[FLEET_VERDICT_TEXT];
    char denied[384]; /* what was checked, and is fine */
    struct fleet_verdict_evidence *evidence;
    size_t n_evidence, cap_evidence;
};

/* Append to its text, as far as there is room. */
__attribute__((format(printf, 2, 3))) void fleet_verdict_say(struct fleet_verdict *v, const char *fmt, ...);

/* Append evidence: the text behind `witness`, which outlives it. 0, or -1 without memory. */
__attribute__((format(printf, 4, 5))) int fleet_verdict_prove(struct fleet_verdict *v, int32_t rank,
                                                              const char *witness, const char *fmt, ...);

/* What is known of a process group, in all ranks together. */
struct fleet_verdict_group {
    char pg[48], desc[64], op[32];
    int32_t size;
    int64_t enqueued_min, enqueued_max, completed_min, completed_max; /* -1 unknown */
    int64_t bytes;
    double since_s; /* the longest wait in it; NAN none, or unknown */
    bool moves;     /* between the readings */
    struct rank_set members, behind, silent, mismatch;
};

struct fleet_verdicts {
    struct fleet_verdict *items; /* the worst first; one at least */
    size_t n;
    struct fleet_verdict_group *groups;
    size_t n_groups;
};

/* Judge. 0, or -1 without memory; fleet_verdicts_fini frees, on failure too. */
int fleet_verdict_find(const struct fleet_verdict_case *c, struct fleet_verdicts *out);
void fleet_verdicts_fini(struct fleet_verdicts *v);

/* Whether the rank has moved between two readings: another stack, CPU, or data. */
bool fleet_verdict_has_moved(const struct rank_state *before, const struct rank_state *now);

/* Whether it may keep others from going on, or wait for them: it has ended, is stopped, has not run for
 * some seconds or has the same stack since then. If no rank is, the job moves, and no agent need be
 * asked. */
bool fleet_verdict_is_suspect(const struct fleet_verdict_rank *r);

/* "HUNG", "WAITS FOR", ...; "STOPPED", "LOADER", ..., NULL for none. */
const char *fleet_verdict_code_name(enum fleet_verdict_code code);
const char *fleet_verdict_cause_name(enum fleet_verdict_cause cause);

#endif
