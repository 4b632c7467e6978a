/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_steps: the rows of python.steps and profiling_data: what torch tells of its operations; see record.h, steps.h.
 *
 * Torch is asked to tell once it is there. For a twentieth of the time it also tells of backward passes, a whole step at least
 * each time: forward and backward are known of those steps. On the sampler's thread.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "agent/tables/record.h"
#include "agent/torch/torch_spans.h"
#include "base/clock.h"

#define RECORD_BACKWARD_MAX_NS (5 * CLOCK_NS_PER_S) /* for a whole step; a longer one is not waited for */
#define RECORD_BACKWARD_REST 19                     /* times as long they are not looked at then */
#define RECORD_BACKWARD_PAUSE_NS CLOCK_NS_PER_S     /* and at least so long */
#define RECORD_MANY_SPANS ((size_t)4 * SPANS_CAP)   /* taken at once */

struct record_steps_to {
    struct record *record;
    double epoch_s; /* what to add to the monotonic clock */
};

_Static_assert((int)RING_SPAN_PROFILER == (int)STEPS_KINDS, "kinds of profiling_data");

static double steps_ms(int64_t ns) { return ns == STEPS_UNKNOWN ? NAN : (double)ns / 1e6; }

static void steps_on_span(void *arg, const struct steps_span *s) {
    const struct record_steps_to *to = arg;
    union ring_value v[RING_SPANS_COUNT];
    v[RING_SPANS_TIMESTAMP].f = to->epoch_s + (double)s->begin_ns / 1e9;
    v[RING_SPANS_NAME].s = s->name;
    v[RING_SPANS_DURATION_MS].f = steps_ms((int64_t)(s->end_ns - s->begin_ns));
    v[RING_SPANS_TID].i = s->tid;
    v[RING_SPANS_STEP].i = s->step;
    v[RING_SPANS_KIND].i = (int64_t)s->kind;
    v[RING_SPANS_CALLS].i = RING_INT_NULL;
    record_append(to->record, RING_SPANS, v);
    if (s->kind == STEPS_LOADER)
        record_loaders_span(to->record, s);
}

/* Losses and norms that are no finite numbers are told by a column of their own: enum of ring_nonfinite_labels. */
static void steps_put_reading(union ring_value *v, const struct spans_reading *l) {
    bool loss = l->has_loss && !isfinite(l->loss), norm = l->has_grad_norm && !isfinite(l->grad_norm);
    v[RING_STEPS_LOSS].f = l->has_loss && !loss ? l->loss : NAN;
    v[RING_STEPS_LR].f = l->has_lr ? l->lr : NAN;
    v[RING_STEPS_GRAD_NORM].f = l->has_grad_norm && !norm ? l->grad_norm : NAN;
    v[RING_STEPS_NONFINITE].i =
        l->has_loss || l->has_grad_norm ? (loss ? 1 : 0) + (norm ? 2 : 0) : RING_INT_NULL;
    v[RING_STEPS_EPOCH].i = l->has_epoch ? l->epoch : RING_INT_NULL;
}

static void steps_on_step(void *arg, const struct steps_step *s) {
    const struct record_steps_to *to = arg;
    struct record_steps *t = &to->record->steps;
    const struct record_step_end end = {s->end_ns, s->step};
    union ring_value v[RING_STEPS_COUNT];
    v[RING_STEPS_TIMESTAMP].f = to->epoch_s + (double)s->end_ns / 1e9;
    v[RING_STEPS_STEP].i = s->step;
    v[RING_STEPS_DURATION_MS].f = steps_ms(s->duration_ns);
    v[RING_STEPS_DATA_MS].f = steps_ms(s->data_ns);
    v[RING_STEPS_FORWARD_MS].f = steps_ms(s->forward_ns);
    v[RING_STEPS_BACKWARD_MS].f = steps_ms(s->backward_ns);
    v[RING_STEPS_OPTIMIZER_MS].f = steps_ms(s->optimizer_ns);
    v[RING_STEPS_COMM_MS].f = steps_ms(s->comm_ns);
    v[RING_STEPS_OTHER_MS].f = steps_ms(s->other_ns);
    v[RING_STEPS_GC_MS].f = steps_ms(s->gc_ns);
    steps_put_reading(v, &s->look);
    record_append(to->record, RING_STEPS, v);
    t->ends[s->step % RECORD_STEP_ENDS] = end;
    if (t->keeps && t->n_kept < RECORD_STEPS_KEPT)
        t->kept[t->n_kept++] = end;
}

