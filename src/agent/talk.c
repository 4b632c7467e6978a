/* SPDX-License-Identifier: Apache-2.0 */
/* talk: see talk.h. */
#include "agent/talk.h"

int talk_begin(struct talk *t, uint32_t id, struct mailbox *m, enum wire_access may) {
    t->begun = true;
    t->last_id = 0;
    if (peer_init(&t->peer, id, m, may) != 0) {
        talk_end(t);
        return -1;
    }
    t->peer.said_hello = true; /* it is of the same version */
    return 0;
}

void talk_end(struct talk *t) {
    if (t->begun)
        peer_fini(&t->peer);
    t->begun = false;
}

uint32_t talk_next_id(struct talk *t) { return ++t->last_id; }

int talk_send(struct talk *t, struct strbuf *message) {
    enum peer_verdict v = PEER_CLOSE;
    if (!message->failed && t->begun)
        v = peer_receive(&t->peer, message->data, message->len, true, t->status, t->status_arg);
    strbuf_fini(message);
    return v == PEER_OK ? 0 : -1;
}

struct wire_message *talk_take(struct talk *t) {
    struct wire_message *m = NULL;
    struct strbuf bytes;
    struct err e;
    strbuf_init(&bytes, WIRE_MAX_ASSEMBLED);
    while (!m && t->begun && peer_next_message(&t->peer, &bytes) > 0) {
        m = wire_parse(bytes.data, bytes.len, &e);
        strbuf_clear(&bytes);
    }
    strbuf_fini(&bytes);
    return m;
}
