/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peer: one client of the agent: what it asks, what it is sent. Knows messages, not sockets.
 *
 * A client that is slow loses its oldest notifications and is told how many; one that asks faster than it reads, or sends
 * what is no message, is closed. What waits for it is held once, whoever else waits for the same. Belongs to the server's thread.
 */
#ifndef AGENT_SERVER_PEER_H
#define AGENT_SERVER_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/server/mailbox.h"
#include "agent/server/queue.h"
#include "base/model.h"
#include "base/strbuf.h"

#define PEER_UNREAD "put out: what it has asked for waits, and it does not read"

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
#define PEER_READ_ONLY                                                                                       \
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
    struct strbuf in;       /* a message coming in */
    struct queue_item *out; /* the message going out; NULL none */
    struct strbuf tail;     /* what it has behind its bytes, */
    struct strbuf head;     /* and a chunk of it before them */
    size_t chunk, chunks;   /* the one of it that goes out now, and how many there are */
    size_t at, end;         /* of the message with its tail, of that chunk: what has not gone yet */
    bool begun;             /* something of that chunk has gone */
    uint32_t chunked;       /* number of the last message that was cut up */
    uint64_t waits_ns;      /* since when nothing of what waits for it has been taken; 0 nothing waits */
    uint64_t dropped_snapshots, dropped_samples;
    bool pulling; /* the answer to a pull, or to rows, has not been begun to be sent */
};

/* One who may do so much. 0, or -1 when there are too many clients. */
int peer_init(struct peer *p, uint32_t id, struct mailbox *m, enum wire_access may);

/* May it only look? Then what it lets wait is little, all such clients together. */
bool peer_is_read_only(const struct peer *p);
void peer_fini(struct peer *p);

/* Bytes of a message came in; `last` when it is complete. */
enum peer_verdict peer_receive(struct peer *p, const void *data, size_t len, bool last,
                               peer_status_fn *status, void *arg);

/* An item of the mailbox for this client; the peer owns it now. */
enum peer_verdict peer_accept(struct peer *p, struct queue_item *item);

/* Queue a goodbye. */
void peer_say_bye(struct peer *p, const char *reason);

bool peer_has_output(const struct peer *p);

/* Drop the notifications that wait. Whether there were any. */
bool peer_shed(struct peer *p);
/* Drop all that waits: it is to be closed. */
void peer_give_up(struct peer *p);

/* Append the next WebSocket message to `frame`, at most `cap` bytes of it or what is left; `*first`, `*last`: its first, or last, piece.
 * 1, 0 when there is none, -1 without memory. */
int peer_next_piece(struct peer *p, size_t cap, struct strbuf *frame, bool *first, bool *last);
/* All of it. */
int peer_next_frame(struct peer *p, struct strbuf *frame);

/* Append the next message as a whole, instead of pieces for the library. As above. */
int peer_next_message(struct peer *p, struct strbuf *message);

/* Memory held. */
size_t peer_bytes(const struct peer *p);

#endif
