/* SPDX-License-Identifier: Apache-2.0 */
/* server_status: see server_status.h. */
#include "agent/server/server_status.h"

#include <math.h>

#include "agent/life.h"
#include "agent/threads.h"
#include "agent/debug/debugger_state.h"
#include "agent/python/worker.h"
#include "base/clock.h"
#include "version.h"

/* What is set now. */
static void server_status_fill_settings(const struct server_facts *s, struct model_status *out) {
    struct config config;
    (void)pthread_mutex_lock(&s->mailbox->lock);
    config = s->mailbox->config;
    (void)pthread_mutex_unlock(&s->mailbox->lock);
    out->settings = arena_calloc(&out->arena, CONFIG_KEYS, sizeof *out->settings);
    for (size_t i = 0; out->settings && i < CONFIG_KEYS; i++) {
        char value[CONFIG_TEXT_MAX], default_value[CONFIG_TEXT_MAX];
        const struct option_def *d = &config_defs[i];
        config_format(&config, (enum config_key)i, false, value, sizeof value);
        config_format(&config, (enum config_key)i, true, default_value, sizeof default_value);
        out->settings[out->n_settings++] =
            (struct model_setting){.key = d->name,
                                   .unit = d->unit,
                                   .help = d->help,
                                   .value = arena_strdup(&out->arena, value),
                                   .default_value = arena_strdup(&out->arena, default_value),
                                   .given = config.given[i]};
    }
}

/* What is armed in the job, and what it costs. */
static void server_status_fill_hooks(const struct server_facts *s, const struct mailbox_status *m,
                                     struct model_status *out) {
    out->steps = m->steps;
    out->hooks = m->hooks[0] ? arena_strdup(&out->arena, m->hooks) : NULL;
    out->steps_note = m->steps_note[0] ? arena_strdup(&out->arena, m->steps_note) : NULL;
    out->spans = m->spans;
    out->spans_lost = m->spans_lost;
    out->us_per_span = m->us_per_span;
    out->looks_on = m->looks_on;
    out->gc_on = m->gc_on;
    out->returns_on = m->returns_on;
    out->us_per_look = out->us_per_gc = out->us_per_return = NAN;
    if (s->fill)
        s->fill(out);
    out->hooks_note = m->hooks_note[0] ? arena_strdup(&out->arena, m->hooks_note) : NULL;
}

static void server_status_fill_leases(const struct mailbox_status *m, struct model_status *out) {
    out->leases = arena_calloc(&out->arena, m->n_leases, sizeof *out->leases);
    for (size_t i = 0; out->leases && i < m->n_leases; i++) {
        struct model_lease *l = &out->leases[out->n_leases++];
        *l = m->leases[i].lease;
        l->note = m->leases[i].note[0] ? arena_strdup(&out->arena, m->leases[i].note) : NULL;
        l->file = m->leases[i].file[0] ? arena_strdup(&out->arena, m->leases[i].file) : NULL;
    }
}

void server_status_fill(const struct server_facts *s, struct model_status *out) {
    struct mailbox_status m;
    struct worker_status worker;
    uint64_t now = clock_mono_ns(), cpu = threads_cpu_ns();
    mailbox_get_status(s->mailbox, &m, &out->rate_hz);
    out->agent_version = PROBING_VERSION;
    out->uptime_s = (double)(now - s->started_ns) / 1e9;
    out->cpu_s = (double)cpu / 1e9;
    out->rss_bytes = (int64_t)(m.bytes + s->bytes);
    out->clients = s->clients;
    out->client_processes = s->processes;
    out->samples = m.samples;
    out->torn = m.torn;
    out->dropped = m.dropped;
    out->us_per_sample = m.us_per_sample;
    out->sampling = m.sampling;
    out->exact = m.exact;
    out->signals_sent = m.signals_sent;
    out->signals_late = m.signals_late;
    out->signals_refused = m.signals_refused;
    out->calls_restarted = m.calls_restarted;
    out->calls_interrupted = m.calls_interrupted;
    out->unknown_frames = m.unknown_frames;
    out->us_per_signal = m.us_per_signal;
    out->overhead_pct = cost_meter_add(s->meter, now, cpu + m.signals_ns);
    out->budget_pct = m.budget_pct;
    out->kept_hz = m.kept_hz;
    out->stretched = m.stretched;
    out->snapshots = m.snapshots;
    out->read_errors = m.read_errors;
    out->arena_limit_hits = m.arena_limit_hits;
    worker_get_status(s->mailbox->worker, &worker);
    out->gil_holds = worker.holds;
    out->gil_refused = worker.refused;
    out->us_per_gil_hold = worker.mean_us;
    out->us_longest_gil_hold = worker.max_us;
    out->discovery = m.discovery[0] ? arena_strdup(&out->arena, m.discovery) : NULL;
    out->strategy = agent_way_name(life_came_by());
    out->endpoint = s->endpoint;
    out->note = m.note[0] ? arena_strdup(&out->arena, m.note) : NULL;
    out->always_hz = m.always_hz;
    out->data_dir = m.data_dir[0] ? arena_strdup(&out->arena, m.data_dir) : NULL;
    out->collect_note = m.collect_note[0] ? arena_strdup(&out->arena, m.collect_note) : NULL;
    out->collect_pct = m.collect_pct;
    out->collect_us_per_s = m.collect_us_per_s;
    out->collect_threads_s = m.collect_threads_s;
    out->collect_missed = m.collect_missed;
    server_status_fill_hooks(s, &m, out);
    out->tables = arena_calloc(&out->arena, m.n_tables, sizeof *out->tables);
    for (size_t i = 0; out->tables && i < m.n_tables; i++)
        out->tables[out->n_tables++] = m.tables[i];
    server_status_fill_settings(s, out);
    server_status_fill_leases(&m, out);
    debugger_state_fill(out);
}
