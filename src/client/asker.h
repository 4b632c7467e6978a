/* SPDX-License-Identifier: Apache-2.0 */
/*
 * asker: questions to an agent and their answers as messages, one at a time, for those who wait.
 *
 * A connection and a loop of its own behind blocking functions; below session.h, for what is copied rather than shown. One thread.
 */
#ifndef CLIENT_ASKER_H
#define CLIENT_ASKER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "wire/wire.h"

struct asker;

/* For the agent at a unix socket, at which process `pid` has to listen (0: anybody). Nothing is connected yet. NULL with the error. */
struct asker *asker_new(const char *path, pid_t pid, struct err *e);
void asker_free(struct asker *a);

/* From here on, whoever waits gives up when `stop` says so; it is asked often. NULL: nobody is asked. */
void asker_set_stop(struct asker *a, bool (*stop)(void *arg), void *arg);

/* Connect and exchange hellos. 0, or -1 with the error. */
int asker_connect(struct asker *a, struct err *e);

/* There is a connection, as far as is known. */
bool asker_is_connected(const struct asker *a);

/* End the connection; another may be made. */
void asker_drop(struct asker *a);

/* Number for the next question. */
uint32_t asker_next_id(struct asker *a);

/* Send what was written (and is freed here) as the question of that number, and wait. The answer is the caller's; NULL with the
 * error, which may be what the agent says. */
struct wire_message *asker_ask(struct asker *a, struct strbuf *message, struct err *e);

/* The target's pid, as it numbers itself; 0 before it was greeted. */
int64_t asker_pid(const struct asker *a);

#endif
