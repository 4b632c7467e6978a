/* SPDX-License-Identifier: Apache-2.0 */
/* tui_fixture: see tui_fixture.h. */
#include "unit/tui_fixture.h"
#include "unit/tui_host.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "tui/core/app_draw.h"
#include "tui/core/screen.h"
#include "tui/core/app_input.h"
#include "tui/core/app_life.h"
#include "tui/core/app_take.h"
#include "tui/keys/input.h"

#define FIXTURE_LIMIT ((size_t)16 * 1024 * 1024)

struct fixture_frame {
    const char *func, *file;
    int line;
};

static const struct fixture_frame fixture_main[] = {
    {"linear", "/usr/lib/python3/dist-packages/torch/nn/functional.py", 125},
    {"Linear.forward", "/usr/lib/python3/dist-packages/torch/nn/modules/linear.py", 134},
    {"Module._call_impl", "/usr/lib/python3/dist-packages/torch/nn/modules/module.py", 1773},
    {"Block.forward", "/home/ada/jobs/train.py", 88},
    {"Transformer.forward", "/home/ada/jobs/train.py", 121},
    {"train_step", "/home/ada/jobs/train.py", 203},
    {"train", "/home/ada/jobs/train.py", 240},
    {"main", "/home/ada/jobs/train.py", 287},
    {"<module>", "/home/ada/jobs/train.py", 291},
};
static const struct fixture_frame fixture_feeder[] = {
    {"Condition.wait", "/usr/lib/python3.11/threading.py", 327},
    {"Queue._feed", "/usr/lib/python3.11/multiprocessing/queues.py", 231},
    {"Thread.run", "/usr/lib/python3.11/threading.py", 982},
    {"Thread._bootstrap_inner", "/usr/lib/python3.11/threading.py", 1045},
    {"Thread._bootstrap", "/usr/lib/python3.11/threading.py", 1002},
};

static struct model_thread *fixture_thread(struct model_snapshot *s, int64_t tid, const char *name,
                                           const char *native, char state, double cpu_pct) {
    struct model_thread *t = &s->threads[s->n_threads++];
    *t = (struct model_thread){
        .tid = tid, .state = state, .cpu_pct = cpu_pct, .on_cpu = cpu_pct > 0 ? 1 : 0, .gil_for_us = NAN};
    t->name = arena_strdup(&s->arena, name);
    t->native_name = arena_strdup(&s->arena, native);
    t->has_python = name != NULL;
    t->gil = t->has_python ? MODEL_GIL_NONE : MODEL_GIL_UNKNOWN;
    return t;
}

static void fixture_frames(struct model_snapshot *s, struct model_thread *t, const struct fixture_frame *f,
                           size_t n) {
    t->frames = arena_calloc(&s->arena, n, sizeof *t->frames);
    t->n_frames = n;
    for (size_t i = 0; i < n; i++)
        t->frames[i] = (struct model_frame){
            .kind = MODEL_FRAME_PYTHON, .func = f[i].func, .file = f[i].file, .line = f[i].line};
}

#define FRAMES(s, t, a) fixture_frames(s, t, a, sizeof(a) / sizeof((a)[0]))

static void fixture_normal(struct model_snapshot *s, int step) {
    struct model_thread *t = fixture_thread(s, 4242, "MainThread", "python", 'R', 97.5 + step % 3);
    FRAMES(s, t, fixture_main);
    t->frames[0].line += step % 4;
    t->gil = MODEL_GIL_HOLDING;
    t->gil_for_us = 1.4e6;
    t->gc = step % 8 == 2;
    s->gc_running = t->gc;
    t = fixture_thread(s, 4251, "QueueFeederThread", "python", 'S', 0.4);
    FRAMES(s, t, fixture_feeder);
    t->gil = MODEL_GIL_WAITING;
    t->gil_for_us = 1.32e6;
    t = fixture_thread(s, 4252, "Thread-1 (_pin_memory_loop)", "python", 'D', 0);
    FRAMES(s, t, fixture_feeder);
    t->frames[0] = (struct model_frame){MODEL_FRAME_PYTHON, "Connection._recv",
                                        "/usr/lib/python3.11/multiprocessing/connection.py", 378};
    t->torn = true;
    (void)fixture_thread(s, 4260, NULL, "pt_autograd_0", 'R', 88.1);
    (void)fixture_thread(s, 4261, NULL, "OMP worker", 'S', NAN);
    (void)fixture_thread(s, 4262, NULL, "OMP worker", 'T', 0);
    s->gil_tid = 4242;
}

