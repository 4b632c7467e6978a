/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen_manual: manual pages, the shells' completion and the reference pages of docs/, from the tables that the programs themselves
 * are made of: options, verbs, keys, commands, settings and formats. Runs when it is built (`make man`, `make docs`).
 *
 * usage: gen_manual man|bash|zsh|fish probing-top|probing
 *        gen_manual page cli|keys|tables|settings|formats
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/config.h"
#include "base/option.h"
#include "cli/cli.h"
#include "client/export/export.h"
#include "client/repl/magic.h"
#include "gen_reference.h"
#include "tui/core/action_keys.h"
#include "tui/core/action_table.h"
#include "tui/keys/action.h"
#include "tui/core/command.h"
#include "tui/main_options.h"
#include "tui/core/settings.h"
#include "version.h"

/* ---- manual pages (man(7)) ---- */

/* Text as troff takes it: a backslash, a dash and a line that begins with a dot or a quote mean something to it. */
static void man_text(const char *s) {
    if (*s == '.' || *s == '\'')
        fputs("\\&", stdout);
    for (; *s; s++)
        if (*s == '\\')
            fputs("\\e", stdout);
        else if (*s == '-')
            fputs("\\-", stdout);
        else if (*s == '~')
            fputs("\\(ti", stdout);
        else if (*s == '^')
            fputs("\\(ha", stdout);
        else if (*s == '`')
            fputs("\\(ga", stdout);
        else if (*s == '\'')
            fputs("\\(aq", stdout);
        else
            putchar(*s);
}

static void man_line(const char *s) {
    man_text(s);
    putchar('\n');
}

/* A paragraph with a tag in bold, and maybe something in italics after it. */
static void man_tag(const char *tag, const char *argument) {
    printf(".TP\n\\fB");
    man_text(tag);
    printf("\\fR");
    if (argument && *argument) {
        printf(" \\fI");
        man_text(argument);
        printf("\\fR");
    }
    putchar('\n');
}

static void man_options(const struct option_def *rows) {
    for (const struct option_def *d = rows; d->name; d++) {
        char tag[64];
        if (d->letter)
            snprintf(tag, sizeof tag, "-%c, --%s", d->letter, d->name);
        else
            snprintf(tag, sizeof tag, "--%s", d->name);
        man_tag(tag, d->arg);
        man_line(d->help);
    }
}

static void man_head(const char *name, const char *what) {
    printf(".\\\" Made by tools/gen_manual.c from the program's own tables.\n");
    printf(".TH %s 1 \"\" \"", strcmp(name, "probing") == 0 ? "PROBING" : "PROBING-TOP");
    man_text(name);
    printf(" %s\" \"User Commands\"\n.SH NAME\n", PROBING_VERSION);
    man_text(name);
    printf(" \\- ");
    man_line(what);
}

static void man_formats(void) {
    printf(".SH EXPORT FORMATS\n");
    for (const struct export_format *f = export_formats; f->name; f++) {
        man_tag(f->name, NULL);
        man_line(f->help);
    }
}

static void man_key(const struct action_def *d, enum action_context c) {
    char keys[64];
    action_keys_text(d, c, keys, sizeof keys);
    man_tag(keys, d->name);
    man_line(d->help);
}

static void man_keys(void) {
    printf(".SH KEYS\nThe user's file of settings can give every action other keys; these are those it "
           "begins with.\n.SS On most screens\n");
    for (const struct action_def *d = action_table(); d->action; d++) {
        int c = reference_common_context(d);
        if (c >= 0)
            man_key(d, (enum action_context)c);
    }
    for (int c = 0; c < CONTEXT_COUNT; c++) {
        bool any = false;
        for (const struct action_def *d = action_table(); d->action; d++) {
            if (!(d->contexts & ACTION_IN(c)) || !reference_differs(d, (enum action_context)c))
                continue;
            if (!any) {
                printf(".SS ");
                man_line(action_context_title((enum action_context)c));
            }
            any = true;
            man_key(d, (enum action_context)c);
        }
    }
}

