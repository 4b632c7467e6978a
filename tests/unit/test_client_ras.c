/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of NCCL's RAS service, as its versions write them, of jobs that are made up: who is named. And answers that it never gives. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/strbuf.h"
#include "client/fleet/ras.h"
#include "client/fleet/ras_ask.h"

#define HERE "10.0.0.1"
#define THERE "10.0.0.2"

/* ---- a job: ranks 0 to 3 are here with pids 100 to 103, 4 to 7 elsewhere with 104 to 107 ---- */

static const struct ras_process here[] = {{0, 100}, {1, 101}, {2, 102}, {3, 103}};
static const char addresses[2][RAS_HOST] = {"127.0.0.1", HERE};
static const struct ras_job job = {
    .here = here, .n_here = 4, .addresses = addresses, .n_addresses = 2, .world = 8};

static struct strbuf doc;

static void put_rank(int rank, int pid, const char *host, long reduced, long gathered) {
    strbuf_addf(&doc,
                "%s        {\n          \"rank\": %d,\n          \"host\": \"%s\",\n          \"pid\": %d,\n"
                "          \"cuda_dev\": 0,\n          \"nvml_dev\": 0,\n          \"status\": {\n"
                "            \"init_state\": 0,\n            \"async_error\": 0,\n            "
                "\"finalize_called\": false,\n"
                "            \"destroy_flag\": false,\n            \"abort_flag\": false\n          },\n"
                "          \"collective_counts\": {\n            \"AllGather\": %ld,\n            "
                "\"AllReduce\": %ld\n          }\n        }",
                doc.data[doc.len - 2] == '[' ? "" : ",\n", rank, host, pid, gathered, reduced);
}

static void put_missing(int rank, int pid, const char *host, bool silent, bool dead) {
    strbuf_addf(
        &doc,
        "%s        {\n          \"rank\": %d,\n          \"host\": \"%s\",\n          \"pid\": %d,\n"
        "          \"cuda_dev\": 0,\n          \"nvml_dev\": 0,\n          \"status\": {\n"
        "            \"unresponsive\": %s,\n            \"considered_dead\": %s\n          }\n        }",
        doc.data[doc.len - 2] == '[' ? "" : ",\n", rank, host, pid, silent ? "true" : "false",
        dead ? "true" : "false");
}

static void begin_doc(void) {
    strbuf_clear(&doc);
    strbuf_adds(
        &doc,
        "{\n  \"nccl_version\": \"2.29.1\",\n  \"cuda_runtime_version\": 13000,\n  \"cuda_driver_version\": "
        "13000,\n"
        "  \"timestamp\": \"2025-12-19 13:06:53\",\n  \"communicators_count\": 1,\n  \"communicators\": [\n");
}

static void begin_comm(const char *hash, int size) {
    strbuf_addf(&doc,
                "    {\n      \"hash\": \"%s\",\n      \"secondary_hash\": "
                "\"0xb7e7187447156001:0xb8242ed28a71381e\",\n      \"size\": %d,\n"
                "      \"ranks_count\": 1,\n      \"missing_ranks_count\": 1,\n      \"ranks\": [\n",
                hash, size);
}

static void begin_missing(void) { strbuf_adds(&doc, "\n      ],\n      \"missing_ranks\": [\n"); }

static void end_comm(bool last) { strbuf_adds(&doc, last ? "\n      ]\n    }" : "\n      ]\n    },\n"); }

static void end_doc(void) {
    strbuf_adds(
        &doc,
        "\n  ],\n  \"ras\": {\n    \"collection_time_sec\": 0.000,\n    \"timeouts_count\": 0\n  }\n}\n");
}

/* All ranks have launched 50 of each; `rank` has reduced `less` fewer; `gone` (-1: none) does not answer. */
static void put_job(int rank, int less, int gone, bool dead) {
    begin_doc();
    begin_comm("0xae94423cfbb2ef4a", 8);
    for (int r = 0; r < 8; r++)
        if (r != gone)
            put_rank(r, 100 + r, r < 4 ? HERE : THERE, r == rank ? 50 - less : 50, 50);
    begin_missing();
    if (gone >= 0)
        put_missing(gone, 100 + gone, gone < 4 ? HERE : THERE, true, dead);
    end_comm(true);
    end_doc();
}

