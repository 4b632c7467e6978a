/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue: messages for one client, bounded.
 *
 * Answers are never dropped: a client with too many waiting answers, or too many bytes of them,
 * is closed. Notifications are dropped: the oldest, if a new one does not fit. Several queues
 * may share the bytes of a message. All bytes that wait for clients of one kind are counted in
 * one budget, each once, and the server disconnects clients that do not read when it is full
 * (net_server.c). Used by the server's thread; queue_bytes_... by the sampler's too.
 */
#ifndef AGENT_SERVER_QUEUE_H
#define AGENT_SERVER_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

#define QUEUE_MAX_ANSWERS 32
/* without answers that a client has one of at a time */
#define QUEUE_MAX_ANSWER_BYTES ((size_t)4 * 1024 * 1024)
#define QUEUE_MAX_NOTES 64
#define QUEUE_MAX_NOTE_BYTES ((size_t)4 * 1024 * 1024) /* one is accepted, however long it is */

/* The bytes waiting for all clients of one kind. */
struct queue_budget {
    size_t used; /* bytes, atomic */
    size_t most; /* exceeded only for a short time */
};

bool queue_budget_is_over(const struct queue_budget *r);

/* Bytes of a message with a reference count. */
struct queue_bytes {
    int refs;                  /* atomic */
    struct queue_budget *room; /* the budget that counts them; NULL before that */
    size_t len;
    struct strbuf text;
};

/* Takes the contents of `b`, with one reference; `b` is empty afterwards. NULL if writing had
 * failed or without memory. */
struct queue_bytes *queue_bytes_new(struct strbuf *b);
/* They wait for a client with this budget: count them there, unless they are counted already. */
void queue_bytes_count(struct queue_bytes *b, struct queue_budget *room);
struct queue_bytes *queue_bytes_ref(struct queue_bytes *b);
void queue_bytes_unref(struct queue_bytes *b); /* NULL is a no-op */

enum queue_kind {
    QUEUE_ANSWER = 0, /* whole */
    QUEUE_SNAPSHOT,   /* notification; the number of dropped ones is added when it is sent */
    QUEUE_SAMPLES,    /* the same */
    QUEUE_BYE,        /* whole; counts as an answer */
};

/* The position of a batch of samples in the definitions: the place to start again if it is
 * dropped. */
struct queue_mark {
    uint32_t generation; /* of the subscription */
    uint32_t epoch;
    uint32_t n_samples;
    size_t frames, stacks;
    uint64_t names;
};

struct queue_item {
    struct queue_item *next;
    struct queue_bytes *bytes; /* one reference */
    enum queue_kind kind;
    bool open;     /* the pair "dropped" is added at the end */
    bool pulled;   /* answers pull or rows */
    bool looked;   /* answers threads or tables */
    uint32_t peer; /* the client it is for */
    struct queue_mark mark;
};

/* Takes over the caller's reference to `bytes`; NULL without memory (then the reference is
 * released) or if bytes is NULL. */
struct queue_item *queue_item_new(struct queue_bytes *bytes, enum queue_kind kind, uint32_t peer);
void queue_item_free(struct queue_item *item);

struct queue {
    struct queue_item *head, *tail;
    /* answer_bytes: see QUEUE_MAX_ANSWER_BYTES */
    size_t n_answers, n_notes, answer_bytes, note_bytes;
};

void queue_fini(struct queue *q);

/* Append. 0; or -1 if there are too many answers: then it was not accepted and the client should
 * be closed. */
int queue_push(struct queue *q, struct queue_item *item);

/* If too many notifications wait, the oldest one that is not the newest item, taken out;
 * otherwise NULL. */
struct queue_item *queue_overflow(struct queue *q);

/* Take out the oldest notification, or NULL. */
struct queue_item *queue_take_note(struct queue *q);

/* Take out the first item of a kind, or NULL. */
struct queue_item *queue_take_kind(struct queue *q, enum queue_kind kind);

/* Take out the oldest, or NULL. */
struct queue_item *queue_pop(struct queue *q);

#endif
