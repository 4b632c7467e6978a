/* SPDX-License-Identifier: Apache-2.0 */
/* sampler: see sampler.h. */
#include "agent/sampler/sampler.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/debug/fatal.h"
#include "agent/fds.h"
#include "agent/life.h"
#include "agent/sampler/pending_snapshots.h"
#include "agent/sampler/sampler_internal.h"
#include "agent/sampler/signal_sampler.h"
#include "agent/sampler/snapshot_request.h"
#include "agent/sampler/spending.h"
#include "agent/sampler/thread_sampler.h"
#include "agent/sampler/thread_timer.h"
#include "agent/server/pull.h"
#include "agent/server/reply.h"
#include "agent/threads.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/cost.h"
#include "pystack/pystack.h"
#include "version.h"

#define SAMPLER_RETRY_NS CLOCK_NS_PER_S /* between two attempts to find the interpreter */

/* ---- the budget of sampling ---- */

#define SAMPLER_LEAST_SHARE 0.25

/* The budget in percent of a core, with the mailbox locked: the smallest one of the clients
 * counts; none is above the one in the job's environment. */
static double sampler_choose_budget(const struct config *config, const struct mailbox *m) {
    double configured = config->values[CONFIG_BUDGET], least = 0;
    for (size_t i = 0; i < MAILBOX_SLOTS; i++)
        for (size_t k = 0; m->slots[i].peer && k < WIRE_STREAM_COUNT; k++) {
            double wanted = m->slots[i].budget_pct[k];
            if (m->slots[i].rate_hz[k] > 0 && wanted > 0 && (least == 0 || wanted < least))
                least = wanted;
        }
    const struct option_def *d = &config_defs[CONFIG_BUDGET];
    if (least == 0 || (config->given[CONFIG_BUDGET] && least > configured))
        return configured;
    return least < d->min ? d->min : least > d->max ? d->max : least;
}

/* The rest of it after `used_pct`; a share always remains, so that sampling continues beside
 * snapshots. */
static double sampler_budget_left(double budget_pct, double used_pct) {
    double left = budget_pct - used_pct, least = budget_pct * SAMPLER_LEAST_SHARE;
    return left > least ? left : least;
}

/* ---- reading ---- */

static const struct pystack_info *sampler_info(const struct sampler *s) {
    return s->ps ? pystack_get_info(s->ps) : NULL;
}

static size_t sampler_bytes(struct sampler *s, const struct model_snapshot *snap) {
    return threads_stack_bytes(&s->stack) + sizeof *s + thread_sampler_bytes(&s->profile) +
           signal_sampler_bytes() + record_bytes(&s->always.record) + training_bytes(&s->training) +
           alloc_trace_bytes(&s->probes.alloc) + (snap ? snap->arena.used : 0) +
           (s->ps ? pystack_native_bytes(s->ps) : 0);
}

/* The cost of signals in the job's threads. */
static uint64_t sampler_signals_ns(const struct sampler *s) {
    return s->signals.handler_ns + s->signals.deliver_ns;
}

static void sampler_publish(struct sampler *s, const struct model_snapshot *snap) {
    struct mailbox_status *st = &s->mailbox->status;
    const struct pystack_info *info = sampler_info(s);
    size_t bytes = sampler_bytes(s, snap);
    pthread_mutex_lock(&s->mailbox->lock);
    st->of.samples = s->profile.total_samples;
    st->of.torn = s->profile.total_torn;
    st->of.snapshots = s->snapshots;
    st->of.read_errors = s->read_errors + s->profile.read_errors;
    st->of.arena_limit_hits = s->limit_hits;
    st->of.us_per_sample = s->profile.total_samples
                               ? (double)s->spending.total_ns / (double)s->profile.total_samples / 1e3
                               : NAN;
    st->of.stretched = s->stretched_snapshots || s->stretched_samples;
    st->of.kept_hz =
        s->tick_due_ns != SAMPLER_NEVER && s->profile.period_us > 0 ? 1e6 / s->profile.period_us : NAN;
    st->bytes = bytes;
    snprintf(st->discovery, sizeof st->discovery, "%s", info ? info->discovery : "");
    st->of.exact = s->profile.total_exact;
    st->of.unknown_frames = s->profile.unknown_frames;
    st->of.signals_sent = s->signals.sent + s->signals.expired;
    st->of.signals_late = s->signals.late;
    st->of.signals_refused = s->signals.refused;
    st->of.calls_restarted = s->signals.restarted;
    st->of.calls_interrupted = s->signals.eintr;
    st->signals_ns = sampler_signals_ns(s);
    if (s->signals.handled)
        st->of.us_per_signal = (double)sampler_signals_ns(s) / (double)s->signals.handled / 1e3;
    st->of.sampling =
        s->tick_due_ns == SAMPLER_NEVER
            ? NULL
            : model_sampling_name(s->profile.exact ? MODEL_SAMPLING_EXACT : MODEL_SAMPLING_GENTLE);
    if (s->ps && s->exact_off)
        snprintf(st->note, sizeof st->note, "running threads are read as in gentle mode: %s",
                 s->exact_error.text);
    else if (s->ps && s->timers_off[0])
        snprintf(st->note, sizeof st->note, "the sampler wakes up for each sample: %s", s->timers_off);
    else
        snprintf(st->note, sizeof st->note, "%s", s->ps ? s->config_error.text : s->ps_error.text);
    pthread_mutex_unlock(&s->mailbox->lock);
}

/* ---- the interpreter ---- */

/*
 * Python may be finalised, and its library unloaded, while the agent stays.
 */

#define SAMPLER_LIVENESS_CHECK_NS CLOCK_NS_PER_S /* between two checks */
/* and after a failed one: lists may be in the middle of a change */
#define SAMPLER_LIVENESS_RECHECK_NS (100 * CLOCK_NS_PER_MS)
#define SAMPLER_LIVENESS_LOSSES 3 /* after so many failed checks it is gone */

/* Check now and then. True if it was missing at several checks: close it; it may appear again
 * elsewhere. */
static bool sampler_has_lost_python(struct sampler_liveness *p, struct pystack *ps, uint64_t now_ns) {
    if (!ps || now_ns - p->checked_ns < (p->losses ? SAMPLER_LIVENESS_RECHECK_NS : SAMPLER_LIVENESS_CHECK_NS))
        return false;
    p->checked_ns = now_ns;
    p->losses = pystack_is_there(ps) ? 0 : p->losses + 1;
    if (p->losses < SAMPLER_LIVENESS_LOSSES)
        return false;
    p->losses = 0;
    return true;
}

