/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server: the agent's WebSocket server, without the library's names: see net_server.c.
 *
 * One at a time in a process. All calls but server_poke are made by its own thread.
 */
#ifndef AGENT_SERVER_SERVER_H
#define AGENT_SERVER_SERVER_H

#include "base/err.h"

struct mailbox;
struct model_status;
struct sampler;
struct server;
struct worker;

/* The rest of the agent, as far as the server has to do with it. All are static. */
struct server_parts {
    /* The other side of the mailbox; see sampler/sampler.h. */
    struct sampler *(*start)(struct mailbox *m, void (*wake)(void *arg), void *arg, struct err *e);
    void (*stop)(struct sampler *s);
    /* Before the agent goes: take out of the job what was put into it. 0, or -1 with the error, and everything stays. */
    int (*leave)(struct worker *w, struct err *e);
    /* Put into a status what the mailbox does not know. The server's thread. */
    void (*fill)(struct model_status *out);
};

/* Listen, and start the other side. NULL with the error; nothing is left then. */
struct server *server_new(const struct server_parts *parts, struct err *e);

const char *server_endpoint(const struct server *s);

/* Serve until a client asks to eject. */
void server_run(struct server *s);

/* Stop the other side, close everything, take the socket away. NULL is nothing to do. */
void server_free(struct server *s);

/* Have the server look after the thread that brought us in (life_reap); under the lock of the life cycle, while it runs. */
void server_poke(void);

#endif
