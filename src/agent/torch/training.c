/* SPDX-License-Identifier: Apache-2.0 */
/* training: see training.h. */
#include "agent/torch/training.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "agent/python/torch_dtypes.h"
#include "agent/torch/step_values.h"
#include "agent/torch/torch_spans.h"
#include "base/clock.h"
#include "pystack/scalars.h"

#define TRAINING_MANY_SPANS ((size_t)4 * SPANS_CAP) /* taken together */

/* ---- python.variables ---- */

static void training_put_value(const struct training *t, const struct spans_event *e, double timestamp,
                               int64_t step) {
    const struct spans_value *value = &e->value;
    const struct hooks *h = &t->hooks;
    union ring_value v[RING_VARIABLES_COUNT];
    char func[SPANS_FUNC], text[SPANS_TEXT];
    spans_take_text(value->text, func, text);
    /* of the previous watch list */
    if (value->set != h->set || value->expr >= h->watch.n || isnan(timestamp))
        return;
    v[RING_VARIABLES_TIMESTAMP].f = timestamp;
    v[RING_VARIABLES_STEP].i = step;
    v[RING_VARIABLES_FUNC].s = func;
    v[RING_VARIABLES_NAME].s = h->watch.exprs[value->expr].name;
    v[RING_VARIABLES_VALUE].f = value->is_number && isfinite(value->number) ? value->number : NAN;
    v[RING_VARIABLES_TEXT].s = value->is_known ? text : NULL;
    record_append(t->record, RING_VARIABLES, v);
}

/* ---- checkpoints, as rows of profiling_data ---- */

static void training_on_checkpoint(void *arg, const struct checkpoints_save *s) {
    struct training *t = arg;
    union ring_value v[RING_SPANS_COUNT];
    v[RING_SPANS_TIMESTAMP].f = isnan(s->began) ? s->ended : s->began;
    v[RING_SPANS_NAME].s = s->name;
    v[RING_SPANS_DURATION_MS].f = (s->ended - s->began) * 1e3;
    v[RING_SPANS_TID].i = s->tid;
    v[RING_SPANS_STEP].i = s->step;
    v[RING_SPANS_KIND].i = STEPS_CHECKPOINT;
    v[RING_SPANS_CALLS].i = RING_INT_NULL;
    record_append(t->record, RING_SPANS, v);
}

static void training_on_sample(void *arg, const struct record_samples *p, const struct model_sample *s) {
    struct training *t = arg;
    struct checkpoints_handler handler = {training_on_checkpoint, t};
    int64_t step = t->reports ? t->steps.count + 1 : RING_INT_NULL;
    if (t->record->facts.torch[0])
        checkpoints_take(&t->checkpoints, p->trie, p->epoch, s, p->period_us / 1e6, step, &handler);
}

/* ---- python.loaders ---- */

/*
 * Iterators of DataLoaders are read from memory (pystack/loaders.h), the known ones each second;
 * the time of waiting for batches comes from torch's own operations (steps.h).
 */

/* between two searches, if an iterator is known, */
#define TRAINING_FIND_NS (5 * CLOCK_NS_PER_S)
/* and while the known iterators give all batches that torch reports */
#define TRAINING_FIND_SELDOM_NS (30 * CLOCK_NS_PER_S)
#define TRAINING_LOADER_MANY "enumerate(DataLoader)#_MultiProcessing"

static void training_note_fetch(struct training_loaders *l, const struct steps_span *s) {
    bool many = strncmp(s->name, TRAINING_LOADER_MANY, sizeof TRAINING_LOADER_MANY - 1) == 0;
    struct training_waits *w = &l->waits[many];
    w->ns += s->end_ns - s->begin_ns;
    w->n++;
    l->used = true;
}

/* True if it is time to search for more. If torch reports its operations and none was of a
 * loader, there is nothing to find. */
static bool training_should_find_loaders(const struct training *t, uint64_t now_ns) {
    const struct training_loaders *l = &t->loaders;
    if (!t->record->facts.torch[0] || (t->reports && !l->used))
        return false;
    return (l->n == 0 && l->used) ||
           now_ns - l->found_ns >= (l->complete ? TRAINING_FIND_SELDOM_NS : TRAINING_FIND_NS);
}

