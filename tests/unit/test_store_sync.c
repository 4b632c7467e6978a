/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of rings: what arrives is what was sent, however it is cut; gaps are counted; a peer that lies is refused; a copy is read
 * and queried like the ring itself.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/hash.h"
#include "store/ring/ring_format.h"
#include "store/ring/ring_sync.h"
#include "unit/store_job.h"
#include "unit/store_rows.h"

static struct ring_replica *copy_of(struct ring_reader *in) {
    struct err e;
    size_t len;
    const void *head = ring_reader_head(in, &len);
    struct ring_replica *copy = ring_replica_create(head, len, &e);
    if (!copy)
        fail_msg("%s", e.text);
    return copy;
}

/* One request and its answer: at most `pieces`. Whether there was anything. */
static bool exchange(struct ring_reader *in, struct ring_replica *copy, size_t max_bytes, int pieces) {
    struct ring_mark have;
    struct strbuf out;
    struct err e;
    strbuf_init(&out, 0);
    ring_replica_mark(copy, &have);
    assert_int_equal(ring_reader_refresh(in, NULL), 0);
    while (pieces-- > 0 && ring_sync_next(in, &have, max_bytes, &out) == 1)
        ;
    size_t len = out.len;
    if (ring_replica_apply(copy, strbuf_str(&out), len, &e) != 0)
        fail_msg("%s", e.text);
    strbuf_fini(&out);
    return len > 0;
}

static struct look look_at_copy(const struct ring_replica *copy) {
    struct err e;
    struct ring_reader *in = ring_reader_open_fd(ring_replica_open(copy), "copy", &e);
    if (!in)
        fail_msg("%s", e.text);
    struct look l = look_at(in);
    ring_reader_close(in);
    return l;
}

static void a_copy_follows_its_ring(void **state) {
    (void)state;
    int fd;
    struct ring *r = make(&fd, 256 * 1024);
    struct ring_reader *in = read_back(fd);
    struct ring_replica *copy = copy_of(in);
    assert_false(exchange(in, copy, RING_SYNC_MIN, 100));
    uint64_t n = 0;
    for (uint64_t round = 0; round < 400; round++) {
        for (uint64_t i = hash_mix(round) % 90; i > 0; i--)
            assert_int_equal(append(r, n++), 0);
        assert_int_equal(ring_flush(r), 0);
        /* Sometimes a piece, sometimes everything, sometimes by very small pieces. */
        (void)exchange(in, copy, round % 7 ? RING_SYNC_MIN : 2000, round % 3 ? 1 : 100);
    }
    while (exchange(in, copy, RING_SYNC_MIN, 2))
        ;
    struct look l = look_at_copy(copy);
    assert_int_equal(l.bad + l.unordered, 0);
    assert_int_equal(l.next, n);
    assert_int_equal(ring_replica_missing(copy), 0);
    struct look original = look_at(in);
    assert_true(l.first <= original.first + 1000);
    assert_false(exchange(in, copy, RING_SYNC_MIN, 2));
    ring_replica_close(copy);
    ring_reader_close(in);
    ring_close(r);
    close(fd);
}

static void what_was_overwritten_is_counted(void **state) {
    (void)state;
    int fd;
    struct ring *r = make(&fd, 128 * 1024);
    struct ring_reader *in = read_back(fd);
    struct ring_replica *copy = copy_of(in);
    uint64_t n = 0, missing = 0;
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 10; i++)
            (void)append(r, n++);
        (void)ring_flush(r);
        while (exchange(in, copy, RING_SYNC_MIN, 2))
            ;
        struct look before = look_at_copy(copy);
        for (int i = 0; i < 20000; i++)
            (void)append(r, n++);
        (void)ring_flush(r);
        assert_int_equal(ring_reader_refresh(in, NULL), 0);
        struct look original = look_at(in);
        missing += original.first - before.next;
        while (exchange(in, copy, RING_SYNC_MIN, 2))
            ;
    }
    struct look l = look_at_copy(copy);
    assert_int_equal(l.bad + l.unordered, 0);
    assert_int_equal(l.next, n);
    assert_true(missing > 0);
    assert_int_equal(ring_replica_missing(copy), missing);
    ring_replica_close(copy);
    ring_reader_close(in);
    ring_close(r);
    close(fd);
}

static void expect_piece_refused(struct ring_replica *copy, const void *data, size_t len, const char *why) {
    struct err e = {.text = ""};
    struct look before = look_at_copy(copy);
    assert_int_equal(ring_replica_apply(copy, data, len, &e), -1);
    assert_non_null(strstr(e.text, why));
    struct look after = look_at_copy(copy);
    assert_int_equal(after.rows, before.rows);
    assert_int_equal(after.bad, 0);
}

