/* SPDX-License-Identifier: Apache-2.0 */
/*
 * torch_profiler: torch.profiler for some training steps, on request.
 *
 * A hook for all optimizers (torch.optim.optimizer, from 2.0 on) starts and ends it. Torch calls
 * the hook on the thread that has taken a step, because a profiler of torch belongs to the
 * thread that started it, and ending it on another one crashes. Before that the operations of
 * some steps are counted (torch_spans.h): the time and memory of ending it depend on their
 * number. The expected cost is reported in advance, and the request is refused if it is too
 * high. The result is written to a file, and summed up in profiling_data.
 *
 * If the steps do not arrive (the job evaluates, or has ended its training), or if they have far
 * more operations than were counted, it is ended at the next call of a module on that thread or,
 * on the main thread, by a pending call. One at a time. Functions are for the sampler, unless
 * described otherwise.
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
    TORCH_PROFILER_ENTERS, /* the worker installs the hook */
    TORCH_PROFILER_RUNS,
    TORCH_PROFILER_HURRIES, /* it must be ended anywhere: the worker installs another hook */
    TORCH_PROFILER_LEAVES,  /* the worker removes them, and sums up */
};

struct torch_profiler {
    struct worker *worker;
    struct training *training;
    enum torch_profiler_phase phase;
    struct worker_job *job; /* NULL if none is running */
    int64_t steps;          /* requested number */
    bool dry, compiled;
    uint64_t phase_ns, asked_ns;
    uint64_t first_ops;             /* operations at the start of the phase */
    int64_t first_step;             /* steps at that time */
    bool counts;                    /* torch reports each operation */
    bool aligned;                   /* both are from the end of a step */
    double expected;                /* operations of all steps; NAN if not counted */
    bool discards;                  /* nobody wants the result */
    int64_t seen;                   /* steps that were profiled */
    char note[TORCH_PROFILER_NOTE]; /* the expected cost, the cost, or the reason of a failure */
    char file[512];                 /* the written file; "" if none */
};

/* The result of a poll. */
enum torch_profiler_end {
    TORCH_PROFILER_GOES_ON = 0,
    TORCH_PROFILER_DONE,    /* or only the expected cost: in `note` */
    TORCH_PROFILER_REFUSED, /* with the error */
};

void torch_profiler_init(struct torch_profiler *p, struct worker *worker, struct training *training);
void torch_profiler_fini(struct torch_profiler *p);

/* A client requests it. 0, or -1 with the error. */
int torch_profiler_begin(struct torch_profiler *p, const struct wire_arm *want, uint64_t now_ns,
                         struct err *e);

/* Continue. `wanted`: a client still wants it. */
enum torch_profiler_end torch_profiler_poll(struct torch_profiler *p, bool wanted, uint64_t now_ns,
                                            struct err *e);

/* True if it is running, or being removed. */
static inline bool torch_profiler_is_busy(const struct torch_profiler *p) {
    return p->phase != TORCH_PROFILER_IDLE;
}

/* From any thread: true if it, or its hook, is in the job. */
bool torch_profiler_is_in(void);

/* From the server's thread: as probes_leave. */
int torch_profiler_leave(struct worker *w, struct err *e);

/* In the child of a fork: its hooks do nothing there. Async-signal-safe. */
void torch_profiler_in_child(void);

/* ---- torch_profiler_job.c: jobs of the worker ---- */

/* The time of all operations of one name in a step, on a thread. */
struct torch_profiler_row {
    char name[208];
    int64_t step;              /* counted from 0 */
    int64_t begin_ns, took_ns; /* since the epoch */
    /* tid is -1 if there is none, as on a GPU; TORCH_PROFILER_GPU: `name` is a GPU, which was at work
     * for `took_ns` of that step */
    int64_t calls, tid;
};

#define TORCH_PROFILER_GPU (-2)

#define TORCH_PROFILER_ROWS 2048

struct worker_job *torch_profiler_job_enter(bool compiled, uint64_t deadline_ns);
struct worker_job *torch_profiler_job_hurry(uint64_t deadline_ns);
/* Remove hooks; `path` not NULL: write the result there, and sum it up. */
struct worker_job *torch_profiler_job_leave(const char *path, unsigned per_step, uint64_t deadline_ns);

/* For a job that has ended: the unit's text about a failure ("" if there was none). */
const char *torch_profiler_job_note(const struct worker_job *job);

/* Of a torch_profiler_job_leave that is done. */
struct torch_profiler_found {
    const struct torch_profiler_row *rows;
    size_t n;
    bool written;
    int64_t events, bytes, pause_us;
    /* of these steps, that of the GPU that was at work the longest, and their number; 0: not known */
    int64_t steps_ns, gpu_ns, gpus;
};
void torch_profiler_job_get(const struct worker_job *job, struct torch_profiler_found *out);

/* With the GIL: a new reference to the function that the unit's hooks call. NULL with an
 * exception. In torch_profiler.c: */
struct pyapi_object *torch_profiler_new_callback(const struct pyapi *api);

/* With the GIL: store the unit's function for calls of modules, for a pending call of the main
 * thread. */
void torch_profiler_keep(const struct pyapi *api, struct pyapi_object *on_call);

#endif
