/* SPDX-License-Identifier: Apache-2.0 */
/* pystack_image: see pystack_image.h. */
#include "support/pystack_image.h"

#include <stdlib.h>
#include <string.h>

#include "pystack/reader.h"

void image_init(struct image *img, const struct pystack_offsets *off) {
    memset(img, 0, sizeof *img);
    img->off = off;
    img->type_type = image_alloc(img, 1024);
    img->str_type = image_alloc(img, 1024);
}

void image_open(const struct image *img, struct mem *m) {
    mem_init_buffer(m, img->bytes, sizeof img->bytes, IMAGE_BASE);
}

uint64_t image_alloc(struct image *img, size_t size) {
    size = (size + 15) / 16 * 16 + 64; /* neighbours are read a little past an object's end */
    if (size > sizeof img->bytes - img->used)
        abort();
    uint64_t addr = IMAGE_BASE + img->used;
    img->used += size;
    return addr;
}

static void image_put(struct image *img, uint64_t addr, int32_t at, const void *data, size_t n) {
    uint64_t from = addr + (uint64_t)(int64_t)at - IMAGE_BASE;
    if (from > sizeof img->bytes || n > sizeof img->bytes - from)
        abort();
    memcpy(img->bytes + from, data, n);
}

void image_put_u64(struct image *img, uint64_t addr, int32_t at, uint64_t value) {
    image_put(img, addr, at, &value, sizeof value);
}

void image_put_u32(struct image *img, uint64_t addr, int32_t at, uint32_t value) {
    image_put(img, addr, at, &value, sizeof value);
}

void image_put_u8(struct image *img, uint64_t addr, int32_t at, uint8_t value) {
    image_put(img, addr, at, &value, 1);
}

uint64_t image_str(struct image *img, unsigned width, const void *chars, size_t n) {
    const struct pystack_offsets *o = img->off;
    size_t bytes = n * (width ? width : 1);
    uint64_t s = image_alloc(img, (size_t)o->str_compact_data + bytes + 4);
    uint32_t kind_unit = (uint32_t)o->str_kind_mask & -(uint32_t)o->str_kind_mask;
    uint32_t state = (uint32_t)o->str_compact_mask | kind_unit * (width ? width : 1);
    if (!width)
        state |= (uint32_t)o->str_ascii_mask;
    image_put_u64(img, s, o->object_type, img->str_type);
    image_put_u64(img, s, o->str_length, n);
    image_put_u32(img, s, o->str_state, state);
    image_put(img, s, width ? o->str_compact_data : o->str_ascii_data, chars, bytes);
    return s;
}

uint64_t image_ascii(struct image *img, const char *text) { return image_str(img, 0, text, strlen(text)); }

uint64_t image_bytes(struct image *img, const void *data, size_t n) {
    uint64_t b = image_alloc(img, (size_t)img->off->bytes_data + n + 1);
    image_put_u64(img, b, img->off->var_size, n);
    image_put(img, b, img->off->bytes_data, data, n);
    return b;
}

uint64_t image_int(struct image *img, uint64_t value) {
    const struct pystack_offsets *o = img->off;
    uint64_t object = image_alloc(img, (size_t)o->long_digits + 16), n = 0;
    for (; value; value >>= o->long_digit_bits)
        image_put_u32(img, object, o->long_digits + (int32_t)(4 * n++),
                      (uint32_t)(value & ((1U << o->long_digit_bits) - 1)));
    uint64_t sign = o->long_size_shift && n == 0 ? 1 : 0;
    image_put_u64(img, object, o->long_tag, n << o->long_size_shift | sign);
    return object;
}

/* Keys with room for 8 entries, or 16; where the entries are. */
static uint64_t image_keys(struct image *img, size_t n, int general, uint64_t *entries) {
    const struct pystack_offsets *o = img->off;
    uint8_t log2 = n > 8 ? 4 : 3;
    uint64_t room = 1U << log2;
    uint64_t keys = image_alloc(img, (size_t)o->keys_indices + 64 + room * 24);
    if (n > room)
        abort();
    if (o->keys_style != PYSTACK_KEYS_LOG2) {
        image_put_u64(img, keys, o->keys_size, room);
    } else {
        image_put_u8(img, keys, o->keys_log2_size, log2);
        image_put_u8(img, keys, o->keys_log2_index_bytes, log2);
        image_put_u8(img, keys, o->keys_kind, general ? 0 : 1);
    }
    image_put_u64(img, keys, o->keys_nentries, n);
    *entries = keys + (uint64_t)o->keys_indices + (o->keys_style == PYSTACK_KEYS_HASHED ? 0 : room);
    return keys;
}

