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
#include <stdint.h>
#include <sys/types.h>

#include "base/endpoint.h"
#include "base/err.h"

struct inject_request {
    pid_t pid;
    const char *agent_path; /* file of libprobing.so */
    unsigned timeout_ms;    /* over all; 0 = 2000 */
};

struct inject_result {
    bool already;        /* an agent was there and answers at the endpoint */
    bool reused;         /* a parked agent was started again, nothing was loaded */
    uint64_t stopped_us; /* how long the borrowed thread was stopped, all stops together */
    uint64_t total_us;
    int64_t borrowed_tid;             /* 0 none */
    const char *strategy;             /* which of the ways in it was, a literal; NULL when already */
    char moment[64];                  /* what the thread was found doing, e.g. "asleep in clock_nanosleep" */
    char endpoint[ENDPOINT_PATH_MAX]; /* as reached from outside */
};

/* Can `pid` be injected into? Looks only. 0, or -1 with ERR_ATTACH and the reason. */
int inject_check(pid_t pid, struct err *e);

/* Inject. 0 with the result, or -1 with the error; the target is as before. */
int inject_process(const struct inject_request *req, struct inject_result *out, struct err *e);

#endif
