/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verdict: what one judgement of a training job costs the client, and which rules cost most of it.
 *
 * Over the tables of a job that is given (the folder of its rings), or of one made here: a minute of 100 samples a second of four threads
 * with 200 stacks of 24 frames, 6,000 steps, what the kernel said each second. CPU milliseconds of the process: of the first judgement, of
 * those after it (the median and the worst of many), of what comes before the rules, and of each rule by itself, the dearest first. JSON.
 *
 * usage: verdict [DIR]
 */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "client/sql/database.h"
#include "client/sql/result.h"
#include "client/verdict/verdict.h"
#include "client/verdict/verdict_places.h"
#include "store/ring/ring_dir.h"
#include "store/ring/ring_tables.h"

#define BENCH_ROUNDS 51
#define BENCH_RULE_ROUNDS 11
#define BENCH_RULES 16 /* that are shown */
#define BENCH_T0 1700000000.0
#define BENCH_S 60
#define BENCH_HZ 100
#define BENCH_THREADS 4
#define BENCH_STACKS 200
#define BENCH_FRAMES 24
#define BENCH_PID 4711

/* ---- tables ---- */

static struct ring *bench_table(int dir, enum ring_table t) {
    struct err e;
    struct ring_owner owner = {.pid = BENCH_PID, .rank = 0, .host = "here", .started_at = NAN};
    int fd = ring_dir_begin_file(dir, RING_TABLES[t].name);
    return fd < 0 || ring_dir_finish_file(dir, RING_TABLES[t].name) != 0
               ? NULL
               : ring_create(fd, &RING_TABLES[t], &owner, (size_t)4 << 20, &e);
}

/* A row in which nothing is known. */
static void bench_clear(enum ring_table t, union ring_value *v) {
    const struct ring_table_def *def = &RING_TABLES[t];
    for (size_t i = 0; def->columns[i].name; i++)
        if (def->columns[i].type == RING_DOUBLE)
            v[i].f = NAN;
        else if (def->columns[i].type == RING_TEXT)
            v[i].s = NULL;
        else
            v[i].i = RING_INT_NULL;
}

static void bench_fill_stacks(struct ring *stacks, struct ring *frames) {
    static const char *const files[] = {"/job/train.py", "/x/site-packages/torch/nn/modules/module.py",
                                        "/x/site-packages/torch/optim/adamw.py",
                                        "/usr/lib/python3.11/threading.py"};
    char func[32];
    int64_t id = 0;
    for (int64_t k = 0; k < BENCH_STACKS; k++)
        for (int64_t depth = 0; depth < BENCH_FRAMES; depth++) {
            (void)snprintf(func, sizeof func, "func_%d_%d", (int)k, (int)depth);
            union ring_value frame[RING_FRAMES_COUNT] = {[RING_FRAMES_ID].i = ++id,
                                                         [RING_FRAMES_FUNC].s = func,
                                                         [RING_FRAMES_FILE].s = files[(k + depth / 6) % 4],
                                                         [RING_FRAMES_LINENO].i = 10 * depth,
                                                         [RING_FRAMES_KIND].i = 0};
            union ring_value stack[RING_STACKS_COUNT] = {[RING_STACKS_ID].i = id,
                                                         [RING_STACKS_PARENT].i =
                                                             depth ? id - 1 : RING_INT_NULL,
                                                         [RING_STACKS_FRAME].i = id,
                                                         [RING_STACKS_DEPTH].i = depth};
            (void)ring_append(frames, frame);
            (void)ring_append(stacks, stack);
        }
}

static void bench_fill_samples(struct ring *samples) {
    for (int64_t i = 0; i < BENCH_S * BENCH_HZ * BENCH_THREADS; i++) {
        union ring_value v[RING_SAMPLES_COUNT];
        bench_clear(RING_SAMPLES, v);
        v[RING_SAMPLES_TIMESTAMP].f = BENCH_T0 + (double)(i / BENCH_THREADS) / BENCH_HZ;
        v[RING_SAMPLES_TID].i = BENCH_PID + i % BENCH_THREADS;
        v[RING_SAMPLES_THREAD].s = i % BENCH_THREADS ? "worker" : "MainThread";
        v[RING_SAMPLES_STACK_ID].i = (1 + i * 7 % BENCH_STACKS) * BENCH_FRAMES;
        v[RING_SAMPLES_ON_CPU].i = i % BENCH_THREADS == 0;
        v[RING_SAMPLES_GIL].i = v[RING_SAMPLES_GC].i = v[RING_SAMPLES_TORN].i = 0;
        (void)ring_append(samples, v);
    }
}

