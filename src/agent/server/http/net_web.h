/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_web: HTTP of the agent over libwebsockets: passes requests to web.h and sends its
 * responses; and the entry to net_text.h.
 *
 * The library parses HTTP. One request per connection, which is closed after the response: bytes
 * after a request are never taken for another one. A client that reads a response too slowly is
 * disconnected. Belongs to net_server.c; the server's thread.
 */
#ifndef AGENT_SERVER_HTTP_NET_WEB_H
#define AGENT_SERVER_HTTP_NET_WEB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/server/net_admission.h"
#include "agent/server/http/web.h"

/* All requests in progress. */
struct net_web_context;

/* `last_peer`: the counter for numbers of clients; `frame`: a buffer for the bytes being
 * written. Both belong to the server. NULL without memory. Freed when the library is gone; NULL
 * is a no-op. */
struct net_web_context *net_web_context_new(struct lws_context *context, const struct web_context *of,
                                            struct net_admission *door, uint32_t *last_peer,
                                            struct strbuf *frame);
void net_web_context_free(struct net_web_context *h);

/* A callback of the library for a connection that speaks HTTP, once its client was admitted. 0;
 * -1: close it. */
int net_web_on(struct net_web_context *h, struct net_connection *c, struct lws *wsi, int reason, void *in,
               size_t len);

/* The same for a connection that speaks text. */
int net_web_on_text(struct net_web_context *h, struct net_connection *c, struct lws *wsi, int reason,
                    const void *in, size_t len);

/* The connection is gone. */
void net_web_forget(struct net_web_context *h, struct net_connection *c);

/* True if the item is for one of these clients, which then owns it. */
bool net_web_accept(struct net_web_context *h, struct queue_item *item);

size_t net_web_bytes(const struct net_web_context *h); /* held */

/* Respond immediately with only a status and a line; then the connection is to be closed. */
void net_web_refuse(struct lws *wsi, unsigned status, const char *why);

#endif
