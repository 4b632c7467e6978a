/* SPDX-License-Identifier: Apache-2.0 */
/* verb_relay: the relay of this host, for a client at the other end of standard input and output. */
#include "cli/cli.h"

#include <stdlib.h>
#include <unistd.h>

#include "relay/relay.h"

struct relay_options {
    struct cli_options common; /* first */
    bool stdio;
    const char *ahead;
};

static const struct option_def relay_options[] = {
    {"stdio", 0, OPTION_FLAG, offsetof(struct relay_options, stdio),
     .help = "serve the client at standard input and output, until the input ends"},
    {"clock-ahead", 0, OPTION_STRING, offsetof(struct relay_options, ahead), .arg = "SECONDS",
     .help = "for tests: report as if the clock of this host were ahead by SECONDS"},
    {.name = NULL},
};

static int relay_exec(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                      struct err *e) {
    (void)addr;
    (void)out;
    const struct relay_options *mine = (const struct relay_options *)(const void *)o;
    relay_set_ahead(mine->ahead ? strtod(mine->ahead, NULL) : 0);
    if (!mine->stdio)
        return err_set(e, ERR_USAGE, "relay is started by other programs: give --stdio");
    if (isatty(STDIN_FILENO))
        return err_set(e, ERR_USAGE, "relay needs a client at standard input, which is a terminal");
    if (relay_serve(STDIN_FILENO, STDOUT_FILENO) == 0)
        return 0;
    return err_set(e, ERR_FAILED, "the client sent what is not valid, or is gone");
}

const struct cli_verb verb_relay = {
    .name = "relay",
    .group = "Cluster",
    .help = "read the ranks of this host for a client; started by probing itself",
    .is_internal = true,
    .example = "probing relay --stdio </dev/null",
    .options = relay_options,
    .options_size = sizeof(struct relay_options),
    .exec = relay_exec,
};
