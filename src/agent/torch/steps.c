/* SPDX-License-Identifier: Apache-2.0 */
/* steps: see steps.h. Names: torch/optim/optimizer.py (profile_hook_step, zero_grad),
 * torch/utils/data/dataloader.py (__next__), torch/nn/parallel/distributed.py (forward),
 * torch/csrc/distributed/c10d (titles of collectives: "nccl:all_reduce"). */
#include "agent/torch/steps.h"

#include <string.h>

#include "base/clock.h"

/* Optimizer.step within one batch: the loader is not the one of the training */
#define STEPS_MANY 16
/* after such a pause another thread may be the one that trains */
#define STEPS_THREAD_NS (10 * CLOCK_NS_PER_S)

const char *const steps_kind_names[STEPS_KINDS + 1] = {
    [STEPS_USER] = "user", [STEPS_OPTIMIZER] = "optimizer",  [STEPS_LOADER] = "loader", [STEPS_COMM] = "comm",
    [STEPS_DDP] = "ddp",   [STEPS_CHECKPOINT] = "checkpoint"};

/* Prefixes of names. ProcessGroupNCCL calls the end of its operations when it has enqueued them
 * (recordFunctionEndCallback_), and so does XCCL. */
static const struct steps_name {
    const char *prefix;
    enum steps_kind kind;
    bool enqueues;
} steps_names[] = {
    {STEPS_STEP, STEPS_OPTIMIZER, false},
    {"Optimizer.zero_grad#", STEPS_OPTIMIZER, false},
    {"enumerate(DataLoader)#", STEPS_LOADER, false},
    {"DistributedDataParallel.forward", STEPS_DDP, false},
    {"nccl:", STEPS_COMM, true},
    {"gloo:", STEPS_COMM, false},
    {"mpi:", STEPS_COMM, false},
    {"ucc:", STEPS_COMM, false},
    {"xccl:", STEPS_COMM, true},
};

