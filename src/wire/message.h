/* SPDX-License-Identifier: Apache-2.0 */
/* message: the inside of a parsed message, private to src/wire; see wire.h. */
#ifndef WIRE_MESSAGE_H
#define WIRE_MESSAGE_H

#include "wire/codec.h"
#include "wire/wire.h"

struct wire_message {
    enum wire_type type;
    uint32_t id;
    enum wire_method method;
    enum wire_notification notification;
    enum wire_error error_code;
    char *error; /* owned; NULL for no error */
    /* params of a request or notification, result of a response; checked */
    struct codec_cursor body;
    size_t len;
    uint8_t bytes[]; /* the received bytes */
};

#endif
