/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module_window: the time in which modules are traced (module_hooks.h): from the end of an
 * Optimizer.step on, for a number of them, on the thread of that step. Never more than one.
 * Atomic: the sampler opens and closes it, the job's threads check it.
 */
#ifndef AGENT_TORCH_MODULE_WINDOW_H
#define AGENT_TORCH_MODULE_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

/* The states of a window. */
enum module_window {
    MODULE_WINDOW_CLOSED = 0,
    MODULE_WINDOW_WAITS, /* for an Optimizer.step to end */
    MODULE_WINDOW_OPEN,
    MODULE_WINDOW_DONE,
};

/* The purpose of a window. */
enum module_mode {
    MODULE_MODE_NONE = 0, /* only the time of the step */
    MODULE_MODE_TIMES,
    MODULE_MODE_NUMBERS, /* the first number that is not finite (nonfinite.h) */
};

/* ---- for the sampler ---- */

/* Start a window that opens when an Optimizer.step ends, and is done after as many more as
 * `steps` steps with `per_step` in each have, or earlier (module_window_end). */
void module_window_begin(enum module_mode mode, unsigned steps, unsigned per_step);
/* A window that still waits opens with the next outermost call of a module, and is done before
 * that many more of these: no Optimizer.step ends, as when a GradScaler skips each of them. */
void module_window_begin_anyhow(unsigned calls);
/* True if it is such a window. */
bool module_window_is_anyhow(void);
enum module_window module_window_get(void);
/* Begin and end, monotonic, of a window that is open or done. */
void module_window_span(uint64_t *begin_ns, uint64_t *end_ns);
void module_window_close(void);

/* ---- the job's threads ---- */

/* True if it waits or is open. Cheap. */
bool module_window_is_wanted(void);
/* An Optimizer.step has ended. */
void module_window_on_step(uint64_t ns);
/* True if it is open, records calls, and belongs to this thread. */
bool module_window_notes(void);
bool module_window_is_here(void);
enum module_mode module_window_mode(void);
/* True if it waited for a call of a module. Then it opens here. */
bool module_window_waits_for_call(void);
void module_window_open(uint64_t ns);
/* Count another such call: true if it was the last one. */
bool module_window_count_call(void);
/* True if a step has ended since the last call of this function, or if the window has just
 * opened. */
bool module_window_is_fresh(void);
/* It is done, as of that time. */
void module_window_end(uint64_t ns);
/* Number of the window, or of a part of it that is evaluated by itself. */
uint32_t module_window_generation(void);
void module_window_begin_part(void);

/* In the child of a fork nothing is recorded; and back. Async-signal-safe. */
void module_window_set_child(bool is_child);
bool module_window_is_child(void);

#endif
