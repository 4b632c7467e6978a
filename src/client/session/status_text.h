/* SPDX-License-Identifier: Apache-2.0 */
/* status_text: the agent about itself, as a person reads it: what `probing status` prints, and %status of the prompts. */
#ifndef CLIENT_SESSION_STATUS_TEXT_H
#define CLIENT_SESSION_STATUS_TEXT_H

#include "base/model.h"
#include "base/strbuf.h"

/* Append it, a line each. */
void status_text_put(struct strbuf *out, const struct model_target *t, const struct model_status *s);

#endif
