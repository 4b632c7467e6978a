/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: a recording that somebody else has made. The input is the file; what is read of it is opened as a query would, and every
 * value of the beginning of every table is looked at; what is made of one input in eight is made a target of SQL, too, which takes as
 * long as all the rest. Seeds, whole and hostile ones, are made by seeds.py.
 */
#include <fcntl.h>
#include <math.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "store/recording/archive.h"
#include "store/ring/ring_reader.h"

#define FUZZ_FDS 256
#define FUZZ_ROWS 64U

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_block(const struct ring_block *b) {
    volatile uint8_t sum = 0;
    for (uint32_t row = 0; row < b->rows && row < FUZZ_ROWS; row++)
        for (size_t column = 0; column < b->info->n_columns; column++) {
            struct ring_cell c;
            ring_block_get(b, column, row, &c);
            for (uint32_t i = 0; c.kind == RING_CELL_TEXT && i < c.len; i++)
                sum = (uint8_t)(sum + (uint8_t)c.s[i]);
            if (c.kind == RING_CELL_REAL && isnan(c.f))
                abort();
        }
}

/* What was made of a recording is a table as a process writes it, whatever the recording was. */
static void fuzz_ring(int fd) {
    struct err e;
    struct ring_block b = {.data = NULL};
    struct ring_reader *r = ring_reader_open_fd(fd, "a table", &e);
    size_t n;
    if (!r)
        abort();
    const struct ring_chunk *chunks = ring_reader_chunks(r, &n);
    for (size_t i = 0; i < n && i < 4; i++)
        if (ring_reader_load(r, &chunks[i], UINT64_MAX, &b) == 1)
            fuzz_block(&b);
    ring_block_fini(&b);
    ring_reader_close(r);
}

static void fuzz_target(struct sql *s, struct archive *a, size_t i) {
    int fds[FUZZ_FDS], copies[FUZZ_FDS];
    struct err e;
    size_t n = archive_take_rings(a, i, fds, FUZZ_FDS), copied = 0;
    for (size_t k = 0; k < n; k++) {
        int copy = s ? fcntl(fds[k], F_DUPFD_CLOEXEC, 0) : -1;
        if (copy >= 0)
            copies[copied++] = copy;
        fuzz_ring(fds[k]);
    }
    struct sql_target t = {.pid = RING_INT_NULL,
                           .rank = RING_INT_NULL,
                           .owner = RING_ANY_UID,
                           .ring_fds = copies,
                           .n_ring_fds = copied};
    if (s)
        (void)sql_add_target(s, &t, &e);
}

/* Fewer calls of the allocator, which with AddressSanitizer take a third of the time. */
static void fuzz_set_up(void) {
    static bool done;
    if (!done)
        (void)sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 1200, 400);
    if (!done)
        (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    done = true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static char path[64];
    char journal[80];
    struct err e = {.text = ""};
    fuzz_set_up();
    if (!path[0])
        (void)snprintf(path, sizeof path, "/dev/shm/fuzz-archive-%d.db", (int)getpid());
    (void)snprintf(journal, sizeof journal, "%s-journal", path);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return 0;
    bool written = write(fd, data, size) == (ssize_t)size;
    (void)close(fd);
    struct archive *a = written ? archive_open(path, &e) : NULL;
    if (written && !a && (!e.text[0] || strchr(e.text, '\n')))
        abort();
    struct sql *s = a && hash_bytes(data, size) % 8 == 0 ? sql_open(&e) : NULL;
    for (size_t i = 0; a && i < archive_targets(a); i++)
        fuzz_target(s, a, i);
    if (a && strlen(archive_note(a)) > 4096)
        abort();
    sql_close(s);
    archive_close(a);
    (void)unlink(path);
    (void)unlink(journal);
    return 0;
}
