/* SPDX-License-Identifier: Apache-2.0 */
/*
 * endpoint: where an agent listens.
 *
 * A unix socket probing-<uid>/<pid>.sock under the target's /tmp; uid and pid as the target itself has them. From
 * outside it is reached through /proc/<pid>/root, so other mount and network namespaces work.
 */
#ifndef BASE_ENDPOINT_H
#define BASE_ENDPOINT_H

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

#define ENDPOINT_PATH_MAX 108 /* sun_path, unix(7) */

/* Directory and socket as the target sees them. */
int endpoint_dir(char *buf, size_t cap, uid_t uid);
int endpoint_path(char *buf, size_t cap, uid_t uid, pid_t pid);

/* Socket of process `pid` as this process reaches it. 0, or -1 with the error (ERR_ATTACH: no such process). */
int endpoint_path_from_outside(char *buf, size_t cap, pid_t pid, struct err *e);

/* Take sockets out of `dir`, which must be this user's, whose processes are gone: at which nobody listens, that are at least
 * `age_s` seconds old, and the pid of which is nobody's. Looks at `most` of them. Number of those removed. */
int endpoint_sweep(const char *dir, int most, int age_s);

/* Does something accept connections at `path`? 1 yes, 0 nothing there or a dead socket, -1 with errno otherwise. */
int endpoint_probe(const char *path);

#endif
