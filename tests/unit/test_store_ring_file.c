/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of ring tables that are not as they should be: of other versions, damaged, shortened, of somebody else.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "store/ring/ring_format.h"
#include "unit/store_rows.h"

/* ---- other versions, damage ---- */

struct image {
    uint8_t *bytes;
    size_t n;
};

static struct image image_of(int fd) {
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    struct image i = {.n = (size_t)st.st_size, .bytes = malloc((size_t)st.st_size)};
    assert_non_null(i.bytes);
    assert_int_equal(pread(fd, i.bytes, i.n, 0), (ssize_t)i.n);
    return i;
}

static struct image written_image(void) {
    int fd;
    struct ring *r = make(&fd, 128 * 1024);
    for (uint64_t n = 0; n < 5000; n++)
        (void)append(r, n);
    ring_close(r);
    struct image i = image_of(fd);
    close(fd);
    return i;
}

static int file_of(const uint8_t *bytes, size_t n) {
    int fd = memory_file();
    assert_int_equal(write(fd, bytes, n), (ssize_t)n);
    return fd;
}

static void seal_head(uint8_t *bytes) {
    struct ring_file_head h;
    memcpy(&h, bytes, sizeof h);
    h.checksum = ring_head_checksum(bytes, h.head_bytes <= RING_MAX_HEAD ? h.head_bytes : sizeof h);
    memcpy(bytes, &h, sizeof h);
}

/* As a later version could write it: longer head, columns and entries, and a column of a type that this one does not know. */
static struct image newer_image(const struct image *old, uint16_t minor) {
    struct ring_file_head h;
    memcpy(&h, old->bytes, sizeof h);
    uint32_t old_columns = h.column_at, old_head = h.head_bytes;
    uint64_t old_entries = h.entry_at, old_chunks = h.chunk_at;
    struct image out = {.n = old->n + 65536};
    out.bytes = calloc(1, out.n);
    assert_non_null(out.bytes);
    memcpy(out.bytes, old->bytes, old_head);
    h.minor = minor;
    h.column_at = old_head;
    h.column_stride = sizeof(struct ring_file_column) + 16;
    h.head_bytes = old_head + h.n_columns * h.column_stride;
    h.entry_stride = sizeof(struct ring_entry) * 2;
    h.entry_at = (h.head_bytes + 63) / 64 * 64;
    h.chunk_at = (h.entry_at + (uint64_t)h.n_chunks * h.entry_stride + 4095) / 4096 * 4096;
    for (uint32_t i = 0; i < h.n_columns; i++) {
        struct ring_file_column c;
        memcpy(&c, old->bytes + old_columns + i * sizeof c, sizeof c);
        if (i == SMALL)
            c.type = 200;
        memcpy(out.bytes + h.column_at + i * h.column_stride, &c, sizeof c);
    }
    for (uint32_t i = 0; i < h.n_chunks; i++)
        memcpy(out.bytes + h.entry_at + (uint64_t)i * h.entry_stride,
               old->bytes + old_entries + i * sizeof(struct ring_entry), sizeof(struct ring_entry));
    memcpy(out.bytes + h.chunk_at, old->bytes + old_chunks, old->n - old_chunks);
    out.n = (size_t)h.chunk_at + (old->n - (size_t)old_chunks);
    memcpy(out.bytes, &h, sizeof h);
    seal_head(out.bytes);
    return out;
}

static void a_newer_minor_version_is_read(void **state) {
    (void)state;
    struct image old = written_image(), newer = newer_image(&old, 7);
    int fd = file_of(newer.bytes, newer.n);
    struct ring_reader *in = read_back(fd);
    struct ring_block b = {.data = NULL};
    struct ring_cell c;
    size_t n, rows = 0;
    const struct ring_chunk *chunks = ring_reader_chunks(in, &n);
    assert_int_equal(ring_reader_info(in)->minor, 7);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(ring_reader_load(in, &chunks[i], UINT64_MAX, &b), 1);
        for (uint32_t k = 0; k < b.rows; k++, rows++) {
            ring_block_get(&b, NUMBER, k, &c);
            assert_true(c.kind == RING_CELL_INT && (uint64_t)c.i == b.first_seq + k);
            ring_block_get(&b, SMALL, k, &c); /* of the unknown type */
            assert_int_equal(c.kind, RING_CELL_NULL);
        }
    }
    assert_true(rows > 1000);
    ring_block_fini(&b);
    ring_reader_close(in);
    close(fd);
    free(old.bytes);
    free(newer.bytes);
}

