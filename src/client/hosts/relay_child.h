/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relay_child: the process at the near end of a link to a relay: ssh or the like, or the relay of this
 * host itself. It has pipes for its input and output, a session of its own without a terminal, so that
 * nothing on the way can ask on the screen, and ends with the thread that started it.
 *
 * What it prints as errors is read, and its end kept. Ending never waits: whoever ends one asks now and
 * then whether it is over.
 */
#ifndef CLIENT_HOSTS_RELAY_CHILD_H
#define CLIENT_HOSTS_RELAY_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* How the relay of this host is run, in a child: relay_serve of src/relay, which nothing below the
 * programs may know; tests have their own. Returns when `in` ends. */
typedef int (*relay_serve_fn)(int in, int out);

struct relay_child {
    pid_t pid;           /* 0: there is none */
    int in, out, errors; /* its input, its output, its errors: ours do not block; -1 closed */
    size_t n_errors;     /* bytes of errors so far */
    char said[256];      /* the end of them */
    uint64_t until_ns;   /* while it is ending: then it is asked harder, */
    int signal;          /* by this one was the last time; 0 by the end of its input */
};

/* Start a command, or with `words` NULL `serve` in a child. 0, or -1 with the error. */
int relay_child_start(struct relay_child *c, char *const *words, relay_serve_fn serve, struct err *e);

/* Read its errors, as far as they are there. 0, or -1: there are too many of them. */
int relay_child_read_errors(struct relay_child *c);

/* The last line of its errors, safe for a terminal; "" none. */
void relay_child_put_errors(const struct relay_child *c, char *buf, size_t cap);

/* Begin to end it: its input ends; `hard`: it is also asked by a signal. */
void relay_child_end(struct relay_child *c, bool hard);

/* True once it has ended, or was given up. It is asked harder from time to time until then. */
bool relay_child_is_over(struct relay_child *c);

#endif
