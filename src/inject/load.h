/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load: from the created thread to a running agent. No thread of the target is stopped here.
 */
#ifndef INJECT_LOAD_H
#define INJECT_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "inject/stub.h"
#include "inject/target.h"

struct load_request {
    uint64_t params_at;   /* of the thread that was created */
    const uint8_t *bytes; /* of the agent; NULL: it is loaded already */
    size_t size;
    uint64_t deadline_ns;
    bool (*stop_asked)(void); /* asked now and then whether to give up */
};

/* Give the thread the agent's bytes and wait until it runs. 0 with the agent's answer in `out` (result STUB_STARTED or
 * STUB_ALREADY), 1 when it has to be tried again (somebody else is loading an agent into the same process at this moment, or
 * the thread gave us up), or -1 with the error. But for STUB_STARTED the thread ends by itself and takes the region with it. */
int load_agent(struct target *t, const struct load_request *req, struct stub_params *out, struct err *e);

#endif
