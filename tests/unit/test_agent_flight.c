/* SPDX-License-Identifier: Apache-2.0 */
/* Documents of torch's flight recorder, as its versions write them, out of a job that is made up:
 * the counters that are read are those of the job. And documents that no recorder writes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/python/flight.h"
#include "base/strbuf.h"
#include "support/flight_documents.h"

/* ---- a job ---- */

#define GROUPS 3
#define MOST FLIGHT_MADE_MOST

static const struct flight_group *find(const struct flight *f, int number) {
    for (size_t i = 0; i < f->n; i++)
        if (f->groups[i].number == number)
            return &f->groups[i];
    return NULL;
}

/* A job at a random moment. Two of its operations at most run at a time with gloo, in any order. */
static void make_job(struct flight_made *groups, unsigned seed) {
    static const char *const names[] = {"0", "tensor_parallel", "3f:1"}, *const descs[] = {"default_pg",
                                                                                           "undefined",
                                                                                           "mesh_dp"};
    srand(seed);
    for (int i = 0; i < GROUPS; i++) {
        struct flight_made *g = &groups[i];
        *g = (struct flight_made){
            .number = 2 * i + (int)(seed % 3), .name = names[i], .desc = descs[i], .p2p = i == 2 && seed % 2};
        g->enqueued = rand() % 5 == 0 ? 0 : 1 + rand() % (MOST - 1);
        int open = rand() % 4;
        for (int seq = 1; seq <= g->enqueued; seq++)
            g->over[seq] = seq <= g->enqueued - open || rand() % 2;
        /* what has not ended is still in the ring, and the last one */
        int most = flight_made_completed(g) < g->enqueued ? flight_made_completed(g) + 1 : g->enqueued;
        g->first = most ? 1 + rand() % most : 1;
    }
}

static void check_group(const struct flight_made *g, const struct flight_form *form,
                        const struct flight_group *got) {
    int open = flight_made_completed(g) + 1;
    assert_string_equal(got->name, g->name);
    assert_string_equal(got->desc, form->pairs ? g->desc : "");
    assert_string_equal(got->backend, form->nccl ? "nccl" : "gloo");
    assert_int_equal(got->enqueued, g->enqueued);
    assert_int_equal(got->completed, flight_made_completed(g));
    assert_int_equal(got->timeout_ms, 600000);
    assert_int_equal(got->p2p, g->p2p);
    if (open > g->enqueued) {
        assert_int_equal(got->open_seq, FLIGHT_UNKNOWN);
        return;
    }
    assert_int_equal(got->open_seq, open);
    assert_string_equal(got->open_op, open % 2 ? "all_reduce" : "broadcast");
    assert_int_equal(got->open_bytes, (int64_t)open * 2 * 4 + 4 * 2);
    assert_string_equal(got->open_dtype, "float32");
}

static void entries_are_counted_in_every_version(void **state) {
    struct flight_made groups[GROUPS];
    (void)state;
    for (unsigned seed = 0; seed < 400; seed++)
        for (size_t i = 0; i < FLIGHT_FORMS; i++) {
            struct strbuf text;
            struct flight f;
            struct err e;
            make_job(groups, seed);
            flight_made_put(groups, GROUPS, &flight_forms[i], true, &text);
            assert_int_equal(flight_read(&f, text.data, text.len, &e), 0);
            size_t n = 0;
            for (int g = 0; g < GROUPS; g++) {
                const struct flight_group *got = find(&f, groups[g].number);
                n += groups[g].enqueued > 0;
                assert_true((got != NULL) == (groups[g].enqueued > 0));
                if (got)
                    check_group(&groups[g], &flight_forms[i], got);
            }
            assert_int_equal(f.n, n);
            assert_false(f.more);
            flight_fini(&f);
            strbuf_fini(&text);
        }
}

