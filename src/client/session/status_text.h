/* SPDX-License-Identifier: Apache-2.0 */
/* status_text: the agent's status as text for people: for `probing status`, and %status of the
 * prompts. */
#ifndef CLIENT_SESSION_STATUS_TEXT_H
#define CLIENT_SESSION_STATUS_TEXT_H

#include "base/model.h"
#include "base/strbuf.h"

/* Append it, one item a line. */
void status_text_put(struct strbuf *out, const struct model_target *t, const struct model_status *s);

#endif
