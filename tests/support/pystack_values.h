/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pystack_values: objects of every kind that is read as a value, and a frame that has them as locals, made by hand in an image.
 */
#ifndef TESTS_SUPPORT_PYSTACK_VALUES_H
#define TESTS_SUPPORT_PYSTACK_VALUES_H

#include "support/pystack_image.h"

#define IMAGE_LOCALS_MAX 16

/* A local variable: its kind as co_localspluskinds has it (0x20 local, 0x40 cell, 0x80 free), its object (0: unbound). */
struct image_local {
    const char *name;
    uint8_t kind;
    uint64_t object;
};

/* A type that is part of the interpreter (heap 0) or was made in Python; `flags` are those of its layout. */
uint64_t image_type(struct image *img, const char *name, uint64_t flags, uint64_t base, int heap);

/* An object of a type, with room for `size` bytes; its count of references is 1. */
uint64_t image_object(struct image *img, uint64_t type, size_t size);

/* A frame of `code` (made by image_code) with locals; those before `arguments` are arguments. */
uint64_t image_locals_frame(struct image *img, uint64_t previous, uint64_t code,
                            const struct image_local *locals, size_t n, size_t arguments);

/* One of each kind: names "none", "number", "half", "text", "raw", "list", "pair", "table", "few", "inner" (a cell), "made" (an
 * instance), "gone" (unbound), "broken" (no object). The number of them. */
size_t image_every_kind(struct image *img, struct image_local *locals);

#endif
