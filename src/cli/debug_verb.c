/* SPDX-License-Identifier: Apache-2.0 */
/* debug_verb: see debug_verb.h. */
#include "cli/debug_verb.h"

#include "cli/cli.h"
#include "client/target/target.h"

const struct debug_verb_options debug_verb_default = {.timeout_s = 10, .limit_s = 300};

int debug_verb_exec(const struct debug_command_def *def, const struct cli_options *o,
                    struct target_address *addr, struct strbuf *out, struct err *e) {
    const struct debug_verb_options *mine = (const struct debug_verb_options *)(const void *)o;
    const struct debug_command_request wish = {.address = mine->common.operand,
                                               .timeout_s = mine->timeout_s,
                                               .limit_s = mine->limit_s,
                                               .status = mine->status,
                                               .off = mine->off};
    return debug_command_verb_run(def, &wish, o->json, addr, out, e);
}

int debug_command_verb_run(const struct debug_command_def *def, const struct debug_command_request *wish,
                           bool json, struct target_address *addr, struct strbuf *out, struct err *e) {
    const struct target_options how = {.no_inject = false};
    struct wire_debugger what = {.on = false};
    struct wire_debug want;
    int rc = debug_command_request_wire(def, wish, addr->pid, &want, e);
    if (rc == 0)
        rc = wish->status || wish->off ? cli_find_agent(addr, e) : target_reach(addr, &how, e);
    if (rc == 0 && addr->recorded[0])
        rc = err_set(e, ERR_LOST, "the process of %s has ended: %s", addr->recorded, def->ended);
    else if (rc == 0 && addr->mode == MODEL_MODE_READONLY)
        rc = err_set(e, ERR_ATTACH, "%s, and there is none in process %d: %s", def->who, (int)addr->pid,
                     addr->why);
    if (rc == 0)
        rc = debug_command_ask(def, addr, &want, def->failed, &what, e);
    if (rc == 0 && json)
        def->put_json(out, &what, addr->pid);
    else if (rc == 0)
        def->put_text(out, &what, addr->pid);
    wire_debugger_fini(&what);
    wire_debug_fini(&want);
    return rc;
}
