/* SPDX-License-Identifier: Apache-2.0 */
/* tui_job: see tui_job.h. */
#include "unit/tui_job.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tui/core/app_job.h"
#include "tui/core/app_life.h"
#include "tui/core/app_take.h"
#include "tui/core/screen.h"
#include "unit/tui_fixture.h"
#include "unit/tui_host.h"

#define JOB_RANKS 1000
#define JOB_FRAMES 12
#define JOB_SILENT 2 /* hosts without news */

#define JOB_OWN "/home/ada/jobs/"
#define JOB_TORCH "/usr/lib/python3/dist-packages/torch/"

/* Innermost first. */
static struct model_frame job_collective[] = {
    {.kind = MODEL_FRAME_PYTHON,
     .func = "all_reduce",
     .file = JOB_TORCH "distributed/distributed_c10d.py",
     .line = 2810},
    {.kind = MODEL_FRAME_PYTHON,
     .func = "wrapper",
     .file = JOB_TORCH "distributed/c10d_logger.py",
     .line = 81},
    {.kind = MODEL_FRAME_PYTHON, .func = "backward", .file = JOB_OWN "train.py", .line = 91},
    {.kind = MODEL_FRAME_PYTHON, .func = "step", .file = JOB_OWN "train.py", .line = 88},
    {.kind = MODEL_FRAME_PYTHON, .func = "main", .file = JOB_OWN "train.py", .line = 12},
};
static struct model_frame job_backward[] = {
    {.kind = MODEL_FRAME_PYTHON,
     .func = "_engine_run_backward",
     .file = JOB_TORCH "autograd/graph.py",
     .line = 829},
    {.kind = MODEL_FRAME_PYTHON, .func = "backward", .file = JOB_TORCH "autograd/__init__.py", .line = 347},
    {.kind = MODEL_FRAME_PYTHON, .func = "Tensor.backward", .file = JOB_TORCH "_tensor.py", .line = 648},
    {.kind = MODEL_FRAME_PYTHON, .func = "step", .file = JOB_OWN "train.py", .line = 91},
    {.kind = MODEL_FRAME_PYTHON, .func = "main", .file = JOB_OWN "train.py", .line = 12},
};
static struct model_frame job_loader[] = {
    {.kind = MODEL_FRAME_PYTHON, .func = "wait", .file = "/usr/lib/python3.11/threading.py", .line = 327},
    {.kind = MODEL_FRAME_PYTHON, .func = "Queue.get", .file = "/usr/lib/python3.11/queue.py", .line = 171},
    {.kind = MODEL_FRAME_PYTHON, .func = "fetch", .file = JOB_OWN "loader.py", .line = 31},
    {.kind = MODEL_FRAME_PYTHON, .func = "step", .file = JOB_OWN "train.py", .line = 88},
    {.kind = MODEL_FRAME_PYTHON, .func = "main", .file = JOB_OWN "train.py", .line = 12},
};
static struct model_frame job_forward[] = {
    {.kind = MODEL_FRAME_PYTHON, .func = "attention", .file = JOB_OWN "model.py", .line = 210},
    {.kind = MODEL_FRAME_PYTHON, .func = "forward", .file = JOB_OWN "model.py", .line = 188},
    {.kind = MODEL_FRAME_PYTHON, .func = "step", .file = JOB_OWN "train.py", .line = 88},
    {.kind = MODEL_FRAME_PYTHON, .func = "main", .file = JOB_OWN "train.py", .line = 12},
};
static struct model_frame job_step[] = {
    {.kind = MODEL_FRAME_PYTHON, .func = "step", .file = JOB_OWN "train.py", .line = 88},
    {.kind = MODEL_FRAME_PYTHON, .func = "main", .file = JOB_OWN "train.py", .line = 12},
};
static struct model_frame job_names[] = {
    {.kind = MODEL_FRAME_PYTHON, .func = "evil\033[2Jname", .file = "/tmp/\033]0;title\007x.py", .line = 7},
    {.kind = MODEL_FRAME_PYTHON,
     .func = "\xe8\xa8\x93\xe7\xb7\xb4\xe3\x81\x99\xe3\x82\x8b",
     .file = "/tmp/\xe8\xa8\x93.py",
     .line = 12},
    {.kind = MODEL_FRAME_PYTHON,
     .func = "TheVeryLongQualifiedNameOfAnOuterClass.inner_class.method_that_never_ends_in_sight",
     .file = "/a/very/deeply/nested/folder/structure/that/goes/on/and/on/module_name.py",
     .line = 1234567},
};

