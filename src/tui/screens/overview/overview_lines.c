/* SPDX-License-Identifier: Apache-2.0 */
/* overview_lines: see overview_lines.h. */
#include "tui/screens/overview/overview_lines.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cost.h"
#include "base/text.h"
#include "client/samples/sample_store_table.h"
#include "tui/core/app_arm.h"
#include "tui/core/app_take.h"
#include "tui/screens/overview/overview_verdicts.h"
#include "tui/screens/threads/threads_rows.h"
#include "tui/core/window.h"
#include "tui/model/events.h"

#define OVERVIEW_LONG_GIL_US 2000 /* the limit that the agent aims for */
#define OVERVIEW_MEAN 40          /* snapshots that shares are computed from */

/* ---- threads, in words ---- */

#define OVERVIEW_GROUPS 16 /* names that are kept apart; the rest are "others" */
#define OVERVIEW_NAMED 4   /* and written out */

__attribute__((format(printf, 3, 4))) static void overview_append(char *buf, size_t cap, const char *fmt,
                                                                  ...) {
    size_t used = strlen(buf);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(buf + used, cap - used, fmt, ap);
    va_end(ap);
}

/* Names of each state, for one thread and for several. */
static const struct {
    const char *one, *many;
} overview_states[] = {{"runs", "run"},
                       {"waits for the GIL", "wait for the GIL"},
                       {"in a device", "in a device"},
                       {"sleeps", "sleep"},
                       {"stopped", "stopped"},
                       {"of which it is unknown", "of which it is unknown"}};
#define OVERVIEW_STATES (sizeof overview_states / sizeof overview_states[0])

static size_t overview_state(const struct model_thread *t) {
    if (t->gil == MODEL_GIL_WAITING)
        return 1;
    switch (t->state) {
    case 'R':
        return 0;
    case 'D':
        return 2;
    case 'S':
    case 'I':
        return 3;
    case 'T':
    case 't':
    case 'Z':
    case 'X':
        return 4;
    default:
        return 5;
    }
}

static void overview_threads_text(const struct model_snapshot *s, char *buf, size_t cap) {
    size_t n[OVERVIEW_STATES] = {0};
    buf[0] = '\0';
    for (size_t i = 0; i < s->n_threads; i++)
        n[overview_state(&s->threads[i])]++;
    for (size_t i = 0; i < OVERVIEW_STATES; i++)
        if (n[i])
            overview_append(buf, cap, "%s%zu %s", *buf ? ", " : "", n[i],
                            n[i] == 1 ? overview_states[i].one : overview_states[i].many);
    if (s->incomplete)
        overview_append(buf, cap, "; some were left out");
}

/* ---- classes ---- */

struct overview_group {
    char name[32];
    size_t n;
    double cpu; /* NAN: none of them */
};

/* A name without the number at its end, as thread pools have it. */
static void overview_group_name(const struct model_thread *t, char *buf, size_t cap) {
    text_sanitize(buf, cap, data_thread_name(t));
    size_t len = strlen(buf);
    while (len > 1 && strchr("0123456789_-#:/ ", buf[len - 1]))
        len--;
    buf[len] = '\0';
}

static void overview_count(struct overview_group *groups, size_t *n, const struct model_thread *t) {
    char name[sizeof groups->name];
    size_t i = 0;
    overview_group_name(t, name, sizeof name);
    while (i < *n && strcmp(groups[i].name, name) != 0)
        i++;
    if (i == OVERVIEW_GROUPS) {
        i--;
        snprintf(groups[i].name, sizeof groups[i].name, "others");
    } else if (i == *n) {
        groups[(*n)++] = (struct overview_group){.cpu = NAN};
        snprintf(groups[i].name, sizeof groups[i].name, "%s", name);
    }
    groups[i].n++;
    if (!isnan(t->cpu_pct))
        groups[i].cpu = (isnan(groups[i].cpu) ? 0 : groups[i].cpu) + t->cpu_pct;
}

static double overview_order(const struct overview_group *g) { return isnan(g->cpu) ? -1 : g->cpu; }

