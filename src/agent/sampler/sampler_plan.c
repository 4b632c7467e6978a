/* SPDX-License-Identifier: Apache-2.0 */
/* sampler_plan: what is to be done now, from what clients want and what is due; see sampler.h. Called with the mailbox locked. */
#include "agent/sampler/sampler_internal.h"

#include <math.h>
#include <string.h>

#include "agent/sampler/budget.h"

#define SAMPLER_BATCH_NS (500 * CLOCK_NS_PER_MS) /* unless the clients want it otherwise: */
#define SAMPLER_BATCH_MIN_S 0.03                 /* as often as a screen is painted */
#define SAMPLER_BATCH_MAX_S 10.0
#define SAMPLER_FIRST_BATCH_NS (100 * CLOCK_NS_PER_MS)

/* Time between two snapshots of a stream. */
static uint64_t sampler_snapshot_interval(struct sampler *s, double rate_hz) {
    uint64_t wanted = (uint64_t)(1e9 / rate_hz);
    bool stretched;
    uint64_t interval = cost_interval_ns(&s->snapshot_cost, wanted, s->budget_pct, &stretched);
    s->stretched_snapshots |= stretched;
    if (interval > SAMPLER_SLOWEST_NS && interval > wanted)
        interval = wanted > SAMPLER_SLOWEST_NS ? wanted : SAMPLER_SLOWEST_NS;
    return interval;
}

static void sampler_plan_asks(struct mailbox *m, struct mailbox_slot *slot, struct mailbox_slot *copy,
                              struct sampler_plan *plan) {
    size_t left = 0;
    copy->n_asks = 0;
    for (size_t k = 0; k < slot->n_asks; k++)
        if (mailbox_begin_snapshot(m, slot, slot->asks[k].method))
            copy->asks[copy->n_asks++] = slot->asks[k];
        else
            slot->asks[left++] = slot->asks[k];
    copy->pull = slot->pull;
    copy->rows = slot->rows;
    copy->eval = NULL;
    copy->uid = slot->uid;
    copy->pid = slot->pid;
    copy->looker = slot->looker;
    slot->n_asks = left;
    bool asks_eval = false;
    for (size_t k = 0; k < copy->n_asks; k++) {
        plan->hello |= copy->asks[k].method == WIRE_HELLO;
        plan->threads |= copy->asks[k].method == WIRE_THREADS;
        plan->leave |= copy->asks[k].method == WIRE_UNSUBSCRIBE;
        plan->tables |= copy->asks[k].method == WIRE_TABLES || copy->asks[k].method == WIRE_PULL;
        plan->rows |= copy->asks[k].method == WIRE_ROWS;
        asks_eval |= copy->asks[k].method == WIRE_EVAL;
        plan->probes |= copy->asks[k].method == WIRE_ARM || copy->asks[k].method == WIRE_DISARM;
        plan->gentle |= copy->asks[k].want.mode == MODEL_SAMPLING_GENTLE;
        snapshot_request_join(&plan->wishes, &copy->asks[k].want);
    }
    plan->evals |= asks_eval;
    if (asks_eval) { /* it goes with its question */
        copy->eval = slot->eval;
        slot->eval = NULL;
    }
    if (copy->n_asks)
        copy->peer = slot->peer;
}

static void sampler_plan_threads(struct sampler *s, struct mailbox_slot *slot, struct mailbox_slot *copy,
                                 struct sampler_plan *plan, uint64_t now) {
    double rate = slot->rate_hz[WIRE_STREAM_THREADS];
    if (rate <= 0)
        return;
    uint64_t interval = sampler_snapshot_interval(s, rate);
    /* One that is nearly due joins in when another is taken: one snapshot serves both. */
    if (slot->due_ns <= now + (plan->threads ? interval / 8 : 0)) {
        plan->threads = true;
        copy->peer = slot->peer;
        copy->looker = slot->looker;
        copy->rate_hz[WIRE_STREAM_THREADS] = rate;
        slot->due_ns = (slot->due_ns + interval > now ? slot->due_ns : now) + interval;
    }
    if (slot->due_ns < plan->next_ns)
        plan->next_ns = slot->due_ns;
}

