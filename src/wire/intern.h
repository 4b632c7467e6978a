/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intern: numbers for the strings and frames of one message, so that each is sent once.
 *
 * Made for stacks: the same few pointers come again and again, so a small cache by address
 * stands before the table by content. Strings are borrowed until intern_fini. Private to
 * src/wire. One thread at a time.
 */
#ifndef WIRE_INTERN_H
#define WIRE_INTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/model.h"
#include "base/table.h"

struct intern {
    const char **strings;
    size_t n_strings, cap_strings;
    struct table by_text;
    struct intern_recent *recent; /* by address */
    struct model_frame *frames;   /* distinct frames; func and file as first given */
    size_t n_frames, cap_frames;
    struct table by_frame;
    bool failed; /* an allocation failed: the numbers are invalid */
};

/* 0, or -1 without memory (then it owns nothing). */
int intern_init(struct intern *in);
void intern_fini(struct intern *in);

/* The number of a string (not NULL) or frame, from 0. After a failure 0, with `failed` set. */
uint32_t intern_string(struct intern *in, const char *s);
uint32_t intern_frame(struct intern *in, const struct model_frame *f);

#endif
