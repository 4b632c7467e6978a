/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of other hosts that are read again and again: what is concluded while a host gives no news, and after that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/fleet/fleet_watch.h"
#include "relay/rank_states.h"

#define RANKS 4
#define CUT 1          /* the rank whose host is cut off, and for which the others wait */
#define BEGAN 345600.0 /* a host that is up for four days */

static double now_s;     /* of the next reading */
static bool is_cut;      /* its host gives no news */
static bool has_process; /* of the last rank: this host was promised it */
static bool is_nameless; /* agents do not say which operation is open */
static int other_op;     /* the rank that has entered another one, and one more; 0 none */
static bool is_untold;   /* the kernel does not say when it ran last */
static bool is_working;  /* all run */
static int64_t done;     /* collectives that are completed */

static void put_place(struct rank_place *p, const char *func, int32_t line) {
    snprintf(p->func, sizeof p->func, "%s", func);
    snprintf(p->file, sizeof p->file, "/job/train.py");
    p->line = line;
}

/* All wait in all_reduce #101 for the rank, which has not run since the beginning. */
static int read_ranks(void *arg, bool counters, const struct fleet_verdict_rank *ranks,
                      struct rank_reading *readings, size_t n, struct fleet_watch_time *time, struct err *e) {
    (void)arg;
    (void)e;
    time->at_s = now_s;
    for (size_t i = 0; i < n; i++) {
        struct rank_state *s = &readings[i].state;
        if (ranks[i].pid <= 0 || (ranks[i].rank == CUT && is_cut))
            continue;
        bool is_behind = ranks[i].rank == CUT;
        s->at_s = now_s;
        s->state = is_working ? 'R' : 'S';
        s->still_s = is_working ? 0 : is_untold ? NAN : now_s - BEGAN + 20;
        s->cpu_ns = s->thread_ns = (uint64_t)done * 1000 * 1000 * 1000;
        s->has_stack = true;
        s->stack = is_working ? (uint64_t)now_s : is_behind ? 7 : 8;
        put_place(&s->own, is_behind ? "next_batch" : "train", is_behind ? 31 : 91);
        s->at = s->leaf = s->own;
        snprintf(s->collective, sizeof s->collective, "%s", is_behind ? "" : "all_reduce");
        if (!counters)
            continue;
        readings[i].answer = RANK_ANSWERED;
        readings[i].asked_s = now_s;
        readings[i].groups = calloc(1, sizeof *readings[i].groups);
        assert_non_null(readings[i].groups);
        readings[i].n_groups = 1;
        struct rank_group *g = readings[i].groups;
        snprintf(g->pg, sizeof g->pg, "0");
        snprintf(g->ranks, sizeof g->ranks, "0-%d", RANKS - 1);
        snprintf(g->op, sizeof g->op, "%s",
                 is_behind || is_nameless        ? ""
                 : ranks[i].rank == other_op - 1 ? "all_gather"
                                                 : "all_reduce");
        g->size = RANKS;
        g->bytes = 4;
        g->enqueued = is_behind ? done : done + 1;
        g->completed = done;
        g->since_s = NAN;
    }
    return 0;
}

static struct fleet_watch *watch_ranks(void) {
    struct fleet_verdict_rank list[RANKS];
    done = 100;
    for (int32_t i = 0; i < RANKS; i++)
        list[i] = (struct fleet_verdict_rank){
            .rank = i, .pid = i < RANKS - 1 || has_process ? 100 + i : 0, .uptime_s = 1000};
    struct fleet_watch *w = fleet_watch_new_there(list, RANKS, RANKS, read_ranks, NULL);
    assert_non_null(w);
    return w;
}

static void say(char *text, size_t cap, const struct fleet_verdict *v) {
    size_t n = strlen(text);
    n += (size_t)snprintf(text + n, cap - n, "%s: %s\nnot: %s\n", v->brief, v->text, v->denied);
    for (size_t i = 0; i < v->n_evidence && n < cap; i++)
        n += (size_t)snprintf(text + n, cap - n, "%d %s: %s\n", (int)v->evidence[i].rank,
                              v->evidence[i].witness, v->evidence[i].text);
    assert_true(n < cap);
}

