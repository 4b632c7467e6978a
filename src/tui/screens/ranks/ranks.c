/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ranks: all ranks of a job: which of them is unlike the others. A table, the worst first; above it,
 * if there are more than rows, a cell for each rank or a few of them; below it, if there is room, the
 * stack of the selected one. Enter opens a rank in all screens.
 */
#include "tui/core/app.h"
#include "tui/core/app_job.h"
#include "tui/core/job_state.h"
#include "tui/core/screen.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/text.h"
#include "tui/screens/ranks/rank_stack.h"
#include "tui/view/rank_filter.h"
#include "tui/view/rank_grid.h"
#include "tui/view/rank_text.h"
#include "tui/view/view.h"

#define RANKS_SILENT_LINES 3 /* of hosts that give no news */
#define RANKS_SILENT_TEXT 1024
#define RANKS_GRID_LINES 10 /* at most */
#define RANKS_GRID_SHARE 3  /* of the rows: a third */
#define RANKS_MUCH 20       /* rows from which on the stack has a part, though ranks are left out */
#define RANKS_NAME_COLS 12  /* of the name of a group */
#define RANKS_NAME 64
#define RANKS_HOST_COLUMN 1 /* left out while there is one host */
#define RANKS_HOST_MOST 40  /* columns of it, however long the names are */

/* How the cells are grouped. */
enum ranks_group { RANKS_BY_HOST, RANKS_BY_CLASS, RANKS_BY_RANK, RANKS_GROUPS };

/* What a cell shows. */
enum ranks_cell { RANKS_CELL_STATE, RANKS_CELL_STEP, RANKS_CELL_CPU, RANKS_CELLS };

struct ranks_state;

/* What the names of the hosts have in common, so that they do not look alike where they are cut. */
struct ranks_hosts {
    size_t domain;            /* bytes of the domain, with its dot, that all of them end with; 0: none */
    int widest, widest_short; /* columns of the longest one, and without the domain */
    enum grid_align align;    /* they differ at the end: the beginning is cut; or the other way round */
};

struct ranks_row {
    const struct job_shot *shot;
    const struct job_shot_rank *rank;
    struct ranks_state *state;
    int badness;
    int64_t group; /* of the cells */
    bool is_open;
};

struct ranks_state {
    const struct job_shot *shot; /* that the rows are of */
    struct ranks_row *pool;      /* owned; by rank */
    const void **rows;           /* owned; those that are shown, in their order */
    int n;
    size_t cap_pool, cap_rows;
    struct view view;
    struct table_column columns[TABLE_MAX_COLUMNS]; /* of the view */
    bool has_hosts;                                 /* with HOST, */
    struct ranks_hosts hosts;
    struct rank_filter filter, search;

    struct rank_grid grid;          /* no lines: it is not drawn */
    struct rank_grid_group *groups; /* owned */
    const struct ranks_row **slots; /* owned; ranks in the order of the cells */
    char (*names)[RANKS_NAME];      /* owned; of the groups */
    int n_groups;
    size_t cap_groups, cap_slots, cap_names;
    enum ranks_group group;   /* as it was chosen */
    enum ranks_group grouped; /* as it is, because there may be too many groups */
    enum ranks_cell cell;
    bool has_grid; /* also if all ranks fit into the table */
    bool in_grid;  /* it has the focus */
    bool compares; /* the stack of the selected rank is beside another one, */
    bool has_other;
    struct rank_stack_shown other; /* this */
    int slot;                      /* the first one of the cell that is selected there */
    struct rect grid_area;
};

static const struct ranks_row *ranks_of(const void *row) { return row; }

/* ---- columns ---- */

static void ranks_put_number(struct table_cell *c, double v, int places, enum theme_role role) {
    if (isnan(v) || v < 0)
        snprintf(c->text, sizeof c->text, "-");
    else
        snprintf(c->text, sizeof c->text, "%.*f", places, v);
    c->role = isnan(v) || v < 0 ? ROLE_MUTED : role;
}

static void ranks_cell_rank(const void *row, struct table_cell *c) {
    snprintf(c->text, sizeof c->text, "%" PRId32 "%s", ranks_of(row)->rank->rank,
             ranks_of(row)->is_open ? "*" : "");
    c->role = ranks_of(row)->is_open ? ROLE_TITLE_FOCUS : ROLE_VALUE;
}

static void ranks_cell_host(const void *row, struct table_cell *c) {
    const char *name = job_shot_host_name(ranks_of(row)->shot, ranks_of(row)->rank);
    snprintf(c->text, sizeof c->text, "%s", name ? name : "-");
    c->role = name ? ROLE_TEXT : ROLE_MUTED;
}

/* Without the domain of all. */
static void ranks_cell_host_short(const void *row, struct table_cell *c) {
    size_t domain = ranks_of(row)->state->hosts.domain, len;
    ranks_cell_host(row, c);
    len = strlen(c->text);
    if (len > domain)
        c->text[len - domain] = '\0';
}

static void ranks_cell_step(const void *row, struct table_cell *c) {
    int64_t step = ranks_of(row)->rank->step;
    if (step < 0)
        snprintf(c->text, sizeof c->text, "-");
    else
        snprintf(c->text, sizeof c->text, "%" PRId64, step);
    c->role = step < 0 ? ROLE_MUTED : ROLE_VALUE;
}

