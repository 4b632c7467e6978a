/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks of a job on the screen: cells, filters, texts, the rank that is opened, what a frozen view shows. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/export/export.h"
#include "tui/core/app.h"
#include "tui/core/app_export.h"
#include "tui/core/app_history.h"
#include "tui/core/app_job.h"
#include "tui/core/app_life.h"
#include "tui/core/app_screen.h"
#include "tui/core/app_take.h"
#include "tui/core/job_state.h"
#include "tui/core/screen.h"
#include "tui/job_picture.h"
#include "tui/view/rank_filter.h"
#include "tui/view/rank_grid.h"
#include "tui/view/rank_text.h"
#include "tui/workers/job_judge.h"
#include "unit/tui_fixture.h"
#include "unit/tui_host.h"
#include "unit/tui_job.h"

/* ---- cells ---- */

#define MAX_GROUPS 300

/* Each slot has one place, inside the area, and that place is the slot's. */
static void check_places(const struct rank_grid *p, int n_slots, int cols, int lines) {
    char *used = calloc((size_t)(cols * lines), 1);
    int held = 0;
    assert_non_null(used);
    assert_in_range(p->lines, 1, lines);
    for (int slot = 0; slot < n_slots; slot++) {
        int group, cell, line, col, first, n;
        assert_true(rank_grid_find(p, slot, &group, &cell));
        rank_grid_place(p, &p->groups[group], cell, &line, &col);
        assert_true(line >= 0 && line < p->lines && col >= p->name_cols + (p->name_cols ? 1 : 0) &&
                    col < cols);
        assert_true(rank_grid_at(p, line, col, &first, &n));
        assert_true(first <= slot && slot < first + n && n <= p->per_cell);
        held += slot == first ? n : 0;
        used[line * cols + col] = 1;
    }
    assert_int_equal(held, n_slots);
    /* names and gaps stay free, and are no cells */
    for (int line = 0; line < p->lines; line++)
        for (int col = 0; col < cols; col++) {
            int first, n;
            assert_int_equal(rank_grid_at(p, line, col, &first, &n), used[line * cols + col]);
        }
    free(used);
}

static void check_grid(int n_groups, int each, int name_cols, int cols, int lines, int per_cell,
                       int got_lines) {
    struct rank_grid_group groups[MAX_GROUPS];
    struct rank_grid p;
    for (int i = 0; i < n_groups; i++)
        groups[i] =
            (struct rank_grid_group){.name = "", .name_cols = name_cols, .first = i * each, .n = each};
    bool fits = rank_grid_plan(&p, groups, n_groups, cols, lines);
    if (per_cell == 0) {
        assert_false(fits);
        assert_int_equal(p.lines, 0);
        return;
    }
    assert_true(fits);
    assert_int_equal(p.per_cell, per_cell);
    assert_int_equal(p.lines, got_lines);
    check_places(&p, n_groups * each, cols, lines);
}

static void test_cells(void **state) {
    (void)state;
    check_grid(8, 8, 4, 78, 10, 1, 2);     /* 8 hosts of 8 ranks: five side by side */
    check_grid(1, 8, 2, 78, 10, 1, 1);     /* one group of a line */
    check_grid(2, 100, 4, 38, 10, 1, 8);   /* groups wider than a line have several */
    check_grid(1, 1000, 4, 78, 7, 2, 7);   /* all ranks: 72 cells a line */
    check_grid(1, 10000, 5, 78, 9, 16, 9); /* 16 a cell */
    check_grid(125, 8, 6, 78, 10, 0, 0);   /* more groups than fit, though each is one cell */
    check_grid(64, 8, 5, 158, 10, 1, 7);   /* 64 hosts on a wide screen */
    check_grid(3, 8, 5, 4, 10, 0, 0);      /* narrower than a name */
    check_grid(1, 1 << 20, 8, 38, 3, 1 << 14, 3);
    for (int cols = 20; cols < 160; cols += 7)
        for (int n = 1; n < 260; n = n * 3 + 1)
            for (int each = 1; each < 70; each = each * 2 + 1) {
                struct rank_grid_group groups[MAX_GROUPS];
                struct rank_grid p;
                for (int i = 0; i < n; i++)
                    groups[i] = (struct rank_grid_group){.name_cols = 4, .first = i * each, .n = each};
                if (rank_grid_plan(&p, groups, n, cols, 9))
                    check_places(&p, n * each, cols, 9);
            }
}

/* ---- texts ---- */

static void test_signs(void **state) {
    (void)state;
    for (int i = 0; i < FLEET_STATE_COUNT; i++) {
        assert_int_equal(rank_text_signs[i].sign, fleet_state_glyph((enum fleet_state)i));
        assert_in_range(strlen(rank_text_signs[i].word), 1, 10);
        for (int k = 0; k < i; k++) {
            assert_int_not_equal(rank_text_signs[i].sign, rank_text_signs[k].sign);
            assert_int_not_equal(rank_text_signs[i].weight, rank_text_signs[k].weight);
        }
    }
}

static void check_where(const struct job_shot *s, int32_t rank, const char *want) {
    struct strbuf out;
    strbuf_init(&out, 1024);
    rank_text_put_where(s, job_shot_find(s, rank), &out);
    assert_string_equal(strbuf_str(&out), want);
    strbuf_fini(&out);
}

static void check_since(double seconds, const char *want) {
    char text[16];
    rank_text_since(seconds, text, sizeof text);
    assert_string_equal(text, want);
}

static void check_bytes(int64_t bytes, const char *want) {
    char text[16];
    rank_text_bytes(bytes, text, sizeof text);
    assert_string_equal(text, want);
}