/* Variables of the environment that the program, or the job, reads. */
static void man_variables(enum reference_reader reader) {
    printf(".SH ENVIRONMENT\n");
    for (const struct reference_variable *v = reference_variables; v->name; v++)
        if (v->reader == REFERENCE_BOTH || v->reader == reader) {
            man_tag(v->name, NULL);
            man_line(v->help);
        }
    if (reader != REFERENCE_PROBING)
        return;
    printf(".SS Of the job\nRead where a job starts with the agent, or has it loaded.\n");
    for (const struct reference_variable *v = reference_variables; v->name; v++)
        if (v->reader == REFERENCE_JOB) {
            man_tag(v->name, NULL);
            man_line(v->help);
        }
    for (int i = 0; i < CONFIG_KEYS; i++) {
        man_tag(config_defs[i].env, NULL);
        man_line(config_defs[i].help);
    }
}

/* Lines that can be typed, with what they do. */
static void man_examples(const char *const (*lines)[2]) {
    printf(".SH EXAMPLES\n");
    for (; (*lines)[0]; lines++) {
        man_tag((*lines)[0], NULL);
        man_line((*lines)[1]);
    }
}

static void man_commands(void) {
    printf(".SH COMMANDS\nBehind the colon, in every screen; Tab completes. The names of the actions "
           "above are commands "
           "too, where their keys mean something.\n");
    for (const struct command_def *d = command_rows(); d->name; d++) {
        char tag[32];
        snprintf(tag, sizeof tag, ":%s", d->name);
        man_tag(tag, d->arguments);
        man_line(d->help);
    }
}

/* What lines with % do, in the prompt that `where` says. */
static void man_magics(const char *where) {
    printf(".SH LINES WITH %%\n%s, beside code of the job. Tab completes them, and SQL and code behind "
           "them.\n",
           where);
    for (const struct magic_def *m = magics; m->name; m++) {
        man_tag(m->name, m->operand);
        man_line(m->help);
    }
}

static void man_settings(void) {
    printf(".SH SETTINGS\nIn the file of settings, and by \\fB:set\\fR.\n");
    for (int i = 0; i < SETTINGS_COUNT; i++) {
        man_tag(settings_table[i].name, settings_table[i].takes);
        man_line(settings_table[i].help);
    }
}

static const char *const man_top_examples[][2] = {
    {"probing-top", "choose one of the Python processes of this machine"},
    {"probing-top 4242", "the screens, of this process"},
    {"probing-top run.db", "of a recording"},
    {"probing-top 4242 --diff run.db", "of the process, compared with a recording"},
    {"probing-top --export txt --once 4242", "one screen as text, for scripts"},
    {"probing-top --export speedscope --duration 10s -o job.json 4242", "ten seconds for speedscope"},
    {NULL, NULL},
};

static const char *const man_probing_examples[][2] = {
    {"probing list", "the Python processes of this machine"},
    {"probing 4242 dump", "the stack of every thread"},
    {"probing 4242 verdict", "what is wrong with it, and where"},
    {"probing 4242 flamegraph -o flame.svg", "where the time goes"},
    {"probing -t 4242 -t 4243 query 'SELECT rank, count(*) FROM python.samples GROUP BY rank'",
     "two ranks in one table"},
    {"probing launch python train.py", "start a job with the agent in it"},
    {NULL, NULL},
};

static void man_target(void) {
    printf(".PP\n\\fITARGET\\fR is a pid, the name of a process (train.py), or unix:PATH of an "
           "agent\\(aqs socket.\n");
}

static void man_status(void) {
    printf(".SH EXIT STATUS\n0 done, 1 failed, 2 usage, 3 cannot attach, 4 the target is gone.\n");
}

