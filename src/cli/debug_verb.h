/* SPDX-License-Identifier: Apache-2.0 */
/* debug_verb: the verbs for which the agent runs Python of its own: debug, pause, catch; see
 * client/session/debug_command.h. */
#ifndef CLI_DEBUG_VERB_H
#define CLI_DEBUG_VERB_H

#include "cli/cli.h"
#include "client/session/debug_command.h"

/* Options of pause and catch. */
struct debug_verb_options {
    struct cli_options common; /* first */
    double timeout_s, limit_s;
    bool status, off;
};
extern const struct debug_verb_options debug_verb_default;

/* Run pause or catch with these options; otherwise as debug_command_verb_run. */
int debug_verb_exec(const struct debug_command_def *def, const struct cli_options *o,
                    struct target_address *addr, struct strbuf *out, struct err *e);

/* Reach the target, send the request, and append the output. 0, or -1 with the error. */
int debug_command_verb_run(const struct debug_command_def *def, const struct debug_command_request *wish,
                           bool json, struct target_address *addr, struct strbuf *out, struct err *e);

#endif
