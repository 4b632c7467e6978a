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

/* ---- a job ---- */

#define GROUPS 3
#define MOST 64 /* operations of a group */

/* One group, as this rank is in it: operations are numbered from 1. */
struct made_group {
    int number;
    const char *name, *desc;
    int enqueued;
    bool over[MOST + 1];
    bool p2p;  /* it also sends */
    int first; /* the oldest operation that the ring still has; beyond `enqueued`: none */
};

/* How a version writes. */
struct form {
    const char *version;
    bool status, texts /* its numbers are texts */, pairs /* a name has a description */, nccl, sorted;
};

static const struct form forms[] = {
    {"2.5", true, true, true, true, true},     {"2.6", true, true, true, true, false},
    {"2.7", true, false, true, true, true},    {"2.8", true, true, true, false, true},
    {"2.9", true, true, true, false, false},   {"2.10", true, true, true, false, true},
    {"2.4", false, false, true, true, true},   {"2.1", false, false, false, true, false},
    {"2.10", false, false, true, false, true},
};

static int last_over(const struct made_group *g) {
    int i = 1;
    while (i <= g->enqueued && g->over[i])
        i++;
    return i - 1;
}

/* The last that ended, as gloo notes it: not the last of those before which all have. */
static int noted(const struct made_group *g) {
    int last = -1;
    for (int i = 1; i <= g->enqueued; i++)
        if (g->over[i])
            last = i;
    return last;
}

static void put_status(const struct made_group *g, const struct form *form, struct strbuf *out) {
    const char *quote = form->texts ? "\"" : "";
    strbuf_addf(out,
                "\"%d\": {\"last_completed_collective\":%s%d%s,\"last_enqueued_collective\":%s%d%s, "
                "\"last_started_collective\" : %s-1%s}",
                g->number, quote, noted(g), quote, quote, g->enqueued ? g->enqueued : -1, quote, quote,
                quote);
}

static void put_entry(const struct made_group *g, const struct form *form, int seq, bool p2p,
                      struct strbuf *out) {
    const char *state = form->nccl && g->over[seq] ? "completed" : "scheduled";
    strbuf_addf(out, "%s{\"collective_seq_id\":%d,\"duration_ms\":0.25,",
                out->data[out->len - 1] == '[' ? "" : ",\n", form->nccl ? seq : 1000 + seq);
    strbuf_addf(out, "\"input_dtypes\":[\"Float\",\"BFloat16\"],\"input_sizes\":[[%d,2],[4]],", seq);
    strbuf_addf(out, "\"is_p2p\":%s,\"op_id\":%d,\"pg_id\":%d,", p2p ? "true" : "false", form->nccl ? 7 : seq,
                g->number);
    if (form->pairs)
        strbuf_addf(out, "\"process_group\":[\"%s\",\"%s\"],", g->name, g->desc);
    else
        strbuf_addf(out, "\"process_group\":\"%s\",", g->name);
    strbuf_addf(out, "\"profiling_name\":\"%s:%s\",\"record_id\":9,\"retired\":%s,\"state\":\"%s\",",
                form->nccl ? "nccl" : "gloo",
                p2p       ? "send"
                : seq % 2 ? "all_reduce"
                          : "broadcast",
                g->over[seq] ? "true" : "false", state);
    strbuf_addf(
        out,
        "\"frames\":[{\"name\":\"f\",\"line\":3}],\"time_discovered_completed_ns\":null,\"timeout_ms\":%d}",
        600000);
}

static void put_document(const struct made_group *groups, const struct form *form, bool entries,
                         struct strbuf *out) {
    strbuf_init(out, 0);
    strbuf_adds(out, form->sorted ? "{\"comm_lib_version\":\"\"," : " {\n");
    if (form->status) {
        strbuf_adds(out, "\"pg_status\":{");
        for (int i = 0, n = 0; i < GROUPS; i++)
            if (groups[i].enqueued) {
                strbuf_adds(out, n++ ? "," : "");
                put_status(&groups[i], form, out);
            }
        strbuf_adds(out, "},");
    }
    if (entries) {
        strbuf_adds(out, "\"entries\":[");
        for (int seq = 1; seq <= MOST; seq++)
            for (int i = 0; i < GROUPS; i++)
                if (seq >= groups[i].first && seq <= groups[i].enqueued) {
                    put_entry(&groups[i], form, seq, false, out);
                    if (groups[i].p2p)
                        put_entry(&groups[i], form, seq, true, out);
                }
        strbuf_adds(out, "],");
    }
    strbuf_addf(out, "\"pg_config\":{\"0\":{\"name\":\"0\",\"ranks\":\"[0, 1]\"}},\"version\":\"%s\"}",
                form->version);
    assert_false(out->failed);
}

