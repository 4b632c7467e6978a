/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recordings: what is written is what the tables hold, to SQLite itself and to a session over the recording; more of it later, once each;
 * files that were cut, that are something else, that are damaged.
 */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "store/recording/archive.h"
#include "store/ring/ring_reader.h"
#include "unit/store_job.h"

#define T0 1700000000.0
#define ROWS 5000

static char path[] = "/tmp/archive-test-XXXXXX/run.db";
static struct job job, other;

static int make_jobs(void **state) {
    (void)state;
    char *slash = strrchr(path, '/');
    *slash = '\0';
    char *made = mkdtemp(path);
    *slash = '/';
    job_make(&job, 4711, 0);
    job_make(&other, 4712, RING_INT_NULL);
    job_samples(&job, T0, ROWS);
    job_samples(&other, T0 + 10, 200);
    return made ? 0 : -1;
}

static int remove_jobs(void **state) {
    (void)state;
    job_remove(&job);
    job_remove(&other);
    (void)unlink(path);
    *strrchr(path, '/') = '\0';
    return rmdir(path);
}

static void write_both(void) {
    struct err e = {.text = ""};
    struct job both[2] = {job, other};
    struct sql *s = job_session(both, 2, NAN);
    (void)unlink(path);
    struct archive_writer *w = archive_create(path, &e);
    if (!w || archive_append(w, s, true, &e) != 0 || archive_append(w, s, true, &e) != 0)
        fail_msg("%s", e.text);
    assert_int_equal(archive_rows(w), ROWS + 200 + 2 * 10);
    assert_int_equal(archive_finish(w, &e), 0);
    sql_close(s);
}

/* A session over the recording. */
static struct sql *open_recording(char *note, size_t cap) {
    struct err e = {.text = ""};
    struct sql *s = sql_open(&e);
    struct archive *a = s ? archive_open(path, &e) : NULL;
    if (!a)
        fail_msg("%s", e.text);
    for (size_t i = 0; i < archive_targets(a); i++) {
        int fds[64];
        struct sql_target t = {
            .pid = RING_INT_NULL, .rank = RING_INT_NULL, .owner = RING_ANY_UID, .is_recorded = true};
        t.n_ring_fds = archive_take_rings(a, i, fds, 64);
        t.ring_fds = fds;
        assert_int_equal(sql_add_target(s, &t, &e), 0);
    }
    (void)snprintf(note, cap, "%s", archive_note(a));
    archive_close(a);
    return s;
}

static void the_recording_answers_as_the_job_does(void **state) {
    (void)state;
    static const char *const queries[] = {
        "SELECT pid, rank, host, count(*), sum(tid), min(timestamp), max(timestamp) FROM python.samples "
        "GROUP BY pid ORDER BY pid",
        "SELECT thread, gil, gc, on_cpu, torn, count(*) FROM python.samples GROUP BY 1, 2, 3, 4, 5 ORDER BY "
        "1, 2, 3, 4, 5",
        "SELECT pid, fold(stack_id), count(*) FROM python.samples GROUP BY 1, 2 ORDER BY 1, 2",
        "SELECT func, file, lineno, kind, pid FROM python.frames ORDER BY frame_id",
        "SELECT s.pid, f.func, count(*) FROM python.samples s JOIN python.stacks USING (stack_id) JOIN "
        "python.frames f USING "
        "(frame_id) GROUP BY 1, 2 ORDER BY 1, 2",
    };
    char note[256];
    write_both();
    struct job both[2] = {job, other};
    struct sql *live = job_session(both, 2, NAN), *past = open_recording(note, sizeof note);
    assert_string_equal(note, "");
    for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++) {
        char *rows = job_rows(live, queries[i]);
        job_expect(past, queries[i], rows);
        free(rows);
    }
    job_expect(past, "SELECT count(*) FROM memory_usage", "0\n");
    sql_close(live);
    sql_close(past);
}

/* One number that SQLite itself finds in the file. */
static int64_t ask(const char *text) {
    sqlite3 *db;
    sqlite3_stmt *st;
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    if (sqlite3_prepare_v2(db, text, -1, &st, NULL) != SQLITE_OK || sqlite3_step(st) != SQLITE_ROW)
        fail_msg("%s: %s", text, sqlite3_errmsg(db));
    int64_t n = sqlite3_column_int64(st, 0);
    (void)sqlite3_finalize(st);
    (void)sqlite3_close(db);
    return n;
}