static bool steps_begins(const char *name, const char *prefix) {
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

static const struct steps_name *steps_find_name(const char *name) {
    static const struct steps_name other = {"", STEPS_USER, false};
    for (size_t i = 0; i < sizeof steps_names / sizeof steps_names[0]; i++)
        if (steps_begins(name, steps_names[i].prefix))
            return &steps_names[i];
    return &other;
}

bool steps_is_in_backward(const char *name) {
    return steps_find_name(name)->kind == STEPS_COMM || strstr(name, "backward") ||
           steps_begins(name, "FSDP::all_gather");
}

void steps_init(struct steps *s) { *s = (struct steps){.count = 0}; }

void steps_expect(struct steps *s, uint64_t lost) { s->lost = lost; }

/* ---- a step ---- */

static void steps_start(struct steps *s, uint64_t ns, bool whole) {
    s->now = (struct steps_now){.whole = whole, .begin_ns = ns, .forward_from_ns = ns};
}

/* Events of the current step are missing. */
static void steps_forget(struct steps *s) {
    memset(s->open, 0, sizeof s->open);
    s->going_comm = 0;
    steps_start(s, 0, false);
}

/* The times since the last Optimizer.step are also of this step. */
static void steps_commit(struct steps_now *n) {
    n->sums.data_ns += n->rest.data_ns;
    n->sums.forward_ns += n->rest.forward_ns;
    n->sums.backward_ns += n->rest.backward_ns;
    n->sums.optimizer_ns += n->rest.optimizer_ns;
    n->sums.comm_ns += n->rest.comm_ns;
    n->sums.gc_ns += n->rest.gc_ns;
    n->sums.odd = n->sums.odd || n->rest.odd;
    n->sums.blind = n->sums.blind || n->rest.blind;
    n->rest = (struct steps_sums){.odd = false};
}

/* Count current collectives up to `ns`. */
static void steps_count_comm(struct steps *s, uint64_t ns) {
    if (s->going_comm && ns > s->comm_from_ns) {
        s->now.rest.comm_ns += (int64_t)(ns - s->comm_from_ns);
        s->comm_from_ns = ns;
    }
}

static void steps_fill(const struct steps *s, struct steps_step *out) {
    const struct steps_now *n = &s->now;
    const struct steps_sums *sums = &n->sums;
    out->duration_ns = (int64_t)(n->optimized_ns - n->begin_ns);
    out->optimizer_ns = sums->optimizer_ns;
    if (s->has_loader)
        out->data_ns = sums->data_ns;
    if (s->has_comm && !sums->blind)
        out->comm_ns = sums->comm_ns;
    if (s->gc_since_ns && n->begin_ns >= s->gc_since_ns)
        out->gc_ns = sums->gc_ns;
    if (!s->backward_since_ns || n->begin_ns < s->backward_since_ns || sums->odd || sums->backward_ns == 0)
        return;
    out->forward_ns = sums->forward_ns;
    out->backward_ns = sums->backward_ns;
    int64_t known = sums->data_ns + sums->forward_ns + sums->backward_ns + sums->optimizer_ns;
    out->other_ns = out->duration_ns > known ? out->duration_ns - known : 0;
}

/* If the job has computed no norm, it is that of the read gradients: with several optimizers
 * those of one are not all. */
static void steps_fill_norm(const struct steps_now *n, struct spans_reading *out) {
    if (out->has_grad_norm || !out->has_read_norm || n->ended != 1)
        return;
    out->grad_norm = out->read_norm;
    out->has_grad_norm = true;
}

/* The current step is over: it ended with its last Optimizer.step. */
static void steps_finish(struct steps *s, const struct steps_handler *h) {
    struct steps_now before = s->now;
    struct steps_step out = {.step = ++s->count,
                             .end_ns = before.optimized_ns,
                             .duration_ns = STEPS_UNKNOWN,
                             .data_ns = STEPS_UNKNOWN,
                             .forward_ns = STEPS_UNKNOWN,
                             .backward_ns = STEPS_UNKNOWN,
                             .optimizer_ns = STEPS_UNKNOWN,
                             .comm_ns = STEPS_UNKNOWN,
                             .other_ns = STEPS_UNKNOWN,
                             .gc_ns = STEPS_UNKNOWN,
                             .reading = before.reading};
    if (before.whole) {
        steps_fill(s, &out);
        steps_fill_norm(&before, &out.reading);
    }
    s->has_backward =
        s->has_backward || (before.whole && s->backward_since_ns && before.begin_ns >= s->backward_since_ns);
    s->per_step = before.ended;
    h->on_step(h->arg, &out);
    steps_start(s, before.optimized_ns, true);
    s->now.rest = before.rest;
    s->now.forward_from_ns = before.forward_from_ns;
    s->now.backward_from_ns = before.backward_from_ns;
}

/* ---- operations on the thread that trains ---- */

static void steps_fetch_begins(struct steps *s, const struct steps_handler *h) {
    s->has_loader = true;
    if (s->now.optimized_ns && s->now.depth == 0)
        steps_finish(s, h);
}

/* An Optimizer.step of the current step begins. */
static void steps_join(struct steps *s, const char *name) {
    if (s->now.optimizers++ == 0)
        memcpy(s->now.first, name, sizeof s->now.first);
    s->now.depth = 1;
    memmove(s->now.last, name, sizeof s->now.last);
}

static void steps_optimizer_begins(struct steps *s, const struct steps_open *o,
                                   const struct steps_handler *h) {
    if (s->now.depth++ > 0 || !steps_begins(o->name, STEPS_STEP))
        return;
    if (s->now.optimizers == STEPS_MANY)
        s->has_loader = false;
    bool may_be_new = s->now.optimized_ns && !s->has_loader;
    s->now.asks = may_be_new && s->now.n_members > 0;
    if (may_be_new && !s->now.asks && strcmp(o->name, s->now.first) == 0)
        steps_finish(s, h);
    steps_join(s, o->name);
}

/* The optimizer that takes the current step (0: unknown): one that has taken a step before
 * begins a new one. */
static void steps_identify(struct steps *s, uint64_t optimizer, const struct steps_handler *h) {
    struct steps_now *n = &s->now;
    char name[SPANS_NAME];
    size_t i = 0;
    while (i < n->n_members && n->members[i] != optimizer)
        i++;
    if (n->asks && (optimizer ? i < n->n_members : strcmp(n->last, n->first) == 0)) {
        memcpy(name, n->last, sizeof name);
        steps_finish(s, h);
        steps_join(s, name);
        i = 0;
    }
    n->asks = false;
    if (optimizer && i == n->n_members && i < STEPS_MEMBERS)
        n->members[n->n_members++] = optimizer;
}

static void steps_optimizer_ends(struct steps *s, const struct steps_open *o, uint64_t ns,
                                 const struct steps_handler *h) {
    struct steps_now *n = &s->now;
    if (n->depth == 0 || --n->depth > 0)
        return;
    if (n->asks)
        steps_identify(s, 0, h);
    n->depth = 0;
    n->forward_from_ns = ns;
    n->rest.optimizer_ns += (int64_t)(ns - o->begin_ns);
    if (!steps_begins(o->name, STEPS_STEP))
        return;
    steps_count_comm(s, ns);
    steps_commit(n);
    n->optimized_ns = ns;
    n->ended++;
}

static void steps_backward(struct steps *s, const struct spans_event *e) {
    struct steps_now *n = &s->now;
    if (e->what == SPANS_BEGIN) {
        n->backward_from_ns = e->ns;
        n->rest.odd = n->rest.odd || n->depth > 0;
        if (e->ns > n->forward_from_ns)
            n->rest.forward_ns += (int64_t)(e->ns - n->forward_from_ns);
    } else if (n->backward_from_ns) {
        n->rest.backward_ns += e->ns > n->backward_from_ns ? (int64_t)(e->ns - n->backward_from_ns) : 0;
        n->forward_from_ns = e->ns;
        n->backward_from_ns = 0;
    }
}

/* With several optimizers the last one gives the loss, and the first one the learning rate. */
static void steps_take_reading(struct steps *s, const struct spans_event *e, const struct steps_handler *h) {
    struct spans_reading *at = &s->now.reading;
    if (e->tid != s->tid)
        return;
    if (s->now.depth == 1)
        steps_identify(s, e->reading.optimizer, h);
    if (e->reading.has_loss) {
        at->loss = e->reading.loss;
        at->has_loss = true;
    }
    if (e->reading.has_grad_norm) {
        at->grad_norm = e->reading.grad_norm;
        at->has_grad_norm = true;
    }
    if (e->reading.has_read_norm) {
        at->read_norm = e->reading.read_norm;
        at->has_read_norm = true;
    }
    if (e->reading.has_epoch) {
        at->epoch = e->reading.epoch;
        at->has_epoch = true;
    }
    if (e->reading.has_lr && !at->has_lr) {
        at->lr = e->reading.lr;
        at->has_lr = true;
    }
}

/* ---- operations of any thread ---- */

static struct steps_open *steps_find(struct steps *s, uint64_t key) {
    for (size_t i = 0; i < STEPS_OPEN; i++)
        if (s->open[i].key == key)
            return &s->open[i];
    return NULL;
}

/* A slot for one more; replaces the oldest if there is no free one. */
static struct steps_open *steps_reserve(struct steps *s) {
    struct steps_open *oldest = &s->open[0];
    for (size_t i = 0; i < STEPS_OPEN; i++) {
        if (!s->open[i].key)
            return &s->open[i];
        if (s->open[i].begin_ns < oldest->begin_ns)
            oldest = &s->open[i];
    }
    return oldest;
}

/* True if the thread that trains does it. The first Optimizer.step shows which thread that is. */
static bool steps_is_ours(struct steps *s, const struct steps_open *o) {
    bool is_new = !s->tid || (s->tid != o->tid && o->begin_ns > s->seen_ns + STEPS_THREAD_NS);
    if (is_new && steps_begins(o->name, STEPS_STEP)) {
        s->tid = o->tid;
        s->has_loader = false;
        steps_start(s, o->begin_ns, false);
    }
    if (s->tid == o->tid)
        s->seen_ns = o->begin_ns;
    return s->tid == o->tid;
}

static void steps_begin(struct steps *s, const struct spans_event *e, const struct steps_handler *h) {
    struct steps_open *o = steps_find(s, e->key);
    /* the end of the previous one is missing */
    if (o)
        steps_forget(s);
    o = steps_reserve(s);
    const struct steps_name *name = steps_find_name(e->name);
    *o = (struct steps_open){
        .key = e->key, .begin_ns = e->ns, .tid = e->tid, .kind = name->kind, .enqueues = name->enqueues};
    memcpy(o->name, e->name, sizeof o->name);
    if (o->kind == STEPS_COMM) {
        s->has_comm = true;
        o->seq = ++s->comm_count;
        if (o->enqueues)
            s->now.rest.blind = true;
        else if (s->going_comm++ == 0)
            s->comm_from_ns = e->ns;
    } else if (o->kind == STEPS_LOADER && steps_is_ours(s, o)) {
        steps_fetch_begins(s, h);
    } else if (o->kind == STEPS_OPTIMIZER && steps_is_ours(s, o)) {
        steps_optimizer_begins(s, o, h);
    }
}

static void steps_describe(const struct steps *s, const struct steps_open *o, uint64_t end_ns,
                           struct steps_span *out) {
    *out = (struct steps_span){.begin_ns = o->begin_ns,
                               .end_ns = end_ns,
                               .step = s->count + 1,
                               .tid = o->tid,
                               .kind = o->kind,
                               .seq = o->seq,
                               .enqueues = o->enqueues,
                               .comm = o->comm};
    memcpy(out->name, o->name, sizeof out->name);
}

static void steps_end(struct steps *s, const struct spans_event *e, const struct steps_handler *h) {
    struct steps_open *o = steps_find(s, e->key);
    /* it began before the agent */
    if (!o)
        return;
    if (o->kind == STEPS_COMM && !o->enqueues && s->going_comm) {
        steps_count_comm(s, e->ns);
        s->going_comm--;
    }
    if (o->kind == STEPS_OPTIMIZER && o->tid == s->tid)
        steps_optimizer_ends(s, o, e->ns, h);
    if (o->kind == STEPS_LOADER && o->tid == s->tid) {
        s->now.rest.data_ns += (int64_t)(e->ns - o->begin_ns);
        s->now.forward_from_ns = e->ns;
    }
    struct steps_span span;
    steps_describe(s, o, e->ns, &span);
    o->key = 0;
    h->on_span(h->arg, &span);
}

static void steps_take_comm(struct steps *s, const struct spans_event *e) {
    struct steps_open *o = steps_find(s, e->key);
    if (o && o->kind == STEPS_COMM)
        o->comm = e->comm;
}

void steps_report_open(struct steps *s, uint64_t ns, const struct steps_handler *h) {
    for (size_t i = 0; i < STEPS_OPEN; i++) {
        struct steps_open *o = &s->open[i];
        struct steps_span span;
        if (!o->key || o->kind != STEPS_COMM || o->reported || ns < o->begin_ns + STEPS_OPEN_NS)
            continue;
        o->reported = true;
        steps_describe(s, o, ns, &span);
        h->on_open(h->arg, &span);
    }
}

void steps_lose(struct steps *s, uint64_t lost) {
    if (lost != s->lost)
        steps_forget(s);
    s->lost = lost;
}

void steps_take(struct steps *s, const struct spans_event *e, const struct steps_handler *h) {
    steps_lose(s, e->lost);
    if (e->what == SPANS_READING)
        steps_take_reading(s, e, h);
    else if (e->what == SPANS_GC)
        s->now.rest.gc_ns += (int64_t)e->gc.duration_ns;
    else if (e->what == SPANS_VALUE)
        return;
    else if (e->what == SPANS_COMM)
        steps_take_comm(s, e);
    else if (e->key == STEPS_BACKWARD)
        steps_backward(s, e);
    else if (e->what == SPANS_BEGIN)
        steps_begin(s, e, h);
    else
        steps_end(s, e, h);
}

void steps_settle(struct steps *s, uint64_t ns, const struct steps_handler *h) {
    if (s->now.optimized_ns && s->now.depth == 0 && ns > s->now.optimized_ns &&
        ns - s->now.optimized_ns > STEPS_SETTLE_NS)
        steps_finish(s, h);
}

void steps_begin_backward(struct steps *s, uint64_t ns) {
    s->backward_since_ns = ns;
    s->has_backward = false;
    s->now.backward_from_ns = 0;
}

bool steps_has_backward(const struct steps *s) { return s->has_backward; }

void steps_begin_gc(struct steps *s, uint64_t ns) { s->gc_since_ns = ns; }
