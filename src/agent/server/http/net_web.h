/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_web: HTTP of the agent over libwebsockets: requests to web.h, and its answers back; and the way to net_text.h.
 *
 * The library parses HTTP. One request a connection, which is closed after the answer: nothing of what follows a request is ever
 * taken for another one. Who reads an answer too slowly is put out. Belongs to net_server.c; the server's thread.
 */
#ifndef AGENT_SERVER_HTTP_NET_WEB_H
#define AGENT_SERVER_HTTP_NET_WEB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/server/net_admission.h"
#include "agent/server/http/web.h"

/* All that are under way. */
struct net_web_context;

/* `last_peer`: numbers of clients are counted up there; `frame`: room for what is being written. Both are the server's. NULL without
 * memory. Freed when the library is gone; NULL is nothing to do. */
struct net_web_context *net_web_context_new(struct lws_context *context, const struct web_context *of,
                                            struct net_admission *door, uint32_t *last_peer,
                                            struct strbuf *frame);
void net_web_context_free(struct net_web_context *h);

/* A callback of the library for a connection that speaks HTTP, once they who ask were let in. 0; -1: close it. */
int net_web_on(struct net_web_context *h, struct net_connection *c, struct lws *wsi, int reason, void *in,
               size_t len);

/* The same for one that speaks text. */
int net_web_on_text(struct net_web_context *h, struct net_connection *c, struct lws *wsi, int reason,
                    const void *in, size_t len);

/* The connection is gone. */
void net_web_forget(struct net_web_context *h, struct net_connection *c);

/* Is it for one of these? Then it is theirs now. */
bool net_web_accept(struct net_web_context *h, struct queue_item *item);

size_t net_web_bytes(const struct net_web_context *h); /* held */

/* Answer with nothing but a status and a line, at once; the connection is then to be closed. */
void net_web_refuse(struct lws *wsi, unsigned status, const char *why);

#endif
