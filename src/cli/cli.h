/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli: what the verbs of `probing` share. Each verb is one file with its `const struct cli_verb` and a row in verbs.c.
 *
 * A verb builds its whole output in memory; main writes it when the verb succeeded, so a failure prints one line on
 * stderr and nothing else. Parser, help, manual page and completion are made from the verb's struct.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/option.h"
#include "base/strbuf.h"
#include "client/session/session.h"
#include "client/sql/database.h"

/* Options every verb has. A verb with options of its own has a struct that begins with this one. */
struct cli_options {
    struct option_list targets; /* as typed; more than one only if the verb takes many */
    const char *operand;        /* NULL none */
    bool json;
    bool readonly; /* run no code in the job, change nothing in it, and put no agent into it */
    bool help;
    const char *token;    /* for agents behind a TCP port; NULL none was given */
    char *const *command; /* the words of a verb that takes a command, ended by NULL; in argv */
};

struct cli_verb {
    const char *name;
    const char *help; /* one line */
    /* As it is typed in a shell, for the job 4242. A test runs it (tests/functional/test_verb_examples.py). */
    const char *example;
    bool needs_target;
    bool changes;        /* it runs code in the job, or changes it: --readonly refuses it */
    bool many_targets;   /* it may be given several; or none, when it needs none */
    bool takes_command;  /* the first operand begins a command, whose words are not ours to read */
    const char *operand; /* what its operand is, for help: "[SQL]"; NULL it takes none */
    const struct option_def *options; /* its own rows, offsets in its own struct; NULL none */
    const struct option_def *more;    /* rows shared with other verbs of the same struct; NULL none */
    size_t options_size;              /* of its own struct; 0 = struct cli_options */
    const void *options_default;      /* the struct when nothing is given; NULL all zero */
    /* Append what is to be printed. `addr` is the resolved target, not attached to yet; NULL without one; with
     * many, the first of options->targets.n. 0 or -1. */
    int (*exec)(const struct cli_options *options, struct target_address *addr, struct strbuf *out,
                struct err *e);
};

/* ---- verbs.c ---- */

/* All verbs in the order of the help; ends with NULL. */
extern const struct cli_verb *const cli_verbs[];

/* NULL: there is no such verb. */
const struct cli_verb *cli_find_verb(const char *name);

#define CLI_MAX_ROWS 32

/* Options of a verb, its own before those that all have; NULL: of the program, with offsets in struct cli_line. `rows` has
 * room for CLI_MAX_ROWS and ends with a NULL name. */
void cli_put_rows(const struct cli_verb *v, struct option_def *rows);

/* Help of the program (NULL), or of one verb. */
void cli_put_help(struct strbuf *out, const struct cli_verb *verb);

/* ---- parse.c ---- */

/* What was typed, taken apart. */
struct cli_line {
    const struct cli_verb *verb; /* NULL: only help or version is asked for */
    struct option_list targets;
    bool readonly, help, version;
    const char *token;
    struct cli_options *options; /* of the verb, owned; NULL without one */
};

/* 0, or -1 with ERR_USAGE. cli_line_fini frees, on failure too. */
int cli_parse(int argc, char **argv, struct cli_line *line, struct err *e);
void cli_line_fini(struct cli_line *line);

/* ---- cli.c ---- */

/* Find the socket of an agent that is in the target already; the error says how to put one there. 0 or -1. */
int cli_find_agent(struct target_address *addr, struct err *e);

/* A database over all targets of the options, which are reached first. 0, or -1 with the error. */
int cli_open_database(const struct cli_options *o, struct target_address *addr, bool no_inject,
                      struct database **out, struct err *e);

/* What cannot be seen in the database, as a line on stderr, if there is such. */
void cli_note_database(struct database *d);

/* Of verbs that only read: tables, memory. */
struct cli_read_options {
    struct cli_options common; /* first */
    bool no_inject;
};
extern const struct option_def cli_read_options[];

/* ---- verbs that others use ---- */

/* verb_catch.c: as 'catch' without options, at an agent that is there; what it prints is appended to `out`, if that is not
 * NULL. 0, or -1 with the error. */
int cli_catch(struct target_address *addr, struct strbuf *out, struct err *e);

/* verb_listen.c: have an agent that is there listen at `address` (NULL: one that is free; "off": nowhere). 0, or -1 with the
 * error. */
int cli_listen(const struct target_address *addr, const char *address, bool looking,
               struct wire_listening *out, struct err *e);

/* Print where it listens, and the tokens. */
void cli_put_listening(struct strbuf *out, const struct wire_listening *l);

/* verb_eval.c: options of verbs that run code: eval, execute, repl. */
struct cli_eval_options {
    struct cli_options common; /* first */
    double timeout_s;
    const char *frame;
    long output_kib;
    bool main;
    bool keep_going; /* of repl alone */
};
extern const struct option_def cli_eval_options[];

/* TID:DEPTH, into `want`; NULL is no frame. 0, or -1 with ERR_USAGE. */
int cli_eval_read_frame(const char *text, struct wire_eval *want, struct err *e);

/* A text of the job: for a terminal without what would change it; for anything else as it is. */
void cli_eval_put_text(struct strbuf *out, const struct wire_text *t, bool terminal);

#endif
