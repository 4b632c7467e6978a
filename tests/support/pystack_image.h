/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pystack_image: the memory of an interpreter, made by hand, for the readers of pystack.
 *
 * Objects of any supported version are laid out in one buffer, by the same offsets that the readers use, so each rule can be
 * tested without a Python, and fuzzers start from something that makes sense.
 */
#ifndef TESTS_SUPPORT_PYSTACK_IMAGE_H
#define TESTS_SUPPORT_PYSTACK_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "pystack/offsets.h"

#define IMAGE_SIZE ((size_t)256 * 1024)
#define IMAGE_BASE 0x10000000ULL

struct image {
    const struct pystack_offsets *off;
    size_t used;
    uint64_t str_type, type_type;
    uint8_t bytes[IMAGE_SIZE];
};

/* An interpreter with one thread. */
struct image_python {
    uint64_t runtime, interp, tstate, cframe, gil, chunk;
    uint64_t current;       /* 3.6: _PyThreadState_Current */
    uint64_t thread_object; /* threading.Thread of the thread */
};

struct image_pair {
    uint64_t key, value;
};

void image_init(struct image *img, const struct pystack_offsets *off);
void image_open(const struct image *img, struct mem *m);

/* Room for `size` zeroed bytes; its address. */
uint64_t image_alloc(struct image *img, size_t size);
void image_put_u64(struct image *img, uint64_t addr, int32_t at, uint64_t value);
void image_put_u32(struct image *img, uint64_t addr, int32_t at, uint32_t value);
void image_put_u8(struct image *img, uint64_t addr, int32_t at, uint8_t value);

/* A compact str of `n` characters of `width` bytes (1, 2, 4); width 0 is ASCII. */
uint64_t image_str(struct image *img, unsigned width, const void *chars, size_t n);
uint64_t image_ascii(struct image *img, const char *text);
uint64_t image_bytes(struct image *img, const void *data, size_t n);
uint64_t image_int(struct image *img, uint64_t value);

/* A dict; `general`: its keys are not all strings. */
uint64_t image_dict(struct image *img, const struct image_pair *pairs, size_t n, int general);

/* An instance whose attributes lie as this version keeps them. */
uint64_t image_instance(struct image *img, const struct image_pair *pairs, size_t n);

/* A code object of `units` code units, the first `skip` of which a frame passes before it has begun; its lines are `line`. */
uint64_t image_code(struct image *img, const char *name, const char *file, int line, uint32_t units,
                    uint32_t skip);

/* A frame at code unit `unit` (-1: before the first) of `code`. */
uint64_t image_frame(struct image *img, uint64_t previous, uint64_t code, int unit, uint8_t owner);

/* An interpreter with one thread that is in `frame`; ident 0x7f0000001000, named `name`. */
void image_python(struct image *img, struct image_python *py, const char *name);
void image_set_frame(struct image *img, const struct image_python *py, uint64_t frame);

/* The thread was the last to hold the GIL; `now`: it still does. */
void image_set_holder(struct image *img, const struct image_python *py, int now);

#define IMAGE_IDENT 0x7f0000001000ULL

#endif
