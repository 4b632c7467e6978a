/* SPDX-License-Identifier: Apache-2.0 */
/* events: see events.h. */
#include "tui/model/events.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cost.h"
#include "base/text.h"
#include "tui/model/data.h"

#define EVENTS_ADD(p, level, ...) log_add_of((p)->log, (p)->pid, (p)->epoch_s, level, __VA_ARGS__)

/* ---- the connection ---- */

/* How long it took, as the end of a sentence. */
static void events_took(const struct events *q, const struct events_place *p, char *buf, size_t cap) {
    buf[0] = '\0';
    if (q->began_s > 0 && p->now_s >= q->began_s)
        snprintf(buf, cap, " in %.2f s", p->now_s - q->began_s);
}

static void events_connected(struct data *d, const struct events_place *p) {
    struct events *q = &d->pulse;
    char took[32];
    if (q->was_connected) {
        EVENTS_ADD(p, LOG_LEVEL_INFO, "connected again");
        return;
    }
    q->was_connected = true;
    events_took(q, p, took, sizeof took);
    EVENTS_ADD(p, LOG_LEVEL_INFO, "connected%s", took);
}

void events_see_state(struct data *d, enum session_state before, const struct events_place *p) {
    const char *why = *d->why.text ? d->why.text : "the connection ended";
    /* The reason may change while it keeps trying. */
    bool same = strncmp(why, d->pulse.reason, sizeof d->pulse.reason - 1) == 0;
    if (d->state == before && (d->state != SESSION_RECONNECTING || same))
        return;
    snprintf(d->pulse.reason, sizeof d->pulse.reason, "%s", why);
    switch (d->state) {
    case SESSION_CONNECTING:
        break;
    case SESSION_CONNECTED:
        events_connected(d, p);
        break;
    case SESSION_RECONNECTING:
        EVENTS_ADD(p, LOG_LEVEL_WARN, "reconnecting: %s", why);
        break;
    case SESSION_LOST:
        EVENTS_ADD(p, LOG_LEVEL_BAD, "the target is gone: %s", why);
        break;
    case SESSION_FAILED:
        EVENTS_ADD(p, LOG_LEVEL_BAD, "no agent: %s", why);
        break;
    }
}

void events_see_target(struct data *d, bool is_first, const struct events_place *p) {
    const struct model_target *t = &d->target;
    if (!is_first)
        return;
    const char *python = t->python ? t->python : "?";
    if (t->mode == MODEL_MODE_AGENT)
        EVENTS_ADD(p, LOG_LEVEL_INFO, "pid %lld, Python %s: connected to agent %s", (long long)t->pid, python,
                   t->agent_version ? t->agent_version : "version unknown");
    else if (t->mode == MODEL_MODE_RECORDED)
        EVENTS_ADD(p, LOG_LEVEL_INFO, "pid %lld, Python %s: read from its last tables: %s", (long long)t->pid,
                   python, t->mode_reason ? t->mode_reason : "it has ended");
    else
        EVENTS_ADD(p, LOG_LEVEL_WARN, "pid %lld, Python %s: read from outside: %s", (long long)t->pid, python,
                   t->mode_reason ? t->mode_reason : "there is no agent");
    if (t->python_untested)
        EVENTS_ADD(p, LOG_LEVEL_WARN, "Python %s is not tested: data may be wrong", python);
}

/* How many other clients are there? We are one. */
static void events_see_others(struct events *q, const struct model_status *s, const struct events_place *p) {
    int64_t others = s->client_processes > 0 ? s->client_processes - 1 : 0;
    if (others > q->others)
        EVENTS_ADD(p, LOG_LEVEL_INFO, "other clients of the agent: %lld process%s", (long long)others,
                   others == 1 ? "" : "es");
    else if (others < q->others && others == 0)
        EVENTS_ADD(p, LOG_LEVEL_INFO, "no other client is connected to the agent");
    else if (others < q->others)
        EVENTS_ADD(p, LOG_LEVEL_INFO, "other clients still connected to the agent: %lld", (long long)others);
    q->others = others;
}

/* Has a debugger begun, or ceased, to hold threads of the job? */
static void events_see_debuggers(struct data *d, const struct model_status *s, const struct events_place *p) {
    bool stopped = debuggers_stop(&d->holds);
    char line[512];
    debuggers_take(&d->holds, s, p->now_s);
    if (!stopped && debuggers_put_line(&d->holds, p->now_s, line, sizeof line))
        EVENTS_ADD(p, LOG_LEVEL_WARN, "%s", line);
    else if (stopped && !debuggers_stop(&d->holds))
        EVENTS_ADD(p, LOG_LEVEL_INFO, "no thread of the job is held by a debugger now");
}

