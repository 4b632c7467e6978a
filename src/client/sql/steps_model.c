/* SPDX-License-Identifier: Apache-2.0 */
/* steps_model: see steps_model.h. */
#include "client/sql/steps_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/text.h"

static const char *const steps_part_names[STEPS_CAUSES] = {
    "data", "forward", "backward", "optimizer", "comm", "gc", "other", "not known", "a function"};
static const char *const steps_part_columns[STEPS_PARTS] = {
    "data_ms", "forward_ms", "backward_ms", "optimizer_ms", "comm_ms", "gc_ms", "other_ms"};

const char *steps_part_name(enum steps_part part) { return steps_part_names[part]; }

const char *steps_cause_name(const struct steps_row *row) {
    if (row->cause == STEPS_REST && row->looks >= STEPS_SITES_LEAST)
        return "nothing stands out";
    return row->cause < 0 ? "" : steps_part_names[row->cause];
}

void steps_model_fini(struct steps_model *m) {
    free(m->rows);
    result_unref(m->stacks);
    memset(m, 0, sizeof *m);
}

/* ---- rows ---- */

static double steps_number(const struct result *r, size_t row, int column) {
    return column < 0 ? NAN : result_number(r, row, (size_t)column);
}

static int64_t steps_integer(const struct result *r, size_t row, int column) {
    bool is_known = column >= 0 && result_kind(r, row, (size_t)column) == SQL_INTEGER;
    return is_known ? result_at(r, row, (size_t)column).i : INT64_MIN;
}

static void steps_read_rows(struct steps_model *m, const struct result *r) {
    int at[STEPS_PARTS], time = result_find_column(r, "timestamp"), step = result_find_column(r, "step");
    int ms = result_find_column(r, "duration_ms"), loss = result_find_column(r, "loss");
    int lr = result_find_column(r, "lr"), grad = result_find_column(r, "grad_norm");
    int bad = result_find_column(r, "nonfinite");
    for (int i = 0; i < STEPS_PARTS; i++)
        at[i] = result_find_column(r, steps_part_columns[i]);
    for (size_t i = 0; i < r->n_rows; i++) {
        struct steps_row *row = &m->rows[m->n];
        const char *what = bad < 0 ? NULL : result_string(r, i, (size_t)bad);
        *row = (struct steps_row){.at_s = steps_number(r, i, time),
                                  .step = steps_integer(r, i, step),
                                  .ms = steps_number(r, i, ms),
                                  .loss = steps_number(r, i, loss),
                                  .lr = steps_number(r, i, lr),
                                  .grad_norm = steps_number(r, i, grad),
                                  .cause = -1};
        row->bad = what && strcmp(what, "none") != 0 ? what[0] : 0;
        for (int k = 0; k < STEPS_PARTS; k++)
            row->parts[k] = steps_number(r, i, at[k]);
        m->n += !isnan(row->at_s);
        m->has_loss |= !isnan(row->loss) || row->bad == 'l' || row->bad == 'b';
        m->has_grad |= !isnan(row->grad_norm) || row->bad == 'g' || row->bad == 'b';
        m->has_lr |= !isnan(row->lr);
        m->has_data |= !isnan(row->parts[STEPS_DATA]);
        m->has_gc |= !isnan(row->parts[STEPS_GC]);
    }
}

/* Samples belong to the step of their time; both are newest first. */
static void steps_read_samples(struct steps_model *m, const struct result *r) {
    int time = result_find_column(r, "timestamp"), waits = result_find_column(r, "waits");
    int gc = result_find_column(r, "gc");
    size_t at = 0;
    for (size_t i = 0; i < r->n_rows && m->n; i++) {
        double at_s = steps_number(r, i, time);
        while (at + 1 < m->n && at_s <= m->rows[at + 1].at_s)
            at++;
        struct steps_row *row = &m->rows[at];
        bool within = at_s <= row->at_s && (at + 1 < m->n || at_s > row->at_s - row->ms / 1000);
        if (!within || isnan(steps_number(r, i, waits)))
            continue;
        row->looks++;
        row->waits += steps_number(r, i, waits) > 0;
        row->gcs += steps_number(r, i, gc) > 0;
        m->has_looks = true;
    }
}

/* ---- figures ---- */

static int steps_compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double steps_quantile(const double *sorted, size_t n, double p) {
    if (n == 0)
        return NAN;
    double at = p * (double)(n - 1);
    size_t k = (size_t)at;
    return k + 1 < n ? sorted[k] + (at - (double)k) * (sorted[k + 1] - sorted[k]) : sorted[k];
}

