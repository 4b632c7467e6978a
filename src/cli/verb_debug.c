/* SPDX-License-Identifier: Apache-2.0 */
/* verb_debug: start debugpy in the job; see client/session/debug_command.h. */
#include "cli/cli.h"
#include "cli/debug_verb.h"
#include "client/output.h"

#include <stdio.h>

#define DEBUG_TIMEOUT_S 30.0

struct debug_options {
    struct cli_options common; /* first */
    double timeout_s;
    const char *path;
    bool status, off, exposed;
};

static const struct debug_options debug_default = {.timeout_s = DEBUG_TIMEOUT_S};

#define AT(member) offsetof(struct debug_options, member)

static const struct option_def debug_options[] = {
    {"path", 0, OPTION_STRING, AT(path), .arg = "DIR",
     .help = "load debugpy from DIR (as made by pip install --target DIR debugpy), not from the job"},
    {"status", 0, OPTION_FLAG, AT(status), .help = "show whether debugpy listens, and for whom"},
    {"off", 0, OPTION_FLAG, AT(off), .help = "stop debugpy: disconnect the client, resume its threads"},
    {"exposed", 0, OPTION_FLAG, AT(exposed),
     .help = "allow an address that others can reach, or a job of root's; anyone who connects can run code "
             "in the job without a password"},
    {"timeout", 0, OPTION_SECONDS, AT(timeout_s), .arg = "TIME",
     .help = "give up if it has not started after TIME (30s)", .min = 0.01, .max = WIRE_EVAL_TIMEOUT_MAX_S},
    {.name = NULL},
};

static int debug_exec(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                      struct err *e) {
    const struct debug_options *mine = (const struct debug_options *)(const void *)o;
    const struct debug_command_request wish = {.address = mine->common.operand,
                                               .timeout_s = mine->timeout_s,
                                               .path = mine->path,
                                               .exposed = mine->exposed,
                                               .status = mine->status,
                                               .off = mine->off};
    int rc = debug_command_verb_run(&debug_command_debug, &wish, o->json, addr, out, e);
    if (rc == 0 && mine->exposed && o->json)
        output_say("probing: anyone who can reach this address can run code in the job without a password\n");
    return rc;
}

const struct cli_verb verb_debug = {
    .name = "debug",
    .group = "Code",
    .help = "start debugpy in TARGET, for VS Code; the job keeps running",
    .example = "probing 4242 debug --status",
    .needs_target = true,
    .changes = true,
    .operand = "[[HOST:]PORT]",
    .options = debug_options,
    .options_size = sizeof(struct debug_options),
    .options_default = &debug_default,
    .exec = debug_exec,
};
