/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse: the command line, in both orders that people know: -t TARGET VERB … and TARGET VERB ….
 *
 * Words before the verb are the program's own options and the target; what follows belongs to the verb, whose table is
 * the common rows and its own. Help is written from the same tables.
 */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

#define PARSE_MAX_VERBS 64

struct parse_global {
    struct option_list targets;
    bool readonly, help, version;
    const char *token;
};

static const struct option_def parse_global_rows[] = {
    {"target", 't', OPTION_LIST, offsetof(struct parse_global, targets), "TARGET", "the process to look into",
     0, 0},
    {"readonly", 0, OPTION_FLAG, offsetof(struct parse_global, readonly), NULL,
     "change nothing in the job, run no code in it, and put no agent into it", 0, 0},
    {"token", 0, OPTION_STRING, offsetof(struct parse_global, token), "TOKEN",
     "for HOST:PORT: what 'listen' has printed; better in PROBING_TOKEN, which others cannot see", 0, 0},
    {"help", 'h', OPTION_FLAG, offsetof(struct parse_global, help), NULL,
     "this help; after a verb, its options", 0, 0},
    {"version", 'V', OPTION_FLAG, offsetof(struct parse_global, version), NULL, "the version", 0, 0},
    {.name = NULL},
};

static const struct option_def parse_common_rows[] = {
    {"target", 't', OPTION_LIST, offsetof(struct cli_options, targets), "TARGET", "the process to look into",
     0, 0},
    {"json", 0, OPTION_FLAG, offsetof(struct cli_options, json), NULL, "print JSON", 0, 0},
    {"readonly", 0, OPTION_FLAG, offsetof(struct cli_options, readonly), NULL,
     "change nothing in the job, run no code in it, and put no agent into it", 0, 0},
    {"token", 0, OPTION_STRING, offsetof(struct cli_options, token), "TOKEN",
     "for HOST:PORT: what 'listen' has printed; better in PROBING_TOKEN, which others cannot see", 0, 0},
    {"help", 'h', OPTION_FLAG, offsetof(struct cli_options, help), NULL, "this help", 0, 0},
    {.name = NULL},
};

/* Of a verb that takes a command: it looks at no target and prints nothing. */
static const struct option_def parse_command_rows[] = {
    {"help", 'h', OPTION_FLAG, offsetof(struct cli_options, help), NULL, "this help", 0, 0},
    {.name = NULL},
};

static const struct cli_verb *parse_find_verb(const char *name) {
    for (const struct cli_verb *v = cli_verbs; v->name; v++)
        if (strcmp(v->name, name) == 0)
            return v;
    return NULL;
}

static int parse_unknown_verb(const char *word, struct err *e) {
    const char *names[PARSE_MAX_VERBS];
    size_t n = 0;
    for (const struct cli_verb *v = cli_verbs; v->name && n + 1 < PARSE_MAX_VERBS; v++)
        names[n++] = v->name;
    names[n] = NULL;
    const char *near = option_suggest(word, names);
    if (near)
        return err_set(e, ERR_USAGE, "unknown verb '%s': did you mean '%s'?", word, near);
    return err_set(e, ERR_USAGE, "unknown verb '%s': 'probing --help' lists the verbs", word);
}

void cli_put_rows(const struct cli_verb *v, struct option_def *rows) {
    size_t n = 0;
    for (const struct option_def *d = v ? v->options : NULL; d && d->name && n + 1 < CLI_MAX_ROWS; d++)
        rows[n++] = *d;
    for (const struct option_def *d = v ? v->more : NULL; d && d->name && n + 1 < CLI_MAX_ROWS; d++)
        rows[n++] = *d;
    for (const struct option_def *d = !v                 ? parse_global_rows
                                      : v->takes_command ? parse_command_rows
                                                         : parse_common_rows;
         d->name && n + 1 < CLI_MAX_ROWS; d++)
        rows[n++] = *d;
    rows[n] = (struct option_def){.name = NULL};
}