/* Known values of rows `from` to `to`, sorted: of a part, or (-1) of the whole step. */
static size_t steps_sort(const struct steps_model *m, size_t from, size_t to, int part, double *out) {
    size_t n = 0;
    for (size_t i = from; i < to; i++) {
        double v = part < 0 ? m->rows[i].ms : m->rows[i].parts[part];
        if (!isnan(v))
            out[n++] = v;
    }
    qsort(out, n, sizeof *out, steps_compare);
    return n;
}

static void steps_figure(struct steps_model *m, double *room) {
    size_t n = steps_sort(m, 0, m->n, -1, room), known = 0;
    m->p50 = steps_quantile(room, n, 0.5);
    m->p90 = steps_quantile(room, n, 0.9);
    m->p99 = steps_quantile(room, n, 0.99);
    double sum = 0;
    for (size_t i = 0; i < m->n && known < STEPS_RATE; i++)
        if (!isnan(m->rows[i].ms)) {
            sum += m->rows[i].ms;
            known++;
        }
    m->rate = sum > 0 ? 1000 * (double)known / sum : NAN;
    size_t quarter = m->n / 4;
    size_t newest = quarter >= 5 ? steps_sort(m, 0, quarter, -1, room) : 0;
    double now = steps_quantile(room, newest, 0.5);
    size_t oldest = quarter >= 5 ? steps_sort(m, m->n - quarter, m->n, -1, room) : 0;
    m->trend = now / steps_quantile(room, oldest, 0.5) - 1;
}

/* How much more than usual a part took. */
static double steps_more(const struct steps_row *row, int part, const double *usual) {
    double more = row->parts[part] - usual[part];
    return more > 0 ? more : 0; /* nor an unknown value */
}

/* Where the excess of a slow step over the median went, in ms: garbage collection and collectives
 * first, because they are within other parts. */
static void steps_explain(const struct steps_row *row, double p50, const double *usual, double *out) {
    double left = row->ms - p50, sum = 0;
    for (int i = 0; i < STEPS_CAUSES; i++)
        out[i] = 0;
    out[STEPS_GC] = fmin(left, steps_more(row, STEPS_GC, usual));
    left -= out[STEPS_GC];
    out[STEPS_COMM] = fmin(left, steps_more(row, STEPS_COMM, usual));
    left -= out[STEPS_COMM];
    for (int i = 0; i < STEPS_PARTS; i++)
        sum += i == STEPS_GC || i == STEPS_COMM ? 0 : steps_more(row, i, usual);
    double share = sum > left ? left / sum : 1;
    for (int i = 0; i < STEPS_PARTS; i++)
        if (i != STEPS_GC && i != STEPS_COMM)
            out[i] = share * steps_more(row, i, usual);
    out[STEPS_REST] = left - share * sum;
}

/* The part of the excess that no part of the step explains by itself goes to the site. */
static void steps_take_site(const struct steps_row *row, double *more) {
    static const enum steps_part from[] = {STEPS_REST, STEPS_OTHER, STEPS_FORWARD, STEPS_BACKWARD};
    double left = row->site.func ? row->site.more_ms : 0;
    for (size_t i = 0; i < sizeof from / sizeof *from; i++) {
        double part = fmin(left, more[from[i]]);
        more[from[i]] -= part;
        more[STEPS_SITE] += part;
        left -= part;
    }
}

static bool steps_is_same(const struct steps_site *a, const struct steps_site *b) {
    return text_same(a->func, b->func) && text_same(a->file, b->file) && a->line == b->line;
}

static void steps_add_site(struct steps_model *m, const struct steps_site *site, double ms) {
    size_t i = 0;
    while (i < m->n_sites && !steps_is_same(&m->sites[i].site, site))
        i++;
    if (i == STEPS_SITES)
        return;
    if (i == m->n_sites) {
        m->sites[m->n_sites++] = (struct steps_model_site){.site = *site};
        m->sites[i].site.more_ms = 0;
    }
    m->sites[i].site.more_ms += ms;
    m->sites[i].steps++;
}

static int steps_compare_sites(const void *a, const void *b) {
    double x = ((const struct steps_model_site *)a)->site.more_ms;
    double y = ((const struct steps_model_site *)b)->site.more_ms;
    return (x < y) - (x > y);
}

