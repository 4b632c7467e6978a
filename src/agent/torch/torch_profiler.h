/* SPDX-License-Identifier: Apache-2.0 */
/*
 * torch_profiler: torch.profiler for some training steps, on request.
 *
 * It is begun and ended by a hook for all optimizers (torch.optim.optimizer, from 2.0 on), which torch calls on the thread that has
 * taken a step: a profiler of torch belongs to the thread that began it, and to be ended by another one crashes. Before that
 * the operations of some steps are counted (torch_spans.h): ending it takes time and memory by their number, which is told beforehand, and
 * refused where it is too much. What it has seen is written to a file, and added up into profiling_data.
 *
 * If the steps do not come (the job evaluates, or has ended its training), or there is far more of them than was counted, it is ended when a
 * module is called next on that thread or, on the main thread, by a pending call. One at a time. Functions are the sampler's, but where it says
 * otherwise.
 */
#ifndef AGENT_TORCH_TORCH_PROFILER_H
#define AGENT_TORCH_TORCH_PROFILER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/torch/training.h"
#include "agent/python/worker.h"
#include "wire/wire.h"

#define TORCH_PROFILER_STEPS_MAX 20
#define TORCH_PROFILER_NOTE 400

enum torch_profiler_phase {
    TORCH_PROFILER_IDLE = 0,
    TORCH_PROFILER_COUNTS, /* operations of some steps */
    TORCH_PROFILER_ENTERS, /* the worker puts the hook in */
    TORCH_PROFILER_RUNS,
    TORCH_PROFILER_HURRIES, /* it has to be ended anywhere: the worker puts another hook in */
    TORCH_PROFILER_LEAVES,  /* the worker takes them out, and adds up */
};

struct torch_profiler {
    struct worker *worker;
    struct training *training;
    enum torch_profiler_phase phase;
    struct worker_job *job; /* NULL: none goes on */
    int64_t steps;          /* that are wanted */
    bool dry, compiled;
    uint64_t phase_ns, asked_ns;
    uint64_t first_ops;             /* operations when the phase began */
    int64_t first_step;             /* steps, then */
    bool counts;                    /* torch tells of each operation */
    bool aligned;                   /* both are of the end of a step */
    double expected;                /* operations of all steps; NAN not counted */
    bool discards;                  /* nobody wants what it has seen */
    int64_t seen;                   /* steps that were profiled */
    char note[TORCH_PROFILER_NOTE]; /* what it would cost, what it has cost, or why it could not be */
    char file[512];                 /* that was written; "" none */
};

/* What has come of it. */
enum torch_profiler_end {
    TORCH_PROFILER_GOES_ON = 0,
    TORCH_PROFILER_DONE,    /* or told what it would cost: `note` */
    TORCH_PROFILER_REFUSED, /* with the error */
};

void torch_profiler_init(struct torch_profiler *p, struct worker *worker, struct training *training);
void torch_profiler_fini(struct torch_profiler *p);

/* Somebody wants it. 0, or -1 with the error. */
int torch_profiler_begin(struct torch_profiler *p, const struct wire_arm *want, uint64_t now_ns,
                         struct err *e);

/* Go on. `wanted`: somebody still does. */
enum torch_profiler_end torch_profiler_poll(struct torch_profiler *p, bool wanted, uint64_t now_ns,
                                            struct err *e);

/* Is it at work, or on its way out? */
static inline bool torch_profiler_is_busy(const struct torch_profiler *p) {
    return p->phase != TORCH_PROFILER_IDLE;
}

/* From any thread: is it, or its hook, in the job? */
bool torch_profiler_is_in(void);

/* From the server's thread: as probes_leave. */
int torch_profiler_leave(struct worker *w, struct err *e);

/* In the child of a fork: its hooks do nothing there. Async-signal-safe. */
void torch_profiler_in_child(void);

/* ---- torch_profiler_job.c: jobs of the worker ---- */

/* What all operations of a name have taken in a step, on a thread. */
struct torch_profiler_row {
    char name[208];
    int64_t step;              /* counted from 0 */
    int64_t begin_ns, took_ns; /* since the epoch */
    int64_t calls, tid;        /* tid -1: none, as on a GPU */
};

#define TORCH_PROFILER_ROWS 2048

struct worker_job *torch_profiler_job_enter(bool compiled, uint64_t deadline_ns);
struct worker_job *torch_profiler_job_hurry(uint64_t deadline_ns);
/* Take hooks out; `path` not NULL: write what was seen there, and add it up. */
struct worker_job *torch_profiler_job_leave(const char *path, unsigned per_step, uint64_t deadline_ns);

/* Of one that has ended: a text of the unit, why it could not be done ("" it could). */
const char *torch_profiler_job_note(const struct worker_job *job);

/* Of a torch_profiler_job_leave that is done. */
struct torch_profiler_found {
    const struct torch_profiler_row *rows;
    size_t n;
    bool written;
    int64_t events, bytes, pause_us;
};
void torch_profiler_job_get(const struct worker_job *job, struct torch_profiler_found *out);

/* With the GIL: a new reference to the function that the unit's hooks ask. NULL with an exception. torch_profiler.c: */
struct pyapi_object *torch_profiler_new_callback(const struct pyapi *api);

/* With the GIL: the unit's function for calls of modules, for a pending call of the main thread; kept. */
void torch_profiler_keep(const struct pyapi *api, struct pyapi_object *on_call);

#endif
