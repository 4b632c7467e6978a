/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verdict: see verdict.h. The rules are in verdict_rules.c.
 *
 * Before the rules, the time window of the newest steps and the training thread are determined
 * for each target: the rules have them as :from and :tid, beside :pid, and :first, the time of
 * the first step. So what a rule reads is bounded: about VERDICT_STEPS steps, however long they
 * take, and seconds of the rest.
 */
#include "client/verdict/verdict.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "client/progress.h"
#include "client/sql/result.h"
#include "client/verdict/verdict_places.h"
#include "store/ring/ring_tables.h"

#define VERDICT_STEPS 200.0     /* steps that rules read, at least, if there are so many */
#define VERDICT_MANY 4000.0     /* and at most, about */
#define VERDICT_FIRST_S 15.0    /* first window in which steps are searched for, */
#define VERDICT_LAST_S 172800.0 /* and the last */
#define VERDICT_GROWS 4.0       /* factor from one to the next */
#define VERDICT_TIMEOUT_S 10.0  /* for one rule */
#define VERDICT_ROUND_NS (500 * (long)CLOCK_NS_PER_MS) /* between two attempts */
#define VERDICT_MOST_TARGETS 512                       /* others are not judged */
/* read once for all rules that need it */
#define VERDICT_WORKERS "python.loader_workers"
#define VERDICT_THREADS "temp.verdict_threads"
#define VERDICT_NATIVE "temp.verdict_native"
#define VERDICT_GPUS "gpu_metrics"
#define VERDICT_CHECKS 64 /* for which room is made at a time */

/* Facts about a target before its rules. */
struct verdict_target {
    size_t number; /* of the database's targets */
    int64_t pid, rank;
    double window_s;        /* contains the newest steps */
    double taken_s, seen_s; /* see verdict_places.h */
    double steps, last_s, tid;
    double first_s; /* end of its first step; NAN unknown */
};

struct verdict_judge {
    struct database *db;
    struct verdict_target *targets;
    size_t n_targets;
    bool is_open; /* the tables of verdict_places.h are there */
};

static const char verdict_count[] =
    "SELECT count(*), max(timestamp) FROM python.steps WHERE pid = CAST(:pid AS INTEGER) AND timestamp > "
    "now() - :window";

static const char verdict_trainer[] =
    "SELECT tid FROM main.profiling_data WHERE pid = CAST(:pid AS INTEGER) AND kind = 'optimizer' AND "
    "timestamp BETWEEN :last - 5 AND :last ORDER BY timestamp DESC LIMIT 1";

/* Rows of a fast job's first steps soon expire: their time is extrapolated by the length of the
 * oldest present ones. */
static const char verdict_first[] =
    "SELECT min(timestamp) - (min(step) - 1) * coalesce(avg(duration_ms), 0) / 1000 FROM "
    "(SELECT timestamp, step, duration_ms FROM python.steps WHERE pid = CAST(:pid AS INTEGER) ORDER BY "
    "timestamp LIMIT 200)";

struct verdict_judge *verdict_judge_new(struct database *d) {
    struct verdict_judge *j = calloc(1, sizeof *j);
    if (j)
        j->db = d;
    return j;
}

void verdict_judge_free(struct verdict_judge *j) {
    if (!j)
        return;
    free(j->targets);
    free(j);
}

void verdicts_fini(struct verdicts *v) {
    for (size_t i = 0; i < v->n; i++)
        free(v->items[i].values);
    free(v->items);
    free(v->checks);
    memset(v, 0, sizeof *v);
}

/* ---- asking ---- */

/* The first rows of one statement; the caller unrefs them. NULL with the error. */
static struct result *verdict_query(struct database *d, const char *text, const struct sql_named *named,
                                    size_t n, struct err *e) {
    struct sql_query q = {
        .timeout_s = VERDICT_TIMEOUT_S, .named = named, .n_named = n, .max_rows = 2, .again = true};
    return database_take(d, text, &q, RESULT_BYTES, e);
}

/* The number in the first row; NAN: it is not one, or there is no row. */
static double verdict_number(const struct result *rows, size_t column) {
    return rows->n_rows ? result_number(rows, 0, column) : NAN;
}

