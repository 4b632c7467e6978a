/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gilhog: a C call that never gives the GIL back. Called through ctypes.PyDLL, which keeps the GIL during the call.
 */
#include <stdint.h>

/* Counts in `*counter` until `*stop` is set. */
void gilhog_spin(volatile uint64_t *counter, volatile int *stop);

void gilhog_spin(volatile uint64_t *counter, volatile int *stop) {
    while (!*stop)
        ++*counter;
}