static void ranks_cell_step_ms(const void *row, struct table_cell *c) {
    double ms = ranks_of(row)->rank->step_ms;
    ranks_put_number(c, ms, ms < 99.95 ? 1 : 0, ROLE_VALUE);
}

static void ranks_cell_own(const void *row, struct table_cell *c) {
    double ms = ranks_of(row)->rank->own_ms;
    ranks_put_number(c, ms, ms < 99.95 ? 1 : 0, ROLE_VALUE);
}

static void ranks_cell_lag(const void *row, struct table_cell *c) {
    double ms = ranks_of(row)->rank->lag_ms;
    ranks_put_number(c, ms, ms < 99.95 ? 1 : 0, ROLE_VALUE);
}

static void ranks_cell_state(const void *row, struct table_cell *c) {
    const struct job_shot_rank *r = ranks_of(row)->rank;
    char since[16], word[64];
    rank_text_since(r->since_s, since, sizeof since);
    snprintf(word, sizeof word, "%.63s", rank_text_state(r));
    snprintf(c->text, sizeof c->text, "%c %-10.10s %4s", rank_text_sign(r)->sign, word, since);
    c->role = rank_text_sign(r)->role;
}

static void ranks_cell_where(const void *row, struct table_cell *c) {
    struct strbuf text;
    const struct job_shot_rank *r = ranks_of(row)->rank;
    strbuf_init(&text, sizeof c->text - 1);
    rank_text_put_where(ranks_of(row)->shot, r, &text);
    if (!text.len && r->note)
        strbuf_adds(&text, r->note);
    snprintf(c->text, sizeof c->text, "%s", text.len ? strbuf_str(&text) : "-");
    c->role = text.len ? ROLE_FUNC : ROLE_MUTED;
    strbuf_fini(&text);
}

static void ranks_cell_cpu(const void *row, struct table_cell *c) {
    double pct = ranks_of(row)->rank->cpu_pct;
    ranks_put_number(c, pct, 0, pct >= 80 ? ROLE_CPU_HIGH : pct >= 5 ? ROLE_CPU_MID : ROLE_CPU_LOW);
}

static void ranks_cell_rss(const void *row, struct table_cell *c) {
    int64_t bytes = ranks_of(row)->rank->rss_bytes;
    rank_text_bytes(bytes, c->text, sizeof c->text);
    c->role = bytes < 0 ? ROLE_MUTED : ROLE_VALUE;
}

static void ranks_cell_gpu(const void *row, struct table_cell *c) {
    double pct = ranks_of(row)->rank->gpu_util;
    ranks_put_number(c, pct, 0, pct >= 80 ? ROLE_CPU_HIGH : pct >= 5 ? ROLE_CPU_MID : ROLE_CPU_LOW);
}

static void ranks_cell_gpu_mem(const void *row, struct table_cell *c) {
    double mib = ranks_of(row)->rank->gpu_mem_mb;
    rank_text_bytes(mib >= 0 && mib < 1e9 ? (int64_t)(mib * (1 << 20)) : -1, c->text, sizeof c->text);
    c->role = mib >= 0 ? ROLE_VALUE : ROLE_MUTED;
}

#define RANKS_COMPARE(name, field)                                                                           \
    static int ranks_compare_##name(const void *a, const void *b) {                                          \
        return table_compare_number((double)ranks_of(a)->field, (double)ranks_of(b)->field);                 \
    }
RANKS_COMPARE(rank, rank->rank)
RANKS_COMPARE(host, rank->host)
RANKS_COMPARE(step, rank->step)
RANKS_COMPARE(step_ms, rank->step_ms)
RANKS_COMPARE(own, rank->own_ms)
RANKS_COMPARE(lag, rank->lag_ms)
RANKS_COMPARE(state, badness)
RANKS_COMPARE(where, rank->class_number)
RANKS_COMPARE(cpu, rank->cpu_pct)
RANKS_COMPARE(rss, rank->rss_bytes)
RANKS_COMPARE(gpu, rank->gpu_util)
RANKS_COMPARE(gpu_mem, rank->gpu_mem_mb)

/* They are left out from the right: GMEM, GPU, RSS, CPU, then those left of STATE; RANK, STATE and WHERE never. */
static const struct table_column ranks_columns[] = {
    {"RANK",
     "number of the rank; *: it is open in the other screens",
     {5, 0, 0},
     GRID_RIGHT,
     false,
     ranks_cell_rank,
     ranks_compare_rank},
    {"HOST", "where it runs", {8, 0, 1}, GRID_LEFT, false, ranks_cell_host, ranks_compare_host},
    {"STEP", "steps that it has finished", {7, 0, 2}, GRID_RIGHT, true, ranks_cell_step, ranks_compare_step},
    {"STEP ms",
     "duration of the last one",
     {7, 0, 3},
     GRID_RIGHT,
     true,
     ranks_cell_step_ms,
     ranks_compare_step_ms},
    {"OWN",
     "a step without the waits for other ranks, in ms: the median of the last ones",
     {6, 0, 4},
     GRID_RIGHT,
     true,
     ranks_cell_own,
     ranks_compare_own},
    {"LAG",
     "how much later than the first it comes to collectives in a step, in ms",
     {5, 0, 5},
     GRID_RIGHT,
     true,
     ranks_cell_lag,
     ranks_compare_lag},
    {"STATE",
     "what it does, and since when",
     {17, 0, 0},
     GRID_LEFT,
     true,
     ranks_cell_state,
     ranks_compare_state},
    {"WHERE",
     "the line of the job's own code, and what it calls",
     {24, 1, 0},
     GRID_LEFT,
     false,
     ranks_cell_where,
     ranks_compare_where},
    {"CPU", "percent of a core", {4, 0, 6}, GRID_RIGHT, true, ranks_cell_cpu, ranks_compare_cpu},
    {"RSS", "memory", {5, 0, 7}, GRID_RIGHT, true, ranks_cell_rss, ranks_compare_rss},
    {"GPU",
     "share of the time in which its GPU ran a kernel",
     {4, 0, 8},
     GRID_RIGHT,
     true,
     ranks_cell_gpu,
     ranks_compare_gpu},
    {"GMEM",
     "memory in use on its GPU",
     {5, 0, 9},
     GRID_RIGHT,
     true,
     ranks_cell_gpu_mem,
     ranks_compare_gpu_mem},
};
#define RANKS_GPU_COLUMNS 2 /* the last ones; they are left out where no rank has a GPU */
#define RANKS_COLUMNS ((int)(sizeof ranks_columns / sizeof ranks_columns[0]))

