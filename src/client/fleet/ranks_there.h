/* SPDX-License-Identifier: Apache-2.0 */
/* ranks_there: ranks on other hosts as targets: which process each is, and a socket here that leads to its
 * agent (relay_tunnel.h). */
#ifndef CLIENT_FLEET_RANKS_THERE_H
#define CLIENT_FLEET_RANKS_THERE_H

#include "base/err.h"
#include "base/strbuf.h"
#include "client/fleet/relay_tunnel.h"

#define RANKS_THERE_MAX 32

/* A target by its name, "unix:PATH", and its address. */
struct rank_there {
    char target[RELAY_TUNNEL_PATH + 8];
    struct target_address addr;
};

/* The ranks that "job:NAME/RANKS" means. `attach`: agents are loaded where there are none. The sockets last as
 * long as process `owner`. Without "/RANKS" those that cannot be reached are left out: `partial` then has the
 * hosts without news, and these ranks, each in a clause with its reason. Their number, or -1 with the error. */
ssize_t ranks_there_open(const char *text, const struct fleet_reach *reach, bool attach, pid_t owner,
                         struct rank_there *out, size_t cap, struct strbuf *partial, struct err *e);

#endif
