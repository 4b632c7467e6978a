/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fleet: what ranks do, by what is reported of them; and what it is made of, from relays of its own: one that works,
 * and those that lie.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "client/fleet/fleet_open.h"
#include "client/fleet/fleet_text.h"
#include "client/fleet/job_rows.h"
#include "client/fleet/watch_there.h"
#include "version.h"
#include "wire/pipe.h"
#include "wire/wire.h"

#define LIMIT_S 60
#define MANY_RANKS 40

/* ---- what a rank does ---- */

static struct report_rank rank_row(int32_t rank, const char *state) {
    struct report_rank row;
    report_clear(&REPORT_TABLE_RANK, &row);
    row.rank = rank;
    row.pid = 1000 + rank;
    row.state = state;
    row.taken_at = 100;
    row.since = 90 + rank;
    return row;
}

#define TORCH "/v/lib/python3.11/site-packages/torch"

static enum fleet_state state_of(struct report_rank row, struct model_frame *frames, size_t n) {
    struct fleet_stack s = {.id = 1, .frames = frames, .n_frames = n};
    struct fleet_node node = {.host = "a"};
    struct fleet f = {.taken_at = NAN};
    fleet_stack_describe(&s);
    report_clear(&REPORT_TABLE_JOB, &node.job);
    struct fleet_report report = {.row = row, .stack = n ? &s : NULL};
    assert_int_equal(fleet_build(&f, &node, 1, &report, 1), 0);
    assert_int_equal(f.n_ranks, 1);
    enum fleet_state found = f.ranks[0].state;
    fleet_fini(&f);
    return found;
}

static void test_states(void **state) {
    (void)state;
    struct model_frame compute[] = {
        {.func = "forward", .file = "/job/model.py", .line = 3},
        {.func = "Module._call_impl", .file = TORCH "/nn/modules/module.py", .line = 9}};
    struct model_frame reduce[] = {
        {.func = "all_reduce", .file = TORCH "/distributed/distributed_c10d.py", .line = 3},
        {.func = "step", .file = "/job/train.py", .line = 9}};
    struct model_frame next[] = {
        {.func = "select.poll", .file = "/usr/lib/python3.11/selectors.py", .line = 1},
        {.func = "_BaseDataLoaderIter.__next__", .file = TORCH "/utils/data/dataloader.py", .line = 3},
        {.func = "step", .file = "/job/train.py", .line = 9}};
    struct model_frame save[] = {{.func = "write", .file = "/usr/lib/python3.11/zipfile.py", .line = 1},
                                 {.func = "save_checkpoint", .file = "/job/train.py", .line = 9}};
    struct model_frame sync[] = {{.func = "synchronize", .file = TORCH "/cuda/__init__.py", .line = 1}};
    struct model_frame backward[] = {
        {.func = "_engine_run_backward", .file = TORCH "/autograd/graph.py", .line = 1}};
    struct report_rank row = rank_row(0, "S");
    assert_int_equal(state_of(row, backward, 1), FLEET_WAITS);
    row.cpu_pct = 95; /* autograd's threads run */
    assert_int_equal(state_of(row, backward, 1), FLEET_COMPUTES);
    row = rank_row(0, "S");
    assert_int_equal(state_of(rank_row(0, "R"), compute, 2), FLEET_COMPUTES);
    assert_int_equal(state_of(rank_row(0, "S"), compute, 2), FLEET_WAITS);
    row.thread_cpu_pct = 80; /* it slept just then */
    assert_int_equal(state_of(row, compute, 2), FLEET_COMPUTES);
    assert_int_equal(state_of(rank_row(0, "S"), reduce, 2), FLEET_COLLECTIVE);
    assert_int_equal(state_of(rank_row(0, "R"), reduce, 2), FLEET_COLLECTIVE);
    assert_int_equal(state_of(rank_row(0, "S"), next, 3), FLEET_LOADER);
    assert_int_equal(state_of(rank_row(0, "D"), save, 2), FLEET_CHECKPOINT);
    assert_int_equal(state_of(rank_row(0, "R"), sync, 1), FLEET_GPU);
    assert_int_equal(state_of(rank_row(0, "T"), reduce, 2), FLEET_STOPPED);
    assert_int_equal(state_of(rank_row(0, "X"), reduce, 2), FLEET_GONE);
    assert_int_equal(state_of(rank_row(0, "S"), NULL, 0), FLEET_UNKNOWN);
    assert_int_equal(state_of(rank_row(0, NULL), NULL, 0), FLEET_UNKNOWN);
    row = rank_row(0, "S");
    row.wait_kind = "collective";
    assert_int_equal(state_of(row, compute, 2), FLEET_COLLECTIVE);
    row.wait_kind = "loader";
    assert_int_equal(state_of(row, compute, 2), FLEET_LOADER);
    row.gc = 1;
    assert_int_equal(state_of(row, reduce, 2), FLEET_GC);
}

/* Two hosts: who is missing on one is on the other; and one rank that both have. */
static void test_build(void **state) {
    (void)state;
    struct model_frame frame = {.func = "f", .file = "/job/a.py", .line = 1};
    struct fleet_stack stack = {.id = 1, .frames = &frame, .n_frames = 1};
    struct fleet_node nodes[2] = {{.host = "a", .state = "ok"}, {.host = "b", .state = "ok"}};
    struct fleet_report reports[5] = {{.row = rank_row(2, "S"), .node = 1, .stack = &stack},
                                      {.row = rank_row(0, "S"), .node = 0, .stack = &stack},
                                      {.row = rank_row(2, "S"), .node = 0, .stack = &stack},
                                      {.row = rank_row(-1, "S"), .node = 0},
                                      {.row = rank_row(9, "S"), .node = 7}};
    struct fleet f = {.taken_at = NAN};
    for (size_t i = 0; i < 2; i++) {
        report_clear(&REPORT_TABLE_JOB, &nodes[i].job);
        nodes[i].job.name = "train.py-c4f2";
        nodes[i].job.world = 4;
    }
    nodes[0].job.missing = "1-3";
    nodes[1].job.elsewhere = "0,x";
    assert_int_equal(fleet_build(&f, nodes, 2, reports, 5), 0);
    assert_string_equal(f.job, "train.py-c4f2");
    assert_int_equal(f.world, 4);
    assert_int_equal(f.n_ranks, 4);
    assert_int_equal(f.ranks[1].state, FLEET_MISSING);
    assert_int_equal(f.ranks[1].pid, 0);
    assert_int_equal(f.ranks[2].node, 0);
    assert_non_null(strstr(f.note, "rank 2 is claimed by process 1002 of a and by process 1002 of b"));
    assert_int_equal(rank_set_count(&f.missing), 2);
    assert_int_equal(f.stacks.n_classes, 1);
    assert_int_equal(f.ranks[0].class_number, 0);
    assert_int_equal(f.ranks[3].class_number, STACK_CLASSES_NONE);
    assert_true(f.classes[0].is_majority && !f.classes[0].in_collective);
    assert_true(f.classes[0].since == 92);
    assert_true(fleet_age_s(&f, f.classes[0].since) == 8);
    assert_ptr_equal(fleet_find(&f, 2), &f.ranks[2]);
    assert_null(fleet_find(&f, 4));
    fleet_fini(&f);
}

/* Ranks of hosts that do not answer are in no class: nobody has sampled them. They are lines of their own, a host each. */
static void test_silent_are_not_sampled(void **state) {
    (void)state;
    struct model_frame frame = {.func = "f", .file = "/job/a.py", .line = 1},
                       other_frame = {.func = "g", .file = "/job/a.py", .line = 2};
    struct fleet_stack stack = {.id = 1, .frames = &frame, .n_frames = 1},
                       other = {.id = 2, .frames = &other_frame, .n_frames = 1};
    struct fleet_node nodes[3] = {{.host = "a"}, {.host = "b"}, {.host = "c"}};
    struct fleet_report reports[8];
    struct fleet f = {.taken_at = NAN};
    struct stack_counts *counts = stack_counts_new();
    struct strbuf text;
    for (int i = 0; i < 3; i++)
        report_clear(&REPORT_TABLE_JOB, &nodes[i].job);
    for (int i = 0; i < 8; i++)
        reports[i] = (struct fleet_report){.row = rank_row(i, "S"),
                                           .node = i < 3   ? 0
                                                   : i < 6 ? 1
                                                           : 2,
                                           .stack = i == 2 ? &other : &stack};
    for (int i = 3; i < 8; i++) {
        reports[i].is_silent = true;
        reports[i].silent_s = i < 6 ? 60 : 9;
    }
    assert_int_equal(fleet_build(&f, nodes, 3, reports, 8), 0);
    assert_int_equal(f.stacks.n_classes, 2);
    assert_int_equal(f.stacks.nodes[STACK_CLASSES_ROOT].n, 3);
    assert_true(f.classes[f.ranks[0].class_number].is_majority);
    assert_true(f.classes[f.ranks[0].class_number].since == 91);
    for (int i = 3; i < 8; i++) {
        assert_int_equal(f.ranks[i].class_number, STACK_CLASSES_NONE);
        assert_int_equal(f.ranks[i].state, FLEET_UNKNOWN);
        assert_string_equal(f.ranks[i].at->func, "f"); /* where it was is known */
    }
    strbuf_init(&text, 0);
    fleet_put_tree(&f, 0, &text);
    if (!strstr(strbuf_str(&text), "     3  3-5                      (no news from its host for 60 s)\n") ||
        !strstr(strbuf_str(&text), "     2  6-7                      (no news from its host for 9 s)\n"))
        fail_msg("%s", strbuf_str(&text));
    strbuf_fini(&text);
    assert_non_null(counts);
    assert_int_equal(fleet_count_stacks(&f, counts), 0);
    assert_int_equal(stack_counts_get_totals(counts)->samples, 3);
    stack_counts_free(counts);
    fleet_fini(&f);
}