static void man_top(void) {
    man_head("probing-top", "what every thread of a running Python process is doing");
    printf(
        ".SH SYNOPSIS\n.B probing\\-top\n[\\fIOPTION\\fR...] [\\fITARGET\\fR...]\n.SH DESCRIPTION\nShows "
        "live "
        "stacks of all threads of a Python process, who holds the GIL, and where the time goes. The job runs "
        "on, "
        "undisturbed.\n");
    man_target();
    printf(".SH OPTIONS\n");
    man_options(main_table);
    printf(".SH THEMES\n\\fBprobing\\-top \\-\\-help\\fR lists those that are found.\n");
    man_formats();
    man_keys();
    man_commands();
    man_magics("In the Repl screen (J)");
    man_settings();
    printf(".SH FILES\n");
    man_tag("$XDG_CONFIG_HOME/probing-top/config", NULL);
    man_line("settings and keys; written only when asked for");
    man_tag("$XDG_CONFIG_HOME/probing-top/themes", NULL);
    man_line("themes of the user's own");
    man_tag("$XDG_STATE_HOME/probing-top/commands", NULL);
    man_line("the commands of before; history beside it has the queries");
    man_variables(REFERENCE_TOP);
    man_examples(man_top_examples);
    man_status();
    printf(".SH SEE ALSO\n.BR probing (1)\n");
}

static void man_probing(void) {
    struct option_def rows[CLI_MAX_ROWS];
    man_head("probing", "inspect running Python and PyTorch processes");
    printf(".SH SYNOPSIS\n.B probing\n\\fITARGET\\fR \\fIVERB\\fR [\\fIOPTION\\fR...]\n.br\n.B probing\n\\-t "
           "\\fITARGET\\fR \\fIVERB\\fR [\\fIOPTION\\fR...]\n.br\n.B probing\n\\fIVERB\\fR \\fITARGET\\fR "
           "[\\fIOPTION\\fR...]\n.SH DESCRIPTION\nThe same as probing\\-top shows, "
           "for "
           "scripts. Every verb but repl prints JSON with \\-\\-json.\n");
    man_target();
    printf(".SH OPTIONS\n");
    cli_put_rows(NULL, rows);
    man_options(rows);
    printf(".SH VERBS\n");
    for (const struct cli_verb *const *at = cli_verbs; *at; at++) {
        const struct cli_verb *v = *at;
        printf(".SS ");
        man_text(v->name);
        if (v->operand) {
            putchar(' ');
            man_text(v->operand);
        }
        putchar('\n');
        man_line(v->help);
        if (v->aliases) {
            printf(".PP\nOther names: ");
            man_line(v->aliases);
        }
        if (v->example) {
            printf(".PP\n.EX\n    ");
            man_line(v->example);
            printf(".EE\n");
        }
        cli_put_rows(v, rows);
        man_options(rows);
    }
    man_magics("At the prompt of repl, and from its pipe");
    man_variables(REFERENCE_PROBING);
    man_examples(man_probing_examples);
    man_status();
    printf(".SH SEE ALSO\n.BR probing\\-top (1)\n");
}

/* ---- completion ---- */

/* What may stand after an option. */
static bool takes_format(const struct option_def *d) { return d->arg && strcmp(d->name, "export") == 0; }
static bool takes_file(const struct option_def *d) { return d->arg && strstr(d->arg, "FILE"); }

static void put_formats(const char *between) {
    for (const struct export_format *f = export_formats; f->name; f++)
        printf("%s%s", f == export_formats ? "" : between, f->name);
}

static void put_names(const struct option_def *rows) {
    for (const struct option_def *d = rows; d->name; d++)
        printf("%s--%s", d == rows ? "" : " ", d->name);
}

static void put_verbs(void) {
    for (const struct cli_verb *const *v = cli_verbs; *v; v++)
        printf("%s%s", v == cli_verbs ? "" : " ", (*v)->name);
}

