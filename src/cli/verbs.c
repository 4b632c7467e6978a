/* SPDX-License-Identifier: Apache-2.0 */
/* verbs: the table of verbs. A new verb is a row here and a file with its function. */
#include "cli/cli.h"

const struct cli_verb cli_verbs[] = {
    {.name = "list",
     .help = "Python processes of this machine, and which can be attached to",
     .run = cli_run_list},
    {.name = "inject",
     .help = "put the agent into TARGET; an agent that is there already stays",
     .needs_target = true,
     .options = cli_inject_rows,
     .options_size = sizeof(struct cli_inject_options),
     .run = cli_run_inject},
    {.name = "eject",
     .help = "end TARGET's agent: its threads and its socket go",
     .needs_target = true,
     .run = cli_run_eject},
    {.name = "backtrace",
     .help = "every thread of TARGET with its Python stack, now",
     .needs_target = true,
     .options = cli_backtrace_rows,
     .options_size = sizeof(struct cli_backtrace_options),
     .run = cli_run_backtrace},
    {.name = "status",
     .help = "TARGET's agent about itself: cost, counters, clients",
     .needs_target = true,
     .run = cli_run_status},
    {.name = NULL},
};
