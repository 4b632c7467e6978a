/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rings: where the tables of a live or dead process are, as this process reaches them.
 *
 * Those of a live process through /proc/PID/root, so other mount namespaces work; those of a
 * dead one in the places of this machine. Only folders of the process's user count. Nothing is
 * opened for writing. Any thread.
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
    int64_t pid;              /* of the process, in its own numbering */
    uint64_t start_ticks;     /* when it started, since boot */
    uid_t owner;
    double modified_at; /* last write of a table in it; seconds since the epoch */
    bool alive;         /* its writer lives */
};

/* The owner of a live process's tables, and the facts that determine their place. */
struct rings_owner {
    pid_t outer;                  /* in our numbering, */
    int64_t pid;                  /* and in its own */
    int64_t uid;                  /* its user, in our numbering */
    uint64_t start_ticks;         /* when it started, since boot */
    char data_dir[RING_DIR_PATH]; /* PROBING_DATA_DIR of its environment, as it claims; "" none */
};

/* 0, or -1 if there is no such process. */
int rings_owner(pid_t pid, struct rings_owner *out);

/* Write place number `i` (below RING_DIR_BASES) for its tables, as it sees it, to `base`
 * (RING_DIR_PATH). 0, or -1 if there is none of that number. */
int rings_base(const struct rings_owner *o, int i, char *base);

/* The folder of live process `pid`. 1 found; 0 it has none, or only memory (rings_open_memory). */
int rings_find(pid_t pid, struct rings_place *out);

/* The newest folder that a process of that number has left on this machine, as far as this user
 * may see: one of this user's own, or, for root, of the one other user who has any. 1; 0 if
 * there is none; -1 with the error (ERR_ATTACH) if several users have some. */
int rings_find_dead(int64_t pid, struct rings_place *out, struct err *e);

/* Whether `path` is a folder with tables: 1, 0 no, or -1 with the error if it cannot be read. */
int rings_inspect(const char *path, struct rings_place *out, struct err *e);

/* Open the tables of live process `pid` that are in memory only: descriptors into `fds` (room
 * for `cap`), owned by the caller. Returns their number. */
size_t rings_open_memory(pid_t pid, int *fds, size_t cap);

/* Seconds since the epoch of a time `ticks` after boot; NAN unknown. */
double rings_time_of_ticks(uint64_t ticks);

#endif