static struct fleet_stack job_stacks[] = {
    {.id = 1, .frames = job_collective, .n_frames = sizeof job_collective / sizeof job_collective[0]},
    {.id = 2, .frames = job_loader, .n_frames = sizeof job_loader / sizeof job_loader[0]},
    {.id = 3, .frames = job_forward, .n_frames = sizeof job_forward / sizeof job_forward[0]},
    {.id = 4, .frames = job_names, .n_frames = sizeof job_names / sizeof job_names[0]},
    {.id = 5, .frames = job_step, .n_frames = sizeof job_step / sizeof job_step[0]},
    {.id = 6, .frames = job_backward, .n_frames = sizeof job_backward / sizeof job_backward[0]},
};
enum { JOB_COLLECTIVE, JOB_LOADER, JOB_FORWARD, JOB_NAMES, JOB_STEP, JOB_BACKWARD };

/* A rank in a collective, after some steps. */
static struct fleet_report *job_rank(struct fleet_report *r, int rank, uint32_t node, int local) {
    *r = (struct fleet_report){.node = node, .stack = &job_stacks[JOB_COLLECTIVE]};
    report_clear(&REPORT_TABLE_RANK, &r->row);
    r->row.rank = rank;
    r->row.local_rank = local;
    r->row.pid = 4300 + rank;
    r->row.taken_at = FIXTURE_EPOCH_S;
    r->row.state = "S";
    r->row.cpu_pct = 99;
    r->row.thread_cpu_pct = 2;
    r->row.rss_bytes = ((int64_t)1800 << 20) + ((int64_t)rank % 8 << 24);
    r->row.gc = 0;
    r->row.wait_kind = "collective";
    r->row.wait_what = "all_reduce of torch.distributed, group of 8";
    r->row.since = FIXTURE_EPOCH_S - 0.3;
    r->row.agent = 1;
    r->row.step = 1234;
    r->row.step_at = FIXTURE_EPOCH_S - 0.5;
    r->row.step_ms = 981 + rank % 3;
    r->row.comm_ms = 279;
    return r;
}

static void job_is_in(struct fleet_report *r, int stack, const char *kind, const char *state,
                      double since_s) {
    r->stack = &job_stacks[stack];
    r->row.wait_kind = kind;
    r->row.wait_what = NULL;
    r->row.state = state;
    r->row.since = FIXTURE_EPOCH_S - since_s;
}

/* Ranks that stand still for so long. */
static void job_stands(struct fleet_report *r, size_t n, double seconds) {
    for (size_t i = 0; i < n; i++) {
        r[i].row.since = FIXTURE_EPOCH_S - seconds;
        r[i].row.step_at = FIXTURE_EPOCH_S - seconds - 0.5;
        r[i].row.cpu_pct = 0;
    }
}

/* Nothing is known of its steps. */
static void job_has_no_agent(struct fleet_report *r) {
    r->row.agent = 0;
    r->row.step = REPORT_NO_INT;
    r->row.step_at = r->row.step_ms = r->row.comm_ms = NAN;
}

