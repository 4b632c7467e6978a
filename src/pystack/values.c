/* SPDX-License-Identifier: Apache-2.0 */
/* values: see values.h. Layouts: Include/cpython/ of the version, by the offsets of its row. */
#include "pystack/values_internal.h"

#define VALUES_DEPTH 2                /* nesting of containers that is read */
#define VALUES_ITEMS 5                /* elements shown of the outermost */
#define VALUES_ITEMS_INNER 3          /* and of one within */
#define VALUES_CHARS 100              /* characters shown of a string */
#define VALUES_CHARS_INNER 30         /* and of one within a container */
#define VALUES_OBJECTS 64             /* objects read for one text */
#define VALUES_COUNT_MAX (1ULL << 40) /* more elements are not believed */
#define VALUES_SET_SLOTS 256          /* examined slots of a set's table */
#define VALUES_WORD 8

void values_begin(struct values *v, struct pystack_reader *r, pid_t pid) {
    *v = (struct values){.reader = r, .pid = pid};
}

void values_forget(struct values *v) { memset(v->types, 0, sizeof v->types); }

static int values_put(struct values *v, uint64_t addr, int depth, struct values_text *t);

/* An element; an unreadable one is a question mark. */
static void values_put_element(struct values *v, uint64_t addr, int depth, struct values_text *t) {
    if (values_put(v, addr, depth, t) != 0)
        values_text_add(t, "?");
}

/* ---- numbers and strings ---- */

static int values_put_int(struct values *v, uint64_t addr, bool boolean, struct values_text *t) {
    struct pystack_reader *r = v->reader;
    const struct pystack_offsets *o = &r->off;
    uint32_t digits[VALUES_TEXT_DIGITS];
    uint64_t tag, n;
    bool negative;
    if (pystack_read_u64_at(r, addr, o->long_tag, &tag) != 0)
        return -1;
    if (o->long_size_shift) { /* from 3.12 on: sign 0 positive, 1 zero, 2 negative */
        negative = (tag & 3) == 2;
        n = (tag & 3) == 1 ? 0 : tag >> o->long_size_shift;
    } else {
        negative = (int64_t)tag < 0;
        n = negative ? -tag : tag;
    }
    if (n > VALUES_COUNT_MAX)
        return -1;
    uint64_t have = n < VALUES_TEXT_DIGITS ? n : VALUES_TEXT_DIGITS, at = addr + (uint64_t)o->long_digits;
    if (mem_read(&r->mem, at + 4 * (n - have), digits, have * sizeof digits[0]) != 0)
        return -1;
    if (boolean)
        values_text_add(t, n ? "True" : "False");
    else if (n > VALUES_TEXT_DIGITS) {
        unsigned top = 32 - (unsigned)__builtin_clz(digits[VALUES_TEXT_DIGITS - 1] | 1);
        values_text_addf(t, "<%sint of %llu bits>", negative ? "negative " : "",
                         (unsigned long long)((n - 1) * (uint64_t)o->long_digit_bits + top));
    } else
        values_text_int(t, digits, have, (unsigned)o->long_digit_bits, negative);
    return 0;
}

static int values_put_float(struct values *v, uint64_t addr, struct values_text *t) {
    double value;
    if (mem_read(&v->reader->mem, addr + (uint64_t)v->reader->off.float_value, &value, sizeof value) != 0)
        return -1;
    values_text_float(t, value);
    return 0;
}

static int values_put_str(struct values *v, uint64_t addr, int depth, struct values_text *t) {
    uint32_t chars[VALUES_CHARS];
    uint64_t length;
    ssize_t n =
        pystack_read_chars(v->reader, addr, chars, depth ? VALUES_CHARS_INNER : VALUES_CHARS, &length);
    if (n < 0)
        return -1;
    values_text_str(t, chars, (size_t)n, length);
    return 0;
}

static int values_put_bytes(struct values *v, uint64_t addr, int depth, struct values_text *t) {
    struct pystack_reader *r = v->reader;
    uint8_t bytes[VALUES_CHARS];
    uint64_t length, cap = depth ? VALUES_CHARS_INNER : VALUES_CHARS;
    if (pystack_read_u64_at(r, addr, r->off.var_size, &length) != 0 || length > VALUES_COUNT_MAX)
        return -1;
    uint64_t n = length < cap ? length : cap;
    if (mem_read(&r->mem, addr + (uint64_t)r->off.bytes_data, bytes, n) != 0)
        return -1;
    values_text_bytes(t, bytes, n, length);
    return 0;
}

