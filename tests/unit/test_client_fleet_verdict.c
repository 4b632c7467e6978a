/* SPDX-License-Identifier: Apache-2.0 */
/* What keeps a job of several ranks from going on: made-up jobs, each read twice, and what must be concluded; and at random that nothing is
 * concluded which the guards forbid. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "client/fleet/fleet_verdict.h"

#define RANKS 8
#define APART_S 2.5

/* A job: rank r is read as before[r] and now[r]. */
static struct fleet_verdict_rank ranks[RANKS];
static struct rank_reading before[RANKS], now[RANKS];
static struct rank_group groups_before[RANKS][2], groups_now[RANKS][2];
static struct fleet_verdict_case job;

static void place(struct rank_place *p, const char *func, const char *file, int32_t line) {
    (void)snprintf(p->func, sizeof p->func, "%s", func);
    (void)snprintf(p->file, sizeof p->file, "%s", file);
    p->line = line;
}

/* Where the rank stands, in both readings. */
static void stand(int r, const char *func, int32_t line, const char *collective) {
    for (int i = 0; i < 2; i++) {
        struct rank_state *s = i ? &now[r].state : &before[r].state;
        s->has_stack = true;
        s->stack = (uint64_t)line + 7;
        place(&s->own, func, "/home/u/train.py", line);
        s->at = s->leaf = s->own;
        (void)snprintf(s->collective, sizeof s->collective, "%s", collective);
    }
}

static void count(int r, int g, int64_t enqueued, int64_t completed) {
    groups_now[r][g].enqueued = groups_before[r][g].enqueued = enqueued;
    groups_now[r][g].completed = groups_before[r][g].completed = completed;
    (void)snprintf(groups_now[r][g].op, sizeof groups_now[r][g].op, "%s",
                   enqueued > completed ? "all_reduce" : "");
    groups_now[r][g].bytes = 400;
}

/* All wait in all_reduce #101 of the first group, for 30 s, but `missing` (-1: nobody), which stands in its own function and has completed 100. */
static void begin(int missing) {
    memset(ranks, 0, sizeof ranks);
    memset(before, 0, sizeof before);
    memset(now, 0, sizeof now);
    memset(groups_before, 0, sizeof groups_before);
    memset(groups_now, 0, sizeof groups_now);
    for (int r = 0; r < RANKS; r++) {
        rank_state_init(&before[r].state);
        rank_state_init(&now[r].state);
        before[r].state.at_s = 1000;
        now[r].state.at_s = 1000 + APART_S;
        before[r].state.state = now[r].state.state = 'S';
        before[r].state.thread_ns = now[r].state.thread_ns = 1000 * 1000 * 1000;
        before[r].state.cpu_ns = now[r].state.cpu_ns = 1000 * 1000 * 1000;
        before[r].state.bytes = now[r].state.bytes = 100 << 20;
        before[r].answer = now[r].answer = RANK_ANSWERED;
        for (int g = 0; g < 2; g++) {
            struct rank_group *one = &groups_now[r][g];
            (void)snprintf(one->pg, sizeof one->pg, "%d", g);
            (void)snprintf(one->desc, sizeof one->desc, g ? "tensor" : "data");
            (void)snprintf(one->ranks, sizeof one->ranks, "0-%d", RANKS - 1);
            one->size = RANKS;
            one->since_s = NAN;
            groups_before[r][g] = *one;
        }
        before[r].groups = groups_before[r];
        now[r].groups = groups_now[r];
        before[r].n_groups = now[r].n_groups = 2;
        count(r, 0, r == missing ? 100 : 101, 100);
        count(r, 1, 100, 100);
        if (r == missing)
            stand(r, "next_batch", 31, "");
        else
            stand(r, "train", 91, "all_reduce");
        ranks[r] = (struct fleet_verdict_rank){.rank = r,
                                               .pid = 100 + r,
                                               .before = &before[r],
                                               .now = &now[r],
                                               .still_s = 30,
                                               .waits_s = 30,
                                               .uptime_s = 1000};
    }
    job = (struct fleet_verdict_case){.ranks = ranks, .n = RANKS, .world = RANKS};
}

static void no_counters(int r) {
    before[r].n_groups = now[r].n_groups = 0;
    before[r].answer = now[r].answer = RANK_NOT_ASKED;
}

static void put_set(const struct rank_set *s, char *buf, size_t cap) {
    struct strbuf text;
    strbuf_init(&text, 0);
    rank_set_put(s, 0, &text);
    (void)snprintf(buf, cap, "%s", s->n ? strbuf_str(&text) : "-");
    strbuf_fini(&text);
}

/* Of the verdict that was judged last. */
static char text[FLEET_VERDICT_TEXT], brief[96], denied[384];

/* The worst verdict, such as "HUNG bad 3 WAIT 31"; `*settled` may be NULL. */
static const char *judge(bool *settled) {
    static char found[256];
    struct fleet_verdicts v;
    char set[128];
    assert_int_equal(fleet_verdict_find(&job, &v), 0);
    assert_true(v.n >= 1);
    put_set(&v.items[0].ranks, set, sizeof set);
    (void)snprintf(text, sizeof text, "%s", v.items[0].text);
    (void)snprintf(brief, sizeof brief, "%s", v.items[0].brief);
    (void)snprintf(denied, sizeof denied, "%s", v.items[0].denied);
    (void)snprintf(found, sizeof found, "%s %s %s %s %d", fleet_verdict_code_name(v.items[0].code),
                   verdict_level_name(v.items[0].level), set,
                   v.items[0].cause ? fleet_verdict_cause_name(v.items[0].cause) : "-",
                   (int)v.items[0].at.line);
    if (settled)
        *settled = v.items[0].settled;
    if (v.items[0].level == VERDICT_BAD)
        assert_true(v.items[0].n_evidence >= 2 && v.items[0].denied[0]);
    fleet_verdicts_fini(&v);
    return found;
}

