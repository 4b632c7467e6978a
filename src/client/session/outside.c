/* SPDX-License-Identifier: Apache-2.0 */
/* outside: see outside.h. */
#include "client/session/outside.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cost.h"
#include "base/work.h"

#define OUTSIDE_BATCH_NS (250 * CLOCK_NS_PER_MS)
#define OUTSIDE_TEND_NS (2 * CLOCK_NS_PER_MS)
#define OUTSIDE_STOP_S 2
#define OUTSIDE_NEVER WORK_FOREVER

struct outside_request {
    enum wire_method method; /* threads, subscribe, unsubscribe */
    enum wire_stream stream;
    double rate_hz;
    bool details; /* threads: with the details in `want` */
    struct wire_threads want;
};

struct outside {
    const struct outside_reader *reader;
    void *arg;
    struct work work;
    /* Under the lock. */
    struct outside_request asked[OUTSIDE_MAX_ASKED];
    size_t n_asked;
    struct outside_event *head, *tail;
    size_t n_batches;
    uint64_t lost_snapshots; /* of the stream, since the last one queued */
    double wanted_budget_pct;
    /* ---- the reader's thread alone ---- */
    double rate_hz[WIRE_STREAM_COUNT];
    uint64_t snapshot_due_ns, tick_due_ns, flush_due_ns; /* OUTSIDE_NEVER: not wanted */
    uint64_t dropped;                                    /* samples, since the subscription */
    struct cost snapshot_cost, tick_cost;
    struct cost_meter meter;
    double budget_pct;
    struct cost_pace pace;
    bool ended;
};

/* ---- results ---- */

static struct outside_event *outside_event_new(enum outside_kind kind) {
    struct outside_event *ev = calloc(1, sizeof *ev);
    if (ev)
        ev->kind = kind;
    return ev;
}

void outside_event_free(struct outside_event *ev) {
    if (!ev)
        return;
    model_target_fini(&ev->target);
    model_snapshot_fini(&ev->snapshot);
    model_sample_batch_fini(&ev->batch);
    free(ev);
}

/* Under the lock: remove the waiting snapshot of the stream, or NULL. */
static struct outside_event *outside_unqueue_snapshot(struct outside *o) {
    struct outside_event *before = NULL;
    for (struct outside_event *ev = o->head; ev; before = ev, ev = ev->next) {
        if (ev->kind != OUTSIDE_SNAPSHOT || ev->asked)
            continue;
        *(before ? &before->next : &o->head) = ev->next;
        if (o->tail == ev)
            o->tail = before;
        return ev;
    }
    return NULL;
}

/* Queue a result; NULL (no memory) does nothing. */
static void outside_post(struct outside *o, struct outside_event *ev) {
    struct outside_event *old = NULL;
    if (!ev)
        return;
    work_lock(&o->work);
    if (ev->kind == OUTSIDE_SNAPSHOT && !ev->asked) {
        old = outside_unqueue_snapshot(o);
        o->lost_snapshots += old != NULL;
        ev->snapshot.dropped = o->lost_snapshots;
    }
    ev->next = NULL;
    *(o->tail ? &o->tail->next : &o->head) = ev;
    o->tail = ev;
    o->n_batches += ev->kind == OUTSIDE_SAMPLES;
    work_unlock(&o->work);
    outside_event_free(old);
    work_notify(&o->work);
}

struct outside_event *outside_take(struct outside *o) {
    work_clear(&o->work);
    work_lock(&o->work);
    struct outside_event *list = o->head;
    o->head = o->tail = NULL;
    o->n_batches = 0;
    work_unlock(&o->work);
    return list;
}

int outside_fd(const struct outside *o) { return o->work.fd; }

static void outside_reply(struct outside *o, enum wire_method method, const struct err *error) {
    struct outside_event *ev = outside_event_new(OUTSIDE_REPLY);
    if (!ev)
        return;
    ev->method = method;
    ev->failed = error != NULL;
    if (error)
        ev->error = *error;
    outside_post(o, ev);
}

static void outside_end(struct outside *o, const struct err *why) {
    struct outside_event *ev = outside_event_new(OUTSIDE_GONE);
    o->ended = true;
    if (!ev)
        return;
    ev->error = *why;
    outside_post(o, ev);
}

/* ---- reading; on the reader's thread ---- */

static void outside_report_change(struct outside *o) {
    struct outside_event *ev = outside_event_new(OUTSIDE_CHANGED);
    if (ev && o->reader->changed(o->arg, &ev->target))
        outside_post(o, ev);
    else
        outside_event_free(ev);
}

