/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server: the agent's WebSocket server, without the library's names: see net_server.c.
 *
 * One at a time in a process. All calls but server_poke are made by its own thread.
 */
#ifndef AGENT_SERVER_SERVER_H
#define AGENT_SERVER_SERVER_H

#include "base/err.h"

struct server;

/* Listen, and start the sampler. NULL with the error; nothing is left then. */
struct server *server_new(struct err *e);

const char *server_endpoint(const struct server *s);

/* Serve until a client asks to eject. */
void server_run(struct server *s);

/* Stop the sampler, close everything, take the socket away. NULL is nothing to do. */
void server_free(struct server *s);

/* Have the server look after the thread that brought us in (life_reap); under the lock of the life cycle, while it runs. */
void server_poke(void);

#endif
