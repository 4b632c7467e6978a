/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debug_command: debug, pause and catch, for the command line and probing-top: from what a person has said to the request, and from the
 * answer to what people, scripts and the clipboard are given. A row each.
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

/* What somebody has said: begin it, end it (off), or only show how it stands (status). */
struct debug_command_request {
    const char *address; /* [HOST:]PORT; NULL: one that is free */
    const char *path;    /* of debug: the folder that holds debugpy; NULL: the job's own, or ours */
    double timeout_s;    /* for it to begin in */
    double limit_s;      /* of pause and catch: how long a thread is held at most */
    bool status, off;
    bool exposed; /* of debug: others may reach the address */
    bool leased;  /* it ends when this client goes, unless somebody uses it then */
};

struct debug_command_def {
    const char *name;    /* of the verb, */
    const char *command; /* and of probing-top's command */
    enum wire_method method;
    double timeout_s, limit_s; /* of a request that says nothing of them; limit_s 0: it has none */
    const char *failed;        /* what errors begin with, as in "debugpy did not begin" */
    const char *ended;         /* of a process that has: "it cannot be debugged" */
    const char *who;           /* does it: "debugpy is begun by an agent" */
    /* The request in `out`; debug_command_request_wire has taken what all have in common. `pid` is the job's, as seen from here; 0 it is
     * elsewhere. 0, or -1 with ERR_USAGE. */
    int (*fill)(struct wire_debug *out, const struct debug_command_request *r, pid_t pid, struct err *e);
    /* Is the answer whole? Beyond debug_command_check; NULL: always. 0, or -1 with the error. */
    int (*check)(const struct wire_debugger *d, struct err *e);
    void (*put_text)(struct strbuf *out, const struct wire_debugger *d, pid_t pid);
    void (*put_json)(struct strbuf *out, const struct wire_debugger *d, pid_t pid);
    /* What somebody copies to get there; nothing when there is nowhere to go. */
    void (*put_copy)(struct strbuf *out, const struct wire_debugger *d, pid_t pid);
};

extern const struct debug_command_def debug_command_debug, debug_command_pause, debug_command_catch;

/* The request that was said, for wire_debug_fini, on failure too. 0, or -1 with ERR_USAGE. */
int debug_command_request_wire(const struct debug_command_def *def, const struct debug_command_request *r,
                               pid_t pid, struct wire_debug *out, struct err *e);

/* Was it done? Errors of what went wrong on the way begin with `what` (as in "debugpy did not begin"). 0, or -1 with the error. */
int debug_command_check(const struct debug_command_def *def, const struct wire_debugger *d, double timeout_s,
                        const char *what, struct err *e);

/* Have the agent of `addr` do it; the answer, checked, for wire_debugger_fini, on failure too. 0, or -1 with the error. */
int debug_command_ask(const struct debug_command_def *def, struct target_address *addr,
                      const struct wire_debug *want, const char *what, struct wire_debugger *out,
                      struct err *e);

#endif
