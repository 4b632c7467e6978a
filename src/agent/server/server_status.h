/* SPDX-License-Identifier: Apache-2.0 */
/* server_status: what the server tells of itself and of the agent. The server's thread. */
#ifndef AGENT_SERVER_SERVER_STATUS_H
#define AGENT_SERVER_SERVER_STATUS_H

#include <stddef.h>
#include <stdint.h>

#include "agent/server/mailbox.h"
#include "base/cost.h"
#include "base/model.h"

/* Of the server. */
struct server_facts {
    struct mailbox *mailbox;
    struct cost_meter *meter;
    uint64_t started_ns;
    const char *endpoint;
    int64_t clients, processes;             /* these are of so many */
    size_t bytes;                           /* held */
    void (*fill)(struct model_status *out); /* see server.h; NULL: nothing is known beside */
};

/* Fill a status, whose texts go to its arena or are the facts' own. */
void server_status_fill(const struct server_facts *s, struct model_status *out);

#endif