static void steps_find_causes(struct steps_model *m, double *room) {
    double usual[STEPS_PARTS], more[STEPS_CAUSES];
    for (int i = 0; i < STEPS_PARTS; i++)
        usual[i] = steps_quantile(room, steps_sort(m, 0, m->n, i, room), 0.5);
    for (int i = 0; i < STEPS_CAUSES; i++)
        m->causes[i] = 0;
    for (size_t i = 0; i < m->n; i++) {
        struct steps_row *row = &m->rows[i];
        row->slowness = row->ms / m->p50;
        if (!(row->slowness > STEPS_SLOW))
            continue;
        steps_explain(row, m->p50, usual, more);
        steps_take_site(row, more);
        m->slow++;
        m->excess_ms += row->ms - m->p50;
        row->cause = 0;
        for (int k = 0; k < STEPS_CAUSES; k++) {
            m->causes[k] += more[k];
            row->cause = more[k] > more[row->cause] ? k : row->cause;
        }
        if (more[STEPS_SITE] > 0)
            steps_add_site(m, &row->site, more[STEPS_SITE]);
    }
    for (int i = 0; i < STEPS_CAUSES; i++)
        m->causes[i] = m->slow ? m->causes[i] / m->excess_ms : NAN;
    qsort(m->sites, m->n_sites, sizeof m->sites[0], steps_compare_sites);
}

/* What slow steps did in the time that is not explained by their parts. */
static void steps_find_sites(struct steps_model *m, const struct result *samples, struct result *stacks) {
    struct steps_span *spans = malloc((m->n + 1) * sizeof *spans);
    struct steps_site *sites = malloc((m->n + 1) * sizeof *sites);
    for (size_t i = 0; spans && i < m->n; i++) {
        const struct steps_row *row = &m->rows[i];
        double ms = isnan(row->ms) ? 0 : row->ms;
        spans[i] = (struct steps_span){row->at_s - ms / 1000, row->at_s, ms > STEPS_SLOW * m->p50};
    }
    if (spans && sites && steps_sites_find(spans, m->n, samples, stacks, sites) == 0) {
        m->stacks = result_ref(stacks);
        for (size_t i = 0; i < m->n; i++)
            m->rows[i].site = sites[i];
    }
    free(spans);
    free(sites);
}

void steps_model_build(struct steps_model *m, const struct result *steps, const struct result *samples,
                       struct result *stacks) {
    steps_model_fini(m);
    m->rate = m->p50 = m->p90 = m->p99 = m->trend = NAN;
    size_t n = steps ? steps->n_rows : 0;
    m->rows = calloc(n + 1, sizeof *m->rows);
    double *room = malloc((n + 1) * sizeof *room);
    if (m->rows && room && n) {
        steps_read_rows(m, steps);
        if (samples)
            steps_read_samples(m, samples);
        steps_figure(m, room);
        if (samples && stacks)
            steps_find_sites(m, samples, stacks);
        steps_find_causes(m, room);
    }
    free(room);
}

/* ---- columns of the strips ---- */

struct steps_mean {
    double sum;
    size_t n;
};

static void steps_mean_add(struct steps_mean *m, double v) {
    m->sum += isnan(v) ? 0 : v;
    m->n += !isnan(v);
}

static double steps_mean_get(const struct steps_mean *m) { return m->n ? m->sum / (double)m->n : NAN; }

void steps_model_column(const struct steps_model *m, size_t first, size_t count, struct steps_column *out) {
    struct steps_mean loss = {0}, lr = {0}, grad = {0}, data = {0}, data_of = {0}, gc = {0}, gc_of = {0};
    unsigned looks = 0, waits = 0, gcs = 0;
    *out = (struct steps_column){.ms = NAN, .ranks = {NAN, NAN, NAN}};
    for (size_t i = first; i < m->n && i < first + count; i++) {
        const struct steps_row *r = &m->rows[i];
        out->n++;
        out->ms = r->ms > out->ms || isnan(out->ms) ? r->ms : out->ms;
        out->is_slow |= r->cause >= 0;
        out->bad_loss |= r->bad == 'l' || r->bad == 'b';
        out->bad_grad |= r->bad == 'g' || r->bad == 'b';
        steps_mean_add(&loss, r->loss);
        steps_mean_add(&lr, r->lr);
        steps_mean_add(&grad, r->grad_norm);
        steps_mean_add(&data, r->parts[STEPS_DATA]);
        steps_mean_add(&data_of, isnan(r->parts[STEPS_DATA]) ? NAN : r->ms);
        steps_mean_add(&gc, r->parts[STEPS_GC]);
        steps_mean_add(&gc_of, isnan(r->parts[STEPS_GC]) ? NAN : r->ms);
        looks += r->looks;
        waits += r->waits;
        gcs += r->gcs;
    }
    out->loss = steps_mean_get(&loss);
    out->lr = steps_mean_get(&lr);
    out->grad_norm = steps_mean_get(&grad);
    out->data = data.n && data_of.sum > 0 ? data.sum / data_of.sum : NAN;
    out->gil = looks ? (double)waits / looks : NAN;
    out->gc = gc.n && gc_of.sum > 0 ? gc.sum / gc_of.sum : looks ? (double)gcs / looks : NAN;
}