static void fixture_names(struct model_snapshot *s) {
    static const struct fixture_frame frames[] = {
        {"訓練する", "/home/ada/プロジェクト/訓練.py", 12},
        {"cafe\xcc\x81_bru\xcc\x88le\xcc\x81"
         "e",
         "/tmp/caf\xc3\xa9.py", 3},
        {"evil\033[2Jname", "/tmp/\033]0;title\007x.py", 7},
        {"rtl\xe2\x80\xae"
         "drowssap",
         "/tmp/a\tb\nc.py", 1},
        {NULL, NULL, 0},
        {"broken\xff\xfe", "/tmp/\xc3(.py", 99},
    };
    struct model_thread *t = fixture_thread(s, 1, "主線程", "python", 'R', 12);
    FRAMES(s, t, frames);
    t->gil = MODEL_GIL_UNKNOWN;
    (void)fixture_thread(s, 2, "\033[31mred\033[0m\r\n", "x", 'S', 0);
    (void)fixture_thread(s, 3, "数据加载器工作线程之一二三四五六七八九十", "x", 'S', 0);
    (void)fixture_thread(s, 4, "Ünïcödé-Straße-žluťoučký-кириллица", "x", 'S', 0);
    (void)fixture_thread(s, 5, "", "\xf0\x9f\x94\xa5hot", 'S', 0);
    s->gil_tid = 1;
}

static void fixture_huge(struct model_snapshot *s) {
    static const struct fixture_frame deep = {
        "TheVeryLongQualifiedNameOfAnOuterClass.inner_class_with_a_name.method_that_never_ends_in_sight",
        "/a/very/deeply/nested/folder/structure/that/goes/on/and/on/until/the/screen/is/full/of/it/"
        "module_name.py",
        1234567};
    for (int i = 0; i < 200; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "Thread-%d (worker)", i);
        struct model_thread *t =
            fixture_thread(s, 4194000 + i, name, "python", i % 2 ? 'S' : 'R', i ? i * 51.3 : 25600);
        t->frames = arena_calloc(&s->arena, 60, sizeof *t->frames);
        t->n_frames = 60;
        t->truncated = i == 0;
        for (int k = 0; k < 60; k++)
            t->frames[k] = (struct model_frame){k == 3 ? MODEL_FRAME_NATIVE : MODEL_FRAME_PYTHON, deep.func,
                                                deep.file, deep.line + k};
    }
    s->gil_tid = 0;
    s->dropped = 18446744073709551ULL;
    s->incomplete = true;
}

static void fixture_unknown(struct model_snapshot *s) {
    for (int i = 0; i < 3; i++) {
        struct model_thread *t = fixture_thread(s, 100 + i, NULL, NULL, '?', NAN);
        t->on_cpu = MODEL_UNKNOWN;
        t->has_python = i == 0;
    }
    s->gil_tid = MODEL_UNKNOWN;
    s->gil_enabled = s->gc_running = MODEL_UNKNOWN;
}

