/* SPDX-License-Identifier: Apache-2.0 */
/* rank_gpu: the GPUs of a rank, for its report (client/gpu/gpu_process.h). */
#ifndef RELAY_RANK_GPU_H
#define RELAY_RANK_GPU_H

#include "client/fleet/report.h"

/* Put them into the report of a process of this host. */
void rank_gpu_fill(struct report_rank *report);

#endif
