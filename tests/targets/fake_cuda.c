/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_cuda: functions of libcuda.so.1 that wait, or do not, for machines without a GPU. It is put under that name into a folder,
 * and a job calls it by ctypes. Each takes the milliseconds that it needs; with $FAKE_CUDA=spin the caller's processor is busy
 * meanwhile, as by default in CUDA.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int cuStreamSynchronize(unsigned ms);
EXPORT int cuMemcpyDtoHAsync_v2(unsigned ms);
EXPORT int cuLaunchKernel(unsigned ms);

static void fake_wait(unsigned ms) {
    const char *how = getenv("FAKE_CUDA");
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000}, now, end;
    if (!how || strcmp(how, "spin") != 0) {
        nanosleep(&t, NULL);
        return;
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += t.tv_sec + (end.tv_nsec + t.tv_nsec) / 1000000000;
    end.tv_nsec = (end.tv_nsec + t.tv_nsec) % 1000000000;
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while (now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
}

int cuStreamSynchronize(unsigned ms) {
    fake_wait(ms);
    return 0;
}

int cuMemcpyDtoHAsync_v2(unsigned ms) {
    fake_wait(ms);
    return 0;
}

/* It waits only until the queue has room. */
int cuLaunchKernel(unsigned ms) {
    fake_wait(ms);
    return 0;
}
