/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call_keywords: what a module of torch is called with by keyword.
 *
 * Torch tells global hooks of arguments by position alone before a call (torch/nn/modules/module.py), and by keyword, from 2.0 on,
 * only when it is over: an operation in place may have changed them by then. But its own function that calls the hook has them in
 * `kwargs`, in all versions, so they are looked up in its frame, by the thread itself (pystack/frame_vars.h): nothing of torch is changed.
 * With the GIL, as all that is here.
 */
#ifndef AGENT_TORCH_CALL_KEYWORDS_H
#define AGENT_TORCH_CALL_KEYWORDS_H

#include <stdbool.h>

#include "agent/python/pyapi.h"
#include "pystack/pystack.h"

/* Frames are found by `ps`. Without memory nothing is known. */
void call_keywords_begin(const struct pyapi *api, struct pystack *ps);

/* Within a hook that torch calls before a module: the dict, a new reference. NULL: there are none; not `*is_known`: there may be, for
 * the frame is not one that is known. Leaves no exception. */
struct pyapi_object *call_keywords_get(bool *is_known);

void call_keywords_end(void);

#endif