/* The busiest names first. */
static void overview_put_groups(struct overview_group *groups, size_t n, char *buf, size_t cap) {
    for (size_t k = 0; k < n && k < OVERVIEW_NAMED; k++) {
        size_t best = k;
        for (size_t i = k + 1; i < n; i++)
            if (overview_order(&groups[i]) > overview_order(&groups[best]))
                best = i;
        struct overview_group g = groups[best];
        groups[best] = groups[k];
        groups[k] = g;
        overview_append(buf, cap, "%s%s", k ? ", " : ": ", g.name);
        if (g.n > 1)
            overview_append(buf, cap, " x%zu", g.n);
        if (isnan(g.cpu))
            overview_append(buf, cap, " ?");
        else
            overview_append(buf, cap, " %.0f %%", g.cpu);
    }
    if (n > OVERVIEW_NAMED)
        overview_append(buf, cap, ", ...");
}

static void overview_main_text(const struct model_thread *t, char *buf, size_t cap) {
    const struct model_frame *f = t->n_frames ? &t->frames[0] : NULL;
    char func[96], file[64];
    if (!f) {
        snprintf(buf, cap, t->has_python ? "no frame" : "no Python");
        return;
    }
    text_sanitize(func, sizeof func, f->func ? f->func : "?");
    text_sanitize(file, sizeof file, f->file ? thread_base_name(f->file) : "?");
    snprintf(buf, cap, "%s %s:%d", func, file, f->line);
}

static void overview_class_text(const struct data *d, const struct model_snapshot *s, enum events_meter class,
                                char *buf, size_t cap) {
    struct overview_group groups[OVERVIEW_GROUPS];
    size_t n = 0, threads = 0;
    buf[0] = '\0';
    for (size_t i = 0; i < s->n_threads; i++) {
        const struct model_thread *t = &s->threads[i];
        if (events_class(d, t) != class)
            continue;
        threads++;
        if (class == EVENTS_CPU_MAIN) {
            overview_main_text(t, buf, cap);
            return;
        }
        overview_count(groups, &n, t);
    }
    if (class == EVENTS_CPU_MAIN)
        snprintf(buf, cap, "not seen");
    else
        snprintf(buf, cap, "%zu", threads);
    overview_put_groups(groups, n, buf, cap);
}

/* ---- lines ---- */

struct overview_line *overview_add(struct overview *s, enum overview_kind kind, const char *label,
                                   enum action opens) {
    static struct overview_line nowhere; /* beyond the last one: the lists below are short */
    struct overview_line *l = s->n < OVERVIEW_LINES ? &s->lines[s->n++] : &nowhere;
    *l = (struct overview_line){.kind = kind, .label = label, .role = ROLE_VALUE, .opens = opens};
    return l;
}

static void overview_put_percent(char *buf, size_t cap, double v) {
    if (isnan(v))
        snprintf(buf, cap, "?");
    else
        snprintf(buf, cap, "%.*f %%", v < 99.95 ? 1 : 0, v);
}

void overview_say(struct overview_line *l, const char *fmt, ...) {
    size_t used = strlen(l->text);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(l->text + used, sizeof l->text - used, fmt, ap);
    va_end(ap);
}

static void overview_set_history(struct overview_line *l, const struct meter *m, double full,
                                 enum theme_role role) {
    l->meter = m;
    l->scale = (struct meter_scale){0, full > 0 ? full : ceil(meter_max(m, METER_MAX, 1) / 100) * 100};
    l->meter_role = role;
}

/* ---- meters ---- */

/* The busiest thread of a class; 0: none. */
static int64_t overview_busiest(const struct data *d, const struct model_snapshot *shot,
                                enum events_meter class) {
    const struct model_thread *best = NULL;
    for (size_t i = 0; shot && i < shot->n_threads; i++) {
        const struct model_thread *t = &shot->threads[i];
        if (events_class(d, t) == class && (!best || !(best->cpu_pct >= t->cpu_pct)))
            best = t;
    }
    return best ? best->tid : 0;
}

static void overview_add_cpu(struct overview *s, const struct app *app) {
    static const struct {
        const char *label;
        enum events_meter class;
    } classes[] = {{" main thread", EVENTS_CPU_MAIN},
                   {" Python threads", EVENTS_CPU_PYTHON},
                   {" native threads", EVENTS_CPU_NATIVE}};
    const struct data *d = &app->data;
    const struct model_snapshot *shot = d->live.valid ? &d->live.snapshot : NULL;
    struct overview_line *l = overview_add(s, OVERVIEW_METER, "CPU", ACTION_SHOW_THREADS);
    overview_put_percent(l->value, sizeof l->value, shot ? shot->process.cpu_pct : NAN);
    overview_say(l, "of a core, all threads");
    overview_set_history(l, &d->cpu, 0, ROLE_METER_CPU);
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        size_t n = 0;
        double cpu = shot ? events_class_cpu(d, shot, classes[i].class, &n) : NAN;
        l = overview_add(s, OVERVIEW_METER, classes[i].label, ACTION_SHOW_THREADS);
        l->tid = overview_busiest(d, shot, classes[i].class);
        overview_put_percent(l->value, sizeof l->value, cpu);
        overview_set_history(l, &d->pulse.meters[classes[i].class], 0, ROLE_METER_CPU);
        if (shot)
            overview_class_text(d, shot, classes[i].class, l->text, sizeof l->text);
    }
}