/* What is left of the line, `n` words, is a command. */
static int parse_command(int n, int argc, char **argv, struct cli_line *line, struct err *e) {
    if (line->targets.n)
        return err_set(e, ERR_USAGE, "%s takes no target", line->verb->name);
    if (n == 0)
        return err_set(e, ERR_USAGE, "%s needs a command: probing %s [OPTION...] COMMAND [ARGUMENT...]",
                       line->verb->name, line->verb->name);
    line->options->command = argv + argc - n;
    return 0;
}

static int parse_operands(int n, const char **operands, struct cli_line *line, struct err *e) {
    const struct cli_verb *v = line->verb;
    bool known = line->targets.n || line->options->targets.n;
    if (n > (v->operand != NULL) && v->needs_target && !known)
        return err_set(e, ERR_USAGE, "the target comes before the verb: probing %s %s", operands[0], v->name);
    if (n > 0 && !v->operand)
        return err_set(e, ERR_USAGE, "'%s' after %s: it takes no operand", operands[0], v->name);
    if (n > 1)
        return err_set(e, ERR_USAGE, "'%s' after %s: it takes one operand, %s; quote it", operands[1],
                       v->name, v->operand);
    line->options->operand = n ? operands[0] : NULL;
    return 0;
}

/* Those before and after the verb. */
static int parse_targets(struct cli_line *line, struct err *e) {
    const struct cli_verb *v = line->verb;
    struct option_list *all = &line->targets, *mine = &line->options->targets;
    if (all->n + mine->n > OPTION_LIST_MAX)
        return err_set(e, ERR_USAGE, "more than %d targets", OPTION_LIST_MAX);
    for (size_t i = 0; i < mine->n; i++)
        all->items[all->n++] = mine->items[i];
    *mine = *all;
    if (all->n > 1 && v->needs_target && !v->many_targets)
        return err_set(e, ERR_USAGE, "two targets, %s and %s: give one", all->items[0], all->items[1]);
    if (v->needs_target && !all->n)
        return err_set(e, ERR_USAGE,
                       "%s needs a target: probing TARGET %s; 'probing list' shows what there is", v->name,
                       v->name);
    if (!v->needs_target && !v->many_targets && all->n)
        return err_set(e, ERR_USAGE, "%s takes no target", v->name);
    return 0;
}

/* argv[0] is the verb. */
static int parse_verb(int argc, char **argv, const char **operands, struct cli_line *line, struct err *e) {
    struct option_def rows[CLI_MAX_ROWS];
    const struct cli_verb *v = line->verb;
    cli_put_rows(v, rows);
    line->options = calloc(1, v->options_size ? v->options_size : sizeof *line->options);
    if (!line->options)
        return err_set(e, ERR_FAILED, "out of memory for the options");
    if (v->options_default)
        memcpy(line->options, v->options_default, v->options_size);
    int n = option_parse(rows, line->options, argc, argv, operands, v->takes_command, e);
    if (n < 0)
        return -1;
    line->help |= line->options->help;
    if (line->help)
        return 0;
    line->options->readonly |= line->readonly;
    if (!line->options->token)
        line->options->token = line->token;
    if (line->options->readonly && v->changes)
        return err_set(e, ERR_USAGE, "--readonly: %s would run code in the job or change it", v->name);
    if (v->takes_command)
        return parse_command(n, argc, argv, line, e);
    return parse_operands(n, operands, line, e) == 0 ? parse_targets(line, e) : -1;
}

/* "help", or "help VERB", as one types it. */
static int parse_help(int argc, char **argv, struct cli_line *line, struct err *e) {
    line->help = true;
    if (argc == 0)
        return 0;
    line->verb = parse_find_verb(argv[0]);
    return line->verb ? 0 : parse_unknown_verb(argv[0], e);
}