static void without_entries_the_status_counts(void **state) {
    struct flight_made groups[GROUPS];
    (void)state;
    for (size_t i = 0; i < FLIGHT_FORMS; i++) {
        struct strbuf text;
        struct flight f;
        struct err e;
        make_job(groups, 5);
        groups[0].enqueued = 4;
        memset(groups[0].over, 0, sizeof groups[0].over);
        groups[1].enqueued = 9;
        memset(groups[1].over, 1, sizeof groups[1].over);
        flight_made_put(groups, GROUPS, &flight_forms[i], false, &text);
        assert_int_equal(flight_read(&f, text.data, text.len, &e), 0);
        const struct flight_group *first = find(&f, groups[0].number), *second = find(&f, groups[1].number);
        assert_true((first != NULL) == flight_forms[i].status && (second != NULL) == flight_forms[i].status);
        if (first) {
            assert_true(first->enqueued == 4 && first->completed == 0 && first->p2p == FLIGHT_UNKNOWN);
            assert_true(second->enqueued == 9 && second->completed == 9 && !second->name[0] &&
                        second->open_seq == FLIGHT_UNKNOWN);
        }
        assert_int_equal(f.entries, 0);
        flight_fini(&f);
        strbuf_fini(&text);
    }
}

/* A group whose entries the ring has no longer: its status is what is known. */
static void a_quiet_group_keeps_its_status(void **state) {
    struct flight_made groups[GROUPS];
    struct strbuf text;
    struct flight f;
    struct err e;
    (void)state;
    make_job(groups, 3);
    groups[0].enqueued = 7;
    memset(groups[0].over, 1, sizeof groups[0].over);
    groups[0].first = MOST;
    flight_made_put(groups, GROUPS, &flight_forms[5], true, &text);
    assert_int_equal(flight_read(&f, text.data, text.len, &e), 0);
    const struct flight_group *g = find(&f, groups[0].number);
    assert_non_null(g);
    assert_true(g->enqueued == 7 && g->completed == 7 && !g->name[0]);
    flight_fini(&f);
    strbuf_fini(&text);
}

static int read_text(const char *text, struct flight *f) {
    struct err e;
    /* an allocation of its own: a byte too many is one for the sanitizer */
    size_t n = strlen(text);
    char *copy = malloc(n ? n : 1);
    assert_non_null(copy);
    memcpy(copy, text, n);
    int rc = flight_read(f, copy, n, &e);
    free(copy);
    return rc;
}

static void a_document_that_is_cut_has_no_groups(void **state) {
    struct flight_made groups[GROUPS];
    struct strbuf text;
    struct flight f;
    struct err e;
    (void)state;
    make_job(groups, 7);
    flight_made_put(groups, GROUPS, &flight_forms[5], true, &text);
    for (size_t n = 0; n < text.len; n++) {
        assert_int_equal(flight_read(&f, text.data, n, &e), -1);
        assert_true(f.n == 0 && !f.groups);
    }
    strbuf_fini(&text);
}

static void documents_that_are_not(void **state) {
    static const char *const bad[] = {"",
                                      " ",
                                      "[]",
                                      "null",
                                      "{",
                                      "{\"pg_status\":{\"0\":{}}",
                                      "{}}",
                                      "{} {}",
                                      "{\"entries\":[}]}",
                                      "{\"entries\" [ ]}",
                                      "{\"entries\":[{\"pg_id\":1 \"x\":2}]}",
                                      "{\"a\":\"\\u12\"}",
                                      "{\"a\":\"\\"};
    static const char *const empty[] = {
        "{}",
        " {\n} ",
        "{\"entries\":[],\"pg_status\":{}}",
        "{\"entries\":null,\"pg_status\":[3]}",
        "{\"pg_status\":{\"x\":{\"last_enqueued_collective\":\"3\"},\"-2\":{}, \"99999999999999999999\":7}}",
        "{\"entries\":[1,\"a\",[[]],{\"pg_id\":\"y\"},{\"pg_id\":-4},{}]}"};
    struct flight f;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(read_text(bad[i], &f), -1);
    for (size_t i = 0; i < sizeof empty / sizeof empty[0]; i++) {
        assert_int_equal(read_text(empty[i], &f), 0);
        for (size_t g = 0; g < f.n; g++)
            assert_true(f.groups[g].enqueued == FLIGHT_UNKNOWN);
        flight_fini(&f);
    }
}