void fixture_snapshot(struct model_snapshot *s, enum fixture_kind kind, int step) {
    memset(s, 0, sizeof *s);
    arena_init(&s->arena, FIXTURE_LIMIT);
    s->timestamp = FIXTURE_EPOCH_S - 10 + step * 0.25;
    s->seq = (uint64_t)step + 1;
    s->threads = arena_calloc(&s->arena, 256, sizeof *s->threads);
    s->cost_us = 312.5;
    s->gil_enabled = 1;
    s->process = (struct model_process){.cpu_pct = 186.4 - 40 * (step % 5),
                                        .uptime_s = 7384 + step * 0.25,
                                        .rss_bytes = 1288490189,
                                        .n_threads = 9,
                                        .agent_cpu_pct = 0.31,
                                        .agent_rss_bytes = 1992294};
    if (kind == FIXTURE_NORMAL)
        fixture_normal(s, step);
    else if (kind == FIXTURE_NAMES)
        fixture_names(s);
    else if (kind == FIXTURE_HUGE)
        fixture_huge(s);
    else
        fixture_unknown(s);
    if (kind == FIXTURE_HUGE)
        s->process =
            (struct model_process){25600.4, 86400.0 * 1234, 5497558138880LL, 123456, 99.9, 1LL << 40};
    if (kind == FIXTURE_UNKNOWN)
        s->process = (struct model_process){NAN, NAN, MODEL_UNKNOWN, MODEL_UNKNOWN, NAN, MODEL_UNKNOWN};
}

void fixture_locals(struct model_snapshot *s) {
    static struct model_local items[] = {
        {"model", "Transformer", "<__main__.Transformer object>", MODEL_LOCAL_ARGUMENT, NULL},
        {"batch", "Tensor", "Tensor[64, 512] int64 cuda:0", MODEL_LOCAL_ARGUMENT, NULL},
        {"lr", "float", "0.0003", MODEL_LOCAL_ARGUMENT, NULL},
        {"losses", "list", "[2.5, 2.25, 2.0, 1.75, 1.5, ... 95 more]", MODEL_LOCAL_VARIABLE, NULL},
        {"Größe", "str", "'\346\274\242\345\255\227 \\n \360\237\230\200'", MODEL_LOCAL_VARIABLE, NULL},
        {"evil", "Evil\033[2J", "'\033]0;title\007'", MODEL_LOCAL_CELL, NULL},
        {"gone", NULL, NULL, MODEL_LOCAL_VARIABLE, NULL},
        {"a_name_that_is_much_longer_than_the_column_for_names_is_wide", "OrderedDict",
         "OrderedDict({'embedding.weight': Parameter[50257, 768] float32 cuda:0, 'block.0.attention': "
         "Tensor[768, "
         "2304] float32 cuda:0, ... 146 more})",
         MODEL_LOCAL_FREE, NULL},
    };
    static const struct model_locals train_step = {items, sizeof items / sizeof items[0], true, 0, 0, 0, 0},
                                     none = {items, 0, false, 0, 0, 0, 0};
    fixture_snapshot(s, FIXTURE_NORMAL, 3);
    s->n_threads = 1;
    struct model_thread *t = &s->threads[0];
    t->locals = arena_calloc(&s->arena, t->n_frames, sizeof *t->locals);
    t->locals[5] = &train_step;
    t->locals[6] = &none;
}

void fixture_native(struct model_snapshot *s, enum model_native how) {
    static const struct model_frame native[] = {
        {.kind = MODEL_FRAME_NATIVE,
         .func = "mkl_blas_avx512_sgemm_kernel",
         .module = "/opt/torch/lib/libtorch_cpu.so"},
        {.kind = MODEL_FRAME_NATIVE},
        {.kind = MODEL_FRAME_NATIVE,
         .func = "at::native::addmm_impl_cpu_",
         .module = "/opt/torch/lib/libtorch_cpu.so"},
        {.kind = MODEL_FRAME_NATIVE, .module = "/opt/torch/lib/libtorch_cpu.so", .address = 0x1234ab},
        {.kind = MODEL_FRAME_NATIVE, .address = 0x7f0012345678},
        {.kind = MODEL_FRAME_NATIVE,
         .func = "torch::autograd::THPVariable_\033[2Jlinear",
         .module = "/opt/\033]0;t\007.so"},
        {.kind = MODEL_FRAME_NATIVE,
         .func = "cfunction_call",
         .file = "Objects/methodobject.c",
         .line = 542,
         .module = "/usr/lib/libpython3.11.so.1.0"},
    };
    size_t n = how == MODEL_NATIVE_UNKNOWN ? 0 : sizeof native / sizeof native[0];
    fixture_snapshot(s, FIXTURE_NORMAL, 3);
    s->n_threads = 1;
    struct model_thread *t = &s->threads[0];
    struct model_frame *frames = arena_calloc(&s->arena, t->n_frames + n, sizeof *frames);
    memcpy(frames, native, n * sizeof *native);
    memcpy(frames + n, t->frames, t->n_frames * sizeof *frames);
    t->frames = frames;
    t->n_frames += n;
    t->native = how;
}