/* Read and judge at that time: the verdicts and what they are made of, in one text. */
static const char *judge(struct fleet_watch *w, double at_s) {
    static char text[16384];
    struct fleet_verdicts v;
    struct err e = {0};
    now_s = at_s;
    text[0] = '\0';
    assert_int_equal(fleet_watch_read(w, true, &e), 0);
    assert_int_equal(fleet_watch_judge(w, &v, &e), 0);
    for (size_t i = 0; i < v.n; i++)
        say(text, sizeof text, &v.items[i]);
    fleet_verdicts_fini(&v);
    return text;
}

/* Read without counters. */
static void look(struct fleet_watch *w, double at_s) {
    struct err e = {0};
    now_s = at_s;
    assert_int_equal(fleet_watch_read(w, false, &e), 0);
}

static void expect(const char *text, const char *part, bool is_there) {
    if ((strstr(text, part) != NULL) != is_there)
        fail_msg("'%s' %s: %s", part, is_there ? "is missing" : "must not be there", text);
}

/* It was read before, and is not now: then nothing is known of it, above all not that it stands still. */
static void without_news_nothing_is_known(void **state) {
    size_t n;
    (void)state;
    is_cut = false;
    has_process = true;
    struct fleet_watch *w = watch_ranks();
    const struct fleet_verdict_rank *ranks = fleet_watch_ranks(w, &n);
    judge(w, BEGAN);
    expect(judge(w, BEGAN + 3), "HUNG RANK 1", true);
    is_cut = true;
    for (int i = 2; i < 5; i++) {
        const char *text = judge(w, BEGAN + 3 * i);
        assert_null(ranks[CUT].now);
        assert_true(isnan(ranks[CUT].still_s) && isnan(ranks[CUT].waits_s) && isnan(ranks[CUT].stands_s));
        expect(text, "WAITS FOR RANK 1", true);
        expect(text, "could not be read", true);
        expect(text, "no agent", false);
        expect(text, "ms of CPU", false);
        expect(text, "has not moved", false);
        expect(text, "read twice, 3.0 s apart", true);
    }
    fleet_watch_free(w);
}

/* Its host is back: the reading that did not come is no reading that it is compared with. */
static void news_after_none(void **state) {
    size_t n;
    (void)state;
    is_cut = true;
    has_process = true;
    struct fleet_watch *w = watch_ranks();
    const struct fleet_verdict_rank *ranks = fleet_watch_ranks(w, &n);
    judge(w, BEGAN);
    is_cut = false;
    /* half a second later: that is not apart, of nobody */
    const char *text = judge(w, BEGAN + 0.5);
    assert_non_null(ranks[CUT].now);
    assert_null(ranks[CUT].before);
    assert_non_null(ranks[0].before);
    expect(text, "read twice, 0.5 s apart", true);
    expect(text, "HUNG", false);
    expect(text, "ms of CPU", false);
    text = judge(w, BEGAN + 3);
    expect(text, "HUNG RANK 1", true);
    expect(text, "0 ms of CPU in 2.5 s", true);
    fleet_watch_free(w);
}

/* What it did meanwhile is not known: only the kernel knows for how long it has not run. */
static void it_is_watched_again(void **state) {
    size_t n;
    (void)state;
    is_cut = false;
    has_process = true;
    struct fleet_watch *w = watch_ranks();
    const struct fleet_verdict_rank *ranks = fleet_watch_ranks(w, &n);
    judge(w, BEGAN);
    judge(w, BEGAN + 3);
    assert_true(ranks[CUT].stands_s == 3 && ranks[CUT].waits_s == 23);
    is_cut = true;
    judge(w, BEGAN + 9);
    is_cut = false;
    judge(w, BEGAN + 15);
    assert_true(ranks[CUT].stands_s == 0 && ranks[CUT].waits_s == 35);
    assert_true(ranks[0].stands_s == 15);
    fleet_watch_free(w);
    /* and where the kernel does not, nobody */
    is_untold = true;
    w = watch_ranks();
    ranks = fleet_watch_ranks(w, &n);
    judge(w, BEGAN);
    is_cut = true;
    judge(w, BEGAN + 6);
    is_cut = false;
    judge(w, BEGAN + 12);
    assert_true(ranks[0].still_s == 12 && ranks[CUT].still_s == 0);
    is_untold = false;
    fleet_watch_free(w);
}

