/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_poller: the GPUs of this machine, read once a second for as long as this program is interested, and
 * their past since then.
 *
 * A driver may not answer, and then nothing ends who waits in it. So a child of this program asks it, and
 * this program never does. The child writes what it reads into memory that both share. A device that has
 * not answered for GPU_POLLER_PATIENCE_S is left out: the child is killed, abandoned if it cannot die, and
 * another one continues with the other devices. One poller for each process; any thread.
 */
#ifndef CLIENT_GPU_GPU_POLLER_H
#define CLIENT_GPU_GPU_POLLER_H

#include <stdbool.h>
#include <stddef.h>

#include "client/gpu/gpu_source.h"

#define GPU_POLLER_PATIENCE_S 3.0

/* A device now. */
struct gpu_device {
    struct gpu_facts facts;
    struct gpu_values newest; /* state GPU_SILENT: its last ones */
    double silent_s;          /* for how long it has not answered; 0: it does */
};

/* Begin, or continue: replace a child that has ended or does not answer. To be called about once a second
 * by who is interested; it does not wait for the driver. */
void gpu_poller_keep(void);

/* The same, and wait for the first reading, until `stop` or for some seconds at most. */
void gpu_poller_wait(bool (*stop)(void *arg), void *arg);

/* The devices, GPU_MAX at most, those of one vendor by their numbers. Returns how many; 0: none are known,
 * and gpu_poller_why has the reason. */
size_t gpu_poller_devices(struct gpu_device *list, size_t cap);

/* Why there are none, as a part of a sentence; "" if there are some, or it is not known yet. */
void gpu_poller_why(char *buf, size_t cap);

/* Call `put` for every kept reading of the devices `wanted` (by their place in gpu_poller_devices), the
 * oldest first, until it returns non-zero. */
void gpu_poller_each(const bool *wanted, int (*put)(size_t device, const struct gpu_values *v, void *arg),
                     void *arg);

/* End the child, and forget everything: for tests. */
void gpu_poller_end(void);

#endif
