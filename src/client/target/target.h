/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target: from the user's text to an agent that answers.
 *
 * TARGET = pid | name of a process | HOST:PORT | unix:PATH | folder of tables. Finds processes,
 * living and dead, finds or injects the agent, or explains why it cannot.
 */
#ifndef CLIENT_TARGET_TARGET_H
#define CLIENT_TARGET_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/rank_env.h"
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
    uint64_t start_ticks; /* when it started, since boot; 0 unknown */
    int64_t rss_bytes;
    int64_t threads;
    char python[32];        /* "3.11" from its mappings; "" unknown */
    char torch[32];         /* "" not loaded */
    bool attached;          /* an agent answers */
    struct endpoints doors; /* the listeners of that agent */
    bool inspectable;       /* this user may attach */
    /* but only by the interpreter's own interface (PEP 768): no thread of it may be borrowed */
    bool by_door;
    bool readable; /* this user may read it from outside, whether inspectable or not */
    /* reading it blocked, so only the kernel's facts are known; why_not explains this */
    bool held;
    char why_not[320];   /* if not inspectable */
    struct rank_env env; /* what its launcher made it; no rank where that may not be read */
    uint64_t net_ns;     /* number of its network namespace; 0 unknown */
    /* Who started it has ended: it is a child of init, or of a process of another session. Never so
     * is the first process of a session, as a worker is none. */
    bool is_adopted;
};

/* The source of a rank that is not from the environment but from the memory of Python. Nothing names
 * its job. */
extern const struct rank_env_source target_rank_source;

/* The name of a user of this machine, or the number of a user without a name. */
void target_user_name(int64_t uid, char *buf, size_t cap);

/* All visible Python processes, by pid, and the processes that block their readers, which may be
 * anything; free `*out` by target_list_free. Returns their number, or -1 with the error. */
ssize_t target_list(struct target_process **out, struct err *e);
void target_list_free(struct target_process *list, size_t n);

/* The same, as far as the kernel knows it within `limit_ms`: pid, command line, CPU and memory.
 * Nothing is connected to, and a process that blocks its readers is left out. `*is_cut` (may be NULL):
 * the time was over before all were read. */
ssize_t target_list_brief(struct target_process **out, unsigned limit_ms, bool *is_cut, struct err *e);

#define TARGET_HIDDEN_MAX 160

/* One line about processes that this user cannot see, and so are not in the list; "" if there is
 * no such reason. */
void target_hidden(char *buf, size_t cap);

/* Remove sockets that killed agents of this user have left. */
void target_sweep(void);

/* Resolve TARGET: fills `addr` (path is empty if the process needs an injection first;
 * `recorded` is set if it has ended and left tables, or its folder was named). 0, or -1 with the
 * error: no such process, several of that name (the error lists them), not a target. */
int target_resolve(const char *text, struct target_address *addr, struct err *e);

/* Put the first `cap` processes with a name, as target_resolve finds them, into `pids`. Returns
 * their number; 0 also if `text` is a pid, a socket or a folder. */
size_t target_named(const char *text, pid_t *pids, size_t cap);

#define TARGET_ATTACH_TIMEOUT_MS 5000U /* a training machine is busy */

/* Find or inject the agent of `addr->pid` within `timeout_ms` (0: TARGET_ATTACH_TIMEOUT_MS),
 * which includes the time in which a new process becomes a Python; fills addr->path. 0, or -1
 * with ERR_ATTACH and the reason. `out` may be NULL. */
int target_attach(struct target_address *addr, unsigned timeout_ms, struct inject_result *out, struct err *e);

/* How the user wants to reach a target. */
struct target_options {
    bool no_inject; /* read from outside, even if there is an agent */
    bool readonly;  /* use an existing agent, otherwise read from outside: inject none */
    bool block;     /* from outside, stopping each running thread while it is read */
};

/* Reach the target through its agent (target_attach), or from outside, if injecting is refused
 * but its memory may be read, or the user wants it so: then addr->mode shows it and addr->why
 * has the reason. 0, or -1 with the error if neither is possible. */
int target_reach(struct target_address *addr, const struct target_options *o, struct err *e);

/* Find an existing agent. Fills addr->path if it is empty. 1 found, 0 none, -1 with ERR_ATTACH
 * and the reason. Takes at most TARGET_POLL_MS: a file system that does not answer is a reason. */
int target_find_endpoint(struct target_address *addr, struct err *e);

#define TARGET_POLL_MS 2000U /* limit for reading files that belong to a target */

/* Path of a file that is built and installed with this program: beside it, or where the agent is. 0, or -1
 * if there is none. */
int target_find_ours(const char *name, char *buf, size_t cap);

/* Path of libprobing.so: $PROBING_AGENT, beside this program, or the installed one. 0, or -1
 * with the error. */
int target_find_agent(char *buf, size_t cap, struct err *e);

#endif
