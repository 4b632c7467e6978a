/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_dir: where the rings of a process are.
 *
 * A folder BASE/PID-STARTTIME with a file per table. BASE is $PROBING_DATA_DIR, otherwise
 * /dev/shm/probing-UID, otherwise /tmp/probing-UID (probing-UID-NUMBER in user namespace NUMBER:
 * its user 0 must not be in root's way where they share a /tmp). Folders are ours alone (0700,
 * of our user, no links). The writer holds a lock on the folder as long as it lives, so anyone
 * in any namespace can see whether it does. Usable inside the job.
 */
#ifndef STORE_RING_RING_DIR_H
#define STORE_RING_RING_DIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#define RING_DIR_BASES 3
#define RING_DIR_PATH 512
#define RING_DIR_SUFFIX ".ring"
/* the agent's text about a fatal signal; removed with the tables */
#define RING_DIR_FATAL "fatal.txt"
/* prefix of the line in it with the signalled thread's place */
#define RING_FATAL_AT "in Python at "
#define RING_DIR_MAX_PRUNED 512

/* Write BASE number `i` (below RING_DIR_BASES) to `buf` (room for RING_DIR_PATH), for process
 * `pid` (0: this one) and its user `uid`, both as the process itself has them. 0, or -1 if there
 * is none of that number (data_dir NULL or "", or too long). */
int ring_dir_base(char *buf, int i, const char *data_dir, uid_t uid, pid_t pid);

/* Make (or take over from a dead writer) the folder of a process below `base` and lock it.
 * Removes the tables in it. Returns the descriptor of the locked folder, its path in `path`
 * (RING_DIR_PATH); or -1 with the error. */
int ring_dir_create(const char *base, int64_t pid, uint64_t start_ticks, char *path, struct err *e);

/* Make an empty file for a table in the folder. Readers see it when it is finished, that is when
 * its head was written (ring_create). Returns a descriptor, or -1 with errno. */
int ring_dir_begin_file(int dir, const char *table);
int ring_dir_finish_file(int dir, const char *table);

/* Remove the tables and the folder. */
void ring_dir_remove(int dir, const char *path);

/* Whether a living writer holds the folder `path`: 1 yes, 0 no, -1 with errno. */
int ring_dir_alive(const char *path);

/* A folder below a BASE. */
struct ring_dir_entry {
    int64_t pid;
    uint64_t start_ticks;
    double modified_at; /* last write of a table in it; seconds since the epoch */
    bool alive;
    uint64_t bytes; /* size of its tables */
    char path[RING_DIR_PATH];
};

/* Call `fn` for every folder of user `uid` below `base` until it returns non-zero. Returns that
 * value; 0 at the end or if there is no such base. */
int ring_dir_each(const char *base, uid_t uid, int (*fn)(const struct ring_dir_entry *entry, void *arg),
                  void *arg);

/* Remove folders of dead writers without a write since `before` (seconds since the epoch), and
 * of the others the oldest until they take at most `keep_bytes`. Checks at most
 * RING_DIR_MAX_PRUNED folders. Returns the number removed. */
int ring_dir_prune(const char *base, uid_t uid, double before, uint64_t keep_bytes);

/* Bytes that rings below `base` (which must exist) may take: a quarter of what is free. 0
 * unknown. */
uint64_t ring_dir_free_bytes(const char *base);

#endif
