/* SPDX-License-Identifier: Apache-2.0 */
/* values_text: see values_internal.h. Sources: Objects/unicodeobject.c (unicode_repr),
 * Python/pystrtod.c (repr of floats). */
#include "pystack/values_internal.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define TEXT_DOTS "..."
#define TEXT_DECIMALS_MAX 20 /* groups of nine decimal digits */
#define TEXT_GROUP 1000000000U
#define TEXT_FLOAT_DIGITS 17
#define TEXT_EXPONENT_LEAST (-4) /* repr() writes exponents below and from these on */
#define TEXT_EXPONENT_MOST 16

void values_text_init(struct values_text *t, char *buf, size_t cap) {
    *t = (struct values_text){.buf = buf, .cap = cap};
    buf[0] = '\0';
}

void values_text_addn(struct values_text *t, const char *s, size_t n) {
    size_t room = t->cap - sizeof TEXT_DOTS - t->len; /* the NUL is in the size of the dots */
    if (t->cut)
        return;
    if (n > room) {
        size_t fits = 0;
        for (uint32_t cp; fits < n;) {
            size_t step = text_utf8_next(s + fits, n - fits, &cp);
            if (fits + step > room)
                break;
            fits += step;
        }
        n = fits;
        t->cut = true;
    }
    memcpy(t->buf + t->len, s, n);
    t->len += n;
    if (t->cut) {
        memcpy(t->buf + t->len, TEXT_DOTS, sizeof TEXT_DOTS - 1);
        t->len += sizeof TEXT_DOTS - 1;
    }
    t->buf[t->len] = '\0';
}

void values_text_add(struct values_text *t, const char *s) { values_text_addn(t, s, strlen(s)); }

void values_text_addf(struct values_text *t, const char *fmt, ...) {
    char buf[256];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(buf, sizeof buf, fmt, ap);
    va_end(ap);
    if (n > 0)
        values_text_add(t, buf);
}

/* ---- strings ---- */

/* Characters that are invisible, or that change how others are drawn. repr() escapes all
 * unprintable ones; that whole table is not needed here, because the drawing code handles the
 * rest. */
static bool text_is_hidden(uint32_t c) {
    return c < 0x20 || (c >= 0x7f && c <= 0xa0) || c == 0xad || (c >= 0x2000 && c <= 0x200f) ||
           (c >= 0x2028 && c <= 0x202f) || (c >= 0x205f && c <= 0x206f) || c == 0x3000 || c == 0xfeff ||
           (c >= 0xd800 && c <= 0xf8ff) || (c >= 0xfff0 && c <= 0xfffb) || c >= 0xe0000;
}

