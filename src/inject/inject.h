/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inject: puts the agent into a live process.
 *
 * Looks first and refuses with one line that says what is the matter and what to do. Then borrows one thread, on a
 * stack and code page of its own, for just long enough to create another; that one loads the agent from a memory file.
 * All other threads run on. Whatever fails, registers, mask, pages and descriptors are as before.
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

/* Where the interpreter of the target takes a script to run (PEP 768): addresses in the target. */
struct inject_remote_exec {
    uint64_t path; /* bytes, NUL-terminated */
    size_t path_size;
    uint64_t pending; /* int32: 1 asks for the script */
    uint64_t breaker; /* the byte that makes it look, and what is stored there */
    uint8_t breaker_set;
    pid_t tid; /* of the thread that will run it, as we number it; 0 unknown */
};

struct inject_request {
    pid_t pid;
    const char *agent_path; /* file of libprobing.so */
    unsigned timeout_ms;    /* over all; 0 = 2000 */
    /* Asked where no thread may be borrowed: it is to read through `mem`, to which is written afterwards. 0, or -1 with the reason
     * as a clause. NULL: this interpreter has no door. */
    int (*find_remote_exec)(void *arg, const struct mem *mem, struct inject_remote_exec *out, struct err *e);
    void *find_remote_exec_arg;
};

struct inject_result {
    bool already;        /* an agent was there and answers at the endpoint */
    bool reused;         /* a parked agent was started again, nothing was loaded */
    uint64_t stopped_us; /* how long the borrowed thread was stopped, all stops together; 0 none was */
    uint64_t total_us;
    int64_t borrowed_tid;             /* 0 none */
    const char *strategy;             /* which of the ways in it was, a literal; NULL when already */
    char moment[64];                  /* what the thread was found doing, e.g. "asleep in clock_nanosleep" */
    char endpoint[ENDPOINT_PATH_MAX]; /* as reached from outside */
};

/* Can `pid` be injected into? Looks only. 0; or with ERR_ATTACH and the reason -1; or INJECT_ONLY_REMOTE_EXEC: no thread of it may be
 * borrowed, but its memory may be written to, so an interpreter with a door can be asked; or INJECT_BUSY: another of our programs
 * traces it, which ends in a moment, and inject_process waits for that. */
#define INJECT_ONLY_REMOTE_EXEC 1
#define INJECT_BUSY 2
int inject_check(pid_t pid, struct err *e);

/* May `pid` be traced only by this very process, its ancestor, and by none that this one makes (Yama's ptrace_scope 1)? */
bool inject_is_for_parents(pid_t pid);

/* Inject. 0 with the result, or -1 with the error; the target is as before. */
int inject_process(const struct inject_request *req, struct inject_result *out, struct err *e);

#endif
