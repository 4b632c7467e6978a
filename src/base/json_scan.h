/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_scan: a large JSON document from a stranger, read value by value from its begin to its end.
 *
 * Members may be in any order, numbers in quotes; what the reader does not know it skips. Nothing is
 * allocated, no value is nested deeper than JSON_SCAN_DEPTH, texts are safe to show. A reader returns
 * false where the document is cut or is not JSON.
 */
#ifndef BASE_JSON_SCAN_H
#define BASE_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_SCAN_DEPTH 32     /* of nested values that are skipped */
#define JSON_SCAN_TEXT 192     /* bytes of a text, with its NUL */
#define JSON_SCAN_UNKNOWN (-1) /* a number */

struct json_scan {
    const char *at, *end;
};

/* The next character that is not blank, which stays; -1 at the end. */
int json_scan_peek(struct json_scan *c);

/* Accept the character `mark` after blanks. */
bool json_scan_mark(struct json_scan *c, char mark);

/* Skip a value of any kind. */
bool json_scan_skip(struct json_scan *c);

/* A text; "" for a value of another kind. */
bool json_scan_text(struct json_scan *c, char *out, size_t cap);

/* Digits, which may be in quotes. JSON_SCAN_UNKNOWN for a value of another kind, and for a negative
 * or too large one. */
bool json_scan_number(struct json_scan *c, int64_t *out);

/* true, or another value: false. */
bool json_scan_flag(struct json_scan *c, bool *out);

/* The next member of an object, or element of a list, whose first mark was read: 1; 0 at its end;
 * -1. `*first` is true before the first. */
int json_scan_next(struct json_scan *c, bool *first, char close);

/* The same of an object, with the name of the member. */
int json_scan_next_key(struct json_scan *c, bool *first, char *key, size_t cap);

#endif