static void lying_pieces_are_refused(void **state) {
    (void)state;
    int fd;
    struct ring *r = make(&fd, 128 * 1024);
    struct ring_reader *in = read_back(fd);
    struct ring_replica *copy = copy_of(in);
    for (uint64_t n = 0; n < 50; n++)
        (void)append(r, n);
    (void)ring_flush(r);
    while (exchange(in, copy, RING_SYNC_MIN, 1))
        ;
    (void)append(r, 50);
    (void)ring_flush(r);
    assert_int_equal(ring_reader_refresh(in, NULL), 0);
    struct ring_mark have;
    struct strbuf out;
    ring_replica_mark(copy, &have);
    strbuf_init(&out, 0);
    assert_int_equal(ring_sync_next(in, &have, RING_SYNC_MIN, &out), 1);
    struct ring_piece good, p;
    memcpy(&good, out.data, sizeof good);
    for (size_t len = 1; len < out.len; len++)
        expect_piece_refused(copy, out.data, len, "cut short");
    static const struct {
        size_t member;
        uint32_t value;
    } lies[] = {
        {offsetof(struct ring_piece, row_from), 7},         {offsetof(struct ring_piece, row_to), 0x7fffffff},
        {offsetof(struct ring_piece, heap_to), 0x7fffffff}, {offsetof(struct ring_piece, heap_from), 1},
        {offsetof(struct ring_piece, first_seq), 1000},     {offsetof(struct ring_piece, base_us), 3},
        {offsetof(struct ring_piece, row_from), 0},         {offsetof(struct ring_piece, row_to), 50},
    };
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        p = good;
        memcpy((char *)&p + lies[i].member, &lies[i].value, sizeof lies[i].value);
        memcpy(out.data, &p, sizeof p);
        expect_piece_refused(copy, out.data, out.len, "does not fit");
    }
    memcpy(out.data, &good, sizeof good);
    assert_int_equal(ring_replica_apply(copy, out.data, out.len, NULL), 0);
    assert_int_equal(look_at_copy(copy).rows, 51);
    assert_int_equal(look_at_copy(copy).bad, 0);
    expect_piece_refused(copy, out.data, out.len, "does not fit"); /* twice the same */
    struct err e;
    assert_null(ring_replica_create("nonsense", 8, &e));
    strbuf_fini(&out);
    ring_replica_close(copy);
    ring_reader_close(in);
    ring_close(r);
    close(fd);
}

/* A mark comes from a peer too: whatever it says, what is sent is of the table. */
static void lying_marks_do_no_harm(void **state) {
    (void)state;
    int fd;
    struct ring *r = make(&fd, 128 * 1024);
    struct ring_reader *in = read_back(fd);
    for (uint64_t n = 0; n < 20000; n++)
        (void)append(r, n);
    (void)ring_flush(r);
    assert_int_equal(ring_reader_refresh(in, NULL), 0);
    size_t n_chunks;
    const struct ring_chunk *chunks = ring_reader_chunks(in, &n_chunks);
    static const uint32_t numbers[] = {0, 1, 2, 49, 1000, 0x7fffffff, UINT32_MAX};
    const size_t n = sizeof numbers / sizeof numbers[0];
    for (size_t i = 0; i < n * n * 3; i++) {
        struct ring_mark have = {.first_seq = chunks[i % 3 * (n_chunks / 3)].first_seq + (i % 5 == 0),
                                 .rows = numbers[i % n],
                                 .heap_used = numbers[i / n % n]};
        struct strbuf out;
        struct ring_piece p;
        strbuf_init(&out, 0);
        int rc = ring_sync_next(in, &have, RING_SYNC_MIN, &out);
        assert_true(rc == 0 || rc == 1);
        assert_true(out.len <= RING_SYNC_MIN + RING_MAX_CHUNK_TEXT);
        if (rc == 1) {
            memcpy(&p, out.data, sizeof p);
            assert_true(p.row_from < p.row_to && p.heap_from <= p.heap_to);
        }
        strbuf_fini(&out);
    }
    ring_reader_close(in);
    ring_close(r);
    close(fd);
}

static void a_copy_answers_queries(void **state) {
    (void)state;
    struct job j;
    struct err e;
    char path[128];
    job_make(&j, 4711, 2);
    job_samples(&j, 1700000000.0, 3000);
    (void)snprintf(path, sizeof path, "%s/python.samples.ring", j.dir);
    struct ring_reader *in = ring_reader_open(path, geteuid(), &e);
    struct ring_replica *copy = copy_of(in);
    while (exchange(in, copy, RING_SYNC_MIN, 3))
        ;
    struct sql *local = job_session(&j, 1, NAN), *remote = sql_open(&e);
    int fd = ring_replica_open(copy);
    struct sql_target t = {.pid = RING_INT_NULL, .rank = RING_INT_NULL, .ring_fds = &fd, .n_ring_fds = 1};
    assert_int_equal(sql_add_target(remote, &t, &e), 0);
    static const char *const queries[] = {
        "SELECT * FROM python.samples ORDER BY timestamp DESC LIMIT 50",
        "SELECT pid, rank, host, thread, gil, count(*), min(timestamp), max(timestamp) FROM samples GROUP BY "
        "thread, gil",
    };
    for (size_t i = 0; i < 2; i++) {
        char *rows = job_rows(local, queries[i]);
        job_expect(remote, queries[i], rows);
        free(rows);
    }
    sql_close(local);
    sql_close(remote);
    ring_replica_close(copy);
    ring_reader_close(in);
    job_remove(&j);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_follows_its_ring),  cmocka_unit_test(what_was_overwritten_is_counted),
        cmocka_unit_test(lying_pieces_are_refused), cmocka_unit_test(lying_marks_do_no_harm),
        cmocka_unit_test(a_copy_answers_queries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
