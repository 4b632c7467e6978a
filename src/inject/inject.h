/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inject: puts the agent into a live process.
 *
 * Checks first and refuses with one line that gives reason and remedy. Then borrows one thread,
 * on a stack and code page of our own, just long enough to create another, which loads the agent
 * from a memory file. All other threads run on. After any failure registers, mask, pages and
 * descriptors are as before.
 */
#ifndef INJECT_INJECT_H
#define INJECT_INJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/endpoint.h"
#include "base/err.h"
#include "base/mem.h"

/* Where the target's interpreter takes a script to run (PEP 768): addresses in the target. */
struct inject_remote_exec {
    uint64_t path; /* bytes, NUL-terminated */
    size_t path_size;
    uint64_t pending; /* int32: 1 asks for the script */
    uint64_t breaker; /* the byte that makes it check, and the value to store there */
    uint8_t breaker_set;
    pid_t tid; /* of the thread that will run it, in our numbering; 0 unknown */
};

struct inject_request {
    pid_t pid;
    const char *agent_path; /* file of libprobing.so */
    unsigned timeout_ms;    /* for everything; 0 = 2000 */
    /* Called where no thread may be borrowed. It reads through `mem`, which is written to
     * afterwards. 0, or -1 with the reason as a clause. NULL: this interpreter has no such
     * entry. */
    int (*find_remote_exec)(void *arg, const struct mem *mem, struct inject_remote_exec *out, struct err *e);
    void *find_remote_exec_arg;
};

struct inject_result {
    bool already; /* an agent existed and answers at the endpoint */
    bool reused;  /* a parked agent was restarted, nothing was loaded */
    /* total time for which the borrowed thread was stopped; 0 if none was */
    uint64_t stopped_us;
    uint64_t total_us;
    int64_t borrowed_tid; /* 0 none */
    /* the strategy that worked, a literal; NULL if `already` */
    const char *strategy;
    /* what the thread was doing, e.g. "asleep in clock_nanosleep" */
    char moment[64];
    char endpoint[ENDPOINT_PATH_MAX]; /* as reached from outside */
};

/* Check whether `pid` can be injected into, without effect. 0; or with ERR_ATTACH and the reason
 * -1; or INJECT_ONLY_REMOTE_EXEC: no thread may be borrowed, but its memory may be written, so
 * an interpreter with PEP 768 can be asked; or INJECT_BUSY: another of our programs traces it,
 * which soon ends, and inject_process waits for that. */
#define INJECT_ONLY_REMOTE_EXEC 1
#define INJECT_BUSY 2
int inject_check(pid_t pid, struct err *e);

/* True if `pid` may be traced only by this very process, its ancestor, and not by a child of it
 * (Yama's ptrace_scope 1). */
bool inject_is_for_parents(pid_t pid);

/* Inject. 0 with the result, or -1 with the error; the target is then as before. */
int inject_process(const struct inject_request *req, struct inject_result *out, struct err *e);

#endif
