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
    uint64_t params_at;   /* of the created thread */
    const uint8_t *bytes; /* of the agent; NULL: it is already loaded */
    size_t size;
    uint64_t deadline_ns;
    bool (*stop_asked)(void); /* called now and then; true to give up */
};

/* Give the thread the agent's bytes and wait until it runs. 0 with the agent's answer in `out`
 * (result STUB_STARTED or STUB_ALREADY); 1 to try again (another injector loads an agent into
 * the same process, or the thread gave up on us); or -1 with the error. Except after
 * STUB_STARTED the thread ends by itself and takes the region with it. */
int load_agent(struct target *t, const struct load_request *req, struct stub_params *out, struct err *e);

#endif