static void training_find_loaders(struct training_loaders *l, struct pystack *ps) {
    uint64_t addrs[PYSTACK_LOADERS];
    ssize_t n = pystack_find_loaders(ps, addrs);
    for (ssize_t i = 0; i < n; i++) {
        size_t k = 0;
        while (k < l->n && l->known[k].addr != addrs[i])
            k++;
        if (k == l->n && l->n < PYSTACK_LOADERS)
            l->known[l->n++] = (struct training_loader){.addr = addrs[i], .yielded = MODEL_UNKNOWN};
    }
}

static int64_t training_known(int64_t v) { return v < 0 ? RING_INT_NULL : v; }

/* Returns the number of batches that it gave since the last reading; 0 if that is unknown. */
static uint64_t training_put_loader(const struct training *t, struct training_loader *known,
                                    const struct pystack_loader *l, size_t alike) {
    union ring_value v[RING_LOADERS_COUNT];
    const struct training_waits *w = &t->loaders.waits[l->processes];
    int64_t batches = known->yielded < 0 ? MODEL_UNKNOWN : l->yielded - known->yielded;
    v[RING_LOADERS_TIMESTAMP].f = clock_epoch_s();
    v[RING_LOADERS_LOADER].i = (int64_t)l->addr;
    v[RING_LOADERS_WORKERS].i = training_known(l->workers);
    v[RING_LOADERS_PREFETCH].i = training_known(l->prefetch);
    v[RING_LOADERS_OUTSTANDING].i = training_known(l->outstanding);
    v[RING_LOADERS_READY].i = training_known(l->ready);
    v[RING_LOADERS_SENT].i = training_known(l->sent);
    v[RING_LOADERS_RECEIVED].i = training_known(l->received);
    v[RING_LOADERS_WAIT_MS].f = alike == 1 && w->n ? (double)w->ns / (double)w->n / 1e6 : NAN;
    v[RING_LOADERS_BATCHES].i = training_known(batches < 0 && known->yielded >= 0 ? l->yielded : batches);
    v[RING_LOADERS_DATASET].s = l->dataset[0] ? l->dataset : NULL;
    known->yielded = l->yielded;
    known->processes = l->processes;
    record_append(t->record, RING_LOADERS, v);
    return batches > 0 ? (uint64_t)batches : 0;
}

static void training_read_loaders(struct training *t, struct pystack *ps, uint64_t now_ns) {
    struct training_loaders *l = &t->loaders;
    struct pystack_loader loader;
    size_t kept = 0, alike[2] = {0};
    uint64_t given[2] = {0};
    bool processes;
    if (!ps)
        return;
    if (training_should_find_loaders(t, now_ns)) {
        l->found_ns = now_ns;
        training_find_loaders(l, ps);
    }
    for (size_t i = 0; i < l->n; i++)
        if (pystack_is_loader(ps, l->known[i].addr, &processes)) {
            alike[processes]++;
            l->known[kept++] = l->known[i];
        }
    l->n = kept;
    kept = 0;
    for (size_t i = 0; i < l->n; i++)
        if (pystack_read_loader(ps, l->known[i].addr, &loader) == 0) {
            given[loader.processes] += training_put_loader(t, &l->known[i], &loader, alike[loader.processes]);
            l->known[kept++] = l->known[i];
        }
    l->n = kept;
    /* If no batch comes, it may be the first one of an iterator that is not known. */
    l->complete =
        t->reports && given[0] + given[1] > 0 && l->waits[0].n <= given[0] && l->waits[1].n <= given[1];
    memset(l->waits, 0, sizeof l->waits);
}

/* ---- python.steps and profiling_data ---- */

struct training_output {
    struct training *training;
    double epoch_s; /* added to the monotonic clock */
};

_Static_assert((int)RING_SPAN_PROFILER == (int)STEPS_KINDS, "kinds of profiling_data");

static double training_ms(int64_t ns) { return ns == STEPS_UNKNOWN ? NAN : (double)ns / 1e6; }

/* True for an operation between two ranks. */
static bool training_is_p2p(const char *op) {
    return strncmp(op, "send", 4) == 0 || strncmp(op, "recv", 4) == 0 || strncmp(op, "isend", 5) == 0 ||
           strncmp(op, "irecv", 5) == 0;
}