/* ---- words ---- */

void steps_put_ms(char *buf, size_t cap, double ms) {
    if (isnan(ms))
        snprintf(buf, cap, "\xe2\x80\x94");
    else if (ms >= 9999.5)
        snprintf(buf, cap, ms < 99950 ? "%.1f s" : "%.0f s", ms / 1000);
    else
        snprintf(buf, cap, ms < 9.995 ? "%.2f ms" : ms < 99.95 ? "%.1f ms" : "%.0f ms", ms);
}

void steps_put_number(char *buf, size_t cap, double v) {
    if (isnan(v))
        snprintf(buf, cap, "\xe2\x80\x94");
    for (int digits = 4, len = STEPS_NUMBER + 1; !isnan(v) && len > STEPS_NUMBER && digits > 0; digits--)
        len = snprintf(buf, cap, "%.*g", digits, v);
}

void steps_put_site(const struct steps_site *site, char *buf, size_t cap) {
    char func[96], file[96];
    text_sanitize(func, sizeof func, site->func ? site->func : "?");
    text_sanitize(file, sizeof file, site->file ? path_short(site->file) : "");
    if (!*file)
        snprintf(buf, cap, "%s", func);
    else if (site->line > 0)
        snprintf(buf, cap, "%s (%s:%d)", func, file, site->line);
    else
        snprintf(buf, cap, "%s (%s)", func, file);
}

void steps_put_why(const struct steps_row *row, char *buf, size_t cap) {
    char site[224], ms[24];
    if (row->cause != STEPS_SITE) {
        snprintf(buf, cap, "%s", steps_cause_name(row));
        return;
    }
    steps_put_site(&row->site, site, sizeof site);
    steps_put_ms(ms, sizeof ms, row->site.more_ms);
    snprintf(buf, cap, "%s +%s", site, ms);
}

/* A share of the excess under a name; the largest are written first. */
struct steps_share {
    const struct steps_site *site; /* NULL: a part */
    int part;
    double share;
};

static int steps_compare_shares(const void *a, const void *b) {
    const struct steps_share *x = a, *y = b;
    if (x->share != y->share)
        return x->share < y->share ? 1 : -1;
    return x->part - y->part;
}

#define STEPS_LEAST_SHARE 0.005
#define STEPS_LEAST_SITE 0.05 /* of a site, among many */

void steps_put_causes(const struct steps_model *m, struct strbuf *out) {
    struct steps_share shares[STEPS_SITES + STEPS_CAUSES];
    char more[32], name[224];
    size_t n = 0;
    double left = m->causes[STEPS_SITE];
    if (!m->slow)
        return;
    for (int i = 0; i < STEPS_SITE; i++)
        shares[n++] = (struct steps_share){NULL, i, m->causes[i]};
    for (size_t i = 0; i < m->n_sites; i++)
        if (m->sites[i].site.more_ms >= STEPS_LEAST_SITE * m->excess_ms) {
            shares[n++] =
                (struct steps_share){&m->sites[i].site, STEPS_SITE, m->sites[i].site.more_ms / m->excess_ms};
            left -= shares[n - 1].share;
        }
    shares[n++] = (struct steps_share){NULL, STEPS_SITE, left};
    qsort(shares, n, sizeof shares[0], steps_compare_shares);
    steps_put_ms(more, sizeof more, m->excess_ms);
    strbuf_addf(out, "%zu of %zu slow (over %.1f x median), %s in all:", m->slow, m->n, STEPS_SLOW, more);
    for (size_t i = 0; i < n && shares[i].share >= STEPS_LEAST_SHARE; i++) {
        if (shares[i].site)
            steps_put_site(shares[i].site, name, sizeof name);
        else
            snprintf(name, sizeof name, "%s",
                     shares[i].part == STEPS_SITE ? "elsewhere" : steps_part_names[shares[i].part]);
        strbuf_addf(out, "%s %s %.0f %%", i ? "," : "", name, shares[i].share * 100);
    }
}