static void overview_add_gil(struct overview *s, const struct app *app) {
    const struct data *d = &app->data;
    const struct model_snapshot *shot = d->live.valid ? &d->live.snapshot : NULL;
    struct overview_line *l = overview_add(s, OVERVIEW_METER, "GIL held", ACTION_SHOW_THREADS);
    double longest_us = 0;
    size_t waiters = shot ? data_gil_waiters(shot, &longest_us) : 0;
    if (shot && shot->gil_enabled == 0) {
        snprintf(l->value, sizeof l->value, "none");
        overview_say(l, "this Python has no GIL");
        return;
    }
    overview_put_percent(l->value, sizeof l->value, meter_mean(&d->gil, OVERVIEW_MEAN));
    overview_set_history(l, &d->gil, 100, ROLE_METER_GIL);
    overview_say(l, "of the time; now ");
    if (!shot || shot->gil_tid == MODEL_UNKNOWN)
        overview_say(l, "?");
    else if (shot->gil_tid == 0)
        overview_say(l, "by nobody");
    else {
        char name[48];
        const struct model_thread *t = data_find_thread(&d->live, shot->gil_tid);
        text_sanitize(name, sizeof name, t ? data_thread_name(t) : "?");
        overview_say(l, "by %s (%lld)", name, (long long)shot->gil_tid);
        l->tid = shot->gil_tid;
    }
    l = overview_add(s, OVERVIEW_METER, "GIL waited for", ACTION_SHOW_THREADS);
    overview_put_percent(l->value, sizeof l->value,
                         meter_mean(&d->pulse.meters[EVENTS_GIL_WAIT], OVERVIEW_MEAN));
    overview_set_history(l, &d->pulse.meters[EVENTS_GIL_WAIT], 100, ROLE_METER_GIL);
    if (waiters && longest_us > 0)
        overview_say(l, "of the time; %zu wait now, %.1f s or more", waiters, longest_us / 1e6);
    else
        overview_say(l, "of the time; %zu wait now", waiters);
}

static void overview_add_memory(struct overview *s, const struct app *app) {
    const struct data *d = &app->data;
    const struct proc_stats *v = d->pulse.vitals_at_s > 0 ? &d->pulse.vitals : NULL;
    struct overview_line *l = overview_add(s, OVERVIEW_METER, "memory", ACTION_NONE);
    int64_t rss = d->live.valid ? d->live.snapshot.process.rss_bytes : MODEL_UNKNOWN;
    int64_t limit = v ? v->limit_bytes : MODEL_UNKNOWN;
    char text[24], most[24];
    if (rss == MODEL_UNKNOWN && v)
        rss = v->rss_bytes;
    text_human_bytes(l->value, sizeof l->value, rss);
    overview_set_history(l, &d->pulse.meters[EVENTS_RSS], (double)limit, ROLE_METER_CPU);
    if (limit <= 0)
        l->scale = meter_trend(l->meter, METER_MAX);
    overview_say(l, "RAM; cgroup ");
    if (!v || v->group_bytes == MODEL_UNKNOWN) {
        overview_say(l, "?");
        return;
    }
    text_human_bytes(text, sizeof text, v->group_bytes);
    text_human_bytes(most, sizeof most, limit);
    if (limit == MODEL_UNKNOWN) {
        overview_say(l, "%s, no limit seen", text);
        return;
    }
    double share = limit > 0 ? (double)v->group_bytes / (double)limit * 100 : NAN;
    overview_say(l, "%s of %s (%.0f %%)", text, most, share);
    l->role = share >= 90 ? ROLE_CONN_WAIT : ROLE_VALUE;
}

#define OVERVIEW_GPUS 8 /* that are listed */