/* A column of a chunk, widened from 2 bits to 4, as the first version wrote it; unknown stays all bits. */
static void widen(const uint8_t *from, uint8_t *to, uint32_t rows) {
    for (uint32_t i = 0; i < rows; i++) {
        unsigned v = from[i / 4] >> i % 4 * 2 & 3U;
        to[i / 2] = (uint8_t)(to[i / 2] | (v == 3 ? 15U : v) << i % 2 * 4);
    }
}

/* As minor 0 wrote it: bools and enums of 4 bits. They lie after what the chunks had. */
static struct image older_image(const struct image *now) {
    static const unsigned narrow[] = {COLOUR, ODD};
    struct ring_file_head h;
    memcpy(&h, now->bytes, sizeof h);
    uint32_t chunk = h.chunk_bytes, room = h.chunk_rows / 2;
    struct image out = {.n = (size_t)h.chunk_at + (size_t)h.n_chunks * (chunk + 2 * room)};
    out.bytes = calloc(1, out.n);
    assert_non_null(out.bytes);
    assert_int_equal(room % 8 + chunk % 8, 0);
    memcpy(out.bytes, now->bytes, (size_t)h.chunk_at);
    h.minor = 0;
    h.chunk_bytes = chunk + 2 * room;
    for (uint32_t k = 0; k < 2; k++) {
        struct ring_file_column c;
        uint8_t *at = out.bytes + h.column_at + (size_t)narrow[k] * h.column_stride;
        memcpy(&c, at, sizeof c);
        assert_int_equal(c.bits, 2);
        for (uint32_t i = 0; i < h.n_chunks; i++)
            widen(now->bytes + h.chunk_at + (size_t)i * chunk + c.data_at,
                  out.bytes + h.chunk_at + (size_t)i * h.chunk_bytes + chunk + (size_t)k * room,
                  h.chunk_rows);
        c.type = narrow[k] == ODD ? RING_BOOL : RING_ENUM;
        c.bits = 4;
        c.data_at = chunk + k * room;
        memcpy(at, &c, sizeof c);
    }
    for (uint32_t i = 0; i < h.n_chunks; i++)
        memcpy(out.bytes + h.chunk_at + (size_t)i * h.chunk_bytes,
               now->bytes + h.chunk_at + (size_t)i * chunk, chunk);
    memcpy(out.bytes, &h, sizeof h);
    seal_head(out.bytes);
    return out;
}

static void wider_columns_of_the_first_version_are_read(void **state) {
    (void)state;
    struct image now = written_image(), older = older_image(&now);
    int fd = file_of(now.bytes, now.n), old_fd = file_of(older.bytes, older.n);
    struct ring_reader *in = read_back(fd), *old = read_back(old_fd);
    struct look wanted = look_at(in), have = look_at(old);
    assert_int_equal(ring_reader_info(old)->columns[ODD].bits, 4);
    assert_int_equal(ring_reader_info(old)->columns[COLOUR].type, RING_ENUM);
    assert_int_equal(have.bad + have.unordered, 0);
    assert_true(have.rows > 1000 && have.rows == wanted.rows);
    ring_reader_close(in);
    ring_reader_close(old);
    close(fd);
    close(old_fd);
    free(now.bytes);
    free(older.bytes);
}

static void expect_refused(const uint8_t *bytes, size_t n, const char *why) {
    struct err e = {.code = ERR_OK};
    struct ring_reader *in = ring_reader_open_fd(file_of(bytes, n), "a.ring", &e);
    if (in)
        fail_msg("accepted, but should say: %s", why);
    if (!strstr(e.text, why) || !strstr(e.text, "a.ring"))
        fail_msg("says: %s; not: %s", e.text, why);
}

