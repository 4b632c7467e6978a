/* SPDX-License-Identifier: Apache-2.0 */
/* What is written into the tables, read back: ids over several epochs of the trie, definitions before use, tables that are too small. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/sampler/background.h"
#include "agent/tables/record.h"
#include "agent/torch/spans.h"
#include "agent/torch/training.h"
#include "base/clock.h"
#include "store/ring/ring_dir.h"
#include "store/ring/ring_reader.h"

#define MAX_IDS 100000

static char base[64];
static struct config config;

static int make_base(void **state) {
    (void)state;
    (void)snprintf(base, sizeof base, "/tmp/record-XXXXXX");
    config_init(&config);
    return mkdtemp(base) && config_set(&config, CONFIG_DATA_DIR, "", base, NULL) == 0 ? 0 : -1;
}

static int remove_base(void **state) {
    char command[128];
    (void)state;
    (void)snprintf(command, sizeof command, "rm -rf '%s'", base);
    return system(command);
}

static void ignore_flush(void *arg) { (void)arg; }

/* A sample of thread 7 with this stack, `depth` functions deep. */
static void sample(struct thread_sampler *p, const char *leaf, int line, int depth) {
    struct model_frame frames[64] = {{.func = leaf, .file = "f.py", .line = line}};
    char names[64][16];
    for (int i = 1; i < depth; i++) {
        (void)snprintf(names[i], sizeof names[i], "outer%d", i);
        frames[i] = (struct model_frame){.func = names[i], .file = "f.py", .line = i};
    }
    p->samples[p->n_samples++] = (struct model_sample){.timestamp = clock_epoch_s(),
                                                       .tid = 7,
                                                       .stack_id = trie_add(&p->trie, frames, (size_t)depth),
                                                       .on_cpu = 1,
                                                       .gil = MODEL_GIL_HOLDING,
                                                       .gc = MODEL_UNKNOWN};
    p->total_samples++;
}

static struct ring_reader *open_table(const struct record *r, enum ring_table table) {
    char path[RING_DIR_PATH + 64];
    struct err e;
    (void)snprintf(path, sizeof path, "%s/%s.ring", ring_set_path(r->set), RING_TABLES[table].name);
    struct ring_reader *reader = ring_reader_open(path, geteuid(), &e);
    if (!reader)
        fail_msg("%s", e.text);
    assert_int_equal(ring_reader_refresh(reader, &e), 0);
    return reader;
}

/* Call `fn` for each row. Number of rows. */
static size_t each_row(const struct record *r, enum ring_table table,
                       void (*fn)(const struct ring_block *b, uint32_t row, void *arg), void *arg) {
    struct ring_reader *reader = open_table(r, table);
    struct ring_block b = {.data = NULL};
    size_t n, rows = 0;
    const struct ring_chunk *chunks = ring_reader_chunks(reader, &n);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(ring_reader_load(reader, &chunks[i], UINT64_MAX, &b), 1);
        for (uint32_t row = 0; row < b.rows; row++, rows++)
            fn(&b, row, arg);
    }
    ring_block_fini(&b);
    ring_reader_close(reader);
    return rows;
}

struct ids {
    int64_t stack_frame[MAX_IDS], parent[MAX_IDS], line[MAX_IDS];
    bool frame_seen[MAX_IDS], stack_seen[MAX_IDS];
    size_t samples, undefined;
    int64_t last_line;
};

static int64_t number(const struct ring_block *b, size_t column, uint32_t row) {
    struct ring_cell cell;
    ring_block_get(b, column, row, &cell);
    return cell.kind == RING_CELL_INT ? cell.i : RING_INT_NULL;
}

static void note_frame(const struct ring_block *b, uint32_t row, void *arg) {
    struct ids *ids = arg;
    int64_t id = number(b, RING_FRAMES_ID, row);
    assert_true(id > 0 && id < MAX_IDS && !ids->frame_seen[id]);
    ids->frame_seen[id] = true;
    ids->line[id] = number(b, RING_FRAMES_LINENO, row);
}

