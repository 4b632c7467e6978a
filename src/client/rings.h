/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rings: where the tables of a process lie, living or dead, as this process reaches them.
 *
 * Of a living one through /proc/PID/root, so other mount namespaces work; of a dead one in the places of this machine. Only folders
 * of the user whose process it is count. Nothing is opened for writing. Any thread.
 */
#ifndef CLIENT_RINGS_H
#define CLIENT_RINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "store/ring_dir.h"

struct rings_place {
    char path[RING_DIR_PATH]; /* the folder */
    int64_t pid;              /* of the process, as it saw itself */
    uint64_t start_ticks;     /* when it started, since boot */
    uid_t owner;
    double modified_at; /* when a table in it was written last; seconds since the epoch */
    bool alive;         /* its writer lives */
};

/* The folder of living process `pid`. 1 found; 0 it has none, or only in memory (rings_open_memory). */
int rings_find(pid_t pid, struct rings_place *out);

/* The newest folder that a process of that number has left on this machine, as far as this user may see. 1 or 0. */
int rings_find_dead(int64_t pid, struct rings_place *out);

/* Is `path` a folder with tables? 1, 0 no, or -1 with the error: it cannot be looked at. */
int rings_look_at(const char *path, struct rings_place *out, struct err *e);

/* Tables of living process `pid` that are in memory only: descriptors into `fds` (room for `cap`), which are the caller's. How many. */
size_t rings_open_memory(pid_t pid, int *fds, size_t cap);

/* Seconds since the epoch when something happened `ticks` after boot; NAN unknown. */
double rings_time_of_ticks(uint64_t ticks);

#endif
