/* SPDX-License-Identifier: Apache-2.0 */
/* verbs: the list of verbs, their options and their help. A new verb is a row of VERBS and its
 * file. */
#include "cli/cli.h"

#include <string.h>

/* In the order of the help. */
#define VERBS(X)                                                                                             \
    X(list)                                                                                                  \
    X(backtrace)                                                                                             \
    X(dump)                                                                                                  \
    X(verdict)                                                                                               \
    X(memory)                                                                                                \
    X(report)                                                                                                \
    X(flamegraph)                                                                                            \
    X(pprof)                                                                                                 \
    X(record)                                                                                                \
    X(trace)                                                                                                 \
    X(nan)                                                                                                   \
    X(profile)                                                                                               \
    X(eval)                                                                                                  \
    X(execute)                                                                                               \
    X(repl)                                                                                                  \
    X(debug)                                                                                                 \
    X(pause)                                                                                                 \
    X(catch)                                                                                                 \
    X(query)                                                                                                 \
    X(tables)                                                                                                \
    X(launch)                                                                                                \
    X(inject)                                                                                                \
    X(eject)                                                                                                 \
    X(listen)                                                                                                \
    X(config)                                                                                                \
    X(status)                                                                                                \
    X(cluster_nodes)                                                                                         \
    X(cluster_ranks)                                                                                         \
    X(cluster_stacks)                                                                                        \
    X(cluster_query)                                                                                         \
    X(cluster_verdict)                                                                                       \
    X(cluster_record)                                                                                        \
    X(cluster_comm)                                                                                          \
    X(cluster_attach)                                                                                        \
    X(cluster_detach)                                                                                        \
    X(cluster_init)                                                                                          \
    X(relay)

#define VERBS_DECLARE(name) extern const struct cli_verb verb_##name;
#define VERBS_ROW(name) &verb_##name,

VERBS(VERBS_DECLARE)

const struct cli_verb *const cli_verbs[] = {VERBS(VERBS_ROW) NULL};

/* The name, where it is one word. */
static const char *verbs_word(const struct cli_verb *v) { return v->noun ? NULL : v->name; }

/* Is one of the words in `names` the first `n` bytes of `word`, or, with `begins`, does one begin
 * with them? */
static bool verbs_are_names(const char *names, const char *word, size_t n, bool begins) {
    while (names && *names) {
        size_t len = strcspn(names, " ");
        if (len >= n && (begins || len == n) && memcmp(names, word, n) == 0)
            return true;
        names += len + strspn(names + len, " ");
    }
    return false;
}

const struct cli_verb *cli_find_verb(const char *name) {
    size_t n = strlen(name);
    for (const struct cli_verb *const *v = cli_verbs; *v; v++)
        if (verbs_are_names(verbs_word(*v), name, n, false) || verbs_are_names((*v)->aliases, name, n, false))
            return *v;
    return NULL;
}

const struct cli_verb *cli_find_prefix(const char *word, const struct cli_verb *several[2]) {
    const struct cli_verb *found[2] = {NULL};
    size_t n = strlen(word), count = 0;
    for (const struct cli_verb *const *v = cli_verbs; *v && n > 0 && count < 2; v++)
        if (verbs_are_names(verbs_word(*v), word, n, true) || verbs_are_names((*v)->aliases, word, n, true))
            found[count++] = *v;
    if (several)
        memcpy(several, found, sizeof found);
    return count == 1 ? found[0] : NULL;
}

bool cli_is_noun(const char *word) {
    for (const struct cli_verb *const *v = cli_verbs; *v; v++)
        if ((*v)->noun && strcmp((*v)->noun, word) == 0)
            return true;
    return false;
}

const struct cli_verb *cli_find_of_noun(const char *noun, const char *word) {
    const struct cli_verb *found = NULL;
    size_t n = strlen(word), count = 0;
    for (const struct cli_verb *const *v = cli_verbs; *v && n > 0; v++) {
        if (!(*v)->noun || strcmp((*v)->noun, noun) != 0)
            continue;
        const char *second = (*v)->name + strlen(noun) + 1;
        if (strcmp(second, word) == 0)
            return *v;
        if (strncmp(second, word, n) == 0) {
            found = *v;
            count++;
        }
    }
    return count == 1 ? found : NULL;
}

