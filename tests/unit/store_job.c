/* SPDX-License-Identifier: Apache-2.0 */
/* store_job: see store_job.h. */
#include "unit/store_job.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "store/ring/ring_dir.h"

#define TIME                                                                                                 \
    { "timestamp", RING_TIMESTAMP, "s", "when", NULL }
#define END                                                                                                  \
    { .name = NULL }
#define DEF(id, text, columns_of)                                                                            \
    const struct ring_table_def id = {                                                                       \
        .name = (text), .help = "for tests", .cost = RING_COST_STEPS, .weight = 1, .columns = (columns_of)}

static const struct ring_column_def profiling_columns[] = {
    TIME,
    {"operation_name", RING_TEXT, NULL, NULL, NULL},
    {"duration_ms", RING_DOUBLE, "ms", NULL, NULL},
    {"step", RING_INT64, NULL, NULL, NULL},
    END,
};
DEF(job_profiling_data, "profiling_data", profiling_columns);

static const struct ring_column_def trace_columns[] = {
    TIME,
    {"step", RING_INT64, NULL, NULL, NULL},
    {"operation_name", RING_TEXT, NULL, NULL, NULL},
    {"module", RING_TEXT, NULL, NULL, NULL},
    {"duration_ms", RING_DOUBLE, "ms", NULL, NULL},
    END,
};
DEF(job_torch_trace, "python.torch_trace", trace_columns);

static const struct ring_column_def logs_columns[] = {
    TIME,
    {"step", RING_INT64, NULL, NULL, NULL},
    {"epoch", RING_INT32, NULL, NULL, NULL},
    {"loss", RING_DOUBLE, NULL, NULL, NULL},
    END,
};
DEF(job_training_logs, "training_logs", logs_columns);

static const struct ring_column_def comm_columns[] = {
    TIME,
    {"src_rank", RING_INT32, NULL, NULL, NULL},
    {"dst_rank", RING_INT32, NULL, NULL, NULL},
    {"latency_ms", RING_DOUBLE, "ms", NULL, NULL},
    END,
};
DEF(job_comm_metrics, "comm_metrics", comm_columns);

static const struct ring_column_def gpu_columns[] = {TIME, {"gpu_util", RING_DOUBLE, "%", NULL, NULL}, END};
DEF(job_gpu_metrics, "gpu_metrics", gpu_columns);

static const struct ring_column_def allocation_columns[] = {
    TIME,
    {"function_name", RING_TEXT, NULL, NULL, NULL},
    {"allocated_bytes", RING_INT64, "bytes", NULL, NULL},
    END,
};
DEF(job_memory_allocations, "memory_allocations", allocation_columns);
DEF(job_of_later, "of_a_later_release", allocation_columns);

void job_make(struct job *j, int64_t pid, int64_t rank) {
    *j = (struct job){.dir = "/tmp/store-test-XXXXXX", .pid = pid, .rank = rank};
    assert_non_null(mkdtemp(j->dir));
}

void job_remove(struct job *j) {
    DIR *d = opendir(j->dir);
    for (struct dirent *entry; d && (entry = readdir(d));)
        (void)unlinkat(dirfd(d), entry->d_name, 0);
    if (d)
        closedir(d);
    (void)rmdir(j->dir);
}

struct ring *job_table(const struct job *j, const struct ring_table_def *def, size_t bytes) {
    struct err e = {.text = "cannot be opened"};
    struct ring_owner o = {.pid = j->pid,
                           .start_ticks = 1,
                           .rank = j->rank,
                           .host = "here",
                           .started_at = NAN,
                           .made_at = j->made_at};
    int dir = open(j->dir, O_RDONLY | O_DIRECTORY);
    int fd = ring_dir_begin_file(dir, def->name);
    assert_int_equal(ring_dir_finish_file(dir, def->name), 0);
    close(dir);
    struct ring *r = fd < 0 ? NULL : ring_create(fd, def, &o, bytes, &e);
    if (!r)
        fail_msg("%s: %s", def->name, e.text);
    return r;
}