static int verdict_count_steps(struct verdict_judge *j, struct verdict_target *t, struct err *e) {
    const struct sql_named named[] = {{":pid", (double)t->pid}, {":window", t->window_s}};
    struct result *rows = verdict_query(j->db, verdict_count, named, 2, e);
    if (!rows)
        return -1;
    t->steps = verdict_number(rows, 0);
    t->last_s = verdict_number(rows, 1);
    result_unref(rows);
    return 0;
}

/* Find the window of the newest steps: longer until there are enough, shorter if there are far
 * too many. */
static int verdict_find_window(struct verdict_judge *j, struct verdict_target *t, struct err *e) {
    for (int tries = 0; tries < 12; tries++) {
        if (verdict_count_steps(j, t, e) != 0)
            return -1;
        if (t->steps < VERDICT_STEPS && t->window_s < VERDICT_LAST_S)
            t->window_s *= VERDICT_GROWS;
        else if (t->steps > VERDICT_MANY)
            t->window_s *= VERDICT_MANY / 2 / t->steps;
        else
            break;
    }
    return 0;
}

/* The training thread: the main thread, unless torch reports another. */
static int verdict_find_trainer(struct verdict_judge *j, struct verdict_target *t, struct err *e) {
    const struct sql_named named[] = {{":pid", (double)t->pid}, {":last", t->last_s}};
    t->tid = (double)t->pid;
    if (isnan(t->last_s))
        return 0;
    struct result *rows = verdict_query(j->db, verdict_trainer, named, 2, e);
    if (!rows)
        return -1;
    double tid = verdict_number(rows, 0);
    t->tid = isnan(tid) ? t->tid : tid;
    result_unref(rows);
    return 0;
}

/* The time of its first step; a known one stays. */
static int verdict_find_first(struct verdict_judge *j, struct verdict_target *t, struct err *e) {
    const struct sql_named named[] = {{":pid", (double)t->pid}};
    if (!isnan(t->first_s))
        return 0;
    struct result *rows = verdict_query(j->db, verdict_first, named, 1, e);
    if (!rows)
        return -1;
    t->first_s = verdict_number(rows, 0);
    result_unref(rows);
    return 0;
}

/* ---- one rule ---- */

/* The inputs of a rule. */
struct verdict_case {
    struct verdict_judge *judge;
    const struct verdict_target *target;
    struct verdict_value values[VERDICT_VALUES];
    size_t n;
    bool again; /* evidence needs another look at the job */
    /* they were looked at in this judgement */
    bool has_workers, has_threads, has_native;
    char why[VERDICT_WHY];
};

static void verdict_add_value(struct verdict_case *c, const struct result *rows, size_t column) {
    if (c->n == VERDICT_VALUES)
        return;
    struct verdict_value *v = &c->values[c->n++];
    enum sql_kind kind = result_kind(rows, 0, column);
    *v = (struct verdict_value){.kind = kind == SQL_BLOB ? SQL_NULL : kind,
                                .number = result_number(rows, 0, column)};
    snprintf(v->name, sizeof v->name, "%s", rows->columns[column].name);
    if (kind == SQL_TEXT)
        snprintf(v->text, sizeof v->text, "%s", result_string(rows, 0, column));
}

/* Query evidence, and append it. 1 if there is any. */
static int verdict_get_values(struct verdict_case *c, const char *text, struct err *e) {
    const struct verdict_target *t = c->target;
    const struct sql_named named[] = {{":pid", (double)t->pid},
                                      {":tid", t->tid},
                                      {":first", t->first_s},
                                      {":window", t->window_s},
                                      {":ended", database_is_recorded(c->judge->db)}};
    struct result *rows = verdict_query(c->judge->db, text, named, sizeof named / sizeof named[0], e);
    if (!rows)
        return -1;
    int there = rows->n_rows > 0;
    for (size_t i = 0; there && i < rows->n_columns; i++)
        verdict_add_value(c, rows, i);
    result_unref(rows);
    return there;
}

/* Remove a value of the evidence since `from`. Its number; NAN if there is none of that name. */
static double verdict_pull(struct verdict_case *c, size_t from, const char *name) {
    for (size_t i = from; i < c->n; i++)
        if (strcmp(c->values[i].name, name) == 0) {
            double number = c->values[i].number;
            memmove(&c->values[i], &c->values[i + 1], (--c->n - i) * sizeof c->values[0]);
            return number;
        }
    return NAN;
}

