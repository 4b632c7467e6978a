/* SPDX-License-Identifier: Apache-2.0 */
/*
 * param_groups: the parameters of an optimizer of torch, from its list `param_groups` of dicts
 * with lists `params`.
 *
 * Reads the object's own attributes, without its class: nothing of the job is called. With the
 * GIL, on any thread.
 */
#ifndef AGENT_TORCH_PARAM_GROUPS_H
#define AGENT_TORCH_PARAM_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/python/pyapi.h"

/* One of them, borrowed: number `index` of group `group`. */
typedef void param_groups_fn(void *ctx, struct pyapi_object *parameter, int32_t group, int32_t index);

/* Visit each of them in order, up to a maximum number of groups. None if they are stored in
 * another way. True if these are all. No exception is left. */
bool param_groups_each(const struct pyapi *api, struct pyapi_object *optimizer, param_groups_fn *each,
                       void *ctx);

#endif
