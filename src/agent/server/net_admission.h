/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_admission: the agent's TCP door over libwebsockets: who knocks, who may enter, who is put out.
 *
 * A stranger costs a bounded number of connections of a bounded age, and nothing else: until somebody is known they get one answer.
 * Belongs to net_server.c; the server's thread.
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
#define NET_ADMISSION_MAX 12 /* connections by TCP at a time; those of the unix socket are counted apart */
#define NET_ADMISSION_STRANGERS                                                                              \
    6 /* of those, who are not of the job's user or root's, and have not shown a token yet */

struct lws;
struct lws_context;
struct lws_vhost;
struct net_web;
struct net_text;

/* What a connection carries from accept to its end, by whichever way it came. */
struct net_connection {
    struct net_connection *next; /* of those by TCP */
    struct lws *wsi;
    int fd;
    bool tcp;
    bool known;   /* they are of the job's user, or root's, wherever that user lives */
    bool entered; /* it is known what they may do */
    bool greeted; /* they have said hello, */
    bool held;    /* have asked too fast, and are not read for a moment */
    uint64_t born_ns;
    enum wire_access may;
    struct access_peer peer; /* who they are */
    double credit;           /* requests that may come at once */
    uint64_t credit_ns;
    struct net_web *web;   /* a request by HTTP that is under way; NULL none */
    struct net_text *text; /* it speaks text; NULL it does not */
};

struct net_admission;
struct mailbox;

/* Closed. NULL without memory: then there are no doors, and all below take it so. Freed when the library is gone. */
struct net_admission *net_admission_new(struct lws_context *context, struct lws_vhost *vhost,
                                        struct mailbox *mailbox);
void net_admission_free(struct net_admission *d);

/* Open it in place of one that is open, whose clients are put out. `socket`: the agent's. `out` may be NULL. 0, or -1 with the error. */
int net_admission_open(struct net_admission *d, const struct wire_listen *want, const char *socket,
                       struct wire_listening *out, struct err *e);

/* Close it: nobody comes any more, the file of the tokens goes; who is in stays in. Or put everybody out, too. */
void net_admission_stop(struct net_admission *d);
void net_admission_close(struct net_admission *d);

/* The library's callback for the listening descriptor; `reason` is its enum lws_callback_reasons. */
int net_admission_on_listening(struct net_admission *d, struct lws *wsi, int reason);

/* Somebody asks for something by HTTP, also for the upgrade to a WebSocket. 0: they may enter (c->may says how far); -1: they have
 * been told that they may not, and the connection is to be closed. */
int net_admission_judge(struct net_admission *d, struct net_connection *c, struct lws *wsi);

/* The same for who speaks text, by what the kernel knows of them or by the token that they have said (NULL none). NULL: they may enter,
 * or are in, and by a token maybe further than they were; else why not. */
const char *net_admission_judge_text(struct net_admission *d, struct net_connection *c, const char *token);

/* A message has come: is there to be a pause before the next is read? */
void net_admission_count_message(struct net_connection *c);

/* The connection is gone. */
void net_admission_forget(struct net_admission *d, struct net_connection *c);

/* Tell of the door in a status; nothing when it never was one. */
void net_admission_fill(const struct net_admission *d, struct model_status *out);

#endif
