/* SPDX-License-Identifier: Apache-2.0 */
/* answer: see answer.h. */
#include "agent/answer.h"

#include "agent/queue.h"
#include "wire/wire.h"

/* Hand over what was written; `open`: the number of dropped notifications is added when it is sent. */
static void answer_post(struct mailbox *m, uint32_t peer, struct strbuf *b, bool open) {
    struct queue_item *item = queue_item_new(queue_bytes_new(b), QUEUE_ANSWER, peer);
    if (item)
        item->open = open;
    (void)mailbox_post(m, item);
    strbuf_fini(b);
}

void answer_error(struct mailbox *m, uint32_t peer, uint32_t id, const struct err *e) {
    struct strbuf b;
    strbuf_init(&b, WIRE_MAX_MESSAGE);
    (void)wire_put_error(&b, id, WIRE_E_UNAVAILABLE, e->text);
    answer_post(m, peer, &b, false);
}

void answer_target(struct mailbox *m, uint32_t peer, uint32_t id, const struct model_target *t) {
    struct strbuf b;
    strbuf_init(&b, WIRE_MAX_MESSAGE);
    (void)wire_put_target(&b, id, t);
    answer_post(m, peer, &b, false);
}

void answer_snapshot(void *mailbox, const struct complete_ask *ask, const struct model_snapshot *s) {
    struct strbuf b;
    strbuf_init(&b, 0);
    (void)wire_put_snapshot_wanted_open(&b, ask->id, s, &ask->want);
    answer_post(mailbox, ask->peer, &b, true);
}

void answer_threads(struct mailbox *m, const struct complete_ask *ask, const struct model_snapshot *s,
                    const struct err *e) {
    if (s)
        answer_snapshot(m, ask, s);
    else
        answer_error(m, ask->peer, ask->id, e);
}