/* A collective that is open, or has ended. */
static void training_put_collective(const struct training_output *to, const struct steps_span *s, bool done) {
    const char *colon = strchr(s->name, ':'), *op = colon ? colon + 1 : s->name;
    const struct training *t = to->training;
    double ms = done ? training_ms((int64_t)(s->end_ns - s->begin_ns)) : NAN;
    bool known = s->comm.size > 0;
    const struct torch_dtype *dtype = known ? torch_dtypes_at(s->comm.dtype) : NULL;
    union ring_value v[RING_COLLECTIVES_COUNT];
    v[RING_COLLECTIVES_TIMESTAMP].f = to->epoch_s + (double)s->begin_ns / 1e9;
    v[RING_COLLECTIVES_SEQ].i = s->seq;
    v[RING_COLLECTIVES_OP].s = op;
    v[RING_COLLECTIVES_PG].s = s->comm.pg[0] ? s->comm.pg : NULL;
    v[RING_COLLECTIVES_SIZE].i = known ? s->comm.size : RING_INT_NULL;
    v[RING_COLLECTIVES_BYTES].i = dtype ? s->comm.elements * dtype->bytes : RING_INT_NULL;
    v[RING_COLLECTIVES_DTYPE].s = dtype ? dtype->torch : NULL;
    v[RING_COLLECTIVES_DURATION_MS].f = s->enqueues ? NAN : ms;
    v[RING_COLLECTIVES_ENQUEUE_MS].f = s->enqueues ? ms : NAN;
    v[RING_COLLECTIVES_P2P].i = training_is_p2p(op);
    v[RING_COLLECTIVES_PEER].i = RING_INT_NULL;
    v[RING_COLLECTIVES_TID].i = s->tid;
    v[RING_COLLECTIVES_STEP].i = t->steps.tid ? s->step : RING_INT_NULL;
    v[RING_COLLECTIVES_STATE].i = done ? RING_COLLECTIVE_DONE : RING_COLLECTIVE_OPEN;
    v[RING_COLLECTIVES_SOURCE].i = known ? RING_COLLECTIVE_TLS : RING_COLLECTIVE_SPAN;
    v[RING_COLLECTIVES_PG_SEQ].i = known ? training_known(s->comm.seq) : RING_INT_NULL;
    v[RING_COLLECTIVES_BACKEND].s = NULL;
    char backend[16];
    if (colon && colon > s->name && (size_t)(colon - s->name) < sizeof backend) {
        snprintf(backend, sizeof backend, "%.*s", (int)(colon - s->name), s->name);
        v[RING_COLLECTIVES_BACKEND].s = backend;
    }
    record_append(t->record, RING_COLLECTIVES, v);
}

static void training_on_open(void *arg, const struct steps_span *s) {
    training_put_collective(arg, s, false);
}

static void training_on_span(void *arg, const struct steps_span *s) {
    const struct training_output *to = arg;
    union ring_value v[RING_SPANS_COUNT];
    if (s->kind == STEPS_COMM)
        training_put_collective(to, s, true);
    v[RING_SPANS_TIMESTAMP].f = to->epoch_s + (double)s->begin_ns / 1e9;
    v[RING_SPANS_NAME].s = s->name;
    v[RING_SPANS_DURATION_MS].f = s->enqueues ? NAN : training_ms((int64_t)(s->end_ns - s->begin_ns));
    v[RING_SPANS_TID].i = s->tid;
    v[RING_SPANS_STEP].i = s->step;
    v[RING_SPANS_KIND].i = (int64_t)s->kind;
    v[RING_SPANS_CALLS].i = RING_INT_NULL;
    record_append(to->training->record, RING_SPANS, v);
    if (s->kind == STEPS_LOADER)
        training_note_fetch(&to->training->loaders, s);
}

/* Losses and norms that are not finite have a column of their own: enum of
 * ring_nonfinite_labels. */
