/* SPDX-License-Identifier: Apache-2.0 */
/*
 * children: the Python processes that a target has started (DataLoader workers), and their threads.
 *
 * Nothing is put into them: they are read from outside by a thread of ours, once a second or as seldom as its budget or pace demands. Reading
 * a process that hangs may hold that thread up, never the loop. One that cannot be read is there with the reason.
 */
#ifndef CLIENT_SESSION_CHILDREN_H
#define CLIENT_SESSION_CHILDREN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/model.h"
#include "client/target/target_tree.h"

#define CHILDREN_MAX 64 /* processes that are read */

/* One of them. `snapshot` has its threads without an agent's; where `why` is not ERR_OK, only its main thread, and no more of that
 * than the kernel tells everybody. */
struct children_process {
    pid_t pid;     /* as seen from here */
    pid_t parent;  /* the nearest ancestor that is one of them, or the target */
    bool attached; /* an agent answers there */
    char *cmdline; /* owned */
    struct err why;
    struct model_snapshot snapshot;
    struct target_tree_row tree; /* its place below the target, at depth 1 and more; process is NULL */
};

/* In the order of the tree. */
struct children_list {
    struct children_process *items;
    size_t n;
    size_t left_out; /* beyond CHILDREN_MAX */
};

void children_list_fini(struct children_list *l);

struct children;

/* Start looking for the children of process `pid`. NULL with the error. */
struct children *children_start(pid_t pid, struct err *e);

/* End it. A thread that is stuck is left to itself after two seconds. NULL is nothing. */
void children_stop(struct children *c);

/* How often they are looked at: once a second at most; seldom, while nobody sees them; never, so that nothing wakes up. */
enum children_pace { CHILDREN_OFTEN = 0, CHILDREN_SELDOM, CHILDREN_STILL };

/* At first it is CHILDREN_OFTEN. Who is due by the new pace is looked at now. NULL is nothing. */
void children_set_pace(struct children *c, enum children_pace pace);

/* Readable when there is a list that nobody took. */
int children_fd(const struct children *c);

/* The newest list, moved to `out`: the caller frees it. False when there is no new one. */
bool children_take(struct children *c, struct children_list *out);

#endif
