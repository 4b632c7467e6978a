/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a seccomp filter: it ends, stays within its bounds, and a verdict says which call it is about. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "inject/filter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    size_t n = size / sizeof(struct sock_filter);
    struct sock_filter *code = malloc(size ? size : 1); /* of its own, so that a read past its end is seen */
    long nr = -1;
    if (!code || n > FILTER_INSTRUCTIONS_MAX) {
        free(code);
        return 0;
    }
    memcpy(code, data, n * sizeof *code);
    enum filter_verdict v = filter_judge(code, n, &nr);
    if ((v == FILTER_KILLS) != (nr >= 0))
        abort();
    free(code);
    return 0;
}