static void bench_fill_steps(struct ring *steps) {
    for (int64_t i = 1; i <= BENCH_S * BENCH_HZ; i++) {
        union ring_value v[RING_STEPS_COUNT];
        bench_clear(RING_STEPS, v);
        v[RING_STEPS_TIMESTAMP].f = BENCH_T0 + (double)i / BENCH_HZ;
        v[RING_STEPS_STEP].i = i;
        v[RING_STEPS_DURATION_MS].f = 1000.0 / BENCH_HZ;
        v[RING_STEPS_DATA_MS].f = v[RING_STEPS_GC_MS].f = 0.1;
        v[RING_STEPS_FORWARD_MS].f = v[RING_STEPS_BACKWARD_MS].f = i % 20 ? NAN : 3;
        v[RING_STEPS_OPTIMIZER_MS].f = 2;
        v[RING_STEPS_LOSS].f = 2.5;
        (void)ring_append(steps, v);
    }
}

static void bench_fill_seconds(struct ring *threads, struct ring *process, struct ring *memory) {
    for (int64_t i = 0; i < BENCH_S; i++) {
        union ring_value v[RING_THREAD_HISTORY_COUNT], p[RING_PROCESS_HISTORY_COUNT], m[RING_MEMORY_COUNT];
        for (int64_t k = 0; k < BENCH_THREADS; k++) {
            bench_clear(RING_THREAD_HISTORY, v);
            v[RING_THREAD_HISTORY_TIMESTAMP].f = BENCH_T0 + (double)i + 1;
            v[RING_THREAD_HISTORY_TID].i = BENCH_PID + k;
            v[RING_THREAD_HISTORY_CPU_PCT].f = k ? 1 : 95;
            v[RING_THREAD_HISTORY_CPU_WAIT_S].f = 0.01 * (double)i;
            (void)ring_append(threads, v);
        }
        bench_clear(RING_PROCESS_HISTORY, p);
        p[RING_PROCESS_HISTORY_TIMESTAMP].f = BENCH_T0 + (double)i + 1;
        p[RING_PROCESS_HISTORY_CPUS].f = i % 10 ? NAN : 4;
        p[RING_PROCESS_HISTORY_RSS].i = 1 << 30;
        (void)ring_append(process, p);
        bench_clear(RING_MEMORY, m);
        m[RING_MEMORY_TIMESTAMP].f = BENCH_T0 + (double)i + 1;
        m[RING_MEMORY_MB].f = 1000;
        (void)ring_append(memory, m);
    }
}

static int bench_fill(int dir) {
    static const enum ring_table tables[] = {RING_STACKS, RING_FRAMES,         RING_SAMPLES,
                                             RING_STEPS,  RING_THREAD_HISTORY, RING_PROCESS_HISTORY,
                                             RING_MEMORY};
    struct ring *r[sizeof tables / sizeof tables[0]];
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        if (!(r[i] = bench_table(dir, tables[i])))
            return -1;
    bench_fill_stacks(r[0], r[1]);
    bench_fill_samples(r[2]);
    bench_fill_steps(r[3]);
    bench_fill_seconds(r[4], r[5], r[6]);
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        ring_close(r[i]);
    return 0;
}

/* ---- measuring ---- */

static int bench_compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Milliseconds of CPU of a judgement; NAN: it failed. */
static double bench_judge(struct database *d, struct verdict_judge *j) {
    struct verdicts v;
    struct err e = {.text = ""};
    uint64_t began = clock_self_cpu_ns();
    if (database_refresh(d, &e) != 0 || verdict_judge_ask(j, &v, &e) != 0) {
        fprintf(stderr, "verdict: %s\n", e.text);
        return NAN;
    }
    double ms = (double)(clock_self_cpu_ns() - began) / 1e6;
    verdicts_fini(&v);
    return ms;
}

