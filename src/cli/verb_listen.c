/* SPDX-License-Identifier: Apache-2.0 */
/* verb_listen: make the agent listen at a TCP address, which it reports with the tokens; or stop
 * listening. Injects an agent. */
#include "cli/cli.h"

#include <string.h>

#include "base/address.h"
#include "base/json.h"
#include "client/session/call.h"
#include "client/export/document.h"
#include "client/target/target.h"
#include "client/target/tcp.h"

struct listen_options {
    struct cli_options common; /* first */
    bool looking, off, exposed;
};

static const struct option_def listen_options[] = {
    {"looking", 0, OPTION_FLAG, offsetof(struct listen_options, looking),
     .help = "read-only clients: stacks and statistics, no variable values"},
    {"exposed", 0, OPTION_FLAG, offsetof(struct listen_options, exposed),
     .help = "allow an address that other machines can reach; the connection is not encrypted"},
    {"off", 0, OPTION_FLAG, offsetof(struct listen_options, off),
     .help = "close the port and disconnect its clients"},
    {.name = NULL},
};

int cli_check_listen(const char *address, bool exposed, struct err *e) {
    struct address checked;
    if (address_parse(&checked, address, e) != 0)
        return -1;
    if (exposed || address_is_loopback(&checked))
        return 0;
    return err_set(
        e, ERR_USAGE,
        "%s is reachable from other machines, and the connection is not encrypted: add --exposed if "
        "that is intended",
        address);
}

int cli_listen(const struct target_address *addr, const char *address, bool looking,
               struct wire_listening *out, struct err *e) {
    struct wire_listen want = {.looking = looking};
    if (tcp_is(addr->path))
        return err_set(e, ERR_USAGE, "tokens are created only on the job's own machine: give its pid there");
    strncat(want.address, address ? address : "", sizeof want.address - 1);
    struct call *c = call_open(addr, e);
    int rc = c ? call_listen(c, &want, out, e) : -1;
    call_close(c);
    return rc;
}

void cli_put_listening(struct strbuf *out, const struct wire_listening *l) {
    strbuf_addf(out, "listening at %s\n", l->address);
    if (l->token[0])
        strbuf_addf(out, "token           %s\n", l->token);
    strbuf_addf(out, "read-only token %s\n", l->looking_token);
    const char *end = strrchr(l->file, '.');
    int stem = end ? (int)(end - l->file) : 0;
    strbuf_addf(out,
                "processes of the job's user on its machine have read-only access without one; the tokens "
                "are not shown again; they are in %s, and for curl: -H @%.*s.curl\n",
                l->file, stem, l->file);
}

static int listen_exec(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                       struct err *e) {
    const struct listen_options *mine = (const struct listen_options *)(const void *)o;
    bool off = mine->off || (o->operand && strcmp(o->operand, "off") == 0);
    struct wire_listening got = {.address = ""};
    if (mine->off && o->operand)
        return err_set(e, ERR_USAGE, "--off takes no address");
    if (!off && o->operand && cli_check_listen(o->operand, mine->exposed, e) != 0)
        return -1;
    /* Without an agent nothing listens. */
    int there = off ? target_find_endpoint(addr, e) : target_attach(addr, 0, NULL, e) == 0 ? 1 : -1;
    if (there < 0 || (there > 0 && cli_listen(addr, off ? "off" : o->operand, mine->looking, &got, e) != 0))
        return -1;
    if (!o->json && off)
        strbuf_adds(out, "the agent no longer listens for TCP\n");
    else if (!o->json)
        cli_put_listening(out, &got);
    if (!o->json)
        return 0;
    struct json j;
    json_init(&j, out, 0);
    json_object_begin(&j);
    json_kv_int(&j, "schema_version", DOCUMENT_SCHEMA_VERSION);
    document_put_listening(&j, off ? NULL : &got);
    json_object_end(&j);
    strbuf_addc(out, '\n');
    return 0;
}

const struct cli_verb verb_listen = {
    .name = "listen",
    .group = "Agent",
    .help = "open or close a TCP port of the agent (default: a free port on 127.0.0.1)",
    .example = "probing 4242 listen 127.0.0.1:3344",
    .needs_target = true,
    .changes = true,
    .operand = "[ADDR|off]",
    .options = listen_options,
    .options_size = sizeof(struct listen_options),
    .exec = listen_exec,
};
