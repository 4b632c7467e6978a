/* SPDX-License-Identifier: Apache-2.0 */
/* Native code with a known order of calls: into Python and back, and a loop that runs until it is told to end. */
#include <stddef.h>

#define EXPORT __attribute__((visibility("default"), noinline))

/* What comes after a call keeps it from being the last thing the function does: else there would be no frame. */
static volatile int native_calls_done;

EXPORT int native_inner(int (*callback)(int), int value);
EXPORT int native_middle(int (*callback)(int), int value);
EXPORT int native_outer(int (*callback)(int), int value);
EXPORT int native_loop(volatile int *end);
EXPORT int native_compute(volatile int *end);

int native_inner(int (*callback)(int), int value) {
    int result = callback ? callback(value) : value;
    native_calls_done++;
    return result;
}

int native_middle(int (*callback)(int), int value) {
    int result = native_inner(callback, value + 1);
    native_calls_done++;
    return result;
}

int native_outer(int (*callback)(int), int value) {
    int result = native_middle(callback, value + 1);
    native_calls_done++;
    return result;
}

int native_loop(volatile int *end) {
    unsigned n = 0;
    while (!*end)
        n++;
    native_calls_done++;
    return (int)n;
}

int native_compute(volatile int *end) {
    int result = native_loop(end);
    native_calls_done++;
    return result;
}