/* Look at what the evidence needs, once in a judgement. 0, or -1 with the error. */
static int verdict_take(struct verdict_case *c, const char *text, const char *needs, struct err *e) {
    struct database *d = c->judge->db;
    if (!c->has_workers && needs && strcmp(needs, VERDICT_WORKERS) == 0) {
        if (verdict_places_take_workers(d, c->target->pid, e) != 0)
            return -1;
        c->has_workers = true;
    }
    if (!c->has_threads && strstr(text, VERDICT_THREADS)) {
        bool live = sql_has_table(database_sql(d), "python.threads");
        if (verdict_places_take_threads(d, c->target->pid, live, e) != 0)
            return -1;
        c->has_threads = true;
    }
    if (!c->has_native && strstr(text, VERDICT_NATIVE)) {
        const struct verdict_scope scope = {.pid = c->target->pid, .tid = c->target->tid};
        if (verdict_places_take_native(d, c->target->number, &scope, e) != 0)
            return -1;
        c->has_native = true;
    }
    return 0;
}

/* Query more evidence. A table that is made now may fail: then the evidence is missing. VERDICT_SAID;
 * VERDICT_DENIED: its column "holds" is false; or VERDICT_FAILED with the reason in the case. */
static enum verdict_result verdict_get_more(struct verdict_case *c, const char *text, const char *needs) {
    struct err e;
    size_t before = c->n;
    int rc = verdict_take(c, text, needs, &e);
    rc = rc == 0 ? verdict_get_values(c, text, &e) : rc;
    if (rc < 0) {
        snprintf(c->why, sizeof c->why, "%s", e.text);
        return VERDICT_FAILED;
    }
    bool has_opinion = strstr(text, "AS holds") != NULL;
    if (rc == 0)
        return has_opinion ? VERDICT_DENIED : VERDICT_SAID;
    c->again = verdict_pull(c, before, "again") > 0 || c->again;
    double holds = verdict_pull(c, before, "holds");
    return !has_opinion || holds > 0 ? VERDICT_SAID : VERDICT_DENIED;
}

/* Whether the rule holds: VERDICT_SAID, with its values in the case, or why not; -1 with the error. */
static int verdict_test(struct verdict_case *c, const struct verdict_rule *rule, struct err *e) {
    struct sql *s = database_sql(c->judge->db);
    c->n = 0;
    if (rule->needs && !sql_has_table(s, rule->needs))
        return VERDICT_NO_TABLE;
    int rc = verdict_get_values(c, rule->sql, e);
    if (rc < 0)
        return -1;
    if (rc == 0)
        return VERDICT_NO_DATA;
    if (isnan(c->values[0].number))
        return VERDICT_UNKNOWN;
    if (c->values[0].number < rule->threshold)
        return VERDICT_NOT_SAID;
    enum verdict_result more = VERDICT_SAID, also = VERDICT_SAID;
    if (rule->more && (!rule->more_needs || sql_has_table(s, rule->more_needs)))
        more = verdict_get_more(c, rule->more, rule->more_needs);
    /* without an opinion of its own it only adds to the words */
    if (more != VERDICT_SAID && (more == VERDICT_DENIED || strstr(rule->more, "AS holds")))
        return (int)more;
    if (rule->also && (!rule->also_needs || sql_has_table(s, rule->also_needs)))
        also = verdict_get_more(c, rule->also, rule->also_needs);
    return also == VERDICT_DENIED ? VERDICT_DENIED : VERDICT_SAID;
}

static void verdict_write(const char *words, const struct verdict *v, char *buf, size_t cap) {
    struct strbuf text;
    strbuf_init(&text, cap - 1);
    verdict_put_words(words, v->values, v->n_values, &text);
    snprintf(buf, cap, "%s", strbuf_str(&text));
    strbuf_fini(&text);
}

static int verdict_say(struct verdicts *out, const struct verdict_case *c, const struct verdict_rule *rule,
                       struct err *e) {
    struct verdict *more = realloc(out->items, (out->n + 1) * sizeof *more);
    if (more)
        out->items = more;
    struct verdict_value *values = malloc(c->n * sizeof *values);
    if (!more || !values) {
        free(values);
        return err_set(e, ERR_FAILED, "out of memory for a verdict");
    }
    memcpy(values, c->values, c->n * sizeof *values);
    struct verdict *v = &out->items[out->n++];
    *v = (struct verdict){
        .rule = rule, .pid = c->target->pid, .rank = c->target->rank, .values = values, .n_values = c->n};
    verdict_write(rule->words, v, v->text, sizeof v->text);
    verdict_write(rule->brief ? rule->brief : rule->code, v, v->brief, sizeof v->brief);
    return 0;
}