/* The file that reads memory where process_vm_readv is refused must not stay open in a child of
 * the job. `ps` NULL: none is open. */
static void sampler_note_python_file(struct sampler_liveness *p, const struct pystack *ps) {
    int file = (ps ? pystack_own_file(ps) : -1) + 1;
    if (file == p->file)
        return;
    fds_forget(p->file - 1);
    fds_note(file - 1);
    p->file = file;
}

static void sampler_flush(void *arg);

/* The interpreter is gone: finalised, or unloaded. Another one may appear, at the same place or
 * elsewhere. */
static void sampler_lose(struct sampler *s) {
    signal_sampler_disarm();
    worker_lose(s->mailbox->worker);
    if (s->mailbox->evaluator)
        worker_lose(s->mailbox->evaluator);
    sampler_flush(s);
    thread_sampler_pause(&s->profile);
    probes_lose(&s->probes);
    pystack_close(s->ps);
    s->ps = NULL;
    s->opened_ns = 0;
    s->read_errors++;
    sampler_note_python_file(&s->liveness, s->ps);
}

struct pystack *sampler_pystack(struct sampler *s) {
    uint64_t now = clock_mono_ns();
    if (sampler_has_lost_python(&s->liveness, s->ps, now))
        sampler_lose(s);
    if (s->ps || (s->opened_ns && now - s->opened_ns < SAMPLER_RETRY_NS))
        return s->ps;
    s->opened_ns = now;
    s->ps = pystack_open(0, &s->ps_error);
    sampler_publish(s, NULL);
    return s->ps;
}

/* For alloc_trace.h: the interpreter's reader, and numbers of stacks. */
static struct pystack *sampler_get_pystack(void *arg) {
    const struct sampler *s = arg;
    return s->ps;
}

static int64_t sampler_number_stack(void *arg, const struct model_frame *frames, size_t n) {
    struct sampler *s = arg;
    uint32_t stack = thread_sampler_number(&s->profile, s->ps, frames, n);
    struct record_samples samples = background_samples(&s->profile);
    return record_number_stack(&s->always.record, &samples, stack);
}

/* Keep the signal's handler installed while it is wanted and the job does not object. */
static void sampler_choose_mode(struct sampler *s, bool gentle) {
    const struct pystack_info *info = sampler_info(s);
    if (info && !signal_sampler_is_armed() && !pystack_self_supports(info)) {
        err_set(&s->exact_error, ERR_FAILED, "threads of Python %s cannot sample themselves", info->version);
        s->exact_off = true;
    }
    if (info && pystack_own_file(s->ps) >= 0) {
        err_set(&s->exact_error, ERR_FAILED,
                "process_vm_readv is refused in this process (a seccomp filter); /proc/self/mem is read");
        s->exact_off = true;
    }
    sampler_note_python_file(&s->liveness, s->ps);
    if (gentle || s->exact_off) {
        signal_sampler_disarm();
    } else if ((signal_sampler_is_armed() ? signal_sampler_check(&s->exact_error)
                                          : signal_sampler_arm(&s->signals, &s->exact_error)) != 0) {
        s->exact_off = true;
    }
    s->profile.exact = signal_sampler_is_armed();
}

/* A snapshot with the data that only the agent has. 0, or -1 with the error. */
static int sampler_snapshot(struct sampler *s, const struct sampler_plan *plan, struct model_snapshot *out,
                            struct err *e) {
    struct pystack *ps = sampler_pystack(s);
    if (!ps) {
        *out = (struct model_snapshot){0};
        *e = s->ps_error;
        return -1;
    }
    thread_sampler_collect(&s->profile, ps);
    int rc = snapshot_request_snapshot(ps, &s->profile, &plan->wishes, out, e);
    if (rc != 0) {
        s->read_errors++;
        return -1;
    }
    out->seq = ++s->snapshots;
    out->sampling = signal_sampler_is_armed() ? MODEL_SAMPLING_EXACT : MODEL_SAMPLING_GENTLE;
    s->limit_hits += out->incomplete;
    out->process.agent_cpu_pct =
        cost_meter_add(&s->meter, clock_mono_ns(), threads_cpu_ns() + sampler_signals_ns(s));
    pthread_mutex_lock(&s->mailbox->lock);
    size_t server = s->mailbox->server_bytes;
    pthread_mutex_unlock(&s->mailbox->lock);
    out->process.agent_rss_bytes = (int64_t)(sampler_bytes(s, out) + server);
    return 0;
}

/* ---- answers ---- */

/* The access of a client, which is full or read-only. */
static enum wire_access sampler_may(const struct sampler_request *r) {
    return r->looker ? WIRE_READ_ONLY : WIRE_CHANGES;
}

static void sampler_answer_hello(struct sampler *s, const struct sampler_request *r) {
    struct model_target target;
    sampler_pystack(s);
    pystack_read_target(0, s->ps, &target);
    target.mode = MODEL_MODE_AGENT;
    target.agent_version = PROBING_VERSION;
    struct model_target seen = target; /* its texts are borrowed from the target */
    wire_hide_target(&seen, sampler_may(r));
    reply_target(s->mailbox, r->peer, r->ask.id, &seen);
    model_target_fini(&target);
}

/* Answer the requests for threads, except those that need the python worker: these are put into
 * `later`. Returns their number. */
static size_t sampler_answer_asks(struct sampler *s, const struct sampler_plan *plan,
                                  const struct model_snapshot *snap, const struct err *e,
                                  struct reply_to *later) {
    size_t n = 0;
    for (size_t i = 0; i < plan->n_requests; i++) {
        const struct sampler_request *r = &plan->requests[i];
        const struct wire_threads *want = &r->ask.threads;
        struct reply_to who = {.peer = r->peer, .id = r->ask.id, .want = *want};
        if (r->ask.method != WIRE_THREADS)
            continue;
        if (snap && (want->locals || want->tasks) && n < PENDING_SNAPSHOTS_ASKS)
            later[n++] = who;
        else
            reply_threads(s->mailbox, &who, snap, e);
    }
    return n;
}

/* Encoded once for all clients whose stream is due; if it is long, a second time for read-only
 * clients. */
