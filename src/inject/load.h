/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load: from the created thread to a running agent. No thread of the target is stopped here.
 */
#ifndef INJECT_LOAD_H
#define INJECT_LOAD_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "inject/stub.h"
#include "inject/target.h"

/* Give the thread behind `params_at` the agent's bytes (NULL: the agent is loaded already) and wait until it runs, until
 * `deadline_ns`. 0 with the agent's answer in `out` (result STUB_STARTED or STUB_ALREADY), 1 when somebody else is loading
 * an agent into the same process at this moment, or -1 with the error. But for STUB_STARTED the thread ends by itself and
 * takes the region with it. */
int load_agent(struct target *t, uint64_t params_at, const uint8_t *bytes, size_t size, uint64_t deadline_ns,
               struct stub_params *out, struct err *e);

#endif
