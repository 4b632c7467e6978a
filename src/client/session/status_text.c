/* SPDX-License-Identifier: Apache-2.0 */
/* status_text: see status_text.h. */
#include "client/session/status_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cost.h"
#include "base/text.h"

#define STATUS_WIDTH 14

static void status_put_line(struct strbuf *out, const char *key, const char *value) {
    char clean[512];
    text_sanitize(clean, sizeof clean, value ? value : "?");
    strbuf_addf(out, "%-*s %s\n", STATUS_WIDTH, key, clean);
}

static void status_put_number(struct strbuf *out, const char *key, double v, int decimals, const char *unit) {
    if (isnan(v))
        strbuf_addf(out, "%-*s ?\n", STATUS_WIDTH, key);
    else
        strbuf_addf(out, "%-*s %.*f%s\n", STATUS_WIDTH, key, decimals, v, unit);
}

static const char *status_plural(uint64_t n) { return n == 1 ? "" : "s"; }

/* The real rate, and the requested one, of a client or for the tables. */
static void status_put_rate(struct strbuf *out, const struct model_status *s) {
    double wanted_hz = fmax(s->rate_hz, s->always_hz);
    strbuf_addf(out, "%-*s ", STATUS_WIDTH, "sampling");
    /* More than requested is by chance. */
    if (!isnan(s->kept_hz))
        strbuf_addf(out, "%.1f of ", fmin(s->kept_hz, wanted_hz));
    strbuf_addf(out, "%.1f Hz", wanted_hz);
    if (s->stretched)
        strbuf_addf(out, " to stay within %g %% of a core", s->budget_pct);
    strbuf_addc(out, '\n');
}

/* A hook in the job: how often it has run, and the cost of one run for the thread. */
static void status_put_hook(struct strbuf *out, const char *what, bool on, uint64_t n, const char *how,
                            double us) {
    if (!on)
        return;
    strbuf_addf(out, "%-*s %" PRIu64 " time%s, %s", STATUS_WIDTH, what, n, status_plural(n), how);
    if (!isnan(us))
        strbuf_addf(out, ", %.2f us each", us);
    strbuf_addf(out, "\n");
}

/* Of how many steps forward and backward are known, and what that costs. */
static void status_put_phases(struct strbuf *out, const struct model_status *s) {
    strbuf_addf(out, "%-*s of %" PRIu64 " step%s, %s", STATUS_WIDTH, "phases", s->phases,
                status_plural(s->phases), s->phases_on ? "now of every step" : "now and then");
    if (!isnan(s->phases_pct))
        strbuf_addf(out, ", about %.2g %% of the job's time%s", s->phases_pct,
                    s->phases_on ? "" : " meanwhile");
    strbuf_addf(out, "\n");
}

static void status_put_tables(struct strbuf *out, const struct model_status *s) {
    char size[32], span[32];
    strbuf_addf(out, "%-*s %.1f Hz, for the tables\n", STATUS_WIDTH, "kept", s->always_hz);
    status_put_line(out, "tables in", s->data_dir ? s->data_dir : s->n_tables ? "memory only" : "none");
    status_put_number(out, "their cost", s->collect_pct, 4, " % of a core, beside sampling");
    if (!isnan(s->collect_threads_s))
        status_put_number(out, "threads every", s->collect_threads_s, 1,
                          " s, because of the cost of a snapshot");
    if (s->collect_missed)
        strbuf_addf(out, "%-*s %" PRIu64 " sample%s in no table\n", STATUS_WIDTH, "missed", s->collect_missed,
                    s->collect_missed == 1 ? " is" : "s are");
    if (s->collect_note)
        status_put_line(out, "tables note", s->collect_note);
    for (size_t i = 0; i < s->n_tables; i++) {
        const struct model_table *t = &s->tables[i];
        char name[256];
        text_sanitize(name, sizeof name, t->name ? t->name : "?");
        text_human_bytes(size, sizeof size, t->bytes);
        strbuf_addf(out, "  %-24s %10" PRIu64 " row%s, %s", name, t->rows, status_plural(t->rows), size);
        if (t->newest >= t->oldest) {
            text_human_duration(span, sizeof span, t->newest - t->oldest);
            strbuf_addf(out, ", over %s", span);
        }
        if (t->lost)
            strbuf_addf(out, ", lost %" PRIu64, t->lost);
        strbuf_addc(out, '\n');
    }
}

/* The TCP listeners, and the clients that were refused. */
static void status_put_endpoints(struct strbuf *out, const struct model_status *s) {
    for (size_t i = 0; i < s->n_doors; i++) {
        const struct model_endpoint *d = &s->doors[i];
        char address[256];
        text_sanitize(address, sizeof address, d->address ? d->address : "");
        if (d->address)
            strbuf_addf(out, "%-*s %s%s, clients %" PRId64 ", entered %" PRIu64 ", turned away %" PRIu64 "\n",
                        STATUS_WIDTH, "TCP", address, d->looking ? " (looking only)" : "", d->clients,
                        d->entered, d->refused);
        if (d->note)
            status_put_line(out, "TCP note", d->note);
    }
}