/* Some stand in a line from which the others go on: they have a line, with their own time. */
static void test_stacks_that_end_inside(void **state) {
    (void)state;
    struct model_frame deep[] = {
        {.func = "all_reduce", .file = TORCH "/distributed/distributed_c10d.py", .line = 3},
        {.func = "train", .file = "/job/train.py", .line = 257},
        {.func = "main", .file = "/job/train.py", .line = 12}};
    struct fleet_stack stack = {.id = 1, .frames = deep, .n_frames = 3},
                       inside = {.id = 2, .frames = deep + 1, .n_frames = 2}, none = {.id = 3};
    struct fleet_node node = {.host = "a"};
    struct fleet_report reports[8];
    struct fleet f = {.taken_at = NAN};
    struct strbuf text;
    report_clear(&REPORT_TABLE_JOB, &node.job);
    for (int i = 0; i < 8; i++) {
        reports[i] = (struct fleet_report){.row = rank_row(i, "S"), .stack = i == 5 ? &inside : &stack};
        reports[i].row.since = i == 5 ? 100 - 12 * 60 : 80;
    }
    assert_int_equal(fleet_build(&f, &node, 1, reports, 8), 0);
    strbuf_init(&text, 0);
    fleet_put_tree(&f, 0, &text);
    if (!strstr(strbuf_str(&text), "     8  0-7                      main train.py:12 > train train.py:257\n"
                                   "     1  5                12m00s    > (here)\n"
                                   "     7  0-4,6-7             20s    > all_reduce  (majority)\n"))
        fail_msg("%s", strbuf_str(&text));
    /* most stand there, and of one no frame is known */
    for (int i = 0; i < 8; i++)
        reports[i].stack = i == 7 ? &none : i > 1 ? &inside : &stack;
    reports[5].row.since = 80;
    assert_int_equal(fleet_build(&f, &node, 1, reports, 8), 0);
    strbuf_clear(&text);
    fleet_put_tree(&f, 0, &text);
    if (!strstr(strbuf_str(&text), "     7  0-6                      main train.py:12 > train train.py:257\n"
                                   "     5  2-6                 20s    > (here)  (majority)\n"
                                   "     2  0-1                 20s    > all_reduce\n"
                                   "     1  7                   20s  (no stack)\n"))
        fail_msg("%s", strbuf_str(&text));
    strbuf_fini(&text);
    fleet_fini(&f);
}

/* The note of a rank is why no agent can be loaded into it, else why it could not be read. */
static void test_notes_of_ranks(void **state) {
    (void)state;
    struct target_process processes[3] = {
        {.why_not = "process 1000 is another user's"}, {.user = ""}, {.user = ""}};
    struct job_member members[3];
    struct job job = {.name = "train.py-c4f2",
                      .source = &rank_env_sources[0],
                      .members = members,
                      .n_members = 3,
                      .n_ranks = 3};
    const struct jobs_here here = {.list = processes, .n = 3, .jobs = {.items = &job, .n = 1}};
    struct fleet_node node = {.host = "a"};
    struct fleet_report reports[3];
    struct fleet f = {.taken_at = NAN};
    report_clear(&REPORT_TABLE_JOB, &node.job);
    for (int32_t i = 0; i < 3; i++) {
        members[i] = (struct job_member){.process = (size_t)i, .pid = 1000 + i, .role = JOB_RANK, .rank = i};
        reports[i] = (struct fleet_report){.row = rank_row(i, "S")};
        reports[i].row.note = i < 2 ? "process did not answer: it is tried again after 30 s" : NULL;
    }
    assert_int_equal(fleet_build(&f, &node, 1, reports, 3), 0);
    struct result *r = job_rows_ranks(&here, NULL, NULL, &f);
    assert_non_null(r);
    assert_int_equal(r->n_rows, 3);
    const struct result_column *note = &r->columns[r->n_columns - 1];
    assert_string_equal(note->name, "note");
    assert_string_equal(note->values[0].s, "process 1000 is another user's");
    assert_int_equal(note->kinds[1], SQL_TEXT);
    assert_string_equal(note->values[1].s, "process did not answer: it is tried again after 30 s");
    assert_int_equal(note->kinds[2], SQL_NULL);
    result_unref(r);
    fleet_fini(&f);
}

/* ---- relays ---- */

/* What a relay does; it is a child, which knows it by this. */
static enum {
    HONEST,
    SILENT,    /* reads, and answers nothing */
    ENDS,      /* at once */
    LOGIN,     /* prints what is not a relay's, and no end of it */
    REFUSES,   /* there is no such job */
    LONG,      /* a message that is longer than any may be */
    GARBAGE,   /* in place of the ranks */
    FLOODS,    /* answers again and again what was asked once */
    OTHER_ID,  /* answers another request */
    REPEATS,   /* the same round */
    TRUNCATES, /* ends in the middle of a message */
    CLAIMS, /* ranks out of bounds, the same one twice, stacks that there are not, texts that a terminal obeys */
    STALLS, /* after the first round */
    MANY,   /* ranks, each with a stack of its own */
    HALF,   /* of the second round: its ranks, not its stacks */
    NOBODY, /* is a rank for a verdict */
    FORGES, /* frames of a stack that the ranks of others have */
    STUFFS, /* stacks that nobody asked for */
    PARTS,  /* the counters of groups, a few at a time */
    STARTS, /* its ranks again: other processes are in the second reading */
    LOSES,  /* its job, after the first round; see lost */
    LEAVES, /* answers nothing after the first reading */
    DROPS, /* a rank: the second reading is without it, and from the third on the host does not count it either */
    BURIES, /* a rank that another host has, too: from the second reading on its process has ended here */
    SETS,   /* its clock, after a few rounds; its ranks have had steps before */
    GREEDY, /* as STARTS; says that many ranks are missing, and claims that of another host */
} mode;

static long round_ns = 1000000;
static int32_t first_rank;        /* of the relay's two */
static const char *name_of_job;   /* NULL: as it is asked for */
static const char *version_of_it; /* NULL: ours */
static char lost[] =
    "/tmp/probing-fleet-XXXXXX"; /* by which a relay that is started again knows that it was there before */
static bool has_more;            /* of the next answer */
static int64_t n_readings;       /* that were given for a verdict */

/* In the child no test may fail: it would go on with the next one. */
static void need(bool holds) {
    if (!holds)
        _exit(2);
}

static void say(int out, struct strbuf *message) {
    struct strbuf bytes;
    strbuf_init(&bytes, 0);
    need(pipe_put(&bytes, message->data, message->len) == 0);
    size_t n = mode == TRUNCATES && bytes.len > 100 ? bytes.len / 2 : bytes.len;
    need(write(out, bytes.data, n) == (ssize_t)n);
    strbuf_fini(&bytes);
    if (n < message->len)
        _exit(0);
}

static void say_rows(int out, uint32_t id, const struct report_table *t, const void *rows, size_t size,
                     size_t n) {
    struct strbuf columns, values, message;
    strbuf_init(&columns, 0);
    strbuf_init(&values, 0);
    strbuf_init(&message, 0);
    report_put_columns(t, &columns);
    for (size_t i = 0; i < n; i++)
        report_put(t, (const char *)rows + i * size, &values);
    struct wire_rows answer = {.columns = columns.data,
                               .columns_len = columns.len,
                               .rows = values.data,
                               .rows_len = values.len,
                               .n_rows = n,
                               .more = has_more};
    wire_put_rows(&message, id, &answer);
    do
        say(out, &message);
    while (mode == FLOODS && t == &REPORT_TABLE_RANK);
    strbuf_fini(&columns);
    strbuf_fini(&values);
    strbuf_fini(&message);
}

