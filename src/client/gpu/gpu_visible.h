/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_visible: which GPUs of the machine a process uses, as far as its environment says. Pure, but for
 * gpu_visible_of.
 *
 * CUDA_VISIBLE_DEVICES and its kin have numbers or parts of UUIDs, in the order in which the process counts
 * the devices; a rank takes the one of its place on the host. What a program does with them is its affair:
 * so a place among several is assumed, and so are numbers where the driver may count otherwise than CUDA,
 * which has the fastest first. NVIDIA_VISIBLE_DEVICES is what a container was given.
 */
#ifndef CLIENT_GPU_GPU_VISIBLE_H
#define CLIENT_GPU_GPU_VISIBLE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "client/gpu/gpu_poller.h"

/* As the process was started; NULL: not set. */
struct gpu_visible_env {
    const char *cuda;      /* CUDA_VISIBLE_DEVICES */
    const char *hip;       /* HIP_VISIBLE_DEVICES or ROCR_VISIBLE_DEVICES */
    const char *container; /* NVIDIA_VISIBLE_DEVICES */
    const char *order;     /* CUDA_DEVICE_ORDER */
    int local;             /* its place among the ranks of its host; -1 unknown, or it is not a rank */
};

/* Which of `list`: `used` has room for `n`. True: that is assumed. */
bool gpu_visible_choose(const struct gpu_visible_env *env, const struct gpu_device *list, size_t n,
                        bool *used);

/* The same for a process of this machine. Its environment may block its reader, so a child reads it. 0, or
 * -1: it could not within TARGET_POLL_MS. */
int gpu_visible_of(pid_t pid, const struct gpu_device *list, size_t n, bool *used, bool *is_assumed);

#endif
