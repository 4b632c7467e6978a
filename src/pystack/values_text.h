/* SPDX-License-Identifier: Apache-2.0 */
/*
 * values_text: the short text of a value: bounded, always valid UTF-8, written the way Python's repr() writes it.
 *
 * Pure functions over numbers and characters; nothing here reads memory of the target.
 */
#ifndef PYSTACK_VALUES_TEXT_H
#define PYSTACK_VALUES_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A text being written to a buffer that is the caller's. What does not fit is left out and "..." put in its place. */
struct values_text {
    char *buf;
    size_t cap, len;
    bool cut; /* something was left out: nothing more is added */
};

/* Start with an empty text. `cap` is at least 8. */
void values_text_init(struct values_text *t, char *buf, size_t cap);

void values_text_add(struct values_text *t, const char *s);
void values_text_addn(struct values_text *t, const char *s, size_t n); /* UTF-8, not cut within a character */
void values_text_addf(struct values_text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A string in quotes, as repr() has it: the first `n` of `length` characters, code points as they lie in the string. */
void values_text_str(struct values_text *t, const uint32_t *chars, size_t n, uint64_t length);

/* The same of a bytes object. */
void values_text_bytes(struct values_text *t, const uint8_t *bytes, size_t n, uint64_t length);

/* A float, by the fewest digits that give it back; whatever the locale. */
void values_text_float(struct values_text *t, double v);
void values_text_float32(struct values_text *t, float v);

/* A whole number from its `n` digits of `bits` (at most 30) bits, least first; n at most VALUES_TEXT_DIGITS. */
#define VALUES_TEXT_DIGITS 20
void values_text_int(struct values_text *t, const uint32_t *digits, size_t n, unsigned bits, bool negative);

#endif
