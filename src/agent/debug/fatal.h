/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fatal: signals that end the job are noted before they do, while somebody has asked for that (probing TARGET catch).
 *
 * A handler for SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT, only where nobody has one, or Python's faulthandler, which tells and
 * then lets the process end. It fills a record that is there already, wakes the sampler, waits for it for a bounded time, puts back
 * what was there, and lets the signal happen anew. Arming and disarming are called by any thread of ours; what the sampler calls is
 * said below.
 */
#ifndef AGENT_DEBUG_FATAL_H
#define AGENT_DEBUG_FATAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "pystack/native.h"

#define FATAL_SIGNALS 5
#define FATAL_WAIT_S 2 /* the handler waits no longer */

/* The first that came. */
struct fatal_record {
    int signal, code;          /* si_code */
    int64_t tid;               /* of the thread that it came to */
    uint64_t ident;            /* its pthread_self */
    uint64_t address;          /* si_addr, of those that the kernel has raised */
    int64_t sender;            /* process, of those that were sent; 0: none was */
    struct native_copy native; /* with its registers; of its stack there is nothing yet */
};

/* Install the handler where that may be; elsewhere nothing is touched. `python`: an address in the interpreter's library; `reporter`:
 * bit i is set when a handler of signal fatal_number(i) that lies in that library is faulthandler's, as far as Python knows. 0, or -1
 * with the error. */
int fatal_arm(const void *python, unsigned reporter, struct err *e);

/* Put back what was there, where it is ours that is there. One that somebody has put theirs over only passes signals on from now on. */
void fatal_disarm(void);

/* What is armed: "names|names: why not; ...", both may be empty; "" nothing is. */
void fatal_describe(char *buf, size_t cap);

/* Its i-th signal; 0: there are no more. Its name; and what a si_code of it means, NULL unknown. */
int fatal_number(size_t i);
const char *fatal_name(int signal);
const char *fatal_reason(int signal, int code);

/* In the child of a fork: nothing of ours is installed there. Async-signal-safe. */
void fatal_in_child(void);

/* ---- the sampler's ---- */

/* Who wakes it, from within a handler; NULL: it goes, nobody is to be waited for. */
void fatal_set_waker(void (*wake)(void *arg), void *arg);

/* Has one come? Then its thread waits until fatal_end. In between, faults of the calling thread are no record: they end the process
 * as they would have, in the way that was there before. */
bool fatal_is_asked(void);
struct fatal_record *fatal_begin(void);
void fatal_end(void);

#endif
