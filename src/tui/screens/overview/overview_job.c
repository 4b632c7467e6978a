/* SPDX-License-Identifier: Apache-2.0 */
/* overview_job: see overview_job.h. */
#include "tui/screens/overview/overview_job.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "client/sql/steps_model.h"
#include "tui/core/job_state.h"
#include "tui/screens/overview/overview_lines.h"
#include "tui/screens/overview/overview_verdicts.h"
#include "tui/view/rank_text.h"

#define OVERVIEW_JOB_TEXT 4096

/* A number of each rank: the sum, and who has the least and the most. */
struct overview_job_sum {
    double sum, least, most;
    int32_t least_rank, most_rank;
    size_t n; /* ranks of which it is known */
};

static void overview_job_count(struct overview_job_sum *s, int32_t rank, double v) {
    if (isnan(v))
        return;
    if (!s->n || v < s->least) {
        s->least = v;
        s->least_rank = rank;
    }
    if (!s->n || v > s->most) {
        s->most = v;
        s->most_rank = rank;
    }
    s->sum += v;
    s->n++;
}

/* Add a line with the value, if it is known of any rank. */
static struct overview_line *overview_job_add(struct overview *out, const char *label,
                                              const struct overview_job_sum *s) {
    struct overview_line *l = overview_add(out, OVERVIEW_METER, label, ACTION_SHOW_RANKS);
    if (!s->n)
        snprintf(l->value, sizeof l->value, "?");
    return l;
}

static void overview_job_say_range(struct overview_line *l, const struct overview_job_sum *s, size_t n,
                                   const char *least, const char *most) {
    if (!s->n)
        return;
    if (s->n < n)
        overview_say(l, ", known of %zu rank%s", s->n, s->n == 1 ? "" : "s");
    if (s->n > 1 && strcmp(least, most) == 0)
        overview_say(l, "; %s each", least);
    else if (s->n > 1)
        overview_say(l, "; from %s (rank %" PRId32 ") to %s (rank %" PRId32 ")", least, s->least_rank, most,
                     s->most_rank);
}

static void overview_job_add_ranks(struct overview *out, const struct job_shot *f) {
    struct overview_line *l = overview_add(out, OVERVIEW_METER, "ranks", ACTION_SHOW_RANKS);
    struct strbuf states;
    size_t n = 0, world = f->world > 0 ? (size_t)f->world : f->n_ranks;
    for (size_t i = 0; i < f->n_ranks; i++)
        n += f->ranks[i].pid > 0 && f->ranks[i].state != FLEET_GONE;
    snprintf(l->value, sizeof l->value, "%zu", n);
    l->role = n < world ? ROLE_CONN_WAIT : ROLE_VALUE;
    strbuf_init(&states, OVERVIEW_JOB_TEXT);
    rank_text_put_states(f, &states);
    overview_say(l, "of %zu, on %zu host%s: %s", world, f->n_hosts, f->n_hosts == 1 ? "" : "s",
                 strbuf_str(&states));
    strbuf_fini(&states);
    size_t known = 0;
    for (size_t i = 0; i < f->n_ranks; i++)
        known += f->ranks[i].class_number >= 0;
    l = overview_add(out, OVERVIEW_METER, "stacks", ACTION_SHOW_STACKS);
    snprintf(l->value, sizeof l->value, "%zu", f->stacks.n_classes);
    overview_say(l, "%s, of %zu rank%s", f->stacks.n_classes == 1 ? "stack" : "different ones", known,
                 known == 1 ? "" : "s");
}

/* The newest step that is known in all ranks of a role; of several roles that of the most ranks. */
static const struct fleet_fan *overview_job_fan(const struct job_shot *f) {
    const struct fleet_fan *best = NULL;
    for (size_t i = 0; i < f->n_fan; i++) {
        const struct fleet_fan *at = &f->fan[i];
        if (!best || at->n > best->n || (at->n == best->n && at->step > best->step))
            best = at;
    }
    return best;
}