static void test_texts(void **state) {
    (void)state;
    struct strbuf out;
    struct job_shot *s = job_fixture(JOB_FIXTURE_HUNG);
    check_where(s, 0, "all_reduce < train.py:91"); /* not the decorator around it */
    check_where(s, 5, "Queue.get < loader.py:31"); /* not what that waits in */
    assert_int_equal(rank_text_badness(s, job_shot_find(s, 5)), 5);
    assert_int_equal(rank_text_badness(s, job_shot_find(s, 0)), 1); /* its step is late */
    strbuf_init(&out, 1024);
    rank_text_put_states(s, &out);
    assert_string_equal(strbuf_str(&out), "7 c collective  1 ! 5");
    strbuf_fini(&out);
    job_shot_free(s);
    s = job_fixture(JOB_FIXTURE_HEALTHY);
    check_where(s, 6, "step train.py:88");
    assert_int_equal(rank_text_badness(s, job_shot_find(s, 6)), 0);
    assert_true(s->rate > 1.01 && s->rate < 1.03);
    job_shot_free(s);
    s = job_fixture(JOB_FIXTURE_BARE);
    check_where(s, 2, "");
    assert_int_equal(rank_text_badness(s, job_shot_find(s, 3)), 4);
    assert_int_equal(job_shot_find(s, 3)->pid, 0);
    assert_null(job_shot_host_name(s, job_shot_find(s, 3)));
    job_shot_free(s);
    check_since(0.9, "");
    check_since(59.9, "59s");
    check_since(3599, "59m");
    check_since(90000, "1d");
    check_since(1e12, "999d");
    check_bytes(-1, "-");
    check_bytes((int64_t)512 << 20, "512M");
    check_bytes((int64_t)1900 << 20, "1.9G");
    check_bytes((int64_t)200 << 30, "200G");
}

/* ---- filters ---- */

static int count(const struct job_shot *s, const char *text) {
    struct rank_filter f = {.is_read = false};
    struct match m;
    int n = 0;
    match_set(&m, text, true);
    for (size_t i = 0; i < s->n_ranks; i++)
        n += rank_filter_matches(&f, &m, s, &s->ranks[i]);
    rank_filter_fini(&f);
    return n;
}

static void test_filters(void **state) {
    (void)state;
    struct job_shot *s = job_fixture(JOB_FIXTURE_HUNG);
    char class[RANK_FILTER_CLASS], text[64];
    assert_int_equal(count(s, "rank:0-3,7"), 5);
    assert_int_equal(count(s, "rank:0-"), 0);
    assert_int_equal(count(s, "host:gpu1"), 4);
    assert_int_equal(count(s, "host:gpu"), 0);
    s->hosts[1].name = "gpu1.example.com";
    assert_int_equal(count(s, "host:gpu1"), 4);
    assert_int_equal(count(s, "host:gpu1.example.com"), 4);
    assert_int_equal(count(s, "host:gpu1.example"), 0);
    s->hosts[1].name = "10.0.0.1";
    assert_int_equal(count(s, "host:10"), 0);
    assert_int_equal(count(s, "late"), 8);
    assert_int_equal(count(s, "loader.py"), 1);
    assert_int_equal(count(s, "collective|rank:5"), 8);
    rank_filter_name_class(s, job_shot_find(s, 5)->class_number, class);
    (void)snprintf(text, sizeof text, "class:%s", class);
    assert_int_equal(count(s, text), 1);
    job_shot_free(s);
}

/* A set of ranks as a filter means these ranks, or their class if it is too long. */
static void test_filter_of_set(void **state) {
    (void)state;
    struct job_shot *s = job_fixture(JOB_FIXTURE_1000);
    struct rank_set ranks = {.n = 0};
    char text[64];
    assert_int_equal(rank_set_add(&ranks, 3, 9), 0);
    assert_int_equal(rank_set_add(&ranks, 12, 12), 0);
    rank_filter_put(&ranks, s, -1, text, sizeof text);
    assert_string_equal(text, "rank:3-9,12");
    for (int32_t i = 20; i < 1000; i += 2)
        assert_int_equal(rank_set_add(&ranks, i, i), 0);
    rank_filter_put(&ranks, s, job_shot_find(s, 17)->class_number, text, sizeof text);
    assert_memory_equal(text, "class:", 6);
    assert_int_equal(count(s, text), 1);
    rank_filter_put(&ranks, s, -1, text, sizeof text);
    assert_memory_equal(text, "rank:3-9,12,20,22,24", 20); /* as many as fit */
    assert_true(count(s, text) > 10);
    rank_set_fini(&ranks);
    job_shot_free(s);
}

/* ---- the screens ---- */

static void test_opening(void **state) {
    (void)state;
    struct app *a = job_fixture_app(JOB_FIXTURE_HUNG, "p", false);
    fixture_shows(a, 24, 80, "8/8 ranks");
    assert_int_equal(fake_host_take().attach, 0); /* nothing is attached to before it is asked for */
    fixture_press(a, "Enter");                    /* the worst is selected */
    assert_int_equal(fake_host_take().attach, 4305);
    fixture_press(a, "]"); /* one at a time */
    assert_int_equal(fake_host_take().attach, 0);
    fixture_shows(a, 24, 80, "rank 5 is still being opened");
    app_set_pid(a, 4305);
    app_attach_done(a, NULL);
    assert_ptr_equal(app_screen_top(a)->def, &screen_threads);
    fixture_shows(a, 24, 80, "rank 5 of 8");
    fixture_press(a, "]");
    assert_int_equal(fake_host_take().attach, 4306);
    struct err why = {ERR_ATTACH, "process 4306 is stopped"};
    app_attach_done(a, &why);
    fixture_shows(a, 24, 80, "rank 6: process 4306 is stopped");
    fixture_press(a, "]"); /* past it */
    assert_int_equal(fake_host_take().attach, 4307);
    app_set_pid(a, 4307);
    app_attach_done(a, NULL);
    app_attach(a, 99);
    (void)fake_host_take();
    fixture_press(a, "]");
    assert_int_equal(fake_host_take().attach, 0);
    fixture_shows(a, 24, 80, "an attach to 99 is under way");
    a->attaching = 0;
    fixture_press(a, "]"); /* round */
    assert_int_equal(fake_host_take().attach, 4300);
    app_attach_done(a, &why);
    fixture_press(a, "p");
    fixture_shows(a, 24, 80, "7*");
    app_free(a);
}