static const struct record_step_end *steps_end_after(const struct record_step_end *ends, size_t n,
                                                     uint64_t ns, const struct record_step_end *found) {
    for (size_t i = 0; i < n; i++)
        if (ends[i].step && ends[i].end_ns >= ns && (!found || ends[i].end_ns < found->end_ns))
            found = &ends[i];
    return found;
}

static bool steps_knows_end(const struct record_steps *t, int64_t step) {
    for (size_t i = 0; i < t->n_kept; i++)
        if (t->kept[i].step == step)
            return true;
    return t->ends[step % RECORD_STEP_ENDS].step == step;
}

int64_t record_steps_at(const struct record *r, uint64_t ns) {
    const struct record_steps *t = &r->steps;
    const struct record_step_end *found = steps_end_after(t->ends, RECORD_STEP_ENDS, ns, NULL);
    found = steps_end_after(t->kept, t->n_kept, ns, found);
    if (found) /* steps between may have been forgotten, unless the one before it is known */
        return found->step == 1 || steps_knows_end(t, found->step - 1) ? found->step : -1;
    if (!t->told || !t->steps.count)
        return -1;
    /* A step that is over, but for what begins the next one. */
    const struct steps_now *now = &t->steps.now;
    bool is_next = now->ended > 0 && now->ended >= t->steps.per_step && now->optimized_ns < ns;
    return t->steps.count + 1 + is_next;
}

void record_steps_keep(struct record *r, bool on) {
    r->steps.keeps = on;
    r->steps.n_kept = 0;
}

size_t record_steps_durations(const struct record *r, uint64_t since_ns, uint64_t until_ns, double *ns,
                              size_t cap) {
    const struct record_step_end *ends = r->steps.ends;
    int64_t step = r->steps.steps.count;
    size_t n = 0;
    for (; step > 1 && r->steps.steps.count - step < RECORD_STEP_ENDS - 1 && n < cap; step--) {
        const struct record_step_end *end = &ends[step % RECORD_STEP_ENDS],
                                     *before = &ends[(step - 1) % RECORD_STEP_ENDS];
        if (end->step != step || before->step != step - 1 || end->end_ns > until_ns)
            continue;
        if (before->end_ns < since_ns)
            break;
        ns[n++] = (double)(end->end_ns - before->end_ns);
    }
    return n;
}

static void steps_rest(struct record_steps *t, uint64_t now_ns) {
    uint64_t rest = RECORD_BACKWARD_REST * (now_ns - t->look_ns);
    (void)torch_spans_watch_backward(false);
    steps_begin_backward(&t->steps, 0);
    t->looks = false;
    t->look_due_ns = now_ns + (rest > RECORD_BACKWARD_PAUSE_NS ? rest : RECORD_BACKWARD_PAUSE_NS);
}

/* Begin or end to look at backward passes. */
static void steps_plan_backward(struct record_steps *t, uint64_t now_ns) {
    if (t->looks && !t->hold &&
        (steps_has_backward(&t->steps) || now_ns - t->look_ns > RECORD_BACKWARD_MAX_NS))
        steps_rest(t, now_ns);
    else if (!t->looks && (t->hold || now_ns >= t->look_due_ns) && t->steps.count > 0 &&
             torch_spans_watch_backward(true)) {
        t->looks = true;
        t->look_ns = now_ns;
        steps_begin_backward(&t->steps, now_ns);
    }
}

void record_steps_take(struct record *r) {
    struct record_steps *t = &r->steps;
    if (!t->told && !r->hooks.on)
        return;
    uint64_t now_ns = clock_mono_ns();
    struct record_steps_to to = {r, clock_mono_to_epoch_s()};
    struct steps_handler handler = {steps_on_span, steps_on_step, &to};
    struct spans_event e;
    size_t n = 0;
    steps_begin_gc(&t->steps, r->hooks.gc ? r->hooks.gc_since_ns : 0);
    for (; n < RECORD_MANY_SPANS && spans_take(&e); n++) {
        int64_t step = t->told && t->steps.tid ? t->steps.count + 1 : RING_INT_NULL;
        if (e.what == SPANS_GC)
            record_gc_event(r, &e.gc, to.epoch_s + (double)(e.ns - e.gc.duration_ns) / 1e9, step);
        else if (e.what == SPANS_VALUE)
            record_value(r, &e, to.epoch_s + (double)e.ns / 1e9, step);
        steps_take(&t->steps, &e, &handler);
    }
    t->events += n;
    t->lost = spans_lost();
    if (!t->told)
        return;
    if (n == 0) {
        steps_lose(&t->steps, t->lost);
        steps_settle(&t->steps, now_ns, &handler);
    }
    steps_plan_backward(t, now_ns);
}

