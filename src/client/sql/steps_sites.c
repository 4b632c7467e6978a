/* SPDX-License-Identifier: Apache-2.0 */
/* steps_sites: see steps_sites.h. */
#include "client/sql/steps_sites.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/hash.h"
#include "base/path.h"
#include "base/table.h"

#define SITES_USUAL 10    /* samples of ordinary steps that a comparison needs */
#define SITES_SHARE 0.5   /* of the excess that a site explains */
#define SITES_CHANCE 0.01 /* that of all slow steps one is accused by chance: less often than this */
#define SITES_DEPTH 2048
#define SITES_SAMPLES 8192 /* the newest */
#define SITES_NONE UINT32_MAX
#define SITES_ROOT 0U

/* ---- what is asked ---- */

/* The thread that trains: of the newest Optimizer.step, or the main thread. */
#define SITES_THREAD                                                                                         \
    "tid = coalesce((SELECT tid FROM main.profiling_data WHERE kind = 'optimizer' AND timestamp > now() - "  \
    "60 ORDER BY timestamp DESC LIMIT 1), pid)"

int steps_sites_ask_samples(char *buf, size_t cap, double seconds) {
    int n = snprintf(buf, cap,
                     "SELECT timestamp, stack_id, gil = 'waiting' AS waits, gc, NULL AS cpu_wait_s FROM "
                     "python.samples WHERE timestamp > now() - %.0f AND torn IS NOT 1 AND " SITES_THREAD
                     " UNION ALL SELECT timestamp, NULL, NULL, NULL, cpu_wait_s FROM system.threads_history "
                     "WHERE timestamp > now() - %.0f AND " SITES_THREAD " ORDER BY timestamp DESC LIMIT %d",
                     seconds, seconds, SITES_SAMPLES);
    return n > 0 && (size_t)n < cap ? 0 : -1;
}

int steps_sites_ask_stacks(char *buf, size_t cap, double seconds) {
    int n = snprintf(
        buf, cap,
        "WITH RECURSIVE s(id) AS (SELECT DISTINCT stack_id FROM python.samples WHERE timestamp > now() - "
        "%.0f "
        "AND stack_id IS NOT NULL AND torn IS NOT 1 AND " SITES_THREAD
        "), p(id) AS (SELECT id FROM s UNION SELECT parent_id "
        "FROM p JOIN python.stacks ON stack_id = p.id WHERE parent_id IS NOT NULL) SELECT k.stack_id, "
        "k.parent_id, f.func, f.file, f.lineno FROM p JOIN python.stacks k ON k.stack_id = p.id JOIN "
        "python.frames f ON f.frame_id = k.frame_id LIMIT 50000",
        seconds);
    return n > 0 && (size_t)n < cap ? 0 : -1;
}

/* ---- the tree of calls ---- */

/* A function below its caller; callers have smaller numbers. */
struct sites_node {
    uint32_t parent, row; /* one of its rows of the stacks */
    double usual;         /* samples of ordinary steps, with those of what it calls */
    double here;          /* the same of the slow steps that are looked at */
    bool is_library;
};

/* A line of a node's function. */
struct sites_line {
    uint32_t node;
    int line;
    double usual, here; /* as those of a node */
};

struct sites_sample {
    uint32_t step, row; /* SITES_NONE: no stack */
    bool waits;
};

/* How long the thread has waited for a CPU until then. */
struct sites_wait {
    double at_s, waited_s;
};

struct sites {
    const struct steps_span *steps;
    const struct result *stacks;
    int id, parent, func, file, line; /* columns */
    struct table rows;                /* of stacks, by id */
    /* Of each row of the stacks: its node (SITES_NONE: none yet), the row of its caller (SITES_NONE:
     * none), its line. */
    uint32_t *of_row, *caller, *line_of;
    struct sites_node *nodes;
    size_t n_nodes, cap_nodes;
    struct table names; /* of nodes, by caller and function */
    struct sites_line *lines;
    size_t n_lines, cap_lines;
    struct table numbers; /* of lines, by node and number */
    struct sites_sample *samples;
    size_t n_samples;
    struct sites_wait *waits; /* newest first */
    size_t n_waits;
    double usual, usual_waits, usual_ms; /* samples of ordinary steps; the mean length of these */
    double slow;                         /* steps with samples */
};

static double sites_number(const struct result *r, size_t row, int column) {
    return column < 0 ? NAN : result_number(r, row, (size_t)column);
}

static const char *sites_text(const struct result *r, size_t row, int column) {
    const char *text = column < 0 ? NULL : result_string(r, row, (size_t)column);
    return text ? text : "";
}