/* The facts of what is in `doc`, after the same answer some seconds before: "3 behind 1 AllReduce; 5 dead". */
static const char *found_after(const struct ras_answer *before, bool is_json) {
    static char text[1024];
    struct ras_answer a;
    struct ras_fact facts[RAS_FACTS];
    struct err e = {.code = ERR_OK};
    if (ras_parse(&a, strbuf_str(&doc), doc.len, is_json, &e) != 0) {
        assert_true(a.n == 0 && a.n_comms == 0 && !a.members && !a.comms && e.text[0]);
        return "not read";
    }
    size_t n = ras_find(&a, before ? before : &a, &job, facts), at = 0;
    text[0] = '\0';
    for (size_t i = 0; i < n && at < sizeof text; i++) {
        const struct ras_fact *f = &facts[i];
        char words[256];
        ras_fact_put(f, words, sizeof words);
        assert_true(strlen(words) > 10 && !strchr(words, 0x1b) && !strchr(words, '\n'));
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%d", i ? "; " : "", (int)f->rank);
        if (f->state == RAS_BEHIND)
            at +=
                (size_t)snprintf(text + at, sizeof text - at, " behind %lld %s", (long long)f->behind, f->op);
        else
            at += (size_t)snprintf(text + at, sizeof text - at, " %s",
                                   f->state == RAS_DEAD ? "dead" : "silent");
    }
    ras_answer_fini(&a);
    return text;
}

static const char *found(bool is_json) { return found_after(NULL, is_json); }

static void test_json(void **state) {
    (void)state;
    put_job(-1, 0, -1, false);
    assert_string_equal(found(true), "");
    put_job(3, 1, -1, false);
    assert_string_equal(found(true), "3 behind 1 AllReduce");
    /* here its process is known, elsewhere its number in the communicator of all ranks */
    put_job(-1, 0, 2, false);
    assert_string_equal(found(true), "2 silent");
    put_job(6, 3, 5, true);
    assert_string_equal(found(true), "5 dead; 6 behind 3 AllReduce");
    /* as the documentation has it: one of two, which left the communicator, or does not answer */
    for (int silent = 0; silent < 2; silent++) {
        begin_doc();
        begin_comm("0x1", 2);
        put_rank(0, 100, HERE, 0, 0);
        begin_missing();
        put_missing(1, 101, HERE, silent, false);
        end_comm(true);
        end_doc();
        assert_string_equal(found(true), silent ? "1 silent" : "");
    }
    /* no communicator yet */
    begin_doc();
    end_doc();
    assert_string_equal(found(true), "");
}

static void test_words(void **state) {
    struct ras_fact f = {.rank = 3, .state = RAS_SILENT, .pid = 812, .host = THERE};
    char words[256];
    (void)state;
    ras_fact_put(&f, words, sizeof words);
    assert_string_equal(words, "NCCL does not reach its process (pid 812 on 10.0.0.2)");
    f.state = RAS_DEAD;
    ras_fact_put(&f, words, sizeof words);
    assert_string_equal(words, "NCCL considers its process (pid 812 on 10.0.0.2) dead");
    f = (struct ras_fact){.rank = 3, .state = RAS_BEHIND, .pid = -1, .behind = 1, .op = "AllReduce"};
    ras_fact_put(&f, words, sizeof words);
    assert_string_equal(words, "its process has launched 1 fewer AllReduce than the others");
    f.behind = 2;
    f.op[0] = '\0';
    ras_fact_put(&f, words, sizeof words);
    assert_string_equal(words, "its process has launched 2 fewer collectives than the others");
}

