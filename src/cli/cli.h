/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli: the verbs of `probing`, one row each.
 *
 * A verb builds its whole output in memory; main writes it when the verb succeeded, so a failure prints one line on
 * stderr and nothing else. Parser and help come from the rows.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/option.h"
#include "base/strbuf.h"
#include "client/sql/database.h"
#include "client/session/session.h"

/* Options every verb has. A verb with options of its own has a struct that begins with this one. */
struct cli_options {
    struct option_list targets; /* as typed; more than one only of a verb that takes many */
    const char *operand;        /* of a verb that takes one; NULL none */
    bool json;
    bool readonly; /* nothing that runs code in the job or changes it: no agent is put into it either */
    bool help;
    const char *token;    /* for agents behind a TCP port; NULL none was given */
    char *const *command; /* of a verb that takes one: its words, ended by NULL; in argv */
};

struct cli_verb {
    const char *name;
    const char *help; /* one line */
    const char *
        example; /* as it is typed in a shell, of the job 4242; a test runs it (tests/functional/test_verb_examples.py) */
    bool needs_target;
    bool changes;        /* it runs code in the job, or changes it: --readonly refuses it */
    bool many_targets;   /* it may be given several; or none, when it needs none */
    const char *operand; /* what its operand is, for help: "[SQL]"; NULL it takes none */
    bool
        takes_command; /* the first operand begins a command, whose words are not ours to read; it becomes that */
    const struct option_def *options; /* rows of its own, offsets in its own struct; NULL none */
    const struct option_def *more;    /* and that it shares with others of the same struct; NULL none */
    size_t options_size;              /* of its own struct; 0 = struct cli_options */
    const void *options_default;      /* the struct when nothing is given; NULL all zero */
    /* Append what is to be printed. `addr` is the resolved target, not attached to yet; NULL without one; of
     * many, the first of options->targets.n. 0 or -1. */
    int (*run)(const struct cli_options *options, struct target_address *addr, struct strbuf *out,
               struct err *e);
};

/* All verbs; the last row has no name. */
extern const struct cli_verb cli_verbs[];

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

#define CLI_MAX_ROWS 32

/* Options of a verb, its own before those that all have; of the program (NULL). Room for CLI_MAX_ROWS; ends with a NULL name. */
void cli_put_rows(const struct cli_verb *v, struct option_def *rows);

/* Help of the program, or of one verb. */
void cli_put_help(struct strbuf *out, const struct cli_verb *verb);

/* A database over all targets of the options, which are reached first. 0, or -1 with the error. */
int cli_open_database(const struct cli_options *o, struct target_address *addr, bool no_inject,
                      struct database **out, struct err *e);

/* The socket of an agent that is there; the error says how to have one. */
int cli_find_agent(struct target_address *addr, struct err *e);

/* What cannot be seen, as a line on stderr, if there is such. */
void cli_note_database(struct database *d);

/* The verbs, one file each. */
int cli_run_list(const struct cli_options *o, struct target_address *addr, struct strbuf *out, struct err *e);
int cli_run_inject(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                   struct err *e);
int cli_run_launch(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                   struct err *e);
int cli_run_eject(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                  struct err *e);
int cli_run_backtrace(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                      struct err *e);
int cli_run_status(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                   struct err *e);

int cli_run_query(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                  struct err *e);

int cli_run_tables(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                   struct err *e);
int cli_run_record(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                   struct err *e);
int cli_run_memory(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                   struct err *e);

int cli_run_verdict(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                    struct err *e);

int cli_run_trace(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                  struct err *e);

int cli_run_profile(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                    struct err *e);

int cli_run_nan(const struct cli_options *o, struct target_address *addr, struct strbuf *out, struct err *e);

int cli_run_flamegraph(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                       struct err *e);
int cli_run_pprof(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                  struct err *e);

int cli_run_config(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                   struct err *e);

int cli_run_eval(const struct cli_options *o, struct target_address *addr, struct strbuf *out, struct err *e);
int cli_run_execute(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                    struct err *e);

int cli_run_debug(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                  struct err *e);

struct cli_debug_options {
    struct cli_options common; /* first */
    double timeout_s;
    const char *path;
    bool status, off, exposed;
};
extern const struct option_def cli_debug_rows[];
extern const struct cli_debug_options cli_debug_default;

