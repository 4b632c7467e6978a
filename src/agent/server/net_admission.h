/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_admission: the agent's TCP listener over libwebsockets: accepting, admitting and
 * disconnecting clients.
 *
 * A stranger costs a bounded number of connections of a bounded age, and nothing else: an
 * unknown client gets one response. Belongs to net_server.c; the server's thread.
 */
#ifndef AGENT_SERVER_NET_ADMISSION_H
#define AGENT_SERVER_NET_ADMISSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/access/access.h"
#include "base/err.h"
#include "base/model.h"
#include "wire/wire.h"

#define NET_ADMISSION_PROTOCOL "door" /* of the listening descriptor */
/* TCP connections at a time; those of the unix socket are counted separately */
#define NET_ADMISSION_MAX 12
/* of those, connections of users other than the job's and root that have not sent a token yet */
#define NET_ADMISSION_STRANGERS 6

struct lws;
struct lws_context;
struct lws_vhost;
struct net_web;
struct net_text;

/* The data of a connection from accept to its end, for every listener. */
struct net_connection {
    struct net_connection *next; /* the next TCP connection */
    struct lws *wsi;
    int fd;
    bool tcp;
    bool known;   /* its user is the job's or root, in any namespace */
    bool entered; /* its access is decided */
    bool greeted; /* it has sent hello */
    bool held;    /* it has asked too fast, and reading is paused */
    uint64_t born_ns;
    enum wire_access may;
    struct access_peer peer; /* its user */
    double credit;           /* requests that may arrive in a burst */
    uint64_t credit_ns;
    struct net_web *web;   /* an HTTP request in progress; NULL if none */
    struct net_text *text; /* NULL if it does not speak text */
};

struct net_admission;
struct mailbox;

/* A closed listener. NULL without memory: then there is no TCP listener, and all functions below
 * accept NULL. Freed when the library is gone. */
struct net_admission *net_admission_new(struct lws_context *context, struct lws_vhost *vhost,
                                        struct mailbox *mailbox);
void net_admission_free(struct net_admission *d);

/* Open the listener; it replaces an open one, whose clients are disconnected. `socket`: of the
 * agent. `out` may be NULL. 0, or -1 with the error. */
int net_admission_open(struct net_admission *d, const struct wire_listen *want, const char *socket,
                       struct wire_listening *out, struct err *e);

/* Close it: no new clients, and the file of the tokens is removed; connected clients stay. Or
 * disconnect everybody, too. */
void net_admission_stop(struct net_admission *d);
void net_admission_close(struct net_admission *d);

/* The library's callback for the listening descriptor; `reason` is its enum
 * lws_callback_reasons. */
int net_admission_on_listening(struct net_admission *d, struct lws *wsi, int reason);

/* A client sends an HTTP request, or one for the upgrade to a WebSocket. 0 if it may enter, with
 * its access in c->may; -1 if it was refused with a response, and the connection is to be
 * closed. */
int net_admission_judge(struct net_admission *d, struct net_connection *c, struct lws *wsi);

/* The same for a client that speaks text, by what the kernel knows of it or by the token it has
 * sent (NULL: none). NULL if it may enter or has entered, perhaps with more access because of
 * the token; otherwise the reason. */
const char *net_admission_judge_text(struct net_admission *d, struct net_connection *c, const char *token);

/* A message has arrived: true if reading is to pause before the next one. */
void net_admission_count_message(struct net_connection *c);

/* The connection is gone. */
void net_admission_forget(struct net_admission *d, struct net_connection *c);

/* Report the listener in a status; no effect if it was never opened. */
void net_admission_fill(const struct net_admission *d, struct model_status *out);

#endif
