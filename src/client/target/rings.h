/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rings: where the tables of a process lie, living or dead, as this process reaches them.
 *
 * Of a living one through /proc/PID/root, so other mount namespaces work; of a dead one in the places of this machine. Only folders
 * of the user whose process it is count. Nothing is opened for writing. Any thread.
 */
#ifndef CLIENT_TARGET_RINGS_H
#define CLIENT_TARGET_RINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "store/ring/ring_dir.h"

struct rings_place {
    char path[RING_DIR_PATH]; /* the folder */
    int64_t pid;              /* of the process, as it saw itself */
    uint64_t start_ticks;     /* when it started, since boot */
    uid_t owner;
    double modified_at; /* when a table in it was written last; seconds since the epoch */
    bool alive;         /* its writer lives */
};

/* Whose tables those of a living process are, and what decides where they lie. */
struct rings_owner {
    pid_t outer;                  /* its number as from here, */
    int64_t pid;                  /* and as it sees itself */
    int64_t uid;                  /* its user, as from here */
    uint64_t start_ticks;         /* when it started, since boot */
    char data_dir[RING_DIR_PATH]; /* PROBING_DATA_DIR of its environment: its own word; "" none */
};

/* 0, or -1: there is no such process. */
int rings_owner(pid_t pid, struct rings_owner *out);

/* Place number `i` (below RING_DIR_BASES) for its tables, as it sees it, into `base` (RING_DIR_PATH). 0, or -1: there is none of that
 * number. */
int rings_base(const struct rings_owner *o, int i, char *base);

/* The folder of living process `pid`. 1 found; 0 it has none, or only in memory (rings_open_memory). */
int rings_find(pid_t pid, struct rings_place *out);

/* The newest folder that a process of that number has left on this machine, as far as this user may see: one of his own, or, for
 * root, of the one other user who has such. 1; 0 there is none; -1 with the error (ERR_ATTACH): several users have. */
int rings_find_dead(int64_t pid, struct rings_place *out, struct err *e);

/* Is `path` a folder with tables? 1, 0 no, or -1 with the error: it cannot be looked at. */
int rings_inspect(const char *path, struct rings_place *out, struct err *e);

/* Tables of living process `pid` that are in memory only: descriptors into `fds` (room for `cap`), which are the caller's. How many. */
size_t rings_open_memory(pid_t pid, int *fds, size_t cap);

/* Seconds since the epoch when something happened `ticks` after boot; NAN unknown. */
double rings_time_of_ticks(uint64_t ticks);

#endif
