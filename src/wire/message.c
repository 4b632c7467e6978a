/* SPDX-License-Identifier: Apache-2.0 */
/* message: reading the envelope of a message; see wire.h. */
#include "wire/message.h"

#include <stdlib.h>
#include <string.h>

static int message_fail(struct err *e, const char *why) {
    return err_set(e, ERR_FAILED, "message is not valid: %s", why);
}

static enum wire_method message_find_method(const struct codec_token *t) {
    unsigned m = 0;
    while (m < WIRE_METHOD_COUNT && !codec_token_is(t, wire_method_name((enum wire_method)m)))
        m++;
    return (enum wire_method)m;
}

static enum wire_notification message_find_notification(const struct codec_token *t) {
    unsigned n = 0;
    while (n < WIRE_NOTIFICATION_COUNT &&
           !codec_token_is(t, wire_notification_name((enum wire_notification)n)))
        n++;
    return (enum wire_notification)n;
}

static int message_read_id(struct wire_message *m, struct codec_cursor *c, struct err *e) {
    struct codec_token t;
    uint64_t id;
    if (codec_read(c, &t) != 0 || codec_token_uint(&t, UINT32_MAX, &id) != 0)
        return message_fail(e, "its id is not a number");
    m->id = (uint32_t)id;
    return 0;
}

static int message_read_method(struct wire_message *m, struct codec_cursor *c, struct err *e) {
    struct codec_token t;
    if (codec_read(c, &t) != 0 || t.type != CODEC_STR)
        return message_fail(e, "its method is not a string");
    m->method = message_find_method(&t);
    m->notification = message_find_notification(&t);
    return 0;
}

/* The error of a response: nil, or a map of code and message. */
static int message_read_error(struct wire_message *m, struct codec_cursor *c, struct err *e) {
    static const char *const keys[] = {"code", "message"};
    struct codec_cursor at = *c, values[2];
    struct codec_token t;
    if (codec_read(&at, &t) != 0)
        return message_fail(e, "it has no error field");
    if (t.type == CODEC_NIL) {
        *c = at;
        return 0;
    }
    if (codec_find(*c, keys, 2, values) != 0 || codec_skip(c) != 0)
        return message_fail(e, "its error is not a map");
    uint64_t code;
    if (!values[0].at || codec_read(&values[0], &t) != 0 || codec_token_uint(&t, UINT8_MAX, &code) != 0)
        return message_fail(e, "its error has no code");
    m->error_code = (enum wire_error)code;
    if (!values[1].at || codec_read(&values[1], &t) != 0 || t.type != CODEC_STR)
        return message_fail(e, "its error has no message");
    m->error = malloc((size_t)t.count + 1);
    if (!m->error)
        return message_fail(e, "no memory");
    memcpy(m->error, t.bytes, t.count); /* the bytes end there, with the message or without */
    m->error[t.count] = '\0';
    return 0;
}

/* The last element: a map, or nil if it is empty. */
static int message_read_body(struct wire_message *m, struct codec_cursor *c, struct err *e) {
    struct codec_token t;
    struct codec_cursor at = *c;
    if (codec_read(&at, &t) != 0 || (t.type != CODEC_MAP && t.type != CODEC_NIL))
        return message_fail(e, "its params or result are not a map");
    if (t.type == CODEC_MAP)
        m->body = *c;
    return 0;
}

static int message_read(struct wire_message *m, struct err *e) {
    struct codec_cursor c = {.at = m->bytes, .end = m->bytes + m->len};
    struct codec_token t;
    size_t n;
    uint64_t type;
    if (codec_check(m->bytes, m->len) != 0)
        return message_fail(e, "it is not MessagePack, truncated, or nested too deeply");
    if (codec_read_array(&c, &n) != 0 || n == 0 || codec_read(&c, &t) != 0 ||
        codec_token_uint(&t, WIRE_NOTIFY, &type) != 0)
        return message_fail(e, "it is not MessagePack-RPC");
    m->type = (enum wire_type)type;
    if (n != (m->type == WIRE_NOTIFY ? 3U : 4U))
        return message_fail(e, "it has a wrong number of elements");
    if (m->type != WIRE_NOTIFY && message_read_id(m, &c, e) != 0)
        return -1;
    if (m->type == WIRE_RESPONSE ? message_read_error(m, &c, e) : message_read_method(m, &c, e))
        return -1;
    return message_read_body(m, &c, e);
}

struct wire_message *wire_parse(const void *data, size_t len, struct err *e) {
    if (len == 0 || len > WIRE_MAX_ASSEMBLED) {
        message_fail(e, len ? "it is too long" : "it is empty");
        return NULL;
    }
    struct wire_message *m = calloc(1, sizeof *m + len);
    if (!m) {
        message_fail(e, "no memory");
        return NULL;
    }
    m->len = len;
    m->method = WIRE_METHOD_UNKNOWN;
    m->notification = WIRE_NOTIFICATION_UNKNOWN;
    memcpy(m->bytes, data, len);
    if (message_read(m, e) == 0)
        return m;
    wire_message_free(m);
    return NULL;
}

void wire_message_free(struct wire_message *m) {
    if (m)
        free(m->error);
    free(m);
}

enum wire_type wire_message_type(const struct wire_message *m) { return m->type; }

uint32_t wire_message_id(const struct wire_message *m) { return m->id; }

enum wire_method wire_message_method(const struct wire_message *m) {
    return m->type == WIRE_REQUEST ? m->method : WIRE_METHOD_UNKNOWN;
}

enum wire_notification wire_message_notification(const struct wire_message *m) {
    return m->type == WIRE_NOTIFY ? m->notification : WIRE_NOTIFICATION_UNKNOWN;
}

const char *wire_message_error(const struct wire_message *m, enum wire_error *code) {
    if (m->error && code)
        *code = m->error_code;
    return m->error;
}
