/* SPDX-License-Identifier: Apache-2.0 */
/* From the flight recorders of 16 ranks to the verdict: documents as torch's versions write them, of a job with tensor, data and pipeline
 * groups in which one or two ranks keep all others waiting, over several groups; and what is known where some documents are no good. */
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

#include "agent/python/flight.h"
#include "client/fleet/fleet_verdict.h"
#include "support/flight_documents.h"

#define RANKS 16 /* rank = tensor + 2 * data + 8 * pipeline, as Megatron numbers them */
#define APART_S 2.5

enum made { MADE_WORLD, MADE_TENSOR, MADE_DATA, MADE_PIPELINE, MADE_GROUPS };

/* Completed in each before the fault. */
static const int completed[MADE_GROUPS] = {30, 60, 20, 50};

/* What the culprits do. */
enum fault {
    FAULT_GPU,    /* their tensor collective does not finish on their own device */
    FAULT_GIL,    /* a thread of theirs keeps the GIL: they give no document */
    FAULT_LOADER, /* they are not there yet */
};

struct made_case {
    enum fault fault;
    int culprits[2];
    const char *named;
};

static struct fleet_verdict_rank ranks[RANKS];
static struct rank_reading before[RANKS], now[RANKS];
static struct rank_group groups[RANKS][MADE_GROUPS];
static struct fleet_verdict_case job;

static bool is_culprit(const struct made_case *c, int rank) {
    return c->culprits[0] == rank || c->culprits[1] == rank;
}

/* Whether the rank has entered the next collective of its group: it has not where it waits in an earlier one. */
static bool waits_in_tensor(const struct made_case *c, int rank) { return is_culprit(c, rank ^ 1); }

static bool waits_in_data(const struct made_case *c, int rank) {
    bool waits = false;
    for (int i = 0; i < RANKS; i++)
        if (i != rank && i / 8 == rank / 8 && i % 2 == rank % 2)
            waits |= is_culprit(c, i) || waits_in_tensor(c, i);
    return waits;
}

static void advance(struct flight_made *g, int enqueued, int over) {
    g->enqueued = enqueued;
    for (int i = 1; i <= enqueued; i++)
        g->over[i] = i <= over;
}

static void make_rank(const struct made_case *c, int rank, struct flight_made *made) {
    static const char *const descs[] = {"default_pg", "TENSOR_MODEL_PARALLEL_GROUP", "DATA_PARALLEL_GROUP",
                                        "PIPELINE_MODEL_PARALLEL_GROUP"};
    static char names[RANKS][MADE_GROUPS][16];
    int places[MADE_GROUPS] = {0, rank / 2, rank % 2 + 2 * (rank / 8), rank % 8};
    for (int g = 0; g < MADE_GROUPS; g++) {
        (void)snprintf(names[rank][g], sizeof names[rank][g], "%d", 100 * g + places[g]);
        made[g] = (struct flight_made){.number = g, .name = names[rank][g], .desc = descs[g], .first = 1};
        advance(&made[g], completed[g], completed[g]);
    }
    made[MADE_PIPELINE].p2p = true;
    /* the stages are not as far: that is nobody's fault */
    if (rank < 8)
        advance(&made[MADE_PIPELINE], completed[MADE_PIPELINE] + 3, completed[MADE_PIPELINE] + 2);
    if (is_culprit(c, rank)) {
        if (c->fault == FAULT_GPU)
            advance(&made[MADE_TENSOR], completed[MADE_TENSOR] + 2, completed[MADE_TENSOR]);
    } else if (waits_in_tensor(c, rank)) {
        int over = completed[MADE_TENSOR] + (c->fault == FAULT_GPU);
        advance(&made[MADE_TENSOR], over + 1, over);
    } else if (waits_in_data(c, rank))
        advance(&made[MADE_DATA], completed[MADE_DATA] + 1, completed[MADE_DATA]);
    else
        advance(&made[MADE_WORLD], completed[MADE_WORLD] + 1, completed[MADE_WORLD]);
}