/* By its number, from anywhere. */
static void test_command(void **state) {
    (void)state;
    struct app *a = job_fixture_app(JOB_FIXTURE_HUNG, "2 : \"rank Space \"3 Enter", false);
    assert_int_equal(fake_host_take().attach, 4303);
    struct err why = {ERR_ATTACH, "process 4303 is stopped"};
    app_attach_done(a, &why);
    fixture_press(a, ": \"rank Space \"99 Enter");
    fixture_shows(a, 24, 80, "rank 99 has no process");
    fixture_press(a, ": \"rank Space \"x Enter");
    fixture_shows(a, 24, 80, "'x' is not a rank");
    assert_int_equal(fake_host_take().attach, 0);
    assert_int_equal(app_exit_status(a), 0);
    app_free(a);
    a = fixture_app(FIXTURE_NORMAL, 3, false);
    fixture_press(a, ": \"rank Space \"3 Enter");
    fixture_shows(a, 24, 80, "no job is watched");
    app_job_watch(a, "job:train.py");
    fixture_press(a, ": \"rank Space \"3 Enter");
    fixture_shows(a, 24, 80, "the ranks are not known yet");
    assert_int_equal(fake_host_take().attach, 0);
    app_free(a);
}

/* A rank without a process cannot be opened, and is passed over. */
static void test_missing(void **state) {
    (void)state;
    struct app *a = job_fixture_app(JOB_FIXTURE_BARE, "p Home Enter", false);
    assert_int_equal(fake_host_take().attach, 0);
    fixture_shows(a, 24, 80, "rank 3 has no process");
    fixture_press(a, "[");
    assert_int_equal(fake_host_take().attach, 4302);
    app_free(a);
}

/* A host that has never answered has no ranks that could show that: it is named with the reason. */
static void test_silent_hosts(void **state) {
    (void)state;
    struct app *a = job_fixture_app(JOB_FIXTURE_SILENT, "p", false);
    struct job_shot *shot = a->job.shot;
    assert_int_equal(job_shot_silent_hosts(shot), 2);
    assert_null(strchr(shot->hosts[1].silent, '\033'));
    fixture_shows(a, 24, 80, "8/24 ranks  1/3 hosts");
    fixture_shows(a, 24, 80, "no news from gpu1: no relay: ");
    fixture_shows(a, 24, 80, "Connection refused");
    fixture_shows(a, 24, 80, "no news from gpu2: it has not answered yet");
    fixture_shows(a, 12, 40, "no news from 2 hosts: gpu1, gpu2");
    fixture_shows(a, 24, 80, "Ranks 8 of ");
    fixture_press(a, "O");
    fixture_shows(a, 24, 80, "1/3 hosts");
    for (int cols = 80; cols <= 160; cols += 80) {
        fixture_press(a, "1");
        fixture_shows(a, 24, cols, "no news");
        fixture_shows(a, 24, cols, "from gpu1 (no relay: ");
        fixture_shows(a, 24, cols, "gpu2 (it has not");
        fixture_shows(a, 24, cols, "nothing is worth a warning on the hosts that answer");
    }
    app_job_take(a, job_fixture(JOB_FIXTURE_HEALTHY));
    fixture_hides(a, 24, 80, "no news");
    fixture_press(a, "p");
    fixture_hides(a, 24, 80, "no news");
    app_free(a);
}

/* What was read before a host fell silent is neither shown nor summed as if it were so now. */
static void test_silent_ranks(void **state) {
    (void)state;
    struct app *a = job_fixture_app(JOB_FIXTURE_1000, "p", false);
    const struct job_shot_rank *r = job_shot_find(a->job.shot, 560);
    assert_int_equal(r->state, FLEET_UNKNOWN);
    assert_int_equal(r->step, 1234);
    assert_true(isnan(r->since_s) && isnan(r->step_ms) && isnan(r->own_ms) && isnan(r->lag_ms));
    assert_true(isnan(r->cpu_pct) && isnan(r->gpu_util) && isnan(r->gpu_mem_mb));
    assert_true(r->rss_bytes == -1 && !r->is_late);
    assert_false(isnan(job_shot_find(a->job.shot, 559)->cpu_pct));
    fixture_press(a, "1");
    fixture_shows(a, 50, 200, "cores, all ranks, known of 992 ranks");
    fixture_shows(a, 50, 200, "RAM, all ranks, known of 992 ranks");
    app_free(a);
}

/* Columns of GPUs are there once a rank has one, and on the right. */
static void test_gpus(void **state) {
    (void)state;
    struct app *a = job_fixture_app(JOB_FIXTURE_HUNG, "p", false);
    fixture_hides(a, 24, 160, "GMEM");
    struct job_shot *shot = job_fixture(JOB_FIXTURE_HUNG);
    shot->ranks[2].gpu_util = 93;
    shot->ranks[2].gpu_mem_mb = 62000;
    app_job_take(a, shot);
    fixture_shows(a, 24, 160, "RSS  GPU  GMEM");
    fixture_shows(a, 24, 160, "1.8G   93 60.5G");
    fixture_shows(a, 24, 160, "1.8G    -     -");
    fixture_shows(a, 24, 80, "WHERE"); /* they give way first */
    app_job_take(a, job_fixture(JOB_FIXTURE_HUNG));
    fixture_hides(a, 24, 160, "GMEM");
    app_free(a);
}

