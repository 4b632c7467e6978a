/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc: questions to an agent and their answers as messages, one at a time, for those who wait.
 *
 * A connection and a loop of its own behind blocking functions; below session.h, for what is copied rather than shown. One thread.
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

/* For the agent at a unix socket, at which process `pid` has to listen (0: anybody). Nothing is connected yet. NULL with the error. */
struct rpc *rpc_new(const char *path, pid_t pid, struct err *e);
void rpc_free(struct rpc *a);

/* From here on, whoever waits gives up when `stop` says so; it is asked often. NULL: nobody is asked. */
void rpc_set_stop(struct rpc *a, bool (*stop)(void *arg), void *arg);

/* Connect and exchange hellos. 0, or -1 with the error. */
int rpc_connect(struct rpc *a, struct err *e);

/* There is a connection, as far as is known. */
bool rpc_is_connected(const struct rpc *a);

/* End the connection; another may be made. */
void rpc_drop(struct rpc *a);

/* Number for the next question. */
uint32_t rpc_next_id(struct rpc *a);

/* Send what was written (and is freed here) as the question of that number, and wait. The answer is the caller's; NULL with the
 * error, which may be what the agent says. */
struct wire_message *rpc_ask(struct rpc *a, struct strbuf *message, struct err *e);

/* The target's pid, as it numbers itself; 0 before it was greeted. */
int64_t rpc_pid(const struct rpc *a);

#endif