static void note_stack(const struct ring_block *b, uint32_t row, void *arg) {
    struct ids *ids = arg;
    int64_t id = number(b, RING_STACKS_ID, row), parent = number(b, RING_STACKS_PARENT, row);
    int64_t frame = number(b, RING_STACKS_FRAME, row), depth = number(b, RING_STACKS_DEPTH, row);
    assert_true(id > 0 && id < MAX_IDS && !ids->stack_seen[id]);
    ids->stack_seen[id] = true;
    assert_true((parent == RING_INT_NULL) == (depth == 0));
    ids->stack_frame[id] = frame;
    ids->parent[id] = parent;
}

static void note_sample(const struct ring_block *b, uint32_t row, void *arg) {
    struct ids *ids = arg;
    int64_t id = number(b, RING_SAMPLES_STACK_ID, row);
    ids->samples++;
    assert_int_equal(number(b, RING_SAMPLES_TID, row), 7);
    assert_int_equal(number(b, RING_SAMPLES_GC, row), RING_INT_NULL);
    for (int64_t at = id; at != RING_INT_NULL; at = ids->parent[at])
        if (!ids->stack_seen[at] || !ids->frame_seen[ids->stack_frame[at]]) {
            ids->undefined++;
            return;
        }
    ids->last_line = ids->line[ids->stack_frame[id]];
}

static bool take(struct record *r, const struct thread_sampler *p) {
    struct record_samples samples = background_samples(p);
    return record_take(r, &samples);
}

static void second(struct record *r, const struct thread_sampler *p, const struct record_view *view) {
    struct record_samples samples = background_samples(p);
    struct record_view now = *view;
    now.self_cpu_ns = clock_self_cpu_ns();
    record_second(r, &samples, &now);
}

static void make_all_due(struct record *r) {
    r->flushed_ns = 0;
    record_flush(r);
}

static void ids_are_unique_over_epochs(void **state) {
    struct thread_sampler p;
    struct record r;
    struct ids *ids = calloc(1, sizeof *ids);
    (void)state;
    assert_int_equal(thread_sampler_init(&p, ignore_flush, NULL), 0);
    record_init(&r, &config);
    record_begin(&r);
    assert_true(ids && r.set);
    sample(&p, "a", 1, 3);
    sample(&p, "b", 2, 3);
    sample(&p, "a", 1, 3);
    assert_false(take(&r, &p));
    assert_false(take(&r, &p)); /* nothing new */
    sample(&p, "c", 3, 40);
    (void)take(&r, &p);
    thread_sampler_clear_batch(&p);
    trie_reset(&p.trie);
    p.epoch++;
    sample(&p, "a", 1, 3);
    sample(&p, "d", 4, 3);
    (void)take(&r, &p);
    make_all_due(&r);
    /* a and b share their callers; c has more of them; then all over again. */
    assert_int_equal(each_row(&r, RING_FRAMES, note_frame, ids), 2 + 2 + 1 + 37 + 2 + 2);
    assert_int_equal(each_row(&r, RING_STACKS, note_stack, ids), 2 + 2 + 40 + 2 + 2);
    assert_int_equal(each_row(&r, RING_SAMPLES, note_sample, ids), 6);
    assert_int_equal(ids->undefined, 0);
    assert_int_equal(ids->last_line, 4);
    char path[RING_DIR_PATH];
    (void)snprintf(path, sizeof path, "%s", ring_set_path(r.set));
    record_end(&r, true);
    assert_int_equal(access(path, F_OK), -1);
    thread_sampler_fini(&p);
    free(ids);
}

/* When a table has no room for all definitions, it is time for a new epoch; then those in use are written again. */
static void what_is_gone_is_noticed(void **state) {
    struct config small = config;
    struct thread_sampler p;
    struct record r;
    struct ids *ids = calloc(1, sizeof *ids);
    (void)state;
    assert_int_equal(config_set(&small, CONFIG_MAX_MEMORY, "", "1200K", NULL), 0);
    assert_int_equal(thread_sampler_init(&p, ignore_flush, NULL), 0);
    record_init(&r, &small);
    record_begin(&r);
    assert_true(ids && r.set);
    bool outgrown = false;
    for (int i = 1; i < 50000 && !outgrown; i++) {
        sample(&p, "f", i, 2);
        outgrown = take(&r, &p);
        thread_sampler_clear_batch(&p);
    }
    assert_true(outgrown);
    trie_reset(&p.trie);
    p.epoch++;
    sample(&p, "last", 77, 2);
    assert_false(take(&r, &p));
    make_all_due(&r);
    (void)each_row(&r, RING_FRAMES, note_frame, ids);
    (void)each_row(&r, RING_STACKS, note_stack, ids);
    (void)each_row(&r, RING_SAMPLES, note_sample, ids);
    assert_int_equal(ids->last_line, 77);
    struct model_table tables[RING_TABLE_KEPT];
    assert_int_equal(record_list(&r, tables), RING_TABLE_KEPT);
    assert_string_equal(tables[RING_SAMPLES].name, "python.samples");
    assert_int_equal(tables[RING_SAMPLES].rows, ids->samples);
    assert_true(tables[RING_SAMPLES].newest >= tables[RING_SAMPLES].oldest &&
                isnan(tables[RING_STACKS].oldest));
    record_end(&r, true);
    thread_sampler_fini(&p);
    free(ids);
}

