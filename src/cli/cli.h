/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli: code that the verbs of `probing` share. Each verb is one file with its `const struct
 * cli_verb` and a row in verbs.c.
 *
 * A verb builds its whole output in memory; main writes it when the verb succeeds, so a failure
 * prints one line on stderr and nothing else. Parser, help, manual page and completion are made
 * from the verb's struct.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/option.h"
#include "base/strbuf.h"
#include "client/hosts/fleet_reach.h"
#include "client/session/session.h"
#include "client/sql/database.h"

/* Options that every verb has. The struct of a verb with options of its own begins with this
 * one. */
struct cli_options {
    struct option_list targets; /* as typed; more than one only if the verb accepts many */
    const char *operand;        /* NULL: no operand */
    const char *written;        /* the file of --output, where that is not the verb's own; NULL none */
    const char *form;           /* of --format, where that is not the verb's own; NULL none */
    bool json;
    bool readonly; /* run no code in the job, change nothing in it, and inject no agent */
    bool help;
    const char *token;                /* for agents behind a TCP port; NULL: not given */
    struct fleet_reach_options reach; /* of verbs that read other hosts, too */
    char *const *command;             /* the words of a verb that accepts a command, ended by NULL; in argv */
};

struct cli_verb {
    const char *name;    /* one word, or two: "cluster nodes" */
    const char *noun;    /* the first of two: "cluster"; NULL: there is one */
    const char *aliases; /* other names, separated by spaces; NULL none */
    const char *group;   /* heading of the help; verbs of one group stand together in VERBS */
    const char *help;    /* one line */
    /* As typed in a shell, for the job 4242. A test runs it
     * (tests/functional/test_verb_examples.py). */
    const char *example;
    /* other programs start it: the list of verbs and the completion leave it out */
    bool is_internal;
    bool needs_target;
    /* it accepts one target, a job, or none, and finds it itself (client/jobs/jobs_here.h) */
    bool takes_job;
    /* its job may be on other hosts: it has the options of client/hosts/fleet_reach.h */
    bool takes_hosts;
    /* with hosts it gets its only target as it was typed, and reads the tables there
     * (client/fleet/tables_there.h) */
    bool reads_there;
    /* it runs code in the job, or changes it: --readonly refuses it */
    bool changes;
    /* it accepts several targets; or none, if it does not need one */
    bool many_targets;
    /* the first operand begins a command, whose words are not parsed */
    bool takes_command;
    /* the operand as help shows it: "[SQL]"; NULL: it accepts none */
    const char *operand;
    const struct option_def *options; /* its own rows, offsets in its own struct; NULL none */
    /* rows shared with other verbs of the same struct; NULL none */
    const struct option_def *more;
    size_t options_size;         /* of its own struct; 0: struct cli_options */
    const void *options_default; /* the struct with its default values; NULL: all zero */
    /* Append the output. `addr` is the resolved target, not attached to yet; NULL without a
     * target; with many, the first of options->targets.n. 0; the exit status, if that is another
     * one; or -1 with the error. */
    int (*exec)(const struct cli_options *options, struct target_address *addr, struct strbuf *out,
                struct err *e);
};

/* ---- verbs.c ---- */

/* All verbs in the order of the help; ends with NULL. */
extern const struct cli_verb *const cli_verbs[];

/* By its name of one word or an alias; NULL if there is no such verb. */
const struct cli_verb *cli_find_verb(const char *name);

/* By the beginning of a name or alias that only one verb has; NULL none. `*several` (NULL: not
 * wanted): two that have it, or NULL. */
const struct cli_verb *cli_find_prefix(const char *word, const struct cli_verb *several[2]);

/* Is `word` the first word of the names of several verbs? */
bool cli_is_noun(const char *word);

/* The verb of that noun by its second word, or the beginning of it that only one has; NULL. */
const struct cli_verb *cli_find_of_noun(const char *noun, const char *word);

#define CLI_MAX_ROWS 40

/* Options of a verb, its own before the common ones; for NULL those of the program, with offsets
 * in struct cli_line. `rows` has room for CLI_MAX_ROWS and ends with a NULL name. */
void cli_put_rows(const struct cli_verb *v, struct option_def *rows);

/* Help of one verb, or of the program (NULL). */
void cli_put_help(struct strbuf *out, const struct cli_verb *verb);

/* Help of the verbs of a noun. */
void cli_put_noun_help(struct strbuf *out, const char *noun);

/* What to type first: for who typed nothing. */
void cli_put_examples(struct strbuf *out);

/* ---- parse.c ---- */

/* The parsed command line. */
struct cli_line {
    const struct cli_verb *verb; /* NULL: only help or the version is wanted */
    struct option_list targets;
    const char *noun; /* help about the verbs of this noun is wanted; NULL: it is not */
    bool readonly, help, version;
    bool nothing; /* no word was given: examples are wanted */
    const char *token;
    struct fleet_reach_options reach;
    struct cli_options *options; /* of the verb, owned; NULL without a verb */
};