static void overview_job_add_steps(struct overview *out, const struct job_shot *f) {
    struct overview_line *l = overview_add(out, OVERVIEW_METER, "steps", ACTION_SHOW_STEPS);
    const struct fleet_fan *fan = overview_job_fan(f);
    char least[24], median[24], most[24];
    int64_t step = -1;
    for (size_t i = 0; i < f->n_ranks; i++)
        step = f->ranks[i].step > step ? f->ranks[i].step : step;
    if (isnan(f->rate))
        snprintf(l->value, sizeof l->value, "?");
    else
        snprintf(l->value, sizeof l->value, "%.3g /s", f->rate);
    if (step >= 0)
        overview_say(l, "now step %" PRId64, step);
    else
        overview_say(l, "not known");
    if (!fan)
        return;
    steps_put_ms(least, sizeof least, fan->least);
    steps_put_ms(median, sizeof median, fan->median);
    steps_put_ms(most, sizeof most, fan->most);
    overview_say(l, "; step %" PRId64 " took %s to %s in %u rank%s, median %s", fan->step, least, most,
                 (unsigned)fan->n, fan->n == 1 ? "" : "s", median);
}

static void overview_job_add_use(struct overview *out, const struct job_shot *f) {
    struct overview_job_sum cpu = {.n = 0}, rss = {.n = 0}, util = {.n = 0}, gpu_mem = {.n = 0};
    struct overview_line *l;
    char least[16], most[16];
    for (size_t i = 0; i < f->n_ranks; i++) {
        const struct job_shot_rank *r = &f->ranks[i];
        overview_job_count(&cpu, r->rank, r->cpu_pct);
        overview_job_count(&rss, r->rank, r->rss_bytes >= 0 ? (double)r->rss_bytes : NAN);
        overview_job_count(&util, r->rank, r->gpu_util);
        overview_job_count(&gpu_mem, r->rank, r->gpu_mem_mb);
    }
    l = overview_job_add(out, "CPU", &cpu);
    if (cpu.n)
        snprintf(l->value, sizeof l->value, "%.1f", cpu.sum / 100);
    overview_say(l, "cores, all ranks");
    snprintf(least, sizeof least, "%.0f %%", cpu.least);
    snprintf(most, sizeof most, "%.0f %%", cpu.most);
    overview_job_say_range(l, &cpu, f->n_ranks, least, most);
    l = overview_job_add(out, "memory", &rss);
    if (rss.n)
        rank_text_bytes((int64_t)rss.sum, l->value, sizeof l->value);
    overview_say(l, "RAM, all ranks");
    rank_text_bytes((int64_t)rss.least, least, sizeof least);
    rank_text_bytes((int64_t)rss.most, most, sizeof most);
    overview_job_say_range(l, &rss, f->n_ranks, least, most);
    if (util.n) {
        l = overview_job_add(out, "GPU", &util);
        snprintf(l->value, sizeof l->value, "%.0f %%", util.sum / (double)util.n);
        overview_say(l, "busy, the mean of all ranks");
        snprintf(least, sizeof least, "%.0f %%", util.least);
        snprintf(most, sizeof most, "%.0f %%", util.most);
        overview_job_say_range(l, &util, f->n_ranks, least, most);
    }
    if (gpu_mem.n) {
        l = overview_job_add(out, "GPU memory", &gpu_mem);
        rank_text_bytes((int64_t)(gpu_mem.sum * (1 << 20)), l->value, sizeof l->value);
        overview_say(l, "in use, all ranks");
        rank_text_bytes((int64_t)(gpu_mem.least * (1 << 20)), least, sizeof least);
        rank_text_bytes((int64_t)(gpu_mem.most * (1 << 20)), most, sizeof most);
        overview_job_say_range(l, &gpu_mem, f->n_ranks, least, most);
    }
}

static void overview_job_add_relays(struct overview *out, const struct job_shot *f) {
    const struct job_shot_host *most = NULL;
    for (size_t i = 0; i < f->n_hosts; i++)
        if (!isnan(f->hosts[i].cost_pct) && (!most || f->hosts[i].cost_pct > most->cost_pct))
            most = &f->hosts[i];
    if (!most)
        return;
    struct overview_line *l = overview_add(out, OVERVIEW_METER, "relays", ACTION_SHOW_RANKS);
    snprintf(l->value, sizeof l->value, "%.1f %%", most->cost_pct);
    overview_say(l, "of a core, the busiest of them, on %.64s", most->name ? most->name : "?");
}

void overview_job_build(struct overview *out, const struct app *app, int cols, size_t events) {
    const struct job_shot *f = job_state_shown(app);
    out->n = out->n_verdicts = overview_verdicts_job_lines(f, cols, out->lines);
    if (f) {
        overview_job_add_ranks(out, f);
        overview_job_add_steps(out, f);
        overview_job_add_use(out, f);
        overview_job_add_relays(out, f);
    }
    overview_add_events(out, app, events);
}
