/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_list: the hosts of a job, as people and schedulers write them.
 *
 * "a,b[1-4],c[01-03,7]" are eight hosts: numbers keep the zeros before them, several brackets of one name
 * are all combinations, as in Slurm and ClusterShell. "@group" is asked of ClusterShell's nodeset. A name
 * has letters, digits and ._:@/+- alone and does not begin with '-': it becomes an argument of ssh, and
 * maybe a word of a shell.
 */
#ifndef CLIENT_HOSTS_HOST_LIST_H
#define CLIENT_HOSTS_HOST_LIST_H

#include <stddef.h>

#include "base/err.h"

#define HOST_LIST_MAX 64  /* hosts */
#define HOST_NAME_SIZE 96 /* bytes of a name, with its NUL */

struct host_list {
    char (*names)[HOST_NAME_SIZE]; /* owned; in the order in which they were named, each once */
    size_t n;
    size_t read; /* names, with those that came again */
};

void host_list_fini(struct host_list *l);

/* Add the hosts of a text. Pure: "@group" is an error. 0, or -1 with ERR_USAGE, or ERR_FAILED without
 * memory; some may have been added then. */
int host_list_expand(struct host_list *l, const char *text, struct err *e);

/* The same; a text that begins with '@', or a part of it, is a group that nodeset expands. */
int host_list_add(struct host_list *l, const char *text, struct err *e);

/* Add the hosts of a file, one a line; what follows the name ("slots=8", ":8" of MPICH) and '#' are
 * passed over. 0, or -1 with the error. */
int host_list_add_file(struct host_list *l, const char *path, struct err *e);

/* Add the hosts of a job of Slurm: out of the environment of one of its steps, if this is one, else
 * squeue is asked. 0, or -1 with the error. */
int host_list_add_slurm(struct host_list *l, const char *job, struct err *e);

/* Add the running pods that a selector of labels ("app=llama,role!=eval") finds in kubectl's namespace.
 * 0, or -1 with the error: there is none, too. */
int host_list_add_pods(struct host_list *l, const char *selector, struct err *e);

#endif