static void answer_ranks(int out, uint32_t id, int64_t after) {
    struct report_rank rows[MANY_RANKS];
    size_t n = 0;
    rows[n++] = rank_row(first_rank, "S");
    rows[n++] = rank_row(first_rank + 1, "R");
    if (mode == CLAIMS) {
        rows[n++] = rank_row(1 << 30, "S");
        rows[n] = rank_row(1, "\x1b[2J");
        rows[n++].note = "\x1b[31mred\n";
    }
    while (mode == MANY && n < MANY_RANKS) {
        rows[n] = rank_row((int32_t)n, "S");
        n++;
    }
    for (size_t i = 0; i < n; i++) {
        rows[i].round = mode == REPEATS ? 1 : after + 1;
        rows[i].found = mode == HALF ? rows[i].round : 1;
        rows[i].note = mode == HALF ? (after ? "the second" : "the first") : rows[i].note;
        rows[i].stack = mode == CLAIMS ? (int64_t)i - 2
                        : mode == MANY ? (int64_t)i + 1
                        : mode == HALF ? 7 + after
                                       : 7;
    }
    say_rows(out, id, &REPORT_TABLE_RANK, rows, sizeof rows[0], n);
}

static void answer_stacks(int out, uint32_t id, const char *ids) {
    const struct report_frame rows[] = {{7, mode == FORGES ? "forged" : "inner", "/job/a.py", 3},
                                        {7, "main", "/job/a.py", 12}};
    struct report_frame many[REPORT_IDS_MAX];
    size_t n = 0;
    for (char *end; mode == MANY && *ids; ids = end + (*end == ',')) {
        int64_t stack = strtoll(ids, &end, 16);
        need(end > ids && n < REPORT_IDS_MAX);
        many[n++] = (struct report_frame){stack, "f", "/job/a.py", stack};
    }
    if (mode == MANY)
        say_rows(out, id, &REPORT_TABLE_FRAME, many, sizeof many[0], n);
    else if (mode == STUFFS) {
        for (size_t i = 0; i < REPORT_IDS_MAX; i++)
            many[i] = (struct report_frame){.stack = 8 - (int64_t)i};
        say_rows(out, id, &REPORT_TABLE_FRAME, many, sizeof many[0], REPORT_IDS_MAX);
    } else
        say_rows(out, id, &REPORT_TABLE_FRAME, rows, sizeof rows[0], mode == CLAIMS ? 0 : 2);
}

/* Steps and collectives of ranks that there are, and of others. */
static void answer_times(int out, uint32_t id) {
    static const double odd[] = {0, 1e9, 1e300, -1, 1000, 1e9};
    struct report_time rows[64];
    for (size_t i = 0; i < 64; i++)
        rows[i] = (struct report_time){.rank = (int64_t)(i % 5) - 1,
                                       .pid = i % 3 ? 11 : INT64_MIN + 1,
                                       .seq = i % 7 ? (int64_t)i : INT64_MAX,
                                       .op = i % 2 ? "all_reduce" : NULL,
                                       .step = i % 4 ? (int64_t)i : INT64_MAX,
                                       .at = odd[i % 6],
                                       .ms = odd[i % 5]};
    say_rows(out, id, &REPORT_TABLE_TIME, rows, sizeof rows[0], 64);
}

#define STEPS 100

static void answer_steps(int out, uint32_t id) {
    static bool is_sent;
    struct report_time rows[2 * STEPS];
    double now = clock_epoch_s();
    for (int i = 0; i < 2 * STEPS; i++) {
        report_clear(&REPORT_TABLE_TIME, &rows[i]);
        rows[i].rank = first_rank + i % 2;
        rows[i].pid = 1000 + rows[i].rank;
        rows[i].seq = rows[i].step = i / 2;
        rows[i].at = now - 1 + 0.01 * (i / 2);
        rows[i].ms = 10;
    }
    say_rows(out, id, &REPORT_TABLE_TIME, rows, sizeof rows[0], is_sent ? 0 : 2 * STEPS);
    is_sent = true;
}

/* Readings for a verdict: of rank 0, and of ranks and processes that there cannot be. */
static void answer_states(int out, uint32_t id) {
    static const int64_t of[][2] = {{0, 11}, {-1, 12}, {1LL << 30, 13}, {1, 0}, {1, 1LL << 40}};
    struct report_state rows[5];
    if (mode == LEAVES && n_readings++)
        return;
    for (size_t i = 0; i < 5; i++) {
        report_clear(&REPORT_TABLE_STATE, &rows[i]);
        rows[i].rank = of[i][0] + ((mode == LEAVES || mode == BURIES) && i == 0 ? first_rank : 0);
        rows[i].pid = of[i][1] + ((mode == STARTS || mode == GREEDY) && n_readings && i == 0 ? 100 : 0);
        if (mode == GREEDY && i == 3) {
            rows[i].rank = 4;
            rows[i].pid = 666;
        }
        if ((mode == DROPS || mode == BURIES) && i == 1) {
            rows[i].rank = mode == DROPS;
            rows[i].gone = mode == BURIES && n_readings;
        }
        rows[i].state = "\x1b";
        rows[i].wchan = "\x1b[2J";
        rows[i].leaf_line = 1LL << 40;
        rows[i].cpu_ns = -5;
        rows[i].still_s = -3;
        rows[i].wait = 1 << 20;
        rows[i].gc = 7;
        rows[i].answer = RANK_ANSWERED;
    }
    size_t n = mode == NOBODY ? 0 : mode == DROPS ? 1 + (n_readings == 0) : 5;
    n_readings++;
    say_rows(out, id, &REPORT_TABLE_STATE, rows, sizeof rows[0], n);
}

/* 200 in all, of which an answer has 64. */
static void answer_part(int out, uint32_t id, size_t from) {
    struct report_group rows[64];
    char names[64][8];
    size_t n = 0;
    for (; n < 64 && from + n < 200; n++) {
        report_clear(&REPORT_TABLE_GROUP, &rows[n]);
        (void)snprintf(names[n], sizeof names[n], "%zu", from + n);
        rows[n].rank = 0;
        rows[n].pg = names[n];
    }
    has_more = from + n < 200;
    say_rows(out, id, &REPORT_TABLE_GROUP, rows, sizeof rows[0], n);
    has_more = false;
}

static void answer_groups(int out, uint32_t id) {
    struct report_group rows[RANK_GROUPS_MAX + 8];
    for (size_t i = 0; i < RANK_GROUPS_MAX + 8; i++) {
        report_clear(&REPORT_TABLE_GROUP, &rows[i]);
        rows[i].rank = i ? 0 : 5;
        rows[i].size = 1LL << 40;
        rows[i].enqueued = -9;
        rows[i].op = "\x1b[31mred";
    }
    say_rows(out, id, &REPORT_TABLE_GROUP, rows, sizeof rows[0], RANK_GROUPS_MAX + 8);
}

static void answer(int out, const struct wire_message *m) {
    struct wire_rows_ask ask;
    struct strbuf message;
    struct err e;
    uint32_t id = wire_message_id(m) + (mode == OTHER_ID);
    strbuf_init(&message, 0);
    if (wire_message_method(m) == WIRE_HELLO) {
        struct model_target t = {.host = "host\x1b[0m",
                                 .rank = -1,
                                 .started_at = NAN,
                                 .agent_version = version_of_it ? version_of_it : PROBING_VERSION};
        wire_put_target(&message, id, &t);
        say(out, &message);
    } else {
        need(wire_get_rows_ask(m, &ask, &e) == 0);
        bool loses = mode == LOSES && access(getenv("FLEET_LOST"), F_OK) != 0;
        if (strcmp(ask.table, REPORT_JOB) == 0 && (mode == REFUSES || loses)) {
            wire_put_error(&message, id, WIRE_E_UNAVAILABLE, "no job is named 'x'\x1b[0m");
            say(out, &message);
        } else if (strcmp(ask.table, REPORT_JOB) == 0) {
            struct report_job job;
            report_clear(&REPORT_TABLE_JOB, &job);
            bool asks_other =
                name_of_job && ask.args[0].text[0] && strcmp(ask.args[0].text, name_of_job) != 0;
            job.name = name_of_job && !asks_other ? name_of_job : ask.args[0].text;
            job.found = 1;
            job.ranks = mode != DROPS ? NULL : n_readings < 2 ? "0-1" : "0";
            job.missing = mode == GREEDY ? "100-9999" : NULL;
            job.world = first_rank ? 8 : 2;
            say_rows(out, id, &REPORT_TABLE_JOB, &job, sizeof job, 1);
        } else if (strcmp(ask.table, REPORT_RANKS) == 0) {
            if (mode == GARBAGE) {
                need(write(out, "\0\0\0\4nope", 8) == 8);
            } else if (mode == LONG) {
                need(write(out, "\177\0\0\0", 4) == 4);
            } else if (mode != STALLS || ask.args[0].number == 0) {
                nanosleep(&(struct timespec){.tv_nsec = round_ns}, NULL);
                /* the first round is complete with this request */
                if (mode == LOSES && ask.args[0].number > 0) {
                    (void)unlink(getenv("FLEET_LOST"));
                    _exit(1);
                }
                answer_ranks(out, id, ask.args[0].number);
            }
        } else if (strcmp(ask.table, REPORT_CLOCK) == 0) {
            static int times;
            const struct report_clock clock = {.at = clock_epoch_s() + (mode == SETS && times++ > 4 ? 5 : 0)};
            say_rows(out, id, &REPORT_TABLE_CLOCK, &clock, sizeof clock, 1);
        } else if (strcmp(ask.table, REPORT_TIMES) == 0) {
            if (mode == SETS)
                answer_steps(out, id);
            else
                answer_times(out, id);
        } else if (strcmp(ask.table, REPORT_STATES) == 0) {
            answer_states(out, id);
        } else if (strcmp(ask.table, REPORT_GROUPS) == 0) {
            if (mode == PARTS)
                answer_part(out, id, (size_t)ask.args[0].number);
            else
                answer_groups(out, id);
        } else if (mode != HALF || strtoll(ask.args[0].text, NULL, 16) == 7)
            answer_stacks(out, id, ask.args[0].text);
    }
    strbuf_fini(&message);
}