void events_see_status(struct data *d, const struct model_status *s, const struct events_place *p) {
    struct events *q = &d->pulse;
    if (!isnan(s->budget_pct) && s->budget_pct > 0)
        q->budget_pct = s->budget_pct;
    if (s->uptime_s > 0)
        q->agent_began_s = p->now_s - s->uptime_s;
    events_see_others(q, s, p);
    events_see_debuggers(d, s, p);
    if (!s->strategy)
        return;
    q->holds = s->gil_holds;
    q->hold_us = s->us_longest_gil_hold;
    q->steps_told = s->hooks != NULL;
    text_sanitize(q->steps_note, sizeof q->steps_note, s->steps_note ? s->steps_note : "");
    if (!*q->way)
        EVENTS_ADD(p, LOG_LEVEL_INFO, "the agent was loaded by %s", s->strategy);
    text_sanitize(q->way, sizeof q->way, s->strategy);
}

/* ---- stopped, or silent ---- */

static void events_set_stopped(struct data *d, char state, int64_t tracer, const struct events_place *p) {
    struct events *q = &d->pulse;
    bool stopped = state == 'T' || state == 't';
    /* We may be the ones who stop it. */
    if (stopped == q->stopped || state == '?' || d->target.blocking)
        return;
    q->stopped = stopped;
    if (!stopped) {
        EVENTS_ADD(p, LOG_LEVEL_INFO, "the job continues: it was stopped for %.1f s",
                   p->now_s - q->stopped_at_s);
        return;
    }
    q->stopped_at_s = p->now_s;
    if (tracer > 0)
        EVENTS_ADD(p, LOG_LEVEL_WARN, "the job is stopped by process %lld, which traces it",
                   (long long)tracer);
    else
        EVENTS_ADD(p, LOG_LEVEL_WARN, "the job is stopped: SIGCONT continues it");
}

void events_see_proc_stats(struct data *d, const struct proc_stats *v, const struct events_place *p) {
    d->pulse.vitals = *v;
    d->pulse.vitals_at_s = p->now_s;
    events_set_stopped(d, v->state, v->tracer_pid, p);
}

void events_see_time(struct data *d, double delay_s, const struct events_place *p) {
    struct events *q = &d->pulse;
    double longest = 2 * delay_s > EVENTS_SILENT_S ? 2 * delay_s : EVENTS_SILENT_S;
    if (q->silent || d->state != SESSION_CONNECTED || !d->live.valid || data_is_recorded(d) || delay_s <= 0 ||
        p->now_s - d->live.arrived_s <= longest)
        return;
    q->silent = true;
    EVENTS_ADD(p, LOG_LEVEL_WARN, "no data for %.0f s, though connected", longest);
}

/* ---- what is lost ---- */

/* By how much a counter has grown; it may have restarted. */
static uint64_t events_grew(uint64_t *before, uint64_t now) {
    uint64_t by = now >= *before ? now - *before : now;
    *before = now;
    return by;
}

static void events_report_losses(struct events *q, const struct events_place *p) {
    uint64_t missed = q->missed_all - q->missed, dropped = q->dropped_all - q->dropped;
    if ((!missed && !dropped) || (q->losses_at_s > 0 && p->now_s - q->losses_at_s < EVENTS_DROPS_S))
        return;
    q->losses_at_s = p->now_s;
    q->missed = q->missed_all;
    q->dropped = q->dropped_all;
    if (missed)
        EVENTS_ADD(p, LOG_LEVEL_WARN,
                   "notifications dropped: %llu; they come faster than this program reads them",
                   (unsigned long long)missed);
    if (dropped)
        EVENTS_ADD(p, LOG_LEVEL_WARN, "samples dropped: %llu; shares are of those that arrived",
                   (unsigned long long)dropped);
}

/* ---- collections of garbage ---- */

static void events_name(const struct data *d, int64_t tid, char *buf, size_t cap) {
    const struct model_thread *t = data_find_thread(&d->live, tid);
    if (t)
        text_sanitize(buf, cap, data_thread_name(t));
    else
        snprintf(buf, cap, "thread %lld", (long long)tid);
}

/* A collection has ended; its length is that between its first and last observation. */
static void events_end_run(struct data *d, struct events_run *run, double period_s, bool by_samples,
                           const struct events_place *p) {
    struct events *q = &d->pulse;
    double took = run->last_s - run->first_s + (by_samples ? period_s : 0);
    if (run->looks > 1 && took >= EVENTS_GC_LONG_S) {
        events_name(d, run->tid, q->gc_who, sizeof q->gc_who);
        q->gc_s = took;
        q->gc_at_s = run->last_s;
        log_add_of(p->log, p->pid, run->last_s, LOG_LEVEL_WARN, "%s%.0f ms in %s",
                   by_samples ? "garbage collection: about " : "garbage collection in every snapshot for ",
                   took * 1000, q->gc_who);
    }
    run->tid = 0;
}

/* Observe a thread: does it collect? Observations further apart than `most_s` belong to two
 * collections. */