/* The evidence of that witness in the worst verdict, "" none. */
static const char *witness(const char *name) {
    static char found[256];
    struct fleet_verdicts v;
    found[0] = '\0';
    assert_int_equal(fleet_verdict_find(&job, &v), 0);
    for (size_t i = 0; i < v.items[0].n_evidence; i++)
        if (strcmp(v.items[0].evidence[i].witness, name) == 0)
            (void)snprintf(found, sizeof found, "%d: %s", (int)v.items[0].evidence[i].rank,
                           v.items[0].evidence[i].text);
    fleet_verdicts_fini(&v);
    return found;
}

/* The rank for which the others wait gives no row, and which ranks the group has is not known. */
static void test_part(void **state) {
    (void)state;
    begin(3);
    no_counters(3);
    assert_string_equal(judge(NULL), "HUNG bad 3 WAIT 31");
    begin(3);
    no_counters(3);
    for (int r = 0; r < RANKS; r++)
        for (int g = 0; g < 2; g++)
            (void)snprintf(groups_now[r][g].ranks, sizeof groups_now[r][g].ranks, "?%d", g);
    assert_string_equal(judge(NULL), "ALL ALIKE note - NETWORK 91");
    assert_non_null(strstr(text, "perhaps for others of its 8 ranks, which are not known"));
}

/* A host that claims many groups, each with all ranks. */
static void test_many_groups(void **state) {
    enum { MANY = 1024, GROUPS = 2000 };
    static struct fleet_verdict_rank all[MANY];
    static struct rank_group groups[GROUPS];
    struct fleet_verdicts v;
    (void)state;
    begin(-1);
    for (int r = 0; r < MANY; r++)
        all[r] = (struct fleet_verdict_rank){.rank = r, .pid = 100 + r, .still_s = 30, .uptime_s = 1000};
    for (int g = 0; g < GROUPS; g++) {
        groups[g] = (struct rank_group){
            .ranks = "0-1023", .size = MANY, .enqueued = 3, .completed = 2, .since_s = 30, .bytes = -1};
        (void)snprintf(groups[g].pg, sizeof groups[g].pg, "%d", g);
    }
    now[0].groups = groups;
    now[0].n_groups = GROUPS;
    all[0].now = &now[0];
    job = (struct fleet_verdict_case){.ranks = all, .n = MANY, .world = MANY};
    assert_int_equal(fleet_verdict_find(&job, &v), 0);
    int64_t members = 0;
    for (size_t g = 0; g < v.n_groups; g++)
        members += rank_set_count(&v.groups[g].members);
    assert_true(v.n_groups == GROUPS && members > GROUPS && members <= (1 << 20) + GROUPS);
    fleet_verdicts_fini(&v);
}

static void test_moving(void **state) {
    (void)state;
    begin(3);
    for (int r = 0; r < RANKS; r++)
        groups_before[r][0].completed = groups_before[r][0].enqueued = 99;
    assert_string_equal(judge(NULL), "MOVING fine - - 0");
}

static void test_hung(void **state) {
    bool settled;
    (void)state;
    begin(3);
    assert_string_equal(judge(&settled), "HUNG bad 3 WAIT 31");
    assert_true(settled);
    (void)snprintf(now[3].state.phase, sizeof now[3].state.phase, "loader");
    assert_string_equal(judge(NULL), "HUNG bad 3 LOADER 31");
    /* a sleep ends by itself */
    begin(3);
    now[3].state.wait = MODEL_WAIT_SLEEP;
    now[3].state.left_s = 20;
    assert_string_equal(judge(NULL), "WAITS FOR warning 3 SLEEP 31");
    now[3].state.left_s = 0.05; /* a loop that asks */
    assert_string_equal(judge(NULL), "HUNG bad 3 SLEEP 31");
    /* two of them, for the same reason */
    begin(3);
    count(5, 0, 100, 100);
    stand(5, "next_batch", 31, "");
    assert_string_equal(judge(NULL), "HUNG bad 3,5 WAIT 31");
    assert_string_equal(brief, "HUNG RANKS 3,5");
}

/* A rank that blocks its reader has no counters of the kernel: it has not moved, in neither of the two directions. */
static void test_blocked(void **state) {
    (void)state;
    for (int blocked = 0; blocked < 2; blocked++) {
        begin(3);
        struct rank_state *s = blocked ? &now[3].state : &before[3].state;
        double at_s = s->at_s;
        rank_state_init(s);
        s->at_s = at_s;
        assert_false(fleet_verdict_has_moved(&before[3].state, &now[3].state));
        assert_string_equal(judge(NULL), blocked ? "WAITS FOR warning 3 UNKNOWN 0" : "HUNG bad 3 WAIT 31");
        assert_null(strstr(text, "moves"));
    }
}

/* A thread that asks its GPU all the while runs, and waits as long as its collective is open. */
static void test_busy_waiting(void **state) {
    (void)state;
    begin(3);
    for (int r = 0; r < RANKS; r++) {
        ranks[r].waits_s = r == 3 ? 30 : 0;
        now[r].state.thread_ns += r == 3 ? 0 : 2000 * 1000 * 1000;
        groups_now[r][0].since_s = 25;
    }
    assert_string_equal(judge(NULL), "HUNG bad 3 WAIT 31");
}

static void test_not_long_enough(void **state) {
    bool settled;
    (void)state;
    begin(3);
    for (int r = 0; r < RANKS; r++)
        ranks[r].still_s = ranks[r].waits_s = 4;
    assert_string_equal(judge(&settled), "WAITING note 3 WAIT 31");
    assert_false(settled);
    /* the others have waited for long, but it has moved a moment ago */
    begin(3);
    ranks[3].still_s = ranks[3].waits_s = 4;
    assert_string_equal(judge(&settled), "WAITS FOR warning 3 WAIT 31");
    assert_false(settled);
    /* one reading, or two that are close to each other */
    begin(3);
    for (int r = 0; r < RANKS; r++)
        before[r].state.at_s = now[r].state.at_s - 0.5;
    assert_string_equal(judge(&settled), "WAITS FOR warning 3 WAIT 31");
    assert_false(settled);
    for (int r = 0; r < RANKS; r++)
        ranks[r].before = NULL;
    assert_string_equal(judge(&settled), "WAITS FOR warning 3 WAIT 31");
    assert_false(settled);
    /* longer waits are usual */
    begin(3);
    job.late_s = 60;
    assert_string_equal(judge(NULL), "WAITING note 3 WAIT 31");
}