/* 64 ranks on hosts whose names are made of a number. */
static void take_hosts(struct app *a, const char *before, const char *behind) {
    struct job_shot *shot = job_fixture(JOB_FIXTURE_64);
    for (size_t i = 0; i < shot->n_hosts; i++) {
        char name[160];
        (void)snprintf(name, sizeof name, "%s%zu%s", before, i, behind);
        shot->hosts[i].name = arena_strdup(&shot->arena, name);
        assert_non_null(shot->hosts[i].name);
    }
    app_job_take(a, shot);
}

/* Names of hosts are whole where there is room, and else cut so that they do not look alike. */
static void test_names_of_hosts(void **state) {
    (void)state;
    struct app *a = job_fixture_app(JOB_FIXTURE_64, "p", false);
    take_hosts(a, "llama-worker-1", "");
    fixture_shows(a, 24, 80, " …rker-12 ");
    fixture_shows(a, 24, 80, "…a-worker-17 cccccccc"); /* the cells */
    fixture_shows(a, 24, 120, " llama-worker-12 ");
    take_hosts(a, "10.100.100.", "");
    fixture_shows(a, 24, 80, " …0.100.2 ");
    fixture_shows(a, 24, 120, " 10.100.100.2 ");
    take_hosts(a, "gpu", ".cluster.example.com");
    fixture_shows(a, 24, 80, " gpu2        1234 ");
    fixture_shows(a, 24, 80, "gpu7 cccccccc");
    fixture_shows(a, 24, 160, " gpu2.cluster.example.com ");
    fixture_press(a, "\\ h o s t : g p u 2 Enter");
    fixture_shows(a, 24, 80, "Ranks 8 of 64");
    fixture_press(a, "A");
    take_hosts(a, "", "-of-the-llama-workers");
    fixture_shows(a, 24, 80, " 2-of-th… ");
    fixture_shows(a, 24, 160, " 2-of-the-llama-workers ");
    /* one that is longer than any column leaves the others theirs */
    take_hosts(a, "a-name-that-is-much-longer-than-a-name-of-a-host-should-ever-be-but-may-be-all-the-same-",
               "");
    fixture_shows(a, 24, 80, "…-the-same-7 cccccccc");
    fixture_shows(a, 24, 200, "-be-but-may-be-all-the-same-2 ");
    fixture_shows(a, 24, 200, "attention model.py:210");
    app_free(a);
}

/* How fast the job is: not how fast ranks were that stand now, and slow is not never. */
static void test_pace(void **state) {
    (void)state;
    struct app *a = job_fixture_app(JOB_FIXTURE_HEALTHY, "p", false);
    fixture_shows(a, 24, 80, "1.02/s");
    a->job.shot->rate = 0.0042;
    fixture_shows(a, 24, 80, "0.252/min");
    app_free(a);
    a = job_fixture_app(JOB_FIXTURE_HUNG, "p", false);
    assert_true(isnan(a->job.shot->rate));
    fixture_hides(a, 24, 80, "/s  ");
    assert_true(job_shot_bytes(a->job.shot) >
                sizeof *a->job.shot + a->job.shot->arena.used +
                    a->job.shot->stacks.n_nodes * sizeof *a->job.shot->stacks.nodes);
    app_free(a);
}

/* A rank on another host is opened there. */
static void test_elsewhere(void **state) {
    (void)state;
    struct app *a = job_fixture_app(JOB_FIXTURE_HUNG, "p", false);
    a->job.shot->hosts[0].is_here = a->job.shot->hosts[1].is_here = false;
    fixture_press(a, "Enter");
    struct fake_asked asked = fake_host_take();
    assert_int_equal(asked.attach, 4305);
    assert_string_equal(asked.attach_host, "gpu1");
    fixture_shows(a, 24, 80, "opening rank 5, process 4305 of gpu1");
    struct model_target t;
    struct proc_stats here = {.limit_bytes = 1};
    char name[128];
    app_set_pid(a, 0); /* it has no number here */
    app_attach_done(a, NULL);
    fixture_target(&t, FIXTURE_NORMAL);
    t.pid = 4305;
    app_set_state(a, SESSION_CONNECTED, NULL, 0);
    app_take_target(a, &t);
    app_take_proc_stats(a, &here);
    fixture_shows(a, 24, 80, "CONNECTED");
    fixture_hides(a, 24, 80, "NO RANK OPEN");
    fixture_shows(a, 24, 80, "rank 5 of 8");
    assert_int_equal(fake_host_take().find_job, 0);
    app_export_name(a, export_find("svg", NULL), name, sizeof name);
    assert_non_null(strstr(name, "probing-4305-"));
    fixture_press(a, "p ]"); /* the next one: nothing of this one is shown as its own */
    assert_int_equal(fake_host_take().attach, 4306);
    app_set_pid(a, 0);
    assert_false(a->data.has_target);
    assert_true(a->data.pulse.vitals_at_s <= 0);
    app_free(a);
}

static void add_children(struct app *a, size_t n) {
    struct children_list l = {.items = n ? calloc(n, sizeof *l.items) : NULL, .n = n};
    for (size_t i = 0; i < n; i++)
        l.items[i].pid = 5000 + (pid_t)i;
    app_take_children(a, &l);
}