struct facts {
    char text[2048];
};

static void note_fact(const struct ring_block *b, uint32_t row, void *arg) {
    struct facts *f = arg;
    struct ring_cell key, value;
    size_t used = strlen(f->text);
    ring_block_get(b, RING_FACTS_KEY, row, &key);
    ring_block_get(b, RING_FACTS_VALUE, row, &value);
    assert_int_equal(key.kind, RING_CELL_TEXT);
    if (value.kind == RING_CELL_TEXT)
        (void)snprintf(f->text + used, sizeof f->text - used, "%.*s=%.*s\n", (int)key.len, key.s,
                       (int)value.len, value.s);
    else
        (void)snprintf(f->text + used, sizeof f->text - used, "%.*s is gone\n", (int)key.len, key.s);
}

/* Each once, and again when it changes. */
static void facts_are_told_once(void **state) {
    struct thread_sampler p;
    struct record r;
    struct record_view view = {.overhead_pct = NAN, .us_per_sample = NAN};
    struct facts facts = {.text = ""};
    const char *const python[] = {NULL, "3.11.2", "3.11.2", NULL, NULL, "3.12.0"};
    char exe[1024], line[1100];
    (void)state;
    assert_int_equal(thread_sampler_init(&p, ignore_flush, NULL), 0);
    record_init(&r, &config);
    record_begin(&r);
    for (size_t i = 0; i < sizeof python / sizeof python[0]; i++) {
        view.python = python[i];
        second(&r, &p, &view);
    }
    make_all_due(&r);
    (void)each_row(&r, RING_FACTS, note_fact, &facts);
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    assert_true(n > 0);
    exe[n] = '\0';
    (void)snprintf(line, sizeof line, "exe=%s\n", exe);
    assert_non_null(strstr(facts.text, line));
    assert_ptr_equal(strstr(facts.text, "cmd="), facts.text);
    assert_non_null(strstr(facts.text, "\nstarted_at=1"));
    assert_non_null(strstr(facts.text, "\nagent="));
    const char *changes = strstr(facts.text, "\npython=");
    assert_non_null(changes);
    assert_string_equal(changes, "\npython=3.11.2\npython is gone\npython=3.12.0\n");
    /* Tables that begin anew know it too. */
    struct config more = config;
    assert_int_equal(config_set(&more, CONFIG_MAX_MEMORY, "", "5M", NULL), 0);
    record_configure(&r, &more);
    second(&r, &p, &view);
    make_all_due(&r);
    facts.text[0] = '\0';
    (void)each_row(&r, RING_FACTS, note_fact, &facts);
    assert_non_null(strstr(facts.text, line));
    assert_non_null(strstr(facts.text, "\npython=3.12.0\n"));
    record_end(&r, true);
    thread_sampler_fini(&p);
}

/* ---- garbage collections ---- */

struct collections {
    int64_t collections[3], collected[3], uncollectable[3];
    double duration_ms;
    size_t rows, without_duration;
};

