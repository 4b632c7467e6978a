/* SPDX-License-Identifier: Apache-2.0 */
/* json_read: see json_read.h. */
#include "base/json_read.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define JSON_READ_KEY_MAX 32
#define JSON_READ_MOST 1e15  /* beyond which digits do not count */
#define JSON_READ_SCALE 1000 /* powers of ten, beyond which a double is 0 or infinite */

struct json_cursor {
    const char *text;
    size_t len, at;
};

static int json_read_fail(const struct json_cursor *c, struct err *e) {
    return err_set(e, ERR_USAGE, "not a JSON object: error at byte %zu of %zu", c->at, c->len);
}

static int json_read_peek(const struct json_cursor *c) {
    return c->at < c->len ? (unsigned char)c->text[c->at] : -1;
}

static void json_read_blanks(struct json_cursor *c) {
    while (c->at < c->len && memchr(" \t\r\n", c->text[c->at], 4))
        c->at++;
}

/* Accept the character `mark` after blanks. */
static bool json_read_mark(struct json_cursor *c, char mark) {
    json_read_blanks(c);
    bool there = json_read_peek(c) == mark;
    c->at += there;
    return there;
}

static bool json_read_word(struct json_cursor *c, const char *word) {
    size_t n = strlen(word);
    bool there = c->len - c->at >= n && memcmp(c->text + c->at, word, n) == 0;
    c->at += there ? n : 0;
    return there;
}

/* ---- texts ---- */

static int json_read_hex(struct json_cursor *c, uint32_t *out) {
    static const char digits[] = "0123456789abcdefABCDEF";
    *out = 0;
    for (int i = 0; i < 4; i++, c->at++) {
        int ch = json_read_peek(c);
        const char *digit = ch > 0 ? strchr(digits, ch) : NULL;
        if (!digit)
            return -1;
        size_t v = (size_t)(digit - digits);
        *out = *out << 4 | (uint32_t)(v < 16 ? v : v - 6);
    }
    return 0;
}

