/* SPDX-License-Identifier: Apache-2.0 */
/* reader: see reader.h. */
#include "pystack/reader.h"

#include <stdbool.h>

#include "base/text.h"

#define READER_STR_MAX (1ULL << 30) /* longer strings are not believed */
#define READER_PIECE 1024           /* bytes of a string read at once */
#define READER_NAME_MAX 256         /* of a text that is compared, with its end */
#define READER_DIGITS_MAX 3         /* digits of 30 bits in 64 bits */

int pystack_read_u64_at(struct pystack_reader *r, uint64_t addr, int32_t at, uint64_t *out) {
    return mem_read_u64(&r->mem, addr + (uint64_t)(int64_t)at, out);
}

/* Where the characters are, how many, and of how many bytes each. */
struct reader_str {
    uint64_t data;
    uint64_t length;
    unsigned width;
};

/* `head` is the object's beginning, up to its state. */
static int reader_take_str(struct pystack_reader *r, uint64_t addr, const uint8_t *head,
                           struct reader_str *s) {
    const struct pystack_offsets *o = &r->off;
    uint32_t state = (uint32_t)pystack_get_i32(head, o->str_state);
    uint32_t kind_mask = (uint32_t)o->str_kind_mask;
    uint32_t kind = (state & kind_mask) / (kind_mask & -kind_mask);
    s->length = pystack_get_u64(head, o->str_length);
    s->width = kind;
    if ((kind != 1 && kind != 2 && kind != 4) || s->length > READER_STR_MAX)
        return -1;
    if (!(state & (uint32_t)o->str_compact_mask))
        return pystack_read_u64_at(r, addr, o->str_legacy_data, &s->data);
    bool ascii = state & (uint32_t)o->str_ascii_mask;
    if (ascii && kind != 1)
        return -1;
    s->data = addr + (uint64_t)(ascii ? o->str_ascii_data : o->str_compact_data);
    return 0;
}

/* Bytes of the object up to its state; 0: not believed. The last word exists only in strings that
 * are not compact; a compact one may end before it, so it is read separately. */
static size_t reader_str_head(const struct pystack_offsets *o) {
    int32_t end = o->str_legacy_data > o->str_state ? o->str_legacy_data : o->str_state;
    return end + 8 > PYSTACK_STRUCT_MAX ? 0 : (size_t)o->str_state + 4;
}

static int reader_locate_str(struct pystack_reader *r, uint64_t addr, struct reader_str *s) {
    uint8_t head[PYSTACK_STRUCT_MAX];
    size_t need = reader_str_head(&r->off);
    if (!pystack_is_pointer(addr) || !need || mem_read(&r->mem, addr, head, need) != 0)
        return -1;
    return reader_take_str(r, addr, head, s);
}

static uint32_t reader_char(const uint8_t *p, unsigned width) {
    uint16_t two;
    uint32_t four;
    if (width == 1)
        return *p;
    if (width == 2) {
        memcpy(&two, p, sizeof two);
        return two;
    }
    memcpy(&four, p, sizeof four);
    return four;
}

ssize_t pystack_read_str(struct pystack_reader *r, uint64_t addr, char *buf, size_t cap) {
    struct reader_str s;
    if (cap == 0 || reader_locate_str(r, addr, &s) != 0)
        return -1;
    size_t used = 0;
    uint8_t piece[READER_PIECE];
    for (uint64_t at = 0; at < s.length;) {
        uint64_t n = s.length - at;
        if (n > sizeof piece / s.width)
            n = sizeof piece / s.width;
        if (mem_read(&r->mem, s.data + at * s.width, piece, (size_t)n * s.width) != 0)
            return -1;
        for (uint64_t i = 0; i < n; i++) {
            char utf8[4];
            uint32_t c = reader_char(piece + i * s.width, s.width);
            size_t len = text_utf8_put(c ? c : TEXT_REPLACEMENT, utf8);
            if (used + len >= cap) {
                buf[used] = '\0';
                return (ssize_t)used;
            }
            memcpy(buf + used, utf8, len);
            used += len;
        }
        at += n;
    }
    buf[used] = '\0';
    return (ssize_t)used;
}

/* One whose characters were not read with its head. */
static bool reader_is_text(struct pystack_reader *r, uint64_t addr, const char *text) {
    char other[READER_NAME_MAX];
    ssize_t n = pystack_read_str(r, addr, other, sizeof other);
    return n >= 0 && strcmp(other, text) == 0;
}

bool pystack_str_is(struct pystack_reader *r, uint64_t addr, const char *text) {
    struct reader_str s;
    uint8_t bytes[PYSTACK_STRUCT_MAX];
    size_t head = reader_str_head(&r->off), len = strlen(text);
    size_t data = r->off.str_ascii_data > 0 ? (size_t)r->off.str_ascii_data : 0, end = data + len;
    if (!pystack_is_pointer(addr) || !head || data < head || len >= READER_NAME_MAX || end > sizeof bytes)
        return false;
    /* With the text at once, unless the object is shorter and memory ends with it. */
    bool at_once = mem_read(&r->mem, addr, bytes, end) == 0;
    if ((!at_once && mem_read(&r->mem, addr, bytes, head) != 0) || reader_take_str(r, addr, bytes, &s) != 0)
        return false;
    if (!at_once || s.width != 1 || s.data != addr + data)
        return s.length <= len && reader_is_text(r, addr, text);
    return s.length == len && memcmp(bytes + data, text, len) == 0;
}

ssize_t pystack_read_chars(struct pystack_reader *r, uint64_t addr, uint32_t *chars, size_t cap,
                           uint64_t *length) {
    struct reader_str s;
    uint8_t piece[READER_PIECE];
    if (reader_locate_str(r, addr, &s) != 0)
        return -1;
    size_t n = s.length < cap ? (size_t)s.length : cap;
    if (n > sizeof piece / s.width)
        n = sizeof piece / s.width;
    if (mem_read(&r->mem, s.data, piece, n * s.width) != 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        chars[i] = reader_char(piece + i * s.width, s.width);
    *length = s.length;
    return (ssize_t)n;
}

int pystack_read_int(struct pystack_reader *r, uint64_t addr, uint64_t *out) {
    const struct pystack_offsets *o = &r->off;
    uint64_t tag, value = 0;
    uint32_t digits[READER_DIGITS_MAX];
    if (!pystack_is_pointer(addr) || pystack_read_u64_at(r, addr, o->long_tag, &tag) != 0)
        return -1;
    uint64_t n = tag >> o->long_size_shift;
    /* bit 2: an immortal small number (3.14) */
    uint64_t sign = o->long_size_shift ? tag & 3 : 0;
    /* 3.12 on: sign 0 positive, 1 zero, 2 negative; before, n is then huge */
    if (n > READER_DIGITS_MAX || sign > 1)
        return -1;
    if (mem_read(&r->mem, addr + (uint64_t)o->long_digits, digits, (size_t)n * sizeof digits[0]) != 0)
        return -1;
    if (sign == 1 && o->long_size_shift)
        n = 0;
    for (uint64_t i = n; i-- > 0;) {
        if (value >> (64 - o->long_digit_bits))
            return -1;
        value = value << o->long_digit_bits | digits[i];
    }
    *out = value;
    return 0;
}
