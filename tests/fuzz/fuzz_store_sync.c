/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: pieces of a table from a peer, taken into a copy of it, which is then read as a whole.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "store/ring/ring_sync.h"
#include "store/ring/ring_tables.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The description that the pieces are of; made once. */
static struct ring_reader *fuzz_described(void) {
    static struct ring_reader *described;
    struct ring_owner owner = {.pid = 1, .rank = RING_INT_NULL, .started_at = NAN};
    struct err e;
    if (!described) {
        int fd = memfd_create("fuzz", MFD_CLOEXEC), reading = dup(fd);
        struct ring *r = ring_create(fd, &RING_TABLES[RING_FRAMES], &owner, RING_MIN_BYTES, &e);
        ring_close(r);
        described = r ? ring_reader_open_fd(reading, "fuzz", &e) : NULL;
    }
    return described;
}

static void fuzz_read(struct ring_reader *in) {
    struct ring_block b = {.data = NULL};
    struct ring_cell c;
    size_t n;
    uint64_t next = 0;
    const struct ring_chunk *chunks = ring_reader_chunks(in, &n);
    for (size_t i = 0; i < n; i++) {
        if (ring_reader_load(in, &chunks[i], UINT64_MAX, &b) != 1 || b.first_seq < next)
            __builtin_trap(); /* a copy is whole and in order, whatever a peer says */
        next = b.first_seq + b.rows;
        for (uint32_t row = 0; row < b.rows; row++)
            for (size_t column = 0; column < RING_FRAMES_COUNT; column++)
                ring_block_get(&b, column, row, &c);
    }
    ring_block_fini(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct ring_reader *described = fuzz_described();
    struct err e;
    size_t len;
    if (!described)
        return 0;
    const void *head = ring_reader_head(described, &len);
    struct ring_replica *copy = ring_replica_create(head, len, &e);
    if (!copy)
        return 0;
    (void)ring_replica_apply(copy, data, size, &e);
    struct ring_reader *in = ring_reader_open_fd(ring_replica_open(copy), "copy", &e);
    if (!in)
        __builtin_trap();
    fuzz_read(in);
    ring_reader_close(in);
    ring_replica_close(copy);
    return 0;
}
