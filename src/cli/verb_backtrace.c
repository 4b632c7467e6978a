/* SPDX-License-Identifier: Apache-2.0 */
/* verb_backtrace: every thread with its stack, as text for people or as the JSON document. */
#include "cli/cli.h"

#include "base/json.h"
#include "base/model_text.h"
#include "client/session/call.h"
#include "client/export/document.h"
#include "client/output.h"
#include "client/target/target.h"

#define BACKTRACE_INTERVAL_MS 100 /* two snapshots show which threads are on the CPU */

struct backtrace_options {
    struct cli_options common; /* first */
    bool no_inject, block, locals, repr, tasks, native;
};

static const struct option_def backtrace_options[] = {
    {"no-inject", 0, OPTION_FLAG, offsetof(struct backtrace_options, no_inject),
     .help = "do not load the agent: read the process from outside"},
    {"block", 0, OPTION_FLAG, offsetof(struct backtrace_options, block),
     .help = "like --no-inject, but stop running threads to read exact stacks"},
    {"locals", 'l', OPTION_FLAG, offsetof(struct backtrace_options, locals),
     .help = "show the arguments and local variables of every frame"},
    {"native", 'n', OPTION_FLAG, offsetof(struct backtrace_options, native),
     .help = "show C and C++ frames too"},
    {"repr", 'r', OPTION_FLAG, offsetof(struct backtrace_options, repr),
     .help = "like --locals, but calls the job's own repr() methods"},
    {"tasks", 'a', OPTION_FLAG, offsetof(struct backtrace_options, tasks),
     .help = "show asyncio tasks below the thread of their loop, with what each awaits"},
    {.name = NULL},
};

static int backtrace_exec(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                          struct err *e) {
    const struct backtrace_options *mine = (const struct backtrace_options *)(const void *)o;
    struct target_options how = {.no_inject = mine->no_inject, .block = mine->block, .readonly = o->readonly};
    if (mine->native && mine->no_inject && !mine->block)
        return err_set(
            e, ERR_USAGE,
            "--native with --no-inject needs --block too: native frames of a thread are known from "
            "outside only while it is stopped");
    if (target_reach(addr, &how, e) != 0)
        return -1;
    struct call *c = call_open(addr, e);
    if (!c)
        return -1;
    struct model_snapshot snapshot;
    struct wire_threads want = {.locals = mine->locals || mine->repr,
                                .repr = mine->repr,
                                .tasks = mine->tasks,
                                .native = mine->native};
    int rc = want.locals || want.tasks || want.native
                 ? call_details_measured(c, &want, BACKTRACE_INTERVAL_MS, &snapshot, e)
                 : call_snapshot_measured(c, BACKTRACE_INTERVAL_MS, &snapshot, e);
    if (rc == 0 && o->json) {
        struct json j;
        json_init(&j, out, 2);
        document_put_backtrace(&j, call_get_target(c), &snapshot, &want, NULL, 0);
        strbuf_addc(out, '\n');
    } else if (rc == 0) {
        int width = o->written || want.locals || want.tasks ? 0 : output_columns();
        if (width > 0)
            model_text_put_summary(out, call_get_target(c), &snapshot, width, output_has_colour());
        else
            model_text_put_backtrace(out, call_get_target(c), &snapshot, want.locals);
    }
    model_snapshot_fini(&snapshot);
    call_close(c);
    return rc;
}

const struct cli_verb verb_backtrace = {
    .name = "backtrace",
    .aliases = "bt stack stacks threads",
    .group = "Look",
    .help = "the Python stack of every thread, now",
    .example = "probing 4242 backtrace",
    .needs_target = true,
    .options = backtrace_options,
    .options_size = sizeof(struct backtrace_options),
    .exec = backtrace_exec,
};

const struct cli_verb verb_dump = {
    .name = "dump",
    .group = "Look",
    .help = "the same as backtrace",
    .example = "probing 4242 dump --json",
    .needs_target = true,
    .options = backtrace_options,
    .options_size = sizeof(struct backtrace_options),
    .exec = backtrace_exec,
};