void fixture_tasks(struct model_snapshot *s) {
    static struct model_frame fetch[] = {
        {.kind = MODEL_FRAME_PYTHON,
         .func = "Event.wait",
         .file = "/usr/lib/python3.12/asyncio/locks.py",
         .line = 212},
        {.kind = MODEL_FRAME_PYTHON,
         .func = "Prefetcher.next_batch",
         .file = "/srv/train/data.py",
         .line = 88},
        {.kind = MODEL_FRAME_PYTHON, .func = "fetch", .file = "/srv/train/data.py", .line = 120},
    };
    static struct model_frame serve[] = {
        {.kind = MODEL_FRAME_PYTHON, .func = "serve", .file = "/srv/train/metrics.py", .line = 31}};
    static struct model_frame evil[] = {
        {.kind = MODEL_FRAME_PYTHON, .func = NULL, .file = "\033[2J.py", .line = 0}};
    static uint64_t by[] = {1, 99};
    static struct model_task tasks[] = {
        {1, 4242, "Task-1", "serve", MODEL_TASK_RUNNING, false, serve, 1, NULL, 0},
        {2, 4242, "prefetch \033[31m", "fetch", MODEL_TASK_PENDING, false, fetch, 3, by, 2},
        {3, 4242, NULL, NULL, MODEL_TASK_UNKNOWN, true, evil, 1, NULL, 0},
        {4, 4300, "another thread's", "serve", MODEL_TASK_PENDING, false, serve, 1, NULL, 0},
    };
    fixture_snapshot(s, FIXTURE_NORMAL, 3);
    s->n_threads = 1;
    s->tasks = tasks;
    s->n_tasks = sizeof tasks / sizeof tasks[0];
    s->incomplete = true;
}

void fixture_target(struct model_target *t, enum fixture_kind kind) {
    memset(t, 0, sizeof *t);
    arena_init(&t->arena, FIXTURE_LIMIT);
    *t = (struct model_target){
        .arena = t->arena, .pid = 4242, .uid = 1000, .host = "node7", .started_at = NAN};
    t->rank = MODEL_UNKNOWN;
    if (kind == FIXTURE_UNKNOWN) {
        t->mode = MODEL_MODE_READONLY;
        t->host = NULL;
        return;
    }
    t->cmdline = kind == FIXTURE_NAMES ? "python \033[2J訓練.py --名前 値"
                                       : "python train.py --epochs 10 --batch-size 64";
    t->exe = "/usr/bin/python3.11";
    t->python = "3.11.7";
    t->torch = "2.13.0";
    t->rank = kind == FIXTURE_HUGE ? 4095 : 3;
}

static struct target_process fixture_process(pid_t pid, const char *user, double cpu, int64_t rss,
                                             const char *python, const char *torch, double uptime,
                                             const char *cmdline) {
    struct target_process p = {
        .pid = pid, .cpu_pct = cpu, .rss_bytes = rss, .uptime_s = uptime, .inspectable = true};
    (void)snprintf(p.user, sizeof p.user, "%s", user);
    (void)snprintf(p.python, sizeof p.python, "%s", python);
    (void)snprintf(p.torch, sizeof p.torch, "%s", torch);
    p.cmdline = strdup(cmdline);
    return p;
}