static void test_works(void **state) {
    (void)state;
    begin(3);
    now[3].state.stack++;
    (void)snprintf(now[3].state.doing, sizeof now[3].state.doing, "SAVING");
    assert_string_equal(judge(NULL), "WAITS FOR warning 3 CHECKPOINT 31");
    begin(3);
    now[3].state.thread_ns += 500 * 1000 * 1000;
    assert_string_equal(judge(NULL), "WAITS FOR warning 3 CPU 31");
    begin(3);
    now[3].state.bytes += 100 << 20; /* a disk that is slow */
    now[3].state.state = 'D';
    assert_string_equal(judge(NULL), "WAITS FOR warning 3 DISK 31");
    begin(3);
    (void)snprintf(now[3].state.doing, sizeof now[3].state.doing, "COMPILING");
    assert_string_equal(judge(NULL), "WAITS FOR note 3 COMPILE 31");
    begin(3);
    (void)snprintf(now[3].state.leaf.file, sizeof now[3].state.leaf.file, "<probing>");
    assert_string_equal(judge(NULL), "WAITS FOR note 3 PAUSED 31");
}

static void test_facts(void **state) {
    (void)state;
    begin(3);
    before[3].state.state = now[3].state.state = 'T';
    assert_string_equal(judge(NULL), "HUNG bad 3 STOPPED 31");
    no_counters(3);
    assert_string_equal(judge(NULL), "HUNG bad 3 STOPPED 31");
    begin(3);
    now[3].state.gone = true;
    no_counters(3);
    assert_string_equal(judge(NULL), "HUNG bad 3 DEAD 31");
    ranks[3].pid = 0;
    assert_string_equal(judge(NULL), "HUNG bad 3 DEAD 31");
    /* nobody waits for one that has ended */
    begin(-1);
    for (int r = 0; r < RANKS; r++)
        count(r, 0, 101, 101);
    now[3].state.gone = true;
    no_counters(3);
    assert_string_equal(judge(NULL), "UNKNOWN note - - 0");
    /* one that is ready to run waits for a CPU */
    begin(3);
    now[3].state.state = 'R';
    assert_string_equal(judge(NULL), "WAITS FOR warning 3 CPU 31");
    /* and not before it is late */
    begin(3);
    before[3].state.state = now[3].state.state = 'T';
    for (int r = 0; r < RANKS; r++)
        ranks[r].still_s = ranks[r].waits_s = 4;
    assert_string_equal(judge(NULL), "WAITING note 3 STOPPED 31");
}

static void test_gil(void **state) {
    (void)state;
    begin(3);
    no_counters(3);
    now[3].answer = RANK_REFUSED;
    now[3].state.has_gil = true;
    assert_string_equal(judge(NULL), "HUNG bad 3 GIL 31");
    now[3].state.has_gil = false;
    now[3].state.needs_gil = true;
    place(&now[3].state.holder_at, "hog", "/home/u/hog.py", 7);
    assert_string_equal(judge(NULL), "HUNG bad 3 GIL 7");
    now[3].state.gc = 1;
    assert_string_equal(judge(NULL), "HUNG bad 3 GC 31");
}

static void test_silent(void **state) {
    (void)state;
    /* one that gives no counters and waits like the others is not accused */
    begin(3);
    no_counters(6);
    assert_string_equal(judge(NULL), "HUNG bad 3 WAIT 31");
    begin(-1);
    no_counters(6);
    assert_string_equal(judge(NULL), "ALL ALIKE bad - NETWORK 91");
    /* it has an agent, and it stands elsewhere */
    begin(3);
    no_counters(3);
    now[3].answer = RANK_SILENT;
    assert_string_equal(judge(NULL), "HUNG bad 3 WAIT 31");
}

/* With NCCL they wait where they need the result, outside of torch.distributed, and so does one without counters. */
static void test_same_line(void **state) {
    (void)state;
    begin(5);
    for (int r = 0; r < RANKS; r++) {
        if (r != 5)
            stand(r, "train", 91, "");
        groups_now[r][0].since_s = 30;
    }
    no_counters(6);
    assert_string_equal(judge(NULL), "HUNG bad 5 WAIT 31");
    ranks[6].waits_s = ranks[6].still_s = 0; /* it spins there */
    now[6].state.thread_ns += 2000 * 1000 * 1000;
    assert_string_equal(judge(NULL), "HUNG bad 5 WAIT 31");
    begin(-1); /* it is stopped there */
    for (int r = 0; r < RANKS; r++) {
        stand(r, "train", 91, "");
        groups_now[r][0].since_s = 30;
    }
    no_counters(6);
    before[6].state.state = now[6].state.state = 'T';
    assert_string_equal(judge(NULL), "HUNG bad 6 STOPPED 91");
    begin(5); /* it stands elsewhere */
    for (int r = 0; r < RANKS; r++)
        groups_now[r][0].since_s = 30;
    no_counters(6);
    stand(6, "elsewhere", 92, "");
    assert_string_equal(judge(NULL), "HUNG bad 5-6 WAIT 31");
}

/* The job's own line is that of a library's trainer in every rank, wherever it stands, or there is none. */
static void test_same_trainer(void **state) {
    (void)state;
    for (int own = 0; own < 2; own++) {
        begin(-1);
        for (int r = 0; r < RANKS; r++) {
            stand(r, own ? "main" : "", own ? 12 : 0, "");
            place(&now[r].state.leaf, "item", "/usr/lib/trainer.py", 7);
            groups_now[r][0].since_s = 30;
        }
        no_counters(3);
        now[3].answer = RANK_SILENT;
        assert_string_equal(judge(NULL), own ? "ALL ALIKE note - NETWORK 12" : "ALL ALIKE note - NETWORK 0");
        place(&now[3].state.leaf, "encode", "/usr/lib/tokenizers.py", 5);
        assert_string_equal(judge(NULL), own ? "HUNG bad 3 WAIT 12" : "HUNG bad 3 WAIT 0");
        place(&now[3].state.leaf, "item", "/usr/lib/trainer.py", 7);
        now[3].state.has_gil = true;
        assert_string_equal(judge(NULL), own ? "HUNG bad 3 GIL 12" : "HUNG bad 3 GIL 0");
    }
}

