/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local_client: a client within the agent: asks in the words of the wire for somebody who does not speak them (HTTP, text).
 *
 * So whoever comes, by whichever door, asks by the same methods, with the same column of who may do what and the same bounds.
 * The server's thread.
 */
#ifndef AGENT_SERVER_LOCAL_CLIENT_H
#define AGENT_SERVER_LOCAL_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/server/peer.h"
#include "wire/wire.h"

struct local_client {
    struct peer peer;
    bool begun; /* it is one of the mailbox's clients */
    uint32_t last_id;
    peer_status_fn *status;
    void *status_arg;
};

/* `id`: of the client, as that of a peer. 0, or -1: there are too many clients. */
int local_client_begin(struct local_client *t, uint32_t id, struct mailbox *m, enum wire_access may);
/* Whatever was asked for ends. All zero is nothing to do. */
void local_client_end(struct local_client *t);

/* Id for the next request. */
uint32_t local_client_next_id(struct local_client *t);

/* Send what was written with it, which is freed. 0, or -1: it was not taken. */
int local_client_send(struct local_client *t, struct strbuf *message);

/* The next message of the agent, to be freed; NULL there is none (yet). */
struct wire_message *local_client_take(struct local_client *t);

#endif
