/* SPDX-License-Identifier: Apache-2.0 */
/* debug_verb: see debug_verb.h. */
#include "cli/debug_verb.h"

#include "cli/cli.h"
#include "client/target/target.h"

int debug_command_verb_run(const struct debug_command_def *def, const struct debug_command_request *wish,
                           bool json, struct target_address *addr, struct strbuf *out, struct err *e) {
    const struct target_options how = {.no_inject = false};
    struct wire_evaluated what;
    struct strbuf code, texts;
    strbuf_init(&code, WIRE_EVAL_CODE_MAX);
    strbuf_init(&texts, DEBUG_COMMAND_TEXTS_MAX);
    int rc = def->put_code(&code, wish, addr->pid, e);
    if (rc == 0)
        rc = wish->status || wish->off ? cli_find_agent(addr, e) : target_reach(addr, &how, e);
    if (rc == 0 && addr->recorded[0])
        rc = err_set(e, ERR_LOST, "the process of %s has ended: %s", addr->recorded, def->ended);
    else if (rc == 0 && addr->mode == MODEL_MODE_READONLY)
        rc = err_set(e, ERR_ATTACH, "%s, and there is none in process %d: %s", def->who, (int)addr->pid,
                     addr->why);
    if (rc == 0)
        rc = debug_command_ask(addr, &code, wish->timeout_s, def->failed, &texts, &what, e);
    if (rc == 0 && def->check)
        rc = def->check(&what, e);
    if (rc == 0 && json)
        def->put_json(out, &what, addr->pid);
    else if (rc == 0)
        def->put_text(out, &what, addr->pid);
    strbuf_fini(&texts);
    strbuf_fini(&code);
    return rc;
}
