/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps_sites: where slow steps spent the time that ordinary ones did not: their samples compared,
 * each weighted with the time that it stands for, down the tree of calls.
 *
 * A site is named only if chance does not explain it, from the step's own samples or from those of
 * all slow steps for which that did not suffice; at least two of a step's own are there. Pure.
 */
#ifndef CLIENT_SQL_STEPS_SITES_H
#define CLIENT_SQL_STEPS_SITES_H

#include <stdbool.h>
#include <stddef.h>

#include "client/sql/result.h"

#define STEPS_SITES_LEAST 2 /* samples of a slow step in its site: with fewer of it nothing is known */

/* A step as it is compared; the newest comes first. */
struct steps_span {
    double from_s, to_s; /* seconds since the epoch */
    bool is_slow;
};

/* Where it was. The texts are those of the stacks. */
struct steps_site {
    const char *func; /* NULL: not known */
    const char *file; /* NULL unknown, or no function: "waits for the GIL" */
    int line;         /* 0: no line stands out */
    double more_ms;   /* more than in an ordinary step */
};

/* Rows of samples of one thread, newest first: timestamp, stack_id, waits, and between them readings of
 * how long it has waited for a CPU (cpu_wait_s; a step that waited for most of its excess has no site);
 * and of the stacks that
 * they need: stack_id, parent_id, func, file, lineno. Fills `out` for each of `n` steps. 0, or -1
 * without memory: then nothing is known. */
int steps_sites_find(const struct steps_span *steps, size_t n, const struct result *samples,
                     const struct result *stacks, struct steps_site *out);

/* The queries of these rows, for the thread that trains and `seconds` before the newest; 0, or -1 if
 * it does not fit. */
int steps_sites_ask_samples(char *buf, size_t cap, double seconds);
int steps_sites_ask_stacks(char *buf, size_t cap, double seconds);

#endif
