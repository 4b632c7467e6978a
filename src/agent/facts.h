/* SPDX-License-Identifier: Apache-2.0 */
/* facts: what this process is, for the answer to hello; from procfs and what pystack found. Any thread of ours. */
#ifndef AGENT_FACTS_H
#define AGENT_FACTS_H

#include "base/model.h"
#include "pystack/pystack.h"

/* Fill `out`, which is initialised by this call and owned by the caller (model_target_fini). `info` may be NULL: the interpreter
 * was not found. What cannot be found out is unknown. */
void facts_read(struct model_target *out, const struct pystack_info *info);

#endif
