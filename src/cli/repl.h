/* SPDX-License-Identifier: Apache-2.0 */
/*
 * repl: what the parts of `probing TARGET repl` share: the session (repl_session.c), and who reads lines (verb_repl.c).
 *
 * One thread. The connection is there while the prompt is: the job keeps the last value, `_`, as long as that. One that goes is begun
 * again by the next line, with an agent put into the job again if that has gone; nothing is run twice.
 */
#ifndef CLI_REPL_H
#define CLI_REPL_H

#include <stdbool.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "cli/cli.h"
#include "client/session/call.h"

struct repl {
    const struct cli_options *options;
    struct target_address given; /* as the target was found, not attached to */
    struct call *call;           /* NULL: there is none, or no more */
    struct err lost;             /* why there is none any more; ERR_OK: there was none yet */
    struct wire_eval want;       /* what all code is run with */
    struct strbuf texts;         /* of the last answer */
    unsigned seen;               /* interrupts that something was done about */
    bool asked;                  /* the code that runs is to end */
    bool told;                   /* a traceback was printed, which says all of the last error */
};

/* ---- repl_session.c ---- */

/* From here on ^C is counted, and ends what runs, not the program. */
void repl_catch(void);

/* Has there been a ^C since it was asked last? */
bool repl_interrupted(struct repl *r);

/* Be connected. 0, or -1 with the error; ERR_LOST: the job has ended. */
int repl_connect(struct repl *r, struct err *e);

/* Let the connection answer, if there is one. */
void repl_idle(struct repl *r);

void repl_fini(struct repl *r);

/* Have code run and print what became of it, with its time if `timed`. 0, or -1 with the error; then the traceback is printed. */
int repl_run(struct repl *r, const char *code, bool timed, struct err *e);

/* Is it at its end? WIRE_CODE_..., valid until the next question; NULL with the error. */
const char *repl_whole(struct repl *r, const char *code, struct err *e);

/* Names that the end of `code` may mean, a line each, into `names`. False: none, or they were not had. */
bool repl_complete(struct repl *r, const char *code, struct strbuf *names);

/* Do what a line says that magic_is. 0, or -1 with the error. */
int repl_run_magic(struct repl *r, const char *line, struct err *e);

#endif
