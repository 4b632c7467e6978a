/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_gpu: the GPUs of a rank, for its report (client/gpu/gpu_poller.h). Never waits for a driver: what is
 * not known yet comes with a later report. On a host without a GPU it does nothing.
 */
#ifndef RELAY_RANK_GPU_H
#define RELAY_RANK_GPU_H

#include <stdbool.h>

#include "client/fleet/report.h"
#include "client/gpu/gpu_poller.h"

/* Put them into the report of a process of this host. */
void rank_gpu_fill(struct report_rank *report);

/* Call `put` for each device that a process of this host uses, as far as that is known; `is_assumed`: that follows from
 * numbers that may mean another one. */
void rank_gpu_each(pid_t pid, void (*put)(void *arg, const struct gpu_device *device, bool is_assumed),
                   void *arg);

#endif