/* A rank without a process is known to have none, and each reading says so. */
static void a_missing_rank_stays_dead(void **state) {
    size_t n;
    (void)state;
    is_cut = false;
    has_process = false;
    struct fleet_watch *w = watch_ranks();
    const struct fleet_verdict_rank *ranks = fleet_watch_ranks(w, &n);
    judge(w, BEGAN);
    const char *text = judge(w, BEGAN + 3);
    assert_int_equal(fleet_watch_gone(w), 1);
    assert_true(ranks[RANKS - 1].now && ranks[RANKS - 1].now->state.gone);
    expect(text, "has no process", true);
    expect(text, "read twice, 3.0 s apart", true);
    fleet_watch_free(w);
}

/* An agent that has read its entries once reads only counters after that: the operation is still the same one. */
static void an_operation_is_kept(void **state) {
    (void)state;
    is_cut = false;
    has_process = true;
    other_op = 3;
    struct fleet_watch *w = watch_ranks();
    judge(w, BEGAN);
    is_nameless = true;
    const char *text = judge(w, BEGAN + 3);
    expect(text, "has entered all_gather", true);
    expect(text, "no other operation", false);
    is_nameless = false;
    other_op = 0;
    fleet_watch_free(w);
}

/* A job that goes on is not asked for its counters: that it waited all the while is not known. */
static void a_time_without_counters_is_no_wait(void **state) {
    (void)state;
    is_cut = false;
    has_process = is_untold = true;
    struct fleet_watch *w = watch_ranks();
    look(w, BEGAN);
    judge(w, BEGAN + 30);
    for (int i = 1; i < 20; i++)
        look(w, BEGAN + 30 * i);
    done = 150;
    judge(w, BEGAN + 600);
    done = 151;
    judge(w, BEGAN + 601);
    judge(w, BEGAN + 604);
    expect(judge(w, BEGAN + 612), "HUNG RANK 1", true);
    is_untold = false;
    fleet_watch_free(w);
}

/* It is known where the counters are equal at both ends, and one that has ended by itself is waited for longer. */
static void a_wait_that_has_ended_is_known(void **state) {
    (void)state;
    is_cut = false;
    has_process = is_untold = true;
    struct fleet_watch *w = watch_ranks();
    judge(w, BEGAN);
    look(w, BEGAN + 10);
    judge(w, BEGAN + 20);
    look(w, BEGAN + 21);
    done = 101;
    judge(w, BEGAN + 22);
    judge(w, BEGAN + 25);
    expect(judge(w, BEGAN + 60), "HUNG", false);
    expect(judge(w, BEGAN + 22 + 61), "HUNG RANK 1", true);
    is_untold = false;
    fleet_watch_free(w);
}

/* One that has ended is for ever: by itself it is no reason to read those that go on. */
static void who_has_ended_is_not_suspect(void **state) {
    (void)state;
    is_cut = has_process = false;
    is_working = true;
    struct fleet_watch *w = watch_ranks();
    judge(w, BEGAN);
    judge(w, BEGAN + 3);
    assert_true(fleet_watch_is_suspect(w) && !rank_states_is_suspect(w));
    is_working = false;
    judge(w, BEGAN + 6);
    judge(w, BEGAN + 9);
    assert_true(rank_states_is_suspect(w));
    fleet_watch_free(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_news_nothing_is_known),
        cmocka_unit_test(news_after_none),
        cmocka_unit_test(it_is_watched_again),
        cmocka_unit_test(a_missing_rank_stays_dead),
        cmocka_unit_test(an_operation_is_kept),
        cmocka_unit_test(a_time_without_counters_is_no_wait),
        cmocka_unit_test(a_wait_that_has_ended_is_known),
        cmocka_unit_test(who_has_ended_is_not_suspect),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