/* As the agent makes rows of a document (src/agent/python/units/groups.py); names and members are Python's. */
static void make_rows(int rank, const struct flight *f, const struct flight_made *made) {
    static const int sizes[MADE_GROUPS] = {RANKS, 2, 4, 2};
    for (int g = 0; g < MADE_GROUPS; g++) {
        struct rank_group *out = &groups[rank][g];
        *out = (struct rank_group){.size = sizes[g],
                                   .enqueued = -1,
                                   .completed = -1,
                                   .bytes = -1,
                                   .since_s = NAN,
                                   .p2p = made[g].p2p};
        (void)snprintf(out->pg, sizeof out->pg, "%s", made[g].name);
        (void)snprintf(out->desc, sizeof out->desc, "%s", made[g].desc);
        switch ((enum made)g) {
        case MADE_TENSOR:
            (void)snprintf(out->ranks, sizeof out->ranks, "%d-%d", rank & ~1, rank | 1);
            break;
        case MADE_DATA:
            (void)snprintf(out->ranks, sizeof out->ranks, "%d-%d/2", rank % 2 + rank / 8 * 8,
                           rank % 2 + rank / 8 * 8 + 6);
            break;
        case MADE_PIPELINE:
            (void)snprintf(out->ranks, sizeof out->ranks, "%d,%d", rank % 8, rank % 8 + 8);
            break;
        case MADE_WORLD:
        case MADE_GROUPS:
            (void)snprintf(out->ranks, sizeof out->ranks, "0-%d", RANKS - 1);
        }
        for (size_t i = 0; i < f->n; i++) {
            const struct flight_group *got = &f->groups[i];
            if (got->number != made[g].number)
                continue;
            (void)snprintf(out->backend, sizeof out->backend, "%s", got->backend);
            out->enqueued = got->enqueued;
            out->completed = got->completed;
            if (got->open_seq != FLIGHT_UNKNOWN) {
                (void)snprintf(out->op, sizeof out->op, "%s", got->open_op);
                (void)snprintf(out->dtype, sizeof out->dtype, "%s", got->open_dtype);
                out->bytes = got->open_bytes;
            }
        }
    }
}

/* Where its main thread stands; it has not run between the readings. */
static void stand(const struct made_case *c, int rank) {
    for (int i = 0; i < 2; i++) {
        struct rank_state *s = i ? &now[rank].state : &before[rank].state;
        rank_state_init(s);
        s->at_s = 1000 + i * APART_S;
        s->state = 'S';
        s->thread_ns = s->cpu_ns = 1000 * 1000 * 1000;
        s->bytes = 100 << 20;
        s->has_stack = true;
        s->stack = (uint64_t)rank + 1;
        bool bad = is_culprit(c, rank);
        (void)snprintf(s->own.func, sizeof s->own.func, "%s", bad ? "next_batch" : "train_step");
        (void)snprintf(s->own.file, sizeof s->own.file, "/job/train.py");
        s->own.line = bad ? 31 : 91;
        s->at = s->leaf = s->own;
        s->needs_gil = bad && c->fault == FAULT_GIL;
        if (!bad || c->fault == FAULT_GPU)
            (void)snprintf(s->collective, sizeof s->collective, "all_reduce");
    }
}

