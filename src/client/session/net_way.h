/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_way: the part of the path to an agent that belongs to other users.
 *
 * The path of a socket goes through the target's file system, and the search for a token reads
 * folders that anyone may have made. Both may block forever, so a child does the work (guard.h),
 * and the loop continues. The child's results cannot block.
 */
#ifndef CLIENT_SESSION_NET_WAY_H
#define CLIENT_SESSION_NET_WAY_H

#include <sys/types.h>
#include <sys/un.h>

#include "client/guard.h"
#include "client/target/tcp.h"

#define NET_WAY_MS 2000U

/* The request to the child. */
struct net_way {
    char path[sizeof(((struct sockaddr_un *)0)->sun_path)]; /* a socket, or a port (tcp.h) */
    pid_t pid;                                              /* the target; 0 unknown */
};

enum net_way_kind {
    NET_WAY_NONE = 0, /* `error` has the reason */
    NET_WAY_TOKEN,    /* for a port: `token`, "" if none was found */
    /* a descriptor that stands for the socket: connecting to it involves only the kernel */
    NET_WAY_SOCKET,
    /* a connection, made by the child because the socket's file system may ask its server */
    NET_WAY_CONNECTED,
};

struct net_way_found {
    enum net_way_kind kind;
    int error; /* errno */
    char token[TCP_TOKEN_MAX];
};

/* Start the child. 0, or -1 with errno, as guard_start. */
int net_way_start(struct guard *g, const struct net_way *way);

/* Read the child's result, when its descriptor is readable, and the descriptor that comes with
 * it, which the caller then owns (-1: none). 0, or -1 if the child ended without a result. */
int net_way_hear(const struct guard *g, struct net_way_found *found, int *fd);

#endif
