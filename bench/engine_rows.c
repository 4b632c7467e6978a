/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_rows: rows for a ClickHouse server as many relays would write them: each of SENDERS threads has rows that come at
 * RATE / SENDERS a second, and writes once a second what has come since the last that was acknowledged. As rings do, it has
 * the rows of any number again. Ends when all rows of SECONDS are acknowledged.
 *
 * Prints JSON: how many rows there have to be. bench/engine.py starts it, and the server, and counts there.
 *
 * usage: engine_rows URL SECONDS RATE SENDERS
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/engine/engine_schema.h"

#define BATCH 20000 /* rows of an insert */
#define RANKS 1250  /* of a sender */
#define LIMIT_S 30.0
#define RETRY_MAX_S 60.0

struct sender {
    pthread_t thread;
    unsigned number;
    uint64_t next, inserts, errors, bytes;
    double longest_lag_s;
};

static struct engine_address address;
static const struct engine_table *table;
static double began_at, seconds, rate;
static uint64_t created_us;

static void wait_s(double s) {
    struct timespec t = {.tv_sec = (time_t)s, .tv_nsec = (long)((s - (double)(time_t)s) * 1e9)};
    nanosleep(&t, NULL);
}

static void put_row(const struct sender *s, uint64_t n, struct strbuf *out) {
    struct row_value row[ENGINE_MAX_COLUMNS];
    int64_t rank = (int64_t)(s->number * RANKS + n % RANKS);
    engine_put_common(row, "bench", rank, "host", 1000 + rank, created_us, n, began_at + (double)n / rate);
    for (size_t i = ENGINE_COMMON_COUNT; i < table->n; i++)
        row[i] = table->columns[i].type == ROW_STRING ? row_text("none") : row_real((double)(n % 977) * 0.25);
    row_binary_put_row(out, table->columns, table->n, row);
}

static void *send_rows(void *arg) {
    struct sender *s = arg;
    struct err e;
    struct strbuf rows, sql;
    double retry_s = 1;
    uint64_t all = (uint64_t)(seconds * rate);
    struct engine_http *h = engine_http_open(&address, &e);
    strbuf_init(&rows, 0);
    strbuf_init(&sql, 0);
    while (h && s->next < all) {
        double due = (clock_epoch_s() - began_at) * rate;
        uint64_t end = due < (double)all ? (uint64_t)due : all;
        double lag_s = (due - (double)s->next) / rate;
        s->longest_lag_s = lag_s > s->longest_lag_s ? lag_s : s->longest_lag_s;
        end = end - s->next > BATCH ? s->next + BATCH : end;
        strbuf_clear(&rows);
        for (uint64_t n = s->next; n < end; n++)
            put_row(s, n, &rows);
        int version = engine_http_version(h, &e);
        strbuf_clear(&sql);
        if (version)
            engine_put_insert(&sql, table, address.database, version);
        if (version && engine_http_insert(h, strbuf_str(&sql), &rows, LIMIT_S, &e) == 0) {
            s->next = end;
            s->inserts++;
            s->bytes += rows.len;
            retry_s = 1;
            if (end == all || (clock_epoch_s() - began_at) * rate - (double)end < BATCH)
                wait_s(1);
        } else {
            if (!s->errors++)
                fprintf(stderr, "engine_rows: %s\n", err_text(&e));
            wait_s(retry_s);
            retry_s = retry_s < RETRY_MAX_S / 2 ? retry_s * 2 : RETRY_MAX_S;
        }
    }
    strbuf_fini(&rows);
    strbuf_fini(&sql);
    engine_http_close(h);
    return NULL;
}

int main(int argc, char **argv) {
    struct err e = {0};
    if (argc != 5) {
        printf("{\"skipped\": \"bench/engine.py starts it\"}\n");
        return 0;
    }
    unsigned n = (unsigned)atoi(argv[4]);
    struct sender *senders = calloc(n, sizeof *senders);
    if (!senders || engine_address_parse(&address, argv[1], &e) != 0 ||
        engine_address_read_password(&address, &e) != 0) {
        fprintf(stderr, "engine_rows: %s\n", err_text(&e));
        return 1;
    }
    table = engine_table_find("python.steps");
    seconds = atof(argv[2]);
    rate = atof(argv[3]) / n;
    began_at = clock_epoch_s();
    created_us = (uint64_t)(began_at * 1e6);
    for (unsigned i = 0; i < n; i++) {
        senders[i].number = i;
        pthread_create(&senders[i].thread, NULL, send_rows, &senders[i]);
    }
    uint64_t rows = 0, inserts = 0, errors = 0, bytes = 0;
    double lag_s = 0;
    for (unsigned i = 0; i < n; i++) {
        pthread_join(senders[i].thread, NULL);
        rows += senders[i].next;
        inserts += senders[i].inserts;
        errors += senders[i].errors;
        bytes += senders[i].bytes;
        lag_s = senders[i].longest_lag_s > lag_s ? senders[i].longest_lag_s : lag_s;
    }
    printf("{\"rows\": %" PRIu64 ", \"inserts\": %" PRIu64 ", \"errors\": %" PRIu64
           ", \"bytes_per_row\": %.1f, \"seconds\": %.1f, \"longest_lag_s\": %.1f, \"cpu_s\": %.1f}\n",
           rows, inserts, errors, (double)bytes / (double)(rows ? rows : 1), clock_epoch_s() - began_at,
           lag_s, (double)clock_process_cpu_ns() / 1e9);
    free(senders);
    return 0;
}
