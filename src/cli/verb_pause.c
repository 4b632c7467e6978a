/* SPDX-License-Identifier: Apache-2.0 */
/* verb_pause: the job's threads are held, and pdb listens meanwhile; see client/session/debug_command.h. */
#include "cli/cli.h"
#include "cli/debug_verb.h"

#include <stdio.h>

#define PAUSE_TIMEOUT_S 10.0
#define PAUSE_LIMIT_S 300.0

struct pause_options {
    struct cli_options common; /* first */
    double timeout_s, limit_s;
    bool status, off;
};

static const struct pause_options pause_default = {.timeout_s = PAUSE_TIMEOUT_S, .limit_s = PAUSE_LIMIT_S};

#define AT(member) offsetof(struct pause_options, member)

static const struct option_def pause_options[] = {
    {"limit", 0, OPTION_SECONDS, AT(limit_s), "TIME",
     "let go of the threads by then, whoever is connected (5m)", 1, DEBUG_COMMAND_LIMIT_MAX_S},
    {"status", 0, OPTION_FLAG, AT(status), NULL, "only say whether they are held, and where", 0, 0},
    {"off", 0, OPTION_FLAG, AT(off), NULL, "let go of them now", 0, 0},
    {"timeout", 0, OPTION_SECONDS, AT(timeout_s), "TIME", "for it to begin in (10s); then nothing is begun",
     0.01, WIRE_EVAL_TIMEOUT_MAX_S},
    {.name = NULL},
};

static int pause_exec(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                      struct err *e) {
    const struct pause_options *mine = (const struct pause_options *)(const void *)o;
    const struct debug_command_request wish = {.address = mine->common.operand,
                                               .timeout_s = mine->timeout_s,
                                               .limit_s = mine->limit_s,
                                               .status = mine->status,
                                               .off = mine->off};
    return debug_command_verb_run(&debug_command_pause, &wish, o->json, addr, out, e);
}

const struct cli_verb verb_pause = {
    .name = "pause",
    .help = "hold TARGET's threads, with pdb at ADDR (or a free port of 127.0.0.1) for nc; they go on by "
            "continue",
    .example = "probing 4242 pause 127.0.0.1:3344 --limit 1m",
    .needs_target = true,
    .changes = true,
    .operand = "[ADDR]",
    .options = pause_options,
    .options_size = sizeof(struct pause_options),
    .options_default = &pause_default,
    .exec = pause_exec,
};