static bool ranks_have_gpus(const struct job_shot *f) {
    for (size_t i = 0; f && i < f->n_ranks; i++)
        if (f->ranks[i].gpu_util > 0 || f->ranks[i].gpu_mem_mb > 0)
            return true;
    return false;
}

/* The column HOST comes and goes, and so do those of GPUs; sorting stays with its column. */
static void ranks_set_columns(struct ranks_state *s, bool several_hosts, bool gpus) {
    struct view *v = &s->view;
    bool had = s->has_hosts;
    int n = RANKS_COLUMNS - !several_hosts - (gpus ? 0 : RANKS_GPU_COLUMNS);
    if (v->columns && had == several_hosts && v->n_columns == n)
        return;
    if (v->columns && had != several_hosts && v->sort.column >= RANKS_HOST_COLUMN)
        v->sort.column += several_hosts ? 1 : v->sort.column > RANKS_HOST_COLUMN ? -1 : 0;
    if (v->sort.column >= n)
        v->sort.column = -1;
    for (int i = 0, to = 0; i < RANKS_COLUMNS; i++)
        if (several_hosts || i != RANKS_HOST_COLUMN)
            s->columns[to++] = ranks_columns[i];
    s->has_hosts = several_hosts;
    view_set_columns(v, s->columns, n);
    for (int i = 0; v->sort.column < 0 && i < v->n_columns; i++)
        if (v->columns[i].compare == ranks_compare_state)
            v->sort = (struct table_sort){i, true};
}

/* ---- names of hosts ---- */

/* The domain of a name, with its dot; "" none. The end of an address is not one. */
static const char *ranks_domain(const char *name) {
    const char *dot = strchr(name, '.');
    return dot && dot > name && dot[1] && !strchr("0123456789", dot[1]) ? dot : "";
}

static int ranks_name_width(const char *name, size_t len) {
    char text[TABLE_CELL], clean[TABLE_CELL];
    snprintf(text, sizeof text, "%.*s", (int)len, name);
    text_sanitize(clean, sizeof clean, text);
    return text_width(clean);
}

static struct ranks_hosts ranks_hosts_of(const struct job_shot *f) {
    struct ranks_hosts out = {.align = GRID_TAIL};
    const char *first = NULL;
    for (size_t i = 0; f && i < f->n_hosts; i++) {
        const char *name = f->hosts[i].name;
        if (!*name)
            continue;
        out.domain = !first                                                 ? strlen(ranks_domain(name))
                     : strcmp(ranks_domain(name), ranks_domain(first)) == 0 ? out.domain
                                                                            : 0;
        first = first ? first : name;
    }
    size_t begin = first ? strlen(first) - out.domain : 0, end = begin;
    for (size_t i = 0; first && i < f->n_hosts; i++) {
        const char *name = f->hosts[i].name, *other = first;
        size_t len = strlen(name), other_len = strlen(first) - out.domain, same = 0;
        if (!*name)
            continue;
        int width = ranks_name_width(name, len), short_width = ranks_name_width(name, len - out.domain);
        out.widest = width > out.widest ? width : out.widest;
        out.widest_short = short_width > out.widest_short ? short_width : out.widest_short;
        len -= out.domain;
        while (same < begin && same < len && name[same] == other[same])
            same++;
        begin = same;
        for (same = 0; same < end && same < len && name[len - 1 - same] == other[other_len - 1 - same];)
            same++;
        end = same;
    }
    if (end > begin)
        out.align = GRID_LEFT;
    return out;
}

/* The column HOST gets what its longest name needs, and at most half of what WHERE has beyond its least; if that is too
 * little the domain is left out. */
static void ranks_fit_hosts(struct ranks_state *s, int cols) {
    struct table_column *c = &s->columns[RANKS_HOST_COLUMN];
    int widths[TABLE_MAX_COLUMNS], room, wanted;
    if (!s->has_hosts)
        return;
    *c = ranks_columns[RANKS_HOST_COLUMN];
    room = c->size.min;
    table_layout(s->columns, s->view.n_columns, cols, widths);
    for (int i = 0; i < s->view.n_columns; i++)
        if (s->columns[i].size.weight > 0 && widths[i] > s->columns[i].size.min)
            room += (widths[i] - s->columns[i].size.min) / 2;
    room = room < RANKS_HOST_MOST ? room : RANKS_HOST_MOST;
    wanted = s->hosts.widest;
    if (wanted > room && s->hosts.domain) {
        wanted = s->hosts.widest_short;
        c->cell = ranks_cell_host_short;
    }
    wanted = wanted < room ? wanted : room;
    c->size.min = wanted > c->size.min ? wanted : c->size.min;
    c->align = s->hosts.align;
}