/* A line for each; on a machine without one, none. */
static void overview_add_gpus(struct overview *s, const struct app *app) {
    static const char *const labels[OVERVIEW_GPUS] = {"GPU 0", "GPU 1", "GPU 2", "GPU 3",
                                                      "GPU 4", "GPU 5", "GPU 6", "GPU 7"};
    const struct gpus *g = &app->feeds.gpus;
    for (size_t i = 0; i < g->n && i < OVERVIEW_GPUS; i++) {
        const struct gpus_row *r = &g->items[i];
        bool is_named = r->slice < 0 && r->device >= 0 && r->device < OVERVIEW_GPUS;
        struct overview_line *l =
            overview_add(s, OVERVIEW_METER, is_named ? labels[r->device] : "GPU", ACTION_SHOW_GPU);
        char used[24], total[24], trouble[64];
        if (isnan(r->util_pct))
            snprintf(l->value, sizeof l->value, "?");
        else
            snprintf(l->value, sizeof l->value, "%.0f %%", r->util_pct);
        overview_set_history(l, r->utils, 100, ROLE_METER_CPU);
        text_human_bytes(used, sizeof used, r->mem_used_mb * (1 << 20));
        text_human_bytes(total, sizeof total, r->mem_total_mb * (1 << 20));
        gpus_put_trouble(r, trouble, sizeof trouble);
        if (trouble[0]) {
            overview_say(l, "%s; ", trouble);
            l->role = ROLE_CONN_WAIT;
        }
        overview_say(l, "%s of %s", used, total);
        if (!isnan(r->power_w))
            overview_say(l, ", %.0f W", r->power_w);
        if (!isnan(r->temperature_c))
            overview_say(l, ", %.0f C", r->temperature_c);
    }
}

static void overview_add_gc(struct overview *s, const struct app *app) {
    const struct data *d = &app->data;
    const struct events *q = &d->pulse;
    struct overview_line *l = overview_add(s, OVERVIEW_METER, "GC", ACTION_SHOW_LOG);
    overview_put_percent(l->value, sizeof l->value, meter_mean(&d->gc, OVERVIEW_MEAN));
    overview_set_history(l, &d->gc, 100, ROLE_METER_GIL);
    if (q->gc_s > 0) {
        char ago[24];
        text_human_duration(ago, sizeof ago, app->epoch_s - q->gc_at_s);
        overview_say(l, "of the time; last long one %.0f ms, %s ago", q->gc_s * 1000, ago);
    } else
        overview_say(l, "of the time; none seen over %.0f ms", EVENTS_GC_LONG_S * 1000);
}

static void overview_add_agent(struct overview *s, const struct app *app) {
    const struct data *d = &app->data;
    const struct model_process *p = d->live.valid ? &d->live.snapshot.process : NULL;
    struct overview_line *l = overview_add(s, OVERVIEW_METER, "agent", ACTION_SHOW_LOG);
    char memory[24];
    if (d->has_target && d->target.mode != MODEL_MODE_AGENT) {
        snprintf(l->value, sizeof l->value, "none");
        overview_say(l,
                     data_is_recorded(d) ? "read from the last tables of the process" : "read from outside");
        return;
    }
    overview_put_percent(l->value, sizeof l->value, p ? p->agent_cpu_pct : NAN);
    overview_set_history(l, &d->pulse.meters[EVENTS_AGENT], 0, ROLE_METER_CPU);
    text_human_bytes(memory, sizeof memory, p ? p->agent_rss_bytes : MODEL_UNKNOWN);
    /* what it took to load and to find all is not sampling, which the budget is for */
    bool young = d->pulse.agent_began_s != 0 && app->now_s - d->pulse.agent_began_s < COST_METER_S;
    overview_say(l, young ? "of a core, loading included" : "of a core");
    if (d->pulse.budget_pct > 0)
        overview_say(l, ", budget %g %%; %s", d->pulse.budget_pct, memory);
    else
        overview_say(l, ", budget ? %%; %s", memory);
    if (*d->pulse.way)
        overview_say(l, "; by %s", d->pulse.way);
    if (!young && p && d->pulse.budget_pct > 0 && p->agent_cpu_pct > d->pulse.budget_pct * 1.5)
        l->role = ROLE_CONN_WAIT;
}

/* What is armed, and the outcome of what was. */
static void overview_add_arms(struct overview *s, const struct app *app) {
    for (size_t i = 0; i < ARM_KINDS; i++) {
        char text[OVERVIEW_TEXT];
        app_arm_put(app, (enum arm_kind)i, text, sizeof text);
        if (!text[0])
            continue;
        bool is_on = arms_is_on(&app->data.arms, (enum arm_kind)i);
        struct overview_line *l = overview_add(s, OVERVIEW_METER, arm_defs[i].name,
                                               i == ARM_TRACE   ? ACTION_SHOW_MODULES
                                               : i == ARM_ALLOC ? ACTION_SHOW_MEMORY
                                                                : ACTION_SHOW_STEPS);
        snprintf(l->value, sizeof l->value, is_on ? "on" : "over");
        l->role = is_on ? ROLE_CONN_WAIT : ROLE_VALUE;
        overview_say(l, "%s", text);
    }
}

