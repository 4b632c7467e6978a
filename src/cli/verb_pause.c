/* SPDX-License-Identifier: Apache-2.0 */
/* verb_pause: pause the threads of the job while pdb listens; see
 * client/session/debug_command.h. */
#include "cli/cli.h"
#include "cli/debug_verb.h"

#include <stdio.h>

#define AT(member) offsetof(struct debug_verb_options, member)

static const struct option_def pause_options[] = {
    {"limit", 0, OPTION_SECONDS, AT(limit_s), .arg = "TIME",
     .help = "resume the threads after TIME, even with a client connected (5m)", .min = 1,
     .max = WIRE_DEBUG_LIMIT_MAX_S},
    {"status", 0, OPTION_FLAG, AT(status),
     .help = "show whether the threads are paused, and the address of pdb"},
    {"off", 0, OPTION_FLAG, AT(off), .help = "resume the threads now"},
    {"timeout", 0, OPTION_SECONDS, AT(timeout_s), .arg = "TIME",
     .help = "give up if it has not started after TIME (10s)", .min = 0.01, .max = WIRE_EVAL_TIMEOUT_MAX_S},
    {.name = NULL},
};

static int pause_exec(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                      struct err *e) {
    return debug_verb_exec(&debug_command_pause, o, addr, out, e);
}

const struct cli_verb verb_pause = {
    .name = "pause",
    .group = "Code",
    .help = "pause all threads and serve pdb (connect with nc; continue resumes)",
    .example = "probing 4242 pause 127.0.0.1:3344 --limit 1m",
    .needs_target = true,
    .changes = true,
    .operand = "[ADDR]",
    .options = pause_options,
    .options_size = sizeof(struct debug_verb_options),
    .options_default = &debug_verb_default,
    .exec = pause_exec,
};
