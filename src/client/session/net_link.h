/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_link: one WebSocket connection to one unix socket or TCP port; bytes of whole messages in and out.
 *
 * Opened once, closed once; a new try is a new link. A handler may close its link at any point of any callback; nothing
 * is called after that. What the peer sends is bounded: a message above WIRE_MAX_MESSAGE ends the link when its length
 * is announced, before it is read. Runs on the loop's thread.
 */
#ifndef CLIENT_SESSION_NET_LINK_H
#define CLIENT_SESSION_NET_LINK_H

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "client/loop.h"

enum net_link_end {
    NET_LINK_CLOSED = 0,  /* it was open and the peer, or the network, ended it */
    NET_LINK_UNREACHABLE, /* nobody answers at the port, or they hung up before saying anything */
    NET_LINK_NOBODY,      /* nobody listens at the path */
    NET_LINK_BARRED,      /* the path cannot be connected to, `why` says for which reason */
    NET_LINK_KEPT,        /* what lies on the way does not answer, `why` is the line that says so */
    NET_LINK_NOT_AGENT,   /* something answered that does not speak the protocol */
    NET_LINK_TOO_LONG,    /* a message above the limit was announced */
    NET_LINK_NO_MEMORY,
    NET_LINK_REFUSED, /* an agent answered that this client may not enter, `why` says what it wants */
    NET_LINK_STRANGER, /* another process than it should be listens there, `why` is the line that says so; nothing was sent */
};

struct net_link_handler {
    void (*on_open)(void *arg);
    void (*on_message)(void *arg, const void *data, size_t len);       /* one whole message */
    void (*on_end)(void *arg, enum net_link_end end, const char *why); /* the link is freed after this call */
};

struct net_link;

/* Start connecting to the unix socket `path`, or to the port that it names (tcp.h). At a socket process `pid` has to listen, as the
 * kernel says, before a byte is sent; 0: anybody may. NULL with the error. Callbacks come from the loop, never from inside this call. */
struct net_link *net_link_open(struct loop *l, const char *path, pid_t pid, const struct net_link_handler *h,
                               void *arg, struct err *e);

/* Queue one message; the content of `message` is copied. 0, or -1 when the queue is full or memory ended. */
int net_link_send(struct net_link *link, const struct strbuf *message);

/* From here on a silent peer (NULL: there is none) is asked for a sign of life seldom: nobody waits for it. Or as often as before. */
void net_link_set_patience(struct net_link *link, bool patient);

/* Bytes that the peer announced and has not sent yet. */
size_t net_link_outstanding(const struct net_link *link);

/* Drop the connection; no callback follows. */
void net_link_close(struct net_link *link);

#endif