static void note_collections(const struct ring_block *b, uint32_t row, void *arg) {
    struct collections *sum = arg;
    struct ring_cell duration;
    int64_t g = number(b, RING_GC_GENERATION, row), n = number(b, RING_GC_COLLECTIONS, row);
    assert_true(g >= 0 && g < 3 && n > 0);
    sum->rows++;
    sum->collections[g] += n;
    sum->collected[g] += number(b, RING_GC_COLLECTED, row);
    sum->uncollectable[g] += number(b, RING_GC_UNCOLLECTABLE, row);
    ring_block_get(b, RING_GC_DURATION_MS, row, &duration);
    if (duration.kind == RING_CELL_REAL)
        sum->duration_ms += duration.f;
    else
        sum->without_duration++;
    assert_int_equal(number(b, RING_GC_STEP, row), RING_INT_NULL);
}

/* Of the oldest generation, one for ten of the youngest, each of which has left two objects. */
static void look_at_gc(struct record *r, int64_t young, int64_t collected, bool settled) {
    struct pystack_gc gc = {.interpreter = 0, .settled = settled};
    for (int g = 0; g < 3; g++)
        gc.generations[g].duration_s = NAN;
    gc.generations[0].collections = young;
    gc.generations[0].collected = collected;
    gc.generations[2].collections = young / 10;
    gc.generations[2].uncollectable = young / 10 * 2;
    record_gc_counts(r, &gc, 1, clock_epoch_s());
}

static struct collections told(struct record *r) {
    struct collections sum = {.rows = 0};
    r->unflushed = true;
    make_all_due(r);
    (void)each_row(r, RING_GC, note_collections, &sum);
    return sum;
}

static void collections_are_told_once(void **state) {
    struct record r;
    (void)state;
    record_init(&r, &config);
    record_begin(&r);
    look_at_gc(&r, 100, 5000, true); /* what was before is not told */
    look_at_gc(&r, 100, 5000, true);
    assert_int_equal(told(&r).rows, 0);
    look_at_gc(&r, 107, 5003, true);
    struct collections sum = told(&r);
    assert_int_equal(sum.rows, 1); /* of the others there was none */
    assert_int_equal(sum.without_duration, 1);
    assert_int_equal(sum.collections[0], 7);
    assert_int_equal(sum.collected[0], 3);
    /* One goes on: its counters may be half written. */
    look_at_gc(&r, 108, 5003, false);
    look_at_gc(&r, 108, 5003, false);
    assert_int_equal(told(&r).rows, 1);
    look_at_gc(&r, 112, 5009, true);
    sum = told(&r);
    assert_int_equal(sum.rows, 3);
    assert_int_equal(sum.collections[0], 12);
    assert_int_equal(sum.collected[0], 9);
    assert_int_equal(sum.collections[2], 1);
    assert_int_equal(sum.uncollectable[2], 2);
    /* In a job that does nothing else they are told nevertheless, and what comes late is not lost. */
    for (int i = 0; i < 4; i++)
        look_at_gc(&r, 113, 5009, false);
    assert_int_equal(told(&r).collections[0], 13);
    look_at_gc(&r, 114, 5020, true);
    sum = told(&r);
    assert_int_equal(sum.collections[0], 14);
    assert_int_equal(sum.collected[0], 20);
    assert_null(r.gc.note);
    record_end(&r, true);
}

static void collections_of_other_interpreters(void **state) {
    struct record r;
    struct pystack_gc two[2] = {{.interpreter = 0, .settled = true}, {.interpreter = 5, .settled = true}};
    (void)state;
    record_init(&r, &config);
    record_begin(&r);
    record_gc_counts(&r, two, 1, clock_epoch_s());
    two[1].generations[1] = (struct pystack_gc_generation){3, 30, 0, 0.25};
    record_gc_counts(&r, two, 2, clock_epoch_s()); /* it has begun since then: all it counted is new */
    struct collections sum = told(&r);
    assert_int_equal(sum.rows, 1);
    assert_true(sum.collections[1] == 3 && sum.collected[1] == 30 && sum.duration_ms == 250.0);
    two[1].generations[1].collected = 29; /* that cannot be: another interpreter of that number */
    two[1].generations[1].collections = 9;
    record_gc_counts(&r, two, 2, clock_epoch_s());
    assert_int_equal(told(&r).rows, 1);
    assert_true(r.gc.note && strstr(r.gc.note, "were reset"));
    two[1].generations[1].collections = 10;
    record_gc_counts(&r, two, 2, clock_epoch_s());
    assert_int_equal(told(&r).collections[1], 4);
    record_gc(&r, NULL, clock_epoch_s()); /* no Python any more */
    assert_false(r.gc.begun);
    assert_null(r.gc.note);
    record_end(&r, true);
}