static void sampler_notify_threads(struct sampler *s, const struct sampler_plan *plan,
                                   const struct model_snapshot *snap) {
    struct queue_bytes *all = NULL, *less = NULL;
    for (size_t i = 0; i < plan->n_streams; i++) {
        const struct sampler_stream *to = &plan->streams[i];
        struct queue_bytes **bytes = to->looker ? &less : &all;
        if (!*bytes && to->looker && all && all->len <= MAILBOX_LOOKER_ANSWER)
            *bytes = queue_bytes_ref(all);
        if (!*bytes)
            *bytes = reply_stream(snap, to->looker ? MAILBOX_LOOKER_ANSWER : 0);
        if (*bytes)
            mailbox_post(s->mailbox, queue_item_new(queue_bytes_ref(*bytes), QUEUE_SNAPSHOT, to->peer));
    }
    queue_bytes_unref(all);
    queue_bytes_unref(less);
}

static void sampler_do_threads(struct sampler *s, const struct sampler_plan *plan) {
    struct model_snapshot snap;
    struct reply_to later[PENDING_SNAPSHOTS_ASKS];
    struct err e = {0};
    uint64_t cpu = clock_self_cpu_ns();
    sampler_choose_mode(s, plan->gentle);
    int rc = sampler_snapshot(s, plan, &snap, &e);
    size_t n_later = sampler_answer_asks(s, plan, rc == 0 ? &snap : NULL, &e, later);
    if (rc == 0)
        sampler_notify_threads(s, plan, &snap);
    /* a request of one client does not slow the streams down */
    if (!plan->wishes.locals && !plan->wishes.native.wanted && !plan->wishes.of.tasks)
        cost_add(&s->snapshot_cost, clock_self_cpu_ns() - cpu);
    sampler_publish(s, rc == 0 ? &snap : NULL);
    s->complete.memory_tells_tasks = s->ps && pystack_knows_tasks(s->ps);
    if (n_later)
        pending_snapshots_begin(&s->complete, later, n_later, &snap);
    spending_elsewhere(&s->spending, cpu);
    model_snapshot_fini(&snap);
}

/* ---- samples ---- */

/* CPU of this thread and of the handlers, in percent of a core, over the last seconds. */
static double sampler_cost_pct(struct sampler *s) {
    return cost_meter_add(&s->own_meter, clock_mono_ns(),
                          clock_self_cpu_ns() - s->always.record.cost_ns + sampler_signals_ns(s));
}

/* For requests that compare over steps. */
static void sampler_publish_step(struct sampler *s) {
    int64_t step = s->training.reports ? s->training.steps.count : -1;
    __atomic_store_n(&s->mailbox->last_step, step, __ATOMIC_RELAXED);
}

/* Write new samples to the tables, and with `flush` into their files; the cost of that does not count
 * as sampling. */
static void sampler_record(struct sampler *s, bool flush) {
    uint64_t before = s->always.record.cost_ns;
    struct record_samples samples = background_samples(&s->profile);
    s->always.outgrown |= record_take(&s->always.record, &samples);
    if (flush)
        record_flush(&s->always.record);
    sampler_publish_step(s);
    s->spending.elsewhere_ns += s->always.record.cost_ns - before;
}

/* True if nobody but this thread has run since the last rows of a second: what was read then of
 * Python's memory is still so. The agent's other threads may have run Python for a client. */
static bool sampler_nobody_ran(struct sampler *s, uint64_t others_cpu_ns) {
    struct background *a = &s->always;
    bool nobody =
        thread_sampler_nobody_ran(&s->profile, a->second_ns) && others_cpu_ns == a->second_others_ns;
    a->second_ns = clock_mono_ns();
    a->second_others_ns = others_cpu_ns;
    return nobody;
}

static void sampler_do_second(struct sampler *s) {
    struct record_view view;
    uint64_t cpu = clock_self_cpu_ns(), others = threads_others_cpu_ns();
    s->replan |= !s->always.record.begun;
    record_begin(&s->always.record);
    size_t server = background_view(&s->always, s->mailbox, &view);
    view.self_cpu_ns = cpu;
    view.cpu_ns = others + cpu;
    view.overhead_pct =
        cost_meter_add(&s->always.meter, clock_mono_ns(), view.cpu_ns + sampler_signals_ns(s));
    view.rate_hz = s->always.hz;
    view.python = sampler_info(s) ? sampler_info(s)->version : NULL;
    view.pystack = s->ps;
    view.nobody_ran = sampler_nobody_ran(s, others);
    view.samples = s->profile.total_samples;
    view.torn = s->profile.total_torn;
    view.rss_bytes = (int64_t)(sampler_bytes(s, NULL) + server);
    struct record_samples samples = background_samples(&s->profile);
    record_second(&s->always.record, &samples, &view);
    sampler_publish_step(s);
    background_publish(&s->always, &s->training, s->mailbox);
    probes_second(&s->probes);
    spending_elsewhere(&s->spending, cpu);
}

/* One encoding of a batch, for all clients of one kind that have the same definitions. */
struct sampler_batch {
    uint32_t peer; /* 0 if none */
    bool looker;
    struct queue_mark sent, now; /* their definitions before it and after it */
    size_t first;                /* index of their first sample */
    uint32_t n_samples;
    struct queue_bytes *bytes; /* one reference; NULL without memory */
};

/* List the recipients of the batch, with their current marks: after a rollback the generation is
 * another one. */
static size_t sampler_list_listeners(struct sampler *s, struct sampler_batch *list) {
    size_t n = 0;
    pthread_mutex_lock(&s->mailbox->lock);
    for (size_t i = 0; i < MAILBOX_SLOTS; i++) {
        struct mailbox_slot *slot = &s->mailbox->slots[i];
        if (slot->peer && slot->rate_hz[WIRE_STREAM_SAMPLES] > 0 && slot->first_sample < s->profile.n_samples)
            list[n++] = (struct sampler_batch){
                .peer = slot->peer, .looker = slot->looker, .sent = slot->sent, .first = slot->first_sample};
        slot->first_sample = 0;
    }
    pthread_mutex_unlock(&s->mailbox->lock);
    return n;
}

static void sampler_encode_batch(struct sampler *s, struct sampler_batch *to) {
    struct model_sample_batch batch;
    struct strbuf b;
    strbuf_init(&b, 0);
    int rc = thread_sampler_get_batch(&s->profile, &to->sent, to->first, &batch, &to->now);
    batch.mode = s->profile.exact ? MODEL_SAMPLING_EXACT : MODEL_SAMPLING_GENTLE;
    batch.budget_pct = s->budget_pct;
    batch.cost_pct = sampler_cost_pct(s);
    if (rc == 0)
        wire_put_samples_notify_open(&b, &batch);
    to->bytes = rc == 0 ? queue_bytes_new(&b) : NULL;
    to->n_samples = (uint32_t)batch.n_samples;
    strbuf_fini(&b);
    model_sample_batch_fini(&batch);
}