static const struct flight_group *find(const struct flight *f, int number) {
    for (size_t i = 0; i < f->n; i++)
        if (f->groups[i].number == number)
            return &f->groups[i];
    return NULL;
}

/* A job at a random moment. Two of its operations at most run at a time with gloo, in any order. */
static void make_job(struct made_group *groups, unsigned seed) {
    static const char *const names[] = {"0", "tensor_parallel", "3f:1"}, *const descs[] = {"default_pg",
                                                                                           "undefined",
                                                                                           "mesh_dp"};
    srand(seed);
    for (int i = 0; i < GROUPS; i++) {
        struct made_group *g = &groups[i];
        *g = (struct made_group){
            .number = 2 * i + (int)(seed % 3), .name = names[i], .desc = descs[i], .p2p = i == 2 && seed % 2};
        g->enqueued = rand() % 5 == 0 ? 0 : 1 + rand() % (MOST - 1);
        int open = rand() % 4;
        for (int seq = 1; seq <= g->enqueued; seq++)
            g->over[seq] = seq <= g->enqueued - open || rand() % 2;
        /* what has not ended is still in the ring, and the last one */
        int most = last_over(g) < g->enqueued ? last_over(g) + 1 : g->enqueued;
        g->first = most ? 1 + rand() % most : 1;
    }
}

static void check_group(const struct made_group *g, const struct form *form, const struct flight_group *got) {
    int open = last_over(g) + 1;
    assert_string_equal(got->name, g->name);
    assert_string_equal(got->desc, form->pairs ? g->desc : "");
    assert_string_equal(got->backend, form->nccl ? "nccl" : "gloo");
    assert_int_equal(got->enqueued, g->enqueued);
    assert_int_equal(got->completed, last_over(g));
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
    struct made_group groups[GROUPS];
    (void)state;
    for (unsigned seed = 0; seed < 400; seed++)
        for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
            struct strbuf text;
            struct flight f;
            struct err e;
            make_job(groups, seed);
            put_document(groups, &forms[i], true, &text);
            assert_int_equal(flight_read(&f, text.data, text.len, &e), 0);
            size_t n = 0;
            for (int g = 0; g < GROUPS; g++) {
                const struct flight_group *got = find(&f, groups[g].number);
                n += groups[g].enqueued > 0;
                assert_true((got != NULL) == (groups[g].enqueued > 0));
                if (got)
                    check_group(&groups[g], &forms[i], got);
            }
            assert_int_equal(f.n, n);
            assert_false(f.more);
            flight_fini(&f);
            strbuf_fini(&text);
        }
}

static void without_entries_the_status_counts(void **state) {
    struct made_group groups[GROUPS];
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        struct strbuf text;
        struct flight f;
        struct err e;
        make_job(groups, 5);
        groups[0].enqueued = 4;
        memset(groups[0].over, 0, sizeof groups[0].over);
        groups[1].enqueued = 9;
        memset(groups[1].over, 1, sizeof groups[1].over);
        put_document(groups, &forms[i], false, &text);
        assert_int_equal(flight_read(&f, text.data, text.len, &e), 0);
        const struct flight_group *first = find(&f, groups[0].number), *second = find(&f, groups[1].number);
        assert_true((first != NULL) == forms[i].status && (second != NULL) == forms[i].status);
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
    struct made_group groups[GROUPS];
    struct strbuf text;
    struct flight f;
    struct err e;
    (void)state;
    make_job(groups, 3);
    groups[0].enqueued = 7;
    memset(groups[0].over, 1, sizeof groups[0].over);
    groups[0].first = MOST;
    put_document(groups, &forms[5], true, &text);
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
    struct made_group groups[GROUPS];
    struct strbuf text;
    struct flight f;
    struct err e;
    (void)state;
    make_job(groups, 7);
    put_document(groups, &forms[5], true, &text);
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
        cmocka_unit_test(hostile_documents_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
