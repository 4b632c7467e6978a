/* SPDX-License-Identifier: Apache-2.0 */
/* torch_dtypes: see torch_dtypes.h. c10/core/ScalarType.h
 * (AT_FORALL_SCALAR_TYPES_WITH_COMPLEX_AND_QINTS): from 2.2 to 2.13 the list only grew at its end. */
#include "agent/python/torch_dtypes.h"

#include <stddef.h>
#include <string.h>

static const struct torch_dtype torch_dtypes[] = {
    [0] = {"Byte", "uint8", 1},
    [1] = {"Char", "int8", 1},
    [2] = {"Short", "int16", 2},
    [3] = {"Int", "int32", 4},
    [4] = {"Long", "int64", 8},
    [5] = {"Half", "float16", 2},
    [6] = {"Float", "float32", 4},
    [7] = {"Double", "float64", 8},
    [8] = {"ComplexHalf", "complex32", 4},
    [9] = {"ComplexFloat", "complex64", 8},
    [10] = {"ComplexDouble", "complex128", 16},
    [11] = {"Bool", "bool", 1},
    [15] = {"BFloat16", "bfloat16", 2},
    [23] = {"Float8_e5m2", "float8_e5m2", 1},
    [24] = {"Float8_e4m3fn", "float8_e4m3fn", 1},
    [25] = {"Float8_e5m2fnuz", "float8_e5m2fnuz", 1},
    [26] = {"Float8_e4m3fnuz", "float8_e4m3fnuz", 1},
    [27] = {"UInt16", "uint16", 2},
    [28] = {"UInt32", "uint32", 4},
    [29] = {"UInt64", "uint64", 8},
    [44] = {"Float8_e8m0fnu", "float8_e8m0fnu", 1},
    [45] = {"Float4_e2m1fn_x2", "float4_e2m1fn_x2", 1},
};

#define TORCH_DTYPES (sizeof torch_dtypes / sizeof torch_dtypes[0])

const struct torch_dtype *torch_dtypes_find(const char *c10) {
    for (size_t i = 0; i < TORCH_DTYPES; i++)
        if (torch_dtypes[i].c10 && strcmp(torch_dtypes[i].c10, c10) == 0)
            return &torch_dtypes[i];
    return NULL;
}

const struct torch_dtype *torch_dtypes_at(int scalar_type) {
    if (scalar_type < 0 || (size_t)scalar_type >= TORCH_DTYPES || !torch_dtypes[scalar_type].c10)
        return NULL;
    return &torch_dtypes[scalar_type];
}