/* The target is a rank: its job is offered, and the key that shows all targets shows its ranks. */
static void test_offer(void **state) {
    (void)state;
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    fixture_press(a, "p");
    assert_ptr_equal(app_screen_top(a)->def, &screen_targets);
    fixture_press(a, "q O");
    fixture_shows(a, 24, 80, "no job is watched");
    fixture_hides(a, 24, 200, "p Ranks");
    a->pid = 4242; /* of what it has received */
    app_job_take_offer(a, 4242, "train.py-c4f2", 3, 8);
    fixture_shows(a, 24, 200, "p Ranks");
    fixture_shows(a, 24, 80, "rank 3 of 8");
    (void)fake_host_take();
    fixture_press(a, "p");
    assert_string_equal(fake_host_take().job, "job:4242");
    assert_ptr_equal(app_screen_top(a)->def, &screen_ranks);
    fixture_shows(a, 24, 80, "looking for the ranks");
    fixture_press(a, "O");
    assert_string_equal(fake_host_take().job, ""); /* it is watched already */
    assert_ptr_equal(app_screen_top(a)->def, &screen_stacks);
    app_free(a);
}

/* So is that of a launcher, which does nothing itself. Whether a process is one is looked for when it has more children than before. */
static void test_offer_of_a_launcher(void **state) {
    (void)state;
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    a->pid = 4242;
    add_children(a, 0);
    assert_int_equal(fake_host_take().find_job, 0);
    add_children(a, 1);
    assert_int_equal(fake_host_take().find_job, 4242);
    add_children(a, 1);
    add_children(a, 0);
    add_children(a, 1);
    assert_int_equal(fake_host_take().find_job, 0);
    add_children(a, 2);
    assert_int_equal(fake_host_take().find_job, 4242);
    fixture_press(a, "p"); /* they may have become ranks since */
    assert_int_equal(fake_host_take().find_job, 4242);
    fixture_press(a, "q");
    app_job_take_offer(a, 4000, "train.py-c4f2", -1, 8); /* of a target that is gone */
    fixture_hides(a, 24, 200, "p Ranks");
    app_job_take_offer(a, 4242, "train.py-c4f2", -1, 8);
    fixture_shows(a, 24, 80, "launcher  pid ");
    fixture_shows(a, 24, 80, "this process starts the ranks of job train.py-c4f2: p shows them");
    (void)fake_host_take();
    fixture_press(a, "p");
    assert_string_equal(fake_host_take().job, "job:4242");
    assert_ptr_equal(app_screen_top(a)->def, &screen_ranks);
    app_free(a);
}

/* A frozen view stays, and shows the newest when it goes on. */
static void test_frozen(void **state) {
    (void)state;
    struct app *a = job_fixture_app(JOB_FIXTURE_HUNG, "p Z", false);
    app_job_take(a, job_fixture(JOB_FIXTURE_HEALTHY));
    app_job_take(a, job_fixture(JOB_FIXTURE_BARE));
    fixture_shows(a, 24, 80, "FROZEN");
    fixture_shows(a, 24, 80, "HUNG");
    fixture_press(a, "O");
    fixture_shows(a, 24, 80, "Queue.get");
    fixture_press(a, "p Z");
    fixture_shows(a, 24, 80, "missing");
    fixture_hides(a, 24, 80, "HUNG");
    app_job_take(a, job_fixture(JOB_FIXTURE_HEALTHY));
    fixture_shows(a, 24, 80, "8/8 ranks");
    app_free(a);
}

/* Frozen again before there is anything newer, it shows the ranks of that time, not of the first. */
static void test_frozen_again(void **state) {
    (void)state;
    struct app *a = job_fixture_app(JOB_FIXTURE_HUNG, "p Z", false);
    app_job_take(a, job_fixture(JOB_FIXTURE_BARE));
    fixture_shows(a, 24, 80, "HUNG");
    fixture_press(a, "Z Z");
    fixture_shows(a, 24, 80, "missing");
    fixture_hides(a, 24, 80, "HUNG");
    app_job_take(a, job_fixture(JOB_FIXTURE_HEALTHY));
    fixture_shows(a, 24, 80, "FROZEN");
    fixture_shows(a, 24, 80, "missing");
    app_free(a);
}

static void take_at(struct app *a, enum job_fixture kind, double at_s, double moment) {
    struct job_shot *s = job_fixture(kind);
    s->at_s = at_s;
    s->moment = moment;
    app_job_take(a, s);
}

/* Of hosts, the past is what was seen. */
static void test_earlier(void **state) {
    (void)state;
    struct app *a = job_fixture_app(JOB_FIXTURE_HUNG, "p", false);
    fixture_press(a, ".");
    fixture_shows(a, 24, 80, "this is now: , steps back");
    fixture_press(a, ",");
    fixture_shows(a, 24, 80, "this is the oldest moment that is kept");
    take_at(a, JOB_FIXTURE_BARE, FIXTURE_EPOCH_S + 1, NAN);
    take_at(a, JOB_FIXTURE_HEALTHY, FIXTURE_EPOCH_S + 2, NAN);
    fixture_press(a, ",");
    fixture_shows(a, 24, 80, "FROZEN  at 22:13:21, 1s behind");
    fixture_shows(a, 24, 80, "missing");
    fixture_press(a, ",");
    fixture_shows(a, 24, 80, "HUNG");
    fixture_press(a, ",");
    fixture_shows(a, 24, 80, "this is the oldest moment that is kept");
    /* it stays while others come */
    take_at(a, JOB_FIXTURE_HEALTHY, FIXTURE_EPOCH_S + 3, NAN);
    fixture_shows(a, 24, 80, "HUNG");
    fixture_press(a, "O . .");
    fixture_shows(a, 24, 80, "at 22:13:22, 1s behind");
    fixture_press(a, ".");
    fixture_shows(a, 24, 80, "at 22:13:23, 0s behind");
    fixture_press(a, ".");
    fixture_shows(a, 24, 80, "this is the latest; Z resumes");
    fixture_press(a, ", , End");
    fixture_hides(a, 24, 80, "FROZEN");
    fixture_press(a, ": a t Space 2 2 : 1 3 : 2 1 . 5 Enter");
    fixture_shows(a, 24, 80, "FROZEN  at 22:13:21, 2s behind");
    fixture_press(a, ": a t Space 1 h Enter");
    fixture_shows(a, 24, 80, "nothing is kept of that time");
    fixture_press(a, ": a t Enter");
    fixture_hides(a, 24, 80, "FROZEN");
    fixture_press(a, ": a t Space s o o n Enter");
    fixture_shows(a, 24, 80, "'soon' is not a time");
    app_free(a);
}

