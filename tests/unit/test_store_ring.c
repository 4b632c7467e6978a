/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ring tables: what goes in comes out, wraps, expires, is cut; readers beside a writer; writers killed at any moment.
 */
#include <math.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/hash.h"
#include "store/ring/ring_tables.h"
#include "unit/store_rows.h"

/* A sanitised process takes several times as long to begin. */
#ifdef __SANITIZE_ADDRESS__
#define KILLS_DEFAULT 200
#else
#define KILLS_DEFAULT 1000
#endif

static void every_type_comes_back(void **state) {
    (void)state;
    int fd;
    struct ring *r = make(&fd, 256 * 1024);
    for (uint64_t n = 0; n < 1500; n++)
        assert_int_equal(append(r, n), 0);
    assert_int_equal(ring_flush(r), 0);
    struct ring_reader *in = read_back(fd);
    const struct ring_info *info = ring_reader_info(in);
    assert_string_equal(info->name, "test.all");
    assert_string_equal(info->alias, "everything");
    assert_string_equal(info->help, "one of each");
    assert_string_equal(info->host, "node7");
    assert_int_equal(info->pid, 4711);
    assert_int_equal(info->rank, 3);
    assert_int_equal(info->n_columns, COUNT);
    assert_string_equal(info->columns[HALF].unit, "ms");
    assert_string_equal(info->columns[COLOUR].help, "of three");
    assert_int_equal(info->columns[COLOUR].n_labels, 3);
    struct look l = look_at(in);
    assert_int_equal(l.rows, 1500);
    assert_int_equal(l.first, 0);
    assert_int_equal(l.bad + l.unordered, 0);
    ring_reader_close(in);
    ring_close(r);
    close(fd);
}

static void what_is_not_flushed_is_not_there(void **state) {
    (void)state;
    int fd;
    struct ring *r = make(&fd, 256 * 1024);
    struct ring_reader *in = read_back(fd);
    for (uint64_t n = 0; n < 7; n++)
        (void)append(r, n);
    assert_int_equal(look_at(in).rows, 0);
    (void)ring_flush(r);
    assert_int_equal(ring_reader_refresh(in, NULL), 0);
    assert_int_equal(look_at(in).rows, 7);
    (void)append(r, 7); /* part of a byte is written twice */
    (void)append(r, 8);
    (void)ring_flush(r);
    assert_int_equal(ring_reader_refresh(in, NULL), 0);
    struct look l = look_at(in);
    assert_int_equal(l.rows, 9);
    assert_int_equal(l.bad, 0);
    ring_reader_close(in);
    ring_close(r);
    close(fd);
}

/* Calls of this process that have written, or -1. */
static int64_t writes(void) {
    char line[128];
    long long n = -1;
    FILE *f = fopen("/proc/self/io", "re");
    while (f && fgets(line, sizeof line, f))
        (void)sscanf(line, "syscw: %lld", &n);
    if (f)
        (void)fclose(f);
    return n;
}

/* All columns in one call, because they lie close together; new strings in one; the number of rows in one. */
static void rows_together_are_few_writes(void **state) {
    (void)state;
    int fd;
    struct ring *r = make(&fd, 256 * 1024);
    if (writes() < 0)
        skip();
    (void)append(r, 0);
    (void)ring_flush(r);
    for (uint64_t n = 1; n < 40; n += 3) {
        int64_t before = writes();
        for (uint64_t k = 0; k < 3; k++)
            (void)append(r, n + k);
        assert_int_equal(ring_flush(r), 0);
        assert_in_range(writes() - before, 2, 3);
    }
    struct ring_reader *in = read_back(fd);
    struct look l = look_at(in);
    assert_int_equal(l.rows, 40);
    assert_int_equal(l.bad, 0);
    ring_reader_close(in);
    ring_close(r);
    close(fd);
}