/* ---- rows ---- */

static int ranks_count(const void *state) { return ((const struct ranks_state *)state)->n; }

static const void *ranks_row(const void *state, int at) {
    return ((const struct ranks_state *)state)->rows[at];
}

static uint64_t ranks_key(const void *row) { return (uint64_t)ranks_of(row)->rank->rank + 1; }

static bool ranks_matches(const void *row, const struct match *m) {
    struct ranks_state *s = ranks_of(row)->state;
    return rank_filter_matches(m == &s->view.filter ? &s->filter : &s->search, m, ranks_of(row)->shot,
                               ranks_of(row)->rank);
}

static void ranks_put(const void *state, const void *row, struct screen_pick *what, struct strbuf *one,
                      struct strbuf *whole) {
    const struct ranks_state *s = state;
    (void)what;
    strbuf_addf(one, "%" PRId32, ranks_of(row)->rank->rank);
    table_put_row(ranks_columns, ranks_have_gpus(s->shot) ? RANKS_COLUMNS : RANKS_COLUMNS - RANKS_GPU_COLUMNS,
                  row, whole);
}

/* The groups of the cells, in their order; a rank belongs to one. */
static int64_t ranks_group_of(enum ranks_group by, const struct ranks_row *row) {
    switch (by) {
    case RANKS_BY_HOST:
        return row->rank->host < 0 ? INT32_MAX : row->rank->host;
    case RANKS_BY_CLASS:
        return row->rank->class_number < 0 ? INT32_MAX : row->rank->class_number;
    default:
        return 0;
    }
}

static void ranks_name_group(enum ranks_group by, const struct ranks_row *row, char *buf, size_t cap) {
    const struct job_shot_rank *r = row->rank;
    const struct ranks_hosts *hosts = &row->state->hosts;
    const char *host = job_shot_host_name(row->shot, r);
    char name[RANK_FILTER_CLASS];
    buf[0] = '\0';
    if (by == RANKS_BY_HOST && host) {
        size_t len = strlen(host) - (hosts->widest > RANKS_NAME_COLS ? hosts->domain : 0),
               cut = len < cap || hosts->align == GRID_LEFT ? 0 : len - cap + 1;
        snprintf(buf, cap, "%.*s", (int)(len - cut), host + cut);
    } else if (by == RANKS_BY_HOST)
        snprintf(buf, cap, "?");
    if (by == RANKS_BY_CLASS) {
        rank_filter_name_class(row->shot, r->class_number, name);
        snprintf(buf, cap, "%s", name);
    }
}

static int ranks_compare_slots(const void *x, const void *y) {
    const struct ranks_row *a = *(const struct ranks_row *const *)x, *b = *(const struct ranks_row *const *)y;
    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    return (a->rank > b->rank) - (a->rank < b->rank); /* they are in one array, by rank */
}

/* Put the ranks that are shown into groups. Without memory there are no cells. */
static void ranks_make_slots(struct ranks_state *s, enum ranks_group by) {
    size_t n = (size_t)s->n;
    s->n_groups = 0;
    s->grouped = by;
    if (grow_array(&s->slots, sizeof(*s->slots), n + 1, &s->cap_slots) != 0 ||
        grow_array(&s->groups, sizeof *s->groups, n + 1, &s->cap_groups) != 0 ||
        grow_array(&s->names, sizeof *s->names, n + 1, &s->cap_names) != 0)
        return;
    for (size_t i = 0; i < s->shot->n_ranks; i++)
        s->pool[i].group = ranks_group_of(by, &s->pool[i]);
    for (size_t i = 0; i < n; i++)
        s->slots[i] = s->rows[i];
    qsort(s->slots, n, sizeof(*s->slots), ranks_compare_slots);
    for (size_t i = 0; i < n; i++) {
        struct rank_grid_group *g = &s->groups[s->n_groups];
        if (i && s->slots[i]->group == s->slots[i - 1]->group) {
            g[-1].n++;
            continue;
        }
        *g = (struct rank_grid_group){.name = s->names[s->n_groups], .first = (int)i, .n = 1};
        ranks_name_group(by, s->slots[i], s->names[s->n_groups++], RANKS_NAME);
    }
}

/* A filter from another screen, or from the command line. */
static bool ranks_take_filter(struct ranks_state *s, struct app *app) {
    if (!*app->job.filter)
        return false;
    match_set(&s->view.filter, app->job.filter, true);
    app->job.filter[0] = '\0';
    return true;
}

/* Select a rank, if it is shown. */
static void ranks_select(struct ranks_state *s, struct app *app, int32_t rank) {
    for (int i = 0; i < s->n; i++)
        if (ranks_of(s->rows[i])->rank->rank == rank) {
            view_select(&s->view, app, i);
            return;
        }
}

