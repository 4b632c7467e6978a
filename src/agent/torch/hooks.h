/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hooks: has Python tell what it does: puts py_callbacks.h's functions where Python calls them, and step_values.h to work, by a job of the
 * python worker; and takes them away again.
 *
 * Collections of garbage by gc.callbacks, once torch is there; returns of functions that are watched by sys.monitoring (from
 * Python 3.12 on). Nothing of torch is touched. What is put in is taken out when it is not wanted any more, and by the worker
 * when it ends. Used by the sampler's thread.
 */
#ifndef AGENT_TORCH_HOOKS_H
#define AGENT_TORCH_HOOKS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/python/worker.h"
#include "base/config.h"
#include "base/watch.h"

struct hooks {
    struct worker_job *job; /* that is being done; NULL none */
    bool arms;              /* it puts in; else it takes out */
    bool on;                /* something was put in */
    bool gc;                /* collections are told, since: */
    uint64_t gc_since_ns;
    uint32_t functions; /* whose returns are told */
    uint64_t due_ns, every_ns;
    struct worker *worker;      /* who did the last job */
    char text[CONFIG_TEXT_MAX]; /* what is watched, */
    struct watch watch;
    uint32_t set; /* and the number of that list; as it was put in: */
    uint32_t armed_set;
    char note[160]; /* what cannot be told, and why; "" nothing */
};

struct hooks_request {
    bool steps;        /* of training, where there is torch */
    const char *torch; /* its version; "" there is none */
    const char *watch; /* probing.torch_profiling */
    double look_share; /* of the time, 0 to 1 */
};

/* Once a second: see to it that it is so. */
void hooks_second(struct hooks *h, struct worker *w, const struct hooks_request *wish);

/* Put into a status what is told, and what that costs. Any thread. */
void hooks_fill(struct model_status *out);

/* Nothing is told from now on. What is in Python's hands is taken out by the worker's end. */
void hooks_end(struct hooks *h);

#endif