static void the_oldest_rows_make_room(void **state) {
    (void)state;
    int fd;
    struct ring *r = make(&fd, 128 * 1024);
    struct ring_counts counts;
    for (uint64_t n = 0; n < 50000; n++)
        assert_int_equal(append(r, n), 0);
    (void)ring_flush(r);
    struct ring_reader *in = read_back(fd);
    struct look l = look_at(in);
    uint64_t oldest, next;
    ring_reader_range(in, &oldest, &next);
    ring_get_counts(r, &counts);
    assert_int_equal(l.bad + l.unordered, 0);
    assert_int_equal(l.next, 50000);
    assert_true(l.first > 0 && l.rows == l.next - l.first);
    assert_int_equal(oldest, l.first);
    assert_int_equal(next, 50000);
    assert_int_equal(counts.rows, 50000);
    assert_int_equal(counts.oldest_seq, l.first);
    assert_true(counts.file_bytes <= 128 * 1024);
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    assert_true((uint64_t)st.st_size == counts.file_bytes &&
                (uint64_t)st.st_blocks * 512 >= counts.file_bytes);
    ring_reader_close(in);
    ring_close(r);
    close(fd);
}

static void rows_expire_by_chunk(void **state) {
    (void)state;
    int fd;
    struct ring *r = make(&fd, 128 * 1024);
    for (uint64_t n = 0; n < 2000; n++)
        (void)append(r, n);
    (void)ring_flush(r);
    struct ring_reader *in = read_back(fd);
    size_t n;
    const struct ring_chunk *chunks = ring_reader_chunks(in, &n);
    assert_true(n > 3);
    uint64_t kept_from = chunks[2].first_seq;
    ring_expire(r, (double)chunks[1].max_us / 1e6 + 1e-4);
    assert_int_equal(ring_reader_refresh(in, NULL), 0);
    struct look l = look_at(in);
    assert_int_equal(l.first, kept_from);
    assert_int_equal(l.next, 2000);
    assert_int_equal(l.bad, 0);
    ring_expire(r, T0 + 1e6); /* all but the chunk being filled */
    (void)append(r, 2000);
    (void)ring_flush(r);
    assert_int_equal(ring_reader_refresh(in, NULL), 0);
    l = look_at(in);
    assert_int_equal(l.next, 2001);
    assert_int_equal(l.bad, 0);
    (void)ring_reader_chunks(in, &n);
    assert_int_equal(n, 1);
    for (uint64_t k = 2001; k < 9000; k++)
        (void)append(r, k);
    (void)ring_flush(r);
    assert_int_equal(ring_reader_refresh(in, NULL), 0);
    l = look_at(in);
    assert_int_equal(l.bad + l.unordered, 0);
    assert_int_equal(l.next, 9000);
    ring_reader_close(in);
    ring_close(r);
    close(fd);
}

/* ---- narrow columns ---- */

static const char *const one_label[] = {"only", NULL};
static const char *const three_labels[] = {"a", "b", "c", NULL};
static const char *const four_labels[] = {"a", "b", "c", "d", NULL};
static const char *const most_labels[] = {"a", "b", "c", "d", "e", "f", "g", "h",
                                          "i", "j", "k", "l", "m", "n", "o", NULL};
static const struct ring_column_def narrow_columns[] = {
    {"flag", RING_BOOL, NULL, NULL, NULL},          {"one", RING_ENUM, NULL, NULL, one_label},
    {"three", RING_ENUM, NULL, NULL, three_labels}, {"four", RING_ENUM, NULL, NULL, four_labels},
    {"most", RING_ENUM, NULL, NULL, most_labels},   {.name = NULL}};
static const struct { unsigned bits, values; } narrow[] = {{2, 2}, {2, 1}, {2, 3}, {4, 4}, {4, 15}};
#define NARROW (sizeof narrow / sizeof narrow[0])

/* Of row `n`: a value of the column, or how many there are: unknown. */
static int64_t narrow_value(size_t column, uint64_t n) {
    return (int64_t)(hash_mix(n * NARROW + column) % (narrow[column].values + 1));
}