/* Decode what follows a backslash. Half a surrogate pair is not a character. */
static int json_read_escape(struct json_cursor *c, struct strbuf *out) {
    static const char marks[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    int ch = json_read_peek(c);
    const char *mark = ch > 0 ? strchr(marks, ch) : NULL;
    uint32_t cp, low;
    char utf8[4];
    c->at += ch >= 0;
    if (mark)
        return strbuf_addc(out, meant[mark - marks]);
    if (ch != 'u' || json_read_hex(c, &cp) != 0 || (cp >= 0xdc00 && cp < 0xe000))
        return -1;
    if (cp >= 0xd800 && cp < 0xdc00) {
        if (!json_read_word(c, "\\u") || json_read_hex(c, &low) != 0 || low < 0xdc00 || low >= 0xe000)
            return -1;
        cp = 0x10000 + ((cp - 0xd800) << 10) + (low - 0xdc00);
    }
    return strbuf_add(out, utf8, text_utf8_put(cp, utf8));
}

/* Read the rest of a string whose first quote was read. Reaches its end also when `out` has no
 * room: then out->failed. 0 or -1. */
static int json_read_text(struct json_cursor *c, struct strbuf *out) {
    for (int ch; (ch = json_read_peek(c)) != '"';) {
        uint32_t cp;
        if (ch < 0x20)
            return -1;
        if (ch == '\\') {
            c->at++;
            if (json_read_escape(c, out) != 0 && !out->failed)
                return -1;
            continue;
        }
        size_t n = text_utf8_next(c->text + c->at, c->len - c->at, &cp);
        if (cp == TEXT_REPLACEMENT && n < 3)
            return -1;
        strbuf_add(out, c->text + c->at, n);
        c->at += n;
    }
    c->at++;
    return 0;
}

/* ---- numbers ---- */

/* Add digits to `value`. Those that it has no room for go into `scale`, the power of ten.
 * Returns their number. */
static size_t json_read_digits(struct json_cursor *c, bool fraction, double *value, long *scale) {
    size_t n = 0;
    for (int ch; (ch = json_read_peek(c)) >= '0' && ch <= '9'; n++, c->at++) {
        bool room = *value < JSON_READ_MOST;
        if (room)
            *value = *value * 10 + (ch - '0');
        *scale += room ? -(long)fraction : !fraction;
    }
    return n;
}

static int json_read_number(struct json_cursor *c, double *out) {
    bool minus = json_read_word(c, "-"), zero = json_read_peek(c) == '0';
    double value = 0, exponent = 0;
    long scale = 0, none = 0;
    size_t n = json_read_digits(c, false, &value, &scale);
    if (n == 0 || (zero && n > 1))
        return -1;
    if (json_read_word(c, ".") && json_read_digits(c, true, &value, &scale) == 0)
        return -1;
    if (json_read_word(c, "e") || json_read_word(c, "E")) {
        bool down = json_read_word(c, "-");
        if (!down)
            json_read_word(c, "+");
        if (json_read_digits(c, false, &exponent, &none) == 0)
            return -1;
        scale += (long)fmin(exponent, JSON_READ_SCALE) * (down ? -1 : 1);
    }
    for (int i = 0; i < JSON_READ_SCALE && scale > 0; i++, scale--)
        value *= 10;
    for (int i = 0; i < JSON_READ_SCALE && scale < 0; i++, scale++)
        value /= 10;
    *out = minus ? -value : value;
    return 0;
}

/* ---- fields ---- */

static int json_read_value(struct json_cursor *c, struct json_field *f, struct err *e) {
    int ch = json_read_peek(c);
    if (f->type == JSON_FIELD_TEXT) {
        if (ch != '"')
            return err_set(e, ERR_USAGE, "%s must be a text", f->name);
        c->at++;
        strbuf_fini(&f->text);
        strbuf_init(&f->text, (size_t)f->most);
        if (json_read_text(c, &f->text) != 0)
            return json_read_fail(c, e);
        return f->text.failed ? err_set(e, ERR_USAGE, "%s may have %.0f bytes at most", f->name, f->most) : 0;
    }
    if (f->type == JSON_FIELD_FLAG) {
        bool yes = json_read_word(c, "true");
        f->number = yes;
        return yes || json_read_word(c, "false") ? 0
                                                 : err_set(e, ERR_USAGE, "%s must be true or false", f->name);
    }
    bool starts = ch == '-' || (ch >= '0' && ch <= '9');
    if (starts && json_read_number(c, &f->number) != 0)
        return json_read_fail(c, e);
    if (!starts || !(f->number >= f->least && f->number <= f->most) ||
        (f->type == JSON_FIELD_INTEGER && f->number != floor(f->number)))
        return err_set(e, ERR_USAGE, "%s must be %s from %.15g to %.15g", f->name,
                       f->type == JSON_FIELD_INTEGER ? "a whole number" : "a number", f->least, f->most);
    return 0;
}

static int json_read_refuse_key(const struct json_field *fields, size_t n, struct err *e) {
    char names[256];
    size_t used = 0;
    names[0] = '\0';
    for (size_t i = 0; i < n && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", fields[i].name);
    return err_set(e, ERR_USAGE, "there is no such key: there are %s", names);
}

/* "key": value */
static int json_read_member(struct json_cursor *c, struct json_field *fields, size_t n, struct err *e) {
    struct strbuf key;
    size_t i = 0;
    if (!json_read_mark(c, '"'))
        return json_read_fail(c, e);
    strbuf_init(&key, JSON_READ_KEY_MAX);
    int rc = json_read_text(c, &key);
    while (
        rc == 0 && i < n &&
        (key.failed || key.len != strlen(fields[i].name) || memcmp(key.data, fields[i].name, key.len) != 0))
        i++;
    strbuf_fini(&key);
    if (rc != 0)
        return json_read_fail(c, e);
    if (i == n)
        return json_read_refuse_key(fields, n, e);
    if (fields[i].given)
        return err_set(e, ERR_USAGE, "%s is given twice", fields[i].name);
    if (!json_read_mark(c, ':'))
        return json_read_fail(c, e);
    json_read_blanks(c);
    fields[i].given = true;
    return json_read_value(c, &fields[i], e);
}

int json_read_object(const char *text, size_t len, struct json_field *fields, size_t n, struct err *e) {
    struct json_cursor c = {.text = text, .len = len};
    if (!json_read_mark(&c, '{'))
        return json_read_fail(&c, e);
    if (!json_read_mark(&c, '}')) {
        do {
            if (json_read_member(&c, fields, n, e) != 0)
                return -1;
        } while (json_read_mark(&c, ','));
        if (!json_read_mark(&c, '}'))
            return json_read_fail(&c, e);
    }
    json_read_blanks(&c);
    return c.at == c.len ? 0 : json_read_fail(&c, e);
}