static void it_is_an_ordinary_database(void **state) {
    (void)state;
    write_both();
    assert_int_equal(ask("SELECT count(*) FROM python_samples"), ROWS + 200);
    assert_int_equal(
        ask("SELECT count(*) FROM python_samples WHERE pid = 4712 AND rank IS NULL AND host = 'here'"), 200);
    /* Stacks of two jobs have different numbers: a join needs no more. */
    assert_int_equal(ask("SELECT count(*) FROM python_samples JOIN python_stacks USING (stack_id)"),
                     ROWS + 200);
    assert_int_equal(ask("SELECT count(*) FROM memory_usage"), 0);
    assert_int_equal(ask("SELECT count(*) FROM probing_columns WHERE table_name = 'python.samples'"),
                     RING_SAMPLES_COUNT);
    assert_int_equal(ask("SELECT value FROM probing_recording WHERE key = 'schema_version'"),
                     ARCHIVE_SCHEMA_VERSION);
}

static void what_comes_later_is_added_once(void **state) {
    (void)state;
    struct err e = {.text = ""};
    struct job j;
    job_make(&j, 1, 0);
    struct ring *gc = job_table(&j, &RING_TABLES[RING_GC], 64 * 1024);
    struct sql *s = job_session(&j, 1, NAN);
    (void)unlink(path);
    struct archive_writer *w = archive_create(path, &e);
    assert_non_null(w);
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 10; i++) {
            union ring_value v[RING_GC_COUNT] = {
                {.f = T0 + round * 10 + i}, {.i = 2}, {.f = 1}, {.i = i}, {.i = round}};
            assert_int_equal(ring_append(gc, v), 0);
        }
        assert_int_equal(ring_flush(gc), 0);
        assert_int_equal(archive_append(w, s, false, &e), 0);
        /* What is there may be read at any time. */
        assert_int_equal(ask("SELECT count(*) FROM python_gc"), 10 * (round + 1));
        assert_int_equal(archive_rows(w), 10 * (round + 1));
    }
    assert_int_equal(archive_finish(w, &e), 0);
    assert_int_equal(ask("SELECT count(DISTINCT timestamp) FROM python_gc"), 50);
    ring_close(gc);
    sql_close(s);
    job_remove(&j);
}

static void put_collection(struct ring *r, double at) {
    union ring_value v[RING_GC_COUNT] = {{.f = at}, {.i = 2}, {.f = 1}, {.i = 0}, {.i = 0}};
    assert_int_equal(ring_append(r, v), 0);
    assert_int_equal(ring_flush(r), 0);
}

/* A span is written at its end, a clock may be set back, and that of another host be late. */
static void old_times_are_added_as_well(void **state) {
    (void)state;
    struct err e = {.text = ""};
    struct job jobs[2];
    struct ring *gc[2];
    for (int i = 0; i < 2; i++) {
        job_make(&jobs[i], 1 + i, i);
        gc[i] = job_table(&jobs[i], &RING_TABLES[RING_GC], 64 * 1024);
    }
    struct sql *s = job_session(jobs, 2, NAN);
    (void)unlink(path);
    struct archive_writer *w = archive_create(path, &e);
    for (int round = 0; round < 4; round++) {
        put_collection(gc[0], T0 - 3600 * round);
        put_collection(gc[1], T0 - 60 + round);
        assert_int_equal(archive_append(w, s, false, &e), 0);
        assert_int_equal(ask("SELECT count(*) FROM python_gc WHERE pid = 1"), round + 1);
        assert_int_equal(ask("SELECT count(*) FROM python_gc WHERE pid = 2"), round + 1);
    }
    assert_string_equal(archive_missing(w), "");
    assert_int_equal(archive_finish(w, &e), 0);
    assert_int_equal(ask("SELECT count(DISTINCT timestamp) FROM python_gc WHERE pid = 1"), 4);
    sql_close(s);
    for (int i = 0; i < 2; i++) {
        ring_close(gc[i]);
        job_remove(&jobs[i]);
    }
}