static void expect_narrow(struct ring_reader *in, uint64_t rows) {
    struct ring_block b = {.data = NULL};
    size_t n;
    uint64_t seen = 0;
    assert_int_equal(ring_reader_refresh(in, NULL), 0);
    const struct ring_chunk *chunks = ring_reader_chunks(in, &n);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(ring_reader_load(in, &chunks[i], UINT64_MAX, &b), 1);
        for (uint32_t row = 0; row < b.rows; row++, seen++)
            for (size_t k = 0; k < NARROW; k++) {
                struct ring_cell c;
                int64_t v = narrow_value(k, b.first_seq + row);
                ring_block_get(&b, k, row, &c);
                if (v == narrow[k].values)
                    assert_int_equal(c.kind, RING_CELL_NULL);
                else if (k == 0)
                    assert_true(c.kind == RING_CELL_INT && c.i == v);
                else
                    assert_true(text_is(&c, k == 1 ? "only" : most_labels[v]));
            }
    }
    assert_int_equal(seen, rows);
    ring_block_fini(&b);
}

/* Flushed after every number of rows up to a byte's and more, so that each way of sharing a byte is written and written again. */
static void few_values_take_two_bits(void **state) {
    (void)state;
    const struct ring_table_def def = {.name = "test.narrow", .columns = narrow_columns};
    struct err e;
    int fd = memory_file();
    struct ring *r = ring_create(dup(fd), &def, &owner, RING_MIN_BYTES * 4, &e);
    struct ring_reader *in = read_back(fd);
    const struct ring_info *info = ring_reader_info(in);
    assert_non_null(r);
    for (size_t k = 0; k < NARROW; k++) {
        assert_int_equal(info->columns[k].bits, narrow[k].bits);
        assert_int_equal(info->columns[k].type, narrow_columns[k].type);
    }
    union ring_value v[NARROW];
    uint64_t n = 0;
    for (uint64_t batch = 1; batch < 20; batch++) {
        for (uint64_t i = 0; i < batch; i++, n++) {
            for (size_t k = 0; k < NARROW; k++) {
                v[k].i = narrow_value(k, n);
                if (v[k].i == narrow[k].values)
                    v[k].i = n % 3 == 0 ? RING_INT_NULL : n % 3 == 1 ? -1 : 16 + (int64_t)n;
            }
            assert_int_equal(ring_append(r, v), 0);
        }
        assert_int_equal(ring_flush(r), 0);
        expect_narrow(in, n);
    }
    ring_reader_close(in);
    ring_close(r);
    close(fd);
}

/* What a budget of 16 bytes a sample in the file, with everything beside the rows, is made of. */
static void a_sample_takes_fifteen_bytes(void **state) {
    (void)state;
    struct err e;
    int fd = memory_file();
    struct ring *r = ring_create(dup(fd), &RING_TABLES[RING_SAMPLES], &owner, 1 << 20, &e);
    struct ring_reader *in = read_back(fd);
    const struct ring_info *info = ring_reader_info(in);
    unsigned bits = 0;
    for (size_t i = 0; i < info->n_columns; i++)
        bits += info->columns[i].bits;
    assert_int_equal(bits, 15 * 8);
    ring_reader_close(in);
    ring_close(r);
    close(fd);
}

/* ---- values at the edges ---- */

static void get(struct ring_reader *in, uint32_t row, size_t column, struct ring_cell *out,
                struct ring_block *b) {
    size_t n;
    const struct ring_chunk *chunks = ring_reader_chunks(in, &n);
    assert_true(n > 0);
    assert_int_equal(ring_reader_load(in, &chunks[n - 1], UINT64_MAX, b), 1);
    ring_block_get(b, column, row, out);
}

