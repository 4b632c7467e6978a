/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes: the features that are armed in the job by leases (lease.h), on the sampler's thread:
 * owners, traced steps, rows.
 *
 * Modules are traced (module_hooks.h) for single steps, probing.trace_rate of them, but only as
 * far as the budget allows (trace_cost.h): the added cost is measured in the run itself, against
 * the steps before each traced one. The sampler never waits: work that needs the GIL is a job of
 * the python worker, and the next poll checks whether it is done.
 *
 * The search for the first number that is not finite runs once (nonfinite.h), for the lease's
 * number of steps, and then the lease ends.
 */
#ifndef AGENT_TORCH_PROBES_H
#define AGENT_TORCH_PROBES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/alloc/alloc_trace.h"
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
    PROBES_ENTERS, /* the worker installs the hooks */
    PROBES_TRACING,
    PROBES_LEAVES, /* the worker removes them, and finds names */
};

struct probes {
    struct worker *worker;
    struct mailbox *mailbox;
    struct training *training;
    struct lease leases[LEASE_KIND_COUNT];
    struct torch_profiler profiler; /* LEASE_PROFILER: it has its own phases */
    struct alloc_trace alloc;       /* LEASE_ALLOC: the same */
    uint64_t phased;                /* LEASE_PHASES: steps with phases at its beginning */
    int64_t looks[LEASE_KIND_COUNT];
    char notes[LEASE_KIND_COUNT][400];
    struct probes_ask {
        uint32_t peer, id;
        enum lease_kind kind;
    } asks[PROBES_ASKS]; /* not answered until it is armed, or cannot be */
    size_t n_asks;
    enum probes_phase phase;
    enum lease_kind kind;   /* the lease that the trace is for */
    struct worker_job *job; /* NULL if none is running */
    uint64_t next_ns;       /* latest time of the next poll */
    uint64_t phase_ns, due_ns;
    uint64_t left_ns;          /* hooks have been removed since then; 0: none were installed */
    uint64_t begin_ns, end_ns; /* of the traced step */
    int64_t step;              /* its number; -1 if unknown */
    int64_t wanted;            /* number of steps of a search */
    bool was_search;           /* and the search is over */
    double usual_ns;           /* duration of the steps before it; NAN if unknown */
    double hold_ns;            /* the GIL was ours for this trace */
    struct trace_cost cost;    /* of LEASE_TRACE */
    /* the cost of traces if they were not spread; NAN if they are not */
    double spread_pct;
    char config[CONFIG_TEXT_MAX]; /* the configuration's last value */
    bool config_on;
    bool alloc_on;      /* the configuration wants allocations to be traced */
    uint32_t farewells; /* how often the agent was to leave until now */
};

void probes_init(struct probes *p, struct worker *worker, struct mailbox *mailbox, struct training *training,
                 const struct alloc_trace_host *host);
void probes_fini(struct probes *p);

/* A client wants to arm something, or to disarm it. Answered now or by probes_poll. */
void probes_take(struct probes *p, uint32_t peer, const struct mailbox_ask *ask);

/* Once a second: arm what the configuration asks for. */
void probes_second(struct probes *p);

/* Continue. True if a client was answered. */
bool probes_poll(struct probes *p);

/* The interpreter is gone. */
void probes_lose(struct probes *p);

/* True if it waits for a job of the worker. */
bool probes_waits(const struct probes *p);

/* The latest time of the next poll; UINT64_MAX if nothing is armed. */
uint64_t probes_next_ns(const struct probes *p);

/* Put the leases into the mailbox's status; takes the lock. */
void probes_publish(const struct probes *p);

/* From the server's thread: disarm everything and arm nothing any more. 0, or -1 with the error
 * if that is not possible now. Waits for a second at most. */
int probes_leave(struct worker *w, struct err *e);

/* The same: the agent does not leave after all, and may arm what is asked for from now on. */
void probes_stay(void);

/* ---- jobs of the worker: only for probes*.c ---- */

/* Name of a module. */
struct probes_name {
    char path[160], type[64]; /* type is "" if it was not found */
};

/* Install hooks for that purpose. */
struct worker_job *probes_job_enter(enum module_mode mode, bool compiled, uint64_t deadline_ns);
/* Remove hooks; `calls`, if not NULL: sum up the calls of that step, and name the modules, or,
 * if it `is_search`, the findings. */
struct worker_job *probes_job_leave(const struct module_calls *calls, int64_t step, bool is_search,
                                    uint64_t deadline_ns);
/* The called modules, of a job that is done. */
size_t probes_job_get(const struct worker_job *job, const struct module_sum **sums,
                      const struct probes_name **names);
/* For a search: names of the findings; the number of modules in the last step. */
size_t probes_job_get_nonfinite(const struct worker_job *job, const struct nonfinite_name **names,
                                size_t *modules);
/* For a job that has failed: true if another attempt is useless. */
bool probes_job_is_refused(const struct worker_job *job);

/* ---- probes_nonfinite.c ---- */

/* Hooks are installed: open the window, and describe it. */
void probes_nonfinite_begin(struct probes *p);
/* There is no finding yet. */
void probes_nonfinite_wait(struct probes *p, uint64_t now_ns);
/* The search is over, and its finding is named: write its row and its description. False: the
 * number of the step is not known yet, but may be soon; not if it `is_late`. */
bool probes_nonfinite_end(struct probes *p, uint64_t now_ns, bool is_late);

#endif