/* Who is behind is so in both answers, with the same numbers. */
static void test_two_answers(void **state) {
    struct ras_answer before;
    struct err e;
    (void)state;
    put_job(3, 1, -1, false);
    assert_int_equal(ras_parse(&before, strbuf_str(&doc), doc.len, true, &e), 0);
    assert_true(ras_is_behind(&before));
    assert_string_equal(found_after(&before, true), "3 behind 1 AllReduce");
    put_job(3, 2, -1, false);
    assert_string_equal(found_after(&before, true), "");
    put_job(4, 1, -1, false);
    assert_string_equal(found_after(&before, true), "");
    put_job(-1, 0, 5, true);
    assert_string_equal(found_after(&before, true), "5 dead");
    ras_answer_fini(&before);
    /* without one nobody is behind */
    struct ras_answer a;
    struct ras_fact facts[RAS_FACTS];
    put_job(3, 1, -1, false);
    assert_int_equal(ras_parse(&a, strbuf_str(&doc), doc.len, true, &e), 0);
    assert_int_equal(ras_find(&a, NULL, &job, facts), 0);
    ras_answer_fini(&a);
}

/* In containers of their own several ranks of a host may have one pid: then it names none of them. */
static void test_pids_that_are_shared(void **state) {
    const struct ras_process shared[] = {{0, 1}, {1, 101}, {2, 102}, {3, 1}};
    const struct ras_job apart = {
        .here = shared, .n_here = 4, .addresses = addresses, .n_addresses = 2, .world = 8};
    struct ras_answer a;
    struct ras_fact facts[RAS_FACTS];
    struct err e;
    (void)state;
    begin_doc();
    begin_comm("0x1", 4);
    put_rank(2, 102, HERE, 0, 0);
    begin_missing();
    put_missing(3, 1, HERE, true, true);
    put_missing(1, 101, HERE, true, true);
    end_comm(true);
    end_doc();
    assert_int_equal(ras_parse(&a, strbuf_str(&doc), doc.len, true, &e), 0);
    assert_int_equal(ras_find(&a, NULL, &apart, facts), 1);
    assert_int_equal(facts[0].rank, 1);
    ras_answer_fini(&a);
}

/* If most have launched fewer, one is ahead; and a group of some ranks does not say which rank of the job its ranks elsewhere are. */
static void test_whom_it_names(void **state) {
    (void)state;
    begin_doc();
    begin_comm("0x1", 8);
    for (int r = 0; r < 8; r++)
        put_rank(r, 100 + r, r < 4 ? HERE : THERE, r == 2 ? 51 : 50, 50);
    begin_missing();
    end_comm(false);
    begin_comm("0x2", 4);
    for (int r = 0; r < 3; r++)
        put_rank(r, 102 + r, r < 2 ? HERE : THERE, r == 2 ? 1 : 2, 0);
    begin_missing();
    put_missing(3, 105, THERE, true, true);
    end_comm(false);
    begin_comm("0x3", 4);
    put_rank(0, 100, HERE, 7, 7);
    put_rank(1, 101, HERE, 7, 7);
    put_rank(2, 102, HERE, 5, 7);
    begin_missing();
    end_comm(true);
    end_doc();
    assert_string_equal(found(true), "2 behind 2 AllReduce");
    /* a communicator of all ranks in another order, and the answer of another job */
    for (int other = 0; other < 2; other++) {
        begin_doc();
        begin_comm("0x1", 8);
        for (int r = 0; r < 7; r++)
            put_rank(r, other ? 300 + r : 107 - r, r < 4 ? THERE : HERE, 50, 50);
        begin_missing();
        put_missing(7, other ? 307 : 100, THERE, true, true);
        end_comm(true);
        end_doc();
        assert_string_equal(found(true), "");
    }
    /* the same pid on another host is another process */
    begin_doc();
    begin_comm("0x1", 2);
    begin_missing();
    put_missing(0, 100, THERE, true, true);
    end_comm(true);
    end_doc();
    assert_string_equal(found(true), "");
}

/* ---- text ---- */

static const char head[] =
    "NCCL version 2.27.3 compiled with CUDA 12.9\nCUDA runtime version 12090, driver version 12090\n\n"
    "Job summary\n===========\n\n  Nodes  Processes         GPUs  Processes     GPUs\n"
    "(total)   per node  per process    (total)  (total)\n      2          4            1          8        "
    "8\n"
    "\nCommunicators... (0.00s)\n=============\n\n"
    "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n"
    "    #  in group  per comm  per node  per comm  in group\n"
    "    0         1         2       3-4         8         8   RUNNING  INCOMPLETE\n";

