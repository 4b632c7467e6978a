/* SPDX-License-Identifier: Apache-2.0 */
/* verbs: the list of verbs, their options and their help. A new verb is a row of VERBS and its
 * file. */
#include "cli/cli.h"

#include <string.h>

/* In the order of the help. */
#define VERBS(X)                                                                                             \
    X(list)                                                                                                  \
    X(inject)                                                                                                \
    X(eject)                                                                                                 \
    X(listen)                                                                                                \
    X(launch)                                                                                                \
    X(backtrace)                                                                                             \
    X(dump)                                                                                                  \
    X(eval)                                                                                                  \
    X(execute)                                                                                               \
    X(repl)                                                                                                  \
    X(debug)                                                                                                 \
    X(pause)                                                                                                 \
    X(catch)                                                                                                 \
    X(query)                                                                                                 \
    X(tables)                                                                                                \
    X(memory)                                                                                                \
    X(verdict)                                                                                               \
    X(trace)                                                                                                 \
    X(nan)                                                                                                   \
    X(profile)                                                                                               \
    X(record)                                                                                                \
    X(report)                                                                                                \
    X(flamegraph)                                                                                            \
    X(pprof)                                                                                                 \
    X(config)                                                                                                \
    X(status)

#define VERBS_DECLARE(name) extern const struct cli_verb verb_##name;
#define VERBS_ROW(name) &verb_##name,

VERBS(VERBS_DECLARE)

const struct cli_verb *const cli_verbs[] = {VERBS(VERBS_ROW) NULL};

const struct cli_verb *cli_find_verb(const char *name) {
    for (const struct cli_verb *const *v = cli_verbs; *v; v++)
        if (strcmp((*v)->name, name) == 0)
            return *v;
    return NULL;
}

/* ---- options ---- */

static const struct option_def verbs_program_options[] = {
    {"target", 't', OPTION_LIST, offsetof(struct cli_line, targets), .arg = "TARGET",
     .help = "the process to look into"},
    {"readonly", 0, OPTION_FLAG, offsetof(struct cli_line, readonly),
     .help = "change nothing in the job, run no code in it, and put no agent into it"},
    {"token", 0, OPTION_STRING, offsetof(struct cli_line, token), .arg = "TOKEN",
     .help = "for HOST:PORT: what 'listen' has printed; better in PROBING_TOKEN, which others cannot see"},
    {"help", 'h', OPTION_FLAG, offsetof(struct cli_line, help),
     .help = "this help; after a verb, its options"},
    {"version", 'V', OPTION_FLAG, offsetof(struct cli_line, version), .help = "the version"},
    {.name = NULL},
};

static const struct option_def verbs_common_options[] = {
    {"target", 't', OPTION_LIST, offsetof(struct cli_options, targets), .arg = "TARGET",
     .help = "the process to look into"},
    {"json", 0, OPTION_FLAG, offsetof(struct cli_options, json), .help = "print JSON"},
    {"readonly", 0, OPTION_FLAG, offsetof(struct cli_options, readonly),
     .help = "change nothing in the job, run no code in it, and put no agent into it"},
    {"token", 0, OPTION_STRING, offsetof(struct cli_options, token), .arg = "TOKEN",
     .help = "for HOST:PORT: what 'listen' has printed; better in PROBING_TOKEN, which others cannot see"},
    {"help", 'h', OPTION_FLAG, offsetof(struct cli_options, help), .help = "this help"},
    {.name = NULL},
};

/* Options of a verb that accepts a command: it reads no target and prints nothing. */
static const struct option_def verbs_command_options[] = {
    {"help", 'h', OPTION_FLAG, offsetof(struct cli_options, help), .help = "this help"},
    {.name = NULL},
};

void cli_put_rows(const struct cli_verb *v, struct option_def *rows) {
    size_t n = 0;
    for (const struct option_def *d = v ? v->options : NULL; d && d->name && n + 1 < CLI_MAX_ROWS; d++)
        rows[n++] = *d;
    for (const struct option_def *d = v ? v->more : NULL; d && d->name && n + 1 < CLI_MAX_ROWS; d++)
        rows[n++] = *d;
    for (const struct option_def *d = !v                 ? verbs_program_options
                                      : v->takes_command ? verbs_command_options
                                                         : verbs_common_options;
         d->name && n + 1 < CLI_MAX_ROWS; d++)
        rows[n++] = *d;
    rows[n] = (struct option_def){.name = NULL};
}

/* ---- help ---- */

static void verbs_put_help_of(struct strbuf *out, const struct cli_verb *v) {
    struct option_def rows[CLI_MAX_ROWS];
    const char *operand = v->operand ? v->operand : "";
    cli_put_rows(v, rows);
    strbuf_addf(out, "probing %s: %s\n\n", v->name, v->help);
    if (v->needs_target)
        strbuf_addf(
            out, "usage: probing TARGET %s [OPTION...]%s%s\n       probing -t TARGET%s %s [OPTION...]%s%s\n",
            v->name, operand[0] ? " " : "", operand, v->many_targets ? " [-t TARGET...]" : "", v->name,
            operand[0] ? " " : "", operand);
    else
        strbuf_addf(out, "usage: probing%s %s [OPTION...]%s%s\n", v->many_targets ? " [-t TARGET...]" : "",
                    v->name, operand[0] ? " " : "", v->takes_command ? " COMMAND [ARGUMENT...]" : operand);
    if (v->example)
        strbuf_addf(out, "\nexample: %s\n", v->example);
    strbuf_adds(out, "\noptions:\n");
    option_format_help(rows, out);
}

void cli_put_help(struct strbuf *out, const struct cli_verb *verb) {
    if (verb) {
        verbs_put_help_of(out, verb);
        return;
    }
    strbuf_adds(out, "probing: look into running Python and PyTorch processes\n\n"
                     "usage: probing TARGET VERB [OPTION...]\n"
                     "       probing -t TARGET VERB [OPTION...]\n"
                     "       probing list [OPTION...]\n"
                     "       probing launch [OPTION...] COMMAND [ARGUMENT...]\n"
                     "       probing help [VERB]\n"
                     "\nverbs:\n");
    for (const struct cli_verb *const *v = cli_verbs; *v; v++)
        strbuf_addf(out, "  %-12s %s\n", (*v)->name, (*v)->help);
    strbuf_adds(out, "\noptions:\n");
    option_format_help(verbs_program_options, out);
    strbuf_adds(
        out,
        "\nTARGET is a pid, the name of a process (train.py), HOST:PORT where an agent listens, or "
        "unix:PATH of\n"
        "its socket.\n"
        "Every verb but repl prints JSON with --json. 'probing VERB --help' lists the options of a verb.\n"
        "Exit status: 0 done, 1 failed, 2 usage, 3 cannot attach, 4 the target ended.\n");
}
