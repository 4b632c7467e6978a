/* SPDX-License-Identifier: Apache-2.0 */
/*
 * children: see children.h.
 *
 * The lower part of struct children belongs to the thread alone. A process is identified by pid
 * and start time. The thread searches for its interpreter once, and again if it could not be
 * found or its data are no longer valid (the process has become another program).
 */
#include "client/session/children.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cost.h"
#include "base/endpoint.h"
#include "base/procfs.h"
#include "base/strbuf.h"
#include "base/work.h"
#include "client/session/outside.h"
#include "pystack/pystack.h"

#define CHILDREN_INTERVAL_NS CLOCK_NS_PER_S
#define CHILDREN_SELDOM_NS (10 * CLOCK_NS_PER_S)
/* between two attempts to find the interpreter of a Python process */
#define CHILDREN_RETRY_NS CLOCK_NS_PER_S
/* between two checks whether another process has become a Python */
#define CHILDREN_OTHERS_NS (3 * CLOCK_NS_PER_S)
#define CHILDREN_DESCRIPTION_MAX ((size_t)4096)
#define CHILDREN_MAX_PIDS 65536
#define CHILDREN_MAX_BELOW 1024 /* descendants of any kind that are checked */
#define CHILDREN_CMDLINE_MAX 4096
#define CHILDREN_STOP_S 2
#define CHILDREN_OURS "probing-" /* prefix of the names of an agent's threads */

/* A known descendant. */
struct children_known {
    pid_t pid, parent; /* parent: of any kind */
    uint64_t start_ticks;
    bool seen;     /* in this round */
    int is_python; /* -1 not checked yet */
    uint64_t looked_ns;
    struct pystack *ps;
    struct err why;
};

struct children {
    struct work work;
    pid_t pid;
    /* Under the lock. */
    enum children_pace pace;
    struct children_list list;
    bool is_new;
    /* ---- the thread's alone ---- */
    struct children_known known[CHILDREN_MAX_BELOW];
    size_t n_known;
    struct cost cost;
};

void children_list_fini(struct children_list *l) {
    for (size_t i = 0; i < l->n; i++) {
        free(l->items[i].cmdline);
        model_snapshot_fini(&l->items[i].snapshot);
    }
    free(l->items);
    *l = (struct children_list){0};
}

/* ---- finding the processes ---- */

struct children_link {
    pid_t pid, parent;
    uint64_t start_ticks;
    bool below;
};

/* Read every process and its parent. Returns the number; 0 also without memory. */
static size_t children_read_links(struct children_link **out) {
    struct procfs_stat st;
    size_t n = 0;
    pid_t *pids = calloc(CHILDREN_MAX_PIDS, sizeof *pids);
    ssize_t found = pids ? procfs_list_pids(pids, CHILDREN_MAX_PIDS) : -1;
    size_t n_pids = found < 0 ? 0 : found > CHILDREN_MAX_PIDS ? CHILDREN_MAX_PIDS : (size_t)found;
    struct children_link *links = calloc(n_pids + 1, sizeof *links);
    for (size_t i = 0; links && i < n_pids; i++)
        if (procfs_read_stat(pids[i], 0, &st) == 0 && st.state != 'Z' && st.state != 'X')
            links[n++] = (struct children_link){pids[i], (pid_t)st.ppid, st.start_ticks, false};
    free(pids);
    *out = links;
    return n;
}

static int children_compare_links(const void *a, const void *b) {
    pid_t x = ((const struct children_link *)a)->pid, y = ((const struct children_link *)b)->pid;
    return (x > y) - (x < y);
}

/* Mark all processes below `pid`. A parent's id may be larger than its child's, so repeat until
 * nothing changes. */
static void children_mark(struct children_link *links, size_t n, pid_t pid) {
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < n; i++) {
            struct children_link key = {.pid = links[i].parent};
            const struct children_link *parent =
                bsearch(&key, links, n, sizeof *links, children_compare_links);
            bool below = links[i].parent == pid || (parent && parent->below);
            changed |= below && !links[i].below;
            links[i].below |= below;
        }
    }
}

static void children_forget(struct children *c, size_t i) {
    pystack_close(c->known[i].ps);
    c->known[i] = c->known[--c->n_known];
}

static struct children_known *children_find(struct children *c, const struct children_link *l) {
    for (size_t i = 0; i < c->n_known; i++)
        if (c->known[i].pid == l->pid && c->known[i].start_ticks == l->start_ticks)
            return &c->known[i];
    if (c->n_known == CHILDREN_MAX_BELOW)
        return NULL;
    c->known[c->n_known] =
        (struct children_known){.pid = l->pid, .start_ticks = l->start_ticks, .is_python = -1};
    return &c->known[c->n_known++];
}