/* ---- tables that are made again ---- */

/* Another agent of the process: its stack 1 is another one, and its first row is row 0. */
static void make_again(struct job *j, int64_t samples, const char *func) {
    struct ring *frames = job_table(j, &RING_TABLES[RING_FRAMES], 64 * 1024),
                *stacks = job_table(j, &RING_TABLES[RING_STACKS], 64 * 1024),
                *rows = job_sample_table(j, (size_t)samples);
    union ring_value frame[RING_FRAMES_COUNT] = {[RING_FRAMES_ID].i = 1,
                                                 [RING_FRAMES_FUNC].s = func,
                                                 [RING_FRAMES_FILE].s = "/job/a.py",
                                                 [RING_FRAMES_LINENO].i = 1};
    union ring_value stack[RING_STACKS_COUNT] = {
        [RING_STACKS_ID].i = 1, [RING_STACKS_PARENT].i = RING_INT_NULL, [RING_STACKS_FRAME].i = 1};
    assert_int_equal(ring_append(frames, frame), 0);
    assert_int_equal(ring_append(stacks, stack), 0);
    for (int64_t i = 0; i < samples; i++) {
        union ring_value v[RING_SAMPLES_COUNT] = {[RING_SAMPLES_TIMESTAMP].f = j->made_at + (double)i * 0.01,
                                                  [RING_SAMPLES_TID].i = 100,
                                                  [RING_SAMPLES_STACK_ID].i = 1};
        assert_int_equal(ring_append(rows, v), 0);
    }
    ring_close(frames);
    ring_close(stacks);
    ring_close(rows);
}

static void tables_that_are_made_again_lose_nothing(void **state) {
    (void)state;
    struct err e = {.text = ""};
    struct job j;
    char note[256];
    job_make(&j, 1, 0);
    j.made_at = T0;
    job_samples(&j, T0, 20);
    struct sql *s = job_session(&j, 1, NAN);
    (void)unlink(path);
    struct archive_writer *w = archive_create(path, &e);
    assert_int_equal(archive_append(w, s, false, &e), 0);
    assert_string_equal(archive_missing(w), "");
    static const char *const funcs[] = {"second", "third"};
    for (int i = 0; i < 2; i++) {
        j.made_at = T0 + 50 * (i + 1);
        make_again(&j, 3 + i, funcs[i]);
        assert_int_equal(sql_refresh(s, &e), 0);
        for (int again = 0; again < 2; again++)
            assert_int_equal(archive_append(w, s, false, &e), 0);
    }
    assert_non_null(strstr(archive_missing(w), "made again"));
    assert_int_equal(archive_finish(w, &e), 0);
    sql_close(s);
    assert_int_equal(ask("SELECT count(*) FROM python_samples"), 27);
    assert_int_equal(ask("SELECT count(*) FROM python_stacks"), 7);
    s = open_recording(note, sizeof note);
    assert_string_equal(note, "");
    job_expect(
        s,
        "SELECT f.func, count(*), count(DISTINCT s.timestamp) FROM python.samples s JOIN python.stacks "
        "USING (stack_id) JOIN python.frames f USING (frame_id) GROUP BY 1 ORDER BY 1",
        "f1|4|4\nf2|4|4\nf3|4|4\nf4|4|4\nf5|4|4\nsecond|3|3\nthird|4|4\n");
    sql_close(s);
    job_remove(&j);
}

/* ---- tables that are made when they are read ---- */

/* A thread of a process that may have ended (`arg`: not NULL). */
static int scan_thread(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e) {
    (void)columns;
    if (arg)
        return err_set(e, ERR_FAILED, "process 70 has ended");
    union ring_value v[RING_SYSTEM_THREADS_COUNT] = {
        [RING_SYSTEM_THREADS_TID].i = 7, [RING_SYSTEM_THREADS_STATE].i = RING_INT_NULL};
    (void)sql_sink_put(sink, v);
    return 0;
}

