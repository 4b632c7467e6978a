/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_align: which step of one rank is which of another.
 *
 * The number of a step counts from when the agent was loaded, so it differs between ranks that have
 * come as far. Ranks that wait for each other end each step at nearly the same time: the shift of
 * the numbers is the one at which these times differ least. Times are of one clock. Pure.
 */
#ifndef CLIENT_FLEET_STEP_ALIGN_H
#define CLIENT_FLEET_STEP_ALIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STEP_ALIGN_STEPS 64 /* newest ones that are compared */
#define STEP_ALIGN_LEAST 8  /* with fewer nothing is known */

struct step_end {
    int64_t step;
    double at;
};

/* Find the shift: step s of `a` is step s + shift of `b`. Both by number, which rises; some may be
 * missing. False: they have no common cadence, or too few steps at the same time. */
bool step_align_find(const struct step_end *a, size_t n_a, const struct step_end *b, size_t n_b,
                     int64_t *shift);

#endif
