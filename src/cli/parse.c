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

#include "client/jobs/jobs_here.h"

#define PARSE_MAX_VERBS 64

/* What people type that is not a verb, and what they want: the target stands between the parts. */
static const struct {
    const char *word, *before, *after;
} parse_hints[] = {
    {"top", "the screens are a program of their own: probing-top ", ""},
    {"tui", "the screens are a program of their own: probing-top ", ""},
    {"locals", "variables are an option of backtrace: probing ", " backtrace --locals"},
    {"native", "native frames are an option of backtrace: probing ", " backtrace --native"},
    {"tensors", "tensors are a screen of probing-top, and a table: probing ",
     " query 'SELECT * FROM python.tensors'"},
    {"modules", "modules are a screen of probing-top, and a table: probing ",
     " query 'SELECT * FROM python.modules'"},
    {"gil", "backtrace and verdict show who holds the GIL: probing ", " verdict"},
};

static bool parse_is_pid(const char *word) { return word[0] && word[strspn(word, "0123456789")] == '\0'; }

/* A word that is a target rather than a mistyped verb: a pid, a script, an address. */
static bool parse_is_target(const char *word) { return parse_is_pid(word) || strpbrk(word, ".:/"); }

static int parse_no_verb(const char *target, struct err *e) {
    return err_set(e, ERR_USAGE, "no verb given for %s. Try: probing %s dump, or probing-top %s", target,
                   target, target);
}

/* `word` stands where a verb has to be, for `target` (NULL: none was given). */
static int parse_unknown_verb(const char *word, const char *target, struct err *e) {
    const char *names[PARSE_MAX_VERBS];
    const struct cli_verb *several[2];
    size_t n = 0;
    for (size_t i = 0; i < sizeof parse_hints / sizeof parse_hints[0]; i++)
        if (strcmp(parse_hints[i].word, word) == 0)
            return err_set(e, ERR_USAGE, "%s%s%s", parse_hints[i].before, target ? target : "TARGET",
                           parse_hints[i].after);
    if (strncmp(word, "python", 6) == 0)
        return err_set(e, ERR_USAGE,
                       "'%s' is not a verb; to start a job with the agent in it: probing launch %s ...", word,
                       word);
    if (!target && parse_is_target(word))
        return parse_no_verb(word, e);
    if (target && parse_is_target(word))
        return err_set(e, ERR_USAGE, "two targets, %s and %s: give one, or each with -t, and a verb", target,
                       word);
    if (!cli_find_prefix(word, several) && several[0])
        return err_set(e, ERR_USAGE, "'%s' is ambiguous: %s or %s", word, several[0]->name, several[1]->name);
    for (const struct cli_verb *const *v = cli_verbs; *v && n + 1 < PARSE_MAX_VERBS; v++)
        names[n++] = (*v)->noun ? (*v)->noun : (*v)->name;
    names[n] = NULL;
    const char *near = option_suggest(word, names);
    if (near)
        return err_set(e, ERR_USAGE, "unknown verb '%s': did you mean '%s'?", word, near);
    return err_set(e, ERR_USAGE, "unknown verb '%s': 'probing help' lists the verbs", word);
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
    /* VERB TARGET: the first word is the target, unless it can be the operand. */
    bool is_target = n > 1 || ((v->needs_target || v->takes_job) && !v->operand);
    is_target |= n > 0 && (parse_is_pid(operands[0]) || (v->takes_job && jobs_is_target(operands[0])));
    if (n > 0 && !known && is_target && (v->needs_target || v->many_targets || v->takes_job)) {
        line->targets.items[line->targets.n++] = operands[0];
        operands++;
        n--;
    }
    if (n > 0 && !v->operand)
        return err_set(e, ERR_USAGE, "%s takes no arguments (got '%s')", v->name, operands[0]);
    if (n > 1)
        return err_set(e, ERR_USAGE, "%s takes one argument, %s (got '%s' too): quote it", v->name,
                       v->operand, operands[1]);
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
    if (all->n > 1 && (v->needs_target || v->takes_job) && !v->many_targets)
        return err_set(e, ERR_USAGE, "two targets, %s and %s: give one", all->items[0], all->items[1]);
    if (v->needs_target && !all->n)
        return err_set(e, ERR_USAGE,
                       "%s needs a target: probing TARGET %s; 'probing list' shows the Python processes",
                       v->name, v->name);
    if (!v->needs_target && !v->many_targets && !v->takes_job && all->n)
        return err_set(e, ERR_USAGE, "%s takes no target", v->name);
    return 0;
}

/* Take from `other` what is not given. */
static void parse_merge_reach(struct fleet_reach_options *o, const struct fleet_reach_options *other) {
    o->hosts = o->hosts ? o->hosts : other->hosts;
    o->hostfile = o->hostfile ? o->hostfile : other->hostfile;
    o->slurm = o->slurm ? o->slurm : other->slurm;
    o->k8s = o->k8s ? o->k8s : other->k8s;
    o->via = o->via ? o->via : other->via;
    o->container = o->container ? o->container : other->container;
    o->relay = o->relay ? o->relay : other->relay;
    o->push |= other->push;
}

int cli_check_format(const struct cli_options *o, const char *format, struct err *e) {
    if (!o->json || !format || strcmp(format, "json") == 0)
        return 0;
    return err_set(e, ERR_USAGE, "--json and --format %s: give one", format);
}

/* Hosts are where the ranks of a job are: a process that is named by its number is here, and would be
 * taken for one there. 0, or -1 with the error. */