struct entry {
    int seq, op;
    const char *title, *state;
    bool p2p;
};

/* The group with these entries, and with this status. */
static struct flight_group read_group(const struct entry *entries, size_t n, int enqueued, int completed) {
    struct strbuf text;
    struct flight f;
    strbuf_init(&text, 0);
    strbuf_addf(&text,
                "{\"pg_status\":{\"3\":{\"last_enqueued_collective\":%d,"
                "\"last_completed_collective\":%d}},\"entries\":[",
                enqueued, completed);
    for (size_t i = 0; i < n; i++)
        strbuf_addf(&text,
                    "%s{\"pg_id\":3,\"collective_seq_id\":%d,\"op_id\":%d,\"profiling_name\":\"%s\","
                    "\"state\":\"%s\",\"retired\":true,\"is_p2p\":%s}",
                    i ? "," : "", entries[i].seq, entries[i].op, entries[i].title, entries[i].state,
                    entries[i].p2p ? "true" : "false");
    strbuf_adds(&text, "]}");
    assert_int_equal(read_text(strbuf_str(&text), &f), 0);
    assert_int_equal(f.n, 1);
    struct flight_group g = f.groups[0];
    flight_fini(&f);
    strbuf_fini(&text);
    return g;
}

static void a_coalesced_block_ends_as_one(void **state) {
    struct entry entries[] = {
        {4, 8, "nccl:all_reduce", "completed", false},
        {5, 9, "nccl:_broadcast_oop", "scheduled", false},
        {5, 10, "nccl:_broadcast_oop", "scheduled", false},
        {5, 10, "nccl:ALLGATHER_coalesced", "completed", false},
        {6, 11, "nccl:_broadcast_oop", "scheduled", false},
        {6, 11, "nccl:ALLGATHER_coalesced", "completed", false},
        {7, 12, "nccl:_reduce_oop", "scheduled", false},
        {7, 12, "nccl:REDUCE_SCATTER_coalesced", "started", false},
        {8, 13, "nccl:all_reduce", "scheduled", false},
    };
    struct flight_group g;
    (void)state;
    g = read_group(entries, 6, 6, 4);
    assert_true(g.enqueued == 6 && g.completed == 6 && g.open_seq == FLIGHT_UNKNOWN);
    g = read_group(entries, 9, 8, 6);
    assert_true(g.enqueued == 8 && g.completed == 6 && g.open_seq == 7);
    assert_string_equal(g.open_op, "_reduce_oop");
    /* a block that has not ended is not over because a later one is */
    entries[3].state = "started";
    g = read_group(entries, 6, 6, 4);
    assert_true(g.enqueued == 6 && g.completed == 4 && g.open_seq == 5);
}

/* The status is of a send, whose count is another one. */
static void sends_of_nccl_are_not_collectives(void **state) {
    static const struct entry entries[] = {
        {99, 200, "nccl:all_reduce", "completed", false},
        {99, 201, "nccl:send 2->3", "completed", true},
        {100, 202, "nccl:all_reduce", "completed", false},
        {100, 203, "nccl:send 2->3", "scheduled", true},
    };
    struct flight_group g;
    (void)state;
    g = read_group(entries, 4, 5000, 100);
    assert_true(g.enqueued == 100 && g.completed == 100 && g.open_seq == FLIGHT_UNKNOWN && g.p2p == 1);
    /* with none but sends, or no entries, the status is what is known */
    g = read_group(&entries[3], 1, 5000, 100);
    assert_true(g.enqueued == 5000 && g.completed == 100 && g.p2p == 1);
}

