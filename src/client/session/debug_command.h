/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debug_command: what is done by functions of the agent's own Python (src/agent/python/units/debug.py, pause.py, catch.py), which answer in lines
 * "key value". A row each: the code that asks, and what the answer is for people, scripts and the clipboard.
 */
#ifndef CLIENT_SESSION_DEBUG_COMMAND_H
#define CLIENT_SESSION_DEBUG_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/address.h"
#include "base/strbuf.h"
#include "client/session/session.h"
#include "wire/wire.h"

#define DEBUG_COMMAND_TEXTS_MAX ((size_t)256 * 1024)
#define DEBUG_COMMAND_LIMIT_MAX_S 86400.0

/* What somebody wants: to begin it, to end it (off), or only to know (status). */
struct debug_command_request {
    const char *address; /* [HOST:]PORT; NULL: one that is free */
    const char *path;    /* of debug: the folder that holds debugpy; NULL: the job's own, or ours */
    double timeout_s;    /* for it to begin in */
    double limit_s;      /* of pause and catch: so long a thread is held */
    bool status, off;
    bool exposed; /* of debug: others may reach the address */
    bool leased;  /* it is ended when who asks goes, unless somebody uses it then */
};

struct debug_command_def {
    const char *name;          /* of the verb, */
    const char *command;       /* and of probing-top's command */
    double timeout_s, limit_s; /* of a wish that says nothing of it; limit_s 0: it has none */
    const char *failed;        /* what errors begin with, as in "debugpy did not begin" */
    const char *ended;         /* of a process that has: "it cannot be debugged" */
    const char *who;           /* does it: "debugpy is begun by an agent" */
    /* The code that asks for it. `pid` is the job's, as seen from here; 0 it is elsewhere. 0, or -1 with ERR_USAGE. */
    int (*put_code)(struct strbuf *code, const struct debug_command_request *wish, pid_t pid, struct err *e);
    /* Is it an answer? Beyond debug_command_check; NULL nothing. 0, or -1 with the error. */
    int (*check)(const struct wire_evaluated *v, struct err *e);
    void (*put_text)(struct strbuf *out, const struct wire_evaluated *v, pid_t pid);
    void (*put_json)(struct strbuf *out, const struct wire_evaluated *v, pid_t pid);
    /* What somebody copies to get there; nothing when there is nowhere to go. */
    void (*put_copy)(struct strbuf *out, const struct wire_evaluated *v, pid_t pid);
};

extern const struct debug_command_def debug_command_debug, debug_command_pause, debug_command_catch;

/* Put a text into code: as bytes of Python's, and decoded as a file's name is. */
void debug_command_put_literal(struct strbuf *code, const char *text);

/* Put an address into code: its host as such a text, a comma and its port. */
void debug_command_put_address(struct strbuf *code, const struct address *a);

/* The question that sends the code; borrowed. */
struct wire_eval debug_command_question(const struct strbuf *code, double timeout_s, bool leased);

/* Is it an answer of the unit's? What went wrong on the way, and what a line "error" tells, is an error that begins with `what` (as in
 * "debugpy did not begin"). 0, or -1 with it. */
int debug_command_check(const struct wire_evaluated *v, double timeout_s, const char *what, struct err *e);

/* Have `code` run, within timeout_s, by the agent of `addr`; the answer, whose texts are in `texts`, checked. 0, or -1 with the error. */
int debug_command_ask(struct target_address *addr, const struct strbuf *code, double timeout_s,
                      const char *what, struct strbuf *texts, struct wire_evaluated *out, struct err *e);

/* The value of a line, for one use, in `buf`; NULL: there is none. */
const char *debug_command_get(const struct wire_evaluated *v, const char *key, char *buf, size_t cap);

/* The same for a terminal: what an agent that is broken, or is none of ours, might have it do is left out. */
const char *debug_command_get_clean(const struct wire_evaluated *v, const char *key, char *buf, size_t cap);

/* The line that talks to the debugger of an answer that has an address: nc, with the token as its first line; as debug_command_def.put_copy. */
void debug_command_put_place(struct strbuf *out, const struct wire_evaluated *v, pid_t pid);

/* The same for people, and as two lines to paste. */
void debug_command_put_entry(struct strbuf *out, const struct wire_evaluated *v, pid_t pid);

/* Seconds that are left of it; 0: nothing is said of that. */
double debug_command_left_s(const struct wire_evaluated *v);

#endif
