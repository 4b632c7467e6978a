/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_text: lines of text on the agent's listeners, for nc: one command per line, answered in
 * order.
 *
 * A client whose first bytes are not an HTTP request speaks text. Commands are other names (the
 * rows of net_text.c) of routes of web_routes.c, so access is the same. A client is closed at
 * its first line that is not a command, unless it has sent a command before. Belongs to
 * net_server.c; the server's thread.
 */
#ifndef AGENT_SERVER_NET_TEXT_H
#define AGENT_SERVER_NET_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/server/net_admission.h"
#include "agent/server/http/web.h"

/* name at the library, which uses it for everything that is not HTTP */
#define NET_TEXT_PROTOCOL "text"

struct lws;
struct lws_context;
struct net_text_context;

/* `of` is shared with HTTP. The rest is as in net_web_context_new (net_web.h). */
struct net_text_context *net_text_context_new(struct lws_context *context, struct web_context *of,
                                              struct net_admission *door, uint32_t *last_peer,
                                              struct strbuf *frame);
void net_text_context_free(struct net_text_context *h);

/* A callback of the library for such a connection. 0; -1: close it. */
int net_text_on(struct net_text_context *h, struct net_connection *c, struct lws *wsi, int reason,
                const void *in, size_t len);

/* The connection is gone. */
void net_text_forget(struct net_text_context *h, struct net_connection *c);

/* True if the item is for one of these clients, which then owns it. */
bool net_text_accept(struct net_text_context *h, struct queue_item *item);

/* Name of the i-th command, and its route (NULL: none); NULL after the last. */
const char *net_text_command(size_t i, const char **verb, const char **path);

size_t net_text_bytes(const struct net_text_context *h); /* held */

#endif