static void put_text(const char *errors, const char *warnings) {
    strbuf_clear(&doc);
    strbuf_addf(&doc, "%s\nErrors\n======\n\n%sWarnings\n========\n\n%s", head, errors, warnings);
}

static void test_text(void **state) {
    (void)state;
    put_text("", "");
    assert_string_equal(found(false), "");
    /* 2.26 and later: each kind; those of a group that is named are few */
    put_text(
        "",
        "#0-0 (27a079b828ff1a75) MISMATCH\n  Communicator ranks have different AllReduce operation counts\n"
        "  7 ranks have launched up to operation 50\n"
        "  Rank 3 has launched up to operation 49 -- GPU 3 managed by process 103 on node " HERE "\n\n"
        "  Communicator ranks have different Broadcast operation counts\n  6 ranks have launched up to "
        "operation 4\n"
        "  2 ranks have not launched any operations\n  Rank 1 -- GPU 1 (NVML 5) managed by process 101 on "
        "node " HERE "\n"
        "  Rank 3 -- GPU 3 managed by process 103 on node " HERE "\n\n");
    assert_string_equal(found(false), "1 behind 4 Broadcast; 3 behind 4 Broadcast");
    /* 2.24: all kinds together */
    put_text(
        "",
        "#0-0 (27a079b828ff1a75) MISMATCH\n  Communicator ranks have different collective operation counts\n"
        "  6 ranks have launched up to operation 6650\n  2 ranks have launched up to operation 6649\n"
        "  Rank 0 -- GPU 0 managed by process 100 on node " HERE
        "\n  Rank 5 -- GPU 1 managed by process 105 on node " THERE "\n\n");
    assert_string_equal(found(false), "0 behind 1 ; 5 behind 1 ");
    /* one is ahead, and different states say nothing */
    put_text("",
             "#0-0 (27a079b828ff1a75) MISMATCH\n  Communicator ranks have different status\n  7 ranks have "
             "status RUNNING\n"
             "  Rank 2 has status FINALIZE -- GPU 2 managed by process 102 on node " HERE "\n"
             "  Communicator ranks have different AllReduce operation counts\n  7 ranks have launched up to "
             "operation 50\n"
             "  Rank 3 has launched up to operation 51 -- GPU 3 managed by process 103 on node " HERE "\n\n");
    assert_string_equal(found(false), "");
    put_text("INCOMPLETE\n  Missing communicator data from 1 job process\n  Process 102 on node " HERE
             " managing GPU 5\n\n"
             "DEAD\n  1 job process is considered dead (unreachable via the RAS network)\n  Process 101 on "
             "node " HERE " managing GPUs 1,2\n\n"
             "#0-0 (cf264af53edbe986) INCOMPLETE\n  Missing communicator data from 2 ranks\n"
             "  Rank 2 -- GPU 2 managed by process 102 on node " HERE
             "\n  Rank 1 -- [process information not found]\n\n",
             "TIMEOUT\n  Encountered 2 communication timeouts while gathering communicator data\n\n");
    assert_string_equal(found(false), "1 dead; 2 silent");
    /* 2.24 lists ranks by number alone; they may have left */
    put_text("#0-0 (cf264af53edbe986) INCOMPLETE\n  Missing communicator data from 1 rank\n  The missing "
             "rank: 21\n\n",
             "");
    assert_string_equal(found(false), "");
}

static void test_cut(void **state) {
    (void)state;
    put_job(3, 1, 5, true);
    char *whole = strdup(strbuf_str(&doc));
    size_t len = doc.len;
    assert_non_null(whole);
    for (size_t n = 0; n + 1 < len; n++) {
        strbuf_clear(&doc);
        strbuf_add(&doc, whole, n);
        assert_string_equal(found(true), "not read");
    }
    free(whole);
    put_text("", "");
    for (size_t n = 0; n < sizeof head; n += 7) {
        doc.len = n;
        assert_string_equal(found(false), "not read");
    }
    strbuf_clear(&doc);
    assert_string_equal(found(false), "not read");
    strbuf_adds(&doc, "SSH-2.0-OpenSSH_9.6\r\n");
    assert_string_equal(found(false), "not read");
    assert_string_equal(found(true), "not read");
}