static void ranks_update(void *state, struct app *app) {
    struct ranks_state *s = state;
    const struct job_shot *f = job_state_shown(app);
    bool is_filtered = ranks_take_filter(s, app);
    s->n = 0;
    s->shot = f;
    s->n_groups = 0;
    /* until they are drawn the cells have no places: the earlier ones are of other rows */
    s->grid.per_cell = 0;
    s->hosts = ranks_hosts_of(f);
    ranks_set_columns(s, f && f->n_hosts > 1, ranks_have_gpus(f));
    if (f && (grow_array(&s->pool, sizeof *s->pool, f->n_ranks + 1, &s->cap_pool) != 0 ||
              grow_array(&s->rows, sizeof *s->rows, f->n_ranks + 1, &s->cap_rows) != 0))
        f = NULL;
    for (size_t i = 0; f && i < f->n_ranks; i++) {
        s->pool[i] = (struct ranks_row){.shot = f,
                                        .rank = &f->ranks[i],
                                        .state = s,
                                        .badness = rank_text_badness(f, &f->ranks[i]),
                                        .is_open = app->pid > 0 && f->ranks[i].pid == app->pid &&
                                                   job_shot_is_here(f, &f->ranks[i])};
        if (view_shows(&s->view, &s->pool[i]))
            s->rows[s->n++] = &s->pool[i];
    }
    if (s->n > 1)
        table_sort_rows(s->view.columns, s->view.sort, s->rows, (size_t)s->n);
    if (f)
        ranks_make_slots(s, s->group);
    view_settle(&s->view);
    const struct ranks_row *row = view_row(&s->view);
    if (is_filtered)
        view_select(&s->view, app, 0);
    /* another screen has gone to the next rank */
    else if (app->job.rank >= 0 && (!row || row->rank->rank != app->job.rank))
        ranks_select(s, app, app->job.rank);
}

static void ranks_selected(void *owner, struct app *app) {
    struct ranks_state *s = owner;
    const struct ranks_row *row = view_row(&s->view);
    app->job.rank = row ? row->rank->rank : app->job.rank;
}

static const struct view_def ranks_rows = {.count = ranks_count,
                                           .row = ranks_row,
                                           .key = ranks_key,
                                           .matches = ranks_matches,
                                           .put = ranks_put,
                                           .rebuild = ranks_update,
                                           .selected = ranks_selected};

static struct view *ranks_view(void *state) { return &((struct ranks_state *)state)->view; }

static void ranks_init(void *state, struct app *app) {
    struct ranks_state *s = state;
    view_init(&s->view, &ranks_rows, s, &app->job.tags);
    s->view.sort.column = -1;
    if (app->config.filter)
        match_set(&s->view.filter, app->config.filter, true);
    ranks_update(s, app);
    if (app->job.rank >= 0)
        ranks_select(s, app, app->job.rank);
}

static void ranks_fini(void *state) {
    struct ranks_state *s = state;
    rank_filter_fini(&s->filter);
    rank_filter_fini(&s->search);
    view_fini(&s->view);
    free(s->pool);
    free(s->rows);
    free(s->slots);
    free(s->groups);
    free(s->names);
}

/* ---- cells ---- */

static double ranks_value(const struct ranks_state *s, const struct job_shot_rank *r) {
    return s->cell == RANKS_CELL_STEP ? r->step_ms : r->cpu_pct;
}

/* The slots of a cell: the heaviest state, or the largest value as a share of `most`. */
static void ranks_draw_cell(const struct ranks_state *s, int first, int n, double most, struct grid *g,
                            struct rect area, int line, int col) {
    const struct rank_text_sign *sign = NULL;
    double value = NAN;
    for (int i = first; i < first + n; i++) {
        const struct job_shot_rank *r = s->slots[i]->rank;
        const struct rank_text_sign *of = rank_text_sign(r);
        sign = !sign || of->weight > sign->weight ? of : sign;
        value = fmax(value, ranks_value(s, r));
    }
    if (s->cell == RANKS_CELL_STATE)
        grid_printf(g, area, line, col, sign->role, "%c", sign->sign);
    else if (isnan(value))
        grid_text(g, area, line, col, ROLE_MUTED, "?");
    else
        grid_text(g, area, line, col, ROLE_METER_CPU, glyph_level(g, most > 0 ? value / most : 0));
}

/* A group: its name, or the first rank of a line, and the cells. */
static void ranks_draw_group(const struct ranks_state *s, const struct rank_grid_group *group, double most,
                             struct grid *g, struct rect area) {
    const struct rank_grid *p = &s->grid;
    for (int cell = 0; cell < rank_grid_cells(p, group); cell++) {
        int line, col, first = group->first + cell * p->per_cell, left = group->first + group->n - first;
        rank_grid_place(p, group, cell, &line, &col);
        if (cell % p->per_line == 0 && p->name_cols) {
            char label[RANKS_NAME];
            if (*group->name && cell == 0)
                snprintf(label, sizeof label, "%s", group->name);
            else
                snprintf(label, sizeof label, "r%" PRId32, s->slots[first]->rank->rank);
            grid_text_fit(g, area, line, col - p->name_cols - 1, p->name_cols, ROLE_LABEL, s->hosts.align,
                          label);
        }
        ranks_draw_cell(s, first, left < p->per_cell ? left : p->per_cell, most, g, area, line, col);
    }
}