/* While nobody runs, what was read is believed; unless another reading may say more. */
static void counters_are_read_when_somebody_ran(void **state) {
    struct thread_sampler p;
    struct record r;
    /* without a Python, counters that are read are forgotten: that shows */
    struct record_view view = {.overhead_pct = NAN, .us_per_sample = NAN, .nobody_ran = true};
    struct pystack_gc now = {.settled = true};
    (void)state;
    assert_int_equal(thread_sampler_init(&p, ignore_flush, NULL), 0);
    record_init(&r, &config);
    record_begin(&r);
    record_gc_counts(&r, &now, 1, clock_epoch_s());
    second(&r, &p, &view);
    assert_true(r.gc.begun);
    view.nobody_ran = false;
    second(&r, &p, &view);
    assert_false(r.gc.begun);
    for (int why = 0; why < 4; why++) {
        r.gc = (struct record_gc){.begun = false};
        record_gc_counts(&r, &now, 1, clock_epoch_s());
        r.gc.begun = why != 0;
        r.gc.failed = why == 1;
        r.gc.seen[0].waited = why == 2;
        r.gc.told[1].waited = why == 3;
        view.nobody_ran = true;
        second(&r, &p, &view);
        assert_false(r.gc.begun);
    }
    record_end(&r, true);
    thread_sampler_fini(&p);
}

static void once_a_second(void **state) {
    struct thread_sampler p;
    struct record r;
    struct record_view view = {.overhead_pct = NAN, .us_per_sample = NAN, .clients = 1};
    struct model_table tables[RING_TABLE_KEPT];
    (void)state;
    assert_int_equal(thread_sampler_init(&p, ignore_flush, NULL), 0);
    record_init(&r, &config);
    assert_true(record_due_ns(&r) <= clock_mono_ns());
    record_begin(&r);
    for (int i = 0; i < 3; i++) {
        uint64_t due = record_due_ns(&r);
        second(&r, &p, &view);
        assert_true(record_due_ns(&r) >= due + CLOCK_NS_PER_S);
    }
    assert_true(r.cost_ns > 0);
    (void)record_list(&r, tables);
    assert_int_equal(tables[RING_PROCESS_HISTORY].rows, 3);
    assert_int_equal(tables[RING_MEMORY].rows, 3);
    assert_int_equal(tables[RING_STATUS].rows, 3);
    assert_int_equal(tables[RING_THREAD_HISTORY].rows, 1); /* a second had not passed */
    /* Another limit begins them anew; rows that are too old go. */
    struct config more = config;
    assert_int_equal(config_set(&more, CONFIG_MAX_MEMORY, "", "4M", NULL), 0);
    record_configure(&r, &more);
    (void)record_list(&r, tables);
    assert_int_equal(tables[RING_PROCESS_HISTORY].rows, 0);
    assert_true(tables[RING_SAMPLES].bytes < 4 << 20);
    assert_int_equal(config_set(&more, CONFIG_MAX_MEMORY, "", "1M", NULL), 0);
    record_configure(&r, &more);
    assert_non_null(r.set);
    assert_string_equal(r.note, "");
    assert_int_equal(record_list(&r, tables), RING_TABLE_KEPT);
    assert_int_equal(config_set(&more, CONFIG_MAX_MEMORY, "", "0", NULL), 0);
    record_configure(&r, &more);
    assert_null(r.set);
    assert_true(record_due_ns(&r) == RECORD_NEVER);
    assert_int_equal(record_list(&r, tables), 0);
    assert_non_null(strstr(r.note, "probing.max_memory"));
    second(&r, &p, &view);
    record_end(&r, true);
    thread_sampler_fini(&p);
}

#define EVENTS 2000

static void *write_events(void *arg) {
    char text[32];
    for (int i = 0; i < EVENTS; i++) {
        (void)snprintf(text, sizeof text, "number %d", i);
        record_event(arg, RING_EVENT_EVAL, 7, 8, text);
    }
    return NULL;
}

static void count_row(const struct ring_block *b, uint32_t row, void *arg) {
    (void)b;
    (void)row;
    ++*(int *)arg;
}

