/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peer: one client of the agent: its requests and the messages to it. Knows messages, not
 * sockets.
 *
 * A slow client loses its oldest notifications and is sent their number. A client that asks
 * faster than it reads, or sends an invalid message, is closed. A message that waits for several
 * clients is in memory once. Belongs to the server's thread.
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
    PEER_CLOSE, /* it violated the protocol or a bound */
    PEER_EJECT, /* it asks the agent to leave; the answer is queued */
};

/* Fills the parts of a status that do not come from the mailbox. */
typedef void peer_status_fn(void *arg, struct model_status *out);

/* Opens or closes the TCP listener. 0, or -1 with the error. */
typedef int peer_listen_fn(void *arg, const struct wire_listen *want, struct wire_listening *out,
                           struct err *e);

/* The answer to a client without the access: reading values or changing anything requires the
 * token. */
#define PEER_READ_ONLY                                                                                       \
    "this client is read-only: reading values of the job or changing it takes the full-access token that "   \
    "listen printed"

struct peer {
    uint32_t id;
    struct mailbox *mailbox;
    enum wire_access may;   /* its maximum access; everything unless it connected over TCP */
    peer_listen_fn *listen; /* NULL: there are no listeners */
    void *listen_arg;
    bool said_hello;
    struct queue queue;
    struct strbuf in;       /* the incoming message */
    struct queue_item *out; /* the outgoing message; NULL if none */
    struct strbuf tail;     /* its part behind its bytes */
    struct strbuf head;     /* and the frame head before a chunk of it */
    size_t chunk, chunks;   /* the outgoing chunk of it, and their number */
    size_t at, end;         /* of the message with its tail: the unsent part of that chunk */
    bool begun;             /* a part of that chunk was sent */
    uint32_t chunked;       /* number of the last message that was split into chunks */
    /* the time since which none of the waiting messages was taken; 0 if none waits */
    uint64_t waits_ns;
    uint64_t dropped_snapshots, dropped_samples;
    bool pulling; /* the answer to pull or rows is not being sent yet */
};

/* A client with this access. 0, or -1 if there are too many clients. */
int peer_init(struct peer *p, uint32_t id, struct mailbox *m, enum wire_access may);

/* True if it is read-only. Then few bytes may wait for it and all such clients together. */
bool peer_is_read_only(const struct peer *p);
void peer_fini(struct peer *p);

/* Bytes of a message have arrived; `last` if they complete it. */
enum peer_verdict peer_receive(struct peer *p, const void *data, size_t len, bool last,
                               peer_status_fn *status, void *arg);

/* An item of the mailbox for this client; the peer owns it now. */
enum peer_verdict peer_accept(struct peer *p, struct queue_item *item);

/* Queue a goodbye. */
void peer_say_bye(struct peer *p, const char *reason);

bool peer_has_output(const struct peer *p);

/* Drop the waiting notifications. True if there were any. */
bool peer_shed(struct peer *p);
/* Drop everything that waits, because the client is going to be closed. */
void peer_give_up(struct peer *p);

/* Append the next WebSocket message to `frame`, at most `cap` bytes of it or the rest; `*first`
 * and `*last`: whether it is its first or last piece. 1, 0 if there is none, -1 without memory. */
int peer_next_piece(struct peer *p, size_t cap, struct strbuf *frame, bool *first, bool *last);
/* The same, whole. */
int peer_next_frame(struct peer *p, struct strbuf *frame);

/* Append the next message whole, not in pieces for the library. Returns as above. */
int peer_next_message(struct peer *p, struct strbuf *message);

/* Memory in use. */
size_t peer_bytes(const struct peer *p);

#endif
