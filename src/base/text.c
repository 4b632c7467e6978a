/* SPDX-License-Identifier: Apache-2.0 */
/* text: see text.h. */
#include "base/text.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

/* A larger number is neither a size nor a duration (30,000 years). */
#define TEXT_BYTES_MAX 9e18
#define TEXT_SECONDS_MAX 1e12

size_t text_utf8_next(const char *s, size_t len, uint32_t *cp) {
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *u = (const unsigned char *)s;
    size_t n = u[0] < 0x80             ? 1
               : (u[0] & 0xe0) == 0xc0 ? 2
               : (u[0] & 0xf0) == 0xe0 ? 3
               : (u[0] & 0xf8) == 0xf0 ? 4
                                       : 0;
    *cp = TEXT_REPLACEMENT;
    if (n == 1) {
        *cp = u[0];
        return 1;
    }
    if (n == 0 || n > len)
        return 1;
    uint32_t v = u[0] & (0xffU >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if ((u[i] & 0xc0) != 0x80)
            return 1;
        v = v << 6 | (u[i] & 0x3fU);
    }
    if (v < least[n] || v > 0x10ffff || (v >= 0xd800 && v <= 0xdfff))
        return 1;
    *cp = v;
    return n;
}

size_t text_utf8_put(uint32_t cp, char out[4]) {
    if (cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff))
        cp = TEXT_REPLACEMENT;
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    if (cp < 0x800) {
        out[0] = (char)(0xc0 | cp >> 6);
        out[1] = (char)(0x80 | (cp & 0x3f));
        return 2;
    }
    if (cp < 0x10000) {
        out[0] = (char)(0xe0 | cp >> 12);
        out[1] = (char)(0x80 | (cp >> 6 & 0x3f));
        out[2] = (char)(0x80 | (cp & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | cp >> 18);
    out[1] = (char)(0x80 | (cp >> 12 & 0x3f));
    out[2] = (char)(0x80 | (cp >> 6 & 0x3f));
    out[3] = (char)(0x80 | (cp & 0x3f));
    return 4;
}

bool text_is_control(uint32_t cp) {
    return (cp < 0x20 && cp != '\t' && cp != '\n') || (cp >= 0x7f && cp < 0xa0) || cp == 0x061c ||
           cp == 0x200e || cp == 0x200f || (cp >= 0x2028 && cp <= 0x202e) || (cp >= 0x2066 && cp <= 0x2069);
}

/* Characters that move the cursor, change direction or hide text. */
static bool text_is_unsafe(uint32_t cp) {
    return text_is_control(cp) || (cp >= 0x200b && cp <= 0x200d) || (cp >= 0x2060 && cp <= 0x206f) ||
           cp == 0xfeff || (cp >= 0xfff9 && cp <= 0xfffb);
}

size_t text_sanitize(char *dst, size_t cap, const char *src) {
    size_t len = strlen(src), used = 0;
    for (size_t i = 0; i < len;) {
        uint32_t cp;
        i += text_utf8_next(src + i, len - i, &cp);
        if (cp == '\t' || cp == '\n')
            cp = ' ';
        else if (text_is_unsafe(cp))
            cp = TEXT_REPLACEMENT;
        char enc[4];
        size_t n = text_utf8_put(cp, enc);
        if (used + n + 1 > cap)
            break;
        memcpy(dst + used, enc, n);
        used += n;
    }
    dst[used] = '\0';
    return used;
}

int text_cp_width(uint32_t cp) {
    int w = wcwidth((wchar_t)cp);
    return w < 0 ? 1 : w;
}

int text_width(const char *s) {
    int cols = 0;
    for (size_t len = strlen(s); len > 0;) {
        uint32_t cp;
        size_t n = text_utf8_next(s, len, &cp);
        cols += text_cp_width(cp);
        s += n;
        len -= n;
    }
    return cols;
}

size_t text_fit(const char *s, int cols) {
    size_t used = 0, len = strlen(s);
    while (used < len) {
        uint32_t cp;
        size_t n = text_utf8_next(s + used, len - used, &cp);
        int w = text_cp_width(cp);
        if (w > cols)
            break;
        cols -= w;
        used += n;
    }
    return used;
}

void text_human_bytes(char *dst, size_t cap, double bytes) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    if (!(bytes >= 0 && bytes <= TEXT_BYTES_MAX)) {
        snprintf(dst, cap, "?");
        return;
    }
    double v = bytes;
    size_t u = 0;
    while (v >= 1024 && u + 1 < sizeof units / sizeof units[0]) {
        v /= 1024;
        u++;
    }
    snprintf(dst, cap, "%.*f %s", u == 0 || v >= 100 ? 0 : v >= 10 ? 1 : 2, v, units[u]);
}

void text_human_duration(char *dst, size_t cap, double seconds) {
    if (!(seconds >= 0 && seconds <= TEXT_SECONDS_MAX)) {
        snprintf(dst, cap, "?");
        return;
    }
    unsigned long s = (unsigned long)seconds;
    if (s >= 86400)
        snprintf(dst, cap, "%lud%02luh", s / 86400, s / 3600 % 24);
    else if (s >= 3600)
        snprintf(dst, cap, "%luh%02lum", s / 3600, s / 60 % 60);
    else if (s >= 60)
        snprintf(dst, cap, "%lum%02lus", s / 60, s % 60);
    else
        snprintf(dst, cap, "%lus", s);
}

int text_compare(const char *a, const char *b) { return strcmp(a ? a : "", b ? b : ""); }

bool text_same(const char *a, const char *b) { return a == b || (a && b && strcmp(a, b) == 0); }
