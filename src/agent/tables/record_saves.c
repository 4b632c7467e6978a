/* SPDX-License-Identifier: Apache-2.0 */
/* record_saves: checkpoints that the job saves, as rows of profiling_data; see record.h, checkpoints.h. */
#include <math.h>

#include "agent/tables/record.h"

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
