/* SPDX-License-Identifier: Apache-2.0 */
/* hash: see hash.h. */
#include "base/hash.h"

#include <string.h>

#define HASH_SEED 0x9E3779B97F4A7C15ULL

uint64_t hash_mix(uint64_t h) {
    h ^= h >> 32;
    h *= 0xD6E8FEB86659FD93ULL;
    return h ^ h >> 32;
}

uint64_t hash_bytes(const void *data, size_t len) {
    const uint8_t *p = data;
    uint64_t h = HASH_SEED ^ len;
    uint64_t word;
    for (; len >= sizeof word; len -= sizeof word, p += sizeof word) {
        memcpy(&word, p, sizeof word);
        h = hash_mix(h ^ word);
    }
    word = 0;
    memcpy(&word, p, len);
    return hash_mix(h ^ word);
}