/* Bytes that wait for read-only clients are counted separately, so these clients share nothing
 * with others. */
static bool sampler_wants_same(const struct sampler_batch *a, const struct sampler_batch *b) {
    return a->looker == b->looker && a->first == b->first && a->sent.epoch == b->sent.epoch &&
           a->sent.frames == b->sent.frames && a->sent.stacks == b->sent.stacks &&
           a->sent.names == b->sent.names;
}

static void sampler_post_batch(struct sampler *s, const struct sampler_batch *to) {
    struct mailbox *m = s->mailbox;
    struct queue_item *item =
        to->bytes ? queue_item_new(queue_bytes_ref(to->bytes), QUEUE_SAMPLES, to->peer) : NULL;
    if (item) {
        item->mark = to->sent;
        item->mark.n_samples = to->n_samples;
    }
    bool posted = mailbox_post(m, item) == 0;
    pthread_mutex_lock(&m->lock);
    /* A generation that has changed meanwhile was rolled back: this batch does not count for it. */
    for (size_t i = 0; posted && i < MAILBOX_SLOTS; i++)
        if (m->slots[i].peer == to->peer && m->slots[i].sent.generation == to->sent.generation)
            m->slots[i].sent = to->now;
    if (!posted)
        m->status.of.dropped += to->n_samples;
    pthread_mutex_unlock(&m->lock);
}

static void sampler_send_batches(struct sampler *s, struct sampler_batch *list, size_t n) {
    for (size_t i = 0; i < n; i++) {
        size_t same = 0;
        while (same < i && !sampler_wants_same(&list[same], &list[i]))
            same++;
        if (same < i) {
            list[i].now = list[same].now;
            list[i].now.generation = list[i].sent.generation;
            list[i].n_samples = list[same].n_samples;
            list[i].bytes = list[same].bytes ? queue_bytes_ref(list[same].bytes) : NULL;
        } else {
            sampler_encode_batch(s, &list[i]);
        }
        sampler_post_batch(s, &list[i]);
    }
    for (size_t i = 0; i < n; i++)
        queue_bytes_unref(list[i].bytes);
}

static void sampler_flush(void *arg) {
    struct sampler *s = arg;
    struct sampler_batch list[MAILBOX_SLOTS];
    sampler_record(s, false);
    s->flush_due_ns = clock_mono_ns() + s->batch_ns;
    if (s->profile.n_samples == 0)
        return;
    size_t n = sampler_list_listeners(s, list);
    uint64_t cpu = n ? clock_self_cpu_ns() : 0;
    sampler_send_batches(s, list, n);
    sampler_publish(s, NULL);
    if (n == 0)
        return;
    s->wake(s->arg);
    spending_batch(&s->spending, cpu);
}

/* a tick or drain is not so late unless the process stood still */
#define SAMPLER_PAUSE_NS (3 * CLOCK_NS_PER_S)
#define SAMPLER_PAUSE_DRAINS 2 /* nor by so many times the ticks that a drain can record */

/* True if the process was stopped, for longer than one that only waits for a CPU stands still. */
static bool sampler_stood_still(const struct sampler *s, uint64_t now) {
    if (!s->profile.timed)
        return s->tick_due_ns < now && now - s->tick_due_ns > SAMPLER_PAUSE_NS;
    if (!s->next_tick_ns)
        return false;
    return now - s->drained_ns > SAMPLER_PAUSE_NS ||
           (s->next_tick_ns < now &&
            now - s->next_tick_ns > SAMPLER_PAUSE_DRAINS * THREAD_SAMPLER_PASSED * s->mean_ns);
}

/* No sample stands for the time of a stop: those before it are sent, and ticks begin again now. */
static void sampler_skip_pause(struct sampler *s) {
    sampler_flush(s);
    thread_sampler_clear_batch(&s->profile);
    s->profile.last_tick_ns = s->profile.drained_ns = 0;
    s->next_tick_ns = 0;
}

/* With timers: draw the ticks since the last drain, however late this one is. Returns their number. */
static size_t sampler_pass_timed(struct sampler *s, uint64_t now) {
    double epoch_s = clock_mono_to_epoch_s();
    size_t n = 0;
    if (!s->next_tick_ns)
        s->next_tick_ns = now;
    for (; s->next_tick_ns < now && n < THREAD_SAMPLER_PASSED; n++) {
        thread_sampler_pass(&s->profile, s->ps, epoch_s + (double)s->next_tick_ns / 1e9);
        s->next_tick_ns += cost_pace_near_ns(&s->pace, s->mean_ns);
    }
    /* Ticks for which there is no room are not for the next drain, which finds what threads do then. */
    if (s->next_tick_ns < now)
        s->next_tick_ns = now;
    s->drained_ns = now;
    return n;
}

/* Record the ticks skipped in sleep so far. Returns their number. */
static size_t sampler_pass_ticks(struct sampler *s) {
    uint64_t now = clock_mono_ns();
    if (sampler_stood_still(s, now))
        sampler_skip_pause(s);
    if (s->profile.timed)
        return sampler_pass_timed(s, now);
    double epoch_s = s->n_passed ? clock_mono_to_epoch_s() : 0;
    size_t n = 0;
    while (n < s->n_passed && s->passed_ns[n] <= now)
        thread_sampler_pass(&s->profile, s->ps, epoch_s + (double)s->passed_ns[n++] / 1e9);
    s->n_passed -= n;
    memmove(s->passed_ns, s->passed_ns + n, s->n_passed * sizeof s->passed_ns[0]);
    return n;
}

#define SAMPLER_SLEEP_SHARE 20 /* of the time for which nobody has run already */

/* When to read again while nobody runs. If the samples are only for the tables, the sleep grows
 * with the rest of the job, until there is one wakeup for the rows of each second: what is lost of
 * a run that begins meanwhile is a small part of the rest before it. */