static int image_entry_words(const struct image *img, int general) {
    return img->off->keys_style != PYSTACK_KEYS_LOG2 || general ? 3 : 2;
}

uint64_t image_dict(struct image *img, const struct image_pair *pairs, size_t n, int general) {
    uint64_t entries, keys = image_keys(img, n, general, &entries), dict = image_alloc(img, 64);
    int words = image_entry_words(img, general);
    for (size_t i = 0; i < n; i++) {
        int32_t at = (int32_t)i * words * 8 + (words - 2) * 8;
        image_put_u64(img, entries, at, pairs[i].key);
        image_put_u64(img, entries, at + 8, pairs[i].value);
    }
    image_put_u64(img, dict, img->off->dict_keys, keys);
    return dict;
}

/* Attributes kept as values beside the keys that all instances of the type share. */
static void image_put_values(struct image *img, uint64_t type, uint64_t values,
                             const struct image_pair *pairs, size_t n) {
    uint64_t entries, keys = image_keys(img, n, 0, &entries);
    int words = image_entry_words(img, 0);
    for (size_t i = 0; i < n; i++) {
        image_put_u64(img, entries, (int32_t)i * words * 8 + (words - 2) * 8, pairs[i].key);
        image_put_u64(img, values, img->off->values_data + (int32_t)i * 8, pairs[i].value);
    }
    image_put_u64(img, type, img->off->type_cached_keys, keys);
}

uint64_t image_instance(struct image *img, const struct image_pair *pairs, size_t n) {
    const struct pystack_offsets *o = img->off;
    size_t more = n > 5 ? 8 * (n - 5) : 0;
    uint64_t type = image_alloc(img, 1024), object = image_alloc(img, 256 + more) + 64, values;
    uint64_t size = (uint64_t)o->object_size;
    image_put_u64(img, object, o->object_type, type);
    image_put_u64(img, type, o->type_basicsize, size);
    switch ((enum pystack_attr_style)o->attr_style) {
    case PYSTACK_ATTR_DICTOFFSET:
        image_put_u64(img, type, o->type_dictoffset, size);
        image_put_u64(img, object, (int32_t)size, image_dict(img, pairs, n, 0));
        return object;
    case PYSTACK_ATTR_TWO_WORDS:
        values = image_alloc(img, 64 + more);
        image_put_u64(img, object, -32, values);
        break;
    case PYSTACK_ATTR_TAGGED:
        values = image_alloc(img, 64 + more);
        image_put_u64(img, object, -24, values - 1);
        break;
    case PYSTACK_ATTR_INLINE:
    default:
        values = object + size;
        image_put_u8(img, values, o->values_valid, 1);
        break;
    }
    image_put_u64(img, type, o->type_flags, 1U << 4 | (o->attr_style == PYSTACK_ATTR_INLINE ? 1U << 2 : 0));
    image_put_values(img, type, values, pairs, n);
    return object;
}

uint64_t image_code(struct image *img, const char *name, const char *file, int line, uint32_t units,
                    uint32_t skip) {
    const struct pystack_offsets *o = img->off;
    uint8_t table[512];
    size_t n = 0;
    uint64_t code = image_alloc(img, (size_t)o->code_size + units * 2);
    if (o->line_style == PYSTACK_LINE_TABLE) {
        for (uint32_t left = units * 2; left; n += 2) {
            table[n] = (uint8_t)(left > 254 ? 254 : left);
            left -= table[n];
            table[n + 1] = 0;
        }
    } else if (o->line_style == PYSTACK_LINE_LOCATIONS) {
        for (uint32_t left = units; left;) { /* code 13: no columns, here no change of line */
            uint32_t length = left > 8 ? 8 : left;
            table[n++] = (uint8_t)(0x80 | 13 << 3 | (length - 1));
            table[n++] = 0;
            left -= length;
        }
    }
    image_put_u64(img, code, o->object_type - 8,
                  1 << 2); /* of a free-threaded build the shared count, above two bits */
    image_put_u64(img, code, o->object_type, img->type_type);
    image_put_u64(img, code, o->code_name, image_ascii(img, name));
    image_put_u64(img, code, o->code_filename, image_ascii(img, file));
    image_put_u32(img, code, o->code_firstlineno, (uint32_t)line);
    image_put_u64(img, code, o->code_linetable, image_bytes(img, table, n));
    if (o->code_qualname) {
        image_put_u64(img, code, o->code_qualname, image_ascii(img, name));
        image_put_u64(img, code, o->var_size, units);
        image_put_u32(img, code, o->code_firsttraceable, skip);
    }
    return code;
}

