/* SPDX-License-Identifier: Apache-2.0 */
/* web_metrics: the agent's status as Prometheus reads it (text format 0.0.4); see web_show.h. What is not known is left out. */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>

#include "agent/server/http/web_show.h"
#include "base/text.h"

#define METRICS_TEXT 512 /* of a label */

/* A metric without labels: how it is got from a status. */
struct metric {
    const char *name, *help;
    bool counts; /* it only grows */
    double (*get)(const struct model_status *s);
};

static double metric_uptime(const struct model_status *s) { return s->uptime_s; }
static double metric_cpu(const struct model_status *s) { return s->cpu_s; }
static double metric_bytes(const struct model_status *s) {
    return s->rss_bytes < 0 ? NAN : (double)s->rss_bytes;
}
static double metric_overhead(const struct model_status *s) { return s->overhead_pct / 100; }
static double metric_budget(const struct model_status *s) { return s->budget_pct / 100; }
static double metric_clients(const struct model_status *s) { return (double)s->clients; }
static double metric_samples(const struct model_status *s) { return (double)s->samples; }
static double metric_torn(const struct model_status *s) { return (double)s->torn; }
static double metric_dropped(const struct model_status *s) { return (double)s->dropped; }
static double metric_gil_acquisitions(const struct model_status *s) { return (double)s->gil_holds; }
static double metric_refused(const struct model_status *s) { return (double)s->gil_refused; }
static double metric_steps(const struct model_status *s) { return s->hooks ? (double)s->steps : NAN; }
static double metric_errors(const struct model_status *s) { return (double)s->read_errors; }

static const struct metric metrics[] = {
    {"probing_uptime_seconds", "Time since the agent came into the job.", false, metric_uptime},
    {"probing_cpu_seconds_total", "CPU time of the agent's threads.", true, metric_cpu},
    {"probing_memory_bytes", "Memory that the agent holds, beside its tables.", false, metric_bytes},
    {"probing_overhead_ratio", "CPU of the agent over the last seconds, of one core.", false,
     metric_overhead},
    {"probing_budget_ratio", "What the sampler may cost at most, of one core.", false, metric_budget},
    {"probing_clients", "WebSocket clients that are connected.", false, metric_clients},
    {"probing_samples_total", "Looks at threads.", true, metric_samples},
    {"probing_torn_samples_total", "Looks at threads that moved meanwhile.", true, metric_torn},
    {"probing_dropped_samples_total", "Samples that clients were too slow for.", true, metric_dropped},
    {"probing_gil_holds_total", "How often the agent has had the GIL.", true, metric_gil_acquisitions},
    {"probing_gil_refused_total", "What was asked of Python and not done, mostly for want of the GIL.", true,
     metric_refused},
    {"probing_steps_total", "Training steps seen.", true, metric_steps},
    {"probing_read_errors_total", "Reads of the interpreter that were refused or inconsistent.", true,
     metric_errors},
};

/* The value of a label: backslashes, quotes and newlines escaped. */
static void metrics_put_label(struct strbuf *out, const char *from) {
    char clean[METRICS_TEXT];
    (void)text_sanitize(clean, sizeof clean, from ? from : "");
    for (const char *text = clean; *text; text++)
        if (*text == '\\' || *text == '"')
            (void)strbuf_addf(out, "\\%c", *text);
        else if (*text == '\n')
            (void)strbuf_adds(out, "\\n");
        else
            (void)strbuf_addc(out, *text);
}

static void metrics_put_head(struct strbuf *out, const char *name, const char *help, bool counts) {
    (void)strbuf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, counts ? "counter" : "gauge");
}

static void metrics_put_info(const struct model_target *t, const struct model_status *s, struct strbuf *out) {
    metrics_put_head(out, "probing_info", "What the process is.", false);
    (void)strbuf_addf(out, "probing_info{pid=\"%" PRId64 "\",host=\"", t->pid);
    metrics_put_label(out, t->host);
    (void)strbuf_adds(out, "\",python=\"");
    metrics_put_label(out, t->python);
    (void)strbuf_adds(out, "\",torch=\"");
    metrics_put_label(out, t->torch);
    (void)strbuf_adds(out, "\",command=\"");
    metrics_put_label(out, t->cmdline);
    (void)strbuf_adds(out, "\",version=\"");
    metrics_put_label(out, s->agent_version);
    (void)strbuf_adds(out, "\"} 1\n");
}

static void metrics_put_tables(const struct model_status *s, struct strbuf *out) {
    static const struct {
        const char *name, *help;
        bool counts;
    } of[] = {{"probing_table_rows", "Rows that a table keeps.", false},
              {"probing_table_bytes", "Memory that a table takes, used or not.", false},
              {"probing_table_lost_rows_total", "Rows that could not be written.", true}};
    for (size_t k = 0; s->n_tables && k < sizeof of / sizeof of[0]; k++) {
        metrics_put_head(out, of[k].name, of[k].help, of[k].counts);
        for (size_t i = 0; i < s->n_tables; i++) {
            const struct model_table *t = &s->tables[i];
            (void)strbuf_addf(out, "%s{table=\"", of[k].name);
            metrics_put_label(out, t->name);
            (void)strbuf_addf(out, "\"} %" PRIu64 "\n", k == 0 ? t->rows : k == 1 ? t->bytes : t->lost);
        }
    }
}

void web_metrics_put(const struct model_target *t, const struct model_status *s, struct strbuf *out) {
    metrics_put_info(t, s, out);
    for (size_t i = 0; i < sizeof metrics / sizeof metrics[0]; i++) {
        double v = metrics[i].get(s);
        if (!isfinite(v))
            continue;
        metrics_put_head(out, metrics[i].name, metrics[i].help, metrics[i].counts);
        (void)strbuf_addf(out, "%s %.15g\n", metrics[i].name, v);
    }
    metrics_put_tables(s, out);
}
