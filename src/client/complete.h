/* SPDX-License-Identifier: Apache-2.0 */
/*
 * complete: what Tab offers at the prompt of a shell.
 *
 * The shells' scripts (tools/gen_manual.c) call `PROGRAM __complete WORD...` with the words behind
 * the program's name, up to the cursor; the last one, maybe empty, is to be completed. The answer
 * is a line for each word that may stand there, "WORD\tDESCRIPTION". A word that ends with = is
 * continued without a space. The lines ":files" and ":commands" ask the shell for its own.
 *
 * Nothing is attached to, connected to or asked: processes are those of /proc, tables and settings
 * are those that this release has.
 */
#ifndef CLIENT_COMPLETE_H
#define CLIENT_COMPLETE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/option.h"
#include "base/strbuf.h"

#define COMPLETE_COMMAND "__complete" /* the first word of a call */

struct complete {
    struct strbuf *out;
    const char *word; /* as typed, up to the cursor */
    const char *part; /* what is completed of it: behind the = of --name=value */
    size_t n;         /* words that were offered */
};

void complete_init(struct complete *c, struct strbuf *out, const char *word);

/* Offer a word, if it begins as the typed one does. `help` may be NULL. */
void complete_put(struct complete *c, const char *text, const char *help);

/* Let the shell offer files, or the commands that it can start. */
void complete_put_files(struct complete *c);
void complete_put_commands(struct complete *c);

/* Long options. */
void complete_put_options(struct complete *c, const struct option_def *rows);

/* Pids of Python processes, with their commands; files, if nothing was offered for what is typed. */
void complete_put_targets(struct complete *c);

/* Names of the jobs of this machine. */
void complete_put_jobs(struct complete *c);

void complete_put_tables(struct complete *c);

/* The agent's settings: KEY=, and values behind the = where they are words. */
void complete_put_settings(struct complete *c);

/* The next word of a query: tables after FROM, columns, functions, keywords. */
void complete_put_sql(struct complete *c);

/* By the name of what is expected, as help has it: TARGET, JOB, PID, FILE, DIR, TABLE, SQL, QUERY,
 * KEY=VALUE; also one of several ("FILE|-|CODE"). Anything else has no completion. */
void complete_put_named(struct complete *c, const char *name);

/* The value of an option: by its words, or by the name of the value. */
void complete_put_value(struct complete *c, const struct option_def *d);

/* Does an option of the table expect its value in the word after `word`? Its row, or NULL.
 * `*is_option` is set if `word` is an option at all. */
const struct option_def *complete_expects(const struct option_def *rows, const char *word, bool *is_option);

/* The row of "--name=" and a part of the value: the part is then what is completed. NULL: the word
 * is not like that, or its option is unknown. */
const struct option_def *complete_find_value(struct complete *c, const struct option_def *rows);

#endif