static uint64_t sampler_sleep_until(const struct sampler *s, uint64_t now) {
    uint64_t idle = thread_sampler_idle_ns(&s->profile), until = now + THREAD_SAMPLER_WAIT_NS;
    if (!idle)
        return 0;
    if (s->always.listened || idle / SAMPLER_SLEEP_SHARE < THREAD_SAMPLER_WAIT_NS)
        return until;
    uint64_t latest = background_latest_ns(&s->always, now), sleep = now + idle / SAMPLER_SLEEP_SHARE;
    until = sleep < latest ? sleep : latest;
    return until < now + BACKGROUND_SLEEP_NS ? until : now + BACKGROUND_SLEEP_NS;
}

#define SAMPLER_DRAINS_SHARE 0.5 /* of the budget, at most */

/* The time until the next drain, as the budget allows. */
static uint64_t sampler_drain_interval(const struct sampler *s, double budget_pct) {
    bool stretched; /* that is said of ticks */
    uint64_t interval = cost_interval_ns(&s->spending.drain, s->profile.drain_ns,
                                         budget_pct * SAMPLER_DRAINS_SHARE, &stretched);
    return interval < SAMPLER_SLOWEST_NS ? interval : SAMPLER_SLOWEST_NS;
}

/* With timers all ticks are slept through until the next drain, which is made together with a
 * batch if one is due then. */
static void sampler_draw_drain(struct sampler *s, uint64_t drain_ns) {
    uint64_t now = clock_mono_ns(), until = now + cost_pace_near_ns(&s->pace, drain_ns);
    uint64_t idle_until = sampler_sleep_until(s, now);
    until = idle_until > until ? idle_until : until;
    /* if it is no sooner than a drain may be drawn: the budget may require that long */
    if (s->always.listened && s->flush_due_ns < now + drain_ns * 3 / 2 &&
        s->flush_due_ns > now + drain_ns / 2)
        until = s->flush_due_ns;
    uint64_t latest = now + (THREAD_SAMPLER_PASSED - 1) * s->mean_ns;
    s->tick_due_ns = until < latest ? until : latest;
}

/* Draw the times of the next ticks. While no thread runs, several ticks share one reading: the
 * result is the same, and waking up is the main cost. */
static void sampler_draw_ticks(struct sampler *s, uint64_t mean_ns) {
    uint64_t now = clock_mono_ns(), next = now + cost_pace_next_ns(&s->pace, mean_ns);
    uint64_t until = sampler_sleep_until(s, now);
    s->n_passed = 0;
    s->tick_due_ns = next;
    while (s->n_passed < THREAD_SAMPLER_PASSED - 1) {
        next += cost_pace_next_ns(&s->pace, mean_ns);
        if (next > until)
            return;
        s->passed_ns[s->n_passed++] = s->tick_due_ns;
        s->tick_due_ns = next;
    }
}

/* True if threads are to copy themselves by timers on their CPU clocks: these expire with the
 * scheduler's tick, and their copies have no native frames. */
static bool sampler_wants_timers(struct sampler *s, const struct sampler_plan *plan) {
    uint64_t tick_ns = thread_timer_tick_ns();
    if (s->profile.timed && signal_sampler_timer_error()[0])
        snprintf(s->timers_off, sizeof s->timers_off, "%s", signal_sampler_timer_error());
    return s->profile.exact && !s->timers_off[0] && !plan->native_samples && !plan->native_kept && tick_ns &&
           plan->sample_hz * (double)tick_ns <= 1e9;
}

/* Between two ticks, as the budget allows. */
static uint64_t sampler_tick_interval(struct sampler *s, uint64_t wanted_ns, double budget_pct) {
    return cost_stream_ns(&s->spending.tick, wanted_ns, budget_pct, &s->stretched_samples);
}

/* Use timers, or no longer. A tick then costs a part of a drain, or again a wake-up. */
static void sampler_set_timed(struct sampler *s, bool timed) {
    if (timed != s->profile.timed)
        s->spending.tick = s->spending.drain = (struct cost){0};
    s->next_tick_ns = timed == s->profile.timed ? s->next_tick_ns : 0;
    s->n_passed = timed ? 0 : s->n_passed;
    thread_sampler_set_timed(&s->profile, s->ps, timed);
}

static void sampler_do_tick(struct sampler *s, const struct sampler_plan *plan) {
    uint64_t wanted = (uint64_t)(1e9 / plan->sample_hz);
    size_t n_ticks = 0;
    struct pystack *ps = sampler_pystack(s);
    spending_begin(&s->spending, sampler_signals_ns(s));
    if (ps)
        sampler_choose_mode(s, plan->gentle);
    if (ps) {
        sampler_set_timed(s, sampler_wants_timers(s, plan));
        s->mean_ns = s->mean_ns > wanted ? s->mean_ns : wanted;
        n_ticks = sampler_pass_ticks(s);
        thread_sampler_set_native(&s->profile, ps, plan->native_samples, plan->native_kept);
        signal_sampler_set_native(s->profile.native);
        s->profile.batch_ns = s->always.listened ? s->batch_ns : SAMPLER_NEVER;
        if (s->profile.timed)
            thread_sampler_drain(&s->profile, ps, s->mean_ns);
        else
            thread_sampler_tick(&s->profile, ps, wanted);
    }
    if (s->profile.timed)
        spending_drain(&s->spending, sampler_signals_ns(s), n_ticks);
    else
        spending_tick(&s->spending, sampler_signals_ns(s));
    double snapshots = s->snapshot_cost.run_ns * plan->snapshot_hz / 1e9 * 100.0;
    double batches = s->always.listened ? spending_batches_pct(&s->spending, s->batch_ns) : 0;
    double budget = sampler_budget_left(s->budget_pct, snapshots + batches);
    if (!s->profile.timed) {
        sampler_draw_ticks(s, sampler_tick_interval(s, wanted, budget));
        return;
    }
    uint64_t drain_ns = sampler_drain_interval(s, budget);
    s->mean_ns = sampler_tick_interval(s, wanted, budget);
    sampler_draw_drain(s, drain_ns);
}

/* After the last batch: a client with this answer has all samples. */
static void sampler_answer_leave(struct sampler *s, const struct sampler_request *r) {
    mailbox_end_samples(s->mailbox, r->peer);
    reply_ok(s->mailbox, r->peer, r->ask.id);
}

static void sampler_answer_tables(struct sampler *s, const struct sampler_request *r) {
    pull_answer_tables(&s->always.record, s->mailbox, r->peer, r->ask.id, sampler_may(r));
}

static void sampler_answer_pull(struct sampler *s, const struct sampler_request *r) {
    pull_answer_rows(&s->always.record, s->mailbox, r->peer, r->ask.id, &r->ask.pull);
}

