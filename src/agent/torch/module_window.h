/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module_window: for how long modules are looked at (module_hooks.h): from the end of an Optimizer.step on, for so many of them, on the
 * thread whose that was. Never more than one. Atomic: the sampler opens and closes it, the job's threads look whether it is open.
 */
#ifndef AGENT_TORCH_MODULE_WINDOW_H
#define AGENT_TORCH_MODULE_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

/* What of a window there is. */
enum module_window {
    MODULE_WINDOW_CLOSED = 0,
    MODULE_WINDOW_WAITS, /* for an Optimizer.step to end */
    MODULE_WINDOW_OPEN,
    MODULE_WINDOW_DONE,
};

/* What is looked for. */
enum module_mode {
    MODULE_MODE_NONE = 0, /* nothing: only the time of the step */
    MODULE_MODE_TIMES,
    MODULE_MODE_NUMBERS, /* the first that is not finite (nonfinite.h) */
};

/* ---- the sampler's ---- */

/* One that opens when an Optimizer.step ends, and is done when as many more have as there are in `steps` steps, `per_step` in each, or
 * sooner (module_window_end). */
void module_window_begin(enum module_mode look, unsigned steps, unsigned per_step);
/* One that still waits opens with the next call of a module that is within no other, and is done before so many more of these: no
 * Optimizer.step ends, as where a GradScaler leaves each of them out. */
void module_window_begin_anyhow(unsigned calls);
/* Is it such a one? */
bool module_window_is_anyhow(void);
enum module_window module_window_get(void);
/* Of one that is open or done: its beginning, and its end, monotonic. */
void module_window_span(uint64_t *begin_ns, uint64_t *end_ns);
void module_window_close(void);

/* ---- the job's threads ---- */

/* Does it wait, or is it open? Cheap. */
bool module_window_is_wanted(void);
/* An Optimizer.step has ended. */
void module_window_on_step(uint64_t ns);
/* Is it open, with something to be noted? And on this thread? */
bool module_window_notes(void);
bool module_window_is_here(void);
enum module_mode module_window_mode(void);
/* Does it wait for a call of a module? Then it opens here. */
bool module_window_waits_for_call(void);
void module_window_open(uint64_t ns);
/* Another call of that kind: has it been the last? */
bool module_window_count_call(void);
/* A step has ended since this was asked last, or it has just opened. */
bool module_window_is_fresh(void);
/* It is done, as of then. */
void module_window_end(uint64_t ns);
/* Number of the window, or of a part of it that is looked at for itself. */
uint32_t module_window_generation(void);
void module_window_begin_part(void);

/* In the child of a fork nothing is noted; and again. Async-signal-safe. */
void module_window_set_child(bool is_child);

#endif
