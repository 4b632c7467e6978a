/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debug_command: debug, pause and catch, for the command line and probing-top: builds the
 * request from the user's input, and formats the answer for people, scripts and the clipboard.
 * One row each.
 */
#ifndef CLIENT_SESSION_DEBUG_COMMAND_H
#define CLIENT_SESSION_DEBUG_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/strbuf.h"
#include "client/session/session.h"
#include "wire/wire.h"

#define DEBUG_COMMAND_TEXTS_MAX ((size_t)256 * 1024)

/* The user's input: begin, end (off), or only show the state (status). */
struct debug_command_request {
    const char *address; /* [HOST:]PORT; NULL: a free one */
    /* of debug: the folder that contains debugpy; NULL: the job's own, or ours */
    const char *path;
    double timeout_s; /* time in which it has to begin */
    double limit_s;   /* of pause and catch: longest time that a thread is kept */
    bool status, off;
    bool exposed; /* of debug: other machines may reach the address */
    bool leased;  /* it ends when this client disconnects, unless it is in use then */
};

struct debug_command_def {
    const char *name;    /* the verb of probing */
    const char *command; /* the command of probing-top */
    enum wire_method method;
    double timeout_s, limit_s; /* defaults of a request; limit_s 0: it has no limit */
    const char *failed;        /* beginning of its errors, as in "debugpy did not begin" */
    const char *ended;         /* of a process that has ended: "it cannot be debugged" */
    const char *who;           /* subject and verb: "debugpy is begun by an agent" */
    /* Fill in the request in `out`; debug_command_request_wire has filled the common part. `pid`
     * is the job's, in our numbering; 0 if it is elsewhere. 0, or -1 with ERR_USAGE. */
    int (*fill)(struct wire_debug *out, const struct debug_command_request *r, pid_t pid, struct err *e);
    /* Check that the answer is complete, beyond debug_command_check; NULL: nothing to check. 0,
     * or -1 with the error. */
    int (*check)(const struct wire_debugger *d, struct err *e);
    void (*put_text)(struct strbuf *out, const struct wire_debugger *d, pid_t pid);
    void (*put_json)(struct strbuf *out, const struct wire_debugger *d, pid_t pid);
    /* Append the text to copy for connecting; nothing if there is nowhere to connect. */
    void (*put_copy)(struct strbuf *out, const struct wire_debugger *d, pid_t pid);
};

extern const struct debug_command_def debug_command_debug, debug_command_pause, debug_command_catch;

/* Convert the request; free by wire_debug_fini, on failure too. 0, or -1 with ERR_USAGE. */
int debug_command_request_wire(const struct debug_command_def *def, const struct debug_command_request *r,
                               pid_t pid, struct wire_debug *out, struct err *e);

/* Check that it was done. Errors on the way begin with `what` (as in "debugpy did not begin").
 * 0, or -1 with the error. */
int debug_command_check(const struct debug_command_def *def, const struct wire_debugger *d, double timeout_s,
                        const char *what, struct err *e);

/* Send the request to the agent of `addr`; the checked answer is freed by wire_debugger_fini, on
 * failure too. 0, or -1 with the error. */
int debug_command_ask(const struct debug_command_def *def, struct target_address *addr,
                      const struct wire_debug *want, const char *what, struct wire_debugger *out,
                      struct err *e);

#endif