/* One without counters waits, but in something else: it is not known that nobody is behind. */
static void test_waits_elsewhere(void **state) {
    (void)state;
    begin(-1);
    no_counters(3);
    assert_string_equal(judge(NULL), "ALL ALIKE bad - NETWORK 91");
    stand(3, "evaluate", 217, "all_reduce");
    assert_string_equal(judge(NULL), "ALL ALIKE note - NETWORK 91");
    assert_non_null(strstr(text, "perhaps for rank 3, whose counters are not known"));
}

static void test_operations(void **state) {
    (void)state;
    begin(-1);
    stand(3, "gather", 12, "all_gather");
    (void)snprintf(groups_now[3][0].op, sizeof groups_now[3][0].op, "all_gather");
    assert_string_equal(judge(NULL), "MISMATCH bad 3 OPERATION 12");
    begin(-1);
    stand(3, "reduce", 13, "all_reduce");
    groups_now[3][0].bytes = 404;
    assert_string_equal(judge(NULL), "MISMATCH bad 3 OPERATION 13");
    /* half of them */
    begin(-1);
    for (int r = 0; r < RANKS / 2; r++)
        (void)snprintf(groups_now[r][0].op, sizeof groups_now[r][0].op, "all_gather");
    assert_string_equal(judge(NULL), "MISMATCH bad - OPERATION 91");
    /* it has completed what the others do not complete: with a size of its own */
    begin(-1);
    stand(3, "reduce", 13, "all_reduce");
    count(3, 0, 102, 101);
    assert_string_equal(judge(NULL), "MISMATCH bad 3 OPERATION 13");
    assert_null(strstr(denied, "no other operation"));
    /* who sends a broadcast is done with it */
    for (int r = 0; r < RANKS; r++)
        (void)snprintf(groups_now[r][0].op, sizeof groups_now[r][0].op, "broadcast");
    assert_string_equal(judge(NULL), "ALL ALIKE bad - NETWORK 91");
    assert_non_null(strstr(denied, "no other operation"));
}

/* It has entered what the others have finished, and its thread saves, behind its device, or does something else. */
static void test_stuck(void **state) {
    static const char *const doing[] = {"SAVING", "LOADING", "EVALUATING", "COMPILING"};
    (void)state;
    for (size_t i = 0; i < sizeof doing / sizeof doing[0]; i++) {
        begin(-1);
        count(3, 0, 101, 99);
        (void)snprintf(now[3].state.doing, sizeof now[3].state.doing, "%s", doing[i]);
        assert_string_equal(judge(NULL), "HUNG bad 3 NETWORK 91");
    }
}

/* The ranks of a host do not finish what the others have finished. */
static void test_stuck_together(void **state) {
    (void)state;
    begin(-1);
    for (int r = 0; r < RANKS; r++)
        count(r, 0, r < 6 ? 102 : 101, r < 6 ? 101 : 100);
    assert_string_equal(judge(NULL), "HUNG bad 6-7 NETWORK 91");
    assert_non_null(strstr(text, "ranks 0-5 wait for ranks 6-7 in all_reduce #101"));
    /* as many as those: either may be */
    for (int r = 4; r < 6; r++)
        count(r, 0, 101, 100);
    assert_string_equal(judge(NULL), "ALL ALIKE bad - NETWORK 91");
    /* with NCCL one may have ended first */
    begin(-1);
    count(3, 0, 102, 101);
    assert_string_equal(judge(NULL), "MISMATCH bad 3 OPERATION 91");
    for (int r = 0; r < RANKS; r++)
        (void)snprintf(groups_now[r][0].backend, sizeof groups_now[r][0].backend, "nccl");
    assert_string_equal(judge(NULL), "MISMATCH warning 3 OPERATION 91");
}

/* Two have sent something to each other in the group of all: their numbers are no longer those of the others. */
static void test_p2p_numbers(void **state) {
    (void)state;
    begin(-1);
    for (int r = 0; r < RANKS; r++) {
        bool sends = r == 2 || r == 3;
        count(r, 0, sends ? 5000 : 100, 100);
        groups_now[r][0].p2p = sends;
        groups_now[r][0].since_s = sends ? 30 : NAN;
        stand(r, "pause", 70, "");
    }
    assert_string_equal(judge(NULL), "UNKNOWN note - - 0");
}

/* Not everything is known of the rank for which the others wait. */
static void test_half_known(void **state) {
    (void)state;
    /* it has entered as many as the others have completed */
    begin(3);
    groups_now[3][0].completed = groups_before[3][0].completed = -1;
    assert_string_equal(judge(NULL), "HUNG bad 3 WAIT 31");
    /* nothing in this group */
    begin(3);
    groups_now[3][0].completed = groups_before[3][0].completed = -1;
    groups_now[3][0].enqueued = groups_before[3][0].enqueued = -1;
    assert_string_equal(judge(NULL), "ALL ALIKE note - NETWORK 91");
    assert_non_null(strstr(text, "perhaps for rank 3, whose counters are not known"));
    /* by stacks, and its stack cannot be read */
    begin(3);
    for (int r = 0; r < RANKS; r++)
        no_counters(r);
    before[3].state.has_stack = now[3].state.has_stack = false;
    assert_string_equal(judge(NULL), "ALL ALIKE note - NETWORK 91");
    assert_non_null(strstr(text, "perhaps for rank 3, whose stack is not known"));
}

