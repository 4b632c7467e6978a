/* SPDX-License-Identifier: Apache-2.0 */
/* memory_gpu: `probing TARGET memory --gpu`: what torch's allocator holds on GPUs, and who allocated it. */
#ifndef CLI_MEMORY_GPU_H
#define CLI_MEMORY_GPU_H

#include "client/sql/result.h"

/* A query for memory_gpu_put_*. */
extern const char memory_gpu_query[];

void memory_gpu_put_json(const struct result *rows, struct strbuf *out);

/* A line for each device, and `top` places. */
void memory_gpu_put_text(const struct result *rows, long top, struct strbuf *out);

#endif
