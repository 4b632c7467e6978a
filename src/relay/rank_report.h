/* SPDX-License-Identifier: Apache-2.0 */
/* rank_report: what was last read of a rank, as a row of report.h, with its GPUs. */
#ifndef RELAY_RANK_REPORT_H
#define RELAY_RANK_REPORT_H

#include <stdint.h>

#include "client/fleet/report.h"
#include "client/gpu/gpu_process.h"
#include "relay/rank_reader.h"

struct rank_report {
    struct report_rank row;
    char what[256], note[256], devices[GPU_PROCESS_DEVICES]; /* texts of the row */
};

/* Take a reading; `stack`: the number of its frames, or that of the reading if it has none. The row's `since`
 * stays where it was as long as the stack does. */
void rank_report_take(struct rank_report *r, const struct rank_reading *got, int64_t stack);

#endif
