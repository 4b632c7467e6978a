/* SPDX-License-Identifier: Apache-2.0 */
/* told_verb: verbs that have the agent's own Python do something: debug, pause, catch; see client/told.h. */
#ifndef CLI_TOLD_VERB_H
#define CLI_TOLD_VERB_H

#include "client/told.h"

/* Reach the target, ask, and append what is to be printed. 0, or -1 with the error. */
int told_verb_run(const struct told_def *def, const struct told_wish *wish, bool json,
                  struct session_address *addr, struct strbuf *out, struct err *e);

#endif
