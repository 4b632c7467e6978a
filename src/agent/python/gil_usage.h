/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gil_usage: how often a thread had the GIL for work of ours, and the CPU time it used then: for
 * status.
 *
 * The code of a client is the client's work, and ends such a time; its preparation, the text of
 * its result and the cleanup after it are ours. Atomic: from any thread.
 */
#ifndef AGENT_PYTHON_GIL_USAGE_H
#define AGENT_PYTHON_GIL_USAGE_H

#include <stdint.h>

struct gil_usage {
    uint64_t n, ns, longest_ns;
};

/* Reset, when an agent starts. */
void gil_usage_clear(void);

/* The calling thread has had it since its own CPU clock was `since_ns`. */
void gil_usage_add(uint64_t since_ns);

void gil_usage_get(struct gil_usage *out);

#endif
