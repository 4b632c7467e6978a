/* SPDX-License-Identifier: Apache-2.0 */
/* reply: answers that are not made in a handler of peer.c, encoded and put into the mailbox. An
 * answer without room or memory is dropped. */
#ifndef AGENT_SERVER_REPLY_H
#define AGENT_SERVER_REPLY_H

#include "agent/server/mailbox.h"
#include "agent/server/queue.h"
#include "base/err.h"
#include "base/model.h"
#include "wire/wire.h"

/* The client that asked for threads, and its options. */
struct reply_to {
    uint32_t peer, id;
    struct wire_threads want;
};

void reply_error(struct mailbox *m, uint32_t peer, uint32_t id, const struct err *e);

/* To requests that need no other answer. */
void reply_ok(struct mailbox *m, uint32_t peer, uint32_t id);

/* To hello. */
void reply_target(struct mailbox *m, uint32_t peer, uint32_t id, const struct model_target *t);

/* To tables: the list, or the error if NULL. */
void reply_tables(struct mailbox *m, uint32_t peer, uint32_t id, const struct wire_table *tables, size_t n,
                  const struct err *e);

/* To pull: the rows, or the error if NULL. */
void reply_rows(struct mailbox *m, uint32_t peer, uint32_t id, const struct wire_pulled *p,
                const struct err *e);

/* To rows: the rows made by Python, or the error if NULL. */
void reply_table(struct mailbox *m, uint32_t peer, uint32_t id, const struct wire_rows *r,
                 const struct err *e);

/* To eval: the result of the code, or the error if NULL. */
void reply_evaluated(struct mailbox *m, uint32_t peer, uint32_t id, const struct wire_evaluated *v,
                     const struct err *e);

/* To debug, pause or catch: the state. */
void reply_debugger(struct mailbox *m, uint32_t peer, uint32_t id, enum wire_method method,
                    const struct wire_debugger *d);

/* To threads: the snapshot, or the error if NULL. */
void reply_threads(struct mailbox *m, const struct reply_to *ask, const struct model_snapshot *s,
                   const struct err *e);

/* For streams of threads, encoded once for all, in at most that many bytes (0: the maximum of a
 * message); NULL without memory. */
struct queue_bytes *reply_stream(const struct model_snapshot *s, size_t most_bytes);

/* To threads, with native frames only if they were asked for; `mailbox` is a struct mailbox (see
 * struct pending_snapshots). */
void reply_snapshot(void *mailbox, const struct reply_to *ask, const struct model_snapshot *s);

#endif
