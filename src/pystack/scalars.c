/* SPDX-License-Identifier: Apache-2.0 */
/* scalars: see scalars.h. Layout of tensors: values_array.c. */
#include "pystack/scalars.h"

#include <stdlib.h>

#include "pystack/values_internal.h"

/* Text of a string as it is, cut. */
static int scalars_read_text(struct values *v, uint64_t addr, struct pystack_scalar *out) {
    uint32_t chars[VALUES_TEXT_MAX];
    struct values_text t;
    uint64_t length;
    ssize_t n = pystack_read_chars(v->reader, addr, chars, VALUES_TEXT_MAX, &length);
    if (n < 0 || pystack_read_str(v->reader, addr, out->text, sizeof out->text) < 0)
        return -1;
    size_t len = strlen(out->text);
    if ((uint64_t)n < length || len + 4 > sizeof out->text) {
        values_text_init(&t, out->text, sizeof out->text);
        pystack_read_str(v->reader, addr, out->text, sizeof out->text - 4);
        memcpy(out->text + strlen(out->text), "...", 4);
    }
    return 0;
}

static int scalars_read_float(struct values *v, uint64_t addr, struct pystack_scalar *out) {
    struct values_text t;
    if (mem_read(&v->reader->mem, addr + (uint64_t)v->reader->off.float_value, &out->value,
                 sizeof out->value) != 0)
        return -1;
    values_text_init(&t, out->text, sizeof out->text);
    values_text_float(&t, out->value);
    out->number = true;
    return 0;
}

/* Whole numbers: the text is exact; a double is the nearest to it. */
static int scalars_read_int(struct values *v, uint64_t addr, enum values_kind kind,
                            struct pystack_scalar *out) {
    char type[VALUES_TYPE_MAX], *end;
    if (values_read(v, addr, type, out->text) != 0)
        return -1;
    out->value = kind == VALUES_BOOL ? strcmp(out->text, "True") == 0 : strtod(out->text, &end);
    out->number = kind == VALUES_BOOL || !*end;
    return 0;
}

/* A number of numpy, or of a tensor. */
static int scalars_take(const struct values_number *n, struct pystack_scalar *out) {
    struct values_text t;
    values_text_init(&t, out->text, sizeof out->text);
    values_text_number(&t, n);
    out->value = values_number_double(n);
    out->number = true;
    return 0;
}

int pystack_scalar_read(struct values *v, uint64_t addr, struct pystack_scalar *out) {
    struct values_type type;
    struct values_number n;
    *out = (struct pystack_scalar){.number = false};
    if (values_get_type_of(v, addr, &type) != 0)
        return -1;
    switch (type.kind) {
    case VALUES_NONE:
        memcpy(out->text, "None", 5);
        return 0;
    case VALUES_FLOAT:
        return scalars_read_float(v, addr, out);
    case VALUES_BOOL:
    case VALUES_INT:
        return type.heap ? -1 : scalars_read_int(v, addr, type.kind, out);
    case VALUES_STR:
        return scalars_read_text(v, addr, out);
    case VALUES_NUMPY_NUMBER:
        return values_get_number(v, &type, addr, &n) == 0 ? scalars_take(&n, out) : -1;
    case VALUES_TENSOR:
        out->tensor = true;
        return values_get_tensor(v, &type, addr, &n) == 0 ? scalars_take(&n, out) : -1;
    default:
        return -1;
    }
}

bool pystack_scalar_knows_torch(const char *version) {
    struct values v = {.torch_major = 0};
    values_set_torch(&v, version);
    return values_knows_torch(&v);
}
