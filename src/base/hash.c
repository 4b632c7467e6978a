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

#define HASH_FNV_PRIME 0x100000001B3ULL
#define HASH_FNV_END 0xff /* not a byte of UTF-8 */

uint64_t hash_fnv(uint64_t h, const void *data, size_t len) {
    const unsigned char *p = data;
    for (size_t i = 0; i < len; i++)
        h = (h ^ p[i]) * HASH_FNV_PRIME;
    return h;
}

uint64_t hash_fnv_text(uint64_t h, const char *text) {
    for (; text && *text; text++)
        h = (h ^ (unsigned char)*text) * HASH_FNV_PRIME;
    return (h ^ HASH_FNV_END) * HASH_FNV_PRIME;
}