/* Note what came of a rule. */
static int verdict_note(struct verdicts *out, const struct verdict_case *c, const struct verdict_rule *rule,
                        enum verdict_result result, struct err *e) {
    if (out->n_checks % VERDICT_CHECKS == 0) {
        struct verdict_check *more = realloc(out->checks, (out->n_checks + VERDICT_CHECKS) * sizeof *more);
        if (!more)
            return err_set(e, ERR_FAILED, "out of memory for verdicts");
        out->checks = more;
    }
    struct verdict_check *check = &out->checks[out->n_checks++];
    *check = (struct verdict_check){.rule = rule,
                                    .result = result,
                                    .pid = c->target->pid,
                                    .rank = c->target->rank,
                                    .measured = c->n ? c->values[0].number : NAN};
    if (result == VERDICT_FAILED)
        snprintf(check->why, sizeof check->why, "%s", c->why);
    return 0;
}

/* ---- a target ---- */

/* True if a verdict so far is a warning or worse. */
static bool verdict_accuses(const struct verdicts *v, size_t from) {
    for (size_t i = from; i < v->n; i++)
        if (v->items[i].rule->level >= VERDICT_WARN && !v->items[i].rule->is_state)
            return true;
    return false;
}

static bool verdict_was_said(const struct verdicts *v, size_t from, const char *code) {
    for (size_t i = from; i < v->n; i++)
        if (strcmp(v->items[i].rule->code, code) == 0)
            return true;
    return false;
}

/* Move checks with the code of an earlier one behind that one: a reader wants all about it at once. */
static void verdict_group_checks(struct verdict_check *checks, size_t n) {
    for (size_t i = 1, to; i < n; i++) {
        struct verdict_check moved = checks[i];
        for (to = i; to > 0 && strcmp(checks[to - 1].rule->code, moved.rule->code) != 0;)
            to--;
        if (to == 0)
            continue;
        memmove(&checks[to + 1], &checks[to], (i - to) * sizeof checks[0]);
        checks[to] = moved;
    }
}

static const char verdict_gpus[] = "SELECT 1 FROM gpu_metrics WHERE pid = CAST(:pid AS INTEGER) LIMIT 1";

/* 1: something is known of a GPU of the target; without one nothing about GPUs is looked at. -1 with the
 * error. */
static int verdict_find_gpu(struct verdict_judge *j, const struct verdict_target *t, struct err *e) {
    const struct sql_named named[] = {{":pid", (double)t->pid}};
    if (!sql_has_table(database_sql(j->db), VERDICT_GPUS))
        return 0;
    struct result *rows = verdict_query(j->db, verdict_gpus, named, 1, e);
    int there = rows ? rows->n_rows > 0 : -1;
    result_unref(rows);
    return there;
}

/* All verdicts about a target: states first, because the others depend on them. */
static int verdict_judge_target(struct verdict_judge *j, const struct verdict_target *t, struct verdicts *out,
                                struct err *e) {
    struct verdict_case c = {.judge = j, .target = t};
    const struct verdict_rule *state = NULL;
    size_t from = out->n, first = out->n_checks;
    int gpu = verdict_find_gpu(j, t, e);
    if (gpu < 0)
        return -1;
    for (int pass = 0; pass < 2; pass++)
        for (const struct verdict_rule *rule = verdict_rules; rule->code; rule++) {
            bool coming = state && state->moves;
            if (rule->is_state != (pass == 0) || (rule->is_state && state) ||
                verdict_was_said(out, from, rule->code) ||
                (!gpu && rule->needs && strcmp(rule->needs, VERDICT_GPUS) == 0))
                continue;
            bool asked =
                !(pass == 1 && rule->moves && !coming) && !(rule->is_alone && verdict_accuses(out, from));
            c.n = 0;
            int result = asked ? verdict_test(&c, rule, e) : VERDICT_NOT_ASKED;
            if (result < 0 || (result == VERDICT_SAID && verdict_say(out, &c, rule, e) != 0) ||
                verdict_note(out, &c, rule, (enum verdict_result)result, e) != 0)
                return -1;
            state = result == VERDICT_SAID && rule->is_state ? rule : state;
        }
    verdict_group_checks(out->checks + first, out->n_checks - first);
    out->again = out->again || c.again;
    return 0;
}

