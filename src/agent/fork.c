/* SPDX-License-Identifier: Apache-2.0 */
/* fork: see fork.h. Each module with state in the job has a row here. */
#include "agent/fork.h"

#include <stddef.h>

#include "agent/alloc/alloc_samples.h"
#include "agent/debug/debugger_state.h"
#include "agent/debug/fatal.h"
#include "agent/debug/pause.h"
#include "agent/fds.h"
#include "agent/life.h"
#include "agent/torch/py_callbacks.h"
#include "agent/python/thread_spawner.h"
#include "agent/sampler/signal_sampler.h"
#include "agent/access/endpoints_file.h"
#include "agent/threads.h"
#include "agent/torch/module_window.h"
#include "agent/torch/step_values.h"
#include "agent/torch/torch_profiler.h"
#include "agent/torch/torch_spans.h"

static void fork_module_window(void) { module_window_set_child(true); }

static void (*const fork_handlers[])(void) = {
    fds_close_in_child,      thread_spawner_in_child, signal_sampler_in_child, fatal_in_child,
    torch_spans_in_child,    step_values_in_child,    py_callbacks_in_child,   fork_module_window,
    alloc_samples_in_child,  torch_profiler_in_child, endpoints_file_in_child, pause_in_child,
    debugger_state_in_child, threads_in_child,
};

static void (*fork_starter)(bool had_agent); /* atomic; NULL if children get no agent */

void fork_set_starter(void (*start)(bool had_agent)) {
    __atomic_store_n(&fork_starter, start, __ATOMIC_RELEASE);
}

/* None of our threads exists, and any lock may stay locked. Memory of the parent's run is left
 * alone, because it may have been in the middle of a change. Async-signal-safe, except for the
 * thread that children of a process with PROBING=2 get; see docs/dev/design/agent.md. */
void fork_in_child(void) {
    for (size_t i = 0; i < sizeof fork_handlers / sizeof fork_handlers[0]; i++)
        fork_handlers[i]();
    void (*start)(bool had_agent) = __atomic_load_n(&fork_starter, __ATOMIC_ACQUIRE);
    bool had_agent = life_in_child();
    if (start)
        start(had_agent);
}
