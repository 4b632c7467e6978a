/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target: from what the user typed to an agent that answers.
 *
 * TARGET = pid | name of a process | HOST:PORT | unix:PATH | folder of tables. Finds processes, living and dead, injects or reuses, tells why not.
 */
#ifndef CLIENT_TARGET_TARGET_H
#define CLIENT_TARGET_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "client/target/endpoints.h"
#include "client/target/target_address.h"
#include "inject/inject.h"

/* A Python process on this machine. */
struct target_process {
    pid_t pid;
    int64_t ppid, uid;
    pid_t parent; /* the nearest ancestor that is a Python process, too; 0 none */
    char user[32];
    char *cmdline;  /* owned */
    double cpu_pct; /* since it started */
    double uptime_s;
    int64_t rss_bytes;
    int64_t threads;
    char python[32];        /* "3.11" from its mappings; "" unknown */
    char torch[32];         /* "" not loaded */
    bool attached;          /* an agent answers, */
    struct endpoints doors; /* by which one comes in there */
    bool inspectable;       /* this user may attach, */
    bool by_door;           /* though only by the interpreter's own door: no thread of it may be borrowed */
    bool readable;          /* this user may read it from outside, whether or not */
    bool
        held; /* it held up whoever looked, and what is known is what the kernel alone tells; why_not says it */
    char why_not[320]; /* when not inspectable */
};

/* The name of a user of this machine, or his number where he has none. */
void target_user_name(int64_t uid, char *buf, size_t cap);

/* All Python processes that can be seen, by pid, and all that hold up whoever looks, of which nobody knows; `*out` is freed by target_list_free. Number, or -1 with the error. */
ssize_t target_list(struct target_process **out, struct err *e);
void target_list_free(struct target_process *list, size_t n);

#define TARGET_HIDDEN_MAX 160

/* One line about processes that this user cannot see, and so are not in the list; "" when there is no such reason. */
void target_hidden(char *buf, size_t cap);

/* Take away sockets that agents of this user have left when their processes were killed. */
void target_sweep(void);

/* What TARGET names: fills `addr` (path empty when the process must be injected into first; `recorded` when it has ended and left
 * tables, or they are named by their folder). 0, or -1 with the error:
 * no such process, several of that name (they are named), not a target. */
int target_resolve(const char *text, struct target_address *addr, struct err *e);

/* Processes that go by a name: those that target_resolve would name, the first `cap` of them in `pids`. How many there are; 0 also when
 * `text` is a pid, a socket or a folder. */
size_t target_named(const char *text, pid_t *pids, size_t cap);

#define TARGET_ATTACH_TIMEOUT_MS 5000U /* a machine that trains is a busy one */

/* Find or inject the agent of `addr->pid` within `timeout_ms` (0: TARGET_ATTACH_TIMEOUT_MS), the time included in which one that has
 * only just begun becomes a Python; fills addr->path.
 * 0, or -1 with ERR_ATTACH and the reason. `out` may be NULL. */
int target_attach(struct target_address *addr, unsigned timeout_ms, struct inject_result *out, struct err *e);

/* How the user wants a target to be looked at. */
struct target_options {
    bool no_inject; /* from outside, whatever is there */
    bool readonly;  /* through an agent that is there already, else from outside: none is put into it */
    bool block;     /* the same, stopping each running thread while it is read */
};

/* Get at the target: through its agent (target_attach), or, where injecting is refused but its memory may be read, or the user
 * wants it so, from outside: then addr->mode says so and addr->why says why. 0, or -1 with the error: neither is possible. */
int target_reach(struct target_address *addr, const struct target_options *o, struct err *e);

/* Is there an agent already? Fills addr->path where it is empty. 1 yes, 0 no, -1 with ERR_ATTACH and the reason: within TARGET_POLL_MS, for
 * a file system that does not answer is one. */
int target_find_endpoint(struct target_address *addr, struct err *e);

#define TARGET_POLL_MS 2000U /* what belongs to a target has to be there by then */

/* File of libprobing.so: $PROBING_AGENT, beside this program, or the installed one. 0, or -1 with the error. */
int target_find_agent(char *buf, size_t cap, struct err *e);

#endif
