/* SPDX-License-Identifier: Apache-2.0 */
/* chunk: messages longer than one WebSocket message may be, cut up and put together; see wire.h. */
#include <string.h>

#include "wire/codec.h"
#include "wire/message.h"
#include "wire/wire.h"

#define CHUNK_DATA (WIRE_MAX_MESSAGE - 256) /* the rest is for the envelope */

size_t wire_chunk_count(size_t total) {
    return total <= WIRE_MAX_MESSAGE ? 1 : (total + CHUNK_DATA - 1) / CHUNK_DATA;
}

int wire_put_chunk_head(struct strbuf *out, uint32_t message, size_t total, size_t index, size_t *from,
                        size_t *len) {
    *from = index * CHUNK_DATA;
    if (*from >= total)
        return -1;
    *len = total - *from < CHUNK_DATA ? total - *from : CHUNK_DATA;
    codec_write_array(out, 3);
    codec_write_uint(out, WIRE_NOTIFY);
    codec_write_str(out, wire_notification_name(WIRE_N_CHUNK));
    codec_write_map(out, 4);
    codec_write_str(out, "message");
    codec_write_uint(out, message);
    codec_write_str(out, "total");
    codec_write_uint(out, total);
    codec_write_str(out, "index");
    codec_write_uint(out, index);
    codec_write_str(out, "data");
    codec_write_bin_head(out, *len);
    return out->failed ? -1 : 0;
}

int wire_put_chunk(struct strbuf *out, uint32_t message, const void *data, size_t total, size_t index) {
    size_t from, len;
    if (wire_put_chunk_head(out, message, total, index, &from, &len) != 0)
        return -1;
    return strbuf_add(out, (const char *)data + from, len);
}

void wire_assembler_init(struct wire_assembler *a) {
    *a = (struct wire_assembler){0};
    strbuf_init(&a->data, WIRE_MAX_ASSEMBLED);
}

void wire_assembler_fini(struct wire_assembler *a) {
    strbuf_fini(&a->data);
    wire_assembler_init(a);
}

/* Discard the message under way. */
static int chunk_fail(struct wire_assembler *a, struct err *e, const char *why) {
    a->total = a->next = 0;
    strbuf_clear(&a->data);
    return err_set(e, ERR_FAILED, "chunk is not valid: %s", why);
}

struct chunk_parts {
    uint64_t message, total, index;
    struct codec_token data;
};

static int chunk_read(const struct wire_message *m, struct chunk_parts *out) {
    static const char *const keys[] = {"message", "total", "index", "data"};
    struct codec_cursor v[4];
    struct codec_token t[4];
    if (wire_message_notification(m) != WIRE_N_CHUNK || !m->body.at || codec_find(m->body, keys, 4, v) != 0)
        return -1;
    for (size_t i = 0; i < 4; i++)
        if (!v[i].at || codec_read(&v[i], &t[i]) != 0)
            return -1;
    out->data = t[3];
    if (codec_token_uint(&t[0], UINT32_MAX, &out->message) != 0 ||
        codec_token_uint(&t[1], WIRE_MAX_ASSEMBLED, &out->total) != 0 ||
        codec_token_uint(&t[2], WIRE_MAX_ASSEMBLED, &out->index) != 0)
        return -1;
    return t[3].type == CODEC_BIN && t[3].count > 0 ? 0 : -1;
}

int wire_assembler_feed(struct wire_assembler *a, const struct wire_message *m, struct err *e) {
    struct chunk_parts part;
    if (chunk_read(m, &part) != 0)
        return chunk_fail(a, e, "a field is missing or out of range");
    if (part.index == 0 && a->total == 0) {
        strbuf_clear(&a->data);
        a->message = (uint32_t)part.message;
        a->total = (size_t)part.total;
        a->next = 0;
    }
    if (part.message != a->message || part.total != a->total || part.index != a->next)
        return chunk_fail(a, e, "it is out of order");
    if (part.data.count > a->total - a->data.len)
        return chunk_fail(a, e, "there is more than was announced");
    if (strbuf_add(&a->data, part.data.bytes, part.data.count) != 0)
        return chunk_fail(a, e, "no memory");
    a->next++;
    if (a->data.len < a->total)
        return 0;
    a->total = a->next = 0;
    return 1;
}