/* ---- containers ---- */

static void values_put_more(struct values_text *t, uint64_t shown, uint64_t n) {
    if (shown < n)
        values_text_addf(t, "%s... %llu more", shown ? ", " : "", (unsigned long long)(n - shown));
}

/* Elements of a container beyond the nesting, or the number to show. */
static uint64_t values_to_show(int depth, uint64_t n, struct values_text *t) {
    uint64_t most = depth == 0 ? VALUES_ITEMS : VALUES_ITEMS_INNER;
    if (depth < VALUES_DEPTH)
        return n < most ? n : most;
    if (n)
        values_text_addf(t, "%llu item%s", (unsigned long long)n, n == 1 ? "" : "s");
    return 0;
}

/* `n` objects whose addresses are at `items`. */
static int values_put_items(struct values *v, uint64_t items, uint64_t n, int depth, struct values_text *t) {
    uint64_t list[VALUES_ITEMS], shown = values_to_show(depth, n, t);
    if (shown && (!pystack_is_pointer(items) ||
                  mem_read(&v->reader->mem, items, list, (size_t)shown * VALUES_WORD) != 0))
        return -1;
    for (uint64_t i = 0; i < shown; i++) {
        values_text_add(t, i ? ", " : "");
        values_put_element(v, list[i], depth + 1, t);
    }
    if (depth < VALUES_DEPTH)
        values_put_more(t, shown, n);
    return 0;
}

static int values_put_tuple(struct values *v, uint64_t addr, bool named, int depth, struct values_text *t) {
    struct pystack_reader *r = v->reader;
    uint64_t n;
    if (pystack_read_u64_at(r, addr, r->off.var_size, &n) != 0 || n > VALUES_COUNT_MAX)
        return -1;
    values_text_add(t, "(");
    if (values_put_items(v, addr + (uint64_t)r->off.tuple_items, n, depth, t) != 0)
        return -1;
    values_text_add(t, n == 1 && !named && depth < VALUES_DEPTH ? ",)" : ")");
    return 0;
}

static int values_put_list(struct values *v, uint64_t addr, int depth, struct values_text *t) {
    struct pystack_reader *r = v->reader;
    uint64_t n, items;
    if (pystack_read_u64_at(r, addr, r->off.var_size, &n) != 0 || n > VALUES_COUNT_MAX ||
        pystack_read_u64_at(r, addr, r->off.list_items, &items) != 0)
        return -1;
    values_text_add(t, "[");
    if (values_put_items(v, items, n, depth, t) != 0)
        return -1;
    values_text_add(t, "]");
    return 0;
}

struct values_pairs {
    uint64_t key[VALUES_ITEMS], value[VALUES_ITEMS];
    uint64_t n, most;
};

static int values_take_pair(struct pystack_reader *r, uint32_t index, uint64_t key, uint64_t value,
                            void *arg) {
    struct values_pairs *p = arg;
    (void)r;
    (void)index;
    p->key[p->n] = key;
    p->value[p->n] = value;
    return ++p->n == p->most;
}

static int values_put_dict(struct values *v, uint64_t addr, int depth, struct values_text *t) {
    struct pystack_reader *r = v->reader;
    struct values_pairs p = {.n = 0};
    uint64_t n;
    if (pystack_read_u64_at(r, addr, r->off.dict_used, &n) != 0 || n > VALUES_COUNT_MAX)
        return -1;
    values_text_add(t, "{");
    p.most = values_to_show(depth, n, t);
    if (p.most && pystack_dict_each(r, addr, values_take_pair, &p) < 0)
        return -1;
    for (uint64_t i = 0; i < p.n; i++) {
        values_text_add(t, i ? ", " : "");
        values_put_element(v, p.key[i], depth + 1, t);
        values_text_add(t, ": ");
        values_put_element(v, p.value[i], depth + 1, t);
    }
    if (depth < VALUES_DEPTH)
        values_put_more(t, p.n, n);
    values_text_add(t, "}");
    return 0;
}

/* Entries of a set: key and hash; a removed key leaves one whose hash is -1. Source:
 * Objects/setobject.c. */