static void foreign_files_are_refused_in_one_line(void **state) {
    (void)state;
    struct image i = written_image();
    struct ring_file_head h;
    memcpy(&h, i.bytes, sizeof h);
    struct ring_file_head other = h;
    expect_refused(i.bytes, 0, "not a ring table");
    expect_refused(i.bytes, 100, "not a ring table");
    expect_refused(i.bytes, sizeof h, "damaged");
    expect_refused(i.bytes, (size_t)h.entry_at + 10, "cut short");
    other.major = RING_MAJOR + 1;
    memcpy(i.bytes, &other, sizeof other);
    expect_refused(i.bytes, i.n, "has format 2");
    other = h;
    other.byte_order = __builtin_bswap32(RING_BYTE_ORDER);
    memcpy(i.bytes, &other, sizeof other);
    expect_refused(i.bytes, i.n, "byte order");
    memcpy(i.bytes, &h, sizeof h);
    i.bytes[h.help_at] ^= 1; /* one bit of a text */
    expect_refused(i.bytes, i.n, "damaged");
    i.bytes[h.help_at] ^= 1;
    memset(i.bytes, 'x', 8);
    expect_refused(i.bytes, i.n, "not a ring table");
    free(i.bytes);
}

/* A column is as wide as its type says, or the file is not believed. */
static void columns_of_a_wrong_width_are_refused(void **state) {
    (void)state;
    struct image i = written_image();
    struct ring_file_head h;
    struct ring_file_column was, c;
    memcpy(&h, i.bytes, sizeof h);
    uint8_t *at = i.bytes + h.column_at + (size_t)ODD * h.column_stride;
    memcpy(&was, at, sizeof was);
    static const uint8_t wrong[][2] = {
        {RING_BOOL, 2}, {RING_ENUM, 2}, {RING_FILE_FLAG, 4}, {RING_FILE_FEW, 1}, {RING_FILE_FLAG, 0}};
    for (size_t k = 0; k < sizeof wrong / sizeof wrong[0]; k++) {
        c = was;
        c.type = wrong[k][0];
        c.bits = wrong[k][1];
        memcpy(at, &c, sizeof c);
        seal_head(i.bytes);
        expect_refused(i.bytes, i.n, "damaged");
    }
    free(i.bytes);
}

/* A description that lies, with a right checksum, is found by its bounds. */
static void lying_descriptions_are_refused(void **state) {
    (void)state;
    static const size_t members[] = {
        offsetof(struct ring_file_head, column_at),     offsetof(struct ring_file_head, n_columns),
        offsetof(struct ring_file_head, column_stride), offsetof(struct ring_file_head, n_chunks),
        offsetof(struct ring_file_head, chunk_rows),    offsetof(struct ring_file_head, chunk_bytes),
        offsetof(struct ring_file_head, heap_at),       offsetof(struct ring_file_head, heap_bytes),
        offsetof(struct ring_file_head, time_column),   offsetof(struct ring_file_head, name_at),
        offsetof(struct ring_file_head, host_at),
    };
    struct image i = written_image();
    for (size_t m = 0; m < sizeof members / sizeof members[0]; m++) {
        uint32_t was, huge = 0x7ffffff0U;
        memcpy(&was, i.bytes + members[m], 4);
        memcpy(i.bytes + members[m], &huge, 4);
        seal_head(i.bytes);
        expect_refused(i.bytes, i.n, "damaged");
        memcpy(i.bytes + members[m], &was, 4);
    }
    free(i.bytes);
}