static int serve(int in, int out) {
    struct pipe_reader reader;
    const void *data;
    size_t len;
    struct err e;
    char bytes[4096];
    if (mode == ENDS)
        return 0;
    while (mode == LOGIN)
        if (write(out, "Password: \x1b[0m", 14) < 0)
            return -1;
    need(write(out, "Welcome\n" PIPE_MAGIC, 8 + strlen(PIPE_MAGIC)) > 0);
    pipe_reader_init(&reader, true);
    for (ssize_t n; (n = read(in, bytes, sizeof bytes)) > 0;) {
        need(pipe_reader_add(&reader, bytes, (size_t)n) == 0);
        while (mode != SILENT && pipe_reader_next(&reader, &data, &len, &e) == 1) {
            struct wire_message *m = wire_parse(data, len, &e);
            need(m != NULL);
            answer(out, m);
            wire_message_free(m);
        }
    }
    pipe_reader_fini(&reader);
    return 0;
}

static const struct fleet_reach here = {.serve = serve};

static void test_honest(void **state) {
    (void)state;
    struct err e = {0};
    mode = HONEST;
    struct fleet_source *l = fleet_open("job:train.py-c4f2/0-1", &here, &e);
    assert_non_null(l);
    assert_int_equal(fleet_source_fill(l, 3, LIMIT_S, NULL, NULL, &e), 0);
    const struct fleet *f = fleet_source_get(l);
    assert_true(f->round >= 3);
    assert_string_equal(f->job, "train.py-c4f2");
    assert_int_equal(f->n_ranks, 2);
    assert_int_equal(f->stacks.n_classes, 1);
    assert_string_equal(f->ranks[1].at->func, "inner");
    assert_null(strchr(f->nodes[0].host, 0x1b));
    assert_string_equal(f->nodes[0].state, "ok");
    fleet_source_close(l);
}

/* More stacks than one request may name are all known in the round in which they are new. */
static void test_many_stacks(void **state) {
    (void)state;
    struct err e = {0};
    mode = MANY;
    struct fleet_source *l = fleet_open("x", &here, &e);
    assert_non_null(l);
    assert_int_equal(fleet_source_fill(l, 1, LIMIT_S, NULL, NULL, &e), 0);
    const struct fleet *f = fleet_source_get(l);
    assert_int_equal(f->round, 1);
    assert_int_equal(f->n_ranks, MANY_RANKS);
    assert_int_equal(f->stacks.n_classes, MANY_RANKS);
    for (size_t i = 0; i < f->n_ranks; i++)
        assert_int_equal(f->ranks[i].at->line, i + 1);
    fleet_source_close(l);
}

/* In the middle of a round the fleet is still that of the round before, with its texts. */
static void test_half_a_round(void **state) {
    (void)state;
    struct err e = {0};
    mode = HALF;
    struct fleet_source *l = fleet_open("x", &here, &e);
    assert_non_null(l);
    assert_int_equal(fleet_source_fill(l, 1, LIMIT_S, NULL, NULL, &e), 0);
    assert_int_equal(fleet_source_fill(l, 1, 0.3, NULL, NULL, &e), 0);
    const struct fleet *f = fleet_source_get(l);
    assert_int_equal(f->round, 1);
    assert_string_equal(f->ranks[1].note, "the first");
    assert_string_equal(f->nodes[0].job.name, "x");
    fleet_source_close(l);
}

/* Wait until a condition holds of what the links know; a relay that fails is started again in between. */
static void expect_note(struct fleet_source *l, const char *note) {
    uint64_t until = clock_mono_ns() + LIMIT_S * CLOCK_NS_PER_S;
    struct err e = {0};
    while (clock_mono_ns() < until) {
        struct pollfd p = {.fd = fleet_source_fd(l), .events = POLLIN};
        if (poll(&p, 1, 100) > 0)
            fleet_source_advance(l);
        if (fleet_source_fill(l, 0, 0, NULL, NULL, &e) != 0 && strstr(e.text, note))
            return;
    }
    fail_msg("'%s' instead of '%s'", e.text, note);
}

static void test_liars(void **state) {
    (void)state;
    static const struct {
        int mode;
        const char *note;
    } liars[] = {
        {ENDS, "it has ended"},
        {LOGIN, "it is not a relay: it printed '"},
        {LONG, "it sent a message of 2130706432 bytes"},
        {GARBAGE, "message is not valid"},
        {OTHER_ID, "it sent what it was not asked for"},
        {FLOODS, "it sent what it was not asked for"},
        {TRUNCATES, "it has ended"},
        {REFUSES, "no job is named 'x'"},
        {STUFFS, "its answer about stacks is not valid"},
    };
    for (size_t i = 0; i < sizeof liars / sizeof liars[0]; i++) {
        struct err e = {0};
        mode = liars[i].mode;
        struct fleet_source *l = fleet_open("x", &here, &e);
        assert_non_null(l);
        expect_note(l, liars[i].note);
        if (mode == REFUSES)
            assert_int_equal(fleet_source_error(l)->code, ERR_ATTACH);
        fleet_source_close(l);
    }
}

/* These are believed as far as they can be, and no further. */
static void test_half_liars(void **state) {
    (void)state;
    struct err e = {0};
    mode = REPEATS;
    struct fleet_source *l = fleet_open("x", &here, &e);
    assert_non_null(l);
    assert_int_equal(fleet_source_fill(l, 1, LIMIT_S, NULL, NULL, &e), 0);
    /* the next answer is not one, and the relay is started again: what is known stays */
    for (int k = 0; k < 3; k++)
        fleet_source_fill(l, 1, 0.3, NULL, NULL, &e);
    assert_int_equal(fleet_source_get(l)->n_ranks, 2);
    fleet_source_close(l);
    mode = CLAIMS;
    l = fleet_open("x", &here, &e);
    assert_int_equal(fleet_source_fill(l, 2, LIMIT_S, NULL, NULL, &e), 0);
    const struct fleet *f = fleet_source_get(l);
    assert_int_equal(f->n_ranks, 2);
    assert_int_equal(f->stacks.n_classes, 0);
    for (size_t i = 0; i < f->n_ranks; i++)
        assert_true(!f->ranks[i].note || !strchr(f->ranks[i].note, 0x1b));
    fleet_source_close(l);
}

