/* SPDX-License-Identifier: Apache-2.0 */
/* verb_debug: debugpy in the job; see client/session/debug_command.h. */
#include "cli/cli.h"
#include "cli/debug_verb.h"
#include "client/output.h"

#include <stdio.h>

#define DEBUG_TIMEOUT_S 30.0

const struct cli_debug_options cli_debug_default = {.timeout_s = DEBUG_TIMEOUT_S};

#define AT(member) offsetof(struct cli_debug_options, member)

const struct option_def cli_debug_rows[] = {
    {"path", 0, OPTION_STRING, AT(path), "DIR",
     "the folder that holds debugpy, instead of the job's own (what pip install --target DIR debugpy makes)",
     0, 0},
    {"status", 0, OPTION_FLAG, AT(status), NULL, "only say whether debugpy listens there, and for whom", 0,
     0},
    {"off", 0, OPTION_FLAG, AT(off), NULL, "end it: a client is let go, threads that it holds go on", 0, 0},
    {"exposed", 0, OPTION_FLAG, AT(exposed), NULL,
     "also where others can connect: at a HOST that they reach, beside other users, or in a job of root's; "
     "whoever connects "
     "can run code in the job, no password is asked",
     0, 0},
    {"timeout", 0, OPTION_SECONDS, AT(timeout_s), "TIME", "for it to begin in (30s); then nothing is begun",
     0.01, WIRE_EVAL_TIMEOUT_MAX_S},
    {.name = NULL},
};

int cli_run_debug(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                  struct err *e) {
    const struct cli_debug_options *mine = (const struct cli_debug_options *)(const void *)o;
    const struct debug_command_request wish = {.address = mine->common.operand,
                                               .timeout_s = mine->timeout_s,
                                               .path = mine->path,
                                               .exposed = mine->exposed,
                                               .status = mine->status,
                                               .off = mine->off};
    int rc = debug_command_verb_run(&debug_command_debug, &wish, o->json, addr, out, e);
    if (rc == 0 && mine->exposed && o->json)
        output_say("probing: whoever reaches this address can run code in the job, without a password\n");
    return rc;
}