static void damaged_chunks_are_left_out(void **state) {
    (void)state;
    struct image i = written_image();
    struct ring_file_head h;
    memcpy(&h, i.bytes, sizeof h);
    int fd = file_of(i.bytes, i.n);
    struct ring_reader *in = read_back(fd);
    uint64_t all = look_at(in).rows;
    size_t n;
    const struct ring_chunk *chunks = ring_reader_chunks(in, &n);
    uint32_t rows = chunks[1].rows, slot = chunks[1].slot;
    i.bytes[h.entry_at + (size_t)slot * h.entry_stride + 9] ^= 4; /* its checksum does not fit any more */
    ring_reader_close(in);
    close(fd);
    fd = file_of(i.bytes, i.n);
    in = read_back(fd);
    assert_int_equal(look_at(in).rows, all - rows);
    assert_int_equal(ring_reader_lost(in), 1);
    ring_reader_close(in);
    /* The file loses its end under the reader's hands. */
    in = read_back(fd);
    (void)ring_reader_chunks(in, &n);
    assert_int_equal(ftruncate(fd, (off_t)(h.chunk_at + h.chunk_bytes / 2)), 0);
    struct look l = look_at(in);
    assert_int_equal(l.bad, 0);
    assert_true(l.rows < all && ring_reader_lost(in) >= n - 1);
    ring_reader_close(in);
    close(fd);
    free(i.bytes);
}

static void links_and_foreign_owners_are_refused(void **state) {
    (void)state;
    char dir[] = "/tmp/ring-test-XXXXXX", file[64], link[64];
    struct err e;
    assert_non_null(mkdtemp(dir));
    (void)snprintf(file, sizeof file, "%s/a.ring", dir);
    (void)snprintf(link, sizeof link, "%s/b.ring", dir);
    int fd = open(file, O_RDWR | O_CREAT, 0600);
    ring_close(ring_create(fd, &all_types, &owner, 128 * 1024, &e));
    assert_int_equal(symlink(file, link), 0);
    struct ring_reader *in = ring_reader_open(file, geteuid(), &e);
    assert_non_null(in);
    ring_reader_close(in);
    assert_null(ring_reader_open(link, geteuid(), &e));
    assert_non_null(strstr(e.text, "symbolic link"));
    assert_null(ring_reader_open(file, geteuid() + 1, &e));
    assert_non_null(strstr(e.text, "belongs to user"));
    assert_null(ring_reader_open(dir, geteuid(), &e));
    assert_non_null(strstr(e.text, "not a file"));
    (void)unlink(link);
    assert_int_equal(mkfifo(link, 0600), 0);
    assert_null(ring_reader_open(link, geteuid(), &e));
    (void)unlink(link);
    (void)unlink(file);
    (void)rmdir(dir);
}

static void a_file_cut_under_the_writer_is_made_whole(void **state) {
    (void)state;
    int fd;
    struct ring *r = make(&fd, 128 * 1024);
    uint64_t n = 0;
    for (; n < 3000; n++)
        (void)append(r, n);
    (void)ring_flush(r);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(ftruncate(fd, round == 2 ? 9000 : 0), 0);
        for (int i = 0; i < 40; i++, n++)
            assert_int_equal(append(r, n), 0);
        assert_int_equal(ring_flush(r), 0);
        struct ring_reader *in = read_back(fd);
        struct look l = look_at(in);
        assert_int_equal(l.bad + l.unordered, 0);
        assert_int_equal(l.next, n);
        ring_reader_close(in);
    }
    for (; n < 20000; n++)
        (void)append(r, n);
    (void)ring_flush(r);
    struct ring_reader *in = read_back(fd);
    struct look l = look_at(in);
    assert_int_equal(l.bad + l.unordered, 0);
    assert_int_equal(l.next, n);
    struct ring_counts counts;
    ring_get_counts(r, &counts);
    assert_int_equal(counts.repaired, 3);
    ring_reader_close(in);
    ring_close(r);
    close(fd);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_newer_minor_version_is_read),
        cmocka_unit_test(wider_columns_of_the_first_version_are_read),
        cmocka_unit_test(columns_of_a_wrong_width_are_refused),
        cmocka_unit_test(foreign_files_are_refused_in_one_line),
        cmocka_unit_test(lying_descriptions_are_refused),
        cmocka_unit_test(damaged_chunks_are_left_out),
        cmocka_unit_test(links_and_foreign_owners_are_refused),
        cmocka_unit_test(a_file_cut_under_the_writer_is_made_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