/* One group of torch, with two backends: each has numbers of its own. */
static void test_backends(void **state) {
    (void)state;
    begin(3);
    for (int r = 0; r < RANKS; r++) {
        for (int g = 0; g < 2; g++) {
            (void)snprintf(groups_now[r][g].pg, sizeof groups_now[r][g].pg, "0");
            (void)snprintf(groups_now[r][g].backend, sizeof groups_now[r][g].backend, g ? "nccl" : "gloo");
            groups_before[r][g] = groups_now[r][g];
        }
        count(r, 0, 5, 5);
        count(r, 1, r == 3 ? 100 : 101, 100);
    }
    assert_string_equal(judge(NULL), "HUNG bad 3 WAIT 31");
    /* the first of gloo, which one has not entered: it has no row of it */
    for (int r = 0; r < RANKS; r++) {
        count(r, 0, 1, 0);
        count(r, 1, 500, 500);
    }
    groups_now[3][0] = groups_before[3][0] = groups_now[3][1];
    before[3].n_groups = now[3].n_groups = 1;
    assert_string_equal(judge(NULL), "ALL ALIKE note - NETWORK 91");
    assert_non_null(strstr(text, "perhaps for rank 3, whose counters are not known"));
}

/* What is not known was not checked. */
static void test_denied(void **state) {
    (void)state;
    begin(3);
    judge(NULL);
    assert_non_null(strstr(denied, "no other operation"));
    assert_non_null(strstr(witness("counters"), "; the same in both readings"));
    for (int r = 0; r < RANKS; r++)
        groups_now[r][0].op[0] = '\0';
    judge(NULL);
    assert_null(strstr(denied, "no other operation"));
    before[6].answer = RANK_SILENT;
    assert_null(strstr(witness("counters"), "; the same in both readings"));
}

static void test_circle(void **state) {
    (void)state;
    begin(3);
    count(3, 1, 101, 100);
    stand(3, "other_order", 44, "all_reduce");
    assert_string_equal(judge(NULL), "DEADLOCK bad 3 ORDER 44");
    /* another thread of it waits there, for a group of its own: it loads data, and moves */
    begin(3);
    count(3, 1, 101, 100);
    groups_now[3][1].since_s = 30;
    now[3].state.stack++;
    assert_string_equal(judge(NULL), "WAITS FOR warning 3 CPU 31");
    now[3].state.stack--;
    (void)snprintf(now[3].state.phase, sizeof now[3].state.phase, "loader");
    assert_string_equal(judge(NULL), "HUNG bad 3 LOADER 31");
    /* it moves from one collective to another */
    begin(3);
    count(3, 1, 101, 100);
    stand(3, "other_order", 44, "all_reduce");
    groups_now[3][1].since_s = 30;
    now[3].state.stack++;
    assert_string_equal(judge(NULL), "WAITS FOR warning 3 ORDER 44");
    /* it spins, behind its device */
    begin(3);
    count(3, 1, 101, 100);
    groups_now[3][1].since_s = 30;
    now[3].state.thread_ns += 2000 * 1000 * 1000;
    assert_string_equal(judge(NULL), "DEADLOCK bad 3 ORDER 31");
    /* two of two */
    begin(-1);
    for (int r = 0; r < RANKS / 2; r++) {
        count(r, 0, 100, 100);
        count(r, 1, 101, 100);
    }
    assert_string_equal(judge(NULL), "DEADLOCK bad 0-7 ORDER 91");
    /* in a collective that has no counters */
    begin(3);
    stand(3, "skip", 45, "barrier");
    assert_string_equal(judge(NULL), "HUNG bad 3 ORDER 45");
}

/* A pipeline: the rank for which others wait waits for another one, of which the counters do not say which. */
static void test_p2p_waits(void **state) {
    (void)state;
    begin(3);
    stand(3, "recv_forward", 60, "recv");
    assert_string_equal(judge(NULL), "WAITS FOR note 3 ORDER 60");
    assert_non_null(
        strstr(text, "it itself waits point to point, for a rank that is not known, in recv_forward"));
    /* one that has begun to send, and does something else, is accused */
    begin(3);
    for (int r = 0; r < RANKS; r++)
        groups_now[r][1].p2p = true;
    count(3, 1, 51, 50);
    assert_string_equal(judge(NULL), "HUNG bad 3 WAIT 31");
}

/* It waits in another group, some of whose ranks are not known. */
static void test_waits_beyond(void **state) {
    (void)state;
    begin(3);
    for (int r = 0; r < RANKS; r++) {
        (void)snprintf(groups_now[r][1].ranks, sizeof groups_now[r][1].ranks, "%d,%d", r, r + RANKS);
        groups_now[r][1].size = 2;
        groups_before[r][1] = groups_now[r][1];
    }
    count(3, 1, 101, 100);
    stand(3, "train", 95, "all_reduce");
    job.world = 2 * RANKS;
    job.elsewhere = RANKS;
    assert_string_equal(judge(NULL), "WAITS FOR note 3 ORDER 95");
    assert_non_null(
        strstr(text, "it itself waits in another group, perhaps for a rank of another host, in train"));
    before[3].state.state = now[3].state.state = 'T';
    assert_string_equal(judge(NULL), "HUNG bad 3 STOPPED 95");
    /* of this host, and it has no row of that group */
    begin(3);
    for (int r = 3; r < 7; r += 3) {
        (void)snprintf(groups_now[r][1].ranks, sizeof groups_now[r][1].ranks, "3,6");
        groups_now[r][1].size = 2;
        groups_before[r][1] = groups_now[r][1];
    }
    count(3, 1, 101, 100);
    stand(3, "train", 95, "all_reduce");
    before[6].n_groups = now[6].n_groups = 1;
    stand(6, "train", 91, "");
    assert_string_equal(judge(NULL), "WAITS FOR note 3 ORDER 95");
    assert_non_null(strstr(text, "perhaps for a rank whose counters are not known"));
}