static void sampler_answer_arm(struct sampler *s, const struct sampler_request *r) {
    probes_take(&s->probes, r->peer, &r->ask);
}

/* When a request is answered. */
enum sampler_stage {
    SAMPLER_FIRST = 1, /* a client that connects waits for it */
    SAMPLER_LEASES,    /* before the leases are checked */
    SAMPLER_LAST,      /* a client that copies tables may wait, the job's samples may not */
};

/* Requests for threads are answered together: sampler_do_threads. */
_Static_assert(WIRE_METHOD_COUNT <= 32, "struct sampler_plan has a bit for each method");
static const struct {
    enum sampler_stage stage;
    void (*answer)(struct sampler *s, const struct sampler_request *r);
} sampler_methods[WIRE_METHOD_COUNT] = {
    [WIRE_HELLO] = {SAMPLER_FIRST, sampler_answer_hello},
    [WIRE_ARM] = {SAMPLER_LEASES, sampler_answer_arm},
    [WIRE_DISARM] = {SAMPLER_LEASES, sampler_answer_arm},
    [WIRE_UNSUBSCRIBE] = {SAMPLER_LAST, sampler_answer_leave},
    [WIRE_TABLES] = {SAMPLER_LAST, sampler_answer_tables},
    [WIRE_PULL] = {SAMPLER_LAST, sampler_answer_pull},
};

static bool sampler_has(const struct sampler_plan *plan, enum wire_method method) {
    return plan->methods & 1U << method;
}

/* True if there was one. */
static bool sampler_answer(struct sampler *s, const struct sampler_plan *plan, enum sampler_stage stage) {
    uint64_t cpu = plan->n_requests ? clock_self_cpu_ns() : 0;
    bool any = false;
    for (size_t i = 0; i < plan->n_requests; i++) {
        const struct sampler_request *r = &plan->requests[i];
        if (sampler_methods[r->ask.method].stage != stage)
            continue;
        sampler_methods[r->ask.method].answer(s, r);
        any = true;
    }
    if (any)
        spending_elsewhere(&s->spending, cpu);
    return any;
}

/* Arm what clients have requested, and end what is over. */
static void sampler_do_probes(struct sampler *s, const struct sampler_plan *plan) {
    bool answered = sampler_answer(s, plan, SAMPLER_LEASES);
    uint64_t cpu = clock_self_cpu_ns();
    answered |= probes_poll(&s->probes);
    probes_publish(&s->probes);
    s->replan = true;
    spending_elsewhere(&s->spending, cpu);
    if (answered)
        s->wake(s->arg);
}

/* Variables in frames of one thread, or of all (0). */
static int sampler_read_frames(struct sampler *s, int64_t tid, struct model_snapshot *out) {
    const struct snapshot_request wishes = {.locals = true, .of = {.tid = tid}};
    struct pystack *ps = sampler_pystack(s);
    if (!ps)
        return -1;
    thread_sampler_collect(&s->profile, ps);
    return snapshot_request_snapshot(ps, &s->profile, &wishes, out, NULL);
}

/* What the server needs for requests that the python workers answer: running threads are asked
 * for their frames by this thread alone. */
static void sampler_answer_readings(struct sampler *s, struct mailbox_reading *r) {
    uint64_t cpu = clock_self_cpu_ns();
    for (struct mailbox_reading *next; r; r = next) {
        next = r->next;
        if (r->kind == MAILBOX_READ_FRAMES)
            r->is_read = sampler_read_frames(s, r->tid, &r->frames) == 0;
        else
            r->is_read = s->ps && pystack_gate_read(s->ps, &r->gate) == 0;
        mailbox_post_reading(s->mailbox, r);
    }
    spending_elsewhere(&s->spending, cpu);
    s->wake(s->arg);
}

/* Send the samples collected so far. */
static void sampler_end_batch(struct sampler *s) {
    if (s->ps)
        thread_sampler_collect(&s->profile, s->ps);
    sampler_pass_ticks(s);
    thread_sampler_settle(&s->profile, s->ps);
    sampler_flush(s);
    thread_sampler_clear_batch(&s->profile);
}

static void sampler_retune(struct sampler *s, const struct sampler_plan *plan) {
    if (plan->always.configure)
        record_configure(&s->always.record, &s->always.config);
    if (plan->always.retune) {
        sampler_end_batch(s);
        pthread_mutex_lock(&s->mailbox->lock);
        /* also for a batch that had no samples and so was not sent */
        mailbox_set_first(s->mailbox, 0);
        pthread_mutex_unlock(&s->mailbox->lock);
        s->profile.last_tick_ns = 0;
        s->next_tick_ns = 0;                            /* that one was drawn at the rate before */
        s->mean_ns = (uint64_t)(1e9 / plan->sample_hz); /* of the new rate; the budget is seen later */
    }
    if (plan->always.fresh) { /* what was refused before may be allowed now */
        s->exact_off = false;
        s->timers_off[0] = 0;
        spending_begin_batches(&s->spending);
    }
    if (background_wants_epoch(&s->always, &s->profile, &plan->always))
        thread_sampler_new_epoch(&s->profile, s->ps);
}

static void sampler_do(struct sampler *s, const struct sampler_plan *plan) {
    sampler_retune(s, plan);
    bool answered = plan->complete || plan->poke;
    if (plan->complete) {
        uint64_t cpu = clock_self_cpu_ns();
        pending_snapshots_poll(&s->complete, s->ps);
        spending_elsewhere(&s->spending, cpu);
    }
    answered |= sampler_answer(s, plan, SAMPLER_FIRST);
    if (plan->threads)
        sampler_do_threads(s, plan);
    if (answered || plan->threads)
        s->wake(s->arg);
    if (plan->tick)
        sampler_do_tick(s, plan);
    if (plan->flush)
        sampler_end_batch(s);
    if (plan->always.second)
        sampler_do_second(s);
    if (record_is_due(&s->always.record)) /* several ticks together: fewer cold caches */
        sampler_record(s, true);
    if (plan->probes)
        sampler_do_probes(s, plan);
    if (sampler_answer(s, plan, SAMPLER_LAST))
        s->wake(s->arg);
    if (plan->readings)
        sampler_answer_readings(s, plan->readings);
    s->replan |= plan->n_requests || plan->readings || plan->threads || plan->complete || plan->quiet;
    if (plan->quiet) {
        signal_sampler_disarm();
        s->exact_off = false;
        s->timers_off[0] = 0;
    }
}

/* ---- the thread ---- */

