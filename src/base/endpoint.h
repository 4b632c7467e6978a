/* SPDX-License-Identifier: Apache-2.0 */
/*
 * endpoint: where an agent listens.
 *
 * A unix socket probing-<uid>/<pid>.sock under the target's /tmp or, where nothing can be made
 * there (a read-only root, no /tmp, a folder of that name of another user), in the next of a few
 * places; uid and pid as the target itself has them. Other processes reach it through
 * /proc/<pid>/root, so other mount and network namespaces work. In a user namespace of its own,
 * user 0 differs from user 0 of the machine whose /tmp it may share, so the folder belongs to
 * the process alone, and its name says so.
 */
#ifndef BASE_ENDPOINT_H
#define BASE_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

#define ENDPOINT_PATH_MAX 108 /* sun_path, unix(7) */

/* Folders in which the agent's folder may be, in the order in which they are tried; the last is
 * NULL. */
extern const char *const endpoint_places[];

#define ENDPOINT_PLACE_MAX 32

/* The folder for user `uid` in a place: the place itself, or the user's own folder below it
 * (/run/user). 0, or -1 with errno. */
int endpoint_place(char *buf, size_t cap, const char *place, uid_t uid);

/* Directory and socket in one of the places, as the target sees them. */
int endpoint_dir_in(char *buf, size_t cap, const char *place, uid_t uid);
int endpoint_path_in(char *buf, size_t cap, const char *place, uid_t uid, pid_t pid);

/* The same in the first place, the usual one. */
int endpoint_dir(char *buf, size_t cap, uid_t uid);
int endpoint_path(char *buf, size_t cap, uid_t uid, pid_t pid);

/* The folder below `place` that the processes of user `uid` share, as process `pid` (0: this
 * one) sees it: probing-<uid>, and in a user namespace of its own, whose users differ from the
 * machine's, "-" and its number. 0, or -1 with errno. */
int endpoint_user_dir(char *buf, size_t cap, const char *place, uid_t uid, pid_t pid);

/* The socket of process `pid` as this process reaches it: the existing one, or the usual path.
 * 0, or -1 with the error (ERR_ATTACH: no such process). */
int endpoint_path_from_outside(char *buf, size_t cap, pid_t pid, struct err *e);

/* The file beside an agent's socket with the address and the tokens of its TCP listener:
 * PID.door for PID.sock. 0, or -1 if `socket` has another form. */
int endpoint_tcp_file(char *buf, size_t cap, const char *socket);

/* The file beside it with the token as a request header, as `curl -H @FILE` takes it: PID.curl.
 * 0, or -1. */
int endpoint_header_file(char *buf, size_t cap, const char *socket);

/* The file beside an agent's socket that says what else stands open in its job
 * (agent/access/endpoints_file.h): PID.open for PID.sock. 0, or -1. */
int endpoint_state_file(char *buf, size_t cap, const char *socket);

/* User `outer` of this machine as process `pid` itself sees it; `outer` if that cannot be read. */
unsigned endpoint_inner_uid(pid_t pid, unsigned outer);

/* Remove sockets of ended processes from `dir`, which must be this user's: nobody listens at
 * them, they are at least `age_s` seconds old, and no process has their pid. Checks at most
 * `most` of them. Returns the number removed. */
int endpoint_sweep(const char *dir, int most, int age_s);

/* True if `path`, as a process sees it, may be an agent's socket: its name lies in a user's
 * folder in one of the places. */
bool endpoint_is_name(const char *path);

/* Check that the listener of the socket that `fd` is connected to is process `pid`, as its user.
 * 0, or -1 with one line that says who it is instead (ERR_ATTACH). Sends nothing. The kernel
 * remembers who listened first. */
int endpoint_check_peer(int fd, pid_t pid, struct err *e);

/* Check whether `path` accepts connections: 1 yes, 0 nothing there or a dead socket, -1 with
 * errno otherwise. */
int endpoint_probe(const char *path);

#endif