/* The server's thread writes events while the sampler's makes the tables, fills and replaces them. */
static void events_of_another_thread(void **state) {
    struct config more = config;
    struct thread_sampler p;
    struct record r;
    struct record_view view = {.overhead_pct = NAN, .us_per_sample = NAN};
    struct model_table tables[RING_TABLE_KEPT];
    pthread_t thread;
    int n = 0;
    (void)state;
    assert_int_equal(thread_sampler_init(&p, ignore_flush, NULL), 0);
    record_init(&r, &config);
    record_event(&r, RING_EVENT_EVAL, 7, 8, "before there were tables");
    assert_null(r.set); /* it is for the sampler's thread to begin */
    record_begin(&r);
    (void)each_row(&r, RING_EVENTS, count_row, &n);
    assert_int_equal(n, 1);
    assert_ptr_equal(r.set, r.shared.set);
    assert_int_equal(pthread_create(&thread, NULL, write_events, &r), 0);
    for (int i = 0; i < 200; i++) {
        second(&r, &p, &view);
        record_flush_now(&r);
        (void)record_list(&r, tables);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)record_list(&r, tables);
    assert_int_equal(tables[RING_EVENTS].rows, EVENTS + 1);
    assert_int_equal(tables[RING_EVENTS].lost, 0);
    assert_int_equal(pthread_create(&thread, NULL, write_events, &r), 0);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(config_set(&more, CONFIG_MAX_MEMORY, "",
                                    i % 3   ? "4M"
                                    : i % 2 ? "0"
                                            : "5M",
                                    NULL),
                         0);
        record_configure(&r, &more);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    record_end(&r, true);
    thread_sampler_fini(&p);
}

/* At the end of a job that has crashed, perhaps with the lock. */
static void a_lock_that_is_kept(void **state) {
    struct record r;
    (void)state;
    record_init(&r, &config);
    record_begin(&r);
    (void)pthread_mutex_lock(&r.shared.lock);
    r.unflushed = true;
    record_flush_now(&r);
    assert_true(r.unflushed); /* for the next time */
    (void)pthread_mutex_unlock(&r.shared.lock);
    record_flush_now(&r);
    assert_false(r.unflushed);
    record_end(&r, true);
}

/* An Optimizer.step that ends at that many ns. */
static void step_ends(uint64_t ns) {
    spans_begin(1000, "Optimizer.step#SGD.step");
    spans_end(1000, ns);
}

/* Which step a moment was in: of those that are over, of the one that goes on, and not of those that are forgotten. */
static void test_step_of_a_moment(void **state) {
    struct record r;
    struct training t;
    (void)state;
    record_init(&r, &config);
    training_init(&t, &r, NULL);
    record_begin(&r);
    t.reports = true;
    training_keep_ends(&t, 100 * 1000); /* before any of them was taken */
    for (uint64_t i = 1; i <= 400; i++)
        step_ends(1000 * i);
    training_take(&t);
    assert_int_equal(training_step_at(&t, 390 * 1000), 390);
    assert_int_equal(training_step_at(&t, 390 * 1000 + 1), 391);
    /* It is over when the next begins, which it has not. */
    assert_int_equal(training_step_at(&t, 400 * 1000), 400);
    assert_int_equal(training_step_at(&t, 400 * 1000 + 1), 401);
    assert_int_equal(training_step_at(&t, 105 * 1000 + 1), 106); /* kept */
    assert_int_equal(training_step_at(&t, 140 * 1000 + 1), -1);
    training_drop_ends(&t);
    assert_int_equal(training_step_at(&t, 105 * 1000 + 1), -1);
    t.reports = false; /* torch has none to be taken back */
    record_end(&r, true);
    training_fini(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_unique_over_epochs),
        cmocka_unit_test(what_is_gone_is_noticed),
        cmocka_unit_test(facts_are_told_once),
        cmocka_unit_test(collections_are_told_once),
        cmocka_unit_test(collections_of_other_interpreters),
        cmocka_unit_test(counters_are_read_when_somebody_ran),
        cmocka_unit_test(once_a_second),
        cmocka_unit_test(events_of_another_thread),
        cmocka_unit_test(a_lock_that_is_kept),
        cmocka_unit_test(test_step_of_a_moment),
    };
    return cmocka_run_group_tests(tests, make_base, remove_base);
}