int cli_run_pause(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                  struct err *e);

struct cli_pause_options {
    struct cli_options common; /* first */
    double timeout_s, limit_s;
    bool status, off;
};
extern const struct option_def cli_pause_rows[];
extern const struct cli_pause_options cli_pause_default;

int cli_run_catch(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                  struct err *e);

struct cli_catch_options {
    struct cli_options common; /* first */
    double timeout_s, limit_s;
    bool status, off;
};
/* As 'catch' without options, at an agent that is there; what it says in `out`, if that is not NULL. 0, or -1 with the error. */
int cli_catch(struct target_address *addr, struct strbuf *out, struct err *e);
extern const struct option_def cli_catch_rows[];
extern const struct cli_catch_options cli_catch_default;

/* Of verbs that run code: eval, execute, repl. */
struct cli_eval_options {
    struct cli_options common; /* first */
    double timeout_s;
    const char *frame;
    long output_kib;
    bool main;
    bool keep_going; /* of repl alone */
};
extern const struct option_def cli_eval_rows[], cli_repl_rows[];
extern const struct cli_eval_options cli_eval_default, cli_repl_default;

/* TID:DEPTH, into `want`; NULL is no frame. 0, or -1 with ERR_USAGE. */
int cli_eval_read_frame(const char *text, struct wire_eval *want, struct err *e);

/* A text of the job: for a terminal without what would change it; for anything else as it is. */
void cli_eval_put_text(struct strbuf *out, const struct wire_text *t, bool terminal);

int cli_run_repl(const struct cli_options *o, struct target_address *addr, struct strbuf *out, struct err *e);

struct cli_inject_options {
    struct cli_options common; /* first */
    double timeout_s;          /* 0: the injector's own */
    const char *address;       /* to listen at; NULL none */
    bool listen;               /* at any */
    bool profile, crash;
};
extern const struct option_def cli_inject_rows[];

struct cli_listen_options {
    struct cli_options common; /* first */
    bool looking, off;
};
extern const struct option_def cli_listen_rows[];

int cli_run_listen(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                   struct err *e);

/* Have an agent that is there listen at `address` (NULL: one that is free; "off": nowhere). 0, or -1 with the error. */
int cli_listen(const struct target_address *addr, const char *address, bool looking,
               struct wire_listening *out, struct err *e);

/* Tell a person where it does, and the tokens. */
void cli_put_listening(struct strbuf *out, const struct wire_listening *l);

struct cli_list_options {
    struct cli_options common; /* first */
    bool tree;
};
extern const struct option_def cli_list_rows[];

struct cli_launch_options {
    struct cli_options common; /* first */
    bool recursive;
};
extern const struct option_def cli_launch_rows[];

struct cli_backtrace_options {
    struct cli_options common; /* first */
    bool no_inject, block, locals, repr, tasks, native;
};
extern const struct option_def cli_backtrace_rows[];

struct cli_query_options {
    struct cli_options common; /* first */
    const char *file, *format;
    long limit;
    double timeout_s, watch_s;
    bool no_inject;
};
/* Of verbs that only read: tables, memory. */
struct cli_read_options {
    struct cli_options common; /* first */
    bool no_inject;
};
extern const struct option_def cli_read_rows[];

struct cli_verdict_options {
    struct cli_options common; /* first */
    double wait_s;             /* < 0: until it is known how the job gets on, and no longer than that takes */
    bool no_inject;
};
extern const struct option_def cli_verdict_rows[];
extern const struct cli_verdict_options cli_verdict_default;

struct cli_record_options {
    struct cli_options common; /* first */
    const char *output;
    double duration_s;
    bool no_inject;
};
extern const struct option_def cli_record_rows[];

#define CLI_FLAMEGRAPH_S 5.0 /* how long it samples unless told */

struct cli_flamegraph_options {
    struct cli_options common; /* first */
    const char *format, *output, *unit;
    double duration_s;
    bool threads, process, by_function, native, gentle, no_inject, block;
};
extern const struct option_def cli_flamegraph_rows[], cli_pprof_rows[];

extern const struct option_def cli_query_rows[], cli_trace_rows[], cli_profile_rows[], cli_nan_rows[];
extern const struct cli_query_options cli_query_default;

#endif