static size_t job_make(enum job_fixture kind, struct fleet_report *r) {
    size_t n = kind == JOB_FIXTURE_1000   ? 1000
               : kind == JOB_FIXTURE_64   ? 64
               : kind == JOB_FIXTURE_BARE ? 3
                                          : 8;
    uint32_t each = kind == JOB_FIXTURE_HUNG ? 4 : 8;
    for (size_t i = 0; i < n; i++)
        job_rank(&r[i], (int)i, (uint32_t)i / each, (int)(i % each));
    switch (kind) {
    case JOB_FIXTURE_HEALTHY:
        job_is_in(&r[2], JOB_FORWARD, NULL, "R", 0.1);
        job_is_in(&r[6], JOB_STEP, NULL, "R", 0.1);
        break;
    case JOB_FIXTURE_HUNG:
        job_stands(r, n, 12);
        job_is_in(&r[5], JOB_LOADER, "loader", "S", 12);
        r[5].row.step = 1233;
        break;
    case JOB_FIXTURE_BACKWARD:
    case JOB_FIXTURE_DEVICE:
    case JOB_FIXTURE_DEVICE_STEPS:
        for (size_t i = 0; i < n; i++) {
            if (kind != JOB_FIXTURE_BACKWARD)
                job_is_in(&r[i], JOB_STEP, NULL, "R", 12);
            else if (i < 3)
                job_is_in(&r[i], JOB_BACKWARD, "native lock", "S", 12);
            else
                job_is_in(&r[i], JOB_FORWARD, NULL, "R", 0.1);
            if (kind != JOB_FIXTURE_DEVICE_STEPS)
                job_has_no_agent(&r[i]);
        }
        job_is_in(&r[5], JOB_LOADER, "loader", "S", 13);
        break;
    case JOB_FIXTURE_64:
        job_is_in(&r[19], JOB_FORWARD, NULL, "R", 0.1);
        r[19].row.step_ms = 3322;
        job_is_in(&r[40], JOB_FORWARD, NULL, "T", 95);
        break;
    case JOB_FIXTURE_1000:
        job_is_in(&r[17], JOB_LOADER, "loader", "S", 12);
        r[412].row.gc = 1;
        r[705].row.state = "X";
        r[705].stack = NULL;
        for (size_t i = 560; i < 568; i++) {
            r[i].is_silent = true;
            r[i].silent_s = 12;
        }
        break;
    case JOB_FIXTURE_BARE:
        for (size_t i = 0; i < n; i++) {
            job_is_in(&r[i], JOB_STEP, NULL, "R", 3725);
            job_has_no_agent(&r[i]);
        }
        r[2].stack = NULL;
        r[2].row.cpu_pct = NAN;
        r[2].row.state = NULL;
        r[2].row.rss_bytes = REPORT_NO_INT;
        r[2].row.note = "may not be read: ptrace_scope is 2";
        break;
    case JOB_FIXTURE_SILENT:
        break;
    case JOB_FIXTURE_NAMES:
        for (size_t i = 0; i < n; i++)
            job_is_in(&r[i], JOB_NAMES, NULL, "R", 1e9);
        r[3].row.wait_kind = "collective";
        r[3].row.wait_what = "\033[31mall_reduce_of_everything_and_more";
        break;
    }
    return n;
}

static void job_judge(struct job_shot *s, enum job_fixture kind) {
    bool hung = kind == JOB_FIXTURE_HUNG;
    int32_t rank = hung ? 5 : 19;
    if (!hung && kind != JOB_FIXTURE_64)
        return;
    s->verdicts = arena_calloc(&s->arena, 1, sizeof *s->verdicts);
    assert_non_null(s->verdicts);
    s->verdicts[0] = (struct job_shot_verdict){
        .code = hung ? "HUNG" : "STRAGGLER",
        .brief = hung ? "HUNG RANK 5" : "STRAGGLER RANK 19",
        .level = hung ? JOB_SHOT_BAD : JOB_SHOT_WARNING,
        .text = hung ? "7 ranks wait for rank 5 in all_reduce #48211 (4.2 MB) for 12 s; 5: Queue.get < "
                       "loader.py:31"
                     : "own 3,043 ms, others 702, last in 94 % of 50 steps: forward"};
    assert_int_equal(rank_set_add(&s->verdicts[0].ranks, rank, rank), 0);
    s->n_verdicts = 1;
    s->ranks[rank].is_awaited = hung;
}

