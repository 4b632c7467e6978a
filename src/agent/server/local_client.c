/* SPDX-License-Identifier: Apache-2.0 */
/* local_client: see local_client.h. */
#include "agent/server/local_client.h"

int local_client_begin(struct local_client *t, uint32_t id, struct mailbox *m, enum wire_access may) {
    t->begun = true;
    t->last_id = 0;
    if (peer_init(&t->peer, id, m, may) != 0) {
        local_client_end(t);
        return -1;
    }
    t->peer.said_hello = true; /* it has the same version */
    return 0;
}

void local_client_end(struct local_client *t) {
    if (t->begun)
        peer_fini(&t->peer);
    t->begun = false;
}

uint32_t local_client_next_id(struct local_client *t) { return ++t->last_id; }

int local_client_send(struct local_client *t, struct strbuf *message) {
    enum peer_verdict v = PEER_CLOSE;
    if (!message->failed && t->begun)
        v = peer_receive(&t->peer, message->data, message->len, true, t->status, t->status_arg);
    strbuf_fini(message);
    return v == PEER_OK ? 0 : -1;
}

struct wire_message *local_client_take(struct local_client *t) {
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