static void training_put_reading(union ring_value *v, const struct spans_reading *l) {
    bool loss = l->has_loss && !isfinite(l->loss), norm = l->has_grad_norm && !isfinite(l->grad_norm);
    v[RING_STEPS_LOSS].f = l->has_loss && !loss ? l->loss : NAN;
    v[RING_STEPS_LR].f = l->has_lr ? l->lr : NAN;
    v[RING_STEPS_GRAD_NORM].f = l->has_grad_norm && !norm ? l->grad_norm : NAN;
    v[RING_STEPS_NONFINITE].i =
        l->has_loss || l->has_grad_norm ? (loss ? 1 : 0) + (norm ? 2 : 0) : RING_INT_NULL;
    v[RING_STEPS_EPOCH].i = l->has_epoch ? l->epoch : RING_INT_NULL;
}

static void training_on_step(void *arg, const struct steps_step *s) {
    const struct training_output *to = arg;
    struct training *t = to->training;
    const struct training_step_end end = {s->end_ns, s->step};
    union ring_value v[RING_STEPS_COUNT];
    v[RING_STEPS_TIMESTAMP].f = to->epoch_s + (double)s->end_ns / 1e9;
    v[RING_STEPS_STEP].i = s->step;
    v[RING_STEPS_DURATION_MS].f = training_ms(s->duration_ns);
    v[RING_STEPS_DATA_MS].f = training_ms(s->data_ns);
    v[RING_STEPS_FORWARD_MS].f = training_ms(s->forward_ns);
    v[RING_STEPS_BACKWARD_MS].f = training_ms(s->backward_ns);
    v[RING_STEPS_OPTIMIZER_MS].f = training_ms(s->optimizer_ns);
    v[RING_STEPS_COMM_MS].f = training_ms(s->comm_ns);
    v[RING_STEPS_OTHER_MS].f = training_ms(s->other_ns);
    v[RING_STEPS_GC_MS].f = training_ms(s->gc_ns);
    training_put_reading(v, &s->reading);
    record_append(t->record, RING_STEPS, v);
    t->phased += s->backward_ns != STEPS_UNKNOWN;
    t->ends[s->step % TRAINING_STEP_ENDS] = end;
    if (t->kept_since_ns && end.end_ns >= t->kept_since_ns && t->n_kept < TRAINING_STEPS_KEPT)
        t->kept[t->n_kept++] = end;
}

static const struct training_step_end *training_end_after(const struct training_step_end *ends, size_t n,
                                                          uint64_t ns,
                                                          const struct training_step_end *found) {
    for (size_t i = 0; i < n; i++)
        if (ends[i].step && ends[i].end_ns >= ns && (!found || ends[i].end_ns < found->end_ns))
            found = &ends[i];
    return found;
}

static bool training_knows_end(const struct training *t, int64_t step) {
    for (size_t i = 0; i < t->n_kept; i++)
        if (t->kept[i].step == step)
            return true;
    return t->ends[step % TRAINING_STEP_ENDS].step == step;
}

int64_t training_step_at(const struct training *t, uint64_t ns) {
    const struct training_step_end *found = training_end_after(t->ends, TRAINING_STEP_ENDS, ns, NULL);
    found = training_end_after(t->kept, t->n_kept, ns, found);
    if (found) /* steps between may have been forgotten, unless the previous one is known */
        return found->step == 1 || training_knows_end(t, found->step - 1) ? found->step : -1;
    if (!t->reports || !t->steps.count)
        return -1;
    /* A step that is over except for the begin of the next one. */
    const struct steps_now *now = &t->steps.now;
    bool is_next = now->ended > 0 && now->ended >= t->steps.per_step && now->optimized_ns < ns;
    return t->steps.count + 1 + is_next;
}

void training_keep_ends(struct training *t, uint64_t since_ns) {
    t->kept_since_ns = since_ns;
    t->n_kept = 0;
}

void training_drop_ends(struct training *t) { training_keep_ends(t, 0); }

size_t training_durations(const struct training *t, uint64_t since_ns, uint64_t until_ns, double *ns,
                          size_t cap) {
    const struct training_step_end *ends = t->ends;
    int64_t step = t->steps.count;
    size_t n = 0;
    for (; step > 1 && t->steps.count - step < TRAINING_STEP_ENDS - 1 && n < cap; step--) {
        const struct training_step_end *end = &ends[step % TRAINING_STEP_ENDS],
                                       *before = &ends[(step - 1) % TRAINING_STEP_ENDS];
        if (end->step != step || before->step != step - 1 || end->end_ns > until_ns)
            continue;
        if (before->end_ns < since_ns)
            break;
        ns[n++] = (double)(end->end_ns - before->end_ns);
    }
    return n;
}

