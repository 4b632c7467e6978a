/* SPDX-License-Identifier: Apache-2.0 */
/*
 * values_array: shape and type of arrays and tensors, never their data; numbers of numpy.
 *
 * numpy's structs are its C API and have not changed from 1.7 to 2.x up to the fields used
 * (numpy/core/include/numpy/ndarraytypes.h, arrayscalars.h). torch's are C++ without a promise
 * (c10/core/TensorImpl.h, torch/csrc/autograd/python_variable.h): they are read only for the
 * listed versions, and only if everything that can be checked agrees; otherwise the shape is
 * unknown.
 */
#include "pystack/pystack.h"
#include "pystack/values_internal.h"

#include <math.h>
#include <stdlib.h>

#define ARRAY_DIMS_MAX 64 /* of numpy 2; 32 before */
#define ARRAY_DIMS_SHOWN 8
#define ARRAY_PREFIX "numpy."

/* PyArrayObject_fields and PyArray_Descr, behind the object's head. */
enum { ARRAY_NDIM = 8, ARRAY_DIMS = 16, ARRAY_DESCR = 40, ARRAY_BYTES = 48 };
enum { DESCR_TYPEOBJ = 0, DESCR_KIND = 8, DESCR_BYTEORDER = 10, DESCR_BYTES = 16 };

static void array_put_shape(struct values_text *t, const int64_t *dims, uint64_t n) {
    values_text_add(t, "[");
    for (uint64_t i = 0; i < n && i < ARRAY_DIMS_SHOWN; i++)
        values_text_addf(t, "%s%lld", i ? ", " : "", (long long)dims[i]);
    if (n > ARRAY_DIMS_SHOWN)
        values_text_addf(t, ", ... %llu more", (unsigned long long)(n - ARRAY_DIMS_SHOWN));
    values_text_add(t, "]");
}

/* Sizes of an array, and their product. */
static int array_read_dims(struct values *v, uint64_t at, uint64_t n, int64_t *dims, uint64_t *product) {
    *product = 1;
    if (n > ARRAY_DIMS_MAX || (n && mem_read(&v->reader->mem, at, dims, (size_t)n * sizeof *dims) != 0))
        return -1;
    for (uint64_t i = 0; i < n; i++)
        if (dims[i] < 0 || __builtin_mul_overflow(*product, (uint64_t)dims[i], product))
            return -1;
    return 0;
}

/* ---- numpy ---- */

int values_put_array(struct values *v, uint64_t addr, struct values_text *t) {
    uint64_t head = (uint64_t)v->reader->off.object_size, descr, product;
    uint8_t array[ARRAY_BYTES], d[DESCR_BYTES];
    int64_t dims[ARRAY_DIMS_MAX];
    struct values_type type;
    if (mem_read(&v->reader->mem, addr + head, array, sizeof array) != 0)
        return -1;
    int32_t n = pystack_get_i32(array, ARRAY_NDIM);
    descr = pystack_get_u64(array, ARRAY_DESCR);
    if (n < 0 || array_read_dims(v, pystack_get_u64(array, ARRAY_DIMS), (uint64_t)n, dims, &product) != 0 ||
        values_get_type_of(v, descr, &type) != 0 || strncmp(type.name, ARRAY_PREFIX "dtype", 11) != 0 ||
        mem_read(&v->reader->mem, descr + head, d, sizeof d) != 0 ||
        values_get_type(v, pystack_get_u64(d, DESCR_TYPEOBJ), &type) != 0 ||
        !strchr("?biufcmMOSUVT", d[DESCR_KIND]))
        return -1;
    values_text_add(t, "ndarray");
    array_put_shape(t, dims, (uint64_t)n);
    bool numpy = strncmp(type.name, ARRAY_PREFIX, sizeof ARRAY_PREFIX - 1) == 0;
    values_text_addf(t, " %s%s", d[DESCR_BYTEORDER] == '>' ? ">" : "",
                     type.name + (numpy ? sizeof ARRAY_PREFIX - 1 : 0));
    return 0;
}

/* Read a number of `width` bytes. */
static int array_read_number(struct values *v, uint64_t at, char kind, uint8_t width,
                             struct values_number *out) {
    union {
        double f64;
        float f32;
        int64_t i64;
        int32_t i32;
        int16_t i16;
        int8_t i8;
        uint64_t u;
    } n = {.u = 0};
    *out = (struct values_number){.kind = kind};
    if (width > sizeof n || mem_read(&v->reader->mem, at, &n, width) != 0)
        return -1;
    if (kind == 'f' && width == 8) {
        out->kind = 'd';
        out->f = n.f64;
    } else if (kind == 'f')
        out->f = (double)n.f32;
    else if (kind == 'b')
        out->i = n.u != 0;
    else if (kind == 'u')
        out->u = n.u;
    else
        out->i = width == 8 ? n.i64 : width == 4 ? n.i32 : width == 2 ? n.i16 : n.i8;
    return 0;
}