/* The job in the words of one version; the document of rank `cut` ends in its middle. */
static void make_job(const struct made_case *c, const struct flight_form *form, int cut) {
    struct flight_made made[MADE_GROUPS];
    memset(before, 0, sizeof before);
    memset(now, 0, sizeof now);
    for (int r = 0; r < RANKS; r++) {
        struct strbuf text;
        struct flight f;
        struct err e;
        make_rank(c, r, made);
        flight_made_put(made, MADE_GROUPS, form, true, &text);
        int rc = flight_read(&f, text.data, r == cut ? text.len / 2 : text.len, &e);
        assert_int_equal(rc, r == cut ? -1 : 0);
        stand(c, r);
        make_rows(r, &f, made);
        bool answers = rc == 0 && !(is_culprit(c, r) && c->fault == FAULT_GIL);
        before[r].answer = now[r].answer = answers ? RANK_ANSWERED : rc == 0 ? RANK_SILENT : RANK_REFUSED;
        before[r].groups = now[r].groups = groups[r];
        before[r].n_groups = now[r].n_groups = answers ? MADE_GROUPS : 0;
        ranks[r] = (struct fleet_verdict_rank){.rank = r,
                                               .pid = 100 + r,
                                               .before = &before[r],
                                               .now = &now[r],
                                               .still_s = 30,
                                               .waits_s = 30,
                                               .stands_s = 30,
                                               .uptime_s = 1000};
        flight_fini(&f);
        strbuf_fini(&text);
    }
    job = (struct fleet_verdict_case){.ranks = ranks, .n = RANKS, .world = RANKS};
}

/* All that is bad, such as "HUNG NETWORK 12,14": there may be a verdict for each group, and they agree. `sure`: in the cause, too. */
static const char *judge(bool sure) {
    static char found[160];
    char words[96], first[96] = "";
    struct rank_set all = {.n = 0};
    struct fleet_verdicts v;
    struct strbuf set;
    assert_int_equal(fleet_verdict_find(&job, &v), 0);
    for (size_t i = 0; i < v.n && v.items[i].level == VERDICT_BAD; i++) {
        (void)snprintf(words, sizeof words, "%s%s%s", fleet_verdict_code_name(v.items[i].code),
                       sure ? " " : "", sure ? fleet_verdict_cause_name(v.items[i].cause) : "");
        if (i == 0)
            (void)snprintf(first, sizeof first, "%s", words);
        assert_string_equal(words, first);
        for (int r = 0; r < RANKS; r++)
            if (rank_set_has(&v.items[i].ranks, r))
                assert_int_equal(rank_set_add(&all, r, r), 0);
    }
    strbuf_init(&set, 0);
    rank_set_put(&all, 0, &set);
    (void)snprintf(found, sizeof found, "%s %s", first, all.n ? strbuf_str(&set) : "-");
    strbuf_fini(&set);
    rank_set_fini(&all);
    fleet_verdicts_fini(&v);
    return found;
}

static const struct made_case cases[] = {
    {FAULT_GPU, {12, 14}, "HUNG NETWORK 12,14"}, {FAULT_GPU, {9, 14}, "HUNG NETWORK 9,14"},
    {FAULT_GIL, {9, 14}, "HUNG GIL 9,14"},       {FAULT_GIL, {10, 15}, "HUNG GIL 10,15"},
    {FAULT_LOADER, {3, 3}, "HUNG WAIT 3"},       {FAULT_LOADER, {0, 13}, "HUNG WAIT 0,13"},
};
#define CASES (sizeof cases / sizeof cases[0])

static void the_culprits_are_named_in_every_version(void **state) {
    (void)state;
    for (size_t i = 0; i < CASES; i++)
        for (size_t form = 0; form < FLIGHT_FORMS; form++) {
            make_job(&cases[i], &flight_forms[form], -1);
            assert_string_equal(judge(true), cases[i].named);
        }
}

/* A rank whose recorder cannot be read, and that waits like the others, is not accused, and hides nobody. Why may be less clear: only
 * its peer shows that a GPU does not finish. */
static void a_document_that_is_cut_accuses_nobody(void **state) {
    (void)state;
    for (size_t i = 0; i < CASES; i++)
        for (int cut = 0; cut < RANKS; cut++) {
            if (is_culprit(&cases[i], cut))
                continue;
            make_job(&cases[i], &flight_forms[5], cut);
            const char *said = judge(false);
            assert_memory_equal(said, "HUNG ", 5);
            assert_string_equal(said + 5, strrchr(cases[i].named, ' ') + 1);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_culprits_are_named_in_every_version),
        cmocka_unit_test(a_document_that_is_cut_accuses_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
