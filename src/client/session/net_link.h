/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_link: one WebSocket connection to one unix socket or TCP port; sends and receives whole
 * messages as bytes.
 *
 * Opened once, closed once; a retry is a new link. A handler may close its link at any point of
 * any callback; no callback follows. Input from the peer is bounded: a message above
 * WIRE_MAX_MESSAGE ends the link when its length is announced, before it is read. Runs on the
 * loop's thread.
 */
#ifndef CLIENT_SESSION_NET_LINK_H
#define CLIENT_SESSION_NET_LINK_H

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "client/loop.h"

enum net_link_end {
    NET_LINK_CLOSED = 0,  /* it was open, and the peer or the network ended it */
    NET_LINK_UNREACHABLE, /* no answer at the port, or the peer hung up before it sent anything */
    NET_LINK_NOBODY,      /* nobody listens at the path */
    NET_LINK_BARRED,      /* the path cannot be connected to; `why` is the reason */
    NET_LINK_KEPT,        /* something on the path does not answer; `why` is the error line */
    NET_LINK_NOT_AGENT,   /* the answer was not in our protocol */
    NET_LINK_TOO_LONG,    /* a message above the limit was announced */
    NET_LINK_NO_MEMORY,
    NET_LINK_REFUSED, /* an agent refused this client; `why` is its demand */
    /* another process than the expected one listens there; `why` is the error line; nothing was
     * sent */
    NET_LINK_STRANGER,
};

struct net_link_handler {
    void (*on_open)(void *arg);
    void (*on_message)(void *arg, const void *data, size_t len); /* one whole message */
    /* the link is freed after this call */
    void (*on_end)(void *arg, enum net_link_end end, const char *why);
};

struct net_link;

/* Start connecting to the unix socket `path`, or to the port that it names (tcp.h). At a socket,
 * process `pid` has to listen, as the kernel reports, before a byte is sent; 0: any process.
 * NULL with the error. Callbacks come from the loop, never from inside this call. */
struct net_link *net_link_open(struct loop *l, const char *path, pid_t pid, const struct net_link_handler *h,
                               void *arg, struct err *e);

/* Queue one message; the content of `message` is copied. 0, or -1 if the queue is full or
 * without memory. */
int net_link_send(struct net_link *link, const struct strbuf *message);

/* With `patient` a silent peer gets a ping only rarely, because nobody waits for it; without it
 * as often as at first. NULL does nothing. */
void net_link_set_patience(struct net_link *link, bool patient);

/* Bytes that the peer has announced and not sent yet. */
size_t net_link_outstanding(const struct net_link *link);

/* Drop the connection; no callback follows. */
void net_link_close(struct net_link *link);

#endif
