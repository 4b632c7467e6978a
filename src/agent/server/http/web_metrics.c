/* SPDX-License-Identifier: Apache-2.0 */
/* web_metrics: the agent's status in the format of Prometheus (text format 0.0.4); see
 * web_show.h. Unknown values are left out. */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>

#include "agent/server/http/web_show.h"
#include "base/text.h"

#define METRICS_TEXT 512 /* of a label */

/* The value of a label: backslashes, quotes and newlines escaped. */
static void metrics_put_label(struct strbuf *out, const char *from) {
    char clean[METRICS_TEXT];
    text_sanitize(clean, sizeof clean, from ? from : "");
    for (const char *text = clean; *text; text++)
        if (*text == '\\' || *text == '"')
            strbuf_addf(out, "\\%c", *text);
        else if (*text == '\n')
            strbuf_adds(out, "\\n");
        else
            strbuf_addc(out, *text);
}

static void metrics_put_head(struct strbuf *out, const char *name, const char *help, bool counts) {
    strbuf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, counts ? "counter" : "gauge");
}

static void metrics_put_info(const struct model_target *t, const struct model_status *s, struct strbuf *out) {
    metrics_put_head(out, "probing_info", "What the process is.", false);
    strbuf_addf(out, "probing_info{pid=\"%" PRId64 "\",host=\"", t->pid);
    metrics_put_label(out, t->host);
    strbuf_adds(out, "\",python=\"");
    metrics_put_label(out, t->python);
    strbuf_adds(out, "\",torch=\"");
    metrics_put_label(out, t->torch);
    strbuf_adds(out, "\",command=\"");
    metrics_put_label(out, t->cmdline);
    strbuf_adds(out, "\",version=\"");
    metrics_put_label(out, s->agent_version);
    strbuf_adds(out, "\"} 1\n");
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
            strbuf_addf(out, "%s{table=\"", of[k].name);
            metrics_put_label(out, t->name);
            strbuf_addf(out, "\"} %" PRIu64 "\n", k == 0 ? t->rows : k == 1 ? t->bytes : t->lost);
        }
    }
}

/* A metric without labels. `counts`: it is a counter. */
static void metrics_put(struct strbuf *out, const char *name, const char *help, bool counts, double v) {
    if (!isfinite(v))
        return;
    metrics_put_head(out, name, help, counts);
    strbuf_addf(out, "%s %.15g\n", name, v);
}

void web_metrics_put(const struct model_target *t, const struct model_status *s, struct strbuf *out) {
    double memory = s->rss_bytes < 0 ? NAN : (double)s->rss_bytes;
    double steps = s->hooks ? (double)s->steps : NAN;
    metrics_put_info(t, s, out);
    metrics_put(out, "probing_uptime_seconds", "Time since the agent was loaded.", false, s->uptime_s);
    metrics_put(out, "probing_cpu_seconds_total", "CPU time of the agent's threads.", true, s->cpu_s);
    metrics_put(out, "probing_memory_bytes", "Memory that the agent holds, beside its tables.", false,
                memory);
    metrics_put(out, "probing_overhead_ratio", "CPU of the agent over the last seconds, of one core.", false,
                s->overhead_pct / 100);
    metrics_put(out, "probing_budget_ratio", "What the sampler may cost at most, of one core.", false,
                s->budget_pct / 100);
    metrics_put(out, "probing_clients", "WebSocket clients that are connected.", false, (double)s->clients);
    metrics_put(out, "probing_samples_total", "Samples of threads.", true, (double)s->samples);
    metrics_put(out, "probing_torn_samples_total", "Samples of threads that moved while they were read.",
                true, (double)s->torn);
    metrics_put(out, "probing_dropped_samples_total", "Samples that clients were too slow for.", true,
                (double)s->dropped);
    metrics_put(out, "probing_gil_holds_total", "How often the agent has had the GIL.", true,
                (double)s->gil_holds);
    metrics_put(out, "probing_gil_refused_total",
                "Requests to Python that failed, mostly for lack of the GIL.", true, (double)s->gil_refused);
    metrics_put(out, "probing_steps_total", "Training steps seen.", true, steps);
    metrics_put(out, "probing_read_errors_total",
                "Reads of the interpreter that were refused or inconsistent.", true, (double)s->read_errors);
    metrics_put_tables(s, out);
}