/* 0, or -1 with ERR_USAGE. cli_line_fini frees, on failure too. */
int cli_parse(int argc, char **argv, struct cli_line *line, struct err *e);
void cli_line_fini(struct cli_line *line);

/* ---- complete.c ---- */

/* Append what Tab offers for the last of the words behind the program's name (client/complete.h). */
void cli_complete(int n, char *const *words, struct strbuf *out);

/* ---- cli.c ---- */

/* Find the socket of an agent that the target already has; the error explains how to inject one.
 * 0 or -1. */
int cli_find_agent(struct target_address *addr, struct err *e);

/* The ranks of a job on this machine, as targets of a verb. */
struct cli_ranks {
    struct option_list targets;
    struct target_address *addr; /* of each, resolved */
    char (*texts)[16];
};

/* Find those that `name` means ("" the only job), as of job:NAME. 0, or -1 with the error; cli_ranks_fini
 * frees, on failure too. */
int cli_find_ranks(struct cli_ranks *r, const char *name, struct err *e);
void cli_ranks_fini(struct cli_ranks *r);

/* Read where the ranks are, and the name of the job of a verb that takes one, as fleet_open takes it:
 * a pid on this host is the name of its job. 0, or -1 with the error; fleet_reach_fini frees, on failure
 * too. */
int cli_read_reach(const struct cli_options *o, struct fleet_reach *reach, char *job, size_t cap,
                   struct err *e);

struct fleet_source;

/* Print on stderr what is to be known of the fleet: hosts that gave no news, a moment that is not now. */
void cli_note_fleet(const struct fleet_source *l);

struct rank_there;

/* ranks_there_open for this program. Print on stderr what is left out. */
ssize_t cli_open_there(const char *text, const struct fleet_reach *reach, bool attach, struct rank_there *out,
                       size_t cap, struct err *e);

struct tables_there;

/* Print the same about tables of other hosts, and what else their rows lack. */
void cli_note_there(const struct tables_there *t);

/* Reach all targets of the options and open a database over them. 0, or -1 with the error. */
int cli_open_database(const struct cli_options *o, struct target_address *addr, bool no_inject,
                      struct database **out, struct err *e);

/* --json and another format exclude each other; `format`: of --format, NULL: none. 0, or -1 with the error. */
int cli_check_format(const struct cli_options *o, const char *format, struct err *e);

/* Print a line on stderr about what the database cannot show, if there is anything. */
void cli_note_database(struct database *d);

struct export_format;
struct export_request;

/* Write an export, and print its note on stderr. 0, or -1 with the error. */
int cli_export(const struct export_format *f, struct export_request *request, struct err *e);

/* Options of verbs that only read: tables, memory. */
struct cli_read_options {
    struct cli_options common; /* first */
    bool no_inject;
};
extern const struct option_def cli_read_options[];

/* ---- verbs that others use ---- */

/* verb_catch.c: like 'catch' without options, with an existing agent; its output is appended to
 * `out`, unless that is NULL. 0, or -1 with the error. */
int cli_catch(struct target_address *addr, struct strbuf *out, struct err *e);

/* verb_listen.c: check an address to listen at. One that other machines can reach needs `exposed`. 0,
 * or -1 with ERR_USAGE. */
int cli_check_listen(const char *address, bool exposed, struct err *e);

/* verb_listen.c: make an existing agent listen at `address` (NULL: a free one; "off": nowhere).
 * 0, or -1 with the error. */
int cli_listen(const struct target_address *addr, const char *address, bool looking,
               struct wire_listening *out, struct err *e);

/* Print the addresses where it listens, and the tokens. */
void cli_put_listening(struct strbuf *out, const struct wire_listening *l);

/* verb_inject.c: block the signals that ask this program to end: injecting finds them among the
 * pending ones, and undoes its work in the target first. */
void cli_defer_signals(void);

struct call;

/* verb_eval.c: options of the verbs that run code: eval, execute, repl. */
struct cli_eval_options {
    struct cli_options common; /* first */
    double timeout_s;
    const char *frame;
    long output_kib;
    bool main;
    bool keep_going; /* of repl only */
};
extern const struct option_def cli_eval_options[];

/* Parse TID:DEPTH into `want`; with NULL there is no frame. 0, or -1 with ERR_USAGE. */
int cli_eval_read_frame(const char *text, struct wire_eval *want, struct err *e);

/* Append a text of the job: sanitised for a terminal, unchanged for anything else. */
void cli_eval_put_text(struct strbuf *out, const struct wire_text *t, bool terminal);

/* Reach the target and connect to the agent that runs code in it; `addr` is then its address. NULL
 * with the error. */
struct call *cli_eval_open(struct target_address *addr, struct err *e);

#endif