/* Debuggers in the job. */
static void status_put_debuggers(struct strbuf *out, const struct model_status *s) {
    for (size_t i = 0; i < s->n_holds; i++) {
        const struct model_debugger *h = &s->holds[i];
        char text[512], clean[600], what[128];
        snprintf(text, sizeof text, "%s%s%s%s%s%s", h->state ? h->state : "?", h->text ? ": " : "",
                 h->text ? h->text : "", h->address ? ", at " : "", h->address ? h->address : "",
                 h->used ? ", clients are connected" : "");
        text_sanitize(clean, sizeof clean, text);
        text_sanitize(what, sizeof what, h->what ? h->what : "?");
        strbuf_addf(out, "%-*s %s", STATUS_WIDTH, what, clean);
        if (!isnan(h->left_s))
            strbuf_addf(out, ", %.0f s left", h->left_s);
        if (h->pid > 0)
            strbuf_addf(out, ", by process %" PRId64, h->pid);
        strbuf_addc(out, '\n');
    }
}

static void status_put_clients(struct strbuf *out, const struct model_status *s) {
    strbuf_addf(out, "%-*s %" PRId64, STATUS_WIDTH, "clients", s->clients);
    if (s->client_processes > 0)
        strbuf_addf(out, ", of %" PRId64 " process%s", s->client_processes,
                    s->client_processes == 1 ? "" : "es");
    strbuf_addc(out, '\n');
}

void status_text_put(struct strbuf *out, const struct model_target *t, const struct model_status *s) {
    char text[96];
    strbuf_addf(out, "%-*s %" PRId64 "\n", STATUS_WIDTH, "process", t->pid);
    status_put_line(out, "command", t->cmdline);
    snprintf(text, sizeof text, "%s%s%s%s", t->python ? t->python : "?",
             t->python_untested ? " (untested)" : "", s->discovery ? ", found by " : "",
             s->discovery ? s->discovery : "");
    status_put_line(out, "python", text);
    if (t->torch)
        status_put_line(out, "torch", t->torch);
    status_put_line(out, "agent", s->agent_version);
    status_put_line(out, "loaded by", s->strategy);
    status_put_line(out, "endpoint", s->endpoint);
    status_put_endpoints(out, s);
    status_put_debuggers(out, s);
    text_human_duration(text, sizeof text, s->uptime_s);
    status_put_line(out, "agent up", text);
    status_put_number(out, "agent CPU", s->cpu_s, 3, " s");
    text_human_bytes(text, sizeof text, s->rss_bytes);
    status_put_line(out, "agent memory", text);
    status_put_number(out, "agent cost", s->overhead_pct, 3,
                      s->uptime_s < COST_METER_S ? " % of a core, loading included" : " % of a core");
    status_put_clients(out, s);
    status_put_rate(out, s);
    strbuf_addf(out, "%-*s %g %% of a core\n", STATUS_WIDTH, "budget", s->budget_pct);
    strbuf_addf(out, "%-*s %" PRIu64 ", torn %" PRIu64 ", dropped %" PRIu64 "\n", STATUS_WIDTH, "samples",
                s->samples, s->torn, s->dropped);
    snprintf(text, sizeof text, "%s%s", s->sampling ? s->sampling : "nobody samples",
             s->sampling && strcmp(s->sampling, model_sampling_name(MODEL_SAMPLING_GENTLE)) == 0
                 ? ": stacks of running threads may be torn"
                 : "");
    status_put_line(out, "mode", text);
    strbuf_addf(out, "%-*s %" PRIu64 ", late %" PRIu64 ", refused %" PRIu64 "\n", STATUS_WIDTH, "signals",
                s->signals_sent, s->signals_late, s->signals_refused);
    strbuf_addf(out, "%-*s %" PRIu64 " time%s by the agent, refused %" PRIu64 "\n", STATUS_WIDTH, "GIL taken",
                s->gil_holds, status_plural(s->gil_holds), s->gil_refused);
    status_put_number(out, "longest held", s->us_longest_gil_hold, 0, " us");
    status_put_number(out, "per signal", s->us_per_signal, 2, " us");
    status_put_number(out, "per sample", s->us_per_sample, 2, " us");
    strbuf_addf(out, "%-*s %" PRIu64 ", read errors %" PRIu64 "\n", STATUS_WIDTH, "snapshots", s->snapshots,
                s->read_errors);
    if (s->hooks) {
        text_sanitize(text, sizeof text, s->hooks);
        strbuf_addf(out, "%-*s %" PRIu64 ", reported by %s\n", STATUS_WIDTH, "steps", s->steps, text);
    }
    if (s->hooks)
        strbuf_addf(out, "%-*s %" PRIu64 ", lost %" PRIu64 "\n", STATUS_WIDTH, "operations", s->spans,
                    s->spans_lost);
    if (s->hooks)
        status_put_number(out, "per operation", s->us_per_span, 2, " us");
    if (s->hooks)
        status_put_phases(out, s);
    if (s->steps_note)
        status_put_line(out, "no steps", s->steps_note);
    status_put_hook(out, "variables", s->looks_on, s->looks, "at Optimizer.step", s->us_per_look);
    status_put_hook(out, "garbage", s->gc_on, s->gc_told, "by gc.callbacks", s->us_per_gc);
    status_put_hook(out, "returns", s->returns_on, s->returns_told, "by sys.monitoring", s->us_per_return);
    if (s->hooks_note)
        status_put_line(out, "not reported", s->hooks_note);
    if (s->note)
        status_put_line(out, "note", s->note);
    status_put_tables(out, s);
}
