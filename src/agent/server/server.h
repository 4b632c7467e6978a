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

/* The other parts of the agent that the server uses. All are static. */
struct server_parts {
    /* The other side of the mailbox; see sampler/sampler.h. */
    struct sampler *(*start)(struct mailbox *m, void (*wake)(void *arg), void *arg, struct err *e);
    void (*stop)(struct sampler *s);
    /* Called before the agent leaves: remove from the job what was added to it. 0, or -1 with
     * the error. */
    int (*leave)(struct worker *w, struct err *e);
    /* Called if it does not leave after all: things may be added again. */
    void (*stay)(void);
    /* Fill the parts of a status that do not come from the mailbox. The server's thread. */
    void (*fill)(struct model_status *out);
};

/* Listen, and start the other side. NULL with the error; then nothing remains. */
struct server *server_new(const struct server_parts *parts, struct err *e);

const char *server_endpoint(const struct server *s);

/* Serve until a client asks to eject. */
void server_run(struct server *s);

/* Stop the other side, close everything, remove the socket. NULL is a no-op. */
void server_free(struct server *s);

/* Make the server wait for the thread that started the agent (life_reap); under the lock of the
 * life cycle, while the server runs. */
void server_poke(void);

#endif
