/* SPDX-License-Identifier: Apache-2.0 */
/* pystack_values: see pystack_values.h. */
#include "support/pystack_values.h"

#include <string.h>

#define VALUES_FLAG(bit) (1ULL << (bit))

uint64_t image_type(struct image *img, const char *name, uint64_t flags, uint64_t base, int heap) {
    const struct pystack_offsets *o = img->off;
    uint64_t type = image_alloc(img, 1024), text = image_alloc(img, 64);
    for (size_t i = 0; name[i]; i++)
        image_put_u8(img, text, (int32_t)i, (uint8_t)name[i]);
    /* The type of types is one itself. */
    image_put_u64(img, img->type_type, o->type_flags, VALUES_FLAG(12) | VALUES_FLAG(31));
    image_put_u64(img, type, o->object_type - 8, 1);
    image_put_u64(img, type, o->object_type, img->type_type);
    image_put_u64(img, type, o->type_flags, flags | VALUES_FLAG(12) | (heap ? VALUES_FLAG(9) : 0));
    image_put_u64(img, type, o->type_basicsize, 256);
    image_put_u64(img, type, o->type_name, text);
    image_put_u64(img, type, o->type_base, base);
    if (heap) {
        struct image_pair module = {image_ascii(img, "__module__"), image_ascii(img, "job")};
        image_put_u64(img, type, o->type_dict, image_dict(img, &module, 1, 0));
        image_put_u64(img, type, o->type_qualname, image_ascii(img, name));
    }
    return type;
}

uint64_t image_object(struct image *img, uint64_t type, size_t size) {
    uint64_t object = image_alloc(img, size + 64);
    image_put_u64(img, object, img->off->object_type - 8, 1);
    image_put_u64(img, object, img->off->object_type, type);
    return object;
}

static uint64_t values_tuple(struct image *img, uint64_t type, const uint64_t *items, size_t n) {
    uint64_t tuple = image_object(img, type, (size_t)img->off->tuple_items + 8 * n);
    image_put_u64(img, tuple, img->off->var_size, n);
    for (size_t i = 0; i < n; i++)
        image_put_u64(img, tuple, img->off->tuple_items + (int32_t)(8 * i), items[i]);
    return tuple;
}

/* Give an object that was made without a type one. */
static uint64_t values_typed(struct image *img, uint64_t object, uint64_t type) {
    image_put_u64(img, object, img->off->object_type - 8, 1);
    image_put_u64(img, object, img->off->object_type, type);
    return object;
}

uint64_t image_locals_frame(struct image *img, uint64_t previous, uint64_t code,
                            const struct image_local *locals, size_t n, size_t arguments) {
    const struct pystack_offsets *o = img->off;
    uint64_t names[3][IMAGE_LOCALS_MAX];
    size_t count[3] = {0};
    uint8_t kinds[IMAGE_LOCALS_MAX];
    for (size_t i = 0; i < n; i++) {
        size_t part = o->code_kinds ? 0 : locals[i].kind & 0x80 ? 2 : locals[i].kind & 0x40 ? 1 : 0;
        names[part][count[part]++] = image_ascii(img, locals[i].name);
        kinds[i] = locals[i].kind;
    }
    image_put_u32(img, code, o->code_flags, 3);
    image_put_u32(img, code, o->code_argcount, (uint32_t)arguments);
    image_put_u64(img, code, o->code_names, values_tuple(img, img->type_type, names[0], count[0]));
    if (o->code_kinds) {
        image_put_u64(img, code, o->code_kinds, image_bytes(img, kinds, n));
    } else {
        image_put_u64(img, code, o->code_cellvars, values_tuple(img, img->type_type, names[1], count[1]));
        image_put_u64(img, code, o->code_freevars, values_tuple(img, img->type_type, names[2], count[2]));
    }
    uint64_t frame = image_frame(img, previous, code, 5, 0);
    (void)image_alloc(img, 8 * n); /* directly behind the frame: its slots */
    for (size_t i = 0; i < n; i++)
        image_put_u64(img, frame, o->frame_localsplus + (int32_t)(8 * i), locals[i].object);
    return frame;
}

/* A set of one, and a place where another was taken out. */
static uint64_t values_set(struct image *img, uint64_t type, uint64_t item) {
    const struct pystack_offsets *o = img->off;
    uint64_t set = image_object(img, type, 256), table = image_alloc(img, 8 * 16);
    image_put_u64(img, set, o->set_used, 1);
    image_put_u64(img, set, o->set_mask, 7);
    image_put_u64(img, set, o->set_table, table);
    image_put_u64(img, table, 16, item);
    image_put_u64(img, table, 24, UINT64_MAX);
    image_put_u64(img, table, 48, item);
    return set;
}

size_t image_every_kind(struct image *img, struct image_local *locals) {
    const struct pystack_offsets *o = img->off;
    uint64_t object = image_type(img, "object", 0, 0, 0);
    uint64_t of_int = image_type(img, "int", VALUES_FLAG(24), object, 0),
             of_str = image_type(img, "str", VALUES_FLAG(28), object, 0),
             of_bytes = image_type(img, "bytes", VALUES_FLAG(27), object, 0),
             of_tuple = image_type(img, "tuple", VALUES_FLAG(26), object, 0),
             of_list = image_type(img, "list", VALUES_FLAG(25), object, 0),
             of_dict = image_type(img, "dict", VALUES_FLAG(29), object, 0),
             of_set = image_type(img, "set", 0, object, 0), of_float = image_type(img, "float", 0, object, 0),
             of_cell = image_type(img, "cell", 0, object, 0);
    uint64_t number = values_typed(img, image_int(img, 1234567890123), of_int);
    uint64_t text = values_typed(img,
                                 image_str(img, 1,
                                           "gr\xf6\xdf"
                                           "e",
                                           5),
                                 of_str);
    uint64_t half = image_object(img, of_float, 64);
    double value = 0.5;
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    image_put_u64(img, half, o->float_value, bits);
    uint64_t items[] = {number, text, half};
    uint64_t pair = values_tuple(img, of_tuple, items, 2);
    uint64_t list = image_object(img, of_list, 64), array = image_alloc(img, sizeof items);
    image_put_u64(img, list, o->var_size, 3);
    image_put_u64(img, list, o->list_items, array);
    for (size_t i = 0; i < 3; i++)
        image_put_u64(img, array, (int32_t)(8 * i), items[i]);
    struct image_pair entry = {text, number};
    uint64_t table = values_typed(img, image_dict(img, &entry, 1, 0), of_dict);
    image_put_u64(img, table, o->dict_used, 1);
    uint64_t cell = image_object(img, of_cell, 64);
    image_put_u64(img, cell, o->cell_value, pair);
    const struct image_local all[] = {
        {"none", 0x20, image_object(img, image_type(img, "NoneType", 0, object, 0), 16)},
        {"number", 0x20, number},
        {"half", 0x20, half},
        {"text", 0x20, text},
        {"raw", 0x20, values_typed(img, image_bytes(img, "a\0b", 3), of_bytes)},
        {"list", 0x20, list},
        {"pair", 0x20, pair},
        {"table", 0x20, table},
        {"few", 0x20, values_set(img, of_set, half)},
        {"made", 0x20, image_object(img, image_type(img, "Made", 0, object, 1), 64)},
        {"gone", 0x20, 0},
        {"broken", 0x20, array},
        {"inner", 0x40, cell},
        {"outer", 0x80, cell},
    };
    memcpy(locals, all, sizeof all);
    return sizeof all / sizeof all[0];
}