/* Take a snapshot for the stream, or for a request. */
static void outside_snapshot(struct outside *o, bool asked) {
    struct outside_event *ev = outside_event_new(OUTSIDE_SNAPSHOT);
    struct err why = {0};
    uint64_t cpu = clock_self_cpu_ns();
    if (!ev)
        return;
    int rc = o->reader->snapshot(o->arg, &ev->snapshot, &why);
    cost_add(&o->snapshot_cost, clock_self_cpu_ns() - cpu);
    outside_report_change(o);
    if (rc == 0) {
        ev->asked = asked;
        outside_post(o, ev);
        return;
    }
    outside_event_free(ev);
    if (why.code == ERR_LOST)
        outside_end(o, &why);
    else if (asked)
        outside_reply(o, WIRE_THREADS, &why);
}

static void outside_details(struct outside *o, const struct wire_threads *want) {
    struct outside_event *ev = outside_event_new(OUTSIDE_DETAILS);
    struct err why = {0};
    if (!ev)
        return;
    int rc = o->reader->details(o->arg, want, &ev->snapshot, &why);
    outside_report_change(o);
    if (rc == 0) {
        outside_post(o, ev);
        return;
    }
    outside_event_free(ev);
    if (why.code == ERR_LOST)
        outside_end(o, &why);
    else
        outside_reply(o, WIRE_THREADS, &why);
}

/* Pass the collected samples to the loop, or drop them if the loop takes none. */
static void outside_flush(void *arg) {
    struct outside *o = arg;
    work_lock(&o->work);
    bool room = o->n_batches < OUTSIDE_MAX_BATCHES;
    work_unlock(&o->work);
    size_t n = o->reader->pending(o->arg);
    struct outside_event *ev = n && room ? outside_event_new(OUTSIDE_SAMPLES) : NULL;
    if (ev && o->reader->take(o->arg, &ev->batch) == 0) {
        ev->batch.dropped = o->dropped;
        ev->batch.budget_pct = o->budget_pct;
        ev->batch.cost_pct = cost_meter_add(&o->meter, clock_mono_ns(), clock_self_cpu_ns());
        outside_post(o, ev);
    } else if (n) {
        outside_event_free(ev);
        o->reader->drop(o->arg);
        o->dropped += n;
    }
    o->flush_due_ns = clock_mono_ns() + OUTSIDE_BATCH_NS;
}

/* The interval between two runs of work with that cost, within the budget. */
static uint64_t outside_interval(const struct outside *o, const struct cost *cost, double rate_hz) {
    bool stretched;
    return cost_stream_ns(cost, (uint64_t)(1e9 / rate_hz), o->budget_pct, &stretched);
}

static void outside_tick(struct outside *o) {
    struct err why = {0};
    uint64_t cpu = clock_self_cpu_ns();
    double rate = o->rate_hz[WIRE_STREAM_SAMPLES];
    int rc = o->reader->tick(o->arg, (uint64_t)(1e9 / rate), outside_flush, o, &why);
    cost_add(&o->tick_cost, clock_self_cpu_ns() - cpu);
    outside_report_change(o);
    if (rc != 0 && why.code == ERR_LOST) {
        outside_flush(o);
        outside_end(o, &why);
        return;
    }
    o->tick_due_ns = clock_mono_ns() + cost_pace_next_ns(&o->pace, outside_interval(o, &o->tick_cost, rate));
}

static void outside_set_stream(struct outside *o, enum wire_stream stream, double rate_hz) {
    uint64_t now = clock_mono_ns();
    bool had = o->rate_hz[stream] > 0, wanted = rate_hz > 0;
    o->rate_hz[stream] = rate_hz;
    if (stream == WIRE_STREAM_THREADS) {
        o->snapshot_due_ns = wanted ? now : OUTSIDE_NEVER;
        return;
    }
    if (had && !wanted) {
        outside_flush(o);
        o->reader->pause(o->arg);
    }
    if (!had)
        o->dropped = 0;
    o->tick_due_ns = wanted ? now : OUTSIDE_NEVER;
    o->flush_due_ns = wanted ? now + OUTSIDE_BATCH_NS : OUTSIDE_NEVER;
}

static void outside_serve(struct outside *o, const struct outside_request *r) {
    if (r->method == WIRE_THREADS) {
        if (r->details)
            outside_details(o, &r->want);
        else
            outside_snapshot(o, true);
        return;
    }
    outside_set_stream(o, r->stream, r->rate_hz);
    outside_reply(o, r->method, NULL);
}

/* Do all work that is due. */
static void outside_work(struct outside *o) {
    uint64_t now = clock_mono_ns();
    if (!o->ended && o->snapshot_due_ns <= now) {
        outside_snapshot(o, false);
        uint64_t interval = outside_interval(o, &o->snapshot_cost, o->rate_hz[WIRE_STREAM_THREADS]);
        o->snapshot_due_ns = (o->snapshot_due_ns + interval > now ? o->snapshot_due_ns : now) + interval;
    }
    if (!o->ended && o->tick_due_ns <= now)
        outside_tick(o);
    if (!o->ended && o->flush_due_ns <= now)
        outside_flush(o);
}