static void one_that_has_ended_costs_no_other_its_state(void **state) {
    (void)state;
    struct err e = {.text = ""};
    struct sql_provider tables[3];
    struct sql *s = sql_open(&e);
    assert_non_null(s);
    for (int i = 0; i < 3; i++) {
        tables[i] = (struct sql_provider){
            .def = &RING_TABLES[RING_SYSTEM_THREADS], .scan = scan_thread, .arg = i == 0 ? s : NULL};
        struct sql_target t = {
            .pid = 70 + i, .rank = i, .host = "h", .providers = &tables[i], .n_providers = 1};
        assert_int_equal(sql_add_target(s, &t, &e), 0);
    }
    (void)unlink(path);
    struct archive_writer *w = archive_create(path, &e);
    assert_int_equal(archive_append(w, s, true, &e), 0);
    assert_string_equal(archive_unread(w), "not all of system.threads is recorded: process 70 has ended");
    assert_int_equal(archive_finish(w, &e), 0);
    sql_close(s);
    assert_int_equal(ask("SELECT count(*) FROM system_threads WHERE tid = 7 AND pid > 70"), 2);
}

/* A table that is made when it is read, and has a past: two devices once a second, and the oldest
 * readings are forgotten. */
struct past {
    int first, next; /* seconds that are known */
};

static int scan_past(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e) {
    const struct past *p = arg;
    (void)columns;
    (void)e;
    for (int i = p->first; i < p->next; i++)
        for (int device = 0; device < 2; device++) {
            union ring_value v[RING_GPU_COUNT] = {
                [RING_GPU_TIMESTAMP].f = T0 + i, [RING_GPU_DEVICE].i = device, [RING_GPU_UTIL].f = i};
            if (sql_sink_put(sink, v) != 0)
                return 0;
        }
    return 0;
}

static void a_past_that_is_made_is_added_once(void **state) {
    (void)state;
    struct err e = {.text = ""};
    struct past pasts[2] = {{0, 0}, {0, 0}};
    struct sql_provider tables[2];
    struct sql *s = sql_open(&e);
    assert_non_null(s);
    for (int i = 0; i < 2; i++) {
        tables[i] = (struct sql_provider){.def = &RING_TABLES[RING_GPU], .scan = scan_past, .arg = &pasts[i]};
        struct sql_target t = {
            .pid = 70 + i, .rank = i, .host = "h", .providers = &tables[i], .n_providers = 1};
        assert_int_equal(sql_add_target(s, &t, &e), 0);
    }
    (void)unlink(path);
    struct archive_writer *w = archive_create(path, &e);
    assert_non_null(w);
    for (int round = 1; round <= 5; round++) {
        for (int i = 0; i < 2; i++)
            pasts[i] = (struct past){.first = round > 2 ? 2 * round - 4 : 0, .next = 2 * round - i};
        assert_int_equal(archive_append(w, s, round == 5, &e), 0);
        assert_int_equal(ask("SELECT count(*) FROM gpu_metrics WHERE pid = 70"), 4 * round);
        assert_int_equal(ask("SELECT count(*) FROM gpu_metrics WHERE pid = 71"), 4 * round - 2);
    }
    assert_int_equal(archive_finish(w, &e), 0);
    sql_close(s);
    assert_int_equal(ask("SELECT count(DISTINCT timestamp) FROM gpu_metrics WHERE gpu_util = timestamp - "
                         "1700000000 AND device = 1"),
                     10);
}

/* A job that goes on: each sample is of a stack that was not there before. */
struct writer {
    struct ring *frames, *stacks, *samples;
    atomic_bool ended;
    bool ok;
};

#define NEW_STACKS 30000

static void *go_on(void *arg) {
    struct writer *w = arg;
    w->ok = true;
    for (int64_t i = 1; w->ok && i <= NEW_STACKS; i++) {
        union ring_value frame[RING_FRAMES_COUNT] = {[RING_FRAMES_ID].i = i,
                                                     [RING_FRAMES_FUNC].s = "f",
                                                     [RING_FRAMES_FILE].s = "/job/a.py",
                                                     [RING_FRAMES_LINENO].i = i};
        union ring_value stack[RING_STACKS_COUNT] = {
            [RING_STACKS_ID].i = i, [RING_STACKS_PARENT].i = RING_INT_NULL, [RING_STACKS_FRAME].i = i};
        union ring_value sample[RING_SAMPLES_COUNT] = {[RING_SAMPLES_TIMESTAMP].f = T0 + (double)i * 0.01,
                                                       [RING_SAMPLES_TID].i = 100,
                                                       [RING_SAMPLES_STACK_ID].i = i};
        w->ok = ring_append(w->frames, frame) == 0 && ring_append(w->stacks, stack) == 0 &&
                ring_append(w->samples, sample) == 0 && ring_flush(w->frames) == 0 &&
                ring_flush(w->stacks) == 0 && ring_flush(w->samples) == 0;
    }
    atomic_store(&w->ended, true);
    return NULL;
}

