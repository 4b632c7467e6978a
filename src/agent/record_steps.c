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

#include "agent/record.h"
#include "agent/torch_spans.h"
#include "base/clock.h"

#define RECORD_LOOK_MAX_NS (5 * CLOCK_NS_PER_S)   /* for a whole step; a longer one is not waited for */
#define RECORD_LOOK_REST 19                       /* times as long they are not looked at then */
#define RECORD_LOOK_PAUSE_NS CLOCK_NS_PER_S       /* and at least so long */
#define RECORD_MANY_SPANS ((size_t)4 * SPANS_CAP) /* taken at once */

struct record_steps_to {
    struct record *record;
    double epoch_s; /* what to add to the monotonic clock */
};

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
    record_append(to->record, RING_SPANS, v);
}

static void steps_on_step(void *arg, const struct steps_step *s) {
    const struct record_steps_to *to = arg;
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
    record_append(to->record, RING_STEPS, v);
}

static void steps_rest(struct record_steps *t, uint64_t now_ns) {
    uint64_t rest = RECORD_LOOK_REST * (now_ns - t->look_ns);
    (void)torch_spans_look_backward(false);
    steps_look_backward(&t->steps, 0);
    t->looks = false;
    t->look_due_ns = now_ns + (rest > RECORD_LOOK_PAUSE_NS ? rest : RECORD_LOOK_PAUSE_NS);
}

/* Begin or end to look at backward passes. */
static void steps_plan_look(struct record_steps *t, uint64_t now_ns) {
    if (t->looks && (steps_has_backward(&t->steps) || now_ns - t->look_ns > RECORD_LOOK_MAX_NS))
        steps_rest(t, now_ns);
    else if (!t->looks && now_ns >= t->look_due_ns && t->steps.count > 0 && torch_spans_look_backward(true)) {
        t->looks = true;
        t->look_ns = now_ns;
        steps_look_backward(&t->steps, now_ns);
    }
}

void record_steps_take(struct record *r) {
    struct record_steps *t = &r->steps;
    if (!t->told)
        return;
    uint64_t now_ns = clock_mono_ns();
    struct record_steps_to to = {r, clock_epoch_s() - (double)now_ns / 1e9};
    struct steps_handler handler = {steps_on_span, steps_on_step, &to};
    struct spans_event e;
    size_t n = 0;
    uint64_t lost = spans_lost();
    for (; n < RECORD_MANY_SPANS && spans_take(&e); n++)
        steps_take(&t->steps, &e, &handler);
    t->events += n;
    if (lost != t->lost)
        steps_lose(&t->steps);
    t->lost = lost;
    if (n == 0)
        steps_settle(&t->steps, now_ns, &handler);
    steps_plan_look(t, now_ns);
}

static void steps_begin_telling(struct record *r) {
    struct record_steps *t = &r->steps;
    struct spans_event old;
    struct err e = {.text = ""};
    bool known = torch_spans_begin(r->facts.torch, &e) == 0;
    (void)snprintf(t->note, sizeof t->note, "%s", known ? "" : e.text);
    t->told = known;
    t->refused = !known;
    if (!known)
        return;
    steps_init(&t->steps);
    for (size_t n = 0; n < SPANS_CAP && spans_take(&old); n++)
        ; /* of the last time */
    t->lost = spans_lost();
    t->look_due_ns = clock_mono_ns();
}

void record_steps_end(struct record *r) {
    if (r->steps.told)
        torch_spans_end();
    r->steps = (struct record_steps){.told = false};
}

void record_steps_second(struct record *r) {
    bool wanted = r->set && r->config.values[CONFIG_STEPS] != 0;
    if (!wanted && (r->steps.told || r->steps.refused))
        record_steps_end(r);
    else if (wanted && !r->steps.told && !r->steps.refused && r->facts.torch[0])
        steps_begin_telling(r);
    record_steps_take(r);
}