/* Cases of an option's argument: `$previous` is the word before. */
static void bash_arguments(const struct option_def *rows) {
    for (const struct option_def *d = rows; d->name; d++) {
        if (!d->arg)
            continue;
        printf("        --%s", d->name);
        if (d->letter)
            printf("|-%c", d->letter);
        printf(") ");
        if (takes_format(d)) {
            printf("COMPREPLY=($(compgen -W '");
            put_formats(" ");
            printf("' -- \"$word\")); return ;;\n");
        } else if (takes_file(d))
            printf("COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n");
        else
            printf("return ;;\n");
    }
}

static void bash_top(void) {
    printf("# Made by tools/gen_manual.c.\n_probing_top() {\n    local word=${COMP_WORDS[COMP_CWORD]} "
           "previous=${COMP_WORDS[COMP_CWORD-1]}\n    COMPREPLY=()\n    case $previous in\n");
    bash_arguments(main_table);
    printf("    esac\n    if [[ $word == -* ]]; then\n        COMPREPLY=($(compgen -W '");
    put_names(main_table);
    printf("' -- \"$word\"))\n    fi\n}\ncomplete -F _probing_top probing-top\n");
}

static void bash_probing(void) {
    struct option_def rows[CLI_MAX_ROWS];
    printf(
        "# Made by tools/gen_manual.c.\n_probing() {\n    local word=${COMP_WORDS[COMP_CWORD]} verb= i\n    "
        "COMPREPLY=()\n    for ((i = 1; i < COMP_CWORD; i++)); do\n        case ${COMP_WORDS[i]} in\n");
    for (const struct cli_verb *const *v = cli_verbs; *v; v++)
        printf("        %s) verb=%s ;;\n", (*v)->name, (*v)->name);
    printf("        esac\n    done\n    case $verb in\n");
    for (const struct cli_verb *const *at = cli_verbs; *at; at++) {
        const struct cli_verb *v = *at;
        cli_put_rows(v, rows);
        printf("    %s) COMPREPLY=($(compgen -W '", v->name);
        put_names(rows);
        printf("' -- \"$word\")) ;;\n");
    }
    cli_put_rows(NULL, rows);
    printf("    *) COMPREPLY=($(compgen -W '");
    put_names(rows);
    putchar(' ');
    put_verbs();
    printf("' -- \"$word\")) ;;\n    esac\n    if [[ $word != -* && ${#COMPREPLY[@]} -eq 0 ]]; then\n        "
           "COMPREPLY=($(compgen -f -- \"$word\"))\n    fi\n}\ncomplete -F _probing probing\n");
}

/* Help within single quotes, and within the brackets of _arguments. */
static void zsh_text(const char *s) {
    for (; *s; s++)
        if (*s == '\'')
            fputs("'\\''", stdout);
        else if (*s == '[' || *s == ']' || *s == ':' || *s == '\\')
            printf("\\%c", *s);
        else
            putchar(*s);
}

static void zsh_argument(const struct option_def *d) {
    if (!d->arg)
        return;
    printf(":");
    zsh_text(d->arg);
    printf(":");
    if (takes_format(d)) {
        printf("(");
        put_formats(" ");
        printf(")");
    } else if (takes_file(d))
        printf("_files");
}

static void zsh_options(const struct option_def *rows, const char *indent) {
    for (const struct option_def *d = rows; d->name; d++)
        for (int letter = 0; letter < (d->letter ? 2 : 1); letter++) {
            const char *more = d->kind == OPTION_LIST ? "*" : "";
            if (letter)
                printf("%s'%s-%c%s[", indent, more, d->letter, d->arg ? "+" : "");
            else
                printf("%s'%s--%s%s[", indent, more, d->name, d->arg ? "=" : "");
            zsh_text(d->help);
            printf("]");
            zsh_argument(d);
            printf("' \\\n");
        }
}

