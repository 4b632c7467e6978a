/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peer: one client of the agent: what it asks, what it is sent. Knows messages, not sockets.
 *
 * A client that is slow loses its oldest notifications and is told how many; one that asks faster than it reads, or sends
 * what is no message, is closed. Belongs to the server's thread.
 */
#ifndef AGENT_PEER_H
#define AGENT_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/mailbox.h"
#include "agent/queue.h"
#include "base/model.h"
#include "base/strbuf.h"

enum peer_verdict {
    PEER_OK = 0,
    PEER_CLOSE, /* it broke the protocol, or a bound */
    PEER_EJECT, /* it asks the agent to go; the answer is queued */
};

/* Fills a status that the mailbox does not know all of. */
typedef void peer_status_fn(void *arg, struct model_status *out);

/* Opens or closes the TCP door. 0, or -1 with the error. */
typedef int peer_listen_fn(void *arg, const struct wire_listen *want, struct wire_listening *out,
                           struct err *e);

/* What is answered to who may not: to read values or to change anything takes the token. */
#define PEER_ONLY_LOOKS                                                                                      \
    "who came in as you did may only look: this reads values of the job, or changes it, which takes the "    \
    "token that listen has named"

struct peer {
    uint32_t id;
    struct mailbox *mailbox;
    enum wire_access may;   /* the most that it may do; everything unless it came by TCP */
    peer_listen_fn *listen; /* NULL: there are no doors */
    void *listen_arg;
    bool said_hello;
    struct queue queue;
    struct strbuf in;      /* a message coming in */
    struct strbuf sending; /* a message going out, whole */
    size_t chunk, chunks;  /* the next piece of it and how many there are; 0 of 0: nothing is being sent */
    uint32_t chunked;      /* number of the last message that was cut up */
    uint64_t dropped_snapshots, dropped_samples;
    bool pulling; /* the answer to a pull, or to rows, has not been begun to be sent */
};

/* 0, or -1 when there are too many clients. */
int peer_init(struct peer *p, uint32_t id, struct mailbox *m);
void peer_fini(struct peer *p);

/* Bytes of a message came in; `last` when it is complete. */
enum peer_verdict peer_receive(struct peer *p, const void *data, size_t len, bool last,
                               peer_status_fn *status, void *arg);

/* An item of the mailbox for this client; the peer owns it now. */
enum peer_verdict peer_accept(struct peer *p, struct queue_item *item);

/* Queue a goodbye. */
void peer_say_bye(struct peer *p, const char *reason);

bool peer_has_output(const struct peer *p);

/* Append the next WebSocket message to `frame`. 1, 0 when there is none, -1 without memory. */
int peer_next_frame(struct peer *p, struct strbuf *frame);

/* The next message as a whole, instead of pieces for the library; NULL there is none, or no memory. Valid until the next call. */
const struct strbuf *peer_next_message(struct peer *p);

/* Memory held. */
size_t peer_bytes(const struct peer *p);

#endif