static void steps_begin_telling(struct record *r) {
    struct record_steps *t = &r->steps;
    struct spans_event old;
    struct err e = {.text = ""};
    int rc = torch_spans_begin(r->facts.torch, &e);
    (void)snprintf(t->note, sizeof t->note, "%s", rc == 0 ? "" : e.text);
    t->told = rc == 0;
    t->refused = rc < 0;
    if (!t->told)
        return;
    steps_init(&t->steps);
    for (size_t n = 0; n < SPANS_CAP && spans_take(&old); n++) /* of the last time */
        if (old.what == SPANS_VALUE)
            record_value(r, &old, NAN, RING_INT_NULL);
    t->lost = spans_lost();
    steps_expect(&t->steps, t->lost);
    t->look_due_ns = clock_mono_ns();
}

void record_steps_end(struct record *r) {
    if (r->steps.told)
        torch_spans_end();
    r->steps = (struct record_steps){.told = false};
}

void record_steps_second(struct record *r) {
    bool wanted = r->set && r->config.values[CONFIG_STEPS] != 0;
    bool unknown = wanted && !r->steps.told && !r->steps.refused && !r->facts.torch[0];
    if (unknown) /* its operations are told by functions of which the version says how they are called */
        (void)snprintf(r->steps.note, sizeof r->steps.note, "%s",
                       r->facts.torch_module
                           ? "torch is imported, but no file of it was found that says its version"
                           : "");
    if (!wanted && (r->steps.told || r->steps.refused))
        record_steps_end(r);
    else if (wanted && !r->steps.told && !r->steps.refused && r->facts.torch[0])
        steps_begin_telling(r);
    record_steps_take(r);
}

/* ---- record values ---- */

/* The rows of python.variables: values that are watched. */

void record_value(struct record *r, const struct spans_event *e, double timestamp, int64_t step) {
    const struct spans_value *value = &e->value;
    const struct hooks *h = &r->hooks;
    union ring_value v[RING_VARIABLES_COUNT];
    char func[SPANS_FUNC], text[SPANS_TEXT];
    spans_take_text(value->text, func, text);
    if (value->set != h->set || value->expr >= h->watch.n || isnan(timestamp))
        return; /* of what was watched before */
    v[RING_VARIABLES_TIMESTAMP].f = timestamp;
    v[RING_VARIABLES_STEP].i = step;
    v[RING_VARIABLES_FUNC].s = func;
    v[RING_VARIABLES_NAME].s = h->watch.exprs[value->expr].name;
    v[RING_VARIABLES_VALUE].f = value->is_number && isfinite(value->number) ? value->number : NAN;
    v[RING_VARIABLES_TEXT].s = value->is_known ? text : NULL;
    record_append(r, RING_VARIABLES, v);
}

/* ---- record saves ---- */

/* Checkpoints that the job saves, as rows of profiling_data. */

static void checkpoints_on_save(void *arg, const struct checkpoints_save *s) {
    struct record *r = arg;
    union ring_value v[RING_SPANS_COUNT];
    v[RING_SPANS_TIMESTAMP].f = isnan(s->began) ? s->ended : s->began;
    v[RING_SPANS_NAME].s = s->name;
    v[RING_SPANS_DURATION_MS].f = (s->ended - s->began) * 1e3;
    v[RING_SPANS_TID].i = s->tid;
    v[RING_SPANS_STEP].i = s->step;
    v[RING_SPANS_KIND].i = STEPS_CHECKPOINT;
    v[RING_SPANS_CALLS].i = RING_INT_NULL;
    record_append(r, RING_SPANS, v);
}

void record_saves_sample(struct record *r, const struct thread_sampler *p, const struct model_sample *s) {
    struct checkpoints_handler handler = {checkpoints_on_save, r};
    int64_t step = r->steps.told ? r->steps.steps.count + 1 : RING_INT_NULL;
    if (r->facts.torch[0])
        checkpoints_take(&r->saves, &p->trie, p->epoch, s, p->period_us / 1e6, step, &handler);
}