static int values_put_set(struct values *v, uint64_t addr, int depth, struct values_text *t) {
    struct pystack_reader *r = v->reader;
    const struct pystack_offsets *o = &r->off;
    uint64_t n, mask, table, entry[2], shown = 0;
    if (pystack_read_u64_at(r, addr, o->set_used, &n) != 0 || n > VALUES_COUNT_MAX ||
        pystack_read_u64_at(r, addr, o->set_mask, &mask) != 0 ||
        pystack_read_u64_at(r, addr, o->set_table, &table) != 0 || !pystack_is_pointer(table))
        return -1;
    if (n == 0) {
        values_text_add(t, "set()");
        return 0;
    }
    values_text_add(t, "{");
    uint64_t most = values_to_show(depth, n, t);
    for (uint64_t i = 0; i <= mask && i < VALUES_SET_SLOTS && shown < most; i++) {
        if (mem_read(&r->mem, table + i * sizeof entry, entry, sizeof entry) != 0)
            return -1;
        if (!entry[0] || entry[1] == UINT64_MAX)
            continue;
        values_text_add(t, shown++ ? ", " : "");
        values_put_element(v, entry[0], depth + 1, t);
    }
    if (depth < VALUES_DEPTH)
        values_put_more(t, shown, n);
    values_text_add(t, "}");
    return 0;
}

/* ---- what stands for code ---- */

static int values_put_name_at(struct values *v, uint64_t addr, int32_t at, const char *before,
                              struct values_text *t) {
    uint64_t name;
    char text[VALUES_TEXT_MAX];
    if (pystack_read_u64_at(v->reader, addr, at, &name) != 0 ||
        pystack_read_str(v->reader, name, text, sizeof text) < 0)
        return -1;
    values_text_add(t, before);
    values_text_add(t, text);
    values_text_add(t, ">");
    return 0;
}

static int values_put_method(struct values *v, uint64_t addr, struct values_text *t) {
    uint64_t function;
    if (pystack_read_u64_at(v->reader, addr, v->reader->off.method_function, &function) != 0)
        return -1;
    if (values_kind_of(v, function) != VALUES_FUNCTION) {
        values_text_add(t, "<bound method>");
        return 0;
    }
    return values_put_name_at(v, function, v->reader->off.function_qualname, "<bound method ", t);
}

static int values_put_builtin(struct values *v, uint64_t addr, struct values_text *t) {
    uint64_t def, name;
    char text[VALUES_TYPE_MAX];
    if (pystack_read_u64_at(v->reader, addr, v->reader->off.builtin_def, &def) != 0 ||
        mem_read_u64(&v->reader->mem, def, &name) != 0 ||
        mem_read_cstr(&v->reader->mem, name, text, sizeof text) <= 0)
        return -1;
    values_text_add(t, "<built-in function ");
    for (const char *c = text; *c; c++)
        values_text_addn(t, *c > ' ' && *c < 0x7f ? c : "?", 1);
    values_text_add(t, ">");
    return 0;
}

static int values_put_module(struct values *v, uint64_t addr, struct values_text *t) {
    uint64_t dict, name;
    char text[VALUES_TEXT_MAX];
    if (pystack_read_u64_at(v->reader, addr, v->reader->off.module_dict, &dict) != 0 ||
        pystack_dict_find(v->reader, dict, "__name__", NULL, &name) != 0 ||
        pystack_read_str(v->reader, name, text, sizeof text) < 0)
        return -1;
    values_text_add(t, "<module '");
    values_text_add(t, text);
    values_text_add(t, "'>");
    return 0;
}

static int values_put_class(struct values *v, uint64_t addr, struct values_text *t) {
    struct values_type type;
    if (values_get_type(v, addr, &type) != 0)
        return -1;
    values_text_add(t, "<class '");
    values_put_type_name(v, &type, t);
    values_text_add(t, "'>");
    return 0;
}

static int values_put_exception(struct values *v, const struct values_type *type, uint64_t addr, int depth,
                                struct values_text *t) {
    uint64_t args;
    values_text_add(t, type->name);
    if (pystack_read_u64_at(v->reader, addr, v->reader->off.exception_args, &args) != 0 ||
        values_kind_of(v, args) != VALUES_TUPLE)
        return -1;
    return values_put_tuple(v, args, true, depth, t);
}

/* ---- any object ---- */

/* True if the type itself has this layout, not one derived from it: then its name is left out. */
static bool values_is_plain(const struct values_type *type) {
    static const char *const plain[] = {"int",   "bool", "float", "str", "bytes",
                                        "tuple", "list", "dict",  "set"};
    for (size_t i = 0; i < sizeof plain / sizeof plain[0] && !type->heap; i++)
        if (strcmp(plain[i], type->name) == 0)
            return true;
    return false;
}