void values_text_number(struct values_text *t, const struct values_number *n) {
    if (n->kind == 'd')
        values_text_float(t, n->f);
    else if (n->kind == 'f')
        values_text_float32(t, (float)n->f);
    else if (n->kind == 'b')
        values_text_add(t, n->i ? "True" : "False");
    else if (n->kind == 'u')
        values_text_addf(t, "%llu", (unsigned long long)n->u);
    else
        values_text_addf(t, "%lld", (long long)n->i);
}

double values_number_double(const struct values_number *n) {
    return n->kind == 'd' || n->kind == 'f' ? n->f : n->kind == 'u' ? (double)n->u : (double)n->i;
}

int values_get_number(struct values *v, const struct values_type *type, uint64_t addr,
                      struct values_number *out) {
    return array_read_number(v, addr + (uint64_t)v->reader->off.object_size, type->number, type->width, out);
}

int values_put_number(struct values *v, const struct values_type *type, uint64_t addr,
                      struct values_text *t) {
    struct values_number n;
    if (values_get_number(v, type, addr, &n) != 0)
        return -1;
    values_text_number(t, &n);
    return 0;
}

/* ---- torch ---- */

/* A layout: of THPVariable, behind the object's head, and of TensorImpl. */
struct array_torch {
    int major, minor;
    int32_t impl;   /* in the object: of the pointer to the TensorImpl */
    int32_t object; /* in the TensorImpl: of the pointer back to the object */
    /* the first five sizes are inline; otherwise the first word points to them */
    int32_t ndim, sizes;
    int32_t numel, dtype;
    int32_t device; /* std::optional<Device>: type, index, has a value */
    int32_t flags;  /* two bytes of bit fields ... */
    /* ... that say that sizes or device are not the stored ones: sizes_strides_policy_ (its
     * upper bit), has_symbolic_sizes_strides_, device_policy_, custom_device_, python_custom_... */
    uint16_t computed;
    int32_t key_set; /* c10::DispatchKeySet, 8 bytes; ... */
    /* ... keys that all ordinary CPU tensors have, and keys that they may have */
    uint64_t plain[2];
    int32_t storage, offset; /* pointer to the StorageImpl, and the first element in it */
    int32_t data;            /* in the StorageImpl: of the pointer to the first byte */
    int32_t size;
};

static const struct array_torch array_torches[] = {
    {2, 13, 0, 48, 56, 64, 152, 160, 162, 166, 0x3a98, 168, {0x10001, 0x9400010001}, 16, 144, 16, 176},
};

#define ARRAY_INLINE_DIMS 5
#define ARRAY_IMPL_MAX 512

/* c10/core/ScalarType.h */
static const char *const array_dtypes[] = {
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
    "complex32",
    "complex64",
    "complex128",
    "bool",
    "qint8",
    "quint8",
    "qint32",
    "bfloat16",
    "quint4x2",
    "quint2x4",
    NULL,
    NULL,
    NULL,
    NULL,
    NULL,
    "float8_e5m2",
    "float8_e4m3fn",
    "float8_e5m2fnuz",
    "float8_e4m3fnuz",
    "uint16",
    "uint32",
    "uint64",
};

/* c10/core/DeviceType.h */
static const char *const array_devices[] = {
    "cpu",   "cuda", "mkldnn", "opengl", "opencl", "ideep", "hip",  "fpga", "maia", "xla",           "vulkan",
    "metal", "xpu",  "mps",    "meta",   "hpu",    "ve",    "lazy", "ipu",  "mtia", "privateuseone",
};

void values_set_torch(struct values *v, const char *version) {
    char *end;
    v->torch_asked = true;
    v->torch_major = (int)strtol(version, &end, 10);
    v->torch_minor = *end == '.' ? (int)strtol(end + 1, NULL, 10) : -1;
}

bool values_knows_torch(const struct values *v) {
    for (size_t i = 0; i < sizeof array_torches / sizeof array_torches[0]; i++)
        if (array_torches[i].major == v->torch_major && array_torches[i].minor == v->torch_minor)
            return true;
    return false;
}

static const struct array_torch *array_find_torch(struct values *v) {
    char version[64];
    if (!v->torch_asked) {
        v->torch_asked = true;
        if (v->pid >= 0 && pystack_find_torch(v->pid, version, sizeof version) == 0)
            values_set_torch(v, version);
    }
    for (size_t i = 0; i < sizeof array_torches / sizeof array_torches[0]; i++)
        if (array_torches[i].major == v->torch_major && array_torches[i].minor == v->torch_minor)
            return &array_torches[i];
    return NULL;
}

/* The type itself and its Parameter store their sizes; other classes may compute them. */
static bool array_is_plain_tensor(const struct values_type *type) {
    return type->heap && (strcmp(type->name, "Tensor") == 0 || strcmp(type->name, "Parameter") == 0);
}

/* The TensorImpl of a tensor. 0, or -1 if it is not one. */
static int array_read_impl(struct values *v, const struct array_torch *l, uint64_t addr, uint64_t *impl,
                           uint8_t *b) {
    return pystack_read_u64_at(v->reader, addr, v->reader->off.object_size + l->impl, impl) == 0 &&
                   pystack_is_pointer(*impl) && mem_read(&v->reader->mem, *impl, b, (size_t)l->size) == 0 &&
                   pystack_get_u64(b, l->object) == addr
               ? 0
               : -1;
}

