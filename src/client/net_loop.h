/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_loop: the part of the loop that connections need. Private to the files that open them.
 */
#ifndef CLIENT_NET_LOOP_H
#define CLIENT_NET_LOOP_H

#include <stddef.h>

#include "client/loop.h"

struct lws;
struct lws_context;
struct lws_vhost;

/* row of the vhost's protocol table that net_link.c serves */
#define NET_LINK_LOCAL_PROTOCOL "probing-link"

struct lws_context *net_loop_context(struct loop *l);
struct lws_vhost *net_loop_vhost(struct loop *l);

/* libwebsockets' callback of connections (net_link.c); `reason` is its enum
 * lws_callback_reasons. */
int net_link_on_event(struct lws *wsi, int reason, void *in, size_t len);

#endif