static void test_nobody(void **state) {
    bool settled;
    (void)state;
    begin(-1);
    assert_string_equal(judge(NULL), "ALL ALIKE bad - NETWORK 91");
    job.elsewhere = 8; /* others may be behind */
    assert_string_equal(judge(NULL), "ALL ALIKE note - NETWORK 91");
    begin(-1);
    for (int r = 0; r < RANKS; r++)
        ranks[r].still_s = ranks[r].waits_s = 3;
    assert_string_equal(judge(&settled), "WAITING note - NETWORK 91");
    assert_false(settled);
    /* nothing could be read */
    begin(-1);
    for (int r = 0; r < RANKS; r++) {
        no_counters(r);
        rank_state_init(&before[r].state);
        rank_state_init(&now[r].state);
    }
    assert_string_equal(judge(NULL), "UNKNOWN note - - 0");
    job.n = 0;
    assert_string_equal(judge(NULL), "UNKNOWN note - - 0");
}

static void test_young(void **state) {
    (void)state;
    begin(3);
    for (int r = 0; r < RANKS; r++) {
        count(r, 0, r == 3 ? 2 : 3, 2);
        count(r, 1, 0, 0);
    }
    assert_string_equal(judge(NULL), "WAITS FOR warning 3 WAIT 31");
    for (int r = 0; r < RANKS; r++)
        ranks[r].still_s = ranks[r].waits_s = 70;
    assert_string_equal(judge(NULL), "HUNG bad 3 WAIT 31");
}

static void test_by_stacks(void **state) {
    (void)state;
    begin(3);
    for (int r = 0; r < RANKS; r++)
        no_counters(r);
    assert_string_equal(judge(NULL), "HUNG bad 3 WAIT 31");
    for (int r = 0; r < RANKS; r++)
        ranks[r].uptime_s = 40;
    assert_string_equal(judge(NULL), "WAITS FOR warning 3 WAIT 31");
    /* a backward pass that stands still waits for other ranks, too */
    begin(3);
    for (int r = 0; r < RANKS; r++) {
        no_counters(r);
        if (r != 3) {
            stand(r, "train", 91, "");
            before[r].state.in_backward = now[r].state.in_backward = true;
        }
    }
    assert_string_equal(judge(NULL), "HUNG bad 3 WAIT 31");
    /* but not one that computes */
    for (int r = 0; r < RANKS; r++)
        now[r].state.thread_ns += 1000 * 1000 * 1000;
    assert_string_equal(judge(NULL), "MOVING fine - - 0");
    /* nor those that have stood there for a moment only */
    begin(3);
    for (int r = 0; r < RANKS; r++) {
        no_counters(r);
        ranks[r].waits_s = ranks[r].still_s = ranks[r].stands_s = 2;
    }
    assert_string_equal(judge(NULL), "MOVING fine - - 0");
    ranks[3].stands_s = 4; /* unless one may be stuck */
    assert_string_equal(judge(NULL), "WAITING note 3 WAIT 31");
    /* a few that wait are perhaps a group of their own */
    begin(3);
    for (int r = 0; r < RANKS; r++) {
        no_counters(r);
        if (r > 2)
            stand(r, "serve", 50, "");
    }
    assert_string_equal(judge(NULL), "UNKNOWN note - - 0");
    now[7].state.thread_ns += 1000 * 1000 * 1000; /* that one moves does not mean that nobody waits */
    assert_string_equal(judge(NULL), "UNKNOWN note - - 0");
    assert_non_null(strstr(text, "ranks 0-2 stand in all_reduce, for 30s: for whom they wait is not known"));
    /* all of them */
    begin(-1);
    for (int r = 0; r < RANKS; r++)
        no_counters(r);
    assert_string_equal(judge(NULL), "ALL ALIKE bad - NETWORK 91");
}

/* By the counters nobody waits: most stand in what has none. */
static void test_uncounted(void **state) {
    struct fleet_verdicts v;
    (void)state;
    begin(3);
    for (int r = 0; r < RANKS; r++) {
        count(r, 0, 100, 100);
        if (r != 3)
            stand(r, "train", 91, "monitored_barrier");
    }
    assert_string_equal(judge(NULL), "HUNG bad 3 WAIT 31");
    assert_non_null(strstr(text, "(by stacks alone)"));
    assert_int_equal(fleet_verdict_find(&job, &v), 0);
    assert_int_equal(v.n_groups, 2); /* what is known of the groups stays */
    fleet_verdicts_fini(&v);
    for (int r = 0; r < RANKS; r++)
        if (r != 3)
            stand(r, "train", 91, "recv");
    assert_string_equal(judge(NULL), "WAITS FOR warning 3 WAIT 31");
    stand(3, "train", 91, "recv");
    assert_string_equal(judge(NULL), "ALL ALIKE warning - NETWORK 91");
    /* collectives end: they wait for a moment */
    for (int r = 0; r < RANKS; r++)
        groups_before[r][1].completed = groups_before[r][1].enqueued = 99;
    assert_string_equal(judge(NULL), "MOVING fine - - 0");
}

static int number(int n) { return rand() % n; }

static void make_random(void) {
    begin(number(RANKS + 1) - 1);
    for (int r = 0; r < RANKS; r++) {
        struct rank_state *s = &now[r].state;
        if (number(4) == 0)
            count(r, number(2), 100 + number(3), 99 + number(3));
        if (number(6) == 0)
            no_counters(r);
        if (number(8) == 0)
            now[r].answer = (enum rank_answer)number(4);
        if (number(8) == 0)
            s->state = "RSDTtZ?"[number(7)];
        if (number(8) == 0)
            s->stack++;
        s->gone = number(20) == 0;
        if (number(20) == 0)
            ranks[r].pid = 0;
        if (number(12) == 0)
            ranks[r].now = NULL;
        if (number(12) == 0)
            ranks[r].before = NULL;
        ranks[r].still_s = number(6) ? number(40) : NAN;
        ranks[r].waits_s = number(6) ? number(40) : NAN;
    }
    job.n = (size_t)number(RANKS + 1);
    job.elsewhere = number(3);
}

