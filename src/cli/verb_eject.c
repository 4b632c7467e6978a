/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verb_eject: end the agent, and check that it is gone.
 *
 * The agent's answer is not enough: the verb succeeds when its socket and its threads are gone,
 * or if there was no agent.
 */
#include "cli/cli.h"

#include "base/json.h"
#include "client/export/document.h"
#include "client/session/eject.h"
#include "client/target/tcp.h"

static int eject_exec(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                      struct err *e) {
    int ejected = eject_agent(addr, e);
    if (ejected < 0)
        return -1;
    if (!o->json) {
        const char *done = ejected ? "agent ejected" : "no agent there";
        if (addr->pid > 0)
            strbuf_addf(out, "process %d: %s\n", (int)addr->pid, done);
        else
            strbuf_addf(out, "%s: %s\n", tcp_name(addr->path), done);
        return 0;
    }
    struct json j;
    json_init(&j, out, 0);
    json_object_begin(&j);
    json_kv_int(&j, "schema_version", DOCUMENT_SCHEMA_VERSION);
    json_key(&j, "pid");
    if (addr->pid > 0)
        json_int(&j, addr->pid);
    else
        json_null(&j);
    json_kv_bool(&j, "ejected", ejected == 1);
    json_object_end(&j);
    strbuf_addc(out, '\n');
    return 0;
}

const struct cli_verb verb_eject = {
    .name = "eject",
    .aliases = "detach",
    .group = "Agent",
    .help = "remove the agent from TARGET",
    .example = "probing 4242 eject",
    .needs_target = true,
    .changes = true,
    .exec = eject_exec,
};
