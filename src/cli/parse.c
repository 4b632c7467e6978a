/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse: the command line, in both common orders: -t TARGET VERB … and TARGET VERB ….
 *
 * Words before the verb are the program's own options and the target; the words after it belong
 * to the verb, whose table is the common rows and its own.
 */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

#define PARSE_MAX_VERBS 64

static int parse_unknown_verb(const char *word, struct err *e) {
    const char *names[PARSE_MAX_VERBS];
    size_t n = 0;
    for (const struct cli_verb *const *v = cli_verbs; *v && n + 1 < PARSE_MAX_VERBS; v++)
        names[n++] = (*v)->name;
    names[n] = NULL;
    const char *near = option_suggest(word, names);
    if (near)
        return err_set(e, ERR_USAGE, "unknown verb '%s': did you mean '%s'?", word, near);
    return err_set(e, ERR_USAGE, "unknown verb '%s': 'probing --help' lists the verbs", word);
}

/* The remaining `n` words of the line are a command. */
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

/* Targets before and after the verb. */
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

/* "help" or "help VERB". */
static int parse_help(int argc, char **argv, struct cli_line *line, struct err *e) {
    line->help = true;
    if (argc == 0)
        return 0;
    line->verb = cli_find_verb(argv[0]);
    return line->verb ? 0 : parse_unknown_verb(argv[0], e);
}

static int parse_line(int argc, char **argv, const char **operands, struct cli_line *line, struct err *e) {
    struct option_def rows[CLI_MAX_ROWS];
    int at = 0;
    cli_put_rows(NULL, rows);
    for (;;) {
        int n = option_parse(rows, line, argc - at, argv + at, operands, true, e);
        if (n < 0)
            return -1;
        if (n == 0) {
            if (line->help || line->version)
                return 0;
            return err_set(e, ERR_USAGE, "no verb given: 'probing --help' lists the verbs");
        }
        at = argc - n;
        if (strcmp(argv[at], "help") == 0)
            return parse_help(n - 1, argv + at + 1, line, e);
        line->verb = cli_find_verb(argv[at]);
        if (line->verb || line->help || line->version)
            break;
        if (line->targets.n || n == 1)
            return parse_unknown_verb(argv[at], e);
        /* TARGET VERB: the options after the target belong to the program, too. */
        line->targets.items[line->targets.n++] = argv[at];
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