static void unknown_values_stay_unknown(void **state) {
    (void)state;
    int fd;
    struct ring *r = make(&fd, 128 * 1024);
    union ring_value v[COUNT] = {
        [TIMESTAMP].f = T0,      [NUMBER].i = RING_INT_NULL, [HALF].f = NAN,  [SMALL].i = 1LL << 31,
        [NATURAL].i = -1,        [ID].i = 1LL << 32,         [NAME].s = NULL, [COLOUR].i = 15,
        [ODD].i = RING_INT_NULL, [CHECK].i = RING_INT_NULL};
    assert_int_equal(ring_append(r, v), 0);
    v[COLOUR].i = 3; /* a number without a label */
    v[ODD].i = 2;
    v[SMALL].i = INT32_MIN;
    assert_int_equal(ring_append(r, v), 0);
    v[TIMESTAMP].f = NAN;
    assert_int_equal(ring_append(r, v), -1);
    v[TIMESTAMP].f = 1e300;
    assert_int_equal(ring_append(r, v), -1);
    (void)ring_flush(r);
    struct ring_reader *in = read_back(fd);
    struct ring_block b = {.data = NULL};
    struct ring_cell c;
    for (uint32_t row = 0; row < 2; row++)
        for (size_t i = 1; i < COUNT; i++) {
            get(in, row, i, &c, &b);
            assert_int_equal(c.kind, RING_CELL_NULL);
        }
    struct ring_counts counts;
    ring_get_counts(r, &counts);
    assert_int_equal(counts.refused, 2);
    assert_int_equal(counts.rows, 2);
    ring_block_fini(&b);
    ring_reader_close(in);
    ring_close(r);
    close(fd);
}

static void extreme_values_fit(void **state) {
    (void)state;
    int fd;
    struct ring *r = make(&fd, 128 * 1024);
    union ring_value v[COUNT] = {[TIMESTAMP].f = T0 + 0.123456,
                                 [NUMBER].i = INT64_MAX,
                                 [HALF].f = -INFINITY,
                                 [SMALL].i = INT32_MAX,
                                 [NATURAL].i = UINT32_MAX - 1,
                                 [ID].i = 0,
                                 [NAME].s = ""};
    assert_int_equal(ring_append(r, v), 0);
    (void)ring_flush(r);
    struct ring_reader *in = read_back(fd);
    struct ring_block b = {.data = NULL};
    struct ring_cell c;
    get(in, 0, NUMBER, &c, &b);
    assert_true(c.kind == RING_CELL_INT && c.i == INT64_MAX);
    get(in, 0, HALF, &c, &b);
    assert_true(c.kind == RING_CELL_REAL && isinf(c.f));
    get(in, 0, NATURAL, &c, &b);
    assert_true(c.i == UINT32_MAX - 1);
    get(in, 0, ID, &c, &b);
    assert_true(c.kind == RING_CELL_INT && c.i == 0);
    get(in, 0, NAME, &c, &b);
    assert_true(c.kind == RING_CELL_TEXT && c.len == 0);
    get(in, 0, TIMESTAMP, &c, &b);
    assert_true(fabs(c.f - (T0 + 0.123456)) < 1e-6);
    ring_block_fini(&b);
    ring_reader_close(in);
    ring_close(r);
    close(fd);
}

static void a_clock_set_back_or_far_ahead_loses_nothing(void **state) {
    (void)state;
    static const double at[] = {T0, T0 + 3600, T0 - 86400, T0 + 5, 0, T0 + 1e9, T0};
    int fd;
    struct ring *r = make(&fd, 256 * 1024);
    union ring_value v[COUNT];
    char name[64];
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        row_of(i, v, name);
        v[TIMESTAMP].f = at[i];
        assert_int_equal(ring_append(r, v), 0);
    }
    (void)ring_flush(r);
    struct ring_reader *in = read_back(fd);
    struct ring_block b = {.data = NULL};
    size_t n, seen = 0;
    const struct ring_chunk *chunks = ring_reader_chunks(in, &n);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(ring_reader_load(in, &chunks[i], UINT64_MAX, &b), 1);
        for (uint32_t k = 0; k < b.rows; k++, seen++) {
            struct ring_cell c;
            ring_block_get(&b, TIMESTAMP, k, &c);
            assert_true(fabs(c.f - at[seen]) < 1e-5);
            assert_true(ring_block_time_us(&b, k) >= chunks[i].min_us &&
                        ring_block_time_us(&b, k) <= chunks[i].max_us);
        }
    }
    assert_int_equal(seen, sizeof at / sizeof at[0]);
    ring_block_fini(&b);
    ring_reader_close(in);
    ring_close(r);
    close(fd);
}