void record_saves_second(struct record *r, const struct thread_sampler *p, double now) {
    struct checkpoints_handler handler = {checkpoints_on_save, r};
    checkpoints_settle(&r->saves, now, p->period_us / 1e6, &handler);
}

/* ---- record loaders ---- */

/*
 * The rows of python.loaders. Iterators of DataLoaders are read from memory (pystack/loaders.h),
 * those that are known each second; what waiting for batches took is known from torch's own
 * operations (steps.h).
 */

#define RECORD_FIND_NS (5 * CLOCK_NS_PER_S) /* between two searches, when some are known */
#define RECORD_LOADER_MANY "enumerate(DataLoader)#_MultiProcessing"

void record_loaders_span(struct record *r, const struct steps_span *s) {
    bool many = strncmp(s->name, RECORD_LOADER_MANY, sizeof RECORD_LOADER_MANY - 1) == 0;
    struct record_waits *w = &r->loaders.waits[many];
    w->ns += s->end_ns - s->begin_ns;
    w->n++;
    r->loaders.used = true;
}

/* Is it time to look for more? In a job in which torch tells its operations and none was of a loader there is nothing to be found. */
static bool loaders_is_due(const struct record *r, uint64_t now_ns) {
    const struct record_loaders *l = &r->loaders;
    if (!r->facts.torch[0] || (r->steps.told && !l->used))
        return false;
    return (l->n == 0 && l->used) || now_ns - l->found_ns >= RECORD_FIND_NS;
}

static void loaders_find(struct record_loaders *l, struct pystack *ps) {
    uint64_t addrs[PYSTACK_LOADERS];
    ssize_t n = pystack_find_loaders(ps, addrs);
    for (ssize_t i = 0; i < n; i++) {
        size_t k = 0;
        while (k < l->n && l->known[k].addr != addrs[i])
            k++;
        if (k == l->n && l->n < PYSTACK_LOADERS)
            l->known[l->n++] = (struct record_loader){.addr = addrs[i], .yielded = MODEL_UNKNOWN};
    }
}

static int64_t loaders_known(int64_t v) { return v < 0 ? RING_INT_NULL : v; }

static void loaders_put(struct record *r, struct record_loader *known, const struct pystack_loader *l,
                        size_t alike) {
    union ring_value v[RING_LOADERS_COUNT];
    const struct record_waits *w = &r->loaders.waits[l->processes];
    int64_t batches = known->yielded < 0 ? MODEL_UNKNOWN : l->yielded - known->yielded;
    v[RING_LOADERS_TIMESTAMP].f = clock_epoch_s();
    v[RING_LOADERS_LOADER].i = (int64_t)l->addr;
    v[RING_LOADERS_WORKERS].i = loaders_known(l->workers);
    v[RING_LOADERS_PREFETCH].i = loaders_known(l->prefetch);
    v[RING_LOADERS_OUTSTANDING].i = loaders_known(l->outstanding);
    v[RING_LOADERS_READY].i = loaders_known(l->ready);
    v[RING_LOADERS_SENT].i = loaders_known(l->sent);
    v[RING_LOADERS_RECEIVED].i = loaders_known(l->received);
    v[RING_LOADERS_WAIT_MS].f = alike == 1 && w->n ? (double)w->ns / (double)w->n / 1e6 : NAN;
    v[RING_LOADERS_BATCHES].i = loaders_known(batches < 0 && known->yielded >= 0 ? l->yielded : batches);
    v[RING_LOADERS_DATASET].s = l->dataset[0] ? l->dataset : NULL;
    known->yielded = l->yielded;
    known->processes = l->processes;
    record_append(r, RING_LOADERS, v);
}

void record_loaders_second(struct record *r, struct pystack *ps, uint64_t now_ns) {
    struct record_loaders *l = &r->loaders;
    struct pystack_loader loader;
    size_t kept = 0, alike[2] = {0};
    if (!ps)
        return;
    if (loaders_is_due(r, now_ns)) {
        l->found_ns = now_ns;
        loaders_find(l, ps);
    }
    for (size_t i = 0; i < l->n; i++)
        if (pystack_read_loader(ps, l->known[i].addr, &loader) == 0) {
            alike[loader.processes]++;
            l->known[kept++] = l->known[i];
        }
    l->n = kept;
    for (size_t i = 0; i < l->n; i++)
        if (pystack_read_loader(ps, l->known[i].addr, &loader) == 0)
            loaders_put(r, &l->known[i], &loader, alike[loader.processes]);
    memset(l->waits, 0, sizeof l->waits);
}