/* Shape, type and device; 0, or -1 if something does not agree. */
static int array_describe_tensor(struct values *v, const struct array_torch *l, uint64_t addr,
                                 struct values_text *t) {
    uint64_t impl, product;
    uint8_t b[ARRAY_IMPL_MAX];
    int64_t dims[ARRAY_DIMS_MAX];
    if (array_read_impl(v, l, addr, &impl, b) != 0 || ((b[l->flags] | b[l->flags + 1] << 8) & l->computed))
        return -1;
    uint64_t n = pystack_get_u64(b, l->ndim);
    uint64_t at = n > ARRAY_INLINE_DIMS ? pystack_get_u64(b, l->sizes) : impl + (uint64_t)l->sizes;
    uint16_t dtype = (uint16_t)(b[l->dtype] | b[l->dtype + 1] << 8);
    uint8_t device = b[l->device], has_device = b[l->device + 2];
    int8_t index = (int8_t)b[l->device + 1];
    if (array_read_dims(v, at, n, dims, &product) != 0 || product != pystack_get_u64(b, l->numel) ||
        dtype >= sizeof array_dtypes / sizeof array_dtypes[0] || !array_dtypes[dtype] || has_device != 1 ||
        device >= sizeof array_devices / sizeof array_devices[0] || index < -1)
        return -1;
    array_put_shape(t, dims, n);
    values_text_addf(t, " %s %s", array_dtypes[dtype], array_devices[device]);
    if (index >= 0)
        values_text_addf(t, ":%d", index);
    return 0;
}

/* The memory form of a type's elements: as numbers of numpy; h and t are the two of 16 bits. */
static bool array_find_element(uint16_t dtype, char *kind, uint8_t *width) {
    static const struct {
        char kind;
        uint8_t width;
    } elements[] = {{'u', 1}, {'i', 1}, {'i', 2}, {'i', 4}, {'i', 8}, {'h', 2}, {'f', 4}, {'f', 8}};
    *kind = dtype < sizeof elements / sizeof elements[0] ? elements[dtype].kind
            : dtype == 11                                ? 'b'
            : dtype == 15                                ? 't'
                                                         : '\0';
    *width = *kind == 'b' ? 1 : *kind == 't' ? 2 : *kind ? elements[dtype].width : 0;
    return *kind != '\0';
}

/* IEEE 754 binary16. */
static double array_half(uint16_t h) {
    int exponent = h >> 10 & 31, mantissa = h & 1023;
    double value = exponent == 31 ? (mantissa ? NAN : INFINITY)
                   : exponent     ? ldexp(mantissa + 1024, exponent - 25)
                                  : ldexp(mantissa, -24);
    return h & 0x8000 ? -value : value;
}

int values_get_tensor(struct values *v, const struct values_type *type, uint64_t addr,
                      struct values_number *out) {
    const struct array_torch *l = array_is_plain_tensor(type) ? array_find_torch(v) : NULL;
    uint64_t impl, data;
    uint8_t b[ARRAY_IMPL_MAX], width;
    char kind;
    if (!l || array_read_impl(v, l, addr, &impl, b) != 0)
        return -1;
    uint64_t keys = pystack_get_u64(b, l->key_set);
    uint64_t first = pystack_get_u64(b, l->offset), storage = pystack_get_u64(b, l->storage);
    if ((keys & l->plain[0]) != l->plain[0] || (keys & ~l->plain[1]) != 0 ||
        pystack_get_u64(b, l->numel) != 1 || b[l->device] != 0 || b[l->device + 2] != 1 ||
        ((b[l->flags] | b[l->flags + 1] << 8) & l->computed) ||
        !array_find_element((uint16_t)(b[l->dtype] | b[l->dtype + 1] << 8), &kind, &width) ||
        first > UINT32_MAX || !pystack_is_pointer(storage) ||
        pystack_read_u64_at(v->reader, storage, l->data, &data) != 0)
        return -1;
    bool half = kind == 'h' || kind == 't';
    if (array_read_number(v, data + first * width, half ? 'u' : kind, width, out) != 0)
        return -1;
    if (half) {
        uint32_t bits = (uint32_t)out->u << 16;
        float f;
        memcpy(&f, &bits, sizeof f);
        out->f = kind == 'h' ? array_half((uint16_t)out->u) : (double)f;
    }
    out->kind = half || kind == 'f' ? 'd' : kind; /* Python's item() is a double */
    return 0;
}

int values_put_tensor(struct values *v, const struct values_type *type, uint64_t addr,
                      struct values_text *t) {
    const struct array_torch *layout = array_is_plain_tensor(type) ? array_find_torch(v) : NULL;
    struct values_text before = *t;
    values_text_add(t, type->name);
    if (layout && array_describe_tensor(v, layout, addr, t) == 0)
        return 0;
    *t = before;
    t->buf[t->len] = '\0';
    values_text_addf(t, "<%s ?>", type->name);
    return 0;
}