/* An id of a stack; 0: NULL. */
static int64_t sites_id(const struct result *r, size_t row, int column) {
    if (column < 0 || result_kind(r, row, (size_t)column) != SQL_INTEGER)
        return 0;
    return r->columns[column].values[row].i;
}

static uint32_t sites_find_row(const struct sites *s, int64_t id) {
    size_t at = TABLE_BEGIN;
    for (uint32_t i; id && (i = table_next(&s->rows, hash_mix((uint64_t)id), &at)) != TABLE_NONE;)
        if (sites_id(s->stacks, i, s->id) == id)
            return i;
    return SITES_NONE;
}

static bool sites_is(const struct sites *s, uint32_t node, uint32_t parent, const char *func,
                     const char *file) {
    const struct sites_node *n = &s->nodes[node];
    return n->parent == parent && strcmp(sites_text(s->stacks, n->row, s->func), func) == 0 &&
           strcmp(sites_text(s->stacks, n->row, s->file), file) == 0;
}

/* The node of a row below the node of its caller; SITES_NONE without memory. */
static uint32_t sites_put(struct sites *s, uint32_t parent, uint32_t row) {
    const char *func = sites_text(s->stacks, row, s->func), *file = sites_text(s->stacks, row, s->file);
    uint64_t hash = hash_mix(hash_bytes(func, strlen(func)) * 31 + hash_bytes(file, strlen(file)) + parent);
    size_t at = TABLE_BEGIN;
    for (uint32_t i; (i = table_next(&s->names, hash, &at)) != TABLE_NONE;)
        if (sites_is(s, i, parent, func, file))
            return i;
    if (grow_array(&s->nodes, sizeof *s->nodes, s->n_nodes + 1, &s->cap_nodes) != 0 ||
        table_add(&s->names, hash, (uint32_t)s->n_nodes) != 0)
        return SITES_NONE;
    s->nodes[s->n_nodes] =
        (struct sites_node){.parent = parent, .row = row, .is_library = path_is_library(file)};
    return (uint32_t)s->n_nodes++;
}

/* The line of a row, which has a node; SITES_NONE without memory. */
static uint32_t sites_put_line(struct sites *s, uint32_t row) {
    double number = sites_number(s->stacks, row, s->line);
    int line = number > 0 && number < 1e9 ? (int)number : 0;
    uint32_t node = s->of_row[row];
    uint64_t hash = hash_mix(((uint64_t)node << 32) + (uint64_t)line);
    size_t at = TABLE_BEGIN;
    for (uint32_t i; (i = table_next(&s->numbers, hash, &at)) != TABLE_NONE;)
        if (s->lines[i].node == node && s->lines[i].line == line)
            return i;
    if (grow_array(&s->lines, sizeof *s->lines, s->n_lines + 1, &s->cap_lines) != 0 ||
        table_add(&s->numbers, hash, (uint32_t)s->n_lines) != 0)
        return SITES_NONE;
    s->lines[s->n_lines] = (struct sites_line){.node = node, .line = line};
    return (uint32_t)s->n_lines++;
}

/* Find the nodes of a row and its callers. 0, or -1 without memory. */
static int sites_place(struct sites *s, uint32_t row) {
    uint32_t path[SITES_DEPTH];
    size_t n = 0;
    uint32_t node = SITES_ROOT;
    for (uint32_t at = row; at != SITES_NONE && n < SITES_DEPTH; at = s->caller[at]) {
        if (s->of_row[at] != SITES_NONE) {
            node = s->of_row[at];
            break;
        }
        path[n++] = at;
        s->caller[at] = sites_find_row(s, sites_id(s->stacks, at, s->parent));
    }
    if (n == SITES_DEPTH)
        s->caller[path[n - 1]] = SITES_NONE; /* too deep, or a circle: it begins here */
    while (n-- > 0) {
        node = sites_put(s, node, path[n]);
        if (node == SITES_NONE)
            return -1;
        s->of_row[path[n]] = node;
        s->line_of[path[n]] = sites_put_line(s, path[n]);
        if (s->line_of[path[n]] == SITES_NONE)
            return -1;
    }
    return 0;
}

/* ---- making it ---- */

