/* SPDX-License-Identifier: Apache-2.0 */
/* module_window: see module_window.h. */
#include "agent/torch/module_window.h"

#include <pthread.h>

/* Atomic. */
static uint32_t window_state, window_mode, window_generation, window_child;
static uint32_t window_left, window_per_step; /* Optimizer.step, or calls */
static uint32_t window_fresh;                 /* a step begins with the next outermost call */
static uint32_t window_anyhow;                /* a step is from one outermost call to the next */
static uint64_t window_thread;                /* the one that trains: pthread_self */
static uint64_t window_begin_ns, window_end_ns;

static uint32_t window_get(const uint32_t *v) { return __atomic_load_n(v, __ATOMIC_ACQUIRE); }
static void window_set(uint32_t *v, uint32_t to) { __atomic_store_n(v, to, __ATOMIC_RELEASE); }

void module_window_begin(enum module_mode mode, unsigned steps, unsigned per_step) {
    window_begin_ns = window_end_ns = 0;
    window_set(&window_per_step, per_step ? per_step : 1);
    window_set(&window_left, steps * (per_step ? per_step : 1));
    window_set(&window_mode, mode);
    window_set(&window_fresh, 1);
    window_set(&window_anyhow, 0);
    module_window_begin_part();
    window_set(&window_state, MODULE_WINDOW_WAITS);
}

void module_window_begin_anyhow(unsigned calls) {
    window_set(&window_left, calls ? calls : 1);
    window_set(&window_anyhow, 1);
}

bool module_window_is_anyhow(void) { return window_get(&window_anyhow) != 0; }

enum module_window module_window_get(void) { return (enum module_window)window_get(&window_state); }

void module_window_span(uint64_t *begin_ns, uint64_t *end_ns) {
    *begin_ns = window_begin_ns;
    *end_ns = window_end_ns;
}

void module_window_close(void) { window_set(&window_state, MODULE_WINDOW_CLOSED); }

bool module_window_is_wanted(void) {
    uint32_t state = window_get(&window_state);
    return (state == MODULE_WINDOW_WAITS || state == MODULE_WINDOW_OPEN) && !window_get(&window_child);
}

void module_window_open(uint64_t ns) {
    window_begin_ns = ns;
    __atomic_store_n(&window_thread, (uint64_t)pthread_self(), __ATOMIC_RELEASE);
    window_set(&window_state, MODULE_WINDOW_OPEN);
}

void module_window_end(uint64_t ns) {
    window_end_ns = ns;
    window_set(&window_state, MODULE_WINDOW_DONE);
}

bool module_window_is_here(void) {
    return __atomic_load_n(&window_thread, __ATOMIC_ACQUIRE) == (uint64_t)pthread_self();
}

/* One less; returns the remaining number. */
static uint32_t window_count(void) { return __atomic_sub_fetch(&window_left, 1, __ATOMIC_ACQ_REL); }

void module_window_on_step(uint64_t ns) {
    uint32_t state = window_get(&window_state);
    if (module_window_is_anyhow())
        return;
    if (state == MODULE_WINDOW_WAITS)
        module_window_open(ns);
    else if (state == MODULE_WINDOW_OPEN && module_window_is_here()) {
        uint32_t left = window_count();
        if (left % window_get(&window_per_step) == 0)
            window_set(&window_fresh, 1);
        if (left == 0)
            module_window_end(ns);
    }
}

bool module_window_notes(void) {
    return window_get(&window_state) == MODULE_WINDOW_OPEN && window_get(&window_mode) != MODULE_MODE_NONE &&
           !window_get(&window_child);
}

enum module_mode module_window_mode(void) { return (enum module_mode)window_get(&window_mode); }

bool module_window_waits_for_call(void) {
    return window_get(&window_state) == MODULE_WINDOW_WAITS && module_window_is_anyhow() &&
           !window_get(&window_child);
}

bool module_window_count_call(void) { return window_count() == 0; }

bool module_window_is_fresh(void) { return __atomic_exchange_n(&window_fresh, 0, __ATOMIC_ACQ_REL) != 0; }

uint32_t module_window_generation(void) { return window_get(&window_generation); }

void module_window_begin_part(void) { __atomic_add_fetch(&window_generation, 1, __ATOMIC_ACQ_REL); }

void module_window_set_child(bool is_child) { window_set(&window_child, is_child); }

bool module_window_is_child(void) { return window_get(&window_child) != 0; }
