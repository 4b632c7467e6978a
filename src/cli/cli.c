/* SPDX-License-Identifier: Apache-2.0 */
/* cli: code that the verbs share: find an existing agent, open a database over their targets. */
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "client/export/export.h"
#include "client/fleet/fleet_source.h"
#include "client/fleet/ranks_there.h"
#include "client/jobs/jobs_here.h"
#include "client/fleet/tables_there.h"
#include "client/output.h"
#include "client/progress.h"
#include "client/target/target.h"
#include "relay/relay.h"

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

int cli_find_ranks(struct cli_ranks *r, const char *name, struct err *e) {
    char target[JOB_NAME_MAX * 4];
    pid_t *pids = NULL;
    *r = (struct cli_ranks){.addr = NULL};
    snprintf(target, sizeof target, "%s%s", jobs_is_target(name) ? "" : JOBS_TARGET, name);
    ssize_t n = jobs_here_resolve(target, &pids, e);
    int rc = n <= 0 ? -1 : 0;
    if (n > OPTION_LIST_MAX)
        rc = err_set(e, ERR_USAGE, "more than %d targets: %s/0-7 is a part of the job", OPTION_LIST_MAX,
                     target);
    r->addr = rc == 0 ? calloc((size_t)n, sizeof *r->addr) : NULL;
    r->texts = rc == 0 ? calloc((size_t)n, sizeof *r->texts) : NULL;
    if (rc == 0 && (!r->addr || !r->texts))
        rc = err_set(e, ERR_FAILED, "out of memory for %zd ranks", n);
    for (size_t i = 0; rc == 0 && i < (size_t)n; i++) {
        snprintf(r->texts[i], sizeof r->texts[i], "%d", (int)pids[i]);
        r->targets.items[r->targets.n++] = r->texts[i];
        rc = target_resolve(r->texts[i], &r->addr[i], e);
    }
    free(pids);
    return rc;
}

int cli_read_reach(const struct cli_options *o, struct fleet_reach *reach, char *job, size_t cap,
                   struct err *e) {
    const char *name = o->targets.n ? o->targets.items[0] : "";
    if (fleet_reach_init(reach, &o->reach, relay_serve, e) != 0)
        return -1;
    name += jobs_is_target(name) ? strlen(JOBS_TARGET) : 0;
    snprintf(job, cap, "%s", name);
    size_t digits = strspn(name, "0123456789");
    if (!reach->hosts.n || !digits || (name[digits] && name[digits] != '/'))
        return 0;
    struct jobs_here here;
    struct rank_set ranks = {.n = 0};
    struct err why;
    const struct job *found =
        jobs_here_read(&here, 0, &why) == 0 ? jobs_here_choose(&here, name, &ranks, &why) : NULL;
    int rc = 0;
    if (found)
        snprintf(job, cap, "%s%s", found->name, name + digits);
    else
        rc =
            err_set(e, ERR_USAGE, "%.*s is not a process of a job on this host: give the job's name, or none",
                    (int)digits, name);
    rank_set_fini(&ranks);
    jobs_here_fini(&here);
    return rc;
}

void cli_note_fleet(const struct fleet_source *l) {
    struct strbuf text;
    strbuf_init(&text, CLI_NOTE_BYTES);
    fleet_source_put_silent(l, &text);
    if (text.len)
        output_say("probing: partial: no news from %s\n", strbuf_str(&text));
    strbuf_fini(&text);
    const char *note = fleet_source_get(l)->note;
    if (note)
        output_say("probing: %s\n", note);
}

ssize_t cli_open_there(const char *text, const struct fleet_reach *reach, bool attach, struct rank_there *out,
                       size_t cap, struct err *e) {
    struct strbuf partial;
    char clean[CLI_NOTE_BYTES];
    strbuf_init(&partial, CLI_NOTE_BYTES);
    ssize_t n = ranks_there_open(text, reach, attach, getpid(), out, cap, &partial, e);
    text_sanitize(clean, sizeof clean, strbuf_str(&partial));
    if (n >= 0 && clean[0])
        output_say("probing: partial: no news from %s\n", clean);
    strbuf_fini(&partial);
    return n;
}

void cli_note_there(const struct tables_there *t) {
    struct strbuf text;
    char clean[CLI_NOTE_BYTES];
    strbuf_init(&text, CLI_NOTE_BYTES);
    tables_there_put_silent(t, &text);
    if (text.len)
        output_say("probing: partial: no news from %s\n", strbuf_str(&text));
    text_sanitize(clean, sizeof clean, tables_there_note(t));
    if (clean[0])
        output_say("probing: %s\n", clean);
    strbuf_fini(&text);
}

void cli_ranks_fini(struct cli_ranks *r) {
    free(r->addr);
    free(r->texts);
    *r = (struct cli_ranks){.addr = NULL};
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
