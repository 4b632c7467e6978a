/* SPDX-License-Identifier: Apache-2.0 */
/* gil_usage: see gil_usage.h. */
#include "agent/python/gil_usage.h"

#include <stdbool.h>

#include "base/clock.h"

static uint64_t gil_usage_n, gil_usage_ns, gil_usage_longest; /* atomic */

void gil_usage_clear(void) {
    __atomic_store_n(&gil_usage_n, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&gil_usage_ns, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&gil_usage_longest, 0, __ATOMIC_RELAXED);
}

void gil_usage_add(uint64_t since_ns) {
    uint64_t held = clock_self_cpu_ns() - since_ns;
    uint64_t longest = __atomic_load_n(&gil_usage_longest, __ATOMIC_RELAXED);
    while (held > longest && !__atomic_compare_exchange_n(&gil_usage_longest, &longest, held, true,
                                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    __atomic_add_fetch(&gil_usage_ns, held, __ATOMIC_RELAXED);
    __atomic_add_fetch(&gil_usage_n, 1, __ATOMIC_RELAXED);
}

void gil_usage_get(struct gil_usage *out) {
    out->n = __atomic_load_n(&gil_usage_n, __ATOMIC_RELAXED);
    out->ns = __atomic_load_n(&gil_usage_ns, __ATOMIC_RELAXED);
    out->longest_ns = __atomic_load_n(&gil_usage_longest, __ATOMIC_RELAXED);
}
