/* SPDX-License-Identifier: Apache-2.0 */
/*
 * children: the Python processes that a target has started (DataLoader workers), and their
 * threads.
 *
 * Nothing is injected into them: a thread of ours reads them from outside, once a second or less
 * often if its budget or pace demands. A hung process may block that thread, never the loop. A
 * process that cannot be read is listed with the reason.
 */
#ifndef CLIENT_SESSION_CHILDREN_H
#define CLIENT_SESSION_CHILDREN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/model.h"
#include "client/target/target_tree.h"

#define CHILDREN_MAX 64 /* maximum number of processes that are read */

/* One of them. `snapshot` has its threads without an agent's; if `why` is not ERR_OK, only its
 * main thread with the kernel's public facts. */
struct children_process {
    pid_t pid;     /* in our numbering */
    pid_t parent;  /* the nearest ancestor among them, or the target */
    bool attached; /* an agent answers there */
    char *cmdline; /* owned */
    struct err why;
    struct model_snapshot snapshot;
    /* its place below the target, at depth 1 or more; process is NULL */
    struct target_tree_row tree;
};

/* In the order of the tree. */
struct children_list {
    struct children_process *items;
    size_t n;
    size_t left_out; /* number beyond CHILDREN_MAX */
};

void children_list_fini(struct children_list *l);

struct children;

/* Start watching the children of process `pid`. NULL with the error. */
struct children *children_start(pid_t pid, struct err *e);

/* End it. After two seconds a blocked thread is abandoned. NULL does nothing. */
void children_stop(struct children *c);

/* How often they are read: at most once a second; rarely, while they are not shown; never, so
 * that nothing wakes up. */
enum children_pace { CHILDREN_OFTEN = 0, CHILDREN_SELDOM, CHILDREN_STILL };

/* The first pace is CHILDREN_OFTEN. Processes that are due under the new pace are read now. NULL
 * does nothing. */
void children_set_pace(struct children *c, enum children_pace pace);

/* Readable while a list has not been taken. */
int children_fd(const struct children *c);

/* Move the newest list to `out`: the caller frees it. False if there is no new one. */
bool children_take(struct children *c, struct children_list *out);

#endif