static void *sampler_main(void *arg) {
    struct sampler *s = arg;
    struct mailbox *m = s->mailbox;
    struct sampler_plan plan;
    threads_begin("probing-smp");
    sampler_pystack(s); /* now, while the first client connects */
    sampler_publish(s, NULL);
    pthread_mutex_lock(&m->lock);
    while (!m->stop) {
        bool fatal = fatal_is_asked();
        if (!fatal)
            sampler_make_plan(s, &plan, clock_mono_ns());
        if (!fatal && sampler_is_idle(&plan)) {
            mailbox_sleep(m, plan.next_ns);
            continue;
        }
        pthread_mutex_unlock(&m->lock);
        if (fatal)
            sampler_keep_fatal(s);
        else
            sampler_do(s, &plan);
        pthread_mutex_lock(&m->lock);
    }
    pthread_mutex_unlock(&m->lock);
    threads_end();
    return NULL;
}

static void sampler_free(struct sampler *s) {
    s->mailbox->record = NULL;
    probes_fini(&s->probes);
    pending_snapshots_fini(&s->complete);
    signal_sampler_disarm();
    sampler_note_python_file(&s->liveness, NULL);
    if (s->ps)
        pystack_close(s->ps);
    thread_sampler_fini(&s->profile);
    record_end(&s->always.record, true);
    training_fini(&s->training);
    free(s);
}

struct sampler *sampler_start(struct mailbox *m, void (*wake)(void *arg), void *arg, struct err *e) {
    struct sampler *s = calloc(1, sizeof *s);
    if (!s || thread_sampler_init(&s->profile, sampler_flush, s) != 0) {
        free(s);
        err_set(e, ERR_FAILED, "no memory for the sampler");
        return NULL;
    }
    s->mailbox = m;
    s->wake = wake;
    s->arg = arg;
    s->complete = (struct pending_snapshots){.worker = m->worker, .answer = reply_snapshot, .arg = m};
    m->record = &s->always.record;
    s->tick_due_ns = s->flush_due_ns = SAMPLER_NEVER;
    s->replan = true;
    config_read_environ(&m->config, 0, &s->config_error); /* the mailbox is not shared yet */
    m->status.of.budget_pct = s->budget_pct = m->config.values[CONFIG_BUDGET];
    background_init(&s->always, m, life_is_invited());
    training_init(&s->training, &s->always.record, m->worker);
    const struct alloc_trace_host host = {
        .arg = s, .pystack = sampler_get_pystack, .number = sampler_number_stack};
    probes_init(&s->probes, m->worker, m, &s->training, &host);
    cost_pace_init(&s->pace, clock_mono_ns() ^ (uint64_t)getpid());
    int rc = threads_create(&s->thread, sampler_main, s, false);
    if (rc == 0) {
        fatal_set_waker(sampler_note_fatal, m);
        return s;
    }
    err_set_errno(e, ERR_FAILED, rc, "no thread for the sampler");
    sampler_free(s);
    return NULL;
}

void sampler_stop(struct sampler *s) {
    if (!s)
        return;
    fatal_set_waker(NULL, NULL);
    mailbox_stop(s->mailbox);
    pthread_join(s->thread, NULL);
    sampler_free(s);
}

/* ---- plan ---- */

/*
 * What to do now: from the requests of clients, and by time. Called with the mailbox locked.
 */

#define SAMPLER_BATCH_NS (500 * CLOCK_NS_PER_MS) /* unless the clients choose another interval: */
#define SAMPLER_BATCH_MIN_S 0.03                 /* the rate at which a screen is painted */
#define SAMPLER_BATCH_MAX_S 10.0
#define SAMPLER_FIRST_BATCH_NS (100 * CLOCK_NS_PER_MS)

/* Time between two snapshots of a stream. */
static uint64_t sampler_snapshot_interval(struct sampler *s, double rate_hz) {
    bool stretched;
    uint64_t interval =
        cost_stream_ns(&s->snapshot_cost, (uint64_t)(1e9 / rate_hz), s->budget_pct, &stretched);
    s->stretched_snapshots |= stretched;
    return interval;
}

static void sampler_plan_asks(struct mailbox *m, struct mailbox_slot *slot, struct sampler_plan *plan) {
    size_t left = 0;
    for (size_t k = 0; k < slot->n_asks; k++) {
        const struct mailbox_ask *ask = &slot->asks[k];
        if (!mailbox_begin_snapshot(m, slot, ask->method)) {
            slot->asks[left++] = *ask;
            continue;
        }
        plan->requests[plan->n_requests++] =
            (struct sampler_request){.peer = slot->peer, .looker = slot->looker, .ask = *ask};
        plan->methods |= 1U << ask->method;
        if (ask->method != WIRE_THREADS)
            continue;
        plan->threads = true;
        plan->gentle |= ask->threads.mode == MODEL_SAMPLING_GENTLE;
        snapshot_request_join(&plan->wishes, &ask->threads);
    }
    slot->n_asks = left;
}

static void sampler_plan_threads(struct sampler *s, struct mailbox_slot *slot, struct sampler_plan *plan,
                                 uint64_t now) {
    double rate = slot->rate_hz[WIRE_STREAM_THREADS];
    if (rate <= 0)
        return;
    uint64_t interval = sampler_snapshot_interval(s, rate);
    /* One that is nearly due is taken together with another: one snapshot serves both. */
    if (slot->due_ns <= now + (plan->threads ? interval / 8 : 0)) {
        plan->threads = true;
        plan->streams[plan->n_streams++] =
            (struct sampler_stream){.peer = slot->peer, .looker = slot->looker};
        slot->due_ns = (slot->due_ns + interval > now ? slot->due_ns : now) + interval;
    }
    if (slot->due_ns < plan->next_ns)
        plan->next_ns = slot->due_ns;
}

/* How often batches are made; a client's choice of a shorter interval takes effect immediately. */
static void sampler_plan_batches(struct sampler *s, const struct sampler_plan *plan, uint64_t now) {
    double least = fmin(fmax(plan->batch_s, SAMPLER_BATCH_MIN_S), SAMPLER_BATCH_MAX_S);
    s->batch_ns = plan->batch_s > 0 ? (uint64_t)(least * 1e9) : SAMPLER_BATCH_NS;
    if (s->flush_due_ns != SAMPLER_NEVER && s->flush_due_ns > now + s->batch_ns)
        s->flush_due_ns = now + s->batch_ns;
}