static uint64_t outside_next_ns(const struct outside *o) {
    uint64_t next = o->snapshot_due_ns < o->tick_due_ns ? o->snapshot_due_ns : o->tick_due_ns;
    return o->flush_due_ns < next ? o->flush_due_ns : next;
}

static void outside_loop(struct outside *o) {
    struct outside_request now[OUTSIDE_MAX_ASKED];
    bool tending = false;
    work_lock(&o->work);
    while (!o->work.stop && !o->ended) {
        size_t n = o->n_asked;
        uint64_t next = outside_next_ns(o), soon = clock_mono_ns();
        if (n == 0 && next > soon && !(tending && next - soon <= OUTSIDE_TEND_NS)) {
            work_wait(&o->work, tending ? soon + OUTSIDE_TEND_NS : next);
            n = o->n_asked;
        }
        memcpy(now, o->asked, n * sizeof *now);
        o->n_asked = 0;
        o->budget_pct = o->wanted_budget_pct;
        work_unlock(&o->work);
        for (size_t i = 0; i < n && !o->ended; i++)
            outside_serve(o, &now[i]);
        outside_work(o);
        tending = o->reader->tend(o->arg);
        work_lock(&o->work);
    }
    work_unlock(&o->work);
}

static void outside_run(void *arg) {
    struct outside *o = arg;
    struct outside_event *ev = outside_event_new(OUTSIDE_ATTACHED);
    struct err why = {0};
    if (!ev)
        err_set(&why, ERR_FAILED, "out of memory");
    if (!ev || o->reader->open(o->arg, &ev->target, &why) != 0) {
        outside_event_free(ev);
        outside_end(o, &why);
    } else {
        outside_post(o, ev);
        outside_loop(o);
    }
    o->reader->close(o->arg);
}

/* ---- the loop's side ---- */

static int outside_ask(struct outside *o, const struct outside_request *r, struct err *e) {
    int rc = 0;
    work_lock(&o->work);
    if (o->n_asked < OUTSIDE_MAX_ASKED)
        o->asked[o->n_asked++] = *r;
    else
        rc = err_set(e, ERR_FAILED, "too many requests wait for an answer");
    work_wake(&o->work);
    work_unlock(&o->work);
    return rc;
}

int outside_ask_snapshot(struct outside *o, struct err *e) {
    return outside_ask(o, &(struct outside_request){.method = WIRE_THREADS}, e);
}

int outside_ask_details(struct outside *o, const struct wire_threads *want, struct err *e) {
    return outside_ask(o, &(struct outside_request){.method = WIRE_THREADS, .details = true, .want = *want},
                       e);
}

int outside_ask_stream(struct outside *o, enum wire_stream stream, double rate_hz, struct err *e) {
    struct outside_request r = {.method = rate_hz > 0 ? WIRE_SUBSCRIBE : WIRE_UNSUBSCRIBE,
                                .stream = stream,
                                .rate_hz = rate_hz > 0 ? rate_hz : 0};
    return outside_ask(o, &r, e);
}

void outside_set_budget(struct outside *o, double budget_pct) {
    work_lock(&o->work);
    o->wanted_budget_pct = budget_pct > 0 ? budget_pct : OUTSIDE_BUDGET_PCT;
    work_unlock(&o->work);
}

static void outside_free(struct outside *o) {
    for (struct outside_event *ev = o->head; ev;) {
        struct outside_event *next = ev->next;
        outside_event_free(ev);
        ev = next;
    }
    free(o);
}

struct outside *outside_start(const struct outside_reader *reader, void *arg, struct err *e) {
    struct outside *o = calloc(1, sizeof *o);
    if (!o) {
        err_set(e, ERR_FAILED, "out of memory for a reader");
        return NULL;
    }
    o->reader = reader;
    o->arg = arg;
    o->budget_pct = o->wanted_budget_pct = OUTSIDE_BUDGET_PCT;
    o->snapshot_due_ns = o->tick_due_ns = o->flush_due_ns = OUTSIDE_NEVER;
    cost_pace_init(&o->pace, clock_mono_ns() ^ (uint64_t)getpid());
    int rc = work_init(&o->work);
    if (rc == 0)
        rc = work_start(&o->work, outside_run, o);
    if (rc == 0)
        return o;
    err_set_errno(e, ERR_FAILED, rc, "cannot start a reader");
    outside_stop(o);
    return NULL;
}

void outside_stop(struct outside *o) {
    if (o && work_stop(&o->work, OUTSIDE_STOP_S))
        outside_free(o);
}
