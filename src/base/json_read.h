/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_read: a small object of JSON (RFC 8259) that somebody has sent, taken into fields that are known; whatever else it is, is said.
 *
 * Texts, numbers and flags, no nesting: what is not asked for is never kept. The locale does not matter.
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
    double least, most; /* of numbers; of texts: bytes, at most */
    /* What was given. */
    bool given;
    double number;      /* of a flag 0 or 1 */
    struct strbuf text; /* as UTF-8, which may hold NULs; strbuf_fini is the caller's, after an error too */
};

/* 0, or -1 with ERR_USAGE and a line for who has sent it. Fields that were not given are left as they are. */
int json_read_object(const char *text, size_t len, struct json_field *fields, size_t n, struct err *e);

#endif