/* How often batches are made; one wish that is shorter than the others is heard at once. */
static void sampler_plan_batches(struct sampler *s, const struct sampler_plan *plan, uint64_t now) {
    double least = fmin(fmax(plan->batch_s, SAMPLER_BATCH_MIN_S), SAMPLER_BATCH_MAX_S);
    s->batch_ns = plan->batch_s > 0 ? (uint64_t)(least * 1e9) : SAMPLER_BATCH_NS;
    if (s->flush_due_ns != SAMPLER_NEVER && s->flush_due_ns > now + s->batch_ns)
        s->flush_due_ns = now + s->batch_ns;
}

/* Looks are taken for the tables too, at least so often. */
static void sampler_plan_background(struct sampler *s, struct sampler_plan *plan, uint64_t now) {
    bool listened = plan->sample_hz > 0;
    double always = background_rate(&s->always, s->mailbox, now, &plan->next_ns);
    plan->gentle |=
        !listened && plan->snapshot_hz <= 0 && always > 0 && background_gentle(&s->always, s->mailbox);
    plan->native_kept = always > 0 && s->always.config.values[CONFIG_NATIVE] != 0;
    plan->sample_hz = fmax(plan->sample_hz, always);
    background_tune(&s->always, plan->sample_hz, listened, &plan->always);
    /* Where a batch ends now, samples of those who have just subscribed begin with the next. */
    if (!plan->always.retune)
        mailbox_set_first(s->mailbox, s->profile.n_samples);
}

static void sampler_plan_samples(struct sampler *s, struct sampler_plan *plan, uint64_t now) {
    bool listened = s->always.listened;
    if (plan->sample_hz <= 0) {
        if (s->tick_due_ns != SAMPLER_NEVER) {
            s->mailbox->status.sampling = NULL;
            thread_sampler_pause(&s->profile);
        }
        s->tick_due_ns = s->flush_due_ns = SAMPLER_NEVER;
        s->n_passed = 0;
        s->stretched_samples = false;
        s->mailbox->status.stretched = s->stretched_snapshots;
        s->mailbox->status.kept_hz = NAN;
        return;
    }
    if (s->tick_due_ns == SAMPLER_NEVER) {
        s->spending.ticked_ns = 0;
        plan->always.soon = true;
    }
    if (plan->always.soon) {
        s->tick_due_ns = now;
        s->flush_due_ns = now + SAMPLER_FIRST_BATCH_NS;
    }
    plan->tick = s->tick_due_ns <= now;
    /* When nobody waits for a batch it ends at a tick: no need to wake up for that. */
    plan->flush = (s->flush_due_ns <= now && (listened || plan->tick)) || plan->leave;
    if (s->tick_due_ns < plan->next_ns)
        plan->next_ns = s->tick_due_ns;
    if (listened && s->flush_due_ns < plan->next_ns)
        plan->next_ns = s->flush_due_ns;
}

/* The slots are large: of one without a peer and questions nothing else is looked at. */
static void sampler_clear_plan(struct sampler_plan *plan) {
    for (size_t i = 0; i < MAILBOX_SLOTS; i++) {
        struct mailbox_slot *slot = &plan->slots[i];
        slot->peer = 0;
        slot->n_asks = 0;
        memset(slot->rate_hz, 0, sizeof slot->rate_hz);
    }
    plan->hello = plan->threads = plan->tick = plan->flush = plan->poke = plan->quiet = plan->gentle =
        plan->complete = plan->native_samples = plan->leave = plan->tables = plan->rows = plan->evals =
            plan->probes = false;
    plan->always = (struct background_plan){.configure = false};
    plan->wishes = (struct snapshot_request){0};
    plan->sample_hz = plan->snapshot_hz = plan->batch_s = 0;
    plan->next_ns = SAMPLER_NEVER;
}

/* Between two ticks nothing has been wished, as a rule, and the slots need not be looked at. `plan`: the last one. */
static bool sampler_plan_unchanged(struct sampler *s, struct sampler_plan *plan, uint64_t now) {
    if (s->replan || s->planned != s->mailbox->changes || plan->sample_hz <= 0 || plan->snapshot_hz > 0)
        return false;
    plan->hello = plan->threads = plan->poke = plan->quiet = plan->complete = plan->leave = plan->tables =
        plan->rows = false;
    plan->probes = plan->evals = false;
    plan->always = (struct background_plan){.configure = false};
    plan->next_ns = SAMPLER_NEVER;
    sampler_plan_samples(s, plan, now);
    background_plan_second(&s->always, plan->tick, true, now, &plan->always, &plan->next_ns);
    return true;
}