static void no_stack_is_missing_of_a_job_that_goes_on(void **state) {
    (void)state;
    struct err e = {.text = ""};
    struct job j;
    job_make(&j, 1, 0);
    struct writer writer = {.frames = job_table(&j, &RING_TABLES[RING_FRAMES], 8 << 20),
                            .stacks = job_table(&j, &RING_TABLES[RING_STACKS], 8 << 20),
                            .samples = job_sample_table(&j, NEW_STACKS * 4)};
    struct sql *s = job_session(&j, 1, NAN);
    (void)unlink(path);
    struct archive_writer *w = archive_create(path, &e);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, go_on, &writer), 0);
    for (bool last = false; !last;) {
        last = atomic_load(&writer.ended);
        assert_int_equal(archive_append(w, s, false, &e), 0);
        assert_int_equal(ask("SELECT count(*) FROM python_samples WHERE stack_id NOT IN "
                             "(SELECT stack_id FROM python_stacks)"),
                         0);
        assert_int_equal(ask("SELECT count(*) FROM python_stacks WHERE frame_id NOT IN "
                             "(SELECT frame_id FROM python_frames)"),
                         0);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(writer.ok);
    assert_int_equal(ask("SELECT count(*) FROM python_samples"), NEW_STACKS);
    assert_int_equal(archive_finish(w, &e), 0);
    ring_close(writer.frames);
    ring_close(writer.stacks);
    ring_close(writer.samples);
    sql_close(s);
    job_remove(&j);
}

static void long_texts_stay_whole(void **state) {
    (void)state;
    struct err e = {.text = ""};
    char note[256], text[RING_MAX_TEXT + 1] = "", want[32];
    struct job j;
    job_make(&j, 1, 0);
    struct ring *facts = job_table(&j, &RING_TABLES[RING_FACTS], 1 << 20);
    memset(text, 'x', RING_MAX_TEXT);
    union ring_value v[RING_FACTS_COUNT] = {
        [RING_FACTS_TIMESTAMP].f = T0, [RING_FACTS_KEY].s = RING_FACT_CMD, [RING_FACTS_VALUE].s = text};
    assert_int_equal(ring_append(facts, v), 0);
    ring_close(facts);
    struct sql *s = job_session(&j, 1, NAN);
    (void)unlink(path);
    struct archive_writer *w = archive_create(path, &e);
    assert_int_equal(archive_append(w, s, true, &e), 0);
    assert_int_equal(archive_finish(w, &e), 0);
    sql_close(s);
    s = open_recording(note, sizeof note);
    (void)snprintf(want, sizeof want, "%d\n", RING_MAX_TEXT);
    job_expect(s, "SELECT length(value) FROM probing.facts", want);
    assert_string_equal(note, "");
    sql_close(s);
    /* what no table can hold is said to be cut */
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "UPDATE probing_facts SET value = value || value", NULL, NULL, NULL),
                     SQLITE_OK);
    (void)sqlite3_close(db);
    s = open_recording(note, sizeof note);
    job_expect(s, "SELECT length(value) FROM probing.facts", want);
    assert_non_null(strstr(note, "probing.facts: long texts are cut"));
    sql_close(s);
    job_remove(&j);
}

