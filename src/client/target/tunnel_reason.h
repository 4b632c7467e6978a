/* SPDX-License-Identifier: Apache-2.0 */
/* tunnel_reason: why a connection through a tunnel led nowhere (struct target_address), in a file beside its
 * socket: whoever connects sees only that it is closed. */
#ifndef CLIENT_TARGET_TUNNEL_REASON_H
#define CLIENT_TARGET_TUNNEL_REASON_H

#include <stddef.h>

#define TUNNEL_REASON_MAX 512

/* `path` is that of the socket. */
void tunnel_reason_put(const char *path, const char *why);

/* Why the last one led nowhere; "" it did not. */
void tunnel_reason_get(const char *path, char *buf, size_t cap);

void tunnel_reason_remove(const char *path);

#endif