/* What a verdict is made of: what cannot be is left out, or unknown. */
static void test_states_of_liars(void **state) {
    (void)state;
    struct watch_there w;
    struct err e = {0};
    size_t n;
    mode = CLAIMS;
    assert_int_equal(watch_there_open(&w, "x", &here, &e), 0);
    assert_int_equal(fleet_watch_read(w.watch, true, &e), 0);
    const struct fleet_verdict_rank *rank = fleet_watch_ranks(w.watch, &n);
    assert_int_equal(n, 1);
    assert_int_equal(rank->rank, 0);
    assert_int_equal(rank->pid, 11);
    const struct rank_state *s = &rank->now->state;
    assert_int_equal(s->state, '?');
    assert_null(strchr(s->wchan, 0x1b));
    assert_int_equal(s->leaf.line, 0);
    assert_int_equal(s->cpu_ns, 0);
    assert_true(isnan(s->still_s));
    assert_int_equal(s->wait, MODEL_WAIT_UNKNOWN);
    assert_int_equal(s->gc, MODEL_UNKNOWN);
    assert_int_equal(rank->now->n_groups, RANK_GROUPS_MAX);
    const struct rank_group *g = &rank->now->groups[RANK_GROUPS_MAX - 1];
    assert_int_equal(g->size, -1);
    assert_int_equal(g->enqueued, -1);
    assert_null(strchr(g->op, 0x1b));
    watch_there_close(&w);
    mode = NOBODY;
    assert_int_equal(watch_there_open(&w, "x", &here, &e), -1);
    assert_int_equal(e.code, ERR_ATTACH);
    assert_non_null(strstr(e.text, "no process of these hosts is a rank of job x"));
    watch_there_close(&w);
}

/* More rows than an answer has room for are asked for again. */
static void test_parts(void **state) {
    (void)state;
    struct watch_there w;
    struct err e = {0};
    size_t n;
    mode = PARTS;
    assert_int_equal(watch_there_open(&w, "x", &here, &e), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(fleet_watch_read(w.watch, true, &e), 0);
        const struct fleet_verdict_rank *rank = fleet_watch_ranks(w.watch, &n);
        assert_int_equal(rank->now->n_groups, 200);
        assert_string_equal(rank->now->groups[199].pg, "199");
    }
    watch_there_close(&w);
}

/* A rank that was started again is another process: it is watched once that is asked for. */
static void test_renew(void **state) {
    (void)state;
    struct watch_there w;
    struct err e = {0};
    size_t n;
    mode = STARTS;
    assert_int_equal(watch_there_open(&w, "x", &here, &e), 0);
    assert_int_equal(fleet_watch_read(w.watch, false, &e), 0);
    assert_int_equal(fleet_watch_gone(w.watch), 0);
    assert_int_equal(watch_there_renew(&w, &e), 0);
    assert_int_equal(fleet_watch_read(w.watch, true, &e), 0);
    assert_int_equal(fleet_watch_gone(w.watch), 1);
    assert_int_equal(watch_there_renew(&w, &e), 1);
    assert_int_equal(fleet_watch_read(w.watch, true, &e), 0);
    assert_int_equal(fleet_watch_ranks(w.watch, &n)->pid, 111);
    assert_int_equal(n, 1);
    assert_int_equal(fleet_watch_gone(w.watch), 0);
    assert_int_equal(watch_there_renew(&w, &e), 0);
    watch_there_close(&w);
}

/* Without an answer nothing is known within the limit; one that stops answering has no news of its ranks. */
static void test_silence(void **state) {
    (void)state;
    struct err e = {0};
    mode = SILENT;
    struct fleet_source *l = fleet_open("x", &here, &e);
    assert_int_equal(fleet_source_fill(l, 1, 0.2, NULL, NULL, &e), -1);
    assert_non_null(strstr(e.text, "did not answer in time"));
    fleet_source_close(l);
    mode = STALLS;
    l = fleet_open("x", &here, &e);
    assert_int_equal(fleet_source_fill(l, 1, LIMIT_S, NULL, NULL, &e), 0);
    assert_int_not_equal(fleet_source_get(l)->ranks[0].state, FLEET_UNKNOWN);
    uint64_t until = clock_mono_ns() + LIMIT_S * CLOCK_NS_PER_S;
    while (clock_mono_ns() < until && fleet_source_get(l)->ranks[0].state != FLEET_UNKNOWN)
        fleet_source_fill(l, 1, 0.3, NULL, NULL, &e);
    assert_int_equal(fleet_source_get(l)->ranks[0].state, FLEET_UNKNOWN);
    assert_string_equal(fleet_source_get(l)->nodes[0].state, "no answer");
    assert_non_null(fleet_source_get(l)->nodes[0].note);
    fleet_source_close(l);
}

/* ---- many hosts ---- */

/* What a host does, by its name, which ends with its first rank. This program is what runs there. */
static const struct {
    const char *name;
    int mode;
} kinds[] = {
    {"good", HONEST},   {"silent", SILENT},  {"ends", ENDS},     {"login", LOGIN},   {"floods", FLOODS},
    {"stalls", STALLS}, {"absent", REFUSES}, {"cut", TRUNCATES}, {"banner", HONEST}, {"errors", ENDS},
    {"noise", SILENT},  {"old", HONEST},     {"named", HONEST},  {"forger", FORGES}, {"loses", LOSES},
    {"leaves", LEAVES}, {"greedy", GREEDY},  {"moved", BURIES},  {"leaves", LEAVES}, {"greedy", GREEDY},
    {"sets", SETS},
};

static int run_relay(const char *host) {
    size_t n = strcspn(host, "-");
    round_ns = 50000000; /* they are many */
    first_rank = host[n] ? atoi(host + n + 1) : 0;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strlen(kinds[i].name) == n && memcmp(kinds[i].name, host, n) == 0)
            mode = kinds[i].mode;
    if (host[0] == 'b')
        printf("Last login: never\n* All use is logged *\n"), fflush(stdout);
    if (host[0] == 'o')
        version_of_it = "0.0.1";
    if (memcmp(host, "named", n) == 0)
        name_of_job = "other.py-dead";
    if (host[0] == 'e' && host[1] == 'r')
        fprintf(stderr, "Warning: a key\nssh: connect to host %s port 22: Connection refused\r\n", host);
    while (host[0] == 'n' && host[1] == 'o')
        if (write(2, "noise noise noise\n", 18) < 0)
            return 1;
    return serve(0, 1);
}

static struct fleet_reach reach_of(const char *hosts) {
    struct fleet_reach r;
    struct err e = {0};
    const struct fleet_reach_options o = {.hosts = hosts, .via = "/proc/self/exe relay {host}"};
    if (fleet_reach_init(&r, &o, serve, &e) != 0)
        fail_msg("%s", e.text);
    return r;
}

static const struct fleet_node *node_of(const struct fleet *f, const char *host) {
    for (size_t i = 0; i < f->n_nodes; i++)
        if (strcmp(f->nodes[i].host, host) == 0)
            return &f->nodes[i];
    fail_msg("no host %s", host);
    return NULL;
}

static bool has_note(const struct fleet *f, const char *host, const char *note) {
    const struct fleet_node *n = node_of(f, host);
    return n->note && strstr(n->note, note);
}

/* Advance until it holds. */
static void wait_for_note(struct fleet_source *l, const char *host, const char *note) {
    uint64_t until = clock_mono_ns() + LIMIT_S * CLOCK_NS_PER_S;
    struct err e = {0};
    while (clock_mono_ns() < until &&
           !(fleet_source_get(l)->n_nodes && has_note(fleet_source_get(l), host, note)))
        fleet_source_fill(l, 1, 0.1, NULL, NULL, &e);
    if (!has_note(fleet_source_get(l), host, note))
        fail_msg("%s: '%s' instead of '%s'", host, node_of(fleet_source_get(l), host)->note, note);
}

/* More hosts than are started at a time: all ranks, each with its host. */
static void test_many_hosts(void **state) {
    (void)state;
    struct err e = {0};
    struct fleet_reach r =
        reach_of("good-0,good-2,good-4,good-6,good-8,good-10,good-12,good-14,good-16,good-18");
    struct fleet_source *l = fleet_open("job:x", &r, &e);
    fleet_reach_fini(&r);
    assert_non_null(l);
    struct strbuf silent;
    strbuf_init(&silent, 0);
    uint64_t until = clock_mono_ns() + LIMIT_S * CLOCK_NS_PER_S;
    do {
        fleet_source_fill(l, 1, 0.1, NULL, NULL, &e);
        strbuf_clear(&silent);
        fleet_source_put_silent(l, &silent);
    } while (clock_mono_ns() < until && (silent.len || fleet_source_get(l)->n_ranks < 20));
    assert_int_equal(silent.len, 0);
    strbuf_fini(&silent);
    const struct fleet *f = fleet_source_get(l);
    assert_int_equal(f->n_nodes, 10);
    assert_int_equal(f->n_ranks, 20);
    for (size_t i = 0; i < f->n_ranks; i++) {
        assert_int_equal(f->ranks[i].rank, i);
        assert_int_equal(f->ranks[i].node, i / 2);
        assert_non_null(f->ranks[i].stack);
    }
    assert_string_equal(f->nodes[3].host, "good-6");
    assert_string_equal(f->nodes[3].state, "ok");
    assert_int_equal(f->stacks.n_classes, 1);
    fleet_source_close(l);
}