/* A database has all of it: it is asked. */
static void test_earlier_in_a_database(void **state) {
    (void)state;
    struct app *a = job_fixture_app(JOB_FIXTURE_HEALTHY, "p", false);
    app_job_watch(a, "clickhouse://h/p?job=x");
    take_at(a, JOB_FIXTURE_HEALTHY, FIXTURE_EPOCH_S, NAN);
    fake_host_take();
    fixture_press(a, ",");
    assert_string_equal(fake_host_take().job, "clickhouse://h/p?job=x&at=@1699999999.000");
    fixture_shows(a, 24, 80, "being read");
    fixture_shows(a, 24, 80, "8/8 ranks"); /* as it was when it was asked for */
    fixture_press(a, ",");
    assert_string_equal(fake_host_take().job, "clickhouse://h/p?job=x&at=@1699999998.000");
    /* what was asked for before comes too late */
    take_at(a, JOB_FIXTURE_BARE, FIXTURE_EPOCH_S - 1, FIXTURE_EPOCH_S - 1);
    fixture_shows(a, 24, 80, "8/8 ranks");
    take_at(a, JOB_FIXTURE_HUNG, FIXTURE_EPOCH_S - 2, FIXTURE_EPOCH_S - 2);
    fixture_shows(a, 24, 80, "HUNG");
    fixture_hides(a, 24, 80, "being read");
    fixture_press(a, "Enter");
    fixture_shows(a, 24, 80, "cannot be opened as it was");
    /* there is nothing: what is shown stays */
    fixture_press(a, ": a t Space 2 h Enter");
    struct err e;
    err_set(&e, ERR_ATTACH, "no rows then");
    app_job_refused(a, &e);
    fixture_shows(a, 24, 80, "no rows then");
    fixture_shows(a, 24, 80, "HUNG");
    fake_host_take();
    fixture_press(a, ".");
    assert_string_equal(fake_host_take().job, "clickhouse://h/p?job=x&at=@1699999999.000");
    fixture_press(a, "Z");
    assert_string_equal(fake_host_take().job, "clickhouse://h/p?job=x");
    fixture_hides(a, 24, 80, "HUNG");
    /* it begins at a moment, which stays the same */
    app_job_watch(a, "clickhouse://h/p?job=x&at=10m");
    assert_true(strstr(fake_host_take().job, "&at=@1") && !isnan(a->job.moment));
    app_job_watch(a, "clickhouse://h/p?job=x&at=@5");
    take_at(a, JOB_FIXTURE_HUNG, 5, 5);
    fixture_shows(a, 24, 80, "FROZEN");
    fixture_shows(a, 24, 80, "HUNG");
    app_free(a);
}

/* Enter on a class shows its ranks. */
static void test_ranks_of_class(void **state) {
    (void)state;
    struct app *a = job_fixture_app(JOB_FIXTURE_HUNG, "O j j Enter", false);
    assert_ptr_equal(app_screen_top(a)->def, &screen_ranks);
    fixture_shows(a, 24, 80, "Ranks 1 of 8   FILTER rank:5");
    fixture_press(a, "O j Enter"); /* the screen is kept, its filter is another */
    fixture_shows(a, 24, 80, "Ranks 7 of 8   FILTER rank:0-4,6-7");
    fixture_press(a, "A");
    fixture_shows(a, 24, 80, "Ranks 8 of 8");
    app_free(a);
}

/* Rows as JSON have a text. */
static void check_json(const struct screen_def *screen, const struct job_shot *s, const char *want) {
    const struct job_picture picture = {.screen = screen, .json = true};
    struct strbuf out;
    strbuf_init(&out, 1 << 20);
    assert_int_equal(job_picture_put_json(&picture, s, &out), 0);
    if (!strstr(strbuf_str(&out), want))
        fail_msg("no %s in %s", want, strbuf_str(&out));
    strbuf_fini(&out);
}

/* All columns are keys, and whether it was judged is shown: without that a sign has no meaning. */
static void test_json(void **state) {
    (void)state;
    struct job_shot *s = job_fixture(JOB_FIXTURE_HUNG);
    s->ranks[0].gpu_util = 93;
    s->ranks[0].gpu_mem_mb = 62000;
    s->ranks[0].lag_ms = 12.5;
    check_json(&screen_ranks, s, "{\n  \"schema_version\": 1,\n  \"job\": \"train.py-c4f2\",");
    check_json(&screen_ranks, s, "\"lag_ms\": 12.500,");
    check_json(&screen_ranks, s, "\"gpu_util_pct\": 93.0,\n      \"gpu_mem_bytes\": 65011712000,");
    check_json(&screen_ranks, s, "\"lag_ms\": null,");
    check_json(&screen_ranks, s, "\"gpu_util_pct\": null,\n      \"gpu_mem_bytes\": null,");
    s->is_judged = true;
    check_json(
        &screen_stacks, s,
        "\"judged\": true,\n  \"verdicts\": [\n    {\n      \"code\": \"HUNG\",\n      \"level\": \"bad\",\n"
        "      \"brief\": \"HUNG RANK 5\",");
    check_json(&screen_ranks, s, "\"ranks\": \"5\"\n    }\n  ],\n  \"silent_hosts\": [],");
    job_shot_free(s);
    s = job_fixture(JOB_FIXTURE_HEALTHY);
    check_json(&screen_ranks, s, "\"judged\": false,\n  \"verdicts\": [],");
    job_shot_free(s);
}

