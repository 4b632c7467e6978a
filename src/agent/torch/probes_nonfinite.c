/* SPDX-License-Identifier: Apache-2.0 */
/* probes_nonfinite: the result of a search (nonfinite.h): its row in python.nonfinite, and the
 * note in the status. See probes.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "agent/torch/nonfinite.h"
#include "agent/torch/probes.h"
#include "base/clock.h"
#include "base/strbuf.h"

#define PROBES_NONFINITE_TEXT 512

/* for a step to end; after that calls of modules are counted instead */
#define PROBES_WAIT_NS (5 * CLOCK_NS_PER_S)

void probes_nonfinite_begin(struct probes *p) {
    p->wanted = p->leases[LEASE_NAN].n ? p->leases[LEASE_NAN].steps_left : 1;
    snprintf(p->notes[LEASE_NAN], sizeof p->notes[LEASE_NAN],
             "checks %lld steps, which take longer: about 0.5 s for each GiB that modules take and give, and "
             "of gradients",
             (long long)p->wanted);
    training_keep_ends(p->training, clock_mono_ns());
    module_hooks_open(MODULE_MODE_NUMBERS, (unsigned)p->wanted, p->training->steps.per_step);
}

void probes_nonfinite_wait(struct probes *p, uint64_t now_ns) {
    if (module_window_get() == MODULE_WINDOW_WAITS && !module_window_is_anyhow() &&
        (p->training->refused || now_ns - p->phase_ns >= PROBES_WAIT_NS))
        module_window_begin_anyhow((unsigned)p->wanted);
}

static const char *nonfinite_plural(uint64_t n) { return n == 1 ? "" : "s"; }

/* "2 NaN and 1 infinite of 64" */
static void nonfinite_put_numbers(struct strbuf *out, const struct tensor_numbers *n) {
    if (n->nan)
        strbuf_addf(out, "%llu NaN", (unsigned long long)n->nan);
    if (n->inf)
        strbuf_addf(out, "%s%llu infinite", n->nan ? " and " : "", (unsigned long long)n->inf);
    strbuf_addf(out, " of %llu", (unsigned long long)n->count);
}

/* "step 57: output 0 of hidden.1 (Linear): 2 NaN of 64" */
static void nonfinite_put_find(struct strbuf *out, const struct nonfinite_verdict *v, int64_t step) {
    if (step >= 0)
        strbuf_addf(out, "step %lld: ", (long long)step);
    strbuf_adds(out, v->what);
    if (v->name)
        strbuf_addf(out, " of %s%s(%s)", v->name->path, v->name->path[0] ? " " : "", v->name->type);
    strbuf_adds(out, ": ");
    nonfinite_put_numbers(out, &v->find->numbers);
    if (v->find->parameter[0])
        strbuf_addf(out, "; its %s is not finite either", v->find->parameter);
}

/* "nothing non-finite in 2 steps: 37 modules, 74 gradients of parameters; the search took 3.1 ms" */
static void nonfinite_put_nothing(struct strbuf *out, const struct probes *p, size_t modules) {
    const struct nonfinite_counts *c = nonfinite_get_counts();
    bool anyhow = module_window_is_anyhow();
    uint64_t steps = c->rounds;
    strbuf_addf(out, "nothing non-finite in %llu %s%s", (unsigned long long)steps, anyhow ? "call" : "step",
                nonfinite_plural(steps));
    if (anyhow)
        strbuf_adds(out, " of a model (no Optimizer.step was seen to end)");
    if ((int64_t)steps < p->wanted)
        strbuf_addf(out, " of %lld, then it timed out", (long long)p->wanted);
    strbuf_addf(out, ": %zu module%s, %llu gradient%s of parameters checked", modules,
                nonfinite_plural(modules), (unsigned long long)c->parameters,
                nonfinite_plural(c->parameters));
    if (!c->has_optimizers)
        strbuf_adds(out, " (this torch does not report when an optimizer's step begins)");
}

/* What was not checked, and the time of the checks. */
static void nonfinite_put_counts(struct strbuf *out) {
    const struct nonfinite_counts *c = nonfinite_get_counts();
    uint64_t not = c->skipped + c->unread;
    if (c->undecided)
        strbuf_addf(out, "; %llu intermediate gradient%s, with no optimizer step after it",
                    (unsigned long long)c->undecided,
                    c->undecided == 1 ? " was not finite" : "s were not finite");
    if (not )
        strbuf_addf(out, "; not checked: %llu tensor%s of unsupported kinds", (unsigned long long)not,
                    nonfinite_plural(not ));
    if (c->passed)
        strbuf_addf(out, "; %llu intermediate gradient%s, and reached no parameter",
                    (unsigned long long)c->passed, c->passed == 1 ? " was not finite" : "s were not finite");
    if (c->unlooked)
        strbuf_addf(out, "; keyword arguments of %llu call%s of modules are unknown",
                    (unsigned long long)c->unlooked, nonfinite_plural(c->unlooked));
    if (c->beyond)
        strbuf_addf(out, "; %llu tensor%s beyond %llu GiB a step", (unsigned long long)c->beyond,
                    nonfinite_plural(c->beyond), (unsigned long long)(NONFINITE_BYTES >> 30));
    strbuf_addf(out, "; the search took %.3g ms", (double)c->own_ns / 1e6);
}

