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
    {"probing-top --tour", "what each screen is for, on a job that is started for it"},
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

/* ---- completion ----
 *
 * The programs themselves know what may stand where (client/complete.h); a script only passes the
 * words on, and the answer back.
 */

/* Bash takes = and : for the ends of words, and quotes for a part of them; the second argument is
 * what it replaces. */
static const char bash_script[] =
    "# Made by tools/gen_manual.c.\n"
    "FUNCTION() {\n"
    "    local i line word files= program=${1/#\\~/$HOME} words=() joins=\n"
    "    for ((i = 1; i <= COMP_CWORD; i++)); do\n"
    "        word=${COMP_WORDS[i]}\n"
    "        ((i < COMP_CWORD)) || [[ $word == *[=:] ]] || word=$2\n"
    "        if [[ ${#words[@]} -gt 0 && ( $joins || $word == [=:]* ) ]]; then\n"
    "            words[${#words[@]}-1]+=$word\n"
    "        else\n"
    "            words+=(\"$word\")\n"
    "        fi\n"
    "        joins=\n"
    "        [[ $word == [=:] ]] && joins=1\n"
    "    done\n"
    "    word=${words[${#words[@]}-1]}\n"
    "    COMPREPLY=()\n"
    "    while IFS= read -r line; do\n"
    "        case $line in\n"
    "        :files) files=-f ;;\n"
    "        :commands) files=-c ;;\n"
    "        *) line=${line%%$'\\t'*} COMPREPLY+=(\"${line#\"${word%\"$2\"}\"}\") ;;\n"
    "        esac\n"
    "    done < <(\"$program\" __complete \"${words[@]}\" 2>/dev/null </dev/null)\n"
    "    if [[ $files ]]; then\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        while IFS= read -r line; do\n"
    "            COMPREPLY+=(\"$line\")\n"
    "        done < <(compgen $files -- \"$2\")\n"
    "    elif [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]]; then\n"
    "        compopt -o nospace 2>/dev/null\n"
    "    fi\n"
    "}\n"
    "complete -F FUNCTION PROGRAM\n";

static const char zsh_script[] =
    "#compdef PROGRAM\n"
    "# Made by tools/gen_manual.c.\n"
    "local -a plain open\n"
    "local line text other=\n"
    "for line in \"${(@f)$(${${(Q)words[1]}/#\\~/$HOME} __complete \"${(@Q)words[2,CURRENT-1]}\" "
    "\"$IPREFIX$PREFIX\" 2>/dev/null </dev/null)}\"; do\n"
    "    case $line in\n"
    "    '') continue ;;\n"
    "    :files | :commands) other=$line; continue ;;\n"
    "    esac\n"
    "    text=${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}\n"
    "    if [[ ${line%%$'\\t'*} == *= ]]; then open+=(\"$text\"); else plain+=(\"$text\"); fi\n"
    "done\n"
    "(( $#open )) && _describe -V 'PROGRAM' open -S ''\n"
    "(( $#plain )) && _describe -V 'PROGRAM' plain\n"
    "case $other in\n"
    ":files) compset -P '--*='; _files ;;\n"
    ":commands) _command_names -e ;;\n"
    "esac\n";

static const char fish_script[] =
    "# Made by tools/gen_manual.c.\n"
    "function _FUNCTION\n"
    "    set -l words (commandline -opc)\n"
    "    set -l now (commandline -ct)\n"
    "    set -l program (string replace -r '^~' $HOME -- $words[1])\n"
    "    set -e words[1]\n"
    "    for line in ($program __complete $words (string replace -r '^[\"\\']' '' -- $now) 2>/dev/null "
    "</dev/null)\n"
    "        switch $line\n"
    "            case :files\n"
    "                set -l before (string match -r -- '^--[^=]*=|^' $now)\n"
    "                for path in (__fish_complete_path (string replace -r -- '^--[^=]*=' '' $now))\n"
    "                    echo $before$path\n"
    "                end\n"
    "            case :commands\n"
    "                __fish_complete_command\n"
    "            case '*'\n"
    "                printf '%s\\n' $line\n"
    "        end\n"
    "    end\n"
    "end\n"
    "complete -c PROGRAM -f -k -a '(_FUNCTION)'\n";

/* PROGRAM and FUNCTION stand for the names. */
static void put_script(const char *script, const char *program) {
    bool is_top = strcmp(program, "probing") != 0;
    while (*script)
        if (strncmp(script, "PROGRAM", 7) == 0) {
            fputs(program, stdout);
            script += 7;
        } else if (strncmp(script, "FUNCTION", 8) == 0) {
            fputs(is_top ? "_probing_top" : "_probing", stdout);
            script += 8;
        } else
            putchar(*script++);
}

int main(int argc, char **argv) {
    static const struct {
        const char *shell, *script;
    } completions[] = {{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};
    bool done = argc == 3 && strcmp(argv[1], "man") == 0;
    if (done)
        (strcmp(argv[2], "probing") == 0 ? man_probing : man_top)();
    for (size_t i = 0; argc == 3 && i < sizeof completions / sizeof completions[0]; i++)
        if (strcmp(argv[1], completions[i].shell) == 0) {
            put_script(completions[i].script, argv[2]);
            done = true;
        }
    if (done)
        return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
    if (argc == 3 && strcmp(argv[1], "page") == 0 && reference_put(argv[2]) == 0)
        return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
    fprintf(stderr, "usage: gen_manual man|bash|zsh|fish probing-top|probing\n"
                    "       gen_manual page cli|keys|tables|settings|formats\n");
    return 2;
}
