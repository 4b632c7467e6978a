/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring: what keeping history costs: rows appended a second by one thread, with the writes to the file; a flush of a tenth of a second's samples; a
 * row's size; reading it all back; sending it and putting it together again.
 *
 * Figures are CPU time of the thread, the best and the median of several rounds: other work on the machine does not count.
 * Prints JSON; with --check the exit status tells whether the budgets were kept.
 *
 * usage: ring [--check]
 */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "store/ring/ring_reader.h"
#include "store/ring/ring_sync.h"
#include "store/ring/ring_tables.h"

#define RING_ROUNDS 9
#define RING_ROWS 2000000
#define RING_BYTES ((size_t)16 * 1024 * 1024)
#define RING_FLUSHES 2000
#define RING_FLUSH_ROWS 50 /* five threads at 100 Hz, ten times a second */
#define RING_BUDGET_ROWS_S 20e6
#define RING_BUDGET_BYTES 16.0

static const char *const ring_threads[] = {"MainThread", "pin_memory", "worker-1", "worker-2", "worker-3"};

static void ring_row(union ring_value *v, double t0, uint64_t n) {
    uint64_t tick = n / 5, thread = n % 5;
    v[RING_SAMPLES_TIMESTAMP].f = t0 + (double)tick * 0.01;
    v[RING_SAMPLES_TID].i = 4000 + (int64_t)thread;
    v[RING_SAMPLES_THREAD].s = ring_threads[thread];
    v[RING_SAMPLES_STACK_ID].i = (int64_t)(tick * 7 % 4096);
    v[RING_SAMPLES_ON_CPU].i = (int64_t)(tick & 1);
    v[RING_SAMPLES_GIL].i = (int64_t)thread % 3;
    v[RING_SAMPLES_GC].i = 0;
    v[RING_SAMPLES_TORN].i = 0;
}

static int ring_compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double ring_append_rate(struct ring *r, double t0) {
    union ring_value v[RING_SAMPLES_COUNT];
    uint64_t began = clock_self_cpu_ns();
    for (uint64_t n = 0; n < RING_ROWS; n++) {
        ring_row(v, t0, n);
        (void)ring_append(r, v);
    }
    (void)ring_flush(r);
    return RING_ROWS / ((double)(clock_self_cpu_ns() - began) / 1e9);
}

/* CPU microseconds of appending and flushing what a tenth of a second brings. */
static double ring_flush_us(struct ring *r, double t0) {
    union ring_value v[RING_SAMPLES_COUNT];
    uint64_t began = clock_self_cpu_ns();
    for (uint64_t i = 0, n = 0; i < RING_FLUSHES; i++) {
        for (int k = 0; k < RING_FLUSH_ROWS; k++, n++) {
            ring_row(v, t0, n);
            (void)ring_append(r, v);
        }
        (void)ring_flush(r);
    }
    return (double)(clock_self_cpu_ns() - began) / 1e3 / RING_FLUSHES;
}

/* Rows read a second, all columns. */
static double ring_read_rate(struct ring_reader *in, uint64_t *rows) {
    struct ring_block b = {.data = NULL};
    size_t n;
    uint64_t began = clock_self_cpu_ns();
    const struct ring_chunk *chunks = ring_reader_chunks(in, &n);
    *rows = 0;
    for (size_t i = 0; i < n; i++)
        if (ring_reader_load(in, &chunks[i], UINT64_MAX, &b) == 1)
            *rows += b.rows;
    ring_block_fini(&b);
    return (double)*rows / ((double)(clock_self_cpu_ns() - began) / 1e9);
}

