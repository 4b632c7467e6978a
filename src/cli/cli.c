/* SPDX-License-Identifier: Apache-2.0 */
/* cli: code that the verbs share: find an existing agent, open a database over their targets. */
#include "cli/cli.h"

#include <stdio.h>

#include "base/text.h"
#include "client/export/export.h"
#include "client/output.h"
#include "client/progress.h"
#include "client/target/target.h"

#define CLI_NOTE_BYTES 4096

const struct option_def cli_read_options[] = {
    {"no-inject", 0, OPTION_FLAG, offsetof(struct cli_read_options, no_inject),
     .help = "do not load the agent: read the process from outside"},
    {.name = NULL},
};

int cli_find_agent(struct target_address *addr, struct err *e) {
    int there = target_find_endpoint(addr, e);
    if (there == 0)
        return err_set(e, ERR_ATTACH, "process %d has no agent: 'probing %d inject' loads one",
                       (int)addr->pid, (int)addr->pid);
    return there > 0 ? 0 : -1;
}

int cli_open_database(const struct cli_options *o, struct target_address *addr, bool no_inject,
                      struct database **out, struct err *e) {
    struct target_options how = {.no_inject = no_inject, .readonly = o->readonly};
    struct database *d = database_open(e);
    int rc = d ? 0 : -1;
    progress_begin("attaching", 0, NULL);
    for (size_t i = 0; rc == 0 && i < o->targets.n; i++)
        rc = target_reach(&addr[i], &how, e) == 0 ? database_add(d, &addr[i], e) : -1;
    progress_end();
    if (rc != 0) {
        database_close(d);
        d = NULL;
    }
    *out = d;
    return rc;
}

int cli_export(const struct export_format *f, struct export_request *request, struct err *e) {
    struct strbuf note;
    strbuf_init(&note, CLI_NOTE_BYTES);
    request->note = &note;
    int rc = export_run_as(f, request, e);
    if (rc == 0 && note.len) {
        char text[CLI_NOTE_BYTES];
        text_sanitize(text, sizeof text, strbuf_str(&note));
        output_say("probing: %s\n", text);
    }
    strbuf_fini(&note);
    request->note = NULL;
    return rc;
}

void cli_note_database(struct database *d) {
    char clean[1024];
    if (!database_note(d)[0])
        return;
    text_sanitize(clean, sizeof clean, database_note(d));
    output_say("probing: %s\n", clean);
}