static int sites_read_stacks(struct sites *s) {
    size_t n = s->stacks->n_rows;
    s->of_row = malloc((n + 1) * sizeof *s->of_row);
    s->caller = malloc((n + 1) * sizeof *s->caller);
    s->line_of = malloc((n + 1) * sizeof *s->line_of);
    if (!s->of_row || !s->caller || !s->line_of || table_reserve(&s->rows, n) != 0 ||
        grow_array(&s->nodes, sizeof *s->nodes, 1, &s->cap_nodes) != 0)
        return -1;
    s->nodes[s->n_nodes++] = (struct sites_node){.parent = SITES_NONE, .row = SITES_NONE};
    for (size_t i = 0; i < n; i++) {
        int64_t id = sites_id(s->stacks, i, s->id);
        s->of_row[i] = s->caller[i] = s->line_of[i] = SITES_NONE;
        if (id && table_add(&s->rows, hash_mix((uint64_t)id), (uint32_t)i) != 0)
            return -1;
    }
    return 0;
}

/* Samples with their steps; both are newest first. */
static int sites_read_samples(struct sites *s, const struct result *r, size_t n_steps) {
    int time = result_find_column(r, "timestamp"), stack = result_find_column(r, "stack_id"),
        waits = result_find_column(r, "waits"), cpu_wait = result_find_column(r, "cpu_wait_s");
    size_t at = 0;
    s->samples = malloc((r->n_rows + 1) * sizeof *s->samples);
    s->waits = malloc((r->n_rows + 1) * sizeof *s->waits);
    if (!s->samples || !s->waits)
        return -1;
    for (size_t i = 0; i < r->n_rows; i++) {
        double t = sites_number(r, i, time), waited_s = sites_number(r, i, cpu_wait);
        if (!isnan(waited_s)) {
            s->waits[s->n_waits++] = (struct sites_wait){t, waited_s};
            continue;
        }
        while (at < n_steps && !(t > s->steps[at].from_s))
            at++;
        if (at == n_steps)
            break;
        uint32_t row = sites_find_row(s, sites_id(r, i, stack));
        if (!(t <= s->steps[at].to_s) || row == SITES_NONE)
            continue;
        if (sites_place(s, row) != 0)
            return -1;
        s->samples[s->n_samples++] = (struct sites_sample){(uint32_t)at, row, sites_number(r, i, waits) > 0};
    }
    return 0;
}

static double sites_ms(const struct steps_span *step) { return 1000 * (step->to_s - step->from_s); }

/* Ordinary steps: their samples, and their mean length, as far back as samples go. */
static void sites_count_usual(struct sites *s) {
    double ms = 0, n = 0;
    size_t oldest = s->n_samples ? s->samples[s->n_samples - 1].step : 0;
    for (size_t i = 0; s->n_samples && i <= oldest; i++)
        if (!s->steps[i].is_slow && sites_ms(&s->steps[i]) > 0) {
            ms += sites_ms(&s->steps[i]);
            n++;
        }
    s->usual_ms = n > 0 ? ms / n : NAN;
    for (size_t i = 0; i < s->n_samples; i++)
        s->slow +=
            s->steps[s->samples[i].step].is_slow && (i == 0 || s->samples[i - 1].step != s->samples[i].step);
    for (size_t i = 0; i < s->n_samples; i++)
        if (!s->steps[s->samples[i].step].is_slow) {
            s->usual++;
            s->usual_waits += s->samples[i].waits;
            s->nodes[s->of_row[s->samples[i].row]].usual++;
            for (uint32_t row = s->samples[i].row; row != SITES_NONE; row = s->caller[row])
                s->lines[s->line_of[row]].usual++;
        }
    for (size_t i = s->n_nodes; i-- > 1;)
        s->nodes[s->nodes[i].parent].usual += s->nodes[i].usual;
}

/* ---- slow steps ---- */

/* Slow steps that are looked at together: their samples are marked, all of them within a range. */
struct sites_case {
    const bool *is_in; /* per sample */
    size_t from, to;
    double samples, steps, ms;
};

/* How likely it is that at least `c` of `k` samples are where a share `p` of the ordinary ones is. */
static double sites_chance(double c, double k, double p) {
    double sum = 0;
    for (double i = c; i <= k; i++)
        sum += exp(lgamma(k + 1) - lgamma(i + 1) - lgamma(k - i + 1) + i * log(p) + (k - i) * log(1 - p));
    return sum;
}

/* Of `count` samples of the case where `usual` ordinary ones are: the milliseconds of a step more
 * than usual. */
static double sites_more(const struct sites *s, const struct sites_case *c, double count, double usual) {
    return count / c->samples * c->ms / c->steps - usual / s->usual * s->usual_ms;
}

static double sites_excess(const struct sites *s, const struct sites_case *c) {
    return c->ms / c->steps - s->usual_ms;
}

