/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relay_marks: how far the tables of each rank were written to a server, in a file that outlives the relay. Without it a
 * relay begins again with what the rings have, and what is there twice collapses: it saves that, finds the ranks that
 * ended in between, and lets lost rows be counted.
 *
 * A file for each host, server and user: $XDG_STATE_HOME/probing-top/relay/HOST-HASH.marks (0600), beside it .lock,
 * which a relay keeps locked, and .status, its state.
 */
#ifndef RELAY_RELAY_MARKS_H
#define RELAY_RELAY_MARKS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "client/engine/engine_address.h"
#include "store/ring/ring.h"

#define RELAY_MARKS_PATH 512

/* A table of a process. */
struct relay_mark {
    int64_t pid;
    uint64_t start_ticks;
    int32_t rank;
    char job[ENGINE_ADDRESS_JOB];
    char table[RING_MAX_NAME];
    uint64_t created_us, next;
};

struct relay_marks {
    struct relay_mark *list; /* owned */
    size_t n, cap;
    uint64_t lost; /* rows that were overwritten before they were written, so far */
};

/* Where a file of a relay of this host to that server is, by its suffix (".marks"); folders are made. `buf` has room for
 * RELAY_MARKS_PATH. 0, or -1 with the error: there is no folder for it. */
int relay_marks_where(const struct engine_address *a, const char *suffix, char *buf, struct err *e);

/* Lock it against other relays: a descriptor to be kept, or -1 with the error. */
int relay_marks_lock(const struct engine_address *a, struct err *e);

/* Read a file; what is not valid in it is passed over. 0, also if there is none, or -1 with the error. */
int relay_marks_read(struct relay_marks *m, const char *path, struct err *e);

/* The same of a text. */
int relay_marks_parse(struct relay_marks *m, const char *text);

/* Replace the file. 0, or -1 with the error. */
int relay_marks_write(const struct relay_marks *m, const char *path, struct err *e);

/* Room for another one, which is zeroed; NULL without memory. */
struct relay_mark *relay_marks_add(struct relay_marks *m);

void relay_marks_fini(struct relay_marks *m);

#endif