/* Of any job: HUNG is only said of ranks that have not moved, that others wait for, and that have stood still for long. */
static void test_random(void **state) {
    unsigned seed = (unsigned)time(NULL);
    (void)state;
    srand(seed);
    int hung = 0;
    for (int i = 0; i < 20000; i++) {
        struct fleet_verdicts v;
        make_random();
        assert_int_equal(fleet_verdict_find(&job, &v), 0);
        assert_true(v.n >= 1);
        for (size_t k = 0; k < v.n; k++) {
            const struct fleet_verdict *one = &v.items[k];
            if (one->level == VERDICT_BAD && !(one->since_s >= FLEET_VERDICT_LATE_S))
                fail_msg("seed %u, job %d: %s after %g s", seed, i, one->text, one->since_s);
            for (int32_t r = 0; r < (int32_t)job.n && one->code == FLEET_CODE_HUNG; r++) {
                const struct fleet_verdict_rank *rank = &ranks[r];
                if (!rank_set_has(&one->ranks, r))
                    continue;
                hung++;
                bool fact = one->cause == FLEET_CAUSE_DEAD || one->cause == FLEET_CAUSE_STOPPED;
                bool moved = rank->before && rank->now &&
                             fleet_verdict_has_moved(&rank->before->state, &rank->now->state);
                double still_s =
                    fmax(isnan(rank->still_s) ? 0 : rank->still_s, isnan(rank->waits_s) ? 0 : rank->waits_s);
                if (!fact && (moved || still_s < FLEET_VERDICT_LATE_S))
                    fail_msg("seed %u, job %d: %s", seed, i, one->text);
            }
        }
        fleet_verdicts_fini(&v);
    }
    assert_true(hung > 100);
}

/* ---- what GPUs do ---- */

static void gpu(int r, double util_pct, double power_w) {
    before[r].has_gpu = now[r].has_gpu = true;
    before[r].gpu_util_pct = now[r].gpu_util_pct = util_pct;
    before[r].gpu_power_w = now[r].gpu_power_w = power_w;
}

static void test_gpus(void **state) {
    (void)state;
    /* the one that is missing does not spin: that supports what the counters say */
    begin(3);
    for (int r = 0; r < RANKS; r++)
        gpu(r, r == 3 ? 2 : 100, r == 3 ? 71 : 128);
    assert_string_equal(judge(NULL), "HUNG bad 3 WAIT 31");
    assert_string_equal(witness("gpu"),
                        "3: its GPU is 2 % busy at 71 W; those of ranks 0-2,4-7 are 100 % busy at 128 W");
    /* it does: they say it all the same */
    gpu(3, 100, 128);
    assert_string_equal(judge(NULL), "HUNG bad 3 WAIT 31");
    assert_string_equal(witness("gpu"),
                        "3: its GPU is 100 % busy at 128 W; those, too, of ranks 0-2,4-7 are 100 % "
                        "busy at 128 W");
    /* all alike: a suspect, whom nobody accuses */
    begin(-1);
    for (int r = 0; r < RANKS; r++)
        gpu(r, r == 5 ? 0 : 99, r == 5 ? 70 : 130);
    assert_string_equal(judge(NULL), "ALL ALIKE bad - NETWORK 91");
    assert_non_null(strstr(text, "; a suspect by its GPU: rank 5 (0 % busy at 70 W, the others 99 % busy at "
                                 "130 W)"));
    /* three of eight are not few; one whose power moves computes; of one reading nothing is known */
    gpu(1, 0, 70);
    gpu(2, 0, 70);
    judge(NULL);
    assert_null(strstr(text, "suspect"));
    gpu(1, 99, 130);
    gpu(2, 99, 130);
    before[4].gpu_power_w = 230;
    judge(NULL);
    assert_null(strstr(text, "suspect"));
    before[4].gpu_power_w = 130;
    before[5].has_gpu = false;
    judge(NULL);
    assert_null(strstr(text, "suspect"));
    gpu(5, 100, NAN);
    judge(NULL);
    assert_null(strstr(text, "suspect"));
    assert_non_null(
        strstr(witness("gpu"), "GPUs of all 8 ranks are 99 % busy at 130 W, which does not change"));
}

/* The parts of a verdict that GPUs must not change. */
static void put_verdict(const struct fleet_verdict *v, char *buf, size_t cap) {
    char accused[128], waiting[128];
    put_set(&v->ranks, accused, sizeof accused);
    put_set(&v->waiting, waiting, sizeof waiting);
    (void)snprintf(buf, cap, "%d %d %d %s %s %g %d %d %s %s", v->code, v->level, v->cause, accused, waiting,
                   v->since_s, v->settled, (int)v->at.line, v->brief, v->denied);
}

/* Of any job: with GPUs, whatever they do, the same is said of the same ranks; and a suspect is one whose
 * GPU rests. */
static void test_random_gpus(void **state) {
    unsigned seed = (unsigned)time(NULL);
    (void)state;
    srand(seed);
    int suspects = 0;
    for (int i = 0; i < 20000; i++) {
        static const double utils[] = {0, 3, 50, 60, 95, 100, -7, 1e300}, powers[] = {70, 128, 131, 400, -1};
        struct fleet_verdicts without, with;
        make_random();
        if (number(3) == 0) { /* more of those in which nobody is accused */
            begin(-1);
            job.elsewhere = number(2);
        }
        assert_int_equal(fleet_verdict_find(&job, &without), 0);
        int usual = number(8);
        for (int r = 0; r < RANKS; r++) {
            int kind = number(4) ? usual : number(8);
            gpu(r, utils[kind], number(9) ? powers[kind % 5] : NAN);
            before[r].has_gpu = number(9) > 0;
            now[r].has_gpu = number(9) > 0;
            if (number(6) == 0)
                before[r].gpu_power_w = powers[number(5)];
        }
        assert_int_equal(fleet_verdict_find(&job, &with), 0);
        assert_int_equal(with.n, without.n);
        for (size_t k = 0; k < with.n; k++) {
            char a[1024], b[1024];
            put_verdict(&without.items[k], a, sizeof a);
            put_verdict(&with.items[k], b, sizeof b);
            if (strcmp(a, b) != 0)
                fail_msg("seed %u, job %d: %s / %s", seed, i, a, b);
            const char *named = strstr(with.items[k].text, "suspect by its GPU: rank ");
            if (!named)
                continue;
            int r = atoi(named + strlen("suspect by its GPU: rank "));
            if (r < 0 || r >= RANKS || !(now[r].gpu_util_pct <= 50) || with.items[k].ranks.n)
                fail_msg("seed %u, job %d: %s", seed, i, with.items[k].text);
            suspects++;
        }
        fleet_verdicts_fini(&with);
        fleet_verdicts_fini(&without);
    }
    assert_true(suspects > 20);
}