static void zsh_top(void) {
    printf("#compdef probing-top\n# Made by tools/gen_manual.c.\n_arguments -s -S \\\n");
    zsh_options(main_table, "    ");
    printf("    ':target:_pids'\n");
}

static void zsh_probing(void) {
    struct option_def rows[CLI_MAX_ROWS];
    printf("#compdef probing\n# Made by tools/gen_manual.c.\nlocal verb= word\nfor word in "
           "${words[2,CURRENT-1]}; do\n    "
           "case $word in\n    ");
    for (const struct cli_verb *const *v = cli_verbs; *v; v++)
        printf("%s%s", v == cli_verbs ? "" : "|", (*v)->name);
    printf(") verb=$word ;;\n    esac\ndone\ncase $verb in\n");
    for (const struct cli_verb *const *at = cli_verbs; *at; at++) {
        const struct cli_verb *v = *at;
        cli_put_rows(v, rows);
        printf("%s)\n    _arguments -s -S \\\n", v->name);
        zsh_options(rows, "        ");
        printf("        '*:argument:_files' ;;\n");
    }
    cli_put_rows(NULL, rows);
    printf("*)\n    _arguments -s -S \\\n");
    zsh_options(rows, "        ");
    printf("        '*:verb:(");
    put_verbs();
    printf(")' ;;\nesac\n");
}

static void fish_text(const char *s) {
    for (; *s; s++) {
        if (*s == '\'' || *s == '\\')
            putchar('\\');
        putchar(*s);
    }
}

static void fish_options(const char *program, const char *when, const struct option_def *rows) {
    for (const struct option_def *d = rows; d->name; d++) {
        printf("complete -c %s%s -l %s", program, when, d->name);
        if (d->letter)
            printf(" -s %c", d->letter);
        printf(" -d '");
        fish_text(d->help);
        printf("'");
        if (takes_format(d)) {
            printf(" -x -a '");
            put_formats(" ");
            printf("'");
        } else if (d->arg)
            printf(takes_file(d) ? " -r" : " -x");
        putchar('\n');
    }
}

static void fish_top(void) {
    printf("# Made by tools/gen_manual.c.\n");
    fish_options("probing-top", "", main_table);
}

static void fish_probing(void) {
    struct option_def rows[CLI_MAX_ROWS];
    char when[128];
    printf("# Made by tools/gen_manual.c.\nset -l verbs ");
    put_verbs();
    putchar('\n');
    cli_put_rows(NULL, rows);
    fish_options("probing", " -n \"not __fish_seen_subcommand_from $verbs\"", rows);
    for (const struct cli_verb *const *at = cli_verbs; *at; at++) {
        const struct cli_verb *v = *at;
        printf("complete -c probing -n \"not __fish_seen_subcommand_from $verbs\" -a %s -d '", v->name);
        fish_text(v->help);
        printf("'\n");
        cli_put_rows(v, rows);
        snprintf(when, sizeof when, " -n '__fish_seen_subcommand_from %s'", v->name);
        fish_options("probing", when, rows);
    }
}

int main(int argc, char **argv) {
    static const struct {
        const char *kind;
        void (*top)(void), (*probing)(void);
    } kinds[] = {{"man", man_top, man_probing},
                 {"bash", bash_top, bash_probing},
                 {"zsh", zsh_top, zsh_probing},
                 {"fish", fish_top, fish_probing}};
    for (size_t i = 0; argc == 3 && i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(argv[1], kinds[i].kind) == 0) {
            (strcmp(argv[2], "probing") == 0 ? kinds[i].probing : kinds[i].top)();
            return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
        }
    if (argc == 3 && strcmp(argv[1], "page") == 0 && reference_put(argv[2]) == 0)
        return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
    fprintf(stderr, "usage: gen_manual man|bash|zsh|fish probing-top|probing\n"
                    "       gen_manual page cli|keys|tables|settings|formats\n");
    return 2;
}