static void test_hostile(void **state) {
    (void)state;
    /* deep */
    strbuf_clear(&doc);
    strbuf_adds(&doc, "{\"communicators\": [], \"x\": ");
    for (int i = 0; i < 100000; i++)
        strbuf_addc(&doc, '[');
    assert_string_equal(found(true), "not read");
    /* too many ranks, and too many bytes */
    strbuf_clear(&doc);
    strbuf_adds(&doc, "{\"communicators\": [{\"size\": 1000000, \"ranks\": [");
    for (int i = 0; doc.len < RAS_BYTES - 64; i++)
        strbuf_addf(&doc, "%s{\"rank\": %d}", i ? "," : "", i);
    strbuf_adds(&doc, "]}]}");
    clock_t began = clock();
    assert_string_equal(found(true), "not read");
    while (doc.len <= RAS_BYTES)
        strbuf_addc(&doc, ' ');
    assert_string_equal(found(true), "not read");
    assert_true(clock() - began < 2 * CLOCKS_PER_SEC);
    /* a rank that is there twice, is not within the size, or is negative: none of that communicator */
    for (int kind = 0; kind < 3; kind++) {
        begin_doc();
        begin_comm("0x1", 8);
        put_rank(0, 100, HERE, 50, 50);
        put_rank(1, 101, HERE, 49, 50);
        put_rank(kind == 0 ? 1 : kind == 1 ? 8 : -3, 102, HERE, 50, 50);
        begin_missing();
        put_missing(3, 103, HERE, true, true);
        end_comm(true);
        end_doc();
        assert_string_equal(found(true), "");
    }
    /* counters that are negative are unknown; a pid is */
    begin_doc();
    begin_comm("0x1", 8);
    put_rank(0, 100, HERE, 50, -7);
    put_rank(1, 101, HERE, -1, 50);
    put_rank(2, -102, HERE, 49, 50);
    put_rank(3, 103, HERE, 50, 50);
    begin_missing();
    end_comm(true);
    end_doc();
    assert_string_equal(found(true), "");
    /* what a terminal obeys */
    begin_doc();
    begin_comm("0x1", 2);
    begin_missing();
    put_missing(0, 100, "\\u001b[31m" HERE "\x1b[0m", true, true);
    end_comm(true);
    end_doc();
    assert_string_equal(found(true), "");
    put_text("", "#0-0 (27a079b828ff1a75) MISMATCH\n  Communicator ranks have different \x1b[31mAll\tReduce "
                 "operation counts\n"
                 "  7 ranks have launched up to operation 99999999999999999999999\n  7 ranks have launched "
                 "up to operation 50\n"
                 "  Rank 3 has launched up to operation 49 -- GPU 3 managed by process 103 on node " HERE "\n"
                 "  Rank 2 has launched up to operation -5 -- GPU 3 managed by process 102 on node " HERE "\n"
                 "  Rank 99999999999999999999 -- GPU 3 managed by process 101 on node " HERE "\n\n");
    assert_true(strncmp(found(false), "3 behind 1 ", 11) == 0);
    /* more facts than are kept */
    struct ras_fact facts[RAS_FACTS];
    size_t n = 0;
    for (int i = 0; i < 500; i++)
        ras_fact_add(facts, &n, &(struct ras_fact){.rank = (i * 37) % 500, .state = RAS_DEAD});
    assert_int_equal(n, RAS_FACTS);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(facts[i].rank, i);
    ras_fact_add(facts, &n, &(struct ras_fact){.rank = 5, .state = RAS_BEHIND, .behind = 9});
    assert_true(n == RAS_FACTS && facts[5].state == RAS_DEAD);
}

