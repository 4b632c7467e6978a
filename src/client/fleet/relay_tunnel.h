/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relay_tunnel: the agent of a process on another host as a socket here, to which sessions connect as to
 * any agent.
 *
 * A child process listens at the socket, in a folder that only this user can enter. For each connection that
 * sends something it starts a relay on the host, which after one request is a plain pipe to the agent. It ends,
 * and removes the folder, when its owner has ended, or wants it no longer, or the process on the host has ended.
 */
#ifndef CLIENT_FLEET_RELAY_TUNNEL_H
#define CLIENT_FLEET_RELAY_TUNNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "client/hosts/fleet_reach.h"
#include "client/target/target_address.h"

#define RELAY_TUNNEL_PATH 108

struct relay_tunnel {
    const struct fleet_reach *reach;
    const char *host;
    pid_t pid;   /* on that host */
    bool attach; /* load the agent if there is none */
    pid_t owner; /* the process whose end ends it */
    /* the read end of a pipe: once its other end is closed nobody wants the tunnel; -1: it lasts as long as its
     * owner */
    int end_fd;
};

/* Make it; the first connection is made before this returns, and kept for the first session. `addr` is that of
 * the agent: nothing has to be asked at the socket for it. 0, or -1 with the error: the host cannot be reached,
 * or the process has no agent. */
int relay_tunnel_open(const struct relay_tunnel *t, struct target_address *addr, struct err *e);

/* The same in two steps, for several together. */
struct relay_tunnel_start {
    pid_t child;
    int fd; /* readable when it is done; -1: not begun */
    char host[96];
};

int relay_tunnel_begin(const struct relay_tunnel *t, struct relay_tunnel_start *s, struct err *e);

/* Wait for it until `until_ns`, on the monotonic clock. */
int relay_tunnel_end(struct relay_tunnel_start *s, uint64_t until_ns, struct target_address *addr,
                     struct err *e);

#define RELAY_TUNNEL_S 35 /* the longest for one to be made */

#endif
