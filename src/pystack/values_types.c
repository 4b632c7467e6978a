/* SPDX-License-Identifier: Apache-2.0 */
/*
 * values_types: type objects, and how their instances are read.
 *
 * A type counts only if its flags say that it is ready and its own type that it is a type.
 * Layout: Include/cpython/object.h.
 */
#include "pystack/values_internal.h"

#define TYPES_READY (1ULL << 12)    /* Py_TPFLAGS_READY */
#define TYPES_IS_LONG (1ULL << 24)  /* Py_TPFLAGS_LONG_SUBCLASS and those that follow, to ... */
#define TYPES_IS_TYPE (1ULL << 31)  /* ... Py_TPFLAGS_TYPE_SUBCLASS */
#define TYPES_BASES_MAX 16          /* bases that are examined */
#define TYPES_SIZE_MAX (1ULL << 24) /* no instance is larger */

/* Layouts that CPython marks with a flag, in the order of their bits from TYPES_IS_LONG on. */
static const enum values_kind types_flagged[] = {VALUES_INT, VALUES_LIST, VALUES_TUPLE,     VALUES_BYTES,
                                                 VALUES_STR, VALUES_DICT, VALUES_EXCEPTION, VALUES_TYPE};

/* Types by name: only those of a library count. */
static const struct {
    const char *name;
    enum values_kind kind;
    char number;
    uint8_t width;
} types_named[] = {
    {"NoneType", VALUES_NONE, 0, 0},
    {"ellipsis", VALUES_ELLIPSIS, 0, 0},
    {"bool", VALUES_BOOL, 0, 0},
    {"float", VALUES_FLOAT, 0, 0},
    {"set", VALUES_SET, 0, 0},
    {"frozenset", VALUES_SET, 0, 0},
    {"function", VALUES_FUNCTION, 0, 0},
    {"method", VALUES_METHOD, 0, 0},
    {"builtin_function_or_method", VALUES_BUILTIN, 0, 0},
    {"module", VALUES_MODULE, 0, 0},
    {"cell", VALUES_CELL, 0, 0},
    {"numpy.ndarray", VALUES_NUMPY_ARRAY, 0, 0},
    {"numpy.float64", VALUES_NUMPY_NUMBER, 'f', 8},
    {"numpy.float32", VALUES_NUMPY_NUMBER, 'f', 4},
    {"numpy.int64", VALUES_NUMPY_NUMBER, 'i', 8},
    {"numpy.int32", VALUES_NUMPY_NUMBER, 'i', 4},
    {"numpy.int16", VALUES_NUMPY_NUMBER, 'i', 2},
    {"numpy.int8", VALUES_NUMPY_NUMBER, 'i', 1},
    {"numpy.uint64", VALUES_NUMPY_NUMBER, 'u', 8},
    {"numpy.uint32", VALUES_NUMPY_NUMBER, 'u', 4},
    {"numpy.uint16", VALUES_NUMPY_NUMBER, 'u', 2},
    {"numpy.uint8", VALUES_NUMPY_NUMBER, 'u', 1},
    {"numpy.bool", VALUES_NUMPY_NUMBER, 'b', 1},
    {"numpy.bool_", VALUES_NUMPY_NUMBER, 'b', 1},
    {"torch._C.TensorBase", VALUES_TENSOR, 0, 0},
    {"torch._C._TensorBase", VALUES_TENSOR, 0, 0},
};

/* A type object as it is in memory. */
struct types_raw {
    uint64_t flags, basicsize, dict, base;
    char name[VALUES_TYPE_MAX];
};

static bool types_is_name(const char *s) {
    if (!*s)
        return false;
    for (; *s; s++)
        if ((unsigned char)*s <= ' ' || *s == 0x7f)
            return false;
    return true;
}

static int types_read(struct values *v, uint64_t addr, struct types_raw *t) {
    struct pystack_reader *r = v->reader;
    const struct pystack_offsets *o = &r->off;
    uint8_t bytes[PYSTACK_STRUCT_MAX];
    size_t need = 0;
    uint64_t flags;
    const int32_t fields[] = {o->object_type, o->type_flags, o->type_basicsize,
                              o->type_name,   o->type_dict,  o->type_base};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (fields[i] >= 0 && (size_t)fields[i] + 8 > need)
            need = (size_t)fields[i] + 8;
    if (need > sizeof bytes || !pystack_is_pointer(addr) || mem_read(&r->mem, addr, bytes, need) != 0)
        return -1;
    uint64_t meta = pystack_get_u64(bytes, o->object_type);
    if (!pystack_is_pointer(meta) || pystack_read_u64_at(r, meta, o->type_flags, &flags) != 0 ||
        !(flags & TYPES_IS_TYPE))
        return -1;
    t->flags = pystack_get_u64(bytes, o->type_flags);
    t->basicsize = pystack_get_u64(bytes, o->type_basicsize);
    t->dict = pystack_get_u64(bytes, o->type_dict);
    t->base = pystack_get_u64(bytes, o->type_base);
    if (!(t->flags & TYPES_READY) || t->basicsize < (uint64_t)o->object_size || t->basicsize > TYPES_SIZE_MAX)
        return -1;
    return mem_read_cstr(&r->mem, pystack_get_u64(bytes, o->type_name), t->name, sizeof t->name) > 0 &&
                   types_is_name(t->name)
               ? 0
               : -1;
}