/* It explains the excess, and chance does not explain it. */
static bool sites_explains(const struct sites *s, const struct sites_case *c, double count, double usual) {
    return count >= STEPS_SITES_LEAST && sites_more(s, c, count, usual) >= SITES_SHARE * sites_excess(s, c) &&
           sites_chance(count, c->samples, (usual + 0.5) / (s->usual + 1)) <= SITES_CHANCE / s->slow;
}

/* The row of a stack that is in the frame of a node; SITES_NONE: it does not pass through it. */
static uint32_t sites_frame_of(const struct sites *s, uint32_t row, uint32_t node) {
    while (row != SITES_NONE && s->of_row[row] != node)
        row = s->caller[row];
    return row;
}

/* The line of a node's frame with the most samples of the case, of stacks that pass through `below`,
 * too; NULL: none is known. */
static const struct sites_line *sites_find_line(struct sites *s, const struct sites_case *c, uint32_t node,
                                                uint32_t below) {
    const struct sites_line *best = NULL;
    for (int pass = 0; pass < 2; pass++) /* forget, then count */
        for (size_t i = c->from; i < c->to; i++) {
            uint32_t row = c->is_in[i] ? sites_frame_of(s, s->samples[i].row, below) : SITES_NONE;
            row = row == SITES_NONE ? row : sites_frame_of(s, s->samples[i].row, node);
            struct sites_line *line = row == SITES_NONE ? NULL : &s->lines[s->line_of[row]];
            if (!line || line->line == 0)
                continue;
            line->here = pass == 0 ? 0 : line->here + 1;
            if (pass == 1 && (!best || line->here > best->here))
                best = line;
        }
    return best;
}

static void sites_count_case(struct sites *s, const struct sites_case *c) {
    for (size_t i = 0; i < s->n_nodes; i++)
        s->nodes[i].here = 0;
    for (size_t i = c->from; i < c->to; i++)
        if (c->is_in[i])
            s->nodes[s->of_row[s->samples[i].row]].here++;
    for (size_t i = s->n_nodes; i-- > 1;)
        s->nodes[s->nodes[i].parent].here += s->nodes[i].here;
}

/* The callee with most of the excess; SITES_NONE: none has enough of it. */
static uint32_t sites_callee(const struct sites *s, const struct sites_case *c, uint32_t node) {
    uint32_t best = SITES_NONE;
    double most = SITES_SHARE * sites_excess(s, c);
    for (uint32_t i = node + 1; i < s->n_nodes; i++) {
        const struct sites_node *n = &s->nodes[i];
        double more =
            n->parent == node && n->here >= STEPS_SITES_LEAST ? sites_more(s, c, n->here, n->usual) : 0;
        if (more >= most) {
            best = i;
            most = more;
        }
    }
    return best;
}

/* The site in the job's own code of what was found. */
static void sites_name(struct sites *s, const struct sites_case *c, uint32_t found, double more,
                       struct steps_site *out) {
    uint32_t own = found;
    while (own != SITES_ROOT && s->nodes[own].is_library)
        own = s->nodes[own].parent;
    own = own == SITES_ROOT ? found : own;
    out->func = sites_text(s->stacks, s->nodes[own].row, s->func);
    out->file = sites_text(s->stacks, s->nodes[own].row, s->file);
    const struct sites_line *line = sites_find_line(s, c, own, found);
    out->line = line ? line->line : 0;
    out->more_ms = fmin(more, sites_excess(s, c));
}

/* What explains the case; false: nothing does. `*node`: where it is; the root for the GIL. */
static bool sites_judge(struct sites *s, const struct sites_case *c, uint32_t *node, struct steps_site *out) {
    double waits = 0;
    *out = (struct steps_site){.more_ms = NAN};
    *node = SITES_ROOT;
    if (c->samples < STEPS_SITES_LEAST || s->usual < SITES_USUAL || !(sites_excess(s, c) > 0))
        return false;
    for (size_t i = c->from; i < c->to; i++)
        waits += c->is_in[i] && s->samples[i].waits;
    if (sites_explains(s, c, waits, s->usual_waits)) {
        *out =
            (struct steps_site){.func = "waits for the GIL",
                                .more_ms = fmin(sites_more(s, c, waits, s->usual_waits), sites_excess(s, c))};
        return true;
    }
    sites_count_case(s, c);
    for (uint32_t at = sites_callee(s, c, SITES_ROOT); at != SITES_NONE; at = sites_callee(s, c, at)) {
        const struct sites_node *n = &s->nodes[at];
        const struct sites_line *line = sites_find_line(s, c, at, at);
        double count = line ? line->here : 0, usual = line ? line->usual : 0;
        bool by_function = sites_explains(s, c, n->here, n->usual);
        if (!by_function && !sites_explains(s, c, count, usual))
            continue;
        *node = at;
        sites_name(s, c, at,
                   by_function ? sites_more(s, c, n->here, n->usual) : sites_more(s, c, count, usual), out);
    }
    return out->func != NULL;
}

