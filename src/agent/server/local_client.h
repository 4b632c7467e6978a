/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local_client: a client inside the agent: sends requests of the wire for a client that does not
 * speak the wire (HTTP, text).
 *
 * So clients of every listener use the same methods, with the same column of access and the same
 * bounds. The server's thread.
 */
#ifndef AGENT_SERVER_LOCAL_CLIENT_H
#define AGENT_SERVER_LOCAL_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/server/peer.h"
#include "wire/wire.h"

struct local_client {
    struct peer peer;
    bool begun; /* it is a client of the mailbox */
    uint32_t last_id;
    peer_status_fn *status;
    void *status_arg;
};

/* `id`: of the client, as for a peer. 0, or -1 if there are too many clients. */
int local_client_begin(struct local_client *t, uint32_t id, struct mailbox *m, enum wire_access may);
/* End all its requests. A zeroed client is a no-op. */
void local_client_end(struct local_client *t);

/* The id for the next request. */
uint32_t local_client_next_id(struct local_client *t);

/* Send the message written with that id and free it. 0, or -1 if it was not accepted. */
int local_client_send(struct local_client *t, struct strbuf *message);

/* The next message of the agent, owned by the caller; NULL if there is none (yet). */
struct wire_message *local_client_take(struct local_client *t);

#endif