/* Rows a second that are sent and put together again, both ends on this thread. */
static double ring_sync_rate(struct ring_reader *in) {
    struct ring_mark have = {.rows = 0};
    struct strbuf out;
    struct err e;
    size_t len;
    const void *head = ring_reader_head(in, &len);
    uint64_t began = clock_self_cpu_ns(), rows = 0;
    struct ring_replica *copy = ring_replica_create(head, len, &e);
    strbuf_init(&out, 0);
    while (copy && ring_sync_next(in, &have, RING_SYNC_MIN, &out) == 1) {
        rows += have.rows;
        if (ring_replica_apply(copy, strbuf_str(&out), out.len, &e) != 0)
            break;
        strbuf_clear(&out);
    }
    double rate = (double)rows / ((double)(clock_self_cpu_ns() - began) / 1e9);
    strbuf_fini(&out);
    ring_replica_close(copy);
    return rate;
}

static void ring_put_series(struct json *j, const char *key, double *series, bool higher_is_better) {
    qsort(series, RING_ROUNDS, sizeof *series, ring_compare);
    json_key(j, key);
    json_object_begin(j);
    json_kv_number(j, "best", series[higher_is_better ? RING_ROUNDS - 1 : 0], 2);
    json_kv_number(j, "median", series[RING_ROUNDS / 2], 2);
    json_object_end(j);
}

static int ring_measure(const char *path, bool check) {
    struct err e;
    struct ring_owner owner = {.pid = getpid(), .rank = RING_INT_NULL, .started_at = NAN};
    double append[RING_ROUNDS], flush[RING_ROUNDS], reading[RING_ROUNDS], syncing[RING_ROUNDS],
        t0 = clock_epoch_s();
    uint64_t rows = 0;
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    struct ring *r = fd < 0 ? NULL : ring_create(fd, &RING_TABLES[RING_SAMPLES], &owner, RING_BYTES, &e);
    struct ring_reader *in = r ? ring_reader_open(path, geteuid(), &e) : NULL;
    if (!in) {
        fprintf(stderr, "ring: %s\n", fd < 0 ? path : e.text);
        return 1;
    }
    for (int i = 0; i < RING_ROUNDS; i++) {
        append[i] = ring_append_rate(r, t0);
        flush[i] = ring_flush_us(r, t0);
        if (ring_reader_refresh(in, &e) != 0)
            return 1;
        reading[i] = ring_read_rate(in, &rows);
        syncing[i] = ring_sync_rate(in);
    }
    struct ring_counts counts;
    ring_get_counts(r, &counts);
    double bytes = (double)counts.file_bytes / (double)rows;
    struct strbuf out;
    struct json j;
    strbuf_init(&out, 0);
    json_init(&j, &out, 2);
    json_object_begin(&j);
    json_kv_string(&j, "file", path);
    ring_put_series(&j, "append_rows_per_s", append, true);
    ring_put_series(&j, "flush_of_50_rows_us", flush, false);
    ring_put_series(&j, "read_rows_per_s", reading, true);
    ring_put_series(&j, "sync_rows_per_s", syncing, true);
    json_kv_number(&j, "file_bytes_per_row", bytes, 2);
    json_kv_uint(&j, "writer_memory_bytes", counts.memory_bytes);
    json_kv_number(&j, "budget_append_rows_per_s", RING_BUDGET_ROWS_S, 0);
    json_kv_number(&j, "budget_file_bytes_per_row", RING_BUDGET_BYTES, 1);
    json_object_end(&j);
    puts(strbuf_str(&out));
    strbuf_fini(&out);
    ring_reader_close(in);
    ring_close(r);
    /* With all that is in the file besides rows: directory, strings, the chunk that is being filled. */
    return check && (append[RING_ROUNDS / 2] < RING_BUDGET_ROWS_S || bytes > RING_BUDGET_BYTES);
}

int main(int argc, char **argv) {
    char path[64];
    bool shm = access("/dev/shm", W_OK) == 0;
    (void)snprintf(path, sizeof path, "%s/probing-bench-%d.ring", shm ? "/dev/shm" : "/tmp", (int)getpid());
    int status = ring_measure(path, argc > 1 && strcmp(argv[1], "--check") == 0);
    (void)unlink(path);
    return status;
}