/* Ticks are taken for the tables, too, at least this often. */
static void sampler_plan_background(struct sampler *s, struct sampler_plan *plan, uint64_t now) {
    bool listened = plan->sample_hz > 0;
    double always = background_rate(&s->always, s->mailbox, now, &plan->next_ns);
    plan->gentle |=
        !listened && plan->snapshot_hz <= 0 && always > 0 && background_gentle(&s->always, s->mailbox);
    plan->native_kept = always > 0 && s->always.config.values[CONFIG_NATIVE] != 0;
    plan->sample_hz = fmax(plan->sample_hz, always);
    background_tune(&s->always, plan->sample_hz, listened, &plan->always);
    /* If a batch ends now, samples of clients that have just subscribed start with the next one. */
    if (!plan->always.retune)
        mailbox_set_first(s->mailbox, s->profile.n_samples);
}

/* With timers: a drain that is nearly due is made together with a snapshot or a batch. */
static bool sampler_drains_along(const struct sampler *s, const struct sampler_plan *plan, uint64_t now) {
    return s->profile.timed && (plan->threads || (s->always.listened && s->flush_due_ns <= now)) &&
           s->tick_due_ns - now < s->profile.drain_ns / 2;
}

static void sampler_plan_samples(struct sampler *s, struct sampler_plan *plan, uint64_t now) {
    bool listened = s->always.listened;
    if (plan->sample_hz <= 0) {
        if (s->tick_due_ns != SAMPLER_NEVER) {
            s->mailbox->status.of.sampling = NULL;
            thread_sampler_pause(&s->profile);
        }
        s->tick_due_ns = s->flush_due_ns = SAMPLER_NEVER;
        s->n_passed = 0;
        s->next_tick_ns = 0;
        s->stretched_samples = false;
        s->mailbox->status.of.stretched = s->stretched_snapshots;
        s->mailbox->status.of.kept_hz = NAN;
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
    plan->tick = s->tick_due_ns <= now || sampler_drains_along(s, plan, now);
    /* If nobody waits for a batch, it ends at a tick: that needs no wakeup of its own. */
    plan->flush = (s->flush_due_ns <= now && (listened || plan->tick)) || sampler_has(plan, WIRE_UNSUBSCRIBE);
    if (s->tick_due_ns < plan->next_ns)
        plan->next_ns = s->tick_due_ns;
    if (listened && s->flush_due_ns < plan->next_ns)
        plan->next_ns = s->flush_due_ns;
}

/* The lists are large, and are not cleared. */
static void sampler_clear_plan(struct sampler_plan *plan) {
    plan->n_requests = plan->n_streams = 0;
    plan->methods = 0;
    plan->threads = plan->tick = plan->flush = plan->poke = plan->quiet = plan->gentle = plan->complete =
        plan->native_samples = plan->probes = false;
    plan->readings = NULL;
    plan->always = (struct background_plan){.configure = false};
    plan->wishes = (struct snapshot_request){0};
    plan->sample_hz = plan->snapshot_hz = plan->batch_s = 0;
    plan->next_ns = SAMPLER_NEVER;
}

/* Usually no request arrives between two ticks, and the slots need not be checked. `plan`: the
 * last one. */
static bool sampler_plan_unchanged(struct sampler *s, struct sampler_plan *plan, uint64_t now) {
    if (s->replan || s->planned != s->mailbox->changes || plan->sample_hz <= 0 || plan->snapshot_hz > 0)
        return false;
    plan->n_requests = plan->n_streams = 0;
    plan->methods = 0;
    plan->threads = plan->poke = plan->quiet = plan->complete = plan->probes = false;
    plan->readings = NULL;
    plan->always = (struct background_plan){.configure = false};
    plan->next_ns = SAMPLER_NEVER;
    sampler_plan_samples(s, plan, now);
    background_plan_second(&s->always, plan->tick, true, now, &plan->always, &plan->next_ns);
    return true;
}

static void sampler_plan_slot(struct mailbox *m, struct mailbox_slot *slot, struct sampler_plan *plan) {
    sampler_plan_asks(m, slot, plan);
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
    plan->probes |= sampler_has(plan, WIRE_ARM) || sampler_has(plan, WIRE_DISARM) || next <= now ||
                    (plan->complete && probes_waits(&s->probes));
    if (next < plan->next_ns)
        plan->next_ns = next;
}

void sampler_make_plan(struct sampler *s, struct sampler_plan *plan, uint64_t now) {
    struct mailbox *m = s->mailbox;
    if (sampler_plan_unchanged(s, plan, now))
        return;
    s->planned = m->changes;
    sampler_clear_plan(plan);
    plan->next_ns = pending_snapshots_next_ns(&s->complete);
    plan->complete = m->nudge || plan->next_ns <= now;
    plan->poke = m->poke;
    m->poke = m->nudge = false;
    plan->readings = m->to_read;
    m->to_read = NULL;
    s->stretched_snapshots = false;
    background_read(&s->always, m, &plan->always);
    plan->gentle = s->always.config.values[CONFIG_GENTLE] != 0;
    m->status.of.budget_pct = s->budget_pct = sampler_choose_budget(&m->config, m);
    for (size_t i = 0; i < MAILBOX_SLOTS; i++)
        if (m->slots[i].peer)
            sampler_plan_slot(m, &m->slots[i], plan);
    for (size_t i = 0; i < MAILBOX_SLOTS; i++)
        if (m->slots[i].peer)
            sampler_plan_threads(s, &m->slots[i], plan, now);
    sampler_plan_background(s, plan, now);
    sampler_plan_batches(s, plan, now);
    sampler_plan_samples(s, plan, now);
    background_plan_second(&s->always, plan->tick, plan->sample_hz > 0, now, &plan->always, &plan->next_ns);
    sampler_plan_probes(s, plan, now);
    s->replan = pending_snapshots_next_ns(&s->complete) != UINT64_MAX || plan->n_requests || plan->readings ||
                plan->probes || probes_next_ns(&s->probes) != UINT64_MAX;
    plan->quiet =
        plan->sample_hz <= 0 && plan->snapshot_hz <= 0 && (signal_sampler_is_armed() || s->exact_off);
}

bool sampler_is_idle(const struct sampler_plan *plan) {
    return !plan->n_requests && !plan->readings && !plan->threads && !plan->tick && !plan->flush &&
           !plan->poke && !plan->quiet && !plan->complete && !plan->probes && !plan->always.configure &&
           !plan->always.retune && !plan->always.second;
}
