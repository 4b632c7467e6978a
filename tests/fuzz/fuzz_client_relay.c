/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a relay sends, and a fleet made of it: nothing of it can be trusted.
 *
 * The first byte says whether the line that a relay begins with is expected. The rest is what comes through the pipe, in pieces of any
 * length; each message is read as an answer of each kind.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/fleet/fleet.h"
#include "client/fleet/report_reading.h"
#include "client/fleet/rows_there.h"
#include "wire/pipe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MANY 64
#define BYTES ((size_t)1024 * 1024)

static void check(bool holds, const char *what) {
    if (!holds) {
        fprintf(stderr, "%s\n", what);
        abort();
    }
}

static void check_text(const char *text) {
    for (; text && *text; text++)
        check((unsigned char)*text >= 0x20 && *text != 0x7f, "a text is not safe for a terminal");
}

/* Frames of any answer as one stack. */
static void read_stack(const struct wire_message *m, struct fleet_stack *s, struct model_frame *frames,
                       struct arena *texts) {
    struct report_reader reader;
    struct report_frame row;
    struct err e;
    *s = (struct fleet_stack){.id = 1, .frames = frames};
    if (report_begin(&reader, &REPORT_TABLE_FRAME, m, &e) == 0)
        while (s->n_frames < MANY && report_next(&reader, &row, texts) == 1) {
            check_text(row.func);
            frames[s->n_frames++] =
                (struct model_frame){.func = row.func, .file = row.file, .line = (int)(row.line & 0xffff)};
        }
    fleet_stack_describe(s);
    check(s->own <= s->n_frames, "its own frame is not one of the stack");
}

static void check_fleet(const struct fleet *f) {
    int32_t in_classes = 0;
    for (size_t i = 0; i < f->n_ranks; i++) {
        check(i == 0 || f->ranks[i - 1].rank < f->ranks[i].rank, "ranks are not in order");
        check(fleet_find(f, f->ranks[i].rank) == &f->ranks[i], "a rank is not found");
        check(f->ranks[i].node < f->n_nodes || f->ranks[i].state == FLEET_MISSING, "a rank is of no host");
    }
    for (size_t i = 0; i < f->stacks.n_classes; i++)
        in_classes += (int32_t)f->stacks.nodes[f->stacks.classes[i]].n_here;
    check((size_t)in_classes == f->stacks.n_ranks, "ranks are in no class");
}

/* The same as readings for a verdict: what is taken is within bounds, and goes the way back. */
static void read_readings(const struct wire_message *m, struct arena *texts) {
    struct report_reader reader;
    struct report_state row;
    struct report_group group;
    struct rank_reading reading, again;
    struct rank_group found;
    struct report_ras ras;
    struct ras_fact fact;
    char words[256];
    struct err e;
    if (report_begin(&reader, &REPORT_TABLE_STATE, m, &e) == 0)
        while (report_next(&reader, &row, texts) == 1) {
            report_reading_take(&row, 100, &reading);
            check(reading.state.wait < MODEL_WAIT_KINDS && reading.answer <= RANK_ANSWERED,
                  "a kind is out of bounds");
            check_text(reading.state.own.func);
            check_text(reading.why);
            struct report_state back = report_reading_put(&reading, 100);
            report_reading_take(&back, 100, &again);
            check(again.state.state == reading.state.state && again.state.stack == reading.state.stack &&
                      strcmp(again.state.waits_for, reading.state.waits_for) == 0,
                  "a reading is another one on its way back");
        }
    if (report_begin(&reader, &REPORT_TABLE_GROUP, m, &e) == 0)
        while (report_next(&reader, &group, texts) == 1) {
            report_reading_take_group(&group, &found);
            check(found.size >= -1 && found.completed >= -1, "a counter is out of bounds");
            check_text(found.op);
        }
    if (report_begin(&reader, &REPORT_TABLE_RAS, m, &e) == 0)
        while (report_next(&reader, &ras, texts) == 1) {
            report_reading_take_ras(&ras, &fact);
            check(fact.rank >= -1 && fact.rank < RANK_SET_LIMIT && fact.state < RAS_STATES &&
                      fact.behind >= 0,
                  "what NCCL knows is out of bounds");
            ras_fact_put(&fact, words, sizeof words);
            check_text(words);
        }
}

static const char *const words[] = {"open", "done", NULL};
static const struct ring_column_def columns[] = {{.name = "rank", .type = RING_INT32},
                                                 {.name = "host", .type = RING_TEXT},
                                                 {.name = "pid", .type = RING_INT64},
                                                 {.name = "timestamp", .type = RING_TIMESTAMP},
                                                 {.name = "stack_id", .type = RING_INT64},
                                                 {.name = "op", .type = RING_TEXT},
                                                 {.name = "state", .type = RING_ENUM, .labels = words},
                                                 {.name = "p2p", .type = RING_BOOL},
                                                 {.name = "bytes", .type = RING_INT64},
                                                 {.name = NULL}};

