/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue: messages on their way to one client, bounded.
 *
 * Answers are never dropped: a client that lets too many pile up, or too many bytes, is closed. Notifications are: the oldest goes
 * when a new one does not fit. The bytes of a message may be shared by several queues; all that wait for clients of one kind are
 * counted in a room, each once, and the server puts out who does not read when it is full (net_server.c). Used by the server's
 * thread; queue_bytes_... by the sampler's too.
 */
#ifndef AGENT_SERVER_QUEUE_H
#define AGENT_SERVER_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

#define QUEUE_MAX_ANSWERS 32
#define QUEUE_MAX_ANSWER_BYTES ((size_t)4 * 1024 * 1024) /* without those a client has one of at a time */
#define QUEUE_MAX_NOTES 64
#define QUEUE_MAX_NOTE_BYTES ((size_t)4 * 1024 * 1024) /* one is taken whatever its length */

/* What all clients of one kind let wait. */
struct queue_budget {
    size_t used; /* bytes, atomic */
    size_t most; /* more than that only for a moment */
};

bool queue_budget_is_over(const struct queue_budget *r);

/* The bytes of a message, counted references. */
struct queue_bytes {
    int refs;                  /* atomic */
    struct queue_budget *room; /* they are counted in; NULL none yet */
    size_t len;
    struct strbuf text;
};

/* What was written, with one reference; `b` is empty then. NULL when writing had failed or without memory. */
struct queue_bytes *queue_bytes_new(struct strbuf *b);
/* They wait for a client whose room that is: counted there, unless they are counted already. */
void queue_bytes_count(struct queue_bytes *b, struct queue_budget *room);
struct queue_bytes *queue_bytes_ref(struct queue_bytes *b);
void queue_bytes_unref(struct queue_bytes *b); /* NULL is nothing to do */

enum queue_kind {
    QUEUE_ANSWER = 0, /* whole */
    QUEUE_SNAPSHOT,   /* notification; the number of dropped ones is added when it is sent */
    QUEUE_SAMPLES,    /* the same */
    QUEUE_BYE,        /* whole; counts as an answer */
};

/* Where a batch of samples began, in definitions: where to begin again when it is lost. */
struct queue_mark {
    uint32_t generation; /* of the subscription */
    uint32_t epoch;
    uint32_t n_samples;
    size_t frames, stacks;
    uint64_t names;
};

struct queue_item {
    struct queue_item *next;
    struct queue_bytes *bytes; /* a reference */
    enum queue_kind kind;
    bool open;     /* the pair "dropped" is to be added at the end */
    bool pulled;   /* answers a pull, or rows */
    bool looked;   /* answers threads, or tables */
    uint32_t peer; /* whom it is for */
    struct queue_mark mark;
};

/* Takes over the caller's reference to `bytes`; NULL without memory (the reference is given back) or when bytes is NULL. */
struct queue_item *queue_item_new(struct queue_bytes *bytes, enum queue_kind kind, uint32_t peer);
void queue_item_free(struct queue_item *item);

struct queue {
    struct queue_item *head, *tail;
    size_t n_answers, n_notes, answer_bytes, note_bytes; /* answer_bytes: see QUEUE_MAX_ANSWER_BYTES */
};

void queue_fini(struct queue *q);

/* Append. 0; or -1 when it is one answer too many: it was not taken and the client should be closed. */
int queue_push(struct queue *q, struct queue_item *item);

/* Is there more to be dropped than may stay? Then the oldest notification that is not the newest item, taken out; else NULL. */
struct queue_item *queue_overflow(struct queue *q);

/* Take out the oldest notification, or NULL. */
struct queue_item *queue_take_note(struct queue *q);

/* Take out the first item of a kind, or NULL. */
struct queue_item *queue_take_kind(struct queue *q, enum queue_kind kind);

/* Take out the oldest, or NULL. */
struct queue_item *queue_pop(struct queue *q);

#endif
