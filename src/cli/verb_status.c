/* SPDX-License-Identifier: Apache-2.0 */
/* verb_status: the agent's status. Needs an existing agent; injects none. */
#include "cli/cli.h"

#include "base/json.h"
#include "base/model_json.h"
#include "client/session/call.h"
#include "client/session/status_text.h"
#include "client/target/target.h"

static int status_exec(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                       struct err *e) {
    if (cli_find_agent(addr, e) != 0)
        return -1;
    struct call *c = call_open(addr, e);
    if (!c)
        return -1;
    struct model_status status;
    int rc = call_status(c, &status, e);
    if (rc == 0 && o->json) {
        struct json j;
        json_init(&j, out, 2);
        model_json_put_status(&j, call_get_target(c), &status);
        strbuf_addc(out, '\n');
    } else if (rc == 0) {
        status_text_put(out, call_get_target(c), &status);
    }
    model_status_fini(&status);
    call_close(c);
    return rc;
}

const struct cli_verb verb_status = {
    .name = "status",
    .aliases = "info",
    .group = "Agent",
    .help = "agent status: overhead, counters, clients",
    .example = "probing 4242 status --json",
    .needs_target = true,
    .exec = status_exec,
};
