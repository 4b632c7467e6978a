/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hooks: makes Python report events: installs the functions of py_callbacks.h where Python calls
 * them, and starts step_values.h, by a job of the python worker; and removes them again.
 *
 * Garbage collections by gc.callbacks, once torch is loaded; returns of watched functions by
 * sys.monitoring (from Python 3.12 on). Torch itself is not changed. Installed functions are
 * removed when they are no longer wanted, and by the worker when it ends. Used by the sampler's
 * thread.
 */
#ifndef AGENT_TORCH_HOOKS_H
#define AGENT_TORCH_HOOKS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/python/worker.h"
#include "base/config.h"
#include "base/watch.h"

struct hooks {
    struct worker_job *job; /* the current one; NULL if none */
    bool arms;              /* it installs; otherwise it removes */
    bool on;                /* something was installed */
    uint64_t closed;        /* how often the worker had released it before */
    bool gc;                /* collections are reported, since: */
    uint64_t gc_since_ns;
    uint32_t functions; /* functions whose returns are reported */
    uint64_t due_ns, every_ns;
    struct worker *worker;      /* the worker of the last job */
    char text[CONFIG_TEXT_MAX]; /* the watch list */
    struct watch watch;
    uint32_t set; /* and its number; as installed: */
    uint32_t armed_set;
    char note[160]; /* events that cannot be reported, and the reason; "" if none */
};

struct hooks_request {
    bool steps;        /* of training, if torch is loaded */
    const char *torch; /* its version; "" if there is none */
    const char *watch; /* probing.torch_profiling */
    double look_share; /* share of the time, 0 to 1 */
};

/* Once a second: install or remove hooks as requested. */
void hooks_second(struct hooks *h, struct worker *w, const struct hooks_request *request);

/* Put the installed hooks and their cost into a status. Any thread. */
void hooks_fill(struct model_status *out);

/* From now on nothing is reported. The worker's end removes the functions from Python. */
void hooks_end(struct hooks *h);

#endif
