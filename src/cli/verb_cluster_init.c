/* SPDX-License-Identifier: Apache-2.0 */
/* verb_cluster_init: the tables of a ClickHouse server that ranks are recorded to. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "client/engine/engine_schema.h"

#define INIT_NEWEST ENGINE_HTTP_VERSION(999, 0)

struct init_options {
    struct cli_options common; /* first */
    bool print;
    const char *server_version;
    long retention_days;
};

static const struct option_def init_options[] = {
    {"print", 0, OPTION_FLAG, offsetof(struct init_options, print),
     .help = "print the statements, contact no server"},
    {"server-version", 0, OPTION_STRING, offsetof(struct init_options, server_version), .arg = "VERSION",
     .help = "with --print: for a server of that version, as 18.16 (the newest)"},
    {"retention-days", 0, OPTION_INT, offsetof(struct init_options, retention_days), .arg = "N",
     .help =
         "remove rows that are older than N days: the server does so by itself, one before 20.3 when this is "
         "typed (keep all)",
     .min = 1, .max = 36500},
    {.name = NULL},
};

static int init_put_statement(void *arg, const char *sql) { return strbuf_addf(arg, "%s;\n", sql); }

/* "18.16" as engine_http_version has it; 0: it is not a version. */
static int init_read_version(const char *text) {
    int major, minor, end = 0;
    if (sscanf(text, "%3d.%3d%n", &major, &minor, &end) != 2 || major < 1 || minor < 0)
        return 0;
    return text[end] == '\0' || text[end] == '.' ? ENGINE_HTTP_VERSION(major, minor) : 0;
}

static int init_print(const struct init_options *o, const struct engine_address *a, struct strbuf *out,
                      struct err *e) {
    int version = o->server_version ? init_read_version(o->server_version) : INIT_NEWEST;
    if (!version)
        return err_set(e, ERR_USAGE, "'%.40s' is not the version of a server. Write it as 18.16",
                       o->server_version);
    engine_schema_each(a->database, version, (int)o->retention_days, init_put_statement, out);
    return 0;
}

static int init_exec(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                     struct err *e) {
    const struct init_options *mine = (const struct init_options *)(const void *)o;
    struct engine_address a;
    (void)addr;
    if (!o->operand)
        return err_set(e, ERR_USAGE,
                       "cluster init needs the address of a ClickHouse server. Try: probing cluster init "
                       "clickhouse://HOST/probing");
    if (engine_address_parse(&a, o->operand, e) != 0)
        return -1;
    if (mine->print)
        return init_print(mine, &a, out, e);
    if (mine->server_version)
        return err_set(e, ERR_USAGE, "--server-version goes with --print: a server is asked for its version");
    if (engine_address_read_password(&a, e) != 0)
        return -1;
    struct engine_http *h = engine_http_open(&a, e);
    int rc = h ? engine_schema_init(h, (int)mine->retention_days, out, e) : -1;
    engine_http_close(h);
    if (rc == 0 && out->len == 0)
        strbuf_addf(out, "database %s has version %d of the schema\n", a.database, ENGINE_SCHEMA_VERSION);
    return rc;
}

const struct cli_verb verb_cluster_init = {
    .name = "cluster init",
    .noun = "cluster",
    .group = "Cluster",
    .help = "create the tables on a ClickHouse server that ranks are recorded to, or upgrade them",
    .example = "probing cluster init clickhouse://localhost/probing --print",
    .operand = "URL",
    .options = init_options,
    .options_size = sizeof(struct init_options),
    .exec = init_exec,
};