void job_stacks(const struct job *j) {
    struct ring *stacks = job_table(j, &RING_TABLES[RING_STACKS], 64 * 1024);
    struct ring *frames = job_table(j, &RING_TABLES[RING_FRAMES], 64 * 1024);
    for (int64_t i = 1; i <= 5; i++) {
        char func[8];
        (void)snprintf(func, sizeof func, "f%d", (int)i);
        union ring_value stack[RING_STACKS_COUNT] = {[RING_STACKS_ID].i = i,
                                                     [RING_STACKS_PARENT].i = i > 1 ? i - 1 : RING_INT_NULL,
                                                     [RING_STACKS_FRAME].i = i,
                                                     [RING_STACKS_DEPTH].i = i - 1};
        union ring_value frame[RING_FRAMES_COUNT] = {[RING_FRAMES_ID].i = i,
                                                     [RING_FRAMES_FUNC].s = func,
                                                     [RING_FRAMES_FILE].s = "/job/a.py",
                                                     [RING_FRAMES_LINENO].i = 10 * i,
                                                     [RING_FRAMES_KIND].i = 0};
        assert_int_equal(ring_append(stacks, stack), 0);
        assert_int_equal(ring_append(frames, frame), 0);
    }
    ring_close(stacks);
    ring_close(frames);
}

struct ring *job_sample_table(const struct job *j, size_t n) {
    return job_table(j, &RING_TABLES[RING_SAMPLES], 4096 + n * 20 + 256 * 1024);
}

void job_samples(const struct job *j, double t0, size_t n) {
    static const char *const threads[] = {"MainThread", "worker-1", "worker-2", NULL};
    struct ring *samples = job_sample_table(j, n);
    job_stacks(j);
    for (size_t i = 0; i < n; i++) {
        union ring_value v[RING_SAMPLES_COUNT] = {[RING_SAMPLES_TIMESTAMP].f = t0 + (double)i * 0.01,
                                                  [RING_SAMPLES_TID].i = 100 + (int64_t)(i % 4),
                                                  [RING_SAMPLES_THREAD].s = threads[i % 4],
                                                  [RING_SAMPLES_STACK_ID].i = 1 + (int64_t)(i % 5),
                                                  [RING_SAMPLES_ON_CPU].i = i % 3 != 0,
                                                  [RING_SAMPLES_GIL].i = (int64_t)(i % 3),
                                                  [RING_SAMPLES_GC].i = RING_INT_NULL,
                                                  [RING_SAMPLES_TORN].i = 0};
        assert_int_equal(ring_append(samples, v), 0);
    }
    ring_close(samples);
}

struct sql *job_session(const struct job *jobs, size_t n, double now) {
    struct err e = {.text = ""};
    struct sql *s = sql_open(&e);
    if (!s)
        fail_msg("%s", e.text);
    for (size_t i = 0; i < n; i++) {
        struct sql_target t = {.pid = RING_INT_NULL,
                               .rank = RING_INT_NULL,
                               .ring_dir = jobs[i].dir,
                               .owner = geteuid(),
                               .is_recorded = true};
        if (sql_add_target(s, &t, &e) != 0)
            fail_msg("%s", e.text);
    }
    sql_set_now(s, now);
    return s;
}

static int job_put_rows(struct sql_result *r, struct strbuf *out, struct err *e) {
    int rc;
    while ((rc = sql_next(r, e)) == 1) {
        for (size_t i = 0; i < sql_result_columns(r); i++) {
            size_t len;
            const char *text = sql_result_text(r, i, &len);
            if (i > 0)
                (void)strbuf_addc(out, '|');
            (void)strbuf_add(out, text ? text : "", len);
        }
        (void)strbuf_addc(out, '\n');
    }
    return rc;
}

char *job_query(struct sql *s, const char *text, struct err *e) {
    static const struct sql_query unlimited;
    struct strbuf out;
    strbuf_init(&out, 0);
    int rc = 0;
    while (rc == 0) {
        struct sql_result *r = sql_begin(s, text, &unlimited, &text, NULL, e);
        if (!r) {
            rc = e->code == ERR_OK ? 1 : -1;
            break;
        }
        rc = job_put_rows(r, &out, e);
        sql_end(r);
    }
    char *rows = rc < 0 ? NULL : strdup(strbuf_str(&out));
    strbuf_fini(&out);
    return rows;
}

char *job_rows(struct sql *s, const char *text) {
    struct err e;
    char *rows = job_query(s, text, &e);
    if (!rows)
        fail_msg("%s: %s", text, e.text);
    return rows;
}

void job_expect(struct sql *s, const char *text, const char *rows) {
    char *got = job_rows(s, text);
    if (strcmp(got, rows) != 0)
        fail_msg("%s\ngives:\n%s\nnot:\n%s", text, got, rows);
    free(got);
}

void job_refused(struct sql *s, const char *text, const char *why) {
    struct err e = {.text = ""};
    char *got = job_query(s, text, &e);
    if (got)
        fail_msg("%s is not refused, but gives: %s", text, got);
    if (!strstr(e.text, why))
        fail_msg("%s: says: %s; not: %s", text, e.text, why);
}
