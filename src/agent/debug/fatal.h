/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fatal: records signals that end the job before they do, while a client has asked for that
 * (probing TARGET catch).
 *
 * A handler for SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT, installed only where nobody has
 * one, or where Python's faulthandler has one, which reports and then lets the process end. It
 * fills an existing record, wakes the sampler, waits for it for a bounded time, restores the
 * previous disposition, and lets the signal happen again. Arming and disarming are called by any
 * thread of ours; the functions for the sampler are listed below.
 */
#ifndef AGENT_DEBUG_FATAL_H
#define AGENT_DEBUG_FATAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "pystack/native.h"

#define FATAL_SIGNALS 5
#define FATAL_WAIT_S 2 /* maximum wait of the handler */

/* The first signal received. */
struct fatal_record {
    int signal, code;          /* si_code */
    int64_t tid;               /* of the thread that received it */
    uint64_t ident;            /* its pthread_self */
    uint64_t address;          /* si_addr, for signals raised by the kernel */
    int64_t sender;            /* process, for signals that were sent; 0 otherwise */
    struct native_copy native; /* with its registers, but without its stack */
};

/* Install the handler where that is allowed; elsewhere nothing changes. `python`: an address in
 * the interpreter's library; `reporter`: bit i is set if a handler of signal fatal_number(i) in
 * that library is faulthandler's, as far as Python knows. 0, or -1 with the error. */
int fatal_arm(const void *python, unsigned reporter, struct err *e);

/* Restore the previous disposition where ours is installed. A handler of ours below another's
 * only passes signals on from now on. */
void fatal_disarm(void);

/* The armed signals: "names|names: why not; ...", both may be empty; "" if none is. */
void fatal_describe(char *buf, size_t cap);

/* Its i-th signal; 0 after the last. Its name; and the meaning of an si_code, NULL if unknown. */
int fatal_number(size_t i);
const char *fatal_name(int signal);
const char *fatal_reason(int signal, int code);

/* In the child of a fork, which has no handler of ours. Async-signal-safe. */
void fatal_in_child(void);

/* ---- the sampler's ---- */

/* How a handler wakes the sampler; NULL: the sampler ends, and handlers must not wait for it. */
void fatal_set_waker(void (*wake)(void *arg), void *arg);

/* True if a signal was received. Then its thread waits until fatal_end. Until then, faults of
 * the calling thread are not recorded: they end the process with the previous disposition. */
bool fatal_is_asked(void);
struct fatal_record *fatal_begin(void);
void fatal_end(void);

#endif