struct target_process *fixture_processes(size_t *n) {
    struct target_process *list = calloc(4, sizeof *list);
    if (!list)
        return NULL;
    list[0] = fixture_process(812, "root", 0.1, 21 << 20, "3.11", "", 864000,
                              "/usr/bin/python3 /usr/sbin/service --daemon");
    list[0].inspectable = false;
    (void)snprintf(list[0].why_not, sizeof list[0].why_not, "it belongs to root: run as root");
    list[1] = fixture_process(4242, "ada", 186.4, 1288490189, "3.11", "2.13.0", 7384,
                              "python train.py --epochs 10 --batch-size 64");
    list[1].attached = true;
    list[2] = fixture_process(5001, "ada", 12.25, 734003200, "3.12", "", 61, "python -m notebook 訓練");
    list[3] = fixture_process(5002, "ada", NAN, MODEL_UNKNOWN, "", "", NAN, "python \033[31mevil");
    *n = 4;
    return list;
}

/* How often each stack is sampled in a batch. */
static const struct fixture_share {
    int64_t tid;
    uint32_t stack;
    int n, on_cpu;
} fixture_shares[] = {{4242, 7, 9, 9},  {4242, 8, 5, 5},   {4242, 9, 3, 3},  {4242, 2, 1, 0},
                      {4242, 10, 6, 6}, {4251, 12, 24, 1}, {4252, 0, 24, 0}, {4253, 14, 1, 1}};

static struct model_frame_def fixture_frame_defs[] = {
    {1, {.kind = MODEL_FRAME_PYTHON, .func = "<module>", .file = "/home/ada/jobs/train.py", .line = 291}},
    {2, {.kind = MODEL_FRAME_PYTHON, .func = "main", .file = "/home/ada/jobs/train.py", .line = 287}},
    {3, {.kind = MODEL_FRAME_PYTHON, .func = "train_step", .file = "/home/ada/jobs/train.py", .line = 203}},
    {4,
     {MODEL_FRAME_PYTHON, "Module._call_impl", "/usr/lib/python3/dist-packages/torch/nn/modules/module.py",
      1773}},
    {5, {.kind = MODEL_FRAME_PYTHON, .func = "Block.forward", .file = "/home/ada/jobs/train.py", .line = 88}},
    {6,
     {.kind = MODEL_FRAME_PYTHON,
      .func = "linear",
      .file = "/usr/lib/python3/dist-packages/torch/nn/functional.py",
      .line = 125}},
    {7, {.kind = MODEL_FRAME_PYTHON, .func = "train_step", .file = "/home/ada/jobs/train.py", .line = 207}},
    {8,
     {.kind = MODEL_FRAME_PYTHON,
      .func = "AdamW.step",
      .file = "/usr/lib/python3/dist-packages/torch/optim/adamw.py",
      .line = 77}},
    {9,
     {.kind = MODEL_FRAME_PYTHON,
      .func = "Queue._feed",
      .file = "/usr/lib/python3.11/multiprocessing/queues.py",
      .line = 231}},
    {10,
     {.kind = MODEL_FRAME_PYTHON,
      .func = "Condition.wait",
      .file = "/usr/lib/python3.11/threading.py",
      .line = 327}},
    {11,
     {.kind = MODEL_FRAME_PYTHON,
      .func = "evil\033[2J\xff 訓練する",
      .file = "/tmp/\033]0;t\007\n.py",
      .line = 7}},
    {12, {MODEL_FRAME_PYTHON, NULL, NULL, 0}},
};

/* <module> > main > train_step > _call_impl > forward > _call_impl > linear, and what else there is. */
static struct model_stack_def fixture_stack_defs[] = {
    {1, 0, 1}, {2, 1, 2}, {3, 2, 3},  {4, 3, 4},  {5, 4, 5},    {6, 5, 4},   {7, 6, 6},
    {8, 5, 6}, {9, 2, 7}, {10, 9, 8}, {11, 0, 9}, {12, 11, 10}, {13, 0, 12}, {14, 13, 11}};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

