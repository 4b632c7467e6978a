/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relay_tunnel: the agent of a process on another host as a socket here, to which sessions connect as to
 * any agent.
 *
 * A child process listens at the socket, in a folder that only this user can enter. For each connection it
 * starts a relay on the host, which after one request is a plain pipe to the agent. It ends, and removes
 * the folder, when its owner has ended.
 */
#ifndef CLIENT_FLEET_RELAY_TUNNEL_H
#define CLIENT_FLEET_RELAY_TUNNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "client/hosts/fleet_reach.h"

#define RELAY_TUNNEL_PATH 108

struct relay_tunnel {
    const struct fleet_reach *reach;
    const char *host;
    pid_t pid;   /* on that host */
    bool attach; /* load the agent if there is none */
    pid_t owner; /* the process whose end ends it */
};

/* Make it; the first connection is tried before this returns. The socket's path is in `path`. 0, or -1 with
 * the error: the host cannot be reached, or the process has no agent. */
int relay_tunnel_open(const struct relay_tunnel *t, char path[RELAY_TUNNEL_PATH], struct err *e);

#endif
