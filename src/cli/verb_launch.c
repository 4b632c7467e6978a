/* SPDX-License-Identifier: Apache-2.0 */
/* verb_launch: start a command with the agent in it. */
#include "cli/cli.h"

#include "client/target/launch.h"

const struct option_def cli_launch_rows[] = {
    {"recursive", 'r', OPTION_FLAG, offsetof(struct cli_launch_options, recursive), NULL,
     "in the Python processes that it starts, too (torchrun, DataLoader workers)", 0, 0},
    {.name = NULL},
};

int cli_run_launch(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                   struct err *e) {
    const struct cli_launch_options *mine = (const struct cli_launch_options *)(const void *)o;
    (void)addr;
    (void)out;
    return launch_command(o->command, mine->recursive, e);
}