static void children_scan(struct children *c) {
    struct children_link *links;
    size_t n = children_read_links(&links);
    for (size_t i = 0; i < c->n_known; i++)
        c->known[i].seen = false;
    children_mark(links, n, c->pid);
    for (size_t i = 0; i < n; i++) {
        struct children_known *k = links[i].below ? children_find(c, &links[i]) : NULL;
        if (!k)
            continue;
        k->seen = true;
        k->parent = links[i].parent;
    }
    free(links);
    for (size_t i = c->n_known; i-- > 0;)
        if (!c->known[i].seen)
            children_forget(c, i);
}

/* The nearest ancestor that is a Python process, too; otherwise the target. */
static pid_t children_parent(const struct children *c, const struct children_known *k) {
    pid_t at = k->parent;
    for (size_t up = 0; up < c->n_known; up++) {
        const struct children_known *found = NULL;
        for (size_t i = 0; i < c->n_known && !found; i++)
            found = c->known[i].pid == at ? &c->known[i] : NULL;
        if (!found || found->is_python == 1)
            return found ? at : c->pid;
        at = found->parent;
    }
    return c->pid;
}

/* ---- reading them ---- */

/* The known facts of a process that cannot be read. */
static void children_describe(pid_t pid, struct model_snapshot *out) {
    struct procfs_status st;
    *out = (struct model_snapshot){.timestamp = clock_epoch_s(), .gil_tid = MODEL_UNKNOWN, .cost_us = NAN};
    out->gil_enabled = out->gc_running = MODEL_UNKNOWN;
    arena_init(&out->arena, CHILDREN_DESCRIPTION_MAX);
    if (procfs_read_status(pid, 0, &st) != 0)
        return;
    struct model_thread *t = arena_alloc(&out->arena, sizeof *t);
    if (!t)
        return;
    *t = (struct model_thread){.tid = st.ns_pid,
                               .native_name = arena_strdup(&out->arena, st.name),
                               .state = st.state,
                               .on_cpu = MODEL_UNKNOWN,
                               .cpu_pct = NAN,
                               .gil_for_us = NAN,
                               .gc = MODEL_UNKNOWN,
                               .has_python = true};
    out->threads = t;
    out->n_threads = 1;
}

/* Remove an agent's threads. True if any of the other threads has Python. */
static bool children_leave_out_ours(struct model_snapshot *s) {
    size_t n = 0;
    bool any = false;
    for (size_t i = 0; i < s->n_threads; i++) {
        const char *name = s->threads[i].native_name;
        if (!s->threads[i].has_python && name && strncmp(name, CHILDREN_OURS, sizeof CHILDREN_OURS - 1) == 0)
            continue;
        any |= s->threads[i].has_python;
        s->threads[n++] = s->threads[i];
    }
    s->n_threads = n;
    return any;
}

/* If it is time, check whether it is a Python process, and find its interpreter. */
static void children_open(struct children_known *k) {
    uint64_t now = clock_mono_ns();
    uint64_t pause = k->is_python == 1 ? CHILDREN_RETRY_NS : CHILDREN_OTHERS_NS;
    if (k->ps || (k->looked_ns && now - k->looked_ns < pause))
        return;
    k->looked_ns = now;
    k->is_python = pystack_is_python(k->pid) == 1;
    k->why = (struct err){0};
    if (k->is_python == 1)
        k->ps = pystack_open(k->pid, &k->why);
}

static void children_read(struct children_known *k, struct children_process *out) {
    struct err e;
    out->why = k->why;
    if (k->ps && pystack_snapshot(k->ps, NULL, 0, &out->snapshot, &e) == 0) {
        if (children_leave_out_ours(&out->snapshot))
            return;
        err_set(&e, ERR_FAILED, "process %d has no Python thread at the moment", (int)k->pid);
    } else if (!k->ps) {
        children_describe(k->pid, &out->snapshot);
        return;
    }
    /* It is ending, or has become another program: check again. */
    pystack_close(k->ps);
    k->ps = NULL;
    k->looked_ns = 0;
    out->why = e;
    model_snapshot_fini(&out->snapshot);
    children_describe(k->pid, &out->snapshot);
}

static bool children_has_agent(pid_t pid) {
    char path[ENDPOINT_PATH_MAX];
    return endpoint_path_from_outside(path, sizeof path, pid, NULL) == 0 && endpoint_probe(path) == 1;
}

static char *children_cmdline(pid_t pid) {
    struct strbuf text;
    strbuf_init(&text, CHILDREN_CMDLINE_MAX);
    procfs_read_cmdline(pid, &text);
    char *copy = strdup(strbuf_str(&text));
    strbuf_fini(&text);
    return copy;
}

