/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes: what is armed in the job by leases (lease.h), on the sampler's thread: who wants it, when it looks, its rows.
 *
 * Modules are looked at (module_hooks.h) for single steps, probing.trace_rate of them, but no more than their budget lets
 * (trace_cost.h): what looking adds is measured in the run itself, by the steps before each. The sampler never waits: what needs
 * the GIL is a job of the python worker, and the next poll sees whether it is done.
 *
 * The first number that is not finite is looked for once (nonfinite.h), in so many steps as the lease says, and then the lease ends.
 */
#ifndef AGENT_TORCH_PROBES_H
#define AGENT_TORCH_PROBES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/torch/nonfinite.h"
#include "agent/server/lease.h"
#include "agent/torch/trace_cost.h"
#include "agent/server/mailbox.h"
#include "agent/torch/module_hooks.h"
#include "agent/torch/torch_profiler.h"
#include "agent/torch/training.h"
#include "agent/python/worker.h"

#define PROBES_ASKS 32

enum probes_phase {
    PROBES_IDLE = 0,
    PROBES_ENTERS, /* the worker puts the hooks in */
    PROBES_TRACING,
    PROBES_LEAVES, /* the worker takes them out, and finds names */
};

struct probes {
    struct worker *worker;
    struct mailbox *mailbox;
    struct training *training;
    struct lease leases[LEASE_KIND_COUNT];
    struct torch_profiler profiler; /* LEASE_PROFILER: it has ways of its own */
    int64_t looks[LEASE_KIND_COUNT];
    char notes[LEASE_KIND_COUNT][200];
    struct probes_ask {
        uint32_t peer, id;
        enum lease_kind kind;
    } asks[PROBES_ASKS]; /* not answered until it is armed, or cannot be */
    size_t n_asks;
    enum probes_phase phase;
    enum lease_kind kind;   /* that the look is for */
    struct worker_job *job; /* NULL: none goes on */
    uint64_t next_ns;       /* of the next poll, at the latest */
    uint64_t phase_ns, due_ns;
    uint64_t left_ns;             /* hooks were out since then; 0: none were in */
    uint64_t begin_ns, end_ns;    /* of the step that was looked into */
    int64_t step;                 /* its number; -1 not known */
    int64_t wanted;               /* steps that a hunt is to look into, */
    bool hunted;                  /* and it has looked */
    double usual_ns;              /* duration of those before it; NAN not known */
    double hold_ns;               /* the GIL was ours for this look */
    struct trace_cost cost;       /* of LEASE_TRACE */
    double spread_pct;            /* what looks would cost if they were not spread; NAN they are not */
    char config[CONFIG_TEXT_MAX]; /* what is wanted by the configuration, as it was last seen */
    bool config_on;
};

void probes_init(struct probes *p, struct worker *worker, struct mailbox *mailbox, struct training *training);
void probes_fini(struct probes *p);

/* A client wants something armed, or no longer. Answered now or by probes_poll. */
void probes_take(struct probes *p, uint32_t peer, const struct mailbox_ask *ask);

/* Once a second: what the configuration wants armed is. */
void probes_second(struct probes *p);

/* Go on. True when somebody was answered. */
bool probes_poll(struct probes *p);

/* Is a job of the worker's waited for? */
bool probes_waits(const struct probes *p);

/* When to come back at the latest; UINT64_MAX: nothing is armed. */
uint64_t probes_next_ns(const struct probes *p);

/* Put the leases into the mailbox's status; takes the lock. */
void probes_publish(const struct probes *p);

/* From the server's thread: nothing is armed any more, and nothing will be. 0, or -1 with the error when that cannot be done now;
 * then all is as it was. Waits for a second at most. */
int probes_leave(struct worker *w, struct err *e);

/* ---- jobs of the worker: within probes*.c ---- */

/* Name of a module. */
struct probes_name {
    char path[160], type[64]; /* type "": it was not found */
};

/* Put hooks in, for that. */
struct worker_job *probes_job_enter(enum module_mode look, bool compiled, uint64_t deadline_ns);
/* Take hooks out; `calls`, if not NULL: add up what was called in that step, and name it, or, if it `hunts`, what was found. */
struct worker_job *probes_job_leave(const struct module_calls *calls, int64_t step, bool hunts,
                                    uint64_t deadline_ns);
/* Of one that is done: what was called. */
size_t probes_job_get(const struct worker_job *job, const struct module_sum **sums,
                      const struct probes_name **names);
/* Of a hunt: names of what was found; how many modules there were in the last step. */
size_t probes_job_get_nonfinite(const struct worker_job *job, const struct nonfinite_name **names,
                                size_t *modules);
/* Of one that has failed: it makes no sense to try again. */
bool probes_job_is_refused(const struct worker_job *job);

/* ---- probes_nonfinite.c ---- */

/* Hooks are in: open the window, and say what that is. */
void probes_nonfinite_begin(struct probes *p);
/* Nothing was found yet. */
void probes_nonfinite_wait(struct probes *p, uint64_t now_ns);
/* The hunt is over, and what it has found is named: its row, and what is to be said of it. False: the number of the step is not known
 * yet, but may be; not if it `is_late`. */
bool probes_nonfinite_end(struct probes *p, uint64_t now_ns, bool is_late);

#endif