static int verdict_compare(const void *a, const void *b) {
    const struct verdict *x = a, *y = b;
    if (x->rule->level != y->rule->level)
        return x->rule->level > y->rule->level ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    return x->rule < y->rule ? -1 : x->rule > y->rule;
}

/* The targets of the database; known ones keep their facts. */
static int verdict_take_targets(struct verdict_judge *j, struct err *e) {
    const struct sql *s = database_sql(j->db);
    size_t n = sql_target_count(s);
    n = n > VERDICT_MOST_TARGETS ? VERDICT_MOST_TARGETS : n;
    if (n == j->n_targets)
        return 0;
    struct verdict_target *more = realloc(j->targets, n * sizeof *more);
    if (!more)
        return err_set(e, ERR_FAILED, "out of memory for verdicts");
    j->targets = more;
    for (size_t i = j->n_targets; i < n; i++)
        j->targets[i] = (struct verdict_target){.window_s = VERDICT_FIRST_S, .first_s = NAN};
    j->n_targets = n;
    return 0;
}

int verdict_judge_ask(struct verdict_judge *j, struct verdicts *out, struct err *e) {
    memset(out, 0, sizeof *out);
    int rc = verdict_take_targets(j, e);
    if (rc == 0 && !j->is_open)
        rc = verdict_places_open(j->db, e);
    j->is_open = rc == 0;
    for (size_t i = 0; rc == 0 && i < j->n_targets; i++) {
        struct verdict_target *t = &j->targets[i];
        t->number = i;
        t->pid = sql_target_pid(database_sql(j->db), i);
        t->rank = sql_target_rank(database_sql(j->db), i);
        if (t->pid == RING_INT_NULL)
            continue;
        rc = verdict_find_window(j, t, e);
        rc = rc == 0 ? verdict_find_trainer(j, t, e) : rc;
        rc = rc == 0 ? verdict_find_first(j, t, e) : rc;
        struct verdict_scope scope = {t->pid, t->tid, t->window_s, t->taken_s, t->seen_s};
        rc = rc == 0 ? verdict_places_take(j->db, &scope, e) : rc;
        t->taken_s = scope.taken_s;
        t->seen_s = scope.seen_s;
        rc = rc == 0 ? verdict_judge_target(j, t, out, e) : rc;
    }
    if (rc != 0) {
        j->is_open = false; /* somebody may have dropped them */
        verdicts_fini(out);
        return -1;
    }
    if (out->n)
        qsort(out->items, out->n, sizeof out->items[0], verdict_compare);
    return 0;
}

/* ---- a job of which nothing is known yet ---- */

bool verdicts_have_state(const struct verdicts *v) {
    for (size_t i = 0; i < v->n; i++)
        if (v->items[i].rule->is_state)
            return true;
    return false;
}

/* Of a job that steps, how many were seen so far. */
static void verdict_note_steps(const struct verdicts *v) {
    for (size_t i = 0; i < v->n; i++)
        for (size_t k = 0; v->items[i].rule->is_state && v->items[i].rule->moves && k < v->items[i].n_values;
             k++)
            if (strcmp(v->items[i].values[k].name, "n") == 0)
                progress_note("steps seen: %.0f", v->items[i].values[k].number);
}

int verdict_judge_wait(struct verdict_judge *j, double wait_s, struct verdicts *out, struct err *e) {
    const struct timespec pause = {.tv_nsec = VERDICT_ROUND_NS};
    double until_s = clock_epoch_s() + (wait_s < 0 ? VERDICT_WAIT_S : wait_s);
    for (;;) {
        if (database_refresh(j->db, e) != 0 || verdict_judge_ask(j, out, e) != 0)
            return -1;
        bool enough = wait_s < 0 && verdicts_have_state(out) && !out->again;
        if (enough || database_is_recorded(j->db) || clock_epoch_s() >= until_s)
            return 0;
        verdict_note_steps(out);
        verdicts_fini(out);
        nanosleep(&pause, NULL);
    }
}
