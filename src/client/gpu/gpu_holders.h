/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_holders: which processes have memory on the GPUs of this machine, asked once.
 *
 * A driver lists them under a lock that all who use it wait for, so nothing asks for them by itself. A child
 * asks, as in gpu_poller.h: a driver that does not answer keeps only that child.
 */
#ifndef CLIENT_GPU_GPU_HOLDERS_H
#define CLIENT_GPU_GPU_HOLDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/gpu/gpu_poller.h"

#define GPU_HOLDERS_MAX 1024

/* A process on a device. */
struct gpu_holder {
    struct gpu_holding holding; /* `place` is that of the device in the list that was given */
    /* Whether the pid is one of this program's numbering. In a container the driver may count as the host
     * does: then a process that has that number here is another one. */
    bool is_ours;
    char command[64]; /* "": not known, or it has ended */
    int64_t uid;      /* -1, too */
    int64_t rank;     /* its rank in its job; -1: none, or not known */
};

/* Ask about those of `devices` (gpu_poller_devices) that are `used`. Blocks for some seconds at most. Returns
 * how many there are in `list` (room for `cap`), or -1; `why` (GPU_WHY bytes) then has the reason, else what
 * is missing, "" nothing. Any thread. */
int gpu_holders_read(const struct gpu_device *devices, const bool *used, size_t n, struct gpu_holder *list,
                     size_t cap, char *why);

#endif