static bool ranks_plan_groups(struct ranks_state *s, const struct grid *g, struct rect area) {
    int lines = area.rows / RANKS_GRID_SHARE;
    for (int i = 0; i < s->n_groups; i++) {
        struct rank_grid_group *group = &s->groups[i];
        char label[RANKS_NAME];
        snprintf(label, sizeof label, "r%" PRId32, s->slots[group->first + group->n - 1]->rank->rank);
        group->name_cols = grid_text_width(g, *group->name ? group->name : label);
        if (group->name_cols > RANKS_NAME_COLS)
            group->name_cols = RANKS_NAME_COLS;
    }
    return rank_grid_plan(&s->grid, s->groups, s->n_groups, area.cols - 2,
                          lines < RANKS_GRID_LINES ? lines : RANKS_GRID_LINES);
}

/* Plan the cells in the area, without groups if there are too many; returns their lines. */
static int ranks_plan(struct ranks_state *s, const struct grid *g, struct rect area, bool is_needed) {
    s->grid = (struct rank_grid){.lines = 0};
    if ((!is_needed && !s->has_grid) || s->n_groups == 0)
        return 0;
    if (s->grouped != s->group)
        ranks_make_slots(s, s->group);
    if (!ranks_plan_groups(s, g, area) && s->group != RANKS_BY_RANK) {
        ranks_make_slots(s, RANKS_BY_RANK);
        ranks_plan_groups(s, g, area);
    }
    return s->grid.lines;
}

/* The slot of the selected row; 0: none. */
static int ranks_slot_of_row(const struct ranks_state *s) {
    const struct ranks_row *row = view_row(&s->view);
    for (int i = 0; row && i < s->n; i++)
        if (s->slots[i] == row)
            return i;
    return 0;
}

/* The beginning of the cell that a slot is in, and how many it holds. False: there are no cells. */
static bool ranks_find_cell(const struct ranks_state *s, int slot, int *first, int *n, int *line, int *col) {
    int group, cell;
    if (!rank_grid_find(&s->grid, slot, &group, &cell))
        return false;
    rank_grid_place(&s->grid, &s->groups[group], cell, line, col);
    return rank_grid_at(&s->grid, *line, *col, first, n);
}

static void ranks_draw_grid(struct ranks_state *s, struct grid *g, struct rect area) {
    double most = 0;
    int first, n, line, col;
    s->grid_area = area;
    for (int i = 0; i < s->n; i++)
        most = fmax(most, ranks_value(s, s->slots[i]->rank));
    for (int i = 0; i < s->n_groups; i++)
        ranks_draw_group(s, &s->groups[i], most, g, area);
    if (!s->in_grid)
        s->slot = ranks_slot_of_row(s);
    if (ranks_find_cell(s, s->slot, &first, &n, &line, &col))
        grid_restyle(g, (struct rect){area.row + line, area.col + col, 1, 1},
                     s->in_grid ? ROLE_SELECTION : ROLE_SELECTION_OTHER);
}

/* What the cells are, and how many ranks are in which state. */
static void ranks_draw_legend(const struct ranks_state *s, struct grid *g, struct rect line) {
    static const char *const groups[RANKS_GROUPS] = {"by host", "by class", "by rank"};
    static const char *const cells[RANKS_CELLS] = {"", ", step time", ", CPU"};
    struct strbuf text;
    char what[64];
    int first, n, at_line, at_col;
    strbuf_init(&text, 1024);
    if (s->shot->n_verdicts) /* else the header has it */
        rank_text_put_states(s->shot, &text);
    snprintf(what, sizeof what, "%s%s", groups[s->grouped], cells[s->cell]);
    if (s->grid.per_cell > 1)
        snprintf(what, sizeof what, "%s, %d a cell%s", groups[s->grouped], s->grid.per_cell, cells[s->cell]);
    int width = grid_text_width(g, what), col = line.cols - 1 - width;
    if (s->in_grid && ranks_find_cell(s, s->slot, &first, &n, &at_line, &at_col)) {
        strbuf_clear(&text);
        strbuf_addf(&text, "rank %" PRId32, s->slots[first]->rank->rank);
        if (n > 1)
            strbuf_addf(&text, " to %" PRId32, s->slots[first + n - 1]->rank->rank);
        strbuf_adds(&text, n > 1 ? "   Enter: these ranks" : "   Enter opens it");
    }
    if (col > 1)
        grid_text(g, line, 0, col, ROLE_MUTED, what);
    if (col > 3)
        grid_text_fit(g, line, 0, 1, col - 3, ROLE_TEXT, GRID_LEFT, strbuf_str(&text));
    strbuf_fini(&text);
}

/* ---- drawing ---- */

static struct rank_stack_shown ranks_stack_of(const struct job_shot *f, const struct job_shot_rank *r) {
    struct rank_stack_shown out = {.node = r->leaf};
    int32_t alike = job_shot_class_ranks(f, r->class_number);
    if (alike > 1)
        snprintf(out.title, sizeof out.title, "Stack of rank %" PRId32 " and %" PRId32 " more", r->rank,
                 alike - 1);
    else
        snprintf(out.title, sizeof out.title, "Stack of rank %" PRId32, r->rank);
    return out;
}

/* The stack to compare that of a rank with: of another rank that is tagged, or the one of the most ranks. False: there
 * is no other. */
static bool ranks_find_other(const struct ranks_state *s, const struct app *app,
                             const struct job_shot_rank *r, struct rank_stack_shown *out) {
    for (size_t i = 0; i < s->shot->n_ranks; i++)
        if (&s->shot->ranks[i] != r && tags_has(&app->job.tags, ranks_key(&s->pool[i]))) {
            *out = ranks_stack_of(s->shot, &s->shot->ranks[i]);
            return true;
        }
    *out = (struct rank_stack_shown){.node = rank_stack_find_other(s->shot, r->leaf, false)};
    if (out->node == STACK_CLASSES_NONE)
        return false;
    uint32_t n = s->shot->stacks.nodes[out->node].n_here;
    snprintf(out->title, sizeof out->title, "Stack of %" PRIu32 " rank%s", n, n == 1 ? "" : "s");
    return true;
}

