/* SPDX-License-Identifier: Apache-2.0 */
/*
 * param_groups: the parameters that an optimizer of torch has, as its list `param_groups` of dicts has them in lists `params`.
 *
 * Read past what its class makes of it: nothing of the job's is called. With the GIL, on any thread.
 */
#ifndef AGENT_TORCH_PARAM_GROUPS_H
#define AGENT_TORCH_PARAM_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/python/pyapi.h"

/* One of them, borrowed: number `index` of group `group`. */
typedef void param_groups_fn(void *ctx, struct pyapi_object *parameter, int32_t group, int32_t index);

/* Each of them in turn, of as many groups as are looked at. None where they are kept otherwise. Whether these are all. No exception is
 * left. */
bool param_groups_each(const struct pyapi *api, struct pyapi_object *optimizer, param_groups_fn *each,
                       void *ctx);

#endif
