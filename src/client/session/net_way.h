/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_way: the way to an agent, as far as it leads through what belongs to others.
 *
 * The path of a socket leads through the target's file system, and who looks for a token reads folders that anybody may have made.
 * Both may never answer, so a child does it (guard.h), and the loop goes on. What it hands over cannot hold up anybody.
 */
#ifndef CLIENT_SESSION_NET_WAY_H
#define CLIENT_SESSION_NET_WAY_H

#include <sys/types.h>
#include <sys/un.h>

#include "client/guard.h"
#include "client/target/tcp.h"

#define NET_WAY_MS 2000U

/* What is asked of the child. */
struct net_way {
    char path[sizeof(((struct sockaddr_un *)0)->sun_path)]; /* a socket, or a port (tcp.h) */
    pid_t pid;                                              /* the target; 0 unknown */
};

enum net_way_kind {
    NET_WAY_NONE = 0, /* `error` says why */
    NET_WAY_TOKEN,    /* of a port: `token`, "" none was found */
    NET_WAY_SOCKET,   /* a descriptor that stands for the socket: to connect to it asks the kernel alone */
    NET_WAY_CONNECTED, /* a connection: it lies on a file system that has somebody else asked, so the child has gone there itself */
};

struct net_way_found {
    enum net_way_kind kind;
    int error; /* errno */
    char token[TCP_TOKEN_MAX];
};

/* Start the child. 0, or -1 with errno, as guard_start. */
int net_way_start(struct guard *g, const struct net_way *way);

/* What it says, when its descriptor is readable, and with it the descriptor that is the caller's then (-1: none). 0, or -1: it has
 * ended without a word. */
int net_way_hear(const struct guard *g, struct net_way_found *found, int *fd);

#endif