static void events_poll(struct data *d, struct events_run *runs, int64_t tid, int8_t gc, double at_s,
                        double most_s, bool by_samples, const struct events_place *p) {
    struct events_run *run = NULL, *free = NULL;
    for (int i = 0; i < EVENTS_GC_RUNS; i++) {
        if (runs[i].tid == tid)
            run = &runs[i];
        else if (!runs[i].tid && !free)
            free = &runs[i];
    }
    if (run && (gc != 1 || at_s - run->last_s > most_s)) {
        events_end_run(d, run, most_s / 3, by_samples, p);
        free = run;
        run = NULL;
    }
    if (gc != 1)
        return;
    if (run) {
        run->last_s = at_s;
        run->looks++;
    } else if (free)
        *free = (struct events_run){tid, at_s, at_s, 1};
}

/* ---- what comes ---- */

enum events_meter events_class(const struct data *d, const struct model_thread *t) {
    if (d->has_target && t->tid == d->target.pid)
        return EVENTS_CPU_MAIN;
    return t->has_python ? EVENTS_CPU_PYTHON : EVENTS_CPU_NATIVE;
}

double events_class_cpu(const struct data *d, const struct model_snapshot *s, enum events_meter class,
                        size_t *n) {
    double sum = NAN;
    *n = 0;
    for (size_t i = 0; i < s->n_threads; i++) {
        if (events_class(d, &s->threads[i]) != class)
            continue;
        (*n)++;
        if (!isnan(s->threads[i].cpu_pct))
            sum = (isnan(sum) ? 0 : sum) + s->threads[i].cpu_pct;
    }
    return *n ? sum : 0;
}

void events_see_snapshot(struct data *d, const struct events_place *p) {
    struct events *q = &d->pulse;
    const struct model_snapshot *s = &d->live.snapshot;
    size_t n;
    double longest;
    for (int c = EVENTS_CPU_MAIN; c <= EVENTS_CPU_NATIVE; c++)
        meter_add(&q->meters[c], events_class_cpu(d, s, (enum events_meter)c, &n));
    bool known = s->gil_tid != MODEL_UNKNOWN && s->gil_enabled != 0;
    meter_add(&q->meters[EVENTS_GIL_WAIT], !known ? NAN : data_gil_waiters(s, &longest) ? 100 : 0);
    meter_add(&q->meters[EVENTS_RSS],
              s->process.rss_bytes == MODEL_UNKNOWN ? NAN : (double)s->process.rss_bytes);
    meter_add(&q->meters[EVENTS_AGENT], s->process.agent_cpu_pct);
    if (q->silent)
        EVENTS_ADD(p, LOG_LEVEL_INFO, "data again");
    q->silent = false;
    if (s->n_threads)
        events_set_stopped(d, s->threads[0].state, 0, p);
    q->missed_all += events_grew(&q->missed_before, s->dropped);
    events_report_losses(q, p);
    bool by_samples = q->samples_at_s > 0 && p->now_s - q->samples_at_s < EVENTS_RUNS_STAY_S;
    if (by_samples) /* they show more */
        memset(q->looks, 0, sizeof q->looks);
    for (size_t i = 0; !by_samples && i < s->n_threads; i++)
        events_poll(d, q->looks, s->threads[i].tid, s->threads[i].gc, s->timestamp, 2.0, false, p);
}

static void events_see_rate(struct data *d, const struct model_sample_batch *b, double asked_hz,
                            const struct events_place *p) {
    struct events *q = &d->pulse;
    double hz = b->period_us > 0 ? 1e6 / b->period_us : NAN;
    meter_add(&q->meters[EVENTS_RATE], hz);
    if (isnan(hz) || data_is_recorded(d))
        return;
    q->low_batches = hz < EVENTS_RATE_LOW * asked_hz ? q->low_batches + 1 : 0;
    if (q->low_batches == EVENTS_LOW_BATCHES && !q->is_low) {
        q->is_low = true;
        if (cost_is_limiting(b->cost_pct, b->budget_pct))
            EVENTS_ADD(p, LOG_LEVEL_WARN, "sampling slowed to %.0f of %g Hz to stay under %g %% of a core",
                       hz, asked_hz, b->budget_pct);
        else
            EVENTS_ADD(p, LOG_LEVEL_WARN, "sampling only %.0f of %g Hz", hz, asked_hz);
    } else if (q->is_low && hz >= EVENTS_RATE_WELL * asked_hz) {
        q->is_low = false;
        EVENTS_ADD(p, LOG_LEVEL_INFO, "sampling %.0f of %g Hz again", hz, asked_hz);
    }
}

void events_see_samples(struct data *d, const struct model_sample_batch *b, double asked_hz,
                        const struct events_place *p) {
    struct events *q = &d->pulse;
    double most_s = 3 * (b->period_us > 0 ? b->period_us / 1e6 : 1 / asked_hz);
    if (b->n_samples)
        q->samples_at_s = p->now_s;
    if (!isnan(b->budget_pct) && b->budget_pct > 0)
        q->budget_pct = b->budget_pct;
    for (size_t i = 0; i < b->n_samples; i++)
        events_poll(d, q->runs, b->samples[i].tid, b->samples[i].gc, b->samples[i].timestamp, most_s, true,
                    p);
    if (b->n_samples)
        events_see_rate(d, b, asked_hz, p);
    q->dropped_all += events_grew(&q->dropped_before, b->dropped);
    events_report_losses(q, p);
}