uint64_t image_frame(struct image *img, uint64_t previous, uint64_t code, int unit, uint8_t owner) {
    const struct pystack_offsets *o = img->off;
    uint64_t frame = image_alloc(img, (size_t)o->frame_size);
    image_put_u64(img, frame, o->frame_previous, previous);
    image_put_u64(img, frame, o->frame_code, code | (o->tag_bits & 1));
    if (o->frame_style == PYSTACK_FRAME_OBJECT) {
        int lasti = o->line_style == PYSTACK_LINE_TABLE || unit < 0 ? unit : unit * 2;
        image_put_u32(img, frame, o->frame_instr, (uint32_t)lasti);
    } else {
        image_put_u64(img, frame, o->frame_instr,
                      code + (uint64_t)o->code_bytes + (uint64_t)(int64_t)(2 * unit));
        image_put_u8(img, frame, o->frame_owner, owner);
    }
    return frame;
}

/* sys.modules with threading, whose _active has the thread. */
static uint64_t image_modules(struct image *img, struct image_python *py, const char *name) {
    struct image_pair attrs[] = {{image_ascii(img, "_target"), image_ascii(img, "x")},
                                 {image_ascii(img, "_name"), image_ascii(img, name)}};
    py->thread_object = image_instance(img, attrs, 2);
    struct image_pair active = {image_int(img, IMAGE_IDENT), py->thread_object};
    struct image_pair globals[] = {{image_ascii(img, "_limbo"), image_dict(img, NULL, 0, 0)},
                                   {image_ascii(img, "_active"), image_dict(img, &active, 1, 1)}};
    uint64_t module = image_alloc(img, 64);
    image_put_u64(img, module, img->off->module_dict, image_dict(img, globals, 2, 0));
    struct image_pair modules[] = {{image_ascii(img, "sys"), module},
                                   {image_ascii(img, "threading"), module}};
    return image_dict(img, modules, 2, 0);
}

void image_python(struct image *img, struct image_python *py, const char *name) {
    const struct pystack_offsets *o = img->off;
    py->runtime = image_alloc(img, 4096);
    py->interp = image_alloc(img, 16384);
    py->tstate = image_alloc(img, (size_t)o->tstate_size);
    py->cframe = image_alloc(img, 64);
    image_put_u64(img, py->runtime, o->runtime_interpreters_head, py->interp);
    image_put_u64(img, py->interp, o->interp_threads_head, py->tstate);
    image_put_u64(img, py->interp, o->interp_modules, image_modules(img, py, name));
    image_put_u64(img, py->tstate, o->tstate_interp, py->interp);
    image_put_u64(img, py->tstate, o->tstate_thread_id, IMAGE_IDENT);
    if (o->tstate_id >= 0)
        image_put_u64(img, py->tstate, o->tstate_id, 7);
    if (o->gil_place == PYSTACK_GIL_STATIC) {
        py->current = image_alloc(img, 8);
        py->gil = image_alloc(img, 256);
    } else if (o->gil_place == PYSTACK_GIL_RUNTIME) {
        py->gil = py->runtime + (uint64_t)o->gil;
    } else {
        py->gil = image_alloc(img, (size_t)o->gil_size);
        image_put_u64(img, py->interp, o->gil, py->gil);
    }
    if (o->tstate_native_thread_id)
        image_put_u64(img, py->tstate, o->tstate_native_thread_id, 4242);
    if (o->frame_style == PYSTACK_FRAME_CFRAME)
        image_put_u64(img, py->tstate, o->tstate_frame, py->cframe);
}

void image_set_frame(struct image *img, const struct image_python *py, uint64_t frame) {
    if (img->off->frame_style == PYSTACK_FRAME_CFRAME)
        image_put_u64(img, py->cframe, img->off->cframe_current_frame, frame);
    else
        image_put_u64(img, py->tstate, img->off->tstate_frame, frame);
}

void image_set_holder(struct image *img, const struct image_python *py, int now) {
    const struct pystack_offsets *o = img->off;
    if (o->gil_place == PYSTACK_GIL_STATIC) {
        image_put_u64(img, py->current, 0, now ? py->tstate : 0);
        return;
    }
    image_put_u32(img, py->gil, o->gil_locked, now ? 1 : 0);
    image_put_u64(img, py->gil, o->gil_last_holder, py->tstate);
    if (o->gil_enabled >= 0)
        image_put_u32(img, py->gil, o->gil_enabled, 1);
}
