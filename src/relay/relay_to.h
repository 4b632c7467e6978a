/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relay_to: writes what the ranks of this host do to a ClickHouse server, for as long as it runs
 * (client/engine/engine_schema.h has the tables).
 *
 * Once a second a row for each rank; each new stack once a day; while a rank may be stuck, what a verdict is made of;
 * every ten seconds a row about this host, and at least as often the new rows of the ring tables (ring_tail.h), from
 * where the server has acknowledged them. Where the server does not answer, rows wait in the rings, and what a rank does in that time is not
 * seen: nothing is queued. Ranks that start, end or are started again are found every five seconds. One thread.
 */
#ifndef RELAY_RELAY_TO_H
#define RELAY_RELAY_TO_H

#include <stdbool.h>

#include "base/err.h"
#include "base/strbuf.h"

struct relay_to_options {
    const char *url; /* client/engine/engine_address.h */
    const char
        *target; /* the only job that is written, as job:NAME; NULL: all of this user, as root of all users */
    const char *job; /* the name under which that one is written; NULL: its own */
    const char
        *tables; /* ring tables beside those that are always written, with commas, or "all"; NULL none */
    const char *metrics; /* a port of loopback at which Prometheus finds the newest values; NULL none */
    bool no_inject;      /* load no agents */
};

/* Write until SIGTERM, SIGINT or SIGHUP. 0, or -1 with the error: it could not begin. */
int relay_to_run(const struct relay_to_options *o, struct err *e);

/* Append the state of the relay of this host and user that writes to the server of that address, as JSON. 1: it
 * writes; 0: it cannot write now; -1 with the error: there is none. */
int relay_to_put_state(const char *url, struct strbuf *out, struct err *e);

#endif