/* The same of one statement of a rule; the smallest of some. */
static double bench_run(struct database *d, const char *text, double pid) {
    const struct sql_named named[] = {
        {":pid", pid}, {":tid", pid}, {":first", BENCH_T0}, {":window", 60}, {":ended", 0}};
    struct sql_query q = {.timeout_s = 10, .named = named, .n_named = 5, .max_rows = 2};
    double least = NAN;
    for (int i = 0; i < BENCH_RULE_ROUNDS; i++) {
        struct err e;
        uint64_t began = clock_self_cpu_ns();
        struct result *rows = database_take(d, text, &q, RESULT_BYTES, &e);
        double ms = (double)(clock_self_cpu_ns() - began) / 1e6;
        result_unref(rows);
        least = isnan(least) || ms < least ? ms : least;
    }
    return least;
}

struct bench_rule {
    const struct verdict_rule *rule;
    double ms;
};

static int bench_compare_rules(const void *a, const void *b) {
    double x = ((const struct bench_rule *)a)->ms, y = ((const struct bench_rule *)b)->ms;
    return (x < y) - (x > y);
}

static void bench_put_rules(struct database *d, double pid, struct json *j) {
    struct bench_rule rules[128];
    size_t n = 0;
    double sum = 0;
    for (const struct verdict_rule *rule = verdict_rules; rule->code && n < 128; rule++) {
        if (rule->needs)
            continue;
        rules[n] = (struct bench_rule){rule, bench_run(d, rule->sql, pid)};
        sum += rules[n++].ms;
    }
    qsort(rules, n, sizeof rules[0], bench_compare_rules);
    json_kv_number(j, "all_rules_ms", sum, 3);
    json_key(j, "rules");
    json_array_begin(j);
    for (size_t i = 0; i < n && i < BENCH_RULES; i++) {
        json_object_begin(j);
        json_kv_string(j, "code", rules[i].rule->code);
        json_kv_string(j, "checks", rules[i].rule->checks);
        json_kv_number(j, "ms", rules[i].ms, 3);
        json_object_end(j);
    }
    json_array_end(j);
}

static int bench(const char *path) {
    struct target_address addr = {.mode = MODEL_MODE_RECORDED};
    struct err e = {.text = "out of memory"};
    struct strbuf out;
    struct json j;
    double ms[BENCH_ROUNDS];
    (void)snprintf(addr.recorded, sizeof addr.recorded, "%s", path);
    struct database *d = database_open(&e);
    struct verdict_judge *judge = d ? verdict_judge_new(d) : NULL;
    if (!judge || database_add(d, &addr, &e) != 0) {
        fprintf(stderr, "verdict: %s\n", e.text);
        database_close(d);
        return 1;
    }
    double first = bench_judge(d, judge);
    for (int i = 0; i < BENCH_ROUNDS; i++)
        ms[i] = bench_judge(d, judge);
    qsort(ms, BENCH_ROUNDS, sizeof ms[0], bench_compare);
    int64_t pid = sql_target_pid(database_sql(d), 0);
    uint64_t began = clock_self_cpu_ns();
    struct verdict_scope scope = {pid, (double)pid, 60, 60, BENCH_T0};
    (void)verdict_places_take(d, &scope, &e);
    double places = (double)(clock_self_cpu_ns() - began) / 1e6;
    strbuf_init(&out, 0);
    json_init(&j, &out, 2);
    json_object_begin(&j);
    json_kv_number(&j, "first_ms", first, 3);
    json_kv_number(&j, "judgement_ms", ms[BENCH_ROUNDS / 2], 3);
    json_kv_number(&j, "worst_ms", ms[BENCH_ROUNDS - 1], 3);
    json_kv_number(&j, "places_ms", places, 3);
    bench_put_rules(d, (double)pid, &j);
    json_object_end(&j);
    puts(strbuf_str(&out));
    strbuf_fini(&out);
    verdict_judge_free(judge);
    database_close(d);
    return isnan(first);
}

int main(int argc, char **argv) {
    if (argc > 1)
        return bench(argv[1]);
    char path[64];
    (void)snprintf(path, sizeof path, "%s/probing-bench-XXXXXX",
                   access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    int dir = mkdtemp(path) ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (dir < 0 || bench_fill(dir) != 0) {
        perror(path);
        return 1;
    }
    int status = bench(path);
    ring_dir_remove(dir, path);
    return status;
}