static void strings_are_bounded_and_cut_between_characters(void **state) {
    (void)state;
    int fd;
    struct ring *r = make(&fd, RING_MIN_BYTES * 4);
    union ring_value v[COUNT];
    char name[64], *big = malloc(100001);
    assert_non_null(big);
    for (size_t i = 0; i + 1 < 100000; i += 2)
        memcpy(big + i, "\xc3\xa4", 2);
    big[100000] = '\0';
    /* Every row another long string: chunks end for their strings, not for their rows. */
    for (uint64_t n = 0; n < 500; n++) {
        row_of(n, v, name);
        big[0] = (char)('A' + n % 26);
        big[1] = (char)('a' + n / 26);
        v[NAME].s = big;
        assert_int_equal(ring_append(r, v), 0);
    }
    (void)ring_flush(r);
    struct ring_counts counts;
    ring_get_counts(r, &counts);
    assert_int_equal(counts.cut, 500);
    assert_true(counts.memory_bytes < 64 * 1024);
    struct ring_reader *in = read_back(fd);
    struct ring_block b = {.data = NULL};
    struct ring_cell c;
    get(in, 0, NAME, &c, &b);
    assert_true(c.kind == RING_CELL_TEXT && c.len > 200 && c.len <= RING_MAX_TEXT);
    assert_int_equal(c.len % 2, 0);
    ring_block_fini(&b);
    ring_reader_close(in);
    ring_close(r);
    close(fd);
    free(big);
}

static void a_definition_that_cannot_be_is_refused(void **state) {
    (void)state;
    static const struct ring_column_def twice[] = {
        {"a", RING_TIMESTAMP, NULL, NULL, NULL}, {"b", RING_TIMESTAMP, NULL, NULL, NULL}, {.name = NULL}};
    static const struct ring_column_def none[] = {{.name = NULL}};
    struct ring_table_def def = {.name = "t", .columns = twice};
    struct err e;
    assert_null(ring_create(memory_file(), &def, &owner, 1 << 20, &e));
    def.columns = none;
    assert_null(ring_create(memory_file(), &def, &owner, 1 << 20, &e));
    assert_null(ring_create(memory_file(), &all_types, &owner, 1000, &e));
    assert_non_null(strstr(e.text, "too little"));
}

/* ---- a writer beside readers, and its death ---- */

struct shared {
    _Atomic uint64_t flushed, appended;
};

static struct shared *share(void) {
    struct shared *s = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(s != MAP_FAILED);
    return s;
}

/* Append and flush until killed. */
static void write_for_ever(int fd, struct shared *s, uint64_t seed, uint64_t most) {
    struct err e;
    struct ring *r = ring_create(fd, &all_types, &owner, 96 * 1024, &e);
    if (!r)
        _exit(3);
    for (uint64_t n = 0; n < most;) {
        uint64_t batch = 1 + hash_mix(seed + n) % 97;
        for (uint64_t i = 0; i < batch; i++, n++)
            if (append(r, n) != 0)
                _exit(4);
        if (ring_flush(r) != 0)
            _exit(5);
        atomic_store(&s->flushed, n);
        if (n % 1024 < 97)
            ring_expire(r, T0 + (double)n * 0.0005 - 0.5);
    }
    _exit(0);
}