/* Whole answers with some bytes changed: nobody who is not a rank, nothing that a terminal obeys. */
static void test_random(void **state) {
    unsigned seed = (unsigned)time(NULL);
    (void)state;
    srand(seed);
    for (int i = 0; i < 4000; i++) {
        bool is_json = i % 2;
        if (is_json)
            put_job(3, 1, 5, true);
        else
            put_text("DEAD\n  Process 101 on node " HERE " managing GPU 1\n\n",
                     "#0-0 (27a079b828ff1a75) MISMATCH\n  Communicator ranks have different AllReduce "
                     "operation counts\n"
                     "  7 ranks have launched up to operation 50\n"
                     "  Rank 3 has launched up to operation 49 -- GPU 3 managed by process 103 on node " HERE
                     "\n\n");
        for (int k = 0; k < 1 + i % 7; k++)
            doc.data[(size_t)rand() % doc.len] = (char)rand();
        struct ras_answer a;
        struct ras_fact facts[RAS_FACTS];
        struct err e;
        if (ras_parse(&a, strbuf_str(&doc), doc.len, is_json, &e) != 0)
            continue;
        size_t n = ras_find(&a, &a, &job, facts);
        for (size_t f = 0; f < n; f++)
            if (facts[f].rank < 0 || facts[f].rank >= 8 || facts[f].state == RAS_ANSWERS)
                fail_msg("seed %u: rank %d", seed, (int)facts[f].rank);
        ras_answer_fini(&a);
    }
}

/* ---- where ---- */

static void test_where(void **state) {
    static const struct {
        const char *text;
        size_t n;
        int port;
    } all[] = {
        {NULL, 2, 28028},
        {"localhost:12345", 2, 12345},
        {"127.0.0.1:1", 1, 1},
        {"127.8.9.10:65535", 1, 65535},
        {"[::1]:28028", 1, 28028},
        {"10.0.0.1:28028", 0, 0},
        {"0.0.0.0:28028", 0, 0},
        {"[::]:28028", 0, 0},
        {"[fe80::1]:28028", 0, 0},
        {"example.org:28028", 0, 0},
        {"localhost", 0, 0},
        {"localhost:", 0, 0},
        {"localhost:0", 0, 0},
        {"localhost:65536", 0, 0},
        {"localhost:1x", 0, 0},
        {"localhost:-1", 0, 0},
        {"localhost:999999999999", 0, 0},
        {"", 0, 0},
        {":28028", 0, 0},
        {"[::1]28028", 0, 0},
        {"[::ffff:127.0.0.1]:28028", 0, 0},
        {"127.0.0.1.example.org:80", 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct ras_where w;
        bool ok = ras_where_parse(&w, all[i].text);
        if (ok != (all[i].n > 0) || w.n != all[i].n)
            fail_msg("%s: %zu", all[i].text, w.n);
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        memcpy(&v4, &w.at[0], sizeof v4);
        memcpy(&v6, &w.at[0], sizeof v6);
        if (ok)
            assert_int_equal(ntohs(v4.sin_family == AF_INET ? v4.sin_port : v6.sin6_port), all[i].port);
    }
}

static int begin(void **state) {
    (void)state;
    strbuf_init(&doc, 0);
    return 0;
}

static int end(void **state) {
    (void)state;
    strbuf_fini(&doc);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        {"what_json_names", test_json, NULL, NULL, NULL},
        {"facts_in_words", test_words, NULL, NULL, NULL},
        {"who_is_behind_is_so_twice", test_two_answers, NULL, NULL, NULL},
        {"pids_that_are_shared", test_pids_that_are_shared, NULL, NULL, NULL},
        {"only_ranks_of_the_job_are_named", test_whom_it_names, NULL, NULL, NULL},
        {"what_text_names", test_text, NULL, NULL, NULL},
        {"half_an_answer_is_none", test_cut, NULL, NULL, NULL},
        {"hostile_answers_are_bounded", test_hostile, NULL, NULL, NULL},
        {"changed_answers", test_random, NULL, NULL, NULL},
        {"only_the_loopback", test_where, NULL, NULL, NULL},
    };
    return cmocka_run_group_tests(tests, begin, end);
}