/* Start or stop watching backward passes. */
static void training_plan_backward(struct training *t, uint64_t now_ns) {
    struct backward_watch_now now = {.now_ns = now_ns,
                                     .wanted = t->needs_backward || t->wants_phases,
                                     .whole = steps_has_backward(&t->steps)};
    torch_spans_passes(&now.nodes, &now.wait_ns);
    bool due = backward_watch_is_due(&t->backward, &now);
    if (due == t->backward.on || t->steps.count == 0 || !torch_spans_watch_backward(due))
        return;
    steps_begin_backward(&t->steps, due ? now_ns : 0);
    backward_watch_turn(&t->backward, due, &now);
}

/* A collection that Python has reported. */
static void training_put_gc(const struct training *t, const struct spans_event *e, double epoch_s,
                            int64_t step) {
    record_gc_event(t->record,
                    &(struct record_gc_row){.begin_s = epoch_s + (double)(e->ns - e->gc.duration_ns) / 1e9,
                                            .duration_ns = e->gc.duration_ns,
                                            .step = step,
                                            .collected = e->gc.collected,
                                            .uncollectable = e->gc.uncollectable,
                                            .generation = e->gc.generation});
}

void training_take(struct training *t) {
    if (!t->reports && !t->hooks.on)
        return;
    uint64_t now_ns = clock_mono_ns();
    struct training_output to = {t, clock_mono_to_epoch_s()};
    struct steps_handler handler = {training_on_span, training_on_step, &to, training_on_open};
    struct spans_event e;
    size_t n = 0;
    steps_begin_gc(&t->steps, t->hooks.gc ? t->hooks.gc_since_ns : 0);
    for (; n < TRAINING_MANY_SPANS && spans_take(&e); n++) {
        int64_t step = t->reports && t->steps.tid ? t->steps.count + 1 : RING_INT_NULL;
        if (e.what == SPANS_GC)
            training_put_gc(t, &e, to.epoch_s, step);
        else if (e.what == SPANS_VALUE)
            training_put_value(t, &e, to.epoch_s + (double)e.ns / 1e9, step);
        steps_take(&t->steps, &e, &handler);
    }
    t->events += n;
    t->lost = spans_lost();
    if (!t->reports)
        return;
    if (n == 0) {
        steps_lose(&t->steps, t->lost);
        steps_settle(&t->steps, now_ns, &handler);
    }
    /* what is still to be taken may be its end */
    if (n < TRAINING_MANY_SPANS)
        steps_report_open(&t->steps, now_ns, &handler);
    training_plan_backward(t, now_ns);
}

static void training_start(struct training *t) {
    struct spans_event old;
    struct err e = {.text = ""};
    int rc = torch_spans_begin(t->record->facts.torch, &e);
    snprintf(t->note, sizeof t->note, "%s", rc == 0 ? "" : e.text);
    t->reports = rc == 0;
    t->refused = rc < 0;
    if (!t->reports)
        return;
    steps_init(&t->steps);
    /* What is left over from the last time is nobody's. Collections may have been reported before spans:
     * those of the callback that is there now. */
    for (size_t n = 0; n < SPANS_CAP && spans_take(&old); n++)
        if (old.what == SPANS_VALUE)
            training_put_value(t, &old, NAN, RING_INT_NULL);
        else if (old.what == SPANS_GC && t->hooks.gc && old.ns >= t->hooks.gc_since_ns)
            training_put_gc(t, &old, clock_mono_to_epoch_s(), RING_INT_NULL);
    t->lost = spans_lost();
    steps_expect(&t->steps, t->lost);
}

/* Stop torch's reports; then nothing is known of its steps. */
static void training_stop(struct training *t) {
    if (t->reports)
        torch_spans_end();
    *t = (struct training){.record = t->record,
                           .worker = t->worker,
                           .hooks = t->hooks,
                           .checkpoints = t->checkpoints,
                           .loaders = t->loaders,
                           .wants_phases = t->wants_phases,
                           .phased = t->phased};
}