/* The text of a kind that may be a base type: Name(...) for a derived one. */
static int values_put_plain(struct values *v, const struct values_type *type, uint64_t addr, int depth,
                            struct values_text *t) {
    switch (type->kind) {
    case VALUES_BOOL:
    case VALUES_INT:
        return values_put_int(v, addr, type->kind == VALUES_BOOL, t);
    case VALUES_FLOAT:
        return values_put_float(v, addr, t);
    case VALUES_STR:
        return values_put_str(v, addr, depth, t);
    case VALUES_BYTES:
        return values_put_bytes(v, addr, depth, t);
    case VALUES_TUPLE:
        return values_put_tuple(v, addr, !values_is_plain(type), depth, t);
    case VALUES_LIST:
        return values_put_list(v, addr, depth, t);
    case VALUES_DICT:
        return values_put_dict(v, addr, depth, t);
    default:
        return values_put_set(v, addr, depth, t);
    }
}

static int values_put_derived(struct values *v, const struct values_type *type, uint64_t addr, int depth,
                              struct values_text *t) {
    bool bare = values_is_plain(type), brackets = !bare && type->kind != VALUES_TUPLE;
    if (!bare)
        values_text_add(t, type->name);
    values_text_add(t, brackets ? "(" : "");
    int rc = values_put_plain(v, type, addr, depth, t);
    values_text_add(t, brackets ? ")" : "");
    return rc;
}

static void values_put_instance(struct values *v, const struct values_type *type, struct values_text *t) {
    values_text_add(t, "<");
    values_put_type_name(v, type, t);
    values_text_add(t, " object>");
}

static int values_put_kind(struct values *v, const struct values_type *type, uint64_t addr, int depth,
                           struct values_text *t) {
    switch (type->kind) {
    case VALUES_NONE:
        values_text_add(t, "None");
        return 0;
    case VALUES_ELLIPSIS:
        values_text_add(t, "Ellipsis");
        return 0;
    case VALUES_EXCEPTION:
        return values_put_exception(v, type, addr, depth, t);
    case VALUES_TYPE:
        return values_put_class(v, addr, t);
    case VALUES_FUNCTION:
        return values_put_name_at(v, addr, v->reader->off.function_qualname, "<function ", t);
    case VALUES_METHOD:
        return values_put_method(v, addr, t);
    case VALUES_BUILTIN:
        return values_put_builtin(v, addr, t);
    case VALUES_MODULE:
        return values_put_module(v, addr, t);
    case VALUES_NUMPY_ARRAY:
        return values_put_array(v, addr, t);
    case VALUES_NUMPY_NUMBER:
        return values_put_number(v, type, addr, t);
    case VALUES_TENSOR:
        return values_put_tensor(v, type, addr, t);
    case VALUES_CELL:
    case VALUES_UNKNOWN:
        values_put_instance(v, type, t);
        return 0;
    default:
        return values_put_derived(v, type, addr, depth, t);
    }
}

static int values_put(struct values *v, uint64_t addr, int depth, struct values_text *t) {
    struct values_type type;
    if (t->cut)
        return 0;
    if (v->reads_left == 0) {
        values_text_add(t, "...");
        return 0;
    }
    v->reads_left--;
    return values_get_type_of(v, addr, &type) == 0 ? values_put_kind(v, &type, addr, depth, t) : -1;
}

enum values_kind values_kind_of(struct values *v, uint64_t addr) {
    struct values_type type;
    return values_get_type_of(v, addr, &type) == 0 ? type.kind : VALUES_UNKNOWN;
}

bool values_is_informative(struct values *v, uint64_t addr, const char *text, bool *made) {
    struct values_type type;
    *made = false;
    /* it is gone: nothing can be asked of it */
    if (values_get_type_of(v, addr, &type) != 0)
        return true;
    *made = type.heap && type.kind != VALUES_TENSOR;
    size_t n = strlen(text);
    bool tensor_known = type.kind != VALUES_TENSOR || n < 2 || strcmp(text + n - 2, "?>") != 0;
    return type.kind != VALUES_UNKNOWN && type.kind != VALUES_CELL && tensor_known;
}

int values_read(struct values *v, uint64_t addr, char *type, char *text) {
    struct values_type found;
    struct values_text t;
    values_text_init(&t, text, VALUES_TEXT_MAX);
    type[0] = '\0';
    if (values_get_type_of(v, addr, &found) != 0)
        return -1;
    memcpy(type, found.name, VALUES_TYPE_MAX);
    v->reads_left = VALUES_OBJECTS;
    return values_put(v, addr, 0, &t);
}
