/* SPDX-License-Identifier: Apache-2.0 */
/*
 * repl_engine: a prompt for the job's code without its terminal: what the job is asked, when typed
 * code is complete, what came of it.
 *
 * `probing TARGET repl` and the Repl screen are its faces: they read keys, send the questions over
 * the connection that keeps `_`, and show the texts. One question at a time. Waits for nothing; one
 * thread.
 */
#ifndef CLIENT_REPL_REPL_ENGINE_H
#define CLIENT_REPL_REPL_ENGINE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "client/history.h"
#include "client/repl/magic.h"
#include "wire/wire.h"

#define REPL_ENGINE_OUTPUT_KIB 64

enum repl_ask {
    REPL_NOTHING = 0,
    REPL_WHOLE, /* is the code complete? */
    REPL_NAMES, /* how may its end go on? */
    REPL_RUN,
    REPL_DEBUG, /* a debugger's request, which the face sends */
    REPL_QUERY, /* of magic_query.h, over a connection of its own */
};

/* The answer to REPL_WHOLE. */
enum repl_code {
    REPL_CODE_DONE = 0,
    REPL_CODE_MORE,  /* it is incomplete */
    REPL_CODE_BLOCK, /* complete, and may go on: an empty line ends it */
};

/* The kind of a text that a face shows. */
enum repl_mark {
    REPL_VALUE,     /* what the code has printed, its value, the time it took */
    REPL_TRACEBACK, /* of an exception */
    REPL_ERROR,     /* why it has failed; the caller has it as an error, too */
    REPL_NOTE,      /* about the answer itself */
};

struct repl_engine {
    struct wire_eval want;  /* the options that all code is run with */
    struct history history; /* of both faces; the face opens it */
    bool history_failed;    /* it cannot be written, which was reported */
    enum repl_ask asked;    /* and not answered yet */
    struct strbuf code;     /* of that question */
    bool timed;             /* of REPL_RUN: its time is shown, too */
    bool interrupted;       /* it was interrupted */
    bool explained;         /* the last traceback explains the failure completely */
};

struct repl_face {
    void *arg; /* the first parameter of all */
    /* Show a text, of one or several lines. */
    void (*put)(void *arg, enum repl_mark mark, const char *text, size_t len);
    /* Run code that was not typed like this; a query, which may be moved out of *m. 0, or -1 with
     * the error. */
    int (*run)(void *arg, const char *code, size_t len, bool timed, struct err *e);
    int (*query)(void *arg, struct magic *m, struct err *e);
};

void repl_engine_init(struct repl_engine *r, double timeout_s, int64_t output_bytes);
void repl_engine_fini(struct repl_engine *r);

/* Add to the history. 0, or -1 with the reason why it will not be kept, once. */
int repl_engine_remember(struct repl_engine *r, const char *text, size_t len, struct err *e);

/* Begin a question. 0, or -1 with the error; then the one before is as it was. */
int repl_engine_ask(struct repl_engine *r, enum repl_ask what, const char *code, size_t len, struct err *e);

/* The question as a request; its code is the engine's. */
struct wire_eval repl_engine_question(const struct repl_engine *r);

/* It is answered, or never will be. Returns it. */
enum repl_ask repl_engine_end(struct repl_engine *r);

/* Show the answer to REPL_RUN. 0, or -1 with the reason if the code has failed. */
int repl_engine_put(struct repl_engine *r, const struct wire_evaluated *v, const struct repl_face *face,
                    struct err *e);

/* The reason why code has failed that had `timeout_s`; `remedy` follows where that was too short.
 * 0: it has not. */
int repl_engine_explain(const struct wire_evaluated *v, double timeout_s, const char *remedy, struct err *e);

enum repl_code repl_engine_read_code(const struct wire_text *answer);

bool repl_engine_is_blank(const char *text);

/* True if this line ends the code above it, whose state is known. */
bool repl_engine_ends_block(enum repl_code state, const char *line);

/* Where the name begins that ends at byte `len`. */
size_t repl_engine_find_word(const char *text, size_t len);

/* Run a line for which magic_is is true. 0, or -1 with the error. */
int repl_engine_run_magic(struct repl_engine *r, const char *line, const struct repl_face *face,
                          struct err *e);

#endif
