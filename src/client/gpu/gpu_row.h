/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_row: a reading of a GPU as a row of gpu_metrics. Pure. */
#ifndef CLIENT_GPU_GPU_ROW_H
#define CLIENT_GPU_GPU_ROW_H

#include <stdbool.h>

#include "client/gpu/gpu_source.h"
#include "store/ring/ring_tables.h"

#define GPU_ROW_REASONS 64

/* Fill the RING_GPU_COUNT values of a row. Its texts are those of `f`, and `reasons`, which has room for GPU_ROW_REASONS. */
void gpu_row_fill(union ring_value *row, const struct gpu_facts *f, const struct gpu_values *v,
                  bool is_assumed, char *reasons);

#endif