/* Each is an operation that has no entry, and no tag. */
static void sends_of_gloo_are_seen_between_collectives(void **state) {
    static const struct entry entries[] = {
        {50, 50, "gloo:all_reduce", "scheduled", false},   {51, 51, "gloo:all_reduce", "scheduled", false},
        {52, 107, "gloo:barrier", "scheduled", false},     {54, 54, "gloo:all_reduce", "scheduled", false},
        {2057, 57, "gloo:all_reduce", "scheduled", false},
    };
    struct flight_group g;
    (void)state;
    g = read_group(entries, 2, 51, 51);
    assert_true(g.enqueued == 51 && g.completed == 51 && g.p2p == 0);
    g = read_group(entries, 3, 107, 107);
    assert_true(g.enqueued == 107 && g.completed == 107 && g.p2p == 1);
    /* also where those before them are no longer in the ring */
    assert_int_equal(read_group(&entries[2], 1, 107, 107).p2p, 1);
    /* more tags than operations are no sends */
    assert_int_equal(read_group(&entries[3], 2, 57, 57).p2p, 0);
}

static void hostile_documents_are_bounded(void **state) {
    struct strbuf text;
    struct flight f;
    struct err e;
    (void)state;
    /* deep */
    strbuf_init(&text, 0);
    strbuf_adds(&text, "{\"nccl_comm_state\":");
    for (int i = 0; i < 100000; i++)
        strbuf_addc(&text, '[');
    assert_int_equal(flight_read(&f, text.data, text.len, &e), -1);
    /* many groups */
    strbuf_clear(&text);
    strbuf_adds(&text, "{\"pg_status\":{");
    for (int i = 0; i < 3 * FLIGHT_GROUPS; i++)
        strbuf_addf(&text, "%s\"%d\":{\"last_enqueued_collective\":1}", i ? "," : "", i);
    strbuf_adds(&text, "}}");
    assert_int_equal(flight_read(&f, text.data, text.len, &e), 0);
    assert_true(f.n == FLIGHT_GROUPS && f.more);
    flight_fini(&f);
    /* numbers without end, names that are long and no texts, sizes that overflow */
    strbuf_clear(&text);
    strbuf_adds(&text, "{\"entries\":[{\"pg_id\":3,\"op_id\":8,\"profiling_name\":\"gloo:\\u001b["
                       "2Jx\\ud800\",\"process_group\":[\"");
    for (int i = 0; i < 5000; i++)
        strbuf_adds(&text, "\xc3\xa9\xff");
    strbuf_adds(&text, "\",{\"a\":[]}],\"timeout_ms\":99999999999999999999999999,\"input_sizes\":[["
                       "4611686018427387904,4],[2]],"
                       "\"input_dtypes\":[\"Float\",\"Float\"]}]}");
    assert_int_equal(flight_read(&f, text.data, text.len, &e), 0);
    assert_int_equal(f.n, 1);
    assert_true(f.groups[0].timeout_ms == FLIGHT_UNKNOWN && f.groups[0].open_bytes == FLIGHT_UNKNOWN);
    assert_true(f.groups[0].open_seq == 8 && !strchr(f.groups[0].open_op, 0x1b) &&
                strlen(f.groups[0].name) < FLIGHT_NAME);
    flight_fini(&f);
    strbuf_fini(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_are_counted_in_every_version),
        cmocka_unit_test(without_entries_the_status_counts),
        cmocka_unit_test(a_quiet_group_keeps_its_status),
        cmocka_unit_test(a_document_that_is_cut_has_no_groups),
        cmocka_unit_test(documents_that_are_not),
        cmocka_unit_test(a_coalesced_block_ends_as_one),
        cmocka_unit_test(sends_of_nccl_are_not_collectives),
        cmocka_unit_test(sends_of_gloo_are_seen_between_collectives),
        cmocka_unit_test(hostile_documents_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