static int parse_check_hosts(const struct cli_line *line, struct err *e) {
    const struct cli_verb *v = line->verb;
    const struct fleet_reach_options *reach = &line->options->reach;
    const struct option_list *targets = &line->targets;
    if (!fleet_reach_has_hosts(reach) || v->takes_hosts || v->takes_job)
        return 0;
    if (!v->needs_target && !v->many_targets)
        return err_set(e, ERR_USAGE, "%s takes no hosts", v->name);
    for (size_t i = 0; i < targets->n; i++)
        if (!jobs_is_target(targets->items[i]))
            return err_set(e, ERR_USAGE,
                           "hosts are for a job, not for '%.256s': probing --hosts LIST job:NAME %s",
                           targets->items[i], v->name);
    if (!targets->n)
        return err_set(e, ERR_USAGE, "hosts are for a job: probing --hosts LIST job:NAME %s", v->name);
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
    parse_merge_reach(&line->options->reach, &line->reach);
    const char *form = line->options->form;
    if (form && strcmp(form, "json") != 0 && strcmp(form, "text") != 0)
        return err_set(e, ERR_USAGE, "%s has no format '%s': json or text", v->name, form);
    if (cli_check_format(line->options, form, e) != 0)
        return -1;
    line->options->json |= form && strcmp(form, "json") == 0;
    if (line->options->readonly && v->changes)
        return err_set(e, ERR_USAGE, "--readonly: %s would run code in the job or change it", v->name);
    int rc = v->takes_command                            ? parse_command(n, argc, argv, line, e)
             : parse_operands(n, operands, line, e) == 0 ? parse_targets(line, e)
                                                         : -1;
    return rc == 0 ? parse_check_hosts(line, e) : -1;
}

/* The verb that `word` names, or begins to name if `next` (NULL: nothing follows) does not. */
static const struct cli_verb *parse_find(const char *word, const char *next) {
    const struct cli_verb *v = cli_find_verb(word);
    return v || (next && (cli_find_verb(next) || cli_is_noun(next))) ? v : cli_find_prefix(word, NULL);
}

/* `word` stands where the second word of a verb has to be. */
static int parse_unknown_second(const char *noun, const char *word, struct err *e) {
    const char *names[PARSE_MAX_VERBS];
    size_t n = 0;
    for (const struct cli_verb *const *v = cli_verbs; *v && n + 1 < PARSE_MAX_VERBS; v++)
        if ((*v)->noun && strcmp((*v)->noun, noun) == 0)
            names[n++] = (*v)->name + strlen(noun) + 1;
    names[n] = NULL;
    const char *near = word ? option_suggest(word, names) : NULL;
    if (near)
        return err_set(e, ERR_USAGE, "unknown verb '%s %s': did you mean '%s %s'?", noun, word, noun, near);
    if (word)
        return err_set(e, ERR_USAGE, "unknown verb '%s %s': 'probing help %s' lists them", noun, word, noun);
    return err_set(e, ERR_USAGE, "%s needs a second word: 'probing help %s' lists them", noun, noun);
}

/* argv[0] is a noun: the verb has two words. */
static int parse_noun(int argc, char **argv, const char **operands, struct cli_line *line, struct err *e) {
    const char *second = argc > 1 ? argv[1] : NULL;
    if (second && (line->help || strcmp(second, "--help") == 0 || strcmp(second, "-h") == 0)) {
        line->help = true;
        line->noun = argv[0];
        return 0;
    }
    line->verb = second ? cli_find_of_noun(argv[0], second) : NULL;
    if (!line->verb)
        return parse_unknown_second(argv[0], second, e);
    return line->version ? 0 : parse_verb(argc - 1, argv + 1, operands, line, e);
}

/* "help" or "help VERB". */
static int parse_help(int argc, char **argv, struct cli_line *line, struct err *e) {
    line->help = true;
    if (argc == 0)
        return 0;
    if (cli_is_noun(argv[0])) {
        line->noun = argv[0];
        line->verb = argc > 1 ? cli_find_of_noun(argv[0], argv[1]) : NULL;
        return line->verb || argc == 1 ? 0 : parse_unknown_second(argv[0], argv[1], e);
    }
    line->verb = parse_find(argv[0], NULL);
    return line->verb ? 0 : parse_unknown_verb(argv[0], NULL, e);
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
            line->nothing = !line->help && !line->version;
            return line->nothing && line->targets.n ? parse_no_verb(line->targets.items[0], e) : 0;
        }
        at = argc - n;
        if (strcmp(argv[at], "help") == 0)
            return parse_help(n - 1, argv + at + 1, line, e);
        if (cli_is_noun(argv[at]))
            return parse_noun(argc - at, argv + at, operands, line, e);
        line->version |= strcmp(argv[at], "version") == 0;
        const char *target = line->targets.n ? line->targets.items[0] : NULL;
        line->verb = parse_find(argv[at], n > 1 && !target ? argv[at + 1] : NULL);
        if (line->verb || line->help || line->version)
            break;
        const char *next = n > 1 ? argv[at + 1] : NULL;
        bool is_program = next && strncmp(argv[at], "python", 6) == 0 && !parse_find(next, NULL);
        /* `stack 4242`: the verb is the mistake */
        if (target || !next || is_program || (parse_is_pid(next) && !parse_is_target(argv[at])))
            return parse_unknown_verb(argv[at], target ? target : is_program ? NULL : next, e);
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
