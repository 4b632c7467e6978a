/* SPDX-License-Identifier: Apache-2.0 */
/* tui_children: see tui_children.h. */
#include "unit/tui_children.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit/tui_fixture.h"

#define CHILDREN_LIMIT (1U << 20)

static struct children_process *add_child(struct children_list *l, pid_t pid, const char *cmdline, int depth,
                                          uint32_t last) {
    struct children_process *p = &l->items[l->n++];
    *p = (struct children_process){
        .pid = pid, .cmdline = strdup(cmdline), .tree = {.depth = depth, .last = last}};
    p->snapshot.gil_enabled = 1;
    arena_init(&p->snapshot.arena, CHILDREN_LIMIT);
    p->snapshot.threads = arena_calloc(&p->snapshot.arena, 4, sizeof *p->snapshot.threads);
    return p;
}

static void add_thread(struct children_process *p, int64_t tid, const char *name, char state, double cpu,
                       const char *func, const char *file, int line) {
    struct model_snapshot *s = &p->snapshot;
    struct model_thread *t = &s->threads[s->n_threads++];
    *t = (struct model_thread){.tid = tid,
                               .name = name,
                               .native_name = "pt_data_worker",
                               .state = state,
                               .on_cpu = state == 'R',
                               .cpu_pct = cpu,
                               .gil_for_us = NAN,
                               .has_python = true,
                               .gil = MODEL_GIL_NONE};
    if (!func)
        return;
    t->frames = arena_calloc(&s->arena, 1, sizeof *t->frames);
    t->n_frames = 1;
    t->frames[0] = (struct model_frame){MODEL_FRAME_PYTHON, func, file, line};
}

void fixture_children(struct children_list *l, int step) {
    static const char loader[] = "/usr/lib/python3/dist-packages/torch/utils/data/_utils/worker.py";
    *l = (struct children_list){.items = calloc(4, sizeof *l->items)};
    struct children_process *p = add_child(l, 4301, "python train.py --epochs 10 --batch-size 64", 1, 0);
    add_thread(p, 4301, "MainThread", 'R', 55.5, "__getitem__", "/home/ada/jobs/train.py", 44 + step);
    add_thread(p, 4305, "QueueFeederThread", 'S', 0.25, "Queue._feed",
               "/usr/lib/python3.11/multiprocessing/queues.py", 231);
    p = add_child(l, 4303, "/usr/bin/python3 -m tokenizer 訓練", 2, 1U << 2);
    p->attached = true;
    add_thread(p, 4303, "MainThread", 'S', 0, "serve", "/home/ada/jobs/tokenizer.py", 9);
    p = add_child(l, 4302, "python train.py --epochs 10 --batch-size 64", 1, 0);
    add_thread(p, 4302, "MainThread", 'S', 0, "_worker_loop", loader, 317);
    p = add_child(l, 4304, "python \033[31mevil", 1, 1U << 1);
    (void)err_set(&p->why, ERR_ATTACH, "process 4304 does not let itself be looked at: run this as root");
    add_thread(p, 4304, NULL, 'S', NAN, NULL, NULL, 0);
    p->snapshot.threads[0].gil = MODEL_GIL_UNKNOWN;
}

static struct target_process family_process(pid_t pid, pid_t parent, double cpu, const char *cmdline) {
    struct target_process p = {.pid = pid,
                               .parent = parent,
                               .cpu_pct = cpu,
                               .rss_bytes = 300 << 20,
                               .uptime_s = 60,
                               .inspectable = true,
                               .cmdline = strdup(cmdline)};
    (void)snprintf(p.user, sizeof p.user, "ada");
    (void)snprintf(p.python, sizeof p.python, "3.11");
    return p;
}

struct target_process *fixture_family(size_t *n) {
    struct target_process *list = calloc(6, sizeof *list);
    if (!list)
        return NULL;
    list[0] = family_process(812, 0, 0.1, "/usr/bin/python3 /usr/sbin/service --daemon");
    list[1] = family_process(900, 812, 99, "python job.py");
    list[2] = family_process(4242, 0, 50, "torchrun train.py");
    list[3] = family_process(4301, 4242, 20, "python train.py");
    list[4] = family_process(4302, 4242, 70, "python train.py");
    list[5] = family_process(4303, 4302, 1, "python train.py");
    list[4].attached = true;
    *n = 6;
    return list;
}