static void sampler_plan_slot(struct mailbox *m, struct mailbox_slot *slot, struct mailbox_slot *copy,
                              struct sampler_plan *plan) {
    sampler_plan_asks(m, slot, copy, plan);
    for (size_t k = 0; k < WIRE_STREAM_COUNT; k++)
        plan->gentle |= slot->rate_hz[k] > 0 && slot->mode[k] == MODEL_SAMPLING_GENTLE;
    plan->snapshot_hz = fmax(plan->snapshot_hz, slot->rate_hz[WIRE_STREAM_THREADS]);
    if (slot->rate_hz[WIRE_STREAM_SAMPLES] <= 0)
        return;
    double batch_s = slot->batch_s > 0 ? slot->batch_s : (double)SAMPLER_BATCH_NS / 1e9;
    plan->batch_s = plan->batch_s > 0 ? fmin(plan->batch_s, batch_s) : batch_s;
    plan->sample_hz = fmax(plan->sample_hz, slot->rate_hz[WIRE_STREAM_SAMPLES]);
    plan->native_samples |= slot->native;
}

static void sampler_plan_probes(struct sampler *s, struct sampler_plan *plan, uint64_t now) {
    uint64_t next = probes_next_ns(&s->probes);
    plan->probes |= next <= now || (plan->complete && probes_waits(&s->probes));
    if (next < plan->next_ns)
        plan->next_ns = next;
}

void sampler_make_plan(struct sampler *s, struct sampler_plan *plan, uint64_t now) {
    struct mailbox *m = s->mailbox;
    if (sampler_plan_unchanged(s, plan, now))
        return;
    s->planned = m->changes;
    sampler_clear_plan(plan);
    uint64_t made_ns = virtual_tables_next_ns(&s->made), evals_ns = evals_next_ns(&s->evals);
    made_ns = evals_ns < made_ns ? evals_ns : made_ns;
    plan->next_ns = pending_snapshots_next_ns(&s->complete);
    plan->next_ns = made_ns < plan->next_ns ? made_ns : plan->next_ns;
    plan->complete = m->nudge || plan->next_ns <= now;
    plan->poke = m->poke;
    m->poke = m->nudge = false;
    s->stretched_snapshots = false;
    background_read(&s->always, m, &plan->always);
    plan->gentle = s->always.config.values[CONFIG_GENTLE] != 0;
    m->status.budget_pct = s->budget_pct = budget_choose(&m->config, m);
    for (size_t i = 0; i < MAILBOX_SLOTS; i++)
        if (m->slots[i].peer)
            sampler_plan_slot(m, &m->slots[i], &plan->slots[i], plan);
    for (size_t i = 0; i < MAILBOX_SLOTS; i++)
        if (m->slots[i].peer)
            sampler_plan_threads(s, &m->slots[i], &plan->slots[i], plan, now);
    sampler_plan_background(s, plan, now);
    sampler_plan_batches(s, plan, now);
    sampler_plan_samples(s, plan, now);
    background_plan_second(&s->always, plan->tick, plan->sample_hz > 0, now, &plan->always, &plan->next_ns);
    sampler_plan_probes(s, plan, now);
    s->replan = pending_snapshots_next_ns(&s->complete) != UINT64_MAX || made_ns != UINT64_MAX ||
                plan->leave || plan->tables || plan->rows || plan->evals || plan->probes ||
                probes_next_ns(&s->probes) != UINT64_MAX;
    plan->quiet =
        plan->sample_hz <= 0 && plan->snapshot_hz <= 0 && (signal_sampler_is_armed() || s->exact_off);
}

bool sampler_is_idle(const struct sampler_plan *plan) {
    return !plan->hello && !plan->threads && !plan->tick && !plan->flush && !plan->poke && !plan->quiet &&
           !plan->complete && !plan->leave && !plan->tables && !plan->rows && !plan->evals && !plan->probes &&
           !plan->always.configure && !plan->always.retune && !plan->always.second;
}