/* Ranks without a stack are rows by their state, those of a host that gives no news a row for each host. */
static void test_ranks_without_a_stack(void **state) {
    (void)state;
    struct app *a = job_fixture_app(JOB_FIXTURE_BARE, "O", false);
    fixture_shows(a, 24, 120, "1h ? (no news: may not be read: ptrace_scope is 2)");
    fixture_shows(a, 24, 120, " - (missing: WORLD_SIZE promises it");
    fixture_shows(a, 24, 80, "Stacks   1 stack of 2 ranks");
    check_json(
        &screen_stacks, a->job.shot,
        "{\n      \"class\": null,\n      \"n\": 1,\n      \"ranks\": \"3\",\n      \"since_s\": null,\n"
        "      \"majority\": false,\n      \"state\": \"missing\",\n      \"host\": null,\n"
        "      \"note\": \"WORLD_SIZE promises it, and no process of this host is it\",\n"
        "      \"frames\": []\n    }");
    fixture_press(a, "End d"); /* it cannot be compared, and Enter shows it */
    fixture_shows(a, 24, 80, "no stack of these ranks is known");
    fixture_press(a, "Enter");
    fixture_shows(a, 24, 80, "Ranks 1 of 4   FILTER rank:3");
    app_free(a);
    a = job_fixture_app(JOB_FIXTURE_1000, "O", false);
    struct job_shot *shot = a->job.shot;
    shot->hosts[70].silent = "no relay: Connection refused";
    for (size_t i = 576; i < 584; i++) { /* another host */
        shot->ranks[i].state = FLEET_UNKNOWN;
        shot->ranks[i].class_number = -1;
        shot->ranks[i].note = "no news from its host for 9 s";
    }
    shot->hosts[72].silent = "no relay: Connection refused";
    fixture_press(a, "p O End");
    fixture_shows(a, 24, 120, " x (ended)");
    fixture_shows(a, 24, 120, " ? (gpu70: no news from its host for 12 s)");
    fixture_shows(a, 24, 120, " ? (gpu72: no news from its host for 9 s)");
    fixture_shows(a, 24, 120, "Stack of 8 ranks");
    fixture_shows(a, 24, 120, "no stack is known");
    check_json(&screen_stacks, shot, "\"ranks\": \"576-583\",\n      \"since_s\": null,\n");
    check_json(&screen_stacks, shot, "\"state\": \"no news\",\n      \"host\": \"gpu72\",\n");
    fixture_press(a, "\\ e n d e d Enter");
    fixture_shows(a, 24, 120, "x (ended)");
    fixture_hides(a, 24, 120, "gpu72");
    app_free(a);
}

/* In the cells arrows move, and Enter shows the ranks of a cell. */
static void test_cell_focus(void **state) {
    (void)state;
    struct app *a = job_fixture_app(JOB_FIXTURE_1000, "p", false);
    fixture_shows(a, 24, 80, "by rank, 4 a cell");
    fixture_press(a, "o Home Right Down");
    fixture_shows(a, 24, 80, "rank 292 to 295");
    fixture_press(a, "Enter");
    fixture_shows(a, 24, 80, "FILTER rank:292-295");
    fixture_shows(a, 24, 80, "Ranks 4 of 1000");
    app_free(a);
}

/* A key in the cells of other ranks than were drawn does nothing before these are drawn. */
static void test_cells_before_drawing(void **state) {
    (void)state;
    struct app *a = job_fixture_app(JOB_FIXTURE_64, "p", false);
    fixture_shows(a, 24, 80, "by host");
    fixture_press(a, "o End");
    fixture_shows(a, 24, 80, "Enter opens it");
    app_job_take(a, job_fixture(JOB_FIXTURE_1000));
    fixture_press(a, "Enter");
    assert_int_equal(fake_host_take().attach, 0);
    fixture_shows(a, 24, 80, "Ranks 1000 of 1000");
    fixture_shows(a, 24, 80, "4 a cell");
    fixture_press(a, "Home");
    app_job_take(a, job_fixture(JOB_FIXTURE_64));
    fixture_press(a, "Enter");
    fixture_shows(a, 24, 80, "Ranks 64 of 64");
    fixture_press(a, "Enter");
    assert_int_equal(fake_host_take().attach, 4300);
    app_free(a);
}

/* The name of a column that goes away does not move the order to another one. */
static void test_order_stays(void **state) {
    (void)state;
    struct app *a = job_fixture_app(JOB_FIXTURE_HUNG, "p > > >", false); /* after STATE: WHERE, CPU, RSS */
    fixture_shows(a, 24, 160, "sorted by RSS");
    app_job_take(a, job_fixture(JOB_FIXTURE_HEALTHY)); /* one host: no column HOST */
    fixture_shows(a, 24, 160, "sorted by RSS");
    app_job_take(a, job_fixture(JOB_FIXTURE_HUNG));
    fixture_shows(a, 24, 160, "sorted by RSS");
    app_free(a);
}

