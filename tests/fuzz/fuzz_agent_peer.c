/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as messages of a client, of one that may do little or much: each is taken apart, judged, and asked of the agent as a
 * request; nothing is done that the client may not, and all answers are messages.
 *
 * Input: what the client may (support/fuzz_peer.h); then messages, each after its length (two bytes, the low one first).
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "support/fuzz_peer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A copy of just that size: a sanitiser then sees a read past its end. */
static int say(struct fuzz_peer *f, const uint8_t *data, size_t len) {
    uint8_t *copy = malloc(len ? len : 1);
    if (!copy)
        return -1;
    memcpy(copy, data, len);
    int rc = fuzz_peer_say(f, copy, len);
    free(copy);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct fuzz_peer f;
    if (size < 1)
        return 0;
    fuzz_peer_open(&f, data[0]);
    for (size_t at = 1; at + 2 <= size;) {
        size_t len = (size_t)data[at] | (size_t)data[at + 1] << 8;
        at += 2;
        if (len > size - at)
            len = size - at;
        if (say(&f, data + at, len) != 0)
            break;
        at += len;
    }
    fuzz_peer_close(&f);
    return 0;
}