struct job_shot *job_fixture(enum job_fixture kind) {
    static struct fleet_report reports[JOB_RANKS];
    struct fleet_node nodes[JOB_RANKS / 8 + JOB_SILENT];
    char names[JOB_RANKS / 8 + JOB_SILENT][32];
    struct fleet fleet = {.taken_at = NAN};
    size_t n = job_make(kind, reports), n_nodes = reports[n - 1].node + 1;
    for (size_t i = 0; i < sizeof job_stacks / sizeof job_stacks[0]; i++)
        fleet_stack_describe(&job_stacks[i]);
    for (size_t i = 0; i < n_nodes; i++) {
        snprintf(names[i], sizeof names[i], kind == JOB_FIXTURE_NAMES ? "g\033[2Jpu%zu" : "gpu%zu", i);
        nodes[i] = (struct fleet_node){
            .host = names[i], .via = "local", .state = "ok", .rtt_ms = 0.1, .cost_pct = 0.2};
        report_clear(&REPORT_TABLE_JOB, &nodes[i].job);
        nodes[i].job.name = kind == JOB_FIXTURE_1000 ? "llama-71c0" : "train.py-c4f2";
        nodes[i].job.world = kind == JOB_FIXTURE_BARE ? 4 : (int64_t)n;
        nodes[i].job.missing = kind == JOB_FIXTURE_BARE ? "3" : NULL;
    }
    for (size_t i = 0; kind == JOB_FIXTURE_SILENT && i < JOB_SILENT; i++, n_nodes++) {
        snprintf(names[n_nodes], sizeof names[n_nodes], "gpu%zu", n_nodes);
        nodes[n_nodes] = (struct fleet_node){.host = names[n_nodes],
                                             .via = "ssh",
                                             .is_silent = true,
                                             .cost_pct = NAN,
                                             .seen_at = NAN,
                                             .note = i ? NULL : "no relay: \033[2JConnection refused"};
        report_clear(&REPORT_TABLE_JOB, &nodes[n_nodes].job);
        nodes[0].job.world = 8 * (int64_t)(n_nodes + 1);
    }
    assert_int_equal(fleet_build(&fleet, nodes, n_nodes, reports, n), 0);
    for (size_t i = 0; i < fleet.n_ranks; i++)
        fleet.ranks[i].own_ms = fleet.ranks[i].step_ms - fleet.ranks[i].comm_ms;
    struct job_shot *s = job_shot_new(&fleet);
    fleet_fini(&fleet);
    assert_non_null(s);
    job_judge(s, kind);
    return s;
}

void job_fixture_give(struct app *a, enum job_fixture kind) {
    app_job_watch(a, "job:train.py");
    app_job_take(a, job_fixture(kind));
}

struct app *job_fixture_app(enum job_fixture kind, const char *keys, bool ascii) {
    struct app_config config = {.ascii = ascii,
                                .delay_s = 0.25,
                                .is_utf8 = !ascii,
                                .mouse = true,
                                .job = "job:train.py",
                                .host = fake_host_begin()};
    struct app *a = app_new(&config);
    assert_non_null(a);
    app_set_time(a, FIXTURE_NOW_S, FIXTURE_EPOCH_S);
    job_fixture_give(a, kind);
    fixture_press(a, keys);
    return a;
}

struct engine_jobs job_fixture_jobs(void) {
    static const struct engine_jobs_item items[] = {
        {"llama-70b-c4f2", "ada", 1024, 128, FIXTURE_EPOCH_S - 3 * 86400.0, FIXTURE_EPOCH_S - 1, true},
        {"train.py-77aa", "bob", 8, 1, FIXTURE_EPOCH_S - 600, FIXTURE_EPOCH_S - 2, true},
        {"train.py-\xe8\xa8\x93\xe7\xb7\xb4-with-a-name-that-goes-on-and-on-and-on-until-it-is-cut", "ada",
         16, 2, FIXTURE_EPOCH_S - 90000, FIXTURE_EPOCH_S - 82800, false},
        {"sweep-12", "", -1, 1, FIXTURE_EPOCH_S - 200000, FIXTURE_EPOCH_S - 199990, false},
    };
    struct engine_jobs jobs = {.items = calloc(1, sizeof items), .n = sizeof items / sizeof *items};
    assert_non_null(jobs.items);
    memcpy(jobs.items, items, sizeof items);
    return jobs;
}

struct app *job_fixture_picker(bool ascii) {
    struct app_config config = {.ascii = ascii,
                                .delay_s = 0.25,
                                .is_utf8 = !ascii,
                                .mouse = true,
                                .job_server = "clickhouse://db.example/probing",
                                .screen = &screen_ranks,
                                .host = fake_host_begin()};
    struct app *a = app_new(&config);
    struct engine_jobs jobs = job_fixture_jobs();
    assert_non_null(a);
    app_set_time(a, FIXTURE_NOW_S, FIXTURE_EPOCH_S);
    app_take_jobs(a, &jobs, NULL);
    return a;
}
