/* SPDX-License-Identifier: Apache-2.0 */
/* account: see account.h. mincore(2) tells which pages of a private mapping are resident. */
#include "agent/sampler/account.h"

#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"

#define ACCOUNT_MAX_PAGES 2048U
#define ACCOUNT_FRESH_NS (5 * CLOCK_NS_PER_S) /* so long a count is believed */

static size_t account_count_stack(void) {
    pthread_attr_t attr;
    void *start = NULL;
    size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attr) != 0)
        return 0;
    int rc = pthread_attr_getstack(&attr, &start, &size);
    (void)pthread_attr_destroy(&attr);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char there[ACCOUNT_MAX_PAGES];
    uintptr_t from = ((uintptr_t)start + page - 1) / page * page;
    size_t pages = ((uintptr_t)start + size - from) / page;
    if (rc != 0 || pages > ACCOUNT_MAX_PAGES || mincore((void *)from, pages * page, there) != 0)
        return 0;
    size_t resident = 0;
    for (size_t i = 0; i < pages; i++)
        resident += there[i] & 1U;
    return resident * page;
}

size_t account_stack_bytes(struct account_stack *a) {
    uint64_t now = clock_mono_ns();
    if (a->at_ns == 0 || now - a->at_ns > ACCOUNT_FRESH_NS)
        *a = (struct account_stack){.at_ns = now, .bytes = account_count_stack()};
    return a->bytes;
}