static void readers_beside_a_writer_see_whole_rows(void **state) {
    (void)state;
    struct shared *s = share();
    int fd = memory_file();
    pid_t writer = fork();
    if (writer == 0)
        write_for_ever(fd, s, 1, 2000000);
    assert_true(writer > 0);
    while (atomic_load(&s->flushed) == 0)
        sched_yield();
    struct ring_reader *in = read_back(fd);
    uint64_t looks = 0, rows = 0, last = 0;
    int status = 0;
    while (waitpid(writer, &status, WNOHANG) == 0) {
        uint64_t before = atomic_load(&s->flushed);
        assert_int_equal(ring_reader_refresh(in, NULL), 0);
        struct look l = look_at(in);
        if (l.bad || l.unordered)
            fail_msg("%llu bad rows of %llu, look %llu", (unsigned long long)l.bad,
                     (unsigned long long)l.rows, (unsigned long long)looks);
        uint64_t oldest, next;
        ring_reader_range(in, &oldest, &next);
        assert_true(next >= before && next >= last);
        last = next;
        rows += l.rows;
        looks++;
    }
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_true(looks > 0 && rows > 0);
    ring_reader_close(in);
    close(fd);
    munmap(s, 4096);
}

/* One life: a writer is killed after a random number of looks; what it had flushed is there, and whole. */
static void kill_one(struct shared *s, uint64_t seed) {
    atomic_store(&s->flushed, 0);
    int fd = memory_file();
    pid_t writer = fork();
    if (writer == 0)
        write_for_ever(fd, s, seed, UINT64_MAX);
    assert_true(writer > 0);
    /* Some are killed before the file is a table, most later. */
    uint64_t wanted = hash_mix(seed) % 8 == 0 ? 0 : hash_mix(seed + 7) % 3000;
    uint64_t spins = hash_mix(seed + 9) % 2000;
    while (atomic_load(&s->flushed) < wanted)
        (void)usleep(20); /* polled often, but the processor is the writer's */
    for (volatile uint64_t i = 0; i < spins; i++)
        ;
    kill(writer, SIGKILL);
    int status;
    assert_int_equal(waitpid(writer, &status, 0), writer);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    uint64_t flushed = atomic_load(&s->flushed);
    struct err e;
    struct ring_reader *in = ring_reader_open_fd(fd, "ring", &e);
    if (!in) {
        if (flushed > 0)
            fail_msg("seed %llu: %s", (unsigned long long)seed, e.text);
        return;
    }
    struct look l = look_at(in);
    if (l.bad || l.unordered || (flushed > 0 && l.next < flushed) || ring_reader_lost(in) > 0)
        fail_msg("seed %llu: %llu bad rows, %llu out of order, next %llu, flushed %llu, lost %llu",
                 (unsigned long long)seed, (unsigned long long)l.bad, (unsigned long long)l.unordered,
                 (unsigned long long)l.next, (unsigned long long)flushed,
                 (unsigned long long)ring_reader_lost(in));
    ring_reader_close(in);
}

static void a_killed_writer_leaves_whole_rows(void **state) {
    (void)state;
    const char *more = getenv("PROBING_RING_KILLS");
    long kills = more ? atol(more) : KILLS_DEFAULT;
    struct shared *s = share();
    for (long i = 0; i < kills; i++)
        kill_one(s, (uint64_t)i + 1);
    munmap(s, 4096);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_comes_back),
        cmocka_unit_test(what_is_not_flushed_is_not_there),
        cmocka_unit_test(rows_together_are_few_writes),
        cmocka_unit_test(the_oldest_rows_make_room),
        cmocka_unit_test(rows_expire_by_chunk),
        cmocka_unit_test(few_values_take_two_bits),
        cmocka_unit_test(a_sample_takes_fifteen_bytes),
        cmocka_unit_test(unknown_values_stay_unknown),
        cmocka_unit_test(extreme_values_fit),
        cmocka_unit_test(a_clock_set_back_or_far_ahead_loses_nothing),
        cmocka_unit_test(strings_are_bounded_and_cut_between_characters),
        cmocka_unit_test(a_definition_that_cannot_be_is_refused),
        cmocka_unit_test(readers_beside_a_writer_see_whole_rows),
        cmocka_unit_test(a_killed_writer_leaves_whole_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