static int parse_line(int argc, char **argv, const char **operands, struct cli_line *line, struct err *e) {
    struct parse_global global = {0};
    int at = 0;
    for (;;) {
        int n = option_parse(parse_global_rows, &global, argc - at, argv + at, operands, true, e);
        if (n < 0)
            return -1;
        line->help = global.help;
        line->version = global.version;
        line->targets = global.targets;
        line->readonly = global.readonly;
        line->token = global.token;
        if (n == 0) {
            if (line->help || line->version)
                return 0;
            return err_set(e, ERR_USAGE, "no verb given: 'probing --help' lists the verbs");
        }
        at = argc - n;
        if (strcmp(argv[at], "help") == 0)
            return parse_help(n - 1, argv + at + 1, line, e);
        line->verb = parse_find_verb(argv[at]);
        if (line->verb || line->help || line->version)
            break;
        if (global.targets.n || n == 1)
            return parse_unknown_verb(argv[at], e);
        global.targets.items[global.targets.n++] =
            argv[at]; /* TARGET VERB: what follows is looked at again */
    }
    return line->verb && !line->version ? parse_verb(argc - at, argv + at, operands, line, e) : 0;
}

int cli_parse(int argc, char **argv, struct cli_line *line, struct err *e) {
    *line = (struct cli_line){0};
    const char **operands = calloc((size_t)argc + 1, sizeof *operands);
    if (!operands)
        return err_set(e, ERR_FAILED, "out of memory for the arguments");
    int rc = parse_line(argc, argv, operands, line, e);
    free(operands);
    return rc;
}

void cli_line_fini(struct cli_line *line) {
    free(line->options);
    line->options = NULL;
}

static void parse_put_verb_help(struct strbuf *out, const struct cli_verb *v) {
    struct option_def rows[CLI_MAX_ROWS];
    const char *operand = v->operand ? v->operand : "";
    cli_put_rows(v, rows);
    (void)strbuf_addf(out, "probing %s: %s\n\n", v->name, v->help);
    if (v->needs_target)
        (void)strbuf_addf(
            out, "usage: probing TARGET %s [OPTION...]%s%s\n       probing -t TARGET%s %s [OPTION...]%s%s\n",
            v->name, operand[0] ? " " : "", operand, v->many_targets ? " [-t TARGET...]" : "", v->name,
            operand[0] ? " " : "", operand);
    else
        (void)strbuf_addf(out, "usage: probing%s %s [OPTION...]%s%s\n",
                          v->many_targets ? " [-t TARGET...]" : "", v->name, operand[0] ? " " : "",
                          v->takes_command ? " COMMAND [ARGUMENT...]" : operand);
    if (v->example)
        (void)strbuf_addf(out, "\nexample: %s\n", v->example);
    (void)strbuf_adds(out, "\noptions:\n");
    option_format_help(rows, out);
}

void cli_put_help(struct strbuf *out, const struct cli_verb *verb) {
    if (verb) {
        parse_put_verb_help(out, verb);
        return;
    }
    (void)strbuf_adds(out, "probing: look into running Python and PyTorch processes\n\n"
                           "usage: probing TARGET VERB [OPTION...]\n"
                           "       probing -t TARGET VERB [OPTION...]\n"
                           "       probing list [OPTION...]\n"
                           "       probing launch [OPTION...] COMMAND [ARGUMENT...]\n"
                           "       probing help [VERB]\n"
                           "\nverbs:\n");
    for (const struct cli_verb *v = cli_verbs; v->name; v++)
        (void)strbuf_addf(out, "  %-12s %s\n", v->name, v->help);
    (void)strbuf_adds(out, "\noptions:\n");
    option_format_help(parse_global_rows, out);
    (void)strbuf_adds(
        out,
        "\nTARGET is a pid, the name of a process (train.py), HOST:PORT where an agent listens, or "
        "unix:PATH of\n"
        "its socket.\n"
        "Every verb but repl prints JSON with --json. 'probing VERB --help' lists the options of a verb.\n"
        "Exit status: 0 done, 1 failed, 2 usage, 3 cannot attach, 4 the target ended.\n");
}