static int put_row(void *arg, const union ring_value *row) {
    size_t *n = arg;
    check(row[ROWS_THERE_RANK].i == RING_INT_NULL ||
              (row[ROWS_THERE_RANK].i >= 4 && row[ROWS_THERE_RANK].i <= 5),
          "a rank is not the host's");
    check(strcmp(row[ROWS_THERE_HOST].s, "h") == 0, "a row is of another host");
    check(row[4].i == RING_INT_NULL || row[4].i >> ROWS_THERE_ID_BITS == 7, "a number is of another host");
    check(!row[5].s || strlen(row[5].s) < BYTES, "a text has no end");
    check(row[6].i == RING_INT_NULL || (row[6].i >= 0 && row[6].i < 2), "a word is out of bounds");
    check(row[7].i == RING_INT_NULL || row[7].i == 0 || row[7].i == 1, "neither true nor false");
    return ++*n < MANY ? 0 : -1;
}

/* The same as rows of a table. */
static void read_rows(const struct wire_message *m) {
    static const enum ring_type types[] = {RING_INT32, RING_TEXT, RING_INT64, RING_TIMESTAMP, RING_ID,
                                           RING_TEXT,  RING_ENUM, RING_BOOL,  RING_INT64};
    static const int places[] = {3, 4, 5, 6, 7, 8};
    struct rank_set ranks = {.n = 0};
    struct wire_rows answer;
    struct err e;
    size_t put = 0;
    struct rows_there r = {.columns = columns,
                           .types = types,
                           .places = places,
                           .number = 7,
                           .host = "h",
                           .ranks = &ranks,
                           .ahead_s = 3,
                           .put = put_row,
                           .arg = &put};
    strbuf_init(&r.text, 0);
    if (rank_set_add(&ranks, 4, 5) == 0 && wire_get_rows(m, &answer, &e) == 0) {
        /* any number of columns */
        r.n = answer.n_columns >= 2 && answer.n_columns <= 8 ? answer.n_columns - 2 : 6;
        if (rows_there_take(&r, &answer, &e) == 0)
            check(put <= MANY && r.is_full == (put == MANY), "it goes on without room");
    }
    strbuf_fini(&r.text);
    rank_set_fini(&ranks);
}

static void read_answer(const struct wire_message *m) {
    struct report_reader reader;
    struct fleet_report reports[MANY];
    struct model_frame frames[MANY];
    struct fleet_stack stack;
    struct fleet_node node = {.host = "h", .state = "ok"};
    struct fleet f = {.taken_at = NAN};
    struct arena texts;
    struct err e;
    size_t n = 0;
    arena_init(&texts, BYTES);
    read_stack(m, &stack, frames, &texts);
    report_clear(&REPORT_TABLE_JOB, &node.job);
    read_readings(m, &texts);
    read_rows(m);
    if (report_begin(&reader, &REPORT_TABLE_JOB, m, &e) == 0)
        (void)report_next(&reader, &node.job, &texts);
    check_text(node.job.name);
    if (report_begin(&reader, &REPORT_TABLE_RANK, m, &e) == 0)
        while (n < MANY && report_next(&reader, &reports[n].row, &texts) == 1) {
            check_text(reports[n].row.note);
            reports[n].node = (uint32_t)(n % 3);
            reports[n].is_second = n % 7 == 6;
            reports[n].is_silent = n % 5 == 4;
            reports[n].silent_s = 7;
            reports[n].stack = n % 2 ? &stack : NULL;
            n++;
        }
    if (fleet_build(&f, &node, 1, reports, n) == 0)
        check_fleet(&f);
    fleet_fini(&f);
    arena_fini(&texts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct pipe_reader r;
    struct err e;
    const void *message;
    size_t len, piece = 1;
    if (size == 0)
        return 0;
    pipe_reader_init(&r, data[0] & 1);
    int rc = 0;
    for (size_t at = 1; rc == 0 && at < size; at += piece, piece = piece * 2 + 1) {
        piece = piece < size - at ? piece : size - at;
        rc = pipe_reader_add(&r, data + at, piece);
        while (rc == 0 && (rc = pipe_reader_next(&r, &message, &len, &e)) == 1) {
            struct wire_message *m = wire_parse(message, len, &e);
            if (m)
                read_answer(m);
            wire_message_free(m);
            rc = 0;
        }
        check_text(r.banner);
    }
    pipe_reader_fini(&r);
    return 0;
}
