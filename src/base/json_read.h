/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_read: a small JSON object (RFC 8259) from a stranger, read into known fields. Anything
 * else in it is an error with one line.
 *
 * Texts, numbers and flags, no nesting: unknown members are never stored. Independent of the
 * locale.
 */
#ifndef BASE_JSON_READ_H
#define BASE_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/strbuf.h"

enum json_field_type { JSON_FIELD_TEXT = 0, JSON_FIELD_NUMBER, JSON_FIELD_INTEGER, JSON_FIELD_FLAG };

struct json_field {
    const char *name, *help;
    enum json_field_type type;
    double least, most; /* of numbers; for texts the largest number of bytes */
    /* True if the object has the field. */
    bool given;
    double number; /* of a flag 0 or 1 */
    /* as UTF-8, may contain NULs; the caller calls strbuf_fini, after an error too */
    struct strbuf text;
};

/* 0, or -1 with ERR_USAGE and a line for the sender. Fields that the object lacks stay as they
 * are. */
int json_read_object(const char *text, size_t len, struct json_field *fields, size_t n, struct err *e);

#endif
