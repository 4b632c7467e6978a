/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text: bytes from elsewhere, made safe to draw.
 *
 * Names of threads, functions and files come from the target and may contain anything. Here they
 * become valid UTF-8 without control characters, and are measured and cut by terminal columns.
 * Pure functions; widths need setlocale.
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TEXT_REPLACEMENT 0xFFFDU

/* Decode one code point of `s` (at most `len` > 0 bytes). Returns the bytes used (>= 1); `*cp`
 * is TEXT_REPLACEMENT for a broken one. Rejects overlong forms, surrogates and values above
 * U+10FFFF (RFC 3629). */
size_t text_utf8_next(const char *s, size_t len, uint32_t *cp);

/* Encode a code point; returns the bytes written to `out` (1..4). An invalid one is written as
 * U+FFFD. */
size_t text_utf8_put(uint32_t cp, char out[4]);

/* Copy `src` to `dst` (`cap` > 0 bytes with the NUL) as drawable UTF-8: controls (C0, DEL, C1),
 * bidirectional overrides and broken bytes become U+FFFD, tab and newline become a space. Never
 * cuts a character in half. Returns the length written. */
size_t text_sanitize(char *dst, size_t cap, const char *src);

/* True for a character that a terminal obeys, or that changes the reading order: C0 but tab and
 * newline, DEL, C1, bidirectional controls, line and paragraph separators. */
bool text_is_control(uint32_t cp);

/* Terminal columns of a sanitised string. */
int text_width(const char *s);

/* Columns of one code point: 0, 1 or 2. */
int text_cp_width(uint32_t cp);

/* Bytes of the longest prefix of `s` that fits into `cols` columns. */
size_t text_fit(const char *s, int cols);

/* Like strcmp; NULL is like "". */
int text_compare(const char *a, const char *b);

/* True for equal texts, and for two NULLs. */
bool text_same(const char *a, const char *b);

/* Like "1.5 GiB": at most 4 significant places, units of 1024; "?" for a negative (unknown)
 * number, NAN, or a number too large for a size. */
void text_human_bytes(char *dst, size_t cap, double bytes);

/* "2d03h", "3h07m", "4m09s", "12s"; "?" for a negative number, NAN, or a number too large for a
 * duration. */
void text_human_duration(char *dst, size_t cap, double seconds);

#endif