static int64_t nonfinite_known(uint64_t v) { return v > INT64_MAX ? RING_INT_NULL : (int64_t)v; }

static void nonfinite_put_row(union ring_value *v, const struct nonfinite_verdict *verdict) {
    const struct nonfinite_find *f = verdict->find;
    v[RING_NONFINITE_MODULE].s = verdict->name ? verdict->name->path : NULL;
    v[RING_NONFINITE_CLASS].s = verdict->name ? verdict->name->type : NULL;
    v[RING_NONFINITE_STAGE].i = (int64_t)f->at.stage;
    v[RING_NONFINITE_WHAT].s = verdict->what;
    v[RING_NONFINITE_NAN].i = nonfinite_known(f->numbers.nan);
    v[RING_NONFINITE_INF].i = nonfinite_known(f->numbers.inf);
    v[RING_NONFINITE_ELEMENTS].i = nonfinite_known(f->numbers.count);
    v[RING_NONFINITE_INPUT_MIN].f = f->has_inputs ? f->inputs.min : NAN;
    v[RING_NONFINITE_INPUT_MAX].f = f->has_inputs ? f->inputs.max : NAN;
    v[RING_NONFINITE_INPUT_NONFINITE].i =
        f->has_inputs ? nonfinite_known(f->inputs.nan + f->inputs.inf) : RING_INT_NULL;
    v[RING_NONFINITE_PARAMETER].s = f->parameter[0] ? f->parameter : NULL;
    v[RING_NONFINITE_STACK].s = f->stack[0] ? f->stack : NULL;
}

static void nonfinite_put_none(union ring_value *v, const char *what) {
    v[RING_NONFINITE_MODULE].s = v[RING_NONFINITE_CLASS].s = NULL;
    v[RING_NONFINITE_STAGE].i = RING_NONFINITE_NONE;
    v[RING_NONFINITE_WHAT].s = what;
    v[RING_NONFINITE_NAN].i = v[RING_NONFINITE_INF].i = v[RING_NONFINITE_ELEMENTS].i = RING_INT_NULL;
    v[RING_NONFINITE_INPUT_MIN].f = v[RING_NONFINITE_INPUT_MAX].f = NAN;
    v[RING_NONFINITE_INPUT_NONFINITE].i = RING_INT_NULL;
    v[RING_NONFINITE_PARAMETER].s = v[RING_NONFINITE_STACK].s = NULL;
}

bool probes_nonfinite_end(struct probes *p, uint64_t now_ns, bool is_late) {
    const struct nonfinite_name *names;
    struct nonfinite_verdict verdict;
    union ring_value v[RING_NONFINITE_COUNT];
    struct strbuf text;
    size_t modules, n = probes_job_get_nonfinite(p->job, &names, &modules);
    nonfinite_judge(module_hooks_calls(), names, n, &verdict);
    uint64_t ns = verdict.find ? verdict.find->at.ns : now_ns;
    training_take(p->training);
    int64_t step = verdict.find ? training_step_at(p->training, ns) : -1;
    if (verdict.find && step < 0 && !is_late)
        return false;
    training_drop_ends(p->training);
    p->looks[LEASE_NAN] = nonfinite_get_counts()->rounds;
    strbuf_init(&text, PROBES_NONFINITE_TEXT);
    if (verdict.find)
        nonfinite_put_find(&text, &verdict, step);
    else
        nonfinite_put_nothing(&text, p, modules);
    nonfinite_put_counts(&text);
    snprintf(p->notes[LEASE_NAN], sizeof p->notes[LEASE_NAN], "%s", strbuf_str(&text));
    v[RING_NONFINITE_TIMESTAMP].f = clock_mono_to_epoch_s() + (double)ns / 1e9;
    v[RING_NONFINITE_STEP].i = step < 0 ? RING_INT_NULL : step;
    if (verdict.find)
        nonfinite_put_row(v, &verdict);
    else
        nonfinite_put_none(v, p->notes[LEASE_NAN]);
    record_append(p->training->record, RING_NONFINITE, v);
    strbuf_fini(&text);
    return true;
}