/* Sort the list by the tree, with the target at its top. */
static void children_arrange(struct children_list *l, pid_t target) {
    struct target_process facts[CHILDREN_MAX + 1] = {{.pid = target}};
    const struct target_process *rows[CHILDREN_MAX + 1] = {&facts[0]};
    struct target_tree_row tree[CHILDREN_MAX + 1];
    struct children_process sorted[CHILDREN_MAX];
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++) {
        facts[i + 1].pid = l->items[i].pid;
        facts[i + 1].parent = l->items[i].parent;
        rows[i + 1] = &facts[i + 1];
    }
    target_tree_arrange(rows, l->n + 1, tree);
    for (size_t i = 0; i <= l->n; i++) {
        size_t from = (size_t)(tree[i].process - facts);
        if (from == 0)
            continue;
        sorted[n] = l->items[from - 1];
        sorted[n].tree = tree[i];
        sorted[n++].tree.process = NULL;
    }
    memcpy(l->items, sorted, n * sizeof *sorted);
}

static void children_poll(struct children *c, struct children_list *l) {
    children_scan(c);
    l->items = calloc(CHILDREN_MAX, sizeof *l->items);
    for (size_t i = 0; l->items && i < c->n_known; i++) {
        struct children_known *k = &c->known[i];
        children_open(k);
        if (k->is_python != 1)
            continue;
        if (l->n == CHILDREN_MAX) {
            l->left_out++;
            continue;
        }
        struct children_process *p = &l->items[l->n++];
        *p = (struct children_process){.pid = k->pid, .cmdline = children_cmdline(k->pid)};
        p->attached = children_has_agent(k->pid);
        children_read(k, p);
    }
    for (size_t i = 0; i < c->n_known; i++)
        for (size_t j = 0; j < l->n; j++)
            if (l->items[j].pid == c->known[i].pid)
                l->items[j].parent = children_parent(c, &c->known[i]);
    if (l->n > 0)
        children_arrange(l, c->pid);
}

/* ---- the thread ---- */

/* Publish a list; it replaces one that was not taken. */
static void children_publish(struct children *c, struct children_list *l) {
    work_lock(&c->work);
    struct children_list old = c->list;
    c->list = *l;
    c->is_new = true;
    work_unlock(&c->work);
    children_list_fini(&old);
    work_notify(&c->work);
}

/* Wait until it is time for the next round, by the current pace. True if the thread is to end. */
static bool children_wait(struct children *c, uint64_t wait_ns) {
    uint64_t looked_ns = clock_mono_ns();
    work_lock(&c->work);
    while (!c->work.stop) {
        uint64_t pause_ns =
            c->pace == CHILDREN_SELDOM && wait_ns < CHILDREN_SELDOM_NS ? CHILDREN_SELDOM_NS : wait_ns;
        if (!work_wait(&c->work, c->pace == CHILDREN_STILL ? WORK_FOREVER : looked_ns + pause_ns))
            break;
    }
    bool stop = c->work.stop;
    work_unlock(&c->work);
    return stop;
}

void children_set_pace(struct children *c, enum children_pace pace) {
    if (!c)
        return;
    work_lock(&c->work);
    c->pace = pace;
    work_wake(&c->work);
    work_unlock(&c->work);
}

static void children_run(void *arg) {
    struct children *c = arg;
    bool stretched;
    for (;;) {
        struct children_list l = {0};
        uint64_t cpu = clock_self_cpu_ns();
        children_poll(c, &l);
        cost_add(&c->cost, clock_self_cpu_ns() - cpu);
        children_publish(c, &l);
        if (children_wait(c,
                          cost_interval_ns(&c->cost, CHILDREN_INTERVAL_NS, OUTSIDE_BUDGET_PCT, &stretched)))
            return;
    }
}

static void children_free(struct children *c) {
    for (size_t i = 0; i < c->n_known; i++)
        pystack_close(c->known[i].ps);
    children_list_fini(&c->list);
    free(c);
}

struct children *children_start(pid_t pid, struct err *e) {
    struct children *c = calloc(1, sizeof *c);
    if (!c) {
        err_set(e, ERR_FAILED, "out of memory for the list of children");
        return NULL;
    }
    c->pid = pid;
    int rc = work_init(&c->work);
    if (rc == 0)
        rc = work_start(&c->work, children_run, c);
    if (rc == 0)
        return c;
    err_set_errno(e, ERR_FAILED, rc, "cannot look for the children of process %d", (int)pid);
    children_stop(c);
    return NULL;
}

void children_stop(struct children *c) {
    if (c && work_stop(&c->work, CHILDREN_STOP_S))
        children_free(c);
}

int children_fd(const struct children *c) { return c->work.fd; }

bool children_take(struct children *c, struct children_list *out) {
    work_clear(&c->work);
    work_lock(&c->work);
    bool is_new = c->is_new;
    if (is_new) {
        *out = c->list;
        c->list = (struct children_list){0};
        c->is_new = false;
    }
    work_unlock(&c->work);
    return is_new;
}