/* Steps from before the clock of a host was set are forgotten: by its new offset they are of another time. */
static void test_set_clock(void **state) {
    (void)state;
    struct err e = {0};
    struct fleet_reach r = reach_of("sets-0,good-2");
    struct fleet_source *l = fleet_open("x", &r, &e);
    fleet_reach_fini(&r);
    assert_non_null(l);
    bool had_role = false, is_forgotten = false;
    uint64_t until = clock_mono_ns() + LIMIT_S * CLOCK_NS_PER_S;
    while (clock_mono_ns() < until && !is_forgotten) {
        fleet_source_fill(l, 1, 1, NULL, NULL, &e);
        const struct fleet_rank *rank = fleet_find(fleet_source_get(l), 0);
        had_role |= rank && rank->role == 0;
        is_forgotten = had_role && rank && rank->role < 0;
    }
    assert_true(had_role);
    assert_true(is_forgotten);
    fleet_source_close(l);
}

/* Without a file descriptor no relay can be started at first: that is tried again. */
static void test_starts_that_fail(void **state) {
    (void)state;
    struct err e = {0};
    struct rlimit files, few;
    int first = dup(STDERR_FILENO), second = dup(STDERR_FILENO);
    assert_true(first >= 0 && second > first);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    close(first);
    close(second);
    few = files;
    few.rlim_cur = (rlim_t)second + 1; /* there is room for an epoll and a timer */
    struct fleet_reach r = reach_of("good-0,good-2");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    struct fleet_source *l = fleet_open("x", &r, &e);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    fleet_reach_fini(&r);
    assert_non_null(l);
    struct strbuf silent;
    strbuf_init(&silent, 0);
    fleet_source_put_silent(l, &silent);
    assert_non_null(strstr(strbuf_str(&silent), "cannot start a relay"));
    strbuf_fini(&silent);
    uint64_t until = clock_mono_ns() + LIMIT_S * CLOCK_NS_PER_S;
    while (clock_mono_ns() < until && fleet_source_get(l)->n_ranks < 4)
        fleet_source_fill(l, 1, 0.1, NULL, NULL, &e);
    assert_int_equal(fleet_source_get(l)->n_ranks, 4);
    fleet_source_close(l);
}

/* One good host among all that can be wrong with the others: its ranks are there, and each of the others
 * has its reason. */
static void test_bad_hosts(void **state) {
    (void)state;
    struct err e = {0};
    struct fleet_reach r =
        reach_of("silent-8,ends-8,login-8,floods-8,good-0,absent-8,cut-8,banner-2,errors-8,noise-8,old-4");
    struct fleet_source *l = fleet_open("x", &r, &e);
    fleet_reach_fini(&r);
    assert_non_null(l);
    wait_for_note(l, "ends-8", "it has ended");
    wait_for_note(l, "login-8", "it is not a relay: it printed '");
    wait_for_note(l, "floods-8", "it sent what it was not asked for");
    wait_for_note(l, "absent-8", "no job is named 'x'");
    wait_for_note(l, "cut-8", "it has ended");
    wait_for_note(l, "errors-8", "no relay: ssh: connect to host errors-8 port 22: Connection refused");
    wait_for_note(l, "noise-8", "nois");
    wait_for_note(l, "old-4", "probing 0.0.1 is there");
    uint64_t until = clock_mono_ns() + LIMIT_S * CLOCK_NS_PER_S;
    while (clock_mono_ns() < until && (fleet_source_get(l)->n_ranks < 6 ||
                                       strcmp(node_of(fleet_source_get(l), "good-0")->state, "ok") != 0 ||
                                       strcmp(node_of(fleet_source_get(l), "banner-2")->state, "ok") != 0))
        fleet_source_fill(l, 1, 0.1, NULL, NULL, &e);
    const struct fleet *f = fleet_source_get(l);
    assert_true(f->n_ranks >= 6);
    assert_string_equal(node_of(f, "absent-8")->state, "no such job");
    assert_string_equal(node_of(f, "good-0")->state, "ok");
    assert_string_equal(node_of(f, "banner-2")->state, "ok");
    assert_true(!node_of(f, "silent-8")->job.name && !has_note(f, "silent-8", "it has ended"));
    for (int32_t i = 0; i < 6; i++)
        assert_non_null(fleet_find(f, i));
    struct strbuf silent;
    strbuf_init(&silent, 0);
    fleet_source_put_silent(l, &silent);
    assert_non_null(strstr(strbuf_str(&silent), "silent-8"));
    strbuf_fini(&silent);
    fleet_source_close(l);
}

/* A rank stays with the host that showed it first; the other claim is noted. A host that is silent keeps its
 * ranks, without news. */
static void test_claims(void **state) {
    (void)state;
    struct err e = {0};
    struct fleet_reach r = reach_of("good-0,stalls-1,good-4");
    struct fleet_source *l = fleet_open("x", &r, &e);
    fleet_reach_fini(&r);
    assert_non_null(l);
    bool mine = false, theirs = false;
    uint64_t until = clock_mono_ns() + LIMIT_S * CLOCK_NS_PER_S;
    while (clock_mono_ns() < until && !mine && !theirs) {
        fleet_source_fill(l, 1, 0.1, NULL, NULL, &e);
        const struct fleet *seen = fleet_source_get(l);
        mine = seen->n_nodes && has_note(seen, "stalls-1", "it claims rank 1, which good-0 has");
        theirs = seen->n_nodes && has_note(seen, "good-0", "it claims rank 1, which stalls-1 has");
    }
    assert_true(mine != theirs);
    wait_for_note(l, "stalls-1", "its relay does not answer");
    until = clock_mono_ns() + LIMIT_S * CLOCK_NS_PER_S;
    while (clock_mono_ns() < until && (fleet_find(fleet_source_get(l), 0)->state == FLEET_UNKNOWN ||
                                       fleet_find(fleet_source_get(l), 2)->state != FLEET_UNKNOWN))
        fleet_source_fill(l, 1, 0.1, NULL, NULL, &e);
    const struct fleet *f = fleet_source_get(l);
    assert_int_equal(fleet_find(f, 1)->node, mine ? 0 : 1);
    assert_int_equal(fleet_find(f, 2)->node, 1);
    assert_int_equal(fleet_find(f, 2)->state, FLEET_UNKNOWN);
    assert_non_null(strstr(fleet_find(f, 2)->note, "no news from its host for "));
    assert_true((fleet_find(f, 1)->state == FLEET_UNKNOWN) == theirs);
    assert_int_equal(f->n_ranks, 5);
    fleet_source_close(l);
}

/* A host that was started anew answers, and has the job no longer: there is no news of its ranks, whatever else it
 * says. */
static void test_lost_job(void **state) {
    (void)state;
    struct err e = {0};
    int fd = mkstemp(lost);
    assert_true(fd >= 0 && setenv("FLEET_LOST", lost, 1) == 0);
    close(fd);
    struct fleet_reach r = reach_of("loses-0");
    struct fleet_source *l = fleet_open("x", &r, &e);
    fleet_reach_fini(&r);
    assert_int_equal(fleet_source_fill(l, 1, LIMIT_S, NULL, NULL, &e), 0);
    assert_int_equal(fleet_find(fleet_source_get(l), 0)->state, FLEET_WAITS);
    uint64_t until = clock_mono_ns() + LIMIT_S * CLOCK_NS_PER_S;
    while (clock_mono_ns() < until && fleet_find(fleet_source_get(l), 0)->state != FLEET_UNKNOWN)
        fleet_source_fill(l, 1, 0.1, NULL, NULL, &e);
    until = clock_mono_ns() + 7 * CLOCK_NS_PER_S; /* it is started again meanwhile */
    while (clock_mono_ns() < until) {
        assert_int_equal(fleet_find(fleet_source_get(l), 0)->state, FLEET_UNKNOWN);
        fleet_source_fill(l, 1, 0.1, NULL, NULL, &e);
    }
    fleet_source_close(l);
    (void)unlink(lost);
}

/* A host that gives no news keeps its ranks, though another one claims them, and says that thousands are missing. */
static void test_renew_beside_silence(void **state) {
    (void)state;
    struct watch_there w;
    struct err e = {0};
    size_t n;
    struct fleet_reach r = reach_of("leaves-4,greedy-0");
    assert_int_equal(watch_there_open(&w, "x", &r, &e), 0);
    fleet_reach_fini(&r);
    assert_int_equal(fleet_watch_read(w.watch, false, &e), 0);
    assert_int_equal(fleet_watch_read(w.watch, true, &e), 0);
    assert_int_equal(watch_there_renew(&w, &e), 1);
    const struct fleet_verdict_rank *ranks = fleet_watch_ranks(w.watch, &n);
    assert_true(n > 2 && ranks[0].rank == 0 && ranks[1].rank == 4);
    assert_int_equal(ranks[0].pid, 111);
    assert_int_equal(ranks[1].pid, 11);
    watch_there_close(&w);
}