/* Make torch report its operations, once it is loaded and as long as that is wanted. */
static void training_choose(struct training *t) {
    const struct record *r = t->record;
    bool wanted = r->set && r->config.values[CONFIG_STEPS] != 0, begun = t->reports || t->refused;
    /* the calling convention of its callbacks depends on its version */
    if (wanted && !begun && !r->facts.torch[0])
        snprintf(t->note, sizeof t->note, "%s",
                 r->facts.torch_module ? "torch is imported, but no file with its version was found" : "");
    if (!wanted && begun)
        training_stop(t);
    else if (wanted && !begun && r->facts.torch[0])
        training_start(t);
}

/* ---- the producer of rows ---- */

static bool training_is_on(const void *arg) {
    const struct training *t = arg;
    return t->reports || t->hooks.on;
}

static void training_on_take(void *arg) { training_take(arg); }

static void training_on_second(void *arg, const struct record_samples *p, struct pystack *ps, uint64_t now_ns,
                               double timestamp) {
    struct training *t = arg;
    struct checkpoints_handler handler = {training_on_checkpoint, t};
    const struct record *r = t->record;
    hooks_second(&t->hooks, t->worker,
                 &(struct hooks_request){.steps = r->config.values[CONFIG_STEPS] != 0,
                                         .look_share = r->config.values[CONFIG_TRACE_SHARE] / 100,
                                         .torch = r->facts.torch,
                                         .watch = r->config.torch_profiling});
    t->record->gc_events = t->hooks.gc;
    training_choose(t);
    training_take(t);
    checkpoints_settle(&t->checkpoints, timestamp, p->period_us / 1e6, &handler);
    training_read_loaders(t, ps, now_ns);
}

static void training_on_close(void *arg) {
    struct training *t = arg;
    hooks_end(&t->hooks);
    t->record->gc_events = false;
    training_stop(t);
}

void training_init(struct training *t, struct record *record, struct worker *worker) {
    static const struct record_producer producer = {.is_on = training_is_on,
                                                    .take = training_on_take,
                                                    .on_sample = training_on_sample,
                                                    .second = training_on_second,
                                                    .close = training_on_close};
    *t = (struct training){.record = record, .worker = worker};
    record_add_producer(record, &producer, t);
}

void training_fini(struct training *t) { checkpoints_fini(&t->checkpoints); }

size_t training_bytes(const struct training *t) { return checkpoints_bytes(&t->checkpoints); }

static void training_publish_hooks(const struct training *t, struct mailbox_status *st) {
    const char *torch = t->record->facts.torch;
    st->of.looks_on = t->hooks.on && t->reports;
    st->of.gc_on = t->hooks.gc;
    st->of.returns_on = t->hooks.functions > 0;
    if (st->of.looks_on && !t->hooks.note[0] && !pystack_scalar_knows_torch(torch))
        snprintf(st->hooks_note, sizeof st->hooks_note,
                 "losses and values that are tensors of torch %.24s: their memory layout is unknown", torch);
    else if (st->of.looks_on && !t->hooks.note[0] && step_values_skipped() > step_values_count() / 10)
        snprintf(st->hooks_note, sizeof st->hooks_note,
                 "loss and other values are read at %.3g %% of steps, to stay within %.3g %% of the job's "
                 "time (probing.look_share)",
                 100 * (double)step_values_count() / (double)(step_values_count() + step_values_skipped()),
                 t->record->config.values[CONFIG_TRACE_SHARE]);
    else
        snprintf(st->hooks_note, sizeof st->hooks_note, "%s", t->hooks.note);
}

void training_publish(const struct training *t, struct mailbox_status *st) {
    st->of.steps = (uint64_t)t->steps.count;
    st->of.spans = t->events;
    st->of.spans_lost = t->lost;
    st->of.us_per_span = torch_spans_us();
    st->of.phases_on = t->backward.on;
    st->of.phases = t->phased;
    st->of.phases_pct =
        t->backward.judged_ns ? 100 * (double)t->backward.cost_ns / (double)t->backward.judged_ns : NAN;
    st->hooks[0] = '\0';
    if (t->reports)
        snprintf(st->hooks, sizeof st->hooks, "at::addGlobalCallback of torch %.24s", t->record->facts.torch);
    snprintf(st->steps_note, sizeof st->steps_note, "%s", t->note);
    training_publish_hooks(t, st);
}
