/* SPDX-License-Identifier: Apache-2.0 */
/* reply: answers of the sampler's thread, encoded and handed to the server. One that finds no room or memory is lost. */
#ifndef AGENT_SERVER_REPLY_H
#define AGENT_SERVER_REPLY_H

#include "agent/server/mailbox.h"
#include "agent/server/queue.h"
#include "base/err.h"
#include "base/model.h"
#include "wire/wire.h"

/* Who asked for threads, and for what of them. */
struct reply_to {
    uint32_t peer, id;
    struct wire_threads want;
};

void reply_error(struct mailbox *m, uint32_t peer, uint32_t id, const struct err *e);

/* To what needs no more than that. */
void reply_ok(struct mailbox *m, uint32_t peer, uint32_t id);

/* To hello. */
void reply_target(struct mailbox *m, uint32_t peer, uint32_t id, const struct model_target *t);

/* To tables: what there is, or, NULL, the error. */
void reply_tables(struct mailbox *m, uint32_t peer, uint32_t id, const struct wire_table *tables, size_t n,
                  const struct err *e);

/* To pull: the rows, or, NULL, the error. */
void reply_rows(struct mailbox *m, uint32_t peer, uint32_t id, const struct wire_pulled *p,
                const struct err *e);

/* To rows: what was made, or, NULL, the error; `mailbox` is a struct mailbox (see struct made). */
void reply_table(void *mailbox, uint32_t peer, uint32_t id, const struct wire_rows *r, const struct err *e);

/* To eval: what became of the code, or, NULL, the error; `mailbox` is a struct mailbox (see struct evals). */
void reply_evaluated(void *mailbox, uint32_t peer, uint32_t id, const struct wire_evaluated *v,
                     const struct err *e);

/* To debug, pause or catch: how it stands; `mailbox` as above. */
void reply_debugger(void *mailbox, uint32_t peer, uint32_t id, enum wire_method method,
                    const struct wire_debugger *d);

/* To threads: the snapshot, or, NULL, the error. */
void reply_threads(struct mailbox *m, const struct reply_to *ask, const struct model_snapshot *s,
                   const struct err *e);

/* For streams of threads, encoded once for all, of so many bytes at most (0: as many as a message may have); NULL without memory. */
struct queue_bytes *reply_stream(const struct model_snapshot *s, size_t most_bytes);

/* To threads, with native frames only if they were asked for; `mailbox` is a struct mailbox (see struct complete). */
void reply_snapshot(void *mailbox, const struct reply_to *ask, const struct model_snapshot *s);

#endif