/* ---- options ---- */

static const struct option_def verbs_program_options[] = {
    {"target", 't', OPTION_LIST, offsetof(struct cli_line, targets), .arg = "TARGET",
     .help = "the process to inspect"},
    {"pid", 'p', OPTION_LIST, offsetof(struct cli_line, targets), .arg = "PID", .help = "like --target"},
    {"readonly", 0, OPTION_FLAG, offsetof(struct cli_line, readonly),
     .help = "run no code in the job, change nothing there, and load no agent"},
    {"token", 0, OPTION_STRING, offsetof(struct cli_line, token), .arg = "TOKEN",
     .help = "token for HOST:PORT, as 'listen' printed it (safer: PROBING_TOKEN in the environment)"},
    FLEET_REACH_ROWS(struct cli_line, reach),
    {"help", 'h', OPTION_FLAG, offsetof(struct cli_line, help),
     .help = "this help; after a verb, its options"},
    {"version", 'V', OPTION_FLAG, offsetof(struct cli_line, version), .help = "print the version"},
    {.name = NULL},
};

static const char *verbs_choose_format(int i) {
    static const char *const words[] = {"json", "text", NULL};
    return words[i];
}

static const struct option_def verbs_common_options[] = {
    {"target", 't', OPTION_LIST, offsetof(struct cli_options, targets), .arg = "TARGET",
     .help = "the process to inspect"},
    {"pid", 'p', OPTION_LIST, offsetof(struct cli_options, targets), .arg = "PID", .help = "like --target"},
    {"json", 'j', OPTION_FLAG, offsetof(struct cli_options, json), .help = "print JSON"},
    {"format", 0, OPTION_STRING, offsetof(struct cli_options, form), .arg = "FORMAT",
     .help = "json (like --json) or text", .choice = verbs_choose_format},
    {"output", 'o', OPTION_STRING, offsetof(struct cli_options, written), .arg = "FILE",
     .help = "write to FILE instead of standard output"},
    {"readonly", 0, OPTION_FLAG, offsetof(struct cli_options, readonly),
     .help = "run no code in the job, change nothing there, and load no agent"},
    {"token", 0, OPTION_STRING, offsetof(struct cli_options, token), .arg = "TOKEN",
     .help = "token for HOST:PORT, as 'listen' printed it (safer: PROBING_TOKEN in the environment)"},
    {"help", 'h', OPTION_FLAG, offsetof(struct cli_options, help), .help = "this help"},
    {.name = NULL},
};

/* Options of a verb that accepts a command: it reads no target and prints nothing. */
static const struct option_def verbs_command_options[] = {
    {"help", 'h', OPTION_FLAG, offsetof(struct cli_options, help), .help = "this help"},
    {.name = NULL},
};

static const struct option_def verbs_host_options[] = {
    FLEET_REACH_ROWS(struct cli_options, reach),
    {.name = NULL},
};

/* Append rows whose names are not there yet. */
static size_t verbs_add_rows(struct option_def *rows, size_t n, const struct option_def *more) {
    for (; more && more->name && n + 1 < CLI_MAX_ROWS; more++) {
        bool known = false;
        for (size_t i = 0; i < n && !known; i++)
            known = strcmp(rows[i].name, more->name) == 0;
        if (!known)
            rows[n++] = *more;
    }
    return n;
}

void cli_put_rows(const struct cli_verb *v, struct option_def *rows) {
    size_t n = 0;
    if (v) {
        n = verbs_add_rows(rows, n, v->options);
        n = verbs_add_rows(rows, n, v->more);
        n = verbs_add_rows(rows, n, v->takes_hosts ? verbs_host_options : NULL);
    }
    n = verbs_add_rows(rows, n,
                       !v                 ? verbs_program_options
                       : v->takes_command ? verbs_command_options
                                          : verbs_common_options);
    rows[n] = (struct option_def){.name = NULL};
}

/* ---- help ---- */

#define VERBS_WIDTH "16" /* of names in a list */