/* The most that the thread has waited for a CPU within a step, in milliseconds, by the readings around
 * it; 0: unknown. */
static double sites_cpu_wait(const struct sites *s, const struct steps_span *step) {
    double after_s = NAN, before_s = NAN;
    for (size_t i = 0; i < s->n_waits && isnan(before_s); i++) {
        if (s->waits[i].at_s >= step->to_s)
            after_s = s->waits[i].waited_s;
        if (s->waits[i].at_s <= step->from_s)
            before_s = s->waits[i].waited_s;
        else if (s->waits[i].at_s < step->to_s && isnan(after_s))
            after_s = s->waits[i].waited_s; /* the newest reading is within the step */
    }
    return after_s > before_s ? 1000 * (after_s - before_s) : 0;
}

/* A thread that was kept from running stands somewhere, too: that place is not the reason. */
static bool sites_was_kept(const struct sites *s, const struct steps_span *step) {
    return sites_cpu_wait(s, step) >= SITES_SHARE * (sites_ms(step) - s->usual_ms);
}

/* Each slow step by itself; then those for which that did not suffice together. */
static void sites_judge_all(struct sites *s, size_t n_steps, bool *is_in, bool *rest,
                            struct steps_site *out) {
    struct sites_case all = {.is_in = rest, .to = s->n_samples}, one;
    struct steps_site site;
    uint32_t node;
    for (size_t from = 0, to; from < s->n_samples; from = to) {
        uint32_t step = s->samples[from].step;
        for (to = from; to < s->n_samples && s->samples[to].step == step; to++)
            ;
        if (!s->steps[step].is_slow || step >= n_steps || sites_was_kept(s, &s->steps[step]))
            continue;
        memset(is_in + from, true, to - from);
        one = (struct sites_case){is_in, from, to, (double)(to - from), 1, sites_ms(&s->steps[step])};
        if (!sites_judge(s, &one, &node, &out[step])) {
            memset(rest + from, true, to - from);
            all.samples += one.samples;
            all.ms += one.ms;
            all.steps++;
        }
        memset(is_in + from, false, to - from);
    }
    if (all.steps < 2 || !sites_judge(s, &all, &node, &site))
        return;
    for (size_t from = 0, to; from < s->n_samples; from = to) {
        uint32_t step = s->samples[from].step;
        double count = 0;
        for (to = from; to < s->n_samples && s->samples[to].step == step; to++)
            count += rest[to] && (site.file ? sites_frame_of(s, s->samples[to].row, node) != SITES_NONE
                                            : s->samples[to].waits);
        if (count < STEPS_SITES_LEAST || count < SITES_SHARE * (double)(to - from))
            continue;
        out[step] = site;
        out[step].more_ms = fmin(site.more_ms, sites_ms(&s->steps[step]) - s->usual_ms);
    }
}

static void sites_fini(struct sites *s) {
    table_fini(&s->rows);
    table_fini(&s->names);
    table_fini(&s->numbers);
    free(s->lines);
    free(s->caller);
    free(s->line_of);
    free(s->of_row);
    free(s->nodes);
    free(s->samples);
    free(s->waits);
}

int steps_sites_find(const struct steps_span *steps, size_t n, const struct result *samples,
                     const struct result *stacks, struct steps_site *out) {
    struct sites s = {.steps = steps,
                      .stacks = stacks,
                      .id = result_find_column(stacks, "stack_id"),
                      .parent = result_find_column(stacks, "parent_id"),
                      .func = result_find_column(stacks, "func"),
                      .file = result_find_column(stacks, "file"),
                      .line = result_find_column(stacks, "lineno")};
    for (size_t i = 0; i < n; i++)
        out[i] = (struct steps_site){.more_ms = NAN};
    int rc = sites_read_stacks(&s) == 0 ? sites_read_samples(&s, samples, n) : -1;
    bool *marks = rc == 0 ? calloc(2 * s.n_samples + 1, sizeof *marks) : NULL;
    if (marks) {
        sites_count_usual(&s);
        sites_judge_all(&s, n, marks, marks + s.n_samples, out);
    }
    free(marks);
    sites_fini(&s);
    return marks ? 0 : -1;
}