static void tables_without_rows_are_no_open_files(void **state) {
    (void)state;
    struct err e = {.text = ""};
    struct rlimit usual, few;
    int fds[64];
    write_both();
    struct archive *a = archive_open(path, &e);
    assert_non_null(a);
    assert_int_equal(archive_targets(a), 2);
    size_t n = archive_take_rings(a, 1, fds, 64);
    for (size_t i = 0; i < n; i++)
        close(fds[i]);
    assert_int_equal(n, 3); /* samples, stacks, frames */
    archive_close(a);
    /* one table, and not a second one */
    int next = open("/dev/null", O_RDONLY);
    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
    few = (struct rlimit){(rlim_t)next + 3, usual.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    a = archive_open(path, &e);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
    assert_non_null(a);
    if (!strstr(archive_note(a), "open files"))
        fail_msg("says: %s", archive_note(a));
    archive_close(a);
}

static void a_cut_recording_opens_with_what_it_holds(void **state) {
    (void)state;
    char note[256];
    struct stat st;
    write_both();
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(truncate(path, st.st_size * 6 / 10), 0);
    struct sql *s = open_recording(note, sizeof note);
    assert_non_null(strstr(note, "damaged or was cut"));
    char *rows = job_rows(s, "SELECT count(*) FROM python.samples");
    assert_in_range(atol(rows), 1, ROWS + 199);
    free(rows);
    sql_close(s);
}

static void refused(const char *why) {
    struct err e = {.text = ""};
    struct archive *a = archive_open(path, &e);
    assert_null(a);
    if (!strstr(e.text, why))
        fail_msg("says: %s", e.text);
    assert_null(strchr(e.text, '\n'));
}

static void other_files_are_refused_in_a_line(void **state) {
    (void)state;
    struct err e = {.text = ""};
    sqlite3 *db;
    (void)unlink(path);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "CREATE TABLE t(a)", NULL, NULL, NULL), SQLITE_OK);
    (void)sqlite3_close(db);
    assert_true(archive_is_one(path));
    refused("not a recording of this program");
    write_both();
    assert_int_equal(truncate(path, 600), 0);
    refused("run.db: ");
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    (void)fputs("import torch", f);
    (void)fclose(f);
    assert_false(archive_is_one(path));
    refused("run.db: ");
    assert_null(archive_create(path, &e));
    assert_non_null(strstr(e.text, "already exists"));
}

/* Views with the names of tables, columns of other types, texts where numbers should be: nothing is run, nothing is believed. */
static void a_made_up_recording_harms_nobody(void **state) {
    (void)state;
    char note[256];
    sqlite3 *db;
    write_both();
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(
            db,
            "UPDATE python_samples SET timestamp = 'x', stack_id = -5, tid = 1e300 WHERE pid = 4712;"
            "DROP TABLE python_stacks; CREATE VIEW python_stacks AS SELECT * FROM python_samples;"
            "UPDATE probing_columns SET type = 77 WHERE name = 'gil';"
            "INSERT INTO probing_columns VALUES ('python.samples', 99, 'x\"; DROP', 3, '', '');"
            "INSERT INTO probing_tables VALUES ('a.b.c', 'x', 'y', 'z', 9, -1), ('', '', '', '', 0, 0)",
            NULL, NULL, NULL),
        SQLITE_OK);
    (void)sqlite3_close(db);
    struct sql *s = open_recording(note, sizeof note);
    job_expect(s, "SELECT count(*) FROM python.stacks", "0\n");
    sql_close(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_recording_answers_as_the_job_does),
        cmocka_unit_test(it_is_an_ordinary_database),
        cmocka_unit_test(what_comes_later_is_added_once),
        cmocka_unit_test(old_times_are_added_as_well),
        cmocka_unit_test(tables_that_are_made_again_lose_nothing),
        cmocka_unit_test(one_that_has_ended_costs_no_other_its_state),
        cmocka_unit_test(a_past_that_is_made_is_added_once),
        cmocka_unit_test(no_stack_is_missing_of_a_job_that_goes_on),
        cmocka_unit_test(long_texts_stay_whole),
        cmocka_unit_test(tables_without_rows_are_no_open_files),
        cmocka_unit_test(a_cut_recording_opens_with_what_it_holds),
        cmocka_unit_test(other_files_are_refused_in_a_line),
        cmocka_unit_test(a_made_up_recording_harms_nobody),
    };
    return cmocka_run_group_tests_name("store_archive", tests, make_jobs, remove_jobs);
}