#define VERBS_EXAMPLES                                                                                       \
    "examples:\n"                                                                                            \
    "    probing list                       Python processes on this machine\n"                              \
    "    probing 4242 dump                  the stack of every thread\n"                                     \
    "    probing 4242 verdict               what is wrong with it, and where\n"                              \
    "    probing 4242 flamegraph -o x.svg   where the time goes\n"                                           \
    "    probing 4242 memory                memory now, and its past\n"                                      \
    "    probing 4242 query 'SELECT * FROM python.threads'\n"                                                \
    "    probing 4242 eval 'len(model.layers)'\n"                                                            \
    "    probing launch python train.py     start a job with the agent in it\n"

#define VERBS_JOB                                                                                            \
    "\nJOB is the name of a job (train.py-c4f2), its script or its hash alone, or the pid of a rank or a\n"  \
    "launcher; /0-3,7 behind it means these ranks. Without JOB it is the only job of this machine.\n"

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
    else if (v->takes_job)
        strbuf_addf(out, "usage: probing %s [JOB] [OPTION...]%s%s\n%s", v->name, operand[0] ? " " : "",
                    operand, VERBS_JOB);
    else
        strbuf_addf(out, "usage: probing%s %s [OPTION...]%s%s\n", v->many_targets ? " [-t TARGET...]" : "",
                    v->name, operand[0] ? " " : "", v->takes_command ? " COMMAND [ARGUMENT...]" : operand);
    if (v->aliases)
        strbuf_addf(out, "\nother names: %s\n", v->aliases);
    if (v->example)
        strbuf_addf(out, "\nexample: %s\n", v->example);
    strbuf_adds(out, "\noptions:\n");
    option_format_help(rows, out);
}

void cli_put_noun_help(struct strbuf *out, const char *noun) {
    strbuf_addf(out, "probing %s:\n\n", noun);
    for (const struct cli_verb *const *v = cli_verbs; *v; v++)
        if ((*v)->noun && strcmp((*v)->noun, noun) == 0)
            strbuf_addf(out, "  %-" VERBS_WIDTH "s %s\n", (*v)->name, (*v)->help);
    strbuf_addf(out, "\n'probing %s VERB --help' lists the options of a verb.\n", noun);
}

void cli_put_examples(struct strbuf *out) {
    strbuf_adds(out, VERBS_EXAMPLES "    probing help                       all verbs\n"
                                    "    probing-top 4242                   the same as screens\n");
}

void cli_put_help(struct strbuf *out, const struct cli_verb *verb) {
    if (verb) {
        verbs_put_help_of(out, verb);
        return;
    }
    strbuf_adds(out, "probing: inspect running Python and PyTorch processes\n\n"
                     "usage: probing TARGET VERB [OPTION...]\n"
                     "       probing VERB TARGET [OPTION...]\n"
                     "       probing list [OPTION...]\n"
                     "       probing launch [OPTION...] COMMAND [ARGUMENT...]\n"
                     "       probing help [VERB]\n");
    const char *group = NULL;
    for (const struct cli_verb *const *v = cli_verbs; *v; v++) {
        if ((*v)->is_internal)
            continue;
        if (!group || ((*v)->group && strcmp(group, (*v)->group) != 0)) {
            group = (*v)->group ? (*v)->group : "Verbs";
            strbuf_addf(out, "\n%s:\n", group);
        }
        strbuf_addf(out, "  %-" VERBS_WIDTH "s %s\n", (*v)->name, (*v)->help);
    }
    strbuf_adds(out, "\n" VERBS_EXAMPLES);
    strbuf_adds(out, "\noptions:\n");
    option_format_help(verbs_program_options, out);
    strbuf_adds(
        out,
        "\nTARGET is a pid, the name of a process (train.py), HOST:PORT where an agent listens, "
        "unix:PATH of\n"
        "its socket, or job:NAME, the ranks of a job ('probing cluster nodes'); job:NAME/3 is one of them.\n"
        "Every verb but repl prints JSON with --json. 'probing VERB --help' lists the options of a verb.\n"
        "The beginning of a verb's name is enough.\n"
        "Exit status: 0 done, 1 failed, 2 usage, 3 cannot attach, 4 the target ended.\n");
}