static void ranks_draw_stack(const struct ranks_state *s, struct grid *g, struct rect area) {
    const struct ranks_row *row = view_row(&s->view);
    struct rank_stack_shown one;
    if (!row)
        return;
    one = ranks_stack_of(s->shot, row->rank);
    rank_stack_draw(s->shot, &one, s->has_other ? &s->other : NULL, g, area);
}

/* Rows of the table in `rows`, of which the stack gets the rest: what it needs, but not more than a
 * third if ranks are left out for it. */
static int ranks_table_rows(const struct ranks_state *s, int rows) {
    const struct ranks_row *row = view_row(&s->view);
    if (!row)
        return rows;
    int needed = s->n + 1, stack = rank_stack_rows(s->shot, row->rank->leaf);
    if (rows - needed >= RANK_STACK_ROWS && !s->has_other)
        return needed;
    if (s->has_other && rows >= 2 * RANK_STACK_ROWS)
        return rows - needed > rows / 2 ? needed : rows / 2;
    return rows < RANKS_MUCH ? rows : rows - (stack < rows / 3 ? stack : rows / 3);
}

/* A line for each host that gives no news, with the reason, because there may be no rank of it; of many the last line
 * has the names alone. Returns the lines. */
static int ranks_draw_silent(const struct ranks_state *s, struct grid *g, struct rect area) {
    size_t n = job_shot_silent_hosts(s->shot), from = 0;
    int most = area.rows < RANKS_MUCH / 2 ? 1 : RANKS_SILENT_LINES, lines = n < (size_t)most ? (int)n : most;
    for (int line = 0; line < lines; line++, from++) {
        struct strbuf text;
        strbuf_init(&text, RANKS_SILENT_TEXT);
        while (!s->shot->hosts[from].silent)
            from++;
        const struct job_shot_host *h = &s->shot->hosts[from];
        size_t left = n - (size_t)line;
        if (line + 1 < lines || left == 1)
            strbuf_addf(&text, "no news from %s: %s", *h->name ? h->name : "this host", h->silent);
        else {
            strbuf_addf(&text, "no news from %zu %shosts: ", left, line ? "more " : "");
            rank_text_put_silent(s->shot, from, false, &text);
        }
        grid_text_fit(g, area, line, 1, area.cols - 2, ROLE_CONN_WAIT, GRID_LEFT, strbuf_str(&text));
        strbuf_fini(&text);
    }
    return lines;
}

static void ranks_draw(void *state, struct app *app, struct grid *g, struct rect area) {
    struct ranks_state *s = state;
    char empty[256] = "";
    if (s->shot != job_state_shown(app)) /* it was frozen, or is no longer */
        ranks_update(s, app);
    int silent = ranks_draw_silent(s, g, area);
    area.row += silent;
    area.rows -= silent;
    int lines = ranks_plan(s, g, area, s->n + 1 > area.rows);
    if (lines) {
        struct rect cells = {area.row, area.col + 1, lines, area.cols - 2};
        ranks_draw_grid(s, g, cells);
        ranks_draw_legend(s, g, (struct rect){area.row + lines, area.col, 1, area.cols});
        area.row += lines + 1;
        area.rows -= lines + 1;
    } else
        s->in_grid = false;
    struct rect table = area, stack = area;
    const struct ranks_row *row = view_row(&s->view);
    s->has_other = s->compares && row && ranks_find_other(s, app, row->rank, &s->other);
    table.rows = ranks_table_rows(s, area.rows);
    stack.row += table.rows;
    stack.rows -= table.rows;
    if (!s->shot)
        snprintf(empty, sizeof empty, "%s",
                 app->job.error.code != ERR_OK ? "no ranks" : "looking for the ranks of the job");
    else if (s->n == 0)
        snprintf(empty, sizeof empty, "no rank is shown: A shows all");
    s->view.in_pane = s->in_grid;
    ranks_fit_hosts(s, table.cols);
    view_draw(&s->view, g, table, empty);
    if (stack.rows >= RANK_STACK_ROWS)
        ranks_draw_stack(s, g, stack);
}

/* ---- actions ---- */

static void ranks_open(struct ranks_state *s, struct app *app) {
    const struct ranks_row *row = view_row(&s->view);
    if (row)
        app_job_open(app, row->rank->rank, true);
}

/* The ranks of the selected cell: its only one is opened, several are those that are shown. */
static void ranks_enter_cell(struct ranks_state *s, struct app *app) {
    int first, n, line, col;
    struct rank_set ranks = {.n = 0};
    if (!ranks_find_cell(s, s->slot, &first, &n, &line, &col))
        return;
    if (n == 1) {
        ranks_select(s, app, s->slots[first]->rank->rank);
        app_job_open(app, s->slots[first]->rank->rank, true);
        return;
    }
    for (int i = first; i < first + n; i++)
        rank_set_add(&ranks, s->slots[i]->rank->rank, s->slots[i]->rank->rank);
    rank_filter_put(&ranks, s->shot, -1, app->job.filter, sizeof app->job.filter);
    rank_set_fini(&ranks);
    s->in_grid = false;
    ranks_update(s, app);
}

