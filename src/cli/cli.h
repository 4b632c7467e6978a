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
#include "client/session.h"

/* Options every verb has. A verb with options of its own has a struct that begins with this one. */
struct cli_options {
    const char *target;
    bool json;
    bool help;
    char *const *command; /* of a verb that takes one: its words, ended by NULL; in argv */
};

struct cli_verb {
    const char *name;
    const char *help; /* one line */
    bool needs_target;
    bool
        takes_command; /* the first operand begins a command, whose words are not ours to read; it becomes that */
    const struct option_def *options; /* rows of its own, offsets in its own struct; NULL none */
    size_t options_size;              /* of its own struct; 0 = struct cli_options */
    /* Append what is to be printed. `addr` is the resolved target, not attached to yet; NULL without one. 0 or -1. */
    int (*run)(const struct cli_options *options, struct session_address *addr, struct strbuf *out,
               struct err *e);
};

/* All verbs; the last row has no name. */
extern const struct cli_verb cli_verbs[];

/* What was typed, taken apart. */
struct cli_line {
    const struct cli_verb *verb; /* NULL: only help or version is asked for */
    const char *target;          /* NULL none */
    bool help, version;
    struct cli_options *options; /* of the verb, owned; NULL without one */
};

/* 0, or -1 with ERR_USAGE. cli_line_fini frees, on failure too. */
int cli_parse(int argc, char **argv, struct cli_line *line, struct err *e);
void cli_line_fini(struct cli_line *line);

/* Help of the program, or of one verb. */
void cli_put_help(struct strbuf *out, const struct cli_verb *verb);

/* The verbs, one file each. */
int cli_run_list(const struct cli_options *o, struct session_address *addr, struct strbuf *out,
                 struct err *e);
int cli_run_inject(const struct cli_options *o, struct session_address *addr, struct strbuf *out,
                   struct err *e);
int cli_run_launch(const struct cli_options *o, struct session_address *addr, struct strbuf *out,
                   struct err *e);
int cli_run_eject(const struct cli_options *o, struct session_address *addr, struct strbuf *out,
                  struct err *e);
int cli_run_backtrace(const struct cli_options *o, struct session_address *addr, struct strbuf *out,
                      struct err *e);
int cli_run_status(const struct cli_options *o, struct session_address *addr, struct strbuf *out,
                   struct err *e);

struct cli_inject_options {
    struct cli_options common; /* first */
    double timeout_s;          /* 0: the injector's own */
};
extern const struct option_def cli_inject_rows[];

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

#endif
