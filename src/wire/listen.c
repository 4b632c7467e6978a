/* SPDX-License-Identifier: Apache-2.0 */
/* listen: the request for a TCP listener and its answer; see wire.h. */
#include <string.h>

#include "wire/codec.h"
#include "wire/field.h"
#include "wire/message.h"
#include "wire/wire.h"

#define LISTEN_TEXTS 4

int wire_put_listen(struct strbuf *out, uint32_t id, const struct wire_listen *l) {
    codec_write_array(out, 4);
    codec_write_uint(out, WIRE_REQUEST);
    codec_write_uint(out, id);
    codec_write_str(out, wire_method_name(WIRE_LISTEN));
    codec_write_map(out, 2);
    codec_write_str(out, "address");
    codec_write_str(out, l->address);
    codec_write_str(out, "looking");
    codec_write_bool(out, l->looking);
    return out->failed ? -1 : 0;
}

/* A text without NULs that fits; "" if it is missing. 0 or -1. */
static int listen_text(struct codec_cursor c, char *buf, size_t cap) {
    struct codec_token t;
    buf[0] = '\0';
    if (!c.at)
        return 0;
    if (codec_read(&c, &t) != 0 || t.type != CODEC_STR || t.count >= cap || memchr(t.bytes, 0, t.count))
        return -1;
    memcpy(buf, t.bytes, t.count);
    buf[t.count] = '\0';
    return 0;
}

int wire_get_listen(const struct wire_message *m, struct wire_listen *out, struct err *e) {
    static const char *const keys[] = {"address", "looking"};
    struct codec_cursor value[2] = {{.at = NULL}};
    struct codec_token t;
    *out = (struct wire_listen){.address = ""};
    if (wire_message_method(m) != WIRE_LISTEN)
        return err_set(e, ERR_FAILED, "message is not valid: a request without a listener");
    if (!m->body.at || codec_find(m->body, keys, 2, value) != 0 ||
        listen_text(value[0], out->address, sizeof out->address) != 0)
        return field_fail(e, "listen", keys[0]);
    if (value[1].at && (codec_read(&value[1], &t) != 0 || t.type != CODEC_BOOL))
        return field_fail(e, "listen", keys[1]);
    out->looking = value[1].at && t.b;
    return 0;
}

static const char *const listen_keys[LISTEN_TEXTS] = {"address", "token", "looking_token", "file"};

int wire_put_listening(struct strbuf *out, uint32_t id, const struct wire_listening *l) {
    const char *const texts[LISTEN_TEXTS] = {l->address, l->token, l->looking_token, l->file};
    codec_write_array(out, 4);
    codec_write_uint(out, WIRE_RESPONSE);
    codec_write_uint(out, id);
    codec_write_nil(out);
    codec_write_map(out, LISTEN_TEXTS);
    for (size_t i = 0; i < LISTEN_TEXTS; i++) {
        codec_write_str(out, listen_keys[i]);
        codec_write_str(out, texts[i]);
    }
    return out->failed ? -1 : 0;
}

int wire_get_listening(const struct wire_message *m, struct wire_listening *out, struct err *e) {
    char *const texts[LISTEN_TEXTS] = {out->address, out->token, out->looking_token, out->file};
    const size_t caps[LISTEN_TEXTS] = {sizeof out->address, sizeof out->token, sizeof out->looking_token,
                                       sizeof out->file};
    struct codec_cursor value[LISTEN_TEXTS] = {{.at = NULL}};
    *out = (struct wire_listening){.address = ""};
    if (m->type != WIRE_RESPONSE || !m->body.at || m->error)
        return err_set(e, ERR_FAILED, "message is not valid: an answer without a listener");
    if (codec_find(m->body, listen_keys, LISTEN_TEXTS, value) != 0)
        return field_fail(e, "listening", listen_keys[0]);
    for (size_t i = 0; i < LISTEN_TEXTS; i++)
        if (listen_text(value[i], texts[i], caps[i]) != 0)
            return field_fail(e, "listening", listen_keys[i]);
    return 0;
}