/* Move in the cells. False: another action. */
static bool ranks_move_cell(struct ranks_state *s, enum action action) {
    int first, n, line, col, to_line, to_col;
    if (!ranks_find_cell(s, s->slot, &first, &n, &line, &col))
        return false;
    to_line = line + (action == ACTION_DOWN) - (action == ACTION_UP);
    to_col = col + (action == ACTION_RIGHT) - (action == ACTION_LEFT);
    if (action == ACTION_FIRST || action == ACTION_LAST) {
        s->slot = action == ACTION_FIRST ? 0 : s->n - 1;
        return true;
    }
    if (to_line == line && to_col == col)
        return false;
    /* over the names and gaps between blocks */
    for (int i = 0; i < s->grid_area.cols && to_col >= 0 && to_col < s->grid_area.cols; i++) {
        if (rank_grid_at(&s->grid, to_line, to_col, &first, &n)) {
            s->slot = first;
            break;
        }
        if (to_line != line)
            break;
        to_col += to_col > col ? 1 : -1;
    }
    return true;
}

static void ranks_compare(struct ranks_state *s, struct app *app) {
    const struct ranks_row *row = view_row(&s->view);
    struct rank_stack_shown other;
    bool is_known = row && row->rank->leaf != STACK_CLASSES_ROOT,
         can = is_known && ranks_find_other(s, app, row->rank, &other);
    s->compares = !s->compares && can;
    if (!can)
        app_message(app, false,
                    !row        ? "no rank is selected"
                    : !is_known ? "no stack of this rank is known"
                                : "all ranks have the same stack");
}

static bool ranks_act(void *state, struct app *app, enum action action) {
    struct ranks_state *s = state;
    switch ((int)action) {
    case ACTION_OPEN_RANK:
        if (s->in_grid)
            ranks_enter_cell(s, app);
        else
            ranks_open(s, app);
        return true;
    case ACTION_FOCUS:
        s->in_grid = s->grid.lines && !s->in_grid;
        if (!s->grid.lines)
            app_message(app, false, "there are no cells: all ranks fit into the table; b shows them");
        return true;
    case ACTION_GROUP:
        /* first the cells, then how they are grouped, then as at the beginning */
        if (s->grid.lines)
            s->group = (enum ranks_group)((s->group + 1) % RANKS_GROUPS);
        s->has_grid = !s->grid.lines || s->group != RANKS_BY_HOST;
        ranks_update(s, app);
        return true;
    case ACTION_ON_CPU:
        s->cell = (enum ranks_cell)((s->cell + 1) % RANKS_CELLS);
        s->has_grid = true;
        return true;
    case ACTION_COMPARE:
        ranks_compare(s, app);
        return true;
    case ACTION_BACK:
        if (!s->in_grid && !s->compares)
            return false;
        s->compares = s->in_grid && s->compares;
        s->in_grid = false;
        return true;
    default:
        return s->in_grid && ranks_move_cell(s, action);
    }
}

static bool ranks_mouse(void *state, struct app *app, const struct input_event *e) {
    struct ranks_state *s = state;
    int line = e->row - s->grid_area.row, col = e->col - s->grid_area.col, first, n;
    bool again, is_cell = e->button == INPUT_CLICK && rank_grid_at(&s->grid, line, col, &first, &n);
    if (is_cell) {
        again = s->in_grid && s->slot == first;
        s->in_grid = true;
        s->slot = first;
        if (again)
            ranks_enter_cell(s, app);
        else if (n == 1)
            ranks_select(s, app, s->slots[first]->rank->rank);
        return true;
    }
    bool done = view_mouse(&s->view, app, e, &again);
    s->in_grid = s->in_grid && !done;
    if (again && e->button == INPUT_CLICK)
        ranks_open(s, app);
    return done;
}

static bool ranks_is_on(const void *state, const struct app *app, enum action action) {
    const struct ranks_state *s = state;
    (void)app;
    return (action == ACTION_FOCUS && s->in_grid) || (action == ACTION_COMPARE && s->compares);
}

static void ranks_status(const void *state, const struct app *app, struct strbuf *out) {
    const struct ranks_state *s = state;
    (void)app;
    strbuf_adds(out, "Ranks");
    if (s->shot)
        strbuf_addf(out, " %d of %zu", s->n, s->shot->n_ranks);
    view_put_filter(&s->view, out);
    if (s->view.columns[s->view.sort.column].compare != ranks_compare_state)
        view_put_sort(&s->view, out);
    else
        strbuf_adds(out, s->view.sort.descends ? "   the worst first" : "   the worst last");
    if (s->view.search.active)
        strbuf_addf(out, "   /%s: %d", s->view.search.text, view_hits(&s->view));
}

const struct screen_def screen_ranks = {
    .name = "ranks",
    .title = "Ranks",
    .is_tab = true,
    .of_job = true,
    .is_kept = true,
    .opens = {SCREEN_TAB_KEY(RANKS, "ranks", "p", "all ranks of the job; without one, all targets")},
    .state_size = sizeof(struct ranks_state),
    .init = ranks_init,
    .fini = ranks_fini,
    .keys = CONTEXT_RANKS,
    .view = ranks_view,
    .draw = ranks_draw,
    .act = ranks_act,
    .mouse = ranks_mouse,
    .update = ranks_update,
    .is_on = ranks_is_on,
    .status = ranks_status,
};