void fixture_samples(struct app *a, int batches) {
    struct model_thread_def threads[] = {
        {4242, "MainThread", "python"}, {4251, "QueueFeederThread", NULL}, {4253, "\033[31mred", NULL}};
    struct model_sample samples[128];
    for (int i = 0; i < batches; i++) {
        size_t n = 0, looks[8] = {0}; /* of a thread, in this batch */
        for (size_t k = 0; k < COUNT(fixture_shares); k++)
            for (int j = 0; j < fixture_shares[k].n; j++)
                samples[n++] = (struct model_sample){
                    .timestamp = a->epoch_s + 0.010416 * (double)looks[fixture_shares[k].tid % 8]++,
                    .tid = fixture_shares[k].tid,
                    .stack_id = fixture_shares[k].stack,
                    .on_cpu = j < fixture_shares[k].on_cpu,
                    .gil = k < 2 ? MODEL_GIL_HOLDING : MODEL_GIL_NONE,
                    .gc = k == 1 && j == 0,
                    .torn = i % 8 == 7 && k == 0 && j == 3};
        struct model_sample_batch b = {
            .epoch = 1, .period_us = 10416, .dropped = (uint64_t)i / 8, .cost_pct = 0.42, .budget_pct = 1};
        b.frames = fixture_frame_defs;
        b.n_frames = COUNT(fixture_frame_defs);
        b.stacks = fixture_stack_defs;
        b.n_stacks = COUNT(fixture_stack_defs);
        b.threads = threads;
        b.n_threads = COUNT(threads);
        b.samples = samples;
        b.n_samples = n;
        app_set_time(a, a->now_s + 0.25, a->epoch_s + 0.25);
        app_take_samples(a, &b);
    }
}

struct app *fixture_app(enum fixture_kind kind, int steps, bool ascii) {
    struct app_config config = {
        .delay_s = 0.25, .ascii = ascii, .mouse = true, .screen = &screen_threads, .host = fake_host_begin()};
    struct app *a = app_new(&config);
    if (!a)
        return NULL;
    app_set_time(a, FIXTURE_NOW_S, FIXTURE_EPOCH_S);
    struct model_target t;
    fixture_target(&t, kind);
    app_take_target(a, &t);
    app_set_state(a, SESSION_CONNECTED, NULL, 0);
    for (int i = 0; i < steps; i++) {
        struct model_snapshot s;
        fixture_snapshot(&s, kind, i);
        app_take_snapshot(a, &s);
    }
    return a;
}

struct app *fixture_picker(bool ascii) {
    struct app_config config = {.delay_s = 0.25,
                                .ascii = ascii,
                                .mouse = true,
                                .pick = true,
                                .screen = &screen_threads,
                                .host = fake_host_begin()};
    struct app *a = app_new(&config);
    size_t n = 0;
    if (!a)
        return NULL;
    app_set_time(a, FIXTURE_NOW_S, FIXTURE_EPOCH_S);
    struct target_process *list = fixture_processes(&n);
    app_take_processes(a, list, n, "");
    return a;
}

void fixture_shows(struct app *a, int rows, int cols, const char *what) {
    const char *screen = fixture_draw(a, rows, cols);
    if (!strstr(screen, what))
        fail_msg("'%s' is not on the screen:\n%s", what, screen);
}

void fixture_hides(struct app *a, int rows, int cols, const char *what) {
    const char *screen = fixture_draw(a, rows, cols);
    if (strstr(screen, what))
        fail_msg("'%s' is on the screen:\n%s", what, screen);
}

void fixture_press(struct app *a, const char *keys) {
    char copy[512], *save = NULL;
    (void)snprintf(copy, sizeof copy, "%s", keys);
    for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        if (*word != '"') {
            app_input_key(a, input_key_parse(word));
            continue;
        }
        for (const char *p = word + 1; *p;) {
            uint32_t cp;
            p += text_utf8_next(p, strlen(p), &cp);
            app_input_key(a, cp);
        }
    }
}

const char *fixture_draw(struct app *a, int rows, int cols) {
    static char text[200000];
    struct grid g;
    size_t used = 0;
    assert_int_equal(grid_init(&g, rows, cols), 0);
    app_draw(a, &g);
    for (int y = 0; y < rows; y++) {
        grid_row_text(&g, grid_rect(&g), y, text + used, sizeof text - used - 1, NULL);
        used += strlen(text + used);
        text[used++] = '\n';
    }
    text[used] = '\0';
    grid_fini(&g);
    return text;
}