/* Ranks that stand still are judged, whatever that looks like; until then nobody says that nothing is wrong. */
static void test_standing_still(void **state) {
    static const struct {
        enum job_fixture kind;
        double still_s;
    } cases[] = {{JOB_FIXTURE_HUNG, 12},          {JOB_FIXTURE_BACKWARD, 12}, {JOB_FIXTURE_DEVICE, 12},
                 {JOB_FIXTURE_DEVICE_STEPS, 0.5}, {JOB_FIXTURE_HEALTHY, 0.3}, {JOB_FIXTURE_64, 0.3},
                 {JOB_FIXTURE_1000, 0.3}};
    struct fleet_verdict fine = {.code = FLEET_CODE_MOVING, .level = VERDICT_FINE};
    struct fleet_verdicts v = {.items = &fine, .n = 1};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct job_shot *s = job_fixture(cases[i].kind);
        assert_float_equal(s->still_s, cases[i].still_s, 0.01);
        assert_int_equal(job_judge_wants(s), cases[i].still_s > JOB_SHOT_JUDGED_S);
        job_shot_free(s);
    }
    for (enum job_fixture kind = JOB_FIXTURE_BACKWARD; kind <= JOB_FIXTURE_DEVICE; kind++) {
        struct app *a = job_fixture_app(kind, "1", false);
        fixture_shows(a, 24, 100, "not judged: ranks have had the same stack for 12s");
        fixture_hides(a, 24, 100, "worth a warning");
        struct job_shot *s = job_fixture(kind);
        job_shot_put_verdicts(s, &v);
        app_job_take(a, s);
        fixture_shows(a, 24, 100, "nothing is worth a warning; ranks have had the same stack for 12s");
        app_free(a);
    }
}

/* What is worth a warning is shown, and whom others wait for is marked, if it has a process. */
static void test_verdicts(void **state) {
    (void)state;
    struct fleet_verdict items[] = {
        {.code = FLEET_CODE_HUNG,
         .level = VERDICT_BAD,
         .brief = "HUNG RANK 2",
         .text = "ranks 0-1 wait for rank 2"},
        {.code = FLEET_CODE_HUNG, .level = VERDICT_BAD, .brief = "HUNG RANK 3", .text = "it has no process"},
        {.code = FLEET_CODE_ALL_ALIKE,
         .level = VERDICT_WARN,
         .brief = "ALL ALIKE",
         .text = "nobody is accused"},
        {.code = FLEET_CODE_MOVING, .level = VERDICT_FINE, .brief = "MOVING", .text = "fine"}};
    struct fleet_verdicts v = {.items = items, .n = 4};
    struct job_shot *s = job_fixture(JOB_FIXTURE_BARE);
    assert_int_equal(rank_set_add(&items[0].ranks, 2, 2), 0);
    assert_int_equal(rank_set_add(&items[1].ranks, 3, 3), 0);
    assert_int_equal(rank_set_add(&items[2].ranks, 0, 1), 0);
    job_shot_put_verdicts(s, &v);
    assert_int_equal(s->n_verdicts, 3);
    assert_string_equal(s->verdicts[0].brief, "HUNG RANK 2");
    assert_int_equal(s->verdicts[2].level, JOB_SHOT_WARNING);
    assert_true(rank_set_has(&s->verdicts[0].ranks, 2));
    for (int32_t r = 0; r < 4; r++)
        assert_int_equal(job_shot_find(s, r)->is_awaited, r == 2);
    for (int i = 0; i < 3; i++)
        rank_set_fini(&items[i].ranks);
    job_shot_free(s);
}

/* The stack of rank 5 beside that of the seven others; of two ranks that are tagged beside each other. */
static void test_compare(void **state) {
    struct app *a = job_fixture_app(JOB_FIXTURE_HUNG, "p d", false);
    (void)state;
    fixture_shows(a, 24, 100, "Stack of rank 5");
    fixture_shows(a, 24, 100, "Stack of 7 ranks");
    fixture_shows(a, 24, 100, "Queue.get");
    fixture_shows(a, 24, 100, "all_reduce");
    fixture_press(a, "Esc");
    fixture_hides(a, 24, 100, "Stack of 7 ranks");
    fixture_press(a, "j Space k d");
    fixture_shows(a, 24, 100, "Stack of rank 0 and 6 more");
    app_free(a);
    a = job_fixture_app(JOB_FIXTURE_HUNG, "O j d", false);
    fixture_shows(a, 24, 100, "Stack of 7 ranks");
    fixture_shows(a, 24, 100, "Stack of 1 rank");
    fixture_press(a, "d");
    fixture_hides(a, 24, 100, "Stack of 1 rank");
    /* all go through the first row */
    fixture_press(a, "k d");
    fixture_shows(a, 24, 100, "all ranks go through this");
    app_free(a);
}

static void test_no_job(void **state) {
    (void)state;
    struct app *a = job_fixture_app(JOB_FIXTURE_HUNG, "p", false);
    struct err why = {ERR_ATTACH, "no job is named 'train.py'"};
    app_job_refused(a, &why);
    fixture_shows(a, 24, 80, "no job is named 'train.py'");
    fixture_shows(a, 24, 80, "Queue.get"); /* the last ranks stay */
    app_job_take(a, job_fixture(JOB_FIXTURE_HUNG));
    fixture_hides(a, 24, 80, "no job is named");
    app_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cells),
        cmocka_unit_test(test_signs),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_filters),
        cmocka_unit_test(test_opening),
        cmocka_unit_test(test_filter_of_set),
        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_silent_hosts),
        cmocka_unit_test(test_silent_ranks),
        cmocka_unit_test(test_gpus),
        cmocka_unit_test(test_names_of_hosts),
        cmocka_unit_test(test_pace),
        cmocka_unit_test(test_elsewhere),
        cmocka_unit_test(test_offer),
        cmocka_unit_test(test_offer_of_a_launcher),
        cmocka_unit_test(test_frozen),
        cmocka_unit_test(test_cell_focus),
        cmocka_unit_test(test_ranks_of_class),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_ranks_without_a_stack),
        cmocka_unit_test(test_standing_still),
        cmocka_unit_test(test_verdicts),
        cmocka_unit_test(test_command),
        cmocka_unit_test(test_compare),
        cmocka_unit_test(test_no_job),
        cmocka_unit_test(test_order_stays),
        cmocka_unit_test(test_frozen_again),
        cmocka_unit_test(test_earlier),
        cmocka_unit_test(test_earlier_in_a_database),
        cmocka_unit_test(test_cells_before_drawing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