/* True if this is one of the types known by name. */
static bool types_find_named(const struct types_raw *t, struct values_type *out) {
    if (t->flags & VALUES_HEAP_TYPE)
        return false;
    for (size_t i = 0; i < sizeof types_named / sizeof types_named[0]; i++)
        if (strcmp(types_named[i].name, t->name) == 0) {
            out->kind = types_named[i].kind;
            out->number = types_named[i].number;
            out->width = types_named[i].width;
            return true;
        }
    return false;
}

/* True if the kind's layout fits into instances of that size. */
static bool types_fits(const struct pystack_offsets *o, const struct values_type *t) {
    switch (t->kind) {
    case VALUES_FLOAT:
        return t->basicsize >= (uint64_t)o->float_value + 8;
    case VALUES_SET:
        return t->basicsize >= (uint64_t)o->set_table + 8;
    case VALUES_FUNCTION:
        return t->basicsize >= (uint64_t)o->function_qualname + 8;
    case VALUES_NUMPY_NUMBER:
        return t->basicsize >= (uint64_t)o->object_size + t->width;
    default:
        return true;
    }
}

/* Classify by the flags of the type itself, or by the nearest known base. Returns how many bases
 * lie between. */
static size_t types_classify(struct values *v, struct types_raw *raw, struct values_type *out) {
    size_t i = 0;
    for (; i < TYPES_BASES_MAX; i++) {
        if (types_find_named(raw, out))
            break;
        for (size_t k = 0; k < sizeof types_flagged / sizeof types_flagged[0] && i == 0; k++)
            if (raw->flags & TYPES_IS_LONG << k)
                out->kind = types_flagged[k];
        if (out->kind || !raw->base || types_read(v, raw->base, raw) != 0)
            break;
    }
    if (!types_fits(&v->reader->off, out))
        out->kind = VALUES_UNKNOWN;
    return i;
}

int values_get_type(struct values *v, uint64_t addr, struct values_type *out) {
    struct values_type *slot = &v->types[(addr >> 4) % VALUES_TYPES];
    if (slot->addr != addr || !addr || (v->doubts && !slot->lasts)) {
        struct types_raw raw;
        if (types_read(v, addr, &raw) != 0) {
            slot->addr = 0;
            return -1;
        }
        struct values_type type = {
            .addr = addr, .basicsize = raw.basicsize, .dict = raw.dict, .base = raw.base};
        type.heap = raw.flags & VALUES_HEAP_TYPE;
        memcpy(type.name, raw.name, sizeof type.name);
        size_t bases = types_classify(v, &raw, &type);
        type.lasts = !type.heap || (type.kind == VALUES_TENSOR && bases == 1);
        *slot = type;
    }
    *out = *slot;
    return 0;
}

int values_get_type_of(struct values *v, uint64_t addr, struct values_type *out) {
    const struct pystack_offsets *o = &v->reader->off;
    uint8_t head[PYSTACK_STRUCT_MAX];
    if (!pystack_is_pointer(addr) || o->object_size < 16 || o->object_size > (int32_t)sizeof head ||
        mem_read(&v->reader->mem, addr, head, (size_t)o->object_size) != 0)
        return -1;
    /* A freed object has no references. Free-threaded builds count elsewhere too. */
    if (!o->free_threaded && (pystack_get_u64(head, o->object_type - 8) & UINT32_MAX) == 0)
        return -1;
    return values_get_type(v, pystack_get_u64(head, o->object_type), out);
}

void values_put_type_name(struct values *v, const struct values_type *type, struct values_text *t) {
    struct pystack_reader *r = v->reader;
    uint64_t module, qualname;
    char text[VALUES_TEXT_MAX];
    if (!type->heap) { /* its tp_name is complete */
        values_text_add(t, type->name);
        return;
    }
    if (pystack_dict_find(r, type->dict, "__module__", NULL, &module) == 0 &&
        pystack_read_str(r, module, text, sizeof text) > 0 && strcmp(text, "builtins") != 0) {
        values_text_add(t, text);
        values_text_add(t, ".");
    }
    if (pystack_read_u64_at(r, type->addr, r->off.type_qualname, &qualname) == 0 &&
        pystack_read_str(r, qualname, text, sizeof text) > 0)
        values_text_add(t, text);
    else
        values_text_add(t, type->name);
}
