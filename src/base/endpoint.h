/* SPDX-License-Identifier: Apache-2.0 */
/*
 * endpoint: where an agent listens.
 *
 * A unix socket probing-<uid>/<pid>.sock under the target's /tmp, or, where nothing can be made there (a read-only root, no
 * /tmp, a folder of that name that is somebody else's), in the next of a few places; uid and pid as the target itself has them. From outside it is reached through
 * /proc/<pid>/root, so other mount and network namespaces work. In a user namespace of its own, whose user 0 is another one than
 * that of the machine whose /tmp it may share, the folder is the process's alone, and its name says so.
 */
#ifndef BASE_ENDPOINT_H
#define BASE_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

#define ENDPOINT_PATH_MAX 108 /* sun_path, unix(7) */

/* Folders in which the agent's may be, in the order in which they are tried; the last is NULL. */
extern const char *const endpoint_places[];

#define ENDPOINT_PLACE_MAX 32

/* The folder that a place is for user `uid`: itself, or the user's own below it (/run/user). 0, or -1 with errno. */
int endpoint_place(char *buf, size_t cap, const char *place, uid_t uid);

/* Directory and socket in one of the places, as the target sees them. */
int endpoint_dir_in(char *buf, size_t cap, const char *place, uid_t uid);
int endpoint_path_in(char *buf, size_t cap, const char *place, uid_t uid, pid_t pid);

/* The same in the first place, the usual one. */
int endpoint_dir(char *buf, size_t cap, uid_t uid);
int endpoint_path(char *buf, size_t cap, uid_t uid, pid_t pid);

/* Folder below `place` for what the processes of user `uid` share, as process `pid` (0: this one) sees it: probing-<uid>, and in a
 * user namespace of its own, whose users are others than those of the machine, "-" and the number of that. 0, or -1 with errno. */
int endpoint_user_dir(char *buf, size_t cap, const char *place, uid_t uid, pid_t pid);

/* Socket of process `pid` as this process reaches it: the one that is there, or where it would be usually. 0, or -1 with the error (ERR_ATTACH: no such process). */
int endpoint_path_from_outside(char *buf, size_t cap, pid_t pid, struct err *e);

/* The file beside an agent's socket that has the address and the tokens of its TCP door: PID.door for PID.sock. 0, or -1: `socket` is
 * not named so. */
int endpoint_tcp_file(char *buf, size_t cap, const char *socket);

/* The file beside it that is the header of a request, with the token, as `curl -H @FILE` takes it: PID.curl. 0, or -1. */
int endpoint_header_file(char *buf, size_t cap, const char *socket);

/* The file beside an agent's socket that says what else stands open in its job (agent/access/endpoints_file.h): PID.open for PID.sock. 0, or -1. */
int endpoint_state_file(char *buf, size_t cap, const char *socket);

/* User `outer` of this machine as process `pid` itself sees it: the same when that cannot be read. */
unsigned endpoint_inner_uid(pid_t pid, unsigned outer);

/* Take sockets out of `dir`, which must be this user's, whose processes are gone: at which nobody listens, that are at least
 * `age_s` seconds old, and the pid of which is nobody's. Looks at `most` of them. Number of those removed. */
int endpoint_sweep(const char *dir, int most, int age_s);

/* Is `path`, as a process sees it, one at which an agent may listen: the name of a socket in the folder of a user in one of the
 * places? */
bool endpoint_is_name(const char *path);

/* Who listens at the socket that `fd` is connected to, is it process `pid`, as its user? 0, or -1 with the one line that says who it
 * is instead (ERR_ATTACH). Nothing is sent. The kernel keeps who it was that listened first. */
int endpoint_check_peer(int fd, pid_t pid, struct err *e);

/* Does something accept connections at `path`? 1 yes, 0 nothing there or a dead socket, -1 with errno otherwise. */
int endpoint_probe(const char *path);

#endif