/* A rank of which its host gives no reading is unknown as long as the host counts it among its own, and dead after. */
static void test_a_rank_that_ends(void **state) {
    (void)state;
    struct watch_there w;
    struct err e = {0};
    size_t n;
    mode = DROPS;
    assert_int_equal(watch_there_open(&w, "x", &here, &e), 0);
    const struct fleet_verdict_rank *ranks = fleet_watch_ranks(w.watch, &n);
    assert_int_equal(n, 2);
    assert_int_equal(fleet_watch_read(w.watch, false, &e), 0);
    assert_true(ranks[1].now && !ranks[1].now->state.gone);
    assert_int_equal(fleet_watch_read(w.watch, true, &e), 0);
    assert_true(ranks[0].now && !ranks[1].now);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(fleet_watch_read(w.watch, true, &e), 0);
        assert_true(ranks[0].now && !ranks[0].now->state.gone);
        assert_true(ranks[1].now && ranks[1].now->state.gone);
        assert_int_equal(fleet_watch_gone(w.watch), 1);
        assert_int_equal(watch_there_renew(&w, &e), 0);
    }
    watch_there_close(&w);
}

/* A rank that has ended on one host and lives on another one is that one's from then on. */
static void test_a_rank_that_moves(void **state) {
    (void)state;
    struct watch_there w;
    struct err e = {0};
    size_t n;
    struct fleet_reach r = reach_of("moved-4,good-0");
    assert_int_equal(watch_there_open(&w, "x", &r, &e), 0);
    fleet_reach_fini(&r);
    assert_int_equal(fleet_watch_read(w.watch, false, &e), 0);
    assert_int_equal(fleet_watch_ranks(w.watch, &n)[0].pid, 12);
    assert_int_equal(watch_there_renew(&w, &e), 0);
    assert_int_equal(fleet_watch_read(w.watch, true, &e), 0);
    assert_int_equal(fleet_watch_gone(w.watch), 1);
    assert_int_equal(watch_there_renew(&w, &e), 1);
    assert_int_equal(fleet_watch_read(w.watch, true, &e), 0);
    assert_int_equal(fleet_watch_ranks(w.watch, &n)[0].pid, 11);
    assert_int_equal(n, 2);
    assert_int_equal(fleet_watch_gone(w.watch), 0);
    watch_there_close(&w);
}

/* The numbers of stacks are equal, their frames are not: each host is believed about its own ranks alone. */
static void test_forged_stacks(void **state) {
    (void)state;
    struct err e = {0};
    struct fleet_reach r = reach_of("forger-0,good-2,forger-4,good-6");
    struct fleet_source *l = fleet_open("x", &r, &e);
    fleet_reach_fini(&r);
    assert_non_null(l);
    uint64_t until = clock_mono_ns() + LIMIT_S * CLOCK_NS_PER_S;
    while (clock_mono_ns() < until && fleet_source_get(l)->n_ranks < 8)
        fleet_source_fill(l, 1, 0.1, NULL, NULL, &e);
    const struct fleet *f = fleet_source_get(l);
    assert_int_equal(f->n_ranks, 8);
    for (int32_t i = 0; i < 8; i++)
        assert_string_equal(fleet_find(f, i)->at->func, i % 4 < 2 ? "forged" : "inner");
    assert_int_equal(f->stacks.n_classes, 2);
    fleet_source_close(l);
}

/* "The only job" of one host is another than that of the first. */
static void test_other_job(void **state) {
    (void)state;
    struct err e = {0};
    struct fleet_reach r = reach_of("named-0,named-2");
    struct fleet_source *l = fleet_open("job:", &r, &e);
    fleet_reach_fini(&r);
    assert_int_equal(fleet_source_fill(l, 1, LIMIT_S, NULL, NULL, &e), 0);
    assert_string_equal(fleet_source_get(l)->job, "other.py-dead");
    assert_int_equal(fleet_source_get(l)->n_ranks, 4);
    fleet_source_close(l);
    r = reach_of("absent-0,absent-2");
    l = fleet_open("y", &r, &e);
    fleet_reach_fini(&r);
    assert_int_equal(fleet_source_fill(l, 1, LIMIT_S, NULL, NULL, &e), -1);
    assert_int_equal(e.code, ERR_ATTACH);
    assert_non_null(strstr(e.text, "absent-0: no job is named 'x'"));
    fleet_source_close(l);
    r = reach_of("errors-0,errors-2");
    l = fleet_open("y", &r, &e);
    fleet_reach_fini(&r);
    assert_int_equal(fleet_source_fill(l, 1, LIMIT_S, NULL, NULL, &e), -1);
    assert_non_null(strstr(e.text, "no host can be reached: errors-0: "));
    assert_int_equal(fleet_source_get(l)->n_nodes, 2);
    fleet_source_close(l);
}

/* ---- commands ---- */

static void expect_words(const struct relay_via *v, const char *host, const char *words) {
    struct relay_words w;
    struct err e = {0};
    struct strbuf text;
    strbuf_init(&text, 0);
    if (relay_via_words(v, host, &w, &e) != 0)
        fail_msg("%s", e.text);
    for (size_t i = 0; i < w.n; i++)
        strbuf_addf(&text, "%s<%s>", i ? " " : "", w.words[i]);
    assert_null(w.words[w.n]);
    assert_string_equal(strbuf_str(&text), words);
    strbuf_fini(&text);
}

static void refuse_words(const struct relay_via *v, const char *part) {
    struct relay_words w;
    struct err e = {0};
    assert_int_equal(relay_via_words(v, "a", &w, &e), -1);
    assert_int_equal(e.code, ERR_USAGE);
    if (!strstr(e.text, part))
        fail_msg("'%s' lacks '%s'", e.text, part);
}

static void test_words(void **state) {
    (void)state;
    struct relay_words w;
    struct err e = {0};
    expect_words(&(struct relay_via){.via = NULL}, "a",
                 "<ssh> <-C> <-oBatchMode=yes> <-oConnectTimeout=5> <a> <sh>");
    expect_words(&(struct relay_via){.slurm = "7"}, "a",
                 "<srun> <--jobid=7> <--overlap> <-N1> <-n1> <-w> <a> <sh>");
    expect_words(&(struct relay_via){.via = "kubectl"}, "a", "<kubectl> <exec> <-i> <a> <--> <sh>");
    expect_words(&(struct relay_via){.via = "kubectl", .container = "c"}, "a",
                 "<kubectl> <exec> <-i> <a> <-c> <c> <--> <sh>");
    expect_words(&(struct relay_via){.via = "docker", .relay = "/x relay --stdio"}, "a",
                 "<docker> <exec> <-i> <a> </x> <relay> <--stdio>");
    expect_words(&(struct relay_via){.via = "ssh login ssh {host} {relay}"}, "a",
                 "<ssh> <login> <ssh> <a> <sh>");
    expect_words(&(struct relay_via){.via = " x 'a b'\"c d\"e  \\'  '{host}' \"\" {relay}{host} {x {}"},
                 "h{relay}", "<x> <a bc de> <'> <h{relay}> <> <shh{relay}> <{x> <{}>");
    assert_int_equal(relay_via_words(&(struct relay_via){.via = "docker"}, "a", &w, &e), 0);
    assert_string_equal(w.script, RELAY_SCRIPT);
    assert_int_equal(relay_via_words(&(struct relay_via){.via = "docker", .relay = "r"}, "a", &w, &e), 0);
    assert_null(w.script);
    assert_int_equal(relay_via_words(&(struct relay_via){.via = "x {host}"}, "a", &w, &e), 0);
    assert_null(w.script);
    assert_int_equal(relay_via_words(&(struct relay_via){.via = "local"}, "a", &w, &e), 0);
    assert_int_equal(w.n, 0);
    refuse_words(&(struct relay_via){.via = "srun"}, "give --slurm JOB");
    refuse_words(&(struct relay_via){.via = "x {host} {container}"}, "needs --container NAME");
    refuse_words(&(struct relay_via){.via = "x {host} {nobody}"}, "is not known");
    refuse_words(&(struct relay_via){.via = "shh"}, "has no {host}; presets are");
    refuse_words(&(struct relay_via){.via = ""}, "has no {host}");
    refuse_words(&(struct relay_via){.via = "x '{host}"}, "lacks a quote");
    char many[RELAY_WORDS_BYTES + 64];
    memset(many, 'x', sizeof many);
    memcpy(many, "{host} ", 7);
    many[sizeof many - 1] = '\0';
    refuse_words(&(struct relay_via){.via = many}, "longer than");
    for (size_t i = 8; i + 1 < sizeof many; i += 2)
        many[i] = ' ';
    refuse_words(&(struct relay_via){.via = many}, "more than 64 words");
}

