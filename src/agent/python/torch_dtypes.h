/* SPDX-License-Identifier: Apache-2.0 */
/* torch_dtypes: the types of torch's numbers, by c10's name or number of them. */
#ifndef AGENT_PYTHON_TORCH_DTYPES_H
#define AGENT_PYTHON_TORCH_DTYPES_H

#include <stdint.h>

struct torch_dtype {
    const char *c10;   /* c10::toString */
    const char *torch; /* without "torch." */
    int64_t bytes;
};

/* NULL: not known here. */
const struct torch_dtype *torch_dtypes_find(const char *c10);
const struct torch_dtype *torch_dtypes_at(int scalar_type);

#endif
