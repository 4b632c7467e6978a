/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gil_usage: how often a thread had the GIL for what is ours, and how much CPU time it used then: for status.
 *
 * Code that a client has had run is the client's, and ends such a hold; making it ready, the text of what it gives and what is to be put
 * back after it are ours again. Atomic: from any thread.
 */
#ifndef AGENT_PYTHON_GIL_USAGE_H
#define AGENT_PYTHON_GIL_USAGE_H

#include <stdint.h>

struct gil_usage {
    uint64_t n, ns, longest_ns;
};

/* When an agent begins: there were none. */
void gil_usage_clear(void);

/* The calling thread has had it since its own CPU clock was `since_ns`. */
void gil_usage_add(uint64_t since_ns);

void gil_usage_get(struct gil_usage *out);

#endif
