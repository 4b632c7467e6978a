/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: the reader of ring files. The first byte says whether checksums are made right first, so that what they would
 * catch is reached too; the rest is the file. Every value of every chunk is read.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "store/ring/ring_format.h"
#include "store/ring/ring_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_seal(uint8_t *file, size_t size) {
    struct ring_file_head h;
    if (size < sizeof h)
        return;
    memcpy(&h, file, sizeof h);
    if (h.head_bytes >= sizeof h && h.head_bytes <= size && h.head_bytes <= RING_MAX_HEAD)
        h.checksum = ring_head_checksum(file, h.head_bytes);
    memcpy(file, &h, sizeof h);
    for (uint32_t i = 0; i < h.n_chunks && i < RING_MAX_CHUNKS; i++) {
        struct ring_entry entry;
        uint64_t at = h.entry_at + (uint64_t)i * h.entry_stride;
        if (at > size || size - at < sizeof entry)
            return;
        memcpy(&entry, file + at, sizeof entry);
        entry.checksum = ring_entry_checksum(&entry);
        memcpy(file + at, &entry, sizeof entry);
    }
}

static void fuzz_cell(const struct ring_block *b, size_t column, uint32_t row) {
    struct ring_cell c = {.kind = RING_CELL_NULL};
    volatile uint8_t sum = 0;
    ring_block_get(b, column, row, &c);
    if (c.kind == RING_CELL_TEXT)
        for (uint32_t i = 0; i < c.len; i++)
            sum = (uint8_t)(sum + (uint8_t)c.s[i]);
}

static void fuzz_chunk(struct ring_reader *r, const struct ring_chunk *chunk, struct ring_block *b) {
    const struct ring_info *info = ring_reader_info(r);
    if (ring_reader_load(r, chunk, UINT64_MAX, b) != 1)
        return;
    /* Of a long chunk its ends: what is between is read the same way. */
    for (uint32_t row = 0; row < b->rows; row += row < 64 || row + 65 > b->rows ? 1 : b->rows - row - 64)
        for (size_t column = 0; column <= info->n_columns; column++)
            fuzz_cell(b, column, row);
    if (info->time_column >= 0)
        (void)ring_block_time_us(b, b->rows - 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t *file = malloc(size ? size : 1);
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    struct err e;
    if (size < 1 || !file || fd < 0) {
        free(file);
        if (fd >= 0)
            (void)close(fd);
        return 0;
    }
    memcpy(file, data + 1, size - 1);
    if (data[0] % 2)
        fuzz_seal(file, size - 1);
    struct ring_reader *r = NULL;
    if (write(fd, file, size - 1) == (ssize_t)(size - 1))
        r = ring_reader_open_fd(fd, "fuzz", &e);
    else
        (void)close(fd);
    if (r) {
        struct ring_block b = {.data = NULL};
        size_t n;
        uint64_t oldest, next;
        const struct ring_chunk *chunks = ring_reader_chunks(r, &n);
        ring_reader_range(r, &oldest, &next);
        for (size_t i = 0; i < n && i < 16; i++)
            fuzz_chunk(r, &chunks[i], &b);
        ring_block_fini(&b);
        ring_reader_close(r);
    }
    free(file);
    return 0;
}
