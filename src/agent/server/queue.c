/* SPDX-License-Identifier: Apache-2.0 */
/* queue: see queue.h. */
#include "agent/server/queue.h"

#include <stdlib.h>
#include <string.h>

bool queue_budget_is_over(const struct queue_budget *r) {
    return __atomic_load_n(&r->used, __ATOMIC_ACQUIRE) > r->most;
}

struct queue_bytes *queue_bytes_new(struct strbuf *b) {
    if (b->failed || b->len == 0)
        return NULL;
    struct queue_bytes *q = malloc(sizeof *q);
    if (!q)
        return NULL;
    strbuf_fit(b);
    *q = (struct queue_bytes){.refs = 1, .len = b->len, .text = *b};
    *b = (struct strbuf){.limit = b->limit};
    return q;
}

void queue_bytes_count(struct queue_bytes *b, struct queue_budget *room) {
    if (b->room)
        return;
    b->room = room;
    __atomic_add_fetch(&room->used, b->len, __ATOMIC_ACQ_REL);
}

struct queue_bytes *queue_bytes_ref(struct queue_bytes *b) {
    __atomic_add_fetch(&b->refs, 1, __ATOMIC_RELAXED);
    return b;
}

void queue_bytes_unref(struct queue_bytes *b) {
    if (!b || __atomic_sub_fetch(&b->refs, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    if (b->room)
        __atomic_sub_fetch(&b->room->used, b->len, __ATOMIC_ACQ_REL);
    strbuf_fini(&b->text);
    free(b);
}

struct queue_item *queue_item_new(struct queue_bytes *bytes, enum queue_kind kind, uint32_t peer) {
    struct queue_item *item = bytes ? calloc(1, sizeof *item) : NULL;
    if (!item) {
        queue_bytes_unref(bytes);
        return NULL;
    }
    *item = (struct queue_item){.bytes = bytes, .kind = kind, .peer = peer};
    item->open = kind == QUEUE_SNAPSHOT || kind == QUEUE_SAMPLES;
    return item;
}

void queue_item_free(struct queue_item *item) {
    if (item)
        queue_bytes_unref(item->bytes);
    free(item);
}

static bool queue_is_note(const struct queue_item *item) {
    return item->kind == QUEUE_SNAPSHOT || item->kind == QUEUE_SAMPLES;
}

void queue_fini(struct queue *q) {
    struct queue_item *item;
    while ((item = queue_pop(q)))
        queue_item_free(item);
}

/* The bytes by which an answer counts: 0 for answers that a client has one of at a time, of any
 * length. */
static size_t queue_weigh(const struct queue_item *item) {
    return item->pulled || item->looked ? 0 : item->bytes->len;
}

int queue_push(struct queue *q, struct queue_item *item) {
    if (queue_is_note(item)) {
        q->n_notes++;
        q->note_bytes += item->bytes->len;
    } else {
        if (item->kind != QUEUE_BYE && (q->n_answers >= QUEUE_MAX_ANSWERS ||
                                        q->answer_bytes + queue_weigh(item) > QUEUE_MAX_ANSWER_BYTES))
            return -1;
        q->n_answers++;
        q->answer_bytes += queue_weigh(item);
    }
    item->next = NULL;
    if (q->tail)
        q->tail->next = item;
    else
        q->head = item;
    q->tail = item;
    return 0;
}

/* Take out the item after `before` (NULL: the first). */
static struct queue_item *queue_unlink(struct queue *q, struct queue_item *before) {
    struct queue_item *item = before ? before->next : q->head;
    if (before)
        before->next = item->next;
    else
        q->head = item->next;
    if (q->tail == item)
        q->tail = before;
    if (queue_is_note(item)) {
        q->n_notes--;
        q->note_bytes -= item->bytes->len;
    } else {
        q->n_answers--;
        q->answer_bytes -= queue_weigh(item);
    }
    item->next = NULL;
    return item;
}

struct queue_item *queue_overflow(struct queue *q) {
    if (q->n_notes < 2 || (q->n_notes <= QUEUE_MAX_NOTES && q->note_bytes <= QUEUE_MAX_NOTE_BYTES))
        return NULL;
    struct queue_item *before = NULL;
    for (struct queue_item *i = q->head; i != q->tail; before = i, i = i->next)
        if (queue_is_note(i))
            return queue_unlink(q, before);
    return NULL;
}

struct queue_item *queue_take_note(struct queue *q) {
    struct queue_item *before = NULL;
    for (struct queue_item *i = q->head; i; before = i, i = i->next)
        if (queue_is_note(i))
            return queue_unlink(q, before);
    return NULL;
}

struct queue_item *queue_take_kind(struct queue *q, enum queue_kind kind) {
    struct queue_item *before = NULL;
    for (struct queue_item *i = q->head; i; before = i, i = i->next)
        if (i->kind == kind)
            return queue_unlink(q, before);
    return NULL;
}

struct queue_item *queue_pop(struct queue *q) {
    return q->head ? queue_unlink(q, NULL) : NULL;
}
