/* SPDX-License-Identifier: Apache-2.0 */
/* rank_gpu: see rank_gpu.h. */
#include "relay/rank_gpu.h"

#include "client/gpu/gpu_process.h"

void rank_gpu_fill(struct report_rank *report) {
    struct gpu_use use;
    gpu_process_read((pid_t)report->pid, &use);
    report->gpu_util = use.util_pct;
    report->gpu_mem_mb = use.mem_used_mb;
}