/* How long the job's threads waited for us, at most. */
static void overview_add_gil_time(struct overview *s, const struct app *app) {
    const struct events *q = &app->data.pulse;
    if (!q->holds)
        return;
    struct overview_line *l = overview_add(s, OVERVIEW_METER, "GIL by agent", ACTION_SHOW_LOG);
    if (isnan(q->hold_us))
        snprintf(l->value, sizeof l->value, "?");
    else
        snprintf(l->value, sizeof l->value, "%.2f ms", q->hold_us / 1000);
    overview_say(l, "at most at a time, %llu time%s", (unsigned long long)q->holds, q->holds == 1 ? "" : "s");
    if (q->hold_us > OVERVIEW_LONG_GIL_US)
        l->role = ROLE_CONN_WAIT;
}

static void overview_add_rates(struct overview *s, const struct app *app) {
    const struct data *d = &app->data;
    struct sample_store_health h = {.got_hz = NAN, .cost_pct = NAN};
    struct overview_line *l = overview_add(s, OVERVIEW_METER, "samples", ACTION_SHOW_TOP);
    if (d->tally)
        sample_store_get_health(d->tally, &h);
    bool is_past = data_is_recorded(d);
    double wanted_hz = app->config.sample_hz;
    if (isnan(h.got_hz))
        snprintf(l->value, sizeof l->value, "?");
    else
        snprintf(l->value, sizeof l->value, "%.0f Hz", is_past ? h.got_hz : fmin(h.got_hz, wanted_hz));
    overview_set_history(l, &d->pulse.meters[EVENTS_RATE], wanted_hz, ROLE_METER_CPU);
    uint64_t lost = h.dropped + h.undefined + h.left_out;
    if (is_past)
        overview_say(l, "a thread, while it ran; %llu dropped", (unsigned long long)lost);
    else
        overview_say(l, "of %g Hz a thread; %llu dropped", wanted_hz, (unsigned long long)lost);
    if (h.torn)
        overview_say(l, ", %llu torn and discarded", (unsigned long long)h.torn);
    if (lost || (!is_past && h.got_hz < EVENTS_RATE_LOW * wanted_hz))
        l->role = ROLE_CONN_WAIT;
    l = overview_add(s, OVERVIEW_METER, "snapshots", ACTION_SHOW_THREADS);
    if (is_past || app->config.delay_s <= 0) /* no rate: show what has arrived */
        snprintf(l->value, sizeof l->value, "%llu", (unsigned long long)d->received);
    else
        snprintf(l->value, sizeof l->value, "%.3g /s", 1 / app_delay_s(app));
    overview_say(l, "%llu dropped", (unsigned long long)d->missed);
    if (d->live.valid && !isnan(d->live.snapshot.cost_us))
        overview_say(l, "; %.2f ms each", d->live.snapshot.cost_us / 1000);
    l->role = d->missed ? ROLE_CONN_WAIT : ROLE_VALUE;
}

static void overview_add_threads(struct overview *s, const struct app *app) {
    const struct data *d = &app->data;
    struct overview_line *l = overview_add(s, OVERVIEW_METER, "threads", ACTION_SHOW_THREADS);
    if (!d->live.valid) {
        snprintf(l->value, sizeof l->value, "?");
        return;
    }
    snprintf(l->value, sizeof l->value, "%zu", d->live.snapshot.n_threads);
    overview_threads_text(&d->live.snapshot, l->text, sizeof l->text);
}

/* ---- functions and events ---- */

static double overview_own(const struct sample_store_table *t, const struct sample_store_row *r) {
    return sample_store_table_share(t, r->own_us, r->own);
}

/* Insert a row among the first ones. */
static void overview_rank(const struct sample_store_table *t, const struct sample_store_row **first, int *n,
                          const struct sample_store_row *row) {
    int at = *n;
    while (at > 0 && overview_own(t, first[at - 1]) < overview_own(t, row))
        at--;
    if (at == OVERVIEW_FUNCTIONS)
        return;
    int end = *n < OVERVIEW_FUNCTIONS ? (*n)++ : OVERVIEW_FUNCTIONS - 1;
    for (int i = end; i > at; i--)
        first[i] = first[i - 1];
    first[at] = row;
}

