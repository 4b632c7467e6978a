/* SPDX-License-Identifier: Apache-2.0 */
/* verb_relay: the relay of this host: for a client at the other end of standard input and output, or to a ClickHouse
 * server. */
#include "cli/cli.h"

#include <stdlib.h>
#include <unistd.h>

#include "relay/relay.h"
#include "relay/relay_to.h"

struct relay_options {
    struct cli_options common; /* first */
    bool stdio, no_inject, status;
    const char *ahead, *to, *job, *tables, *metrics;
};

static const struct option_def relay_options[] = {
    {"to", 0, OPTION_STRING, offsetof(struct relay_options, to), .arg = "URL",
     .help = "write what the ranks of this host do to the ClickHouse server at URL, until it is ended"},
    {"job", 0, OPTION_STRING, offsetof(struct relay_options, job), .arg = "NAME",
     .help = "with --to: the name under which the job is written (its own)"},
    {"tables", 0, OPTION_STRING, offsetof(struct relay_options, tables), .arg = "LIST",
     .help = "with --to: write these tables, too: python.samples,... or all"},
    {"no-inject", 0, OPTION_FLAG, offsetof(struct relay_options, no_inject),
     .help = "with --to: load no agents: of a rank without one only what shows from outside is written"},
    {"metrics", 0, OPTION_STRING, offsetof(struct relay_options, metrics), .arg = "PORT",
     .help = "with --to: give Prometheus the newest values at this port of loopback"},
    {"status", 0, OPTION_FLAG, offsetof(struct relay_options, status),
     .help = "with --to: print the state of the relay that writes there, as JSON; exit status 1: it cannot "
             "write"},
    {"stdio", 0, OPTION_FLAG, offsetof(struct relay_options, stdio),
     .help = "serve the client at standard input and output, until the input ends; for other programs"},
    {"clock-ahead", 0, OPTION_STRING, offsetof(struct relay_options, ahead), .arg = "SECONDS",
     .help = "for tests: report as if the clock of this host were ahead by SECONDS"},
    {.name = NULL},
};

static int relay_exec_to(const struct relay_options *o, struct strbuf *out, struct err *e) {
    const struct relay_to_options to = {.url = o->to,
                                        .target = o->common.targets.n ? o->common.targets.items[0] : NULL,
                                        .job = o->job,
                                        .tables = o->tables,
                                        .metrics = o->metrics,
                                        .no_inject = o->no_inject || o->common.readonly};
    if (!o->status)
        return relay_to_run(&to, e);
    int rc = relay_to_put_state(o->to, out, e);
    return rc < 0 ? -1 : !rc;
}

static int relay_exec(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                      struct err *e) {
    const struct relay_options *mine = (const struct relay_options *)(const void *)o;
    (void)addr;
    if (mine->to && mine->stdio)
        return err_set(e, ERR_USAGE, "--to and --stdio are two different relays: give one of them");
    if (mine->to)
        return relay_exec_to(mine, out, e);
    relay_set_ahead(mine->ahead ? strtod(mine->ahead, NULL) : 0);
    if (!mine->stdio)
        return err_set(e, ERR_USAGE,
                       "relay needs a server to write to. Try: probing relay --to clickhouse://HOST/probing");
    if (isatty(STDIN_FILENO))
        return err_set(e, ERR_USAGE, "relay needs a client at standard input, which is a terminal");
    if (relay_serve(STDIN_FILENO, STDOUT_FILENO) == 0)
        return 0;
    return err_set(e, ERR_FAILED, "the client sent what is not valid, or is gone");
}

const struct cli_verb verb_relay = {
    .name = "relay",
    .group = "Cluster",
    .help = "record what the ranks of this host do to a ClickHouse server",
    .example = "probing relay --to clickhouse://localhost/probing",
    .takes_job = true,
    .options = relay_options,
    .options_size = sizeof(struct relay_options),
    .exec = relay_exec,
};
