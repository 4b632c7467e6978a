/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_dir: where the rings of a process lie.
 *
 * A folder BASE/PID-STARTTIME with a file a table. BASE is $PROBING_DATA_DIR, else /dev/shm/probing-UID, else
 * /tmp/probing-UID (probing-UID-NUMBER in user namespace NUMBER: its user 0 must not be in root's way where they share a /tmp). Folders are ours alone (0700, of our user, no links). The writer holds a lock on the folder as long as it
 * lives, so anybody can see whether it does, in whatever namespaces they are. Usable inside the job.
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
#define RING_DIR_FATAL                                                                                       \
    "fatal.txt" /* what the agent writes when a fatal signal has come; it goes with the tables */
#define RING_FATAL_AT "in Python at " /* a line of it begins so: where the thread was that it came to */
#define RING_DIR_MAX_PRUNED 512

/* BASE number `i` (below RING_DIR_BASES) into `buf` (room for RING_DIR_PATH), of process `pid` (0: this one) and its user `uid`, both
 * as the process itself has them. 0, or -1: there is none of that number (data_dir NULL or "", or too long). */
int ring_dir_base(char *buf, int i, const char *data_dir, uid_t uid, pid_t pid);

/* Make (or take over from a dead writer) the folder of a process below `base` and lock it. The descriptor of the locked folder, its
 * path in `path` (RING_DIR_PATH); or -1 with the error. Tables that lay there are removed. */
int ring_dir_create(const char *base, int64_t pid, uint64_t start_ticks, char *path, struct err *e);

/* Make an empty file for a table in the folder: a descriptor. Readers see it when it is finished, which is when its head was written
 * (ring_create); 0. -1 with errno. */
int ring_dir_begin_file(int dir, const char *table);
int ring_dir_finish_file(int dir, const char *table);

/* Remove the tables and the folder. */
void ring_dir_remove(int dir, const char *path);

/* Does a living writer hold the folder `path`? 1 yes, 0 no, -1 with errno. */
int ring_dir_alive(const char *path);

/* A folder below a BASE. */
struct ring_dir_entry {
    int64_t pid;
    uint64_t start_ticks;
    double modified_at; /* when a table in it was written last; seconds since the epoch */
    bool alive;
    uint64_t bytes; /* that its tables take */
    char path[RING_DIR_PATH];
};

/* Call `fn` for every folder of user `uid` below `base` until it returns non-zero. That value; 0 at the end or when there is no such base. */
int ring_dir_each(const char *base, uid_t uid, int (*fn)(const struct ring_dir_entry *entry, void *arg),
                  void *arg);

/* Remove folders of dead writers that nobody has written to since `before` (seconds since the epoch), and of the others the oldest
 * until they take no more than `keep_bytes`. At most RING_DIR_MAX_PRUNED folders are looked at. How many were removed. */
int ring_dir_prune(const char *base, uid_t uid, double before, uint64_t keep_bytes);

/* Bytes that rings below `base` (which must exist) may take: a quarter of what is free. 0 unknown. */
uint64_t ring_dir_free_bytes(const char *base);

#endif