static void text_add_char(struct values_text *t, uint32_t c, uint32_t quote, bool only_ascii) {
    char utf8[4];
    if (c == quote || c == '\\')
        values_text_addf(t, "\\%c", (int)c);
    else if (c == '\n' || c == '\r' || c == '\t')
        values_text_add(t, c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t");
    else if (!text_is_hidden(c) && (c < 0x80 || !only_ascii))
        values_text_addn(t, utf8, text_utf8_put(c, utf8));
    else
        values_text_addf(t, c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", (unsigned)c);
}

static char text_quote(bool single, bool twice) { return single && !twice ? '"' : '\''; }

static void text_add_length(struct values_text *t, size_t n, uint64_t length, const char *unit) {
    if (n < length)
        values_text_addf(t, TEXT_DOTS " (%llu %s)", (unsigned long long)length, unit);
}

void values_text_str(struct values_text *t, const uint32_t *chars, size_t n, uint64_t length) {
    bool single = false, twice = false;
    for (size_t i = 0; i < n; i++) {
        single = single || chars[i] == '\'';
        twice = twice || chars[i] == '"';
    }
    char quote[2] = {text_quote(single, twice), '\0'};
    values_text_add(t, quote);
    for (size_t i = 0; i < n; i++)
        text_add_char(t, chars[i], (uint32_t)quote[0], false);
    values_text_add(t, quote);
    text_add_length(t, n, length, "characters");
}

void values_text_bytes(struct values_text *t, const uint8_t *bytes, size_t n, uint64_t length) {
    bool single = n && memchr(bytes, '\'', n), twice = n && memchr(bytes, '"', n);
    char quote[2] = {text_quote(single, twice), '\0'};
    values_text_add(t, "b");
    values_text_add(t, quote);
    for (size_t i = 0; i < n; i++)
        text_add_char(t, bytes[i], (uint32_t)quote[0], true);
    values_text_add(t, quote);
    text_add_length(t, n, length, "bytes");
}

/* ---- numbers ---- */

/* The decimal digits and exponent of "%.*e"; any separator between the first two. */
static size_t text_take_digits(const char *s, char *digits, int *exponent) {
    size_t n = 0;
    for (; *s && *s != 'e'; s++)
        if (*s >= '0' && *s <= '9' && n < TEXT_FLOAT_DIGITS)
            digits[n++] = *s;
    *exponent = *s ? atoi(s + 1) : 0;
    while (n > 1 && digits[n - 1] == '0')
        n--;
    return n;
}

static void text_add_decimal(struct values_text *t, const char *digits, int n, int exponent) {
    if (exponent < TEXT_EXPONENT_LEAST || exponent >= TEXT_EXPONENT_MOST) {
        values_text_addn(t, digits, 1);
        if (n > 1) {
            values_text_add(t, ".");
            values_text_addn(t, digits + 1, (size_t)n - 1);
        }
        values_text_addf(t, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
        return;
    }
    if (exponent < 0)
        values_text_add(t, "0.");
    for (int i = exponent + 1; i < 0; i++)
        values_text_add(t, "0");
    for (int i = 0; i < n || i <= exponent; i++) {
        if (i == exponent + 1 && exponent >= 0)
            values_text_add(t, ".");
        values_text_addn(t, i < n ? digits + i : "0", 1);
    }
    if (n <= exponent + 1)
        values_text_add(t, ".0");
}

/* `single`: digits enough for a float. */
static void text_add_float(struct values_text *t, double v, bool single) {
    char buf[64], digits[TEXT_FLOAT_DIGITS];
    int exponent;
    if (!isfinite(v)) {
        values_text_add(t, isnan(v) ? "nan" : v < 0 ? "-inf" : "inf");
        return;
    }
    for (int precision = 0; precision < TEXT_FLOAT_DIGITS; precision++) {
        snprintf(buf, sizeof buf, "%.*e", precision, fabs(v));
        double back = strtod(buf, NULL);
        if (single ? (float)back == (float)fabs(v) : back == fabs(v))
            break;
    }
    size_t n = text_take_digits(buf, digits, &exponent);
    if (signbit(v))
        values_text_add(t, "-");
    text_add_decimal(t, digits, (int)n, exponent);
}

void values_text_float(struct values_text *t, double v) { text_add_float(t, v, false); }

void values_text_float32(struct values_text *t, float v) { text_add_float(t, (double)v, true); }

void values_text_int(struct values_text *t, const uint32_t *digits, size_t n, unsigned bits, bool negative) {
    uint32_t decimal[TEXT_DECIMALS_MAX + 1] = {0}; /* groups of nine digits, least first */
    size_t groups = 1;
    for (size_t i = n < VALUES_TEXT_DIGITS ? n : VALUES_TEXT_DIGITS; i-- > 0;) {
        uint64_t carry = digits[i];
        for (size_t g = 0; g < groups; g++) {
            uint64_t v = ((uint64_t)decimal[g] << bits) + carry;
            decimal[g] = (uint32_t)(v % TEXT_GROUP);
            carry = v / TEXT_GROUP;
        }
        for (; carry && groups <= TEXT_DECIMALS_MAX; carry /= TEXT_GROUP)
            decimal[groups++] = (uint32_t)(carry % TEXT_GROUP);
    }
    values_text_addf(t, "%s%u", negative ? "-" : "", decimal[groups - 1]);
    for (size_t g = groups - 1; g-- > 0;)
        values_text_addf(t, "%09u", decimal[g]);
}
