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

/* The current settings. */
static void server_status_fill_settings(const struct server_facts *s, struct model_status *out) {
    struct config config;
    pthread_mutex_lock(&s->mailbox->lock);
    config = s->mailbox->config;
    pthread_mutex_unlock(&s->mailbox->lock);
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

static void server_status_fill_leases(const struct mailbox_status *m, struct model_status *out) {
    out->leases = arena_calloc(&out->arena, m->n_leases, sizeof *out->leases);
    for (size_t i = 0; out->leases && i < m->n_leases; i++) {
        struct model_lease *l = &out->leases[out->n_leases++];
        *l = m->leases[i].lease;
        l->note = m->leases[i].note[0] ? arena_strdup(&out->arena, m->leases[i].note) : NULL;
        l->file = m->leases[i].file[0] ? arena_strdup(&out->arena, m->leases[i].file) : NULL;
    }
}

static const char *server_status_text(struct model_status *out, const char *text) {
    return text[0] ? arena_strdup(&out->arena, text) : NULL;
}

void server_status_fill(const struct server_facts *s, struct model_status *out) {
    struct mailbox_status m;
    struct worker_status worker;
    uint64_t now = clock_mono_ns(), cpu = threads_cpu_ns();
    struct arena arena = out->arena;
    mailbox_get_status(s->mailbox, &m);
    *out = m.of;
    out->arena = arena;
    out->agent_version = PROBING_VERSION;
    out->uptime_s = (double)(now - s->started_ns) / 1e9;
    out->cpu_s = (double)cpu / 1e9;
    out->rss_bytes = (int64_t)(m.bytes + s->bytes);
    out->clients = s->clients;
    out->client_processes = s->processes;
    out->overhead_pct = cost_meter_add(s->meter, now, cpu + m.signals_ns);
    worker_get_status(s->mailbox->worker, &worker);
    out->gil_holds = worker.holds;
    out->gil_refused = worker.refused;
    out->us_per_gil_hold = worker.mean_us;
    out->us_longest_gil_hold = worker.max_us;
    out->discovery = server_status_text(out, m.discovery);
    out->strategy = agent_way_name(life_came_by());
    out->endpoint = s->endpoint;
    out->note = server_status_text(out, m.note);
    out->data_dir = server_status_text(out, m.data_dir);
    out->collect_note = server_status_text(out, m.collect_note);
    out->hooks = server_status_text(out, m.hooks);
    out->steps_note = server_status_text(out, m.steps_note);
    out->hooks_note = server_status_text(out, m.hooks_note);
    out->us_per_look = out->us_per_gc = out->us_per_return = NAN;
    if (s->fill)
        s->fill(out);
    out->tables = arena_calloc(&out->arena, m.n_tables, sizeof *out->tables);
    for (size_t i = 0; out->tables && i < m.n_tables; i++)
        out->tables[out->n_tables++] = m.tables[i];
    server_status_fill_settings(s, out);
    server_status_fill_leases(&m, out);
    debugger_state_fill(out);
}
