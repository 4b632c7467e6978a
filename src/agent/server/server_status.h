/* SPDX-License-Identifier: Apache-2.0 */
/* server_status: the status of the server and of the agent. The server's thread. */
#ifndef AGENT_SERVER_SERVER_STATUS_H
#define AGENT_SERVER_SERVER_STATUS_H

#include <stddef.h>
#include <stdint.h>

#include "agent/server/mailbox.h"
#include "base/cost.h"
#include "base/model.h"

/* Facts of the server. */
struct server_facts {
    struct mailbox *mailbox;
    struct cost_meter *meter;
    uint64_t started_ns;
    const char *endpoint;
    int64_t clients, processes;             /* clients, and the number of their processes */
    size_t bytes;                           /* held */
    void (*fill)(struct model_status *out); /* see server.h; NULL if there is nothing to add */
};

/* Fill a status; its texts are in its arena or borrowed from the facts. */
void server_status_fill(const struct server_facts *s, struct model_status *out);

#endif
