/* SPDX-License-Identifier: Apache-2.0 */
/*
 * repl: declarations that the parts of `probing TARGET repl` share: the session (repl_session.c)
 * and the reader of lines (verb_repl.c).
 *
 * One thread. The connection lasts as long as the prompt, and as long as it lasts the job keeps
 * the last value, `_`. After a lost connection the next line connects again, and injects an
 * agent again if that has gone; nothing is run twice.
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
    struct target_address given; /* the target as resolved, not attached to */
    struct call *call;           /* NULL: not connected, or no longer */
    struct err lost;             /* why the connection is gone; ERR_OK: there was none yet */
    struct wire_eval want;       /* the options that all code is run with */
    struct strbuf texts;         /* of the last answer */
    unsigned seen;               /* interrupts that were handled */
    bool asked;                  /* the running code was asked to end */
    /* a traceback was printed, which explains the last error completely */
    bool told;
};

/* ---- repl_session.c ---- */

/* From here on ^C is counted, and ends the running code, not the program. */
void repl_catch(void);

/* True if ^C has arrived since the last call. */
bool repl_interrupted(struct repl *r);

/* Connect, if there is no connection. 0, or -1 with the error; ERR_LOST: the job has ended. */
int repl_connect(struct repl *r, struct err *e);

/* Serve the connection, if there is one. */
void repl_idle(struct repl *r);

void repl_fini(struct repl *r);

/* Run code and print its result, with its time if `timed`. 0, or -1 with the error; then the
 * traceback is printed. */
int repl_run(struct repl *r, const char *code, bool timed, struct err *e);

/* Is the code complete? WIRE_CODE_..., valid until the next question; NULL with the error. */
const char *repl_whole(struct repl *r, const char *code, struct err *e);

/* Put the names that the end of `code` may mean into `names`, one a line. False if there are
 * none, or the job did not answer. */
bool repl_complete(struct repl *r, const char *code, struct strbuf *names);

/* Run a line for which magic_is is true. 0, or -1 with the error. */
int repl_run_magic(struct repl *r, const char *line, struct err *e);

#endif