void overview_pick_functions(struct overview_functions *out, const struct sample_store *tally,
                             enum sample_store_window window) {
    const struct sample_store_row *first[OVERVIEW_FUNCTIONS];
    struct sample_store_query query = {.window = window, .on_cpu = true, .hides_native = true};
    struct sample_store_table table = {0};
    int n = 0;
    *out = (struct overview_functions){.on_cpu = true};
    if (!tally)
        return;
    sample_store_table_build(&table, tally, &query);
    if (table.samples == 0) { /* nothing runs: show where it waits */
        query.on_cpu = out->on_cpu = false;
        sample_store_table_build(&table, tally, &query);
    }
    out->samples = table.samples;
    for (size_t i = 0; i < table.n; i++)
        if (table.rows[i].own > 0)
            overview_rank(&table, first, &n, &table.rows[i]);
    for (int i = 0; i < n; i++) {
        struct overview_function *f = &out->items[out->n++];
        const struct model_frame *frame = first[i]->id == SAMPLE_STORE_NO_FRAME ? NULL : first[i]->frame;
        f->frame = frame;
        f->own_pct = overview_own(&table, first[i]);
        f->total_pct = sample_store_table_share(&table, first[i]->total_us, first[i]->total);
        f->role = frame ? data_frame_role(frame) : ROLE_MUTED;
        text_sanitize(f->func, sizeof f->func,
                      !frame        ? "(no Python frame)"
                      : frame->func ? frame->func
                                    : "?");
        text_sanitize(f->file, sizeof f->file, frame && frame->file ? thread_base_name(frame->file) : "");
    }
    sample_store_table_fini(&table);
}

static void overview_add_functions(struct overview *s, const struct app *app,
                                   const struct overview_functions *functions) {
    char window[WINDOW_TEXT];
    struct overview_line *l = overview_add(s, OVERVIEW_TITLE, "Top functions", ACTION_SHOW_TOP);
    l->is_right = true;
    window_put_text(app, window, sizeof window);
    if (functions->n == 0)
        overview_say(l, "no samples yet");
    else
        overview_say(l, "%s, %s, %llu sample%s",
                     functions->on_cpu ? "own time on the CPU" : "nothing runs: own time, waits too", window,
                     (unsigned long long)functions->samples, functions->samples == 1 ? "" : "s");
    for (int i = 0; i < functions->n; i++) {
        l = overview_add(s, OVERVIEW_FUNCTION, "", ACTION_SHOW_FLAME);
        l->is_right = true;
        l->function = &functions->items[i];
    }
}

void overview_add_events(struct overview *s, const struct app *app, size_t most) {
    size_t n = log_count(app->log), first = n > most ? n - most : 0;
    struct overview_line *l = overview_add(s, OVERVIEW_TITLE, "Events", ACTION_SHOW_LOG);
    l->is_right = true;
    overview_say(l, n ? "newest first" : "none yet");
    for (size_t i = n; i > first; i--) {
        l = overview_add(s, OVERVIEW_EVENT, "", ACTION_SHOW_LOG);
        l->is_right = true;
        l->event = log_at(app->log, i - 1);
    }
}

/* The heading of the flame graph, which is drawn below it. */
static void overview_add_flame(struct overview *s, const struct app *app,
                               const struct overview_functions *functions) {
    char window[WINDOW_TEXT];
    struct overview_line *l = overview_add(s, OVERVIEW_TITLE, "Flame", ACTION_SHOW_FLAME);
    l->is_right = true;
    window_put_text(app, window, sizeof window);
    if (*window)
        overview_say(l, "%s, %s", functions->on_cpu ? "time on the CPU" : "all time", window);
    else
        overview_say(l, "no samples yet");
}

void overview_build(struct overview *out, const struct app *app, const struct overview_functions *functions,
                    const struct overview_form *form) {
    out->n = out->n_verdicts = overview_verdicts_lines(app, form->cols, out->lines);
    overview_add_cpu(out, app);
    overview_add_gil(out, app);
    overview_add_gc(out, app);
    overview_add_memory(out, app);
    overview_add_gpus(out, app);
    overview_add_agent(out, app);
    overview_add_gil_time(out, app);
    overview_add_arms(out, app);
    overview_add_rates(out, app);
    overview_add_threads(out, app);
    overview_add_functions(out, app, functions);
    overview_add_events(out, app, form->events);
    if (form->has_flame)
        overview_add_flame(out, app, functions);
}
