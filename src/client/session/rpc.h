/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc: requests to an agent and their answers as messages, one at a time, for callers that wait.
 *
 * A connection and a loop of its own behind blocking functions; below session.h, for data that
 * are copied rather than shown. One thread.
 */
#ifndef CLIENT_SESSION_RPC_H
#define CLIENT_SESSION_RPC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "wire/wire.h"

struct rpc;

/* For the agent at a unix socket, at which process `pid` has to listen (0: any). Does not
 * connect yet. NULL with the error. */
struct rpc *rpc_new(const char *path, pid_t pid, struct err *e);
void rpc_free(struct rpc *a);

/* From here on every wait ends when `stop`, which is called often, returns true. NULL: no wait
 * does. */
void rpc_set_stop(struct rpc *a, bool (*stop)(void *arg), void *arg);

/* Connect and exchange hellos. 0, or -1 with the error. */
int rpc_connect(struct rpc *a, struct err *e);

/* True while there is a connection, as far as is known. */
bool rpc_is_connected(const struct rpc *a);

/* Close the connection; another one may be made. */
void rpc_drop(struct rpc *a);

/* Number for the next request. */
uint32_t rpc_next_id(struct rpc *a);

/* Send the message (and free it) as the request with that number, and wait. The caller owns the
 * answer; NULL with the error, which may be the agent's. */
struct wire_message *rpc_ask(struct rpc *a, struct strbuf *message, struct err *e);

/* The target's pid, in its own numbering; 0 before the first hello. */
int64_t rpc_pid(const struct rpc *a);

#endif
