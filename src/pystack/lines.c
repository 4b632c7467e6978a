/* SPDX-License-Identifier: Apache-2.0 */
/* lines: see lines.h. */
#include "pystack/lines.h"

#include <stdbool.h>

#define LINES_NONE (-128) /* 3.10: the range has no line */
#define LINES_UNIT 2      /* bytes of a code unit */

/* A line is an int of the interpreter; what a broken table adds up to is not one. */
static int lines_checked(int64_t line) { return line > 0 && line <= INT32_MAX ? (int)line : 0; }

static int lines_find_lnotab(const uint8_t *t, size_t n, int first, int64_t at, bool only_forward) {
    int64_t line = first, addr = 0;
    for (size_t i = 0; i + 1 < n; i += 2) {
        addr += t[i];
        if (addr > at)
            break;
        line += only_forward ? t[i + 1] : (int8_t)t[i + 1];
    }
    return lines_checked(line);
}

static int lines_find_table(const uint8_t *t, size_t n, int first, int64_t at) {
    int64_t line = first, addr = 0;
    for (size_t i = 0; i + 1 < n; i += 2) {
        bool none = (int8_t)t[i + 1] == LINES_NONE;
        if (!none)
            line += (int8_t)t[i + 1];
        if (at < addr + t[i])
            return none ? 0 : lines_checked(line);
        addr += t[i];
    }
    return 0;
}

struct lines_cursor {
    const uint8_t *p, *end;
};

static uint64_t lines_read_varint(struct lines_cursor *c) {
    uint64_t v = 0;
    for (unsigned shift = 0; c->p < c->end; shift += 6) {
        uint8_t b = *c->p++;
        if (shift < 60)
            v |= (uint64_t)(b & 63) << shift;
        if (!(b & 64))
            break;
    }
    return v;
}

static int64_t lines_read_svarint(struct lines_cursor *c) {
    uint64_t v = lines_read_varint(c);
    return v & 1 ? -(int64_t)(v >> 1) : (int64_t)(v >> 1);
}

/* Codes of an entry: Objects/locations.md. */
enum { LINES_CODE_ONE_LINE = 10, LINES_CODE_NO_COLUMNS = 13, LINES_CODE_LONG = 14, LINES_CODE_NONE = 15 };

/* Change of line of the entry whose first byte had `code`; the rest of it is passed over with the next entry's search. */
static int64_t lines_read_delta(struct lines_cursor *c, int code) {
    if (code == LINES_CODE_NO_COLUMNS || code == LINES_CODE_LONG)
        return lines_read_svarint(c);
    return code >= LINES_CODE_ONE_LINE && code < LINES_CODE_NO_COLUMNS ? code - LINES_CODE_ONE_LINE : 0;
}

static int lines_find_locations(const uint8_t *t, size_t n, int first, int64_t at) {
    struct lines_cursor c = {.p = t, .end = t + n};
    int64_t line = first, addr = 0;
    while (c.p < c.end) {
        uint8_t b = *c.p++;
        int code = (b >> 3) & 15;
        line += lines_read_delta(&c, code);
        if (line > INT32_MAX || line < INT32_MIN)
            return 0;
        addr += ((b & 7) + 1) * LINES_UNIT;
        if (at < addr)
            return code == LINES_CODE_NONE ? 0 : lines_checked(line);
        /* Only the first byte of an entry has its top bit set. */
        while (c.p < c.end && !(*c.p & 128))
            c.p++;
    }
    return 0;
}

int pystack_find_line(enum pystack_line_style style, const uint8_t *table, size_t n, int first, int64_t at) {
    if (at < 0)
        return lines_checked(first);
    switch (style) {
    case PYSTACK_LINE_LNOTAB:
    case PYSTACK_LINE_FORWARD:
        return lines_find_lnotab(table, n, first, at, style == PYSTACK_LINE_FORWARD);
    case PYSTACK_LINE_TABLE:
        return lines_find_table(table, n, first, at);
    case PYSTACK_LINE_LOCATIONS:
        return lines_find_locations(table, n, first, at);
    }
    return 0;
}
