/* SPDX-License-Identifier: Apache-2.0 */
/* verb_status: the agent about itself. Asks an agent that is there; puts none in. */
#include "cli/cli.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "client/call.h"
#include "client/document.h"
#include "client/target.h"

#define STATUS_WIDTH 14

static void status_put_line(struct strbuf *out, const char *key, const char *value) {
    char clean[512];
    (void)text_sanitize(clean, sizeof clean, value ? value : "?");
    (void)strbuf_addf(out, "%-*s %s\n", STATUS_WIDTH, key, clean);
}

static void status_put_number(struct strbuf *out, const char *key, double v, int decimals, const char *unit) {
    if (isnan(v))
        (void)strbuf_addf(out, "%-*s ?\n", STATUS_WIDTH, key);
    else
        (void)strbuf_addf(out, "%-*s %.*f%s\n", STATUS_WIDTH, key, decimals, v, unit);
}

/* The rate asked for, and the one that is kept. */
static void status_put_rate(struct strbuf *out, const struct model_status *s) {
    char kept[48] = "";
    if (!isnan(s->kept_hz))
        (void)snprintf(kept, sizeof kept, ", kept %.1f Hz", s->kept_hz);
    (void)strbuf_addf(out, "%-*s %.1f Hz%s%s\n", STATUS_WIDTH, "sampling at", s->rate_hz, kept,
                      s->stretched ? ", stretched to stay within the budget" : "");
}

static void status_put_tables(struct strbuf *out, const struct model_status *s) {
    char size[32], span[32];
    (void)strbuf_addf(out, "%-*s %.1f Hz always, for the tables\n", STATUS_WIDTH, "kept", s->always_hz);
    status_put_line(out, "tables in", s->data_dir ? s->data_dir : s->n_tables ? "memory only" : "none");
    status_put_number(out, "their cost", s->collect_pct, 4, " % of a core, beside sampling");
    if (!isnan(s->collect_threads_s))
        status_put_number(out, "threads every", s->collect_threads_s, 1, " s, for what a look at all costs");
    if (s->collect_missed)
        (void)strbuf_addf(out, "%-*s %" PRIu64 " samples are in no table\n", STATUS_WIDTH, "missed",
                          s->collect_missed);
    if (s->collect_note)
        status_put_line(out, "tables note", s->collect_note);
    for (size_t i = 0; i < s->n_tables; i++) {
        const struct model_table *t = &s->tables[i];
        text_human_bytes(size, sizeof size, (int64_t)t->bytes);
        (void)strbuf_addf(out, "  %-24s %10" PRIu64 " rows, %s", t->name, t->rows, size);
        if (t->newest >= t->oldest) {
            text_human_duration(span, sizeof span, t->newest - t->oldest);
            (void)strbuf_addf(out, ", over %s", span);
        }
        if (t->lost)
            (void)strbuf_addf(out, ", lost %" PRIu64, t->lost);
        (void)strbuf_addc(out, '\n');
    }
}

static void status_put_text(struct strbuf *out, const struct model_target *t, const struct model_status *s) {
    char text[96];
    (void)strbuf_addf(out, "%-*s %" PRId64 "\n", STATUS_WIDTH, "process", t->pid);
    status_put_line(out, "command", t->cmdline);
    (void)snprintf(text, sizeof text, "%s%s%s%s", t->python ? t->python : "?",
                   t->python_untested ? " (untested)" : "", s->discovery ? ", found by " : "",
                   s->discovery ? s->discovery : "");
    status_put_line(out, "python", text);
    if (t->torch)
        status_put_line(out, "torch", t->torch);
    status_put_line(out, "agent", s->agent_version);
    status_put_line(out, "came in by", s->strategy);
    status_put_line(out, "endpoint", s->endpoint);
    text_human_duration(text, sizeof text, s->uptime_s);
    status_put_line(out, "agent up", text);
    status_put_number(out, "agent CPU", s->cpu_s, 3, " s");
    text_human_bytes(text, sizeof text, s->rss_bytes);
    status_put_line(out, "agent memory", text);
    status_put_number(out, "agent cost", s->overhead_pct, 3, " % of a core");
    (void)strbuf_addf(out, "%-*s %" PRId64 "\n", STATUS_WIDTH, "clients", s->clients);
    status_put_rate(out, s);
    (void)strbuf_addf(out, "%-*s %g %% of a core\n", STATUS_WIDTH, "budget", s->budget_pct);
    (void)strbuf_addf(out, "%-*s %" PRIu64 ", torn %" PRIu64 ", dropped %" PRIu64 "\n", STATUS_WIDTH,
                      "samples", s->samples, s->torn, s->dropped);
    (void)snprintf(text, sizeof text, "%s%s", s->sampling ? s->sampling : "nobody samples",
                   s->sampling && strcmp(s->sampling, model_sampling_name(MODEL_SAMPLING_GENTLE)) == 0
                       ? ": stacks of running threads may be torn"
                       : "");
    status_put_line(out, "mode", text);
    (void)strbuf_addf(out, "%-*s %" PRIu64 ", late %" PRIu64 ", refused %" PRIu64 "\n", STATUS_WIDTH,
                      "signals", s->signals_sent, s->signals_late, s->signals_refused);
    (void)strbuf_addf(out, "%-*s %" PRIu64 " times by the agent, refused %" PRIu64 "\n", STATUS_WIDTH,
                      "GIL taken", s->gil_holds, s->gil_refused);
    status_put_number(out, "longest held", s->us_longest_gil_hold, 0, " us");
    status_put_number(out, "per signal", s->us_per_signal, 2, " us");
    status_put_number(out, "per sample", s->us_per_sample, 2, " us");
    (void)strbuf_addf(out, "%-*s %" PRIu64 ", read errors %" PRIu64 "\n", STATUS_WIDTH, "snapshots",
                      s->snapshots, s->read_errors);
    if (s->hooks)
        (void)strbuf_addf(out, "%-*s %" PRIu64 ", told by %s\n", STATUS_WIDTH, "steps", s->steps, s->hooks);
    if (s->hooks)
        (void)strbuf_addf(out, "%-*s %" PRIu64 ", lost %" PRIu64 "\n", STATUS_WIDTH, "told", s->spans,
                          s->spans_lost);
    if (s->hooks)
        status_put_number(out, "per operation", s->us_per_span, 2, " us");
    if (s->steps_note)
        status_put_line(out, "no steps", s->steps_note);
    if (s->note)
        status_put_line(out, "note", s->note);
    status_put_tables(out, s);
}

int cli_find_agent(struct session_address *addr, struct err *e) {
    int there = target_find_endpoint(addr, e);
    if (there == 0)
        return err_set(e, ERR_ATTACH, "process %d has no agent: 'probing %d inject' puts one there",
                       (int)addr->pid, (int)addr->pid);
    return there > 0 ? 0 : -1;
}

int cli_run_status(const struct cli_options *o, struct session_address *addr, struct strbuf *out,
                   struct err *e) {
    if (cli_find_agent(addr, e) != 0)
        return -1;
    struct call *c = call_open(addr, e);
    if (!c)
        return -1;
    struct model_status status;
    int rc = call_status(c, &status, e);
    if (rc == 0 && o->json) {
        struct json j;
        json_init(&j, out, 2);
        document_put_status(&j, call_get_target(c), &status);
        (void)strbuf_addc(out, '\n');
    } else if (rc == 0) {
        status_put_text(out, call_get_target(c), &status);
    }
    model_status_fini(&status);
    call_close(c);
    return rc;
}