/* ---- many hosts ---- */

#define CROWD 1250 /* hosts of 8 ranks */

/* A rank that the last host claims from another one stays that one's, and is its when that process has ended. */
static void test_crowd(void **state) {
    static struct report_rank rows[CROWD][9];
    struct fleet_hosts hs;
    (void)state;
    assert_int_equal(fleet_hosts_init(&hs, CROWD), 0);
    for (int i = 0; i < CROWD; i++) {
        for (int k = 0; k < 8; k++) {
            rows[i][k] = rank_row(8 * i + k, "S");
            rows[i][k].stack = 7 + k;
        }
        snprintf(hs.items[i].host, sizeof hs.items[i].host, "gpu%d", i);
        hs.items[i].stacks = 0;
        hs.items[i].has_job = true;
        hs.items[i].ranks = rows[i];
        hs.items[i].n_ranks = 8;
    }
    rows[CROWD - 1][8] = rank_row(2400, "S");
    for (int k = 0; k < 8; k++) {
        const struct model_frame frame = {.func = "train", .file = "/job/train.py", .line = 10 + k};
        assert_int_equal(fleet_hosts_put_stack(&hs, 0, 7 + k, &frame, 1), 0);
    }
    for (int i = CROWD; i-- > 0;)
        for (int k = 0; k < 8; k++) {
            struct report_time row;
            report_clear(&REPORT_TABLE_TIME, &row);
            row.rank = 8 * i + k;
            row.pid = rows[i][k].pid;
            row.seq = 1;
            row.step = 1;
            row.at = 99;
            row.ms = 100;
            fleet_hosts_add_time(&hs, (size_t)i, &row);
        }
    fleet_hosts_build(&hs, true);
    assert_int_equal(hs.fleet.n_ranks, 8 * CROWD);
    assert_int_equal(hs.fleet.stacks.n_classes, 8);
    assert_int_equal(fleet_find(&hs.fleet, 9999)->node, CROWD - 1);
    hs.items[CROWD - 1].n_ranks = 9;
    fleet_hosts_build(&hs, true);
    assert_int_equal(fleet_find(&hs.fleet, 2400)->node, 300);
    assert_string_equal(hs.fleet.nodes[CROWD - 1].note, "it claims rank 2400, which gpu300 has");
    rows[300][0].state = "X";
    fleet_hosts_build(&hs, true);
    assert_int_equal(fleet_find(&hs.fleet, 2400)->node, CROWD - 1);
    assert_int_equal(hs.fleet.round, 3);
    fleet_hosts_fini(&hs);
}

/* ---- times that cannot be ---- */

/* Two hosts of a rank each, the first of which is honest: its stack is 10 s old, its step 2 s. */
static void say_times(struct fleet_hosts *hs, struct report_rank *rows, double now, double claimed) {
    assert_int_equal(fleet_hosts_init(hs, 2), 0);
    for (int i = 0; i < 2; i++) {
        rows[i] = rank_row(i, "S");
        rows[i].taken_at = i ? claimed : now;
        rows[i].since = rows[i].taken_at - 10;
        rows[i].step_at = rows[i].taken_at - 2;
        snprintf(hs->items[i].host, sizeof hs->items[i].host, "gpu%d", i);
        hs->items[i].has_job = true;
        hs->items[i].ranks = &rows[i];
        hs->items[i].n_ranks = 1;
        hs->items[i].ahead_ms = 0;
        hs->items[i].error_ms = 3;
    }
}

/* A host whose times have not come yet, or are none, has none; the ages of the others are what they are. */
static void test_times_to_come(void **state) {
    const double lies[] = {1e9, 1e300, INFINITY, -1e300, 60};
    (void)state;
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        struct fleet_hosts hs;
        struct report_rank rows[2];
        double now = clock_epoch_s();
        say_times(&hs, rows, now, now + lies[i]);
        fleet_hosts_build(&hs, true);
        assert_true(hs.fleet.taken_at == now);
        assert_true(fabs(fleet_age_s(&hs.fleet, hs.fleet.ranks[0].since) - 10) < 1e-3);
        assert_true(isnan(hs.fleet.ranks[1].taken_at) && isnan(hs.fleet.ranks[1].since) &&
                    isnan(hs.fleet.ranks[1].step_at));
        /* nobody has a time */
        hs.items[0].n_ranks = 0;
        fleet_hosts_build(&hs, true);
        assert_true(isnan(hs.fleet.taken_at));
        struct strbuf text;
        strbuf_init(&text, 0);
        fleet_put_tree(&hs.fleet, 80, &text);
        assert_null(strstr(strbuf_str(&text), ", at "));
        strbuf_fini(&text);
        fleet_hosts_fini(&hs);
    }
}

/* What a clock may be off is allowed, however slowly it is answered not more than 3 s; and of a database the moment
 * that is shown counts. */
static void test_times_within_the_error(void **state) {
    struct fleet_hosts hs;
    struct report_rank rows[2];
    double now = clock_epoch_s();
    (void)state;
    say_times(&hs, rows, now, now + 2);
    fleet_hosts_build(&hs, true);
    assert_true(isnan(hs.fleet.ranks[1].taken_at));
    hs.items[1].error_ms = 15e3;
    fleet_hosts_build(&hs, true);
    assert_true(hs.fleet.ranks[1].taken_at == now + 2);
    assert_true(hs.fleet.taken_at == now + 2);
    /* its clock is ahead by an hour, which is known */
    rows[1].taken_at = now + 3600;
    hs.items[1].ahead_ms = 3600e3;
    fleet_hosts_build(&hs, true);
    assert_true(fabs(hs.fleet.ranks[1].taken_at - now) < 1e-3);
    fleet_hosts_fini(&hs);
    say_times(&hs, rows, 1000, 1004);
    hs.latest = 1005;
    fleet_hosts_build(&hs, true);
    assert_true(hs.fleet.taken_at == 1004);
    rows[1].taken_at = 1010;
    fleet_hosts_build(&hs, true);
    assert_true(hs.fleet.taken_at == 1000);
    fleet_hosts_fini(&hs);
}

/* ---- without memory ---- */

#ifdef __SANITIZE_ADDRESS__
static void test_no_memory(void **state) {
    (void)state;
    skip(); /* it ends a program that asks for too much */
}
#else
/* More ranks than there can be memory for: whoever calls frees the texts of the fleet before, which is gone. */
static void test_no_memory(void **state) {
    struct fleet_hosts hs;
    struct report_rank rows[2];
    (void)state;
    say_times(&hs, rows, 1000, 1000);
    rows[0].note = "a text";
    fleet_hosts_build(&hs, true);
    assert_int_equal(hs.fleet.n_ranks, 2);
    hs.items[1].n_ranks = SIZE_MAX / sizeof(struct fleet_report);
    fleet_hosts_build(&hs, true);
    assert_int_equal(hs.fleet.n_ranks, 0);
    assert_int_equal(hs.fleet.n_nodes, 0);
    assert_int_equal(hs.fleet.round, 1);
    hs.items[1].n_ranks = 1;
    fleet_hosts_build(&hs, true);
    assert_int_equal(hs.fleet.n_ranks, 2);
    assert_int_equal(hs.fleet.round, 2);
    fleet_hosts_fini(&hs);
}
#endif

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN);
    if (argc == 3 && strcmp(argv[1], "relay") == 0)
        return run_relay(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_build),
        cmocka_unit_test(test_honest),
        cmocka_unit_test(test_liars),
        cmocka_unit_test(test_half_liars),
        cmocka_unit_test(test_states_of_liars),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_renew),
        cmocka_unit_test(test_silence),
        cmocka_unit_test(test_many_stacks),
        cmocka_unit_test(test_half_a_round),
        cmocka_unit_test(test_many_hosts),
        cmocka_unit_test(test_crowd),
        cmocka_unit_test(test_set_clock),
        cmocka_unit_test(test_starts_that_fail),
        cmocka_unit_test(test_bad_hosts),
        cmocka_unit_test(test_claims),
        cmocka_unit_test(test_lost_job),
        cmocka_unit_test(test_renew_beside_silence),
        cmocka_unit_test(test_a_rank_that_ends),
        cmocka_unit_test(test_a_rank_that_moves),
        cmocka_unit_test(test_other_job),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_forged_stacks),
        cmocka_unit_test(test_times_to_come),
        cmocka_unit_test(test_times_within_the_error),
        cmocka_unit_test(test_silent_are_not_sampled),
        cmocka_unit_test(test_stacks_that_end_inside),
        cmocka_unit_test(test_notes_of_ranks),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