/* One of which there is no news is not known to stand still, whatever was known of it before; and of one reading no
 * time that it has worked in is known. */
static void test_no_news(void **state) {
    (void)state;
    begin(5);
    ranks[5].now = ranks[5].before = NULL;
    assert_string_equal(judge(NULL), "WAITS FOR warning 5 UNKNOWN 0");
    assert_non_null(strstr(text, "could not be read"));
    assert_null(strstr(text, "has not moved"));
    assert_string_equal(witness("kernel"), "5: it could not be read");
    begin(5);
    ranks[5].before = NULL;
    judge(NULL);
    assert_string_equal(witness("kernel"), "5: state S, has not run for 30.0 s");
}

/* ---- what NCCL knows ---- */

static void test_ras(void **state) {
    const struct ras_fact facts[] = {
        {.rank = -1, .note = "127.0.0.1:28028 does not answer in time"},
        {.rank = 3, .state = RAS_BEHIND, .pid = 103, .host = "10.0.0.1", .behind = 1, .op = "AllReduce"},
        {.rank = 5, .state = RAS_SILENT, .pid = 105, .host = "10.0.0.2"},
    };
    (void)state;
    /* it supports what the counters say; what it says of others accuses nobody */
    begin(3);
    job.ras = facts;
    job.n_ras = 2;
    assert_string_equal(judge(NULL), "HUNG bad 3 WAIT 31");
    job.ras = &facts[1];
    assert_string_equal(judge(NULL), "HUNG bad 3 WAIT 31");
    job.n_ras = 1;
    assert_string_equal(
        witness("ras"),
        "3: its process (pid 103 on 10.0.0.1) has launched 1 fewer AllReduce than the others");
    /* nobody is accused: it names no one, and says what it knows */
    begin(-1);
    job.ras = &facts[2];
    job.n_ras = 1;
    assert_string_equal(judge(NULL), "ALL ALIKE bad - NETWORK 91");
    assert_null(strstr(text, "rank 5"));
    assert_string_equal(witness("ras"), "5: NCCL does not reach its process (pid 105 on 10.0.0.2)");
    job.ras = facts;
    assert_string_equal(witness("ras"), "-1: 127.0.0.1:28028 does not answer in time");
    /* the state of a rank of which there is no news */
    begin(5);
    ranks[5].now = ranks[5].before = NULL;
    job.ras = &facts[2];
    job.n_ras = 1;
    assert_non_null(strstr(judge(NULL), "WAITS FOR warning 5"));
    assert_string_equal(witness("ras"), "5: NCCL does not reach its process (pid 105 on 10.0.0.2)");
}

/* Of any job: whatever NCCL says, the same is said of the same ranks. */
static void test_random_ras(void **state) {
    unsigned seed = (unsigned)time(NULL);
    (void)state;
    srand(seed);
    int proved = 0;
    for (int i = 0; i < 20000; i++) {
        struct ras_fact facts[RAS_FACTS];
        struct fleet_verdicts without, with;
        make_random();
        assert_int_equal(fleet_verdict_find(&job, &without), 0);
        job.ras = facts;
        job.n_ras = (size_t)number(RAS_FACTS + 1);
        for (size_t k = 0; k < job.n_ras; k++)
            facts[k] = (struct ras_fact){.rank = number(2 * RANKS) - 1,
                                         .state = (enum ras_state)number(RAS_STATES),
                                         .pid = number(300) - 1,
                                         .behind = number(9),
                                         .note = "it lies"};
        assert_int_equal(fleet_verdict_find(&job, &with), 0);
        assert_int_equal(with.n, without.n);
        for (size_t k = 0; k < with.n; k++) {
            char a[1024], b[1024];
            put_verdict(&without.items[k], a, sizeof a);
            put_verdict(&with.items[k], b, sizeof b);
            if (strcmp(a, b) != 0 || strcmp(without.items[k].text, with.items[k].text) != 0)
                fail_msg("seed %u, job %d: %s / %s", seed, i, a, b);
            size_t more = with.items[k].n_evidence - without.items[k].n_evidence;
            assert_true(more <= 8);
            proved += more > 0;
        }
        fleet_verdicts_fini(&with);
        fleet_verdicts_fini(&without);
    }
    assert_true(proved > 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moving),          cmocka_unit_test(test_part),
        cmocka_unit_test(test_many_groups),     cmocka_unit_test(test_hung),
        cmocka_unit_test(test_not_long_enough), cmocka_unit_test(test_works),
        cmocka_unit_test(test_facts),           cmocka_unit_test(test_gil),
        cmocka_unit_test(test_silent),          cmocka_unit_test(test_operations),
        cmocka_unit_test(test_same_line),       cmocka_unit_test(test_same_trainer),
        cmocka_unit_test(test_waits_elsewhere), cmocka_unit_test(test_stuck),
        cmocka_unit_test(test_stuck_together),  cmocka_unit_test(test_p2p_numbers),
        cmocka_unit_test(test_half_known),      cmocka_unit_test(test_backends),
        cmocka_unit_test(test_denied),          cmocka_unit_test(test_circle),
        cmocka_unit_test(test_p2p_waits),       cmocka_unit_test(test_waits_beyond),
        cmocka_unit_test(test_nobody),          cmocka_unit_test(test_young),
        cmocka_unit_test(test_by_stacks),       cmocka_unit_test(test_uncounted),
        cmocka_unit_test(test_busy_waiting),    cmocka_unit_test(test_random),
        cmocka_unit_test(test_blocked),         cmocka_unit_test(test_gpus),
        cmocka_unit_test(test_random_gpus),     cmocka_unit_test(test_ras),
        cmocka_unit_test(test_no_news),         cmocka_unit_test(test_random_ras),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
