/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls: the requests that the python workers answer, and the clients that wait for them.
 *
 * The server never waits: it hands a request to a worker and checks it again when the worker, or
 * the sampler, has woken it, or at calls_next_ns. Belongs to the server's thread.
 */
#ifndef AGENT_SERVER_CALLS_H
#define AGENT_SERVER_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/server/call.h"
#include "agent/server/evals.h"
#include "agent/server/mailbox.h"
#include "agent/server/virtual_tables.h"
#include "wire/wire.h"

#define CALLS_MAX MAILBOX_SLOTS /* a client waits for one at a time */

struct calls {
    struct mailbox *mailbox;
    struct call all[CALLS_MAX];
    struct evals evals;
    struct virtual_tables rows;
    /* called when something is to be done now; NULL if nobody will do it */
    void (*on_due)(void *arg);
    void *arg;
    bool due;
};

/* `wake` makes the server's thread poll; any thread of the agent may call it. */
void calls_init(struct calls *c, struct mailbox *m, void (*on_due)(void *arg), void (*wake)(void *arg),
                void *arg);

/* Accept a request, whose arguments are copied, or moved for debug, pause and catch. 0, or -1 if
 * the client waits for another already. */
int calls_add_eval(struct calls *c, uint32_t peer, uint32_t id, const struct wire_eval *want);
int calls_add_debug(struct calls *c, uint32_t peer, uint32_t id, enum wire_method method,
                    struct wire_debug *want);
int calls_add_rows(struct calls *c, uint32_t peer, uint32_t id, const struct wire_rows_ask *want);

/* End the code that this client has had run, or withdraw it. */
void calls_interrupt(struct calls *c, uint32_t peer);

/* The client has disconnected: it gets no answer. */
void calls_forget(struct calls *c, uint32_t peer);

/* True while code of a client runs, or waits for its turn. */
bool calls_are_evaluating(const struct calls *c);

/* Begin what is new, and answer what is ready or late. */
void calls_poll(struct calls *c);

/* The latest time of the next poll; UINT64_MAX if nothing waits. */
uint64_t calls_next_ns(const struct calls *c);

/* From now on nobody gets an answer. */
void calls_fini(struct calls *c);

#endif
