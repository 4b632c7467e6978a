/* SPDX-License-Identifier: Apache-2.0 */
/* verb_launch: start a command with the agent preloaded. */
#include "cli/cli.h"

#include "client/target/launch.h"

struct launch_options {
    struct cli_options common; /* first */
    bool recursive;
};

static const struct option_def launch_options[] = {
    {"recursive", 'r', OPTION_FLAG, offsetof(struct launch_options, recursive),
     .help = "also in the Python processes it starts (torchrun, DataLoader workers)"},
    {.name = NULL},
};

static int launch_exec(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                       struct err *e) {
    const struct launch_options *mine = (const struct launch_options *)(const void *)o;
    (void)addr;
    (void)out;
    return launch_command(o->command, mine->recursive, e);
}

const struct cli_verb verb_launch = {
    .name = "launch",
    .aliases = "run",
    .group = "Agent",
    .help = "start a program with the agent in it",
    .example = "probing launch python train.py --epochs 3",
    .changes = true,
    .takes_command = true,
    .options = launch_options,
    .options_size = sizeof(struct launch_options),
    .exec = launch_exec,
};
