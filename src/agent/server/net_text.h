/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_text: lines of text at the agent's doors, for nc: a command a line, answered in its turn.
 *
 * Whoever begins with no request of HTTP speaks text. Commands are routes of web_routes.c by other names (the rows of net_text.c), so the
 * same may be done by the same people. Who has said nothing that is a command is closed at the first line that is none. Belongs to
 * net_server.c; the server's thread.
 */
#ifndef AGENT_SERVER_NET_TEXT_H
#define AGENT_SERVER_NET_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/server/net_admission.h"
#include "agent/server/http/web.h"

#define NET_TEXT_PROTOCOL "text" /* of the library's: what is no HTTP falls to it */

struct lws;
struct lws_context;
struct net_text_context;

/* `of` is shared with HTTP. Everything as net_web_context_new (net_web.h). */
struct net_text_context *net_text_context_new(struct lws_context *context, struct web_context *of,
                                              struct net_admission *door, uint32_t *last_peer,
                                              struct strbuf *frame);
void net_text_context_free(struct net_text_context *h);

/* A callback of the library for such a connection. 0; -1: close it. */
int net_text_on(struct net_text_context *h, struct net_connection *c, struct lws *wsi, int reason,
                const void *in, size_t len);

/* The connection is gone. */
void net_text_forget(struct net_text_context *h, struct net_connection *c);

/* Is it for one of these? Then it is theirs now. */
bool net_text_accept(struct net_text_context *h, struct queue_item *item);

/* Name of the i-th command, and the route that it is (NULL: none); NULL there are no more. */
const char *net_text_command(size_t i, const char **verb, const char **path);

size_t net_text_bytes(const struct net_text_context *h); /* held */

#endif
