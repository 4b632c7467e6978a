/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu: the GPUs of the target: how busy each is, its memory, power and temperature, what slows it, and the
 * last minutes of the selected one; or, when asked, the processes that have memory there. Offered where there
 * is one.
 */
#include "tui/core/app.h"
#include "tui/core/app_feed.h"
#include "tui/core/app_screen.h"
#include "tui/core/screen.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "tui/model/gpus.h"
#include "tui/screens/browser.h"
#include "tui/screens/gpu/gpu_processes.h"
#include "tui/view/meter_draw.h"
#include "tui/view/table.h"

#define GPU_EVERY_S 1.0
#define GPU_METER_ROWS 11 /* rows from which on there are meters */
#define GPU_LABEL 33      /* columns beside a meter, */
#define GPU_VALUE 9       /* the column where its value begins, */
#define GPU_FULL 18       /* and the column of its limit */
#define GPU_HOT_C 85
#define GPU_BUSY_PCT 80
#define GPU_FULL_SHARE 0.95 /* of its memory */

struct gpu_state {
    struct browser browser;
    struct outline outline;
    unsigned version;
    bool is_taken; /* there were some */
    bool shows_processes;
    struct gpu_processes processes;
    struct outline processes_outline;
    unsigned processes_version;
};

static const char *const gpu_processes_not_facts[] = {"rank", "host", "pid", NULL}; /* the target's */

static struct outline *gpu_outline_of(struct gpu_state *s) {
    return s->shows_processes ? &s->processes_outline : &s->outline;
}

static const struct gpus_row *gpu_of(const void *node) { return ((const struct outline_node *)node)->row; }

/* ---- cells ---- */

static void gpu_put_number(struct table_cell *c, double v, const char *unit, enum theme_role role) {
    c->role = isnan(v) ? ROLE_MUTED : role;
    if (isnan(v))
        snprintf(c->text, sizeof c->text, "?");
    else
        snprintf(c->text, sizeof c->text, "%.0f%s", v, unit);
}

static void gpu_put_mib(double mib, char *buf, size_t cap) { text_human_bytes(buf, cap, mib * (1 << 20)); }

static void gpu_cell_device(const void *node, struct table_cell *c) {
    char name[32];
    gpus_put_name(gpu_of(node), name, sizeof name);
    outline_put_name(node, name, c->text, sizeof c->text);
    c->role = ROLE_VALUE;
}

static void gpu_cell_name(const void *node, struct table_cell *c) {
    c->role = ROLE_TEXT;
    snprintf(c->text, sizeof c->text, "%s", gpu_of(node)->name ? gpu_of(node)->name : "?");
}

static void gpu_cell_util(const void *node, struct table_cell *c) {
    double v = gpu_of(node)->util_pct;
    gpu_put_number(c, v, "", v >= GPU_BUSY_PCT ? ROLE_CPU_HIGH : v >= 5 ? ROLE_CPU_MID : ROLE_CPU_LOW);
}

static void gpu_cell_sm(const void *node, struct table_cell *c) {
    gpu_put_number(c, gpu_of(node)->sm_active_pct, "", ROLE_VALUE);
}

static void gpu_cell_mem(const void *node, struct table_cell *c) {
    const struct gpus_row *r = gpu_of(node);
    gpu_put_mib(r->mem_used_mb, c->text, sizeof c->text);
    c->role = r->mem_used_mb > GPU_FULL_SHARE * r->mem_total_mb ? ROLE_CONN_WAIT : ROLE_VALUE;
}

static void gpu_cell_total(const void *node, struct table_cell *c) {
    gpu_put_mib(gpu_of(node)->mem_total_mb, c->text, sizeof c->text);
    c->role = ROLE_MUTED;
}

static void gpu_cell_power(const void *node, struct table_cell *c) {
    gpu_put_number(c, gpu_of(node)->power_w, "", ROLE_VALUE);
}

static void gpu_cell_limit(const void *node, struct table_cell *c) {
    gpu_put_number(c, gpu_of(node)->power_limit_w, "", ROLE_MUTED);
}

static void gpu_cell_temperature(const void *node, struct table_cell *c) {
    double v = gpu_of(node)->temperature_c;
    gpu_put_number(c, v, "", v >= GPU_HOT_C ? ROLE_CONN_WAIT : ROLE_VALUE);
}

static void gpu_cell_clock(const void *node, struct table_cell *c) {
    gpu_put_number(c, gpu_of(node)->sm_clock_mhz, "", ROLE_VALUE);
}

static void gpu_cell_slowed(const void *node, struct table_cell *c) {
    const char *text = gpu_of(node)->throttle;
    c->role = text && strcmp(text, "power") != 0 ? ROLE_CONN_WAIT : ROLE_TEXT;
    snprintf(c->text, sizeof c->text, "%s", !text ? "?" : *text ? text : "-");
}

static void gpu_cell_state(const void *node, struct table_cell *c) {
    gpus_put_trouble(gpu_of(node), c->text, sizeof c->text);
    c->role = c->text[0] ? ROLE_STATUS_BAD : ROLE_CONN_OK;
    if (!c->text[0])
        snprintf(c->text, sizeof c->text, "ok%s", gpu_of(node)->is_assumed ? ", assumed" : "");
}

#define GPU_COMPARE(field)                                                                                   \
    static int gpu_compare_##field(const void *a, const void *b) {                                           \
        return table_compare_number((double)gpu_of(a)->field, (double)gpu_of(b)->field);                     \
    }
GPU_COMPARE(util_pct)
GPU_COMPARE(sm_active_pct)
GPU_COMPARE(mem_used_mb)
GPU_COMPARE(mem_total_mb)
GPU_COMPARE(power_w)
GPU_COMPARE(power_limit_w)
GPU_COMPARE(temperature_c)
GPU_COMPARE(sm_clock_mhz)

static int gpu_compare_device(const void *a, const void *b) {
    const struct gpus_row *x = gpu_of(a), *y = gpu_of(b);
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    return (x->slice > y->slice) - (x->slice < y->slice);
}

static int gpu_compare_name(const void *a, const void *b) {
    return text_compare(gpu_of(a)->name, gpu_of(b)->name);
}

static int gpu_compare_throttle(const void *a, const void *b) {
    return text_compare(gpu_of(a)->throttle, gpu_of(b)->throttle);
}

static bool gpu_matches(const void *node, const struct match *m) {
    const struct gpus_row *r = ((const struct outline_node *)node)->row;
    char name[32], trouble[64];
    gpus_put_name(r, name, sizeof name);
    gpus_put_trouble(r, trouble, sizeof trouble);
    return match_text(m, name) || match_text(m, r->name) || match_text(m, r->uuid) ||
           match_text(m, r->throttle) || match_text(m, trouble);
}

/* clang-format off */
#define GPU_NO_SIZE {10000, 0, 99} /* there is never room for it */
#define GPU_SM_SIZE {4, 0, 1}
#define GPU_COLUMNS(sm) \
    {"GPU", "number of the device, as its driver counts; of a slice (MIG) behind a dot", {8, 0, 0}, GRID_LEFT, false, gpu_cell_device, gpu_compare_device}, \
    {"UTIL%", "share of the last second in which it ran a kernel, however small", {5, 0, 0}, GRID_RIGHT, true, gpu_cell_util, gpu_compare_util_pct}, \
    {"SM%", "share of its multiprocessors that had work in the last second", sm, GRID_RIGHT, true, gpu_cell_sm, gpu_compare_sm_active_pct}, \
    {"MEM", "memory in use, of all processes", {8, 0, 0}, GRID_RIGHT, true, gpu_cell_mem, gpu_compare_mem_used_mb}, \
    {"OF", "memory that it has", {8, 0, 4}, GRID_RIGHT, true, gpu_cell_total, gpu_compare_mem_total_mb}, \
    {"W", "power that it takes, in watts", {5, 0, 2}, GRID_RIGHT, true, gpu_cell_power, gpu_compare_power_w}, \
    {"LIMIT", "power that it may take", {5, 0, 6}, GRID_RIGHT, true, gpu_cell_limit, gpu_compare_power_limit_w}, \
    {"C", "temperature", {4, 0, 3}, GRID_RIGHT, true, gpu_cell_temperature, gpu_compare_temperature_c}, \
    {"MHz", "clock of its processors", {5, 0, 5}, GRID_RIGHT, true, gpu_cell_clock, gpu_compare_sm_clock_mhz}, \
    {"SLOWED BY", "what keeps its clock down: power (the rule under full load), heat, hardware, clock limit", {14, 0, 1}, GRID_LEFT, false, gpu_cell_slowed, gpu_compare_throttle}, \
    {"STATE", "what is wrong with it; assumed: the process may use another one", {20, 1, 0}, GRID_LEFT, false, gpu_cell_state, NULL}, \
    {"MODEL", "its name", {12, 2, 7}, GRID_LEFT, false, gpu_cell_name, gpu_compare_name}

static const struct table_column gpu_columns[] = {GPU_COLUMNS(GPU_NO_SIZE)};
static const struct table_column gpu_columns_sm[] = {GPU_COLUMNS(GPU_SM_SIZE)};
/* clang-format on */

static void gpu_put_uuid(const void *row, struct strbuf *out) {
    const struct gpus_row *r = row;
    char name[128];
    text_sanitize(name, sizeof name, r->uuid ? r->uuid : "?");
    strbuf_adds(out, name);
}

#define GPU_N_COLUMNS ((int)(sizeof gpu_columns / sizeof gpu_columns[0]))
static const struct outline_def gpu_outline = {gpu_columns, GPU_N_COLUMNS, gpu_matches, gpu_put_uuid};
static const struct outline_def gpu_outline_sm = {gpu_columns_sm, GPU_N_COLUMNS, gpu_matches, gpu_put_uuid};

/* ---- rows ---- */

/* Slices are below their device, which comes before them. */
static void gpu_build(struct gpu_state *s, const struct gpus *g) {
    struct outline_node *nodes = calloc(g->n + 1, sizeof *nodes);
    size_t n = 0;
    for (size_t i = 0; nodes && i < g->n; i++) {
        const struct gpus_row *r = &g->items[i];
        int parent = -1;
        for (size_t k = 0; r->slice >= 0 && k < i; k++)
            if (g->items[k].device == r->device && g->items[k].slice < 0)
                parent = (int)k;
        nodes[n++] =
            (struct outline_node){.row = r,
                                  .parent = parent,
                                  .key = hash_mix((uint64_t)r->device << 16 ^ (uint64_t)(r->slice + 1)) | 1};
    }
    outline_take(&s->outline, nodes, n);
}

static void gpu_take_processes(struct gpu_state *s, const struct app *app) {
    const struct app_feed *f = app_feed_get(app, FEED_GPU_PROCESSES);
    if (f->version == s->processes_version)
        return;
    s->processes_version = f->version;
    if (!f->rows) { /* another target, about which nobody has asked */
        tags_clear(&s->processes_outline.view.own_tags);
        s->shows_processes = s->shows_processes && (f->wanted || f->running);
    }
    gpu_processes_build(&s->processes, f->rows, &s->processes_outline);
}

static void gpu_update(void *state, struct app *app) {
    struct gpu_state *s = state;
    const struct app_feed *f = app_feed_get(app, FEED_GPU);
    if (app_screen_top(app)->state == state) {
        app_feed_follow(app, FEED_GPU, GPUS_QUERY, GPU_EVERY_S);
        if (s->shows_processes && !data_is_recorded(&app->data))
            app_feed_follow(app, FEED_GPU_PROCESSES, GPU_PROCESSES_QUERY, INFINITY);
    }
    gpu_take_processes(s, app);
    if (s->is_taken && f->version == s->version)
        return;
    s->version = f->version;
    s->is_taken = true;
    if (!f->rows) /* another target */
        tags_clear(&s->outline.view.own_tags);
    s->outline.def = app->feeds.gpus.has_sm_active ? &gpu_outline_sm : &gpu_outline;
    gpu_build(s, &app->feeds.gpus);
}

static void gpu_init(void *state, struct app *app) {
    struct gpu_state *s = state;
    outline_init(&s->outline, &gpu_outline, app->config.ascii);
    s->outline.open_depth = 1;
    outline_init(&s->processes_outline, &gpu_processes_outline, app->config.ascii);
    s->processes_outline.view.sort = (struct table_sort){gpu_processes_column_mem(), true};
    s->processes_version = UINT32_MAX; /* none was seen */
    gpu_update(state, app);
}

static void gpu_fini(void *state) {
    struct gpu_state *s = state;
    outline_fini(&s->outline);
    outline_fini(&s->processes_outline);
    gpu_processes_fini(&s->processes);
}

/* ---- drawing ---- */

static const struct gpus_row *gpu_selected(const struct gpu_state *s) {
    const struct outline_node *n = outline_selected(&s->outline);
    return n ? n->row : NULL;
}

/* What of it is at work, where that is known. */
static void gpu_put_active(const struct gpus_row *r, struct strbuf *out) {
    const struct {
        const char *what;
        double pct;
    } shares[] = {{"SMs", r->sm_active_pct},
                  {"tensor cores", r->tensor_active_pct},
                  {"memory traffic", r->dram_active_pct}};
    const char *before = "   ";
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++)
        if (!isnan(shares[i].pct)) {
            strbuf_addf(out, "%s%s %.0f %%", before, shares[i].what, shares[i].pct);
            before = ", ";
        }
}

static void gpu_put_line(const struct gpus *g, const struct gpus_row *r, struct strbuf *out) {
    char name[32], model[128], used[24], total[24];
    if (!r)
        return;
    gpus_put_name(r, name, sizeof name);
    text_sanitize(model, sizeof model, r->name ? r->name : "?");
    strbuf_addf(out, "GPU %s   %s", name, model);
    gpu_put_active(r, out);
    if (g->n > 1 && !isnan(gpus_util(g))) {
        gpu_put_mib(gpus_mem_used(g), used, sizeof used);
        gpu_put_mib(gpus_mem_total(g), total, sizeof total);
        strbuf_addf(out, "   all %zu: %.0f %% busy, %s of %s", g->n, gpus_util(g), used, total);
    }
}

/* What torch's allocator has of all devices; nothing where it has none. */
static void gpu_put_torch(const struct app *app, struct strbuf *out) {
    const struct result *rows = app_feed_get(app, FEED_GPU_MEMORY)->rows;
    int allocated = app_feed_column(rows, "allocated_mb"), reserved = app_feed_column(rows, "reserved_mb"),
        retries = app_feed_column(rows, "retries");
    double in_tensors = 0, held = 0, returned = 0;
    char text[24];
    for (size_t i = 0; rows && i < rows->n_rows; i++) {
        in_tensors += app_feed_number(rows, i, allocated);
        held += app_feed_number(rows, i, reserved);
        returned += app_feed_number(rows, i, retries);
    }
    if (!(held > 0))
        return;
    gpu_put_mib(held, text, sizeof text);
    strbuf_addf(out, "torch holds %s", text);
    gpu_put_mib(in_tensors, text, sizeof text);
    strbuf_addf(out, ", %s of it in tensors", text);
    if (returned > 0)
        strbuf_addf(out, "; gave memory back %.0f time%s", returned, returned > 1 ? "s" : "");
}

struct gpu_meter {
    const char *label;
    char value[24], limit[32];
    const struct meter *past;
    struct meter_scale scale;
    enum theme_role role;
};

static void gpu_draw_meter(const struct gpu_meter *m, struct grid *g, struct rect *area, int width) {
    grid_text(g, *area, 0, 1, ROLE_LABEL, m->label);
    grid_text(g, *area, 0, GPU_VALUE, ROLE_VALUE, m->value);
    grid_text(g, *area, 0, GPU_FULL, ROLE_MUTED, m->limit);
    meter_draw(m->past, g, *area, 0, GPU_LABEL, width, m->scale, m->role);
    area->row++;
    area->rows--;
}

/* Its last minutes, three lines. */
static void gpu_draw_meters(const struct gpus_row *r, struct grid *g, struct rect *area) {
    int width = area->cols - GPU_LABEL - 2;
    char text[24];
    if (area->rows < GPU_METER_ROWS || width < 8)
        return;
    width = width > METER_MAX ? METER_MAX : width;
    struct gpu_meter busy = {"busy", "?", "of the time", r->utils, {0, 100}, ROLE_METER_CPU};
    struct gpu_meter memory = {"memory", "", "", r->mems, {0, r->mem_total_mb}, ROLE_METER_CPU};
    struct gpu_meter power = {"power", "?", "", r->powers, {0, r->power_limit_w}, ROLE_METER_GIL};
    if (!isnan(r->util_pct))
        snprintf(busy.value, sizeof busy.value, "%.0f %%", r->util_pct);
    gpu_put_mib(r->mem_used_mb, memory.value, sizeof memory.value);
    gpu_put_mib(r->mem_total_mb, text, sizeof text);
    snprintf(memory.limit, sizeof memory.limit, "of %s", text);
    if (!isnan(r->power_w))
        snprintf(power.value, sizeof power.value, "%.0f W", r->power_w);
    if (!isnan(r->power_limit_w))
        snprintf(power.limit, sizeof power.limit, "of %.0f W", r->power_limit_w);
    if (!(memory.scale.full > 0))
        memory.scale = meter_trend(r->mems, METER_MAX);
    if (!(power.scale.full > 0))
        power.scale = meter_trend(r->powers, METER_MAX);
    gpu_draw_meter(&busy, g, area, width);
    gpu_draw_meter(&memory, g, area, width);
    gpu_draw_meter(&power, g, area, width);
}

static void gpu_draw_devices(struct gpu_state *s, struct app *app, struct grid *g, struct rect area) {
    const struct gpus_row *r = gpu_selected(s);
    char empty[sizeof((struct err *)0)->text + 64];
    struct strbuf line, torch;
    strbuf_init(&line, 512);
    strbuf_init(&torch, 256);
    gpu_put_line(&app->feeds.gpus, r, &line);
    gpu_put_torch(app, &torch);
    browser_draw_head(app, FEED_GPU, strbuf_str(&line), strbuf_str(&torch), g, &area);
    strbuf_fini(&line);
    strbuf_fini(&torch);
    if (r)
        gpu_draw_meters(r, g, &area);
    app_feed_put_empty(app, FEED_GPU, app->feeds.gpus.n ? "nothing matches: A shows all" : "no GPU", empty,
                       sizeof empty);
    facts_clear(&s->browser.facts);
    if (r && app->feeds.gpus.rows)
        facts_add_row(&s->browser.facts, app->feeds.gpus.rows, r->line, browser_not_facts);
    browser_draw(&s->browser, &s->outline, " GPU ", empty, g, area);
}

/* "3 processes have 60.1 GiB   in use now 61.0 GiB of 80.0 GiB". */
static void gpu_put_processes(const struct gpu_state *s, const struct gpus *g, struct strbuf *out) {
    const struct gpu_processes *p = &s->processes;
    char text[24];
    if (p->pids) {
        gpu_put_mib(p->mem_mb, text, sizeof text);
        strbuf_addf(out, "%zu process%s ha%s %s%s   ", p->pids, p->pids == 1 ? "" : "es",
                    p->pids == 1 ? "s" : "ve", text, p->is_partial && !isnan(p->mem_mb) ? " or more" : "");
    }
    gpu_put_mib(gpus_mem_used(g), text, sizeof text);
    strbuf_addf(out, "in use now %s", text);
    gpu_put_mib(gpus_mem_total(g), text, sizeof text);
    strbuf_addf(out, " of %s", text);
}

static void gpu_draw_processes(struct gpu_state *s, struct app *app, struct grid *g, struct rect area) {
    const struct outline_node *n = outline_selected(&s->processes_outline);
    const struct gpu_process_row *r = n ? n->row : NULL;
    const struct app_feed *f = app_feed_get(app, FEED_GPU_PROCESSES);
    char empty[sizeof((struct err *)0)->text + 64];
    struct strbuf line;
    strbuf_init(&line, 512);
    gpu_put_processes(s, &app->feeds.gpus, &line);
    browser_draw_head(app, FEED_GPU_PROCESSES, strbuf_str(&line), s->processes.n ? f->note : "", g, &area);
    strbuf_fini(&line);
    app_feed_put_empty(app, FEED_GPU_PROCESSES,
                       s->processes.n ? "nothing matches: A shows all" : "no process has memory there", empty,
                       sizeof empty);
    facts_clear(&s->browser.facts);
    if (r && s->processes.rows)
        facts_add_row(&s->browser.facts, s->processes.rows, r->line, gpu_processes_not_facts);
    browser_draw(&s->browser, &s->processes_outline, " Process ", empty, g, area);
}

static void gpu_draw(void *state, struct app *app, struct grid *g, struct rect area) {
    struct gpu_state *s = state;
    if (s->shows_processes)
        gpu_draw_processes(s, app, g, area);
    else
        gpu_draw_devices(s, app, g, area);
}

static void gpu_status(const void *state, const struct app *app, struct strbuf *out) {
    const struct gpu_state *s = state;
    outline_status(s->shows_processes ? &s->processes_outline : &s->outline,
                   s->shows_processes ? "Rows" : "GPUs", out);
    if (s->shows_processes)
        strbuf_adds(out, app_feed_get(app, FEED_GPU_PROCESSES)->note[0] ? "   not complete; r asks again"
                                                                        : "   r asks the driver again");
}

/* ---- actions ---- */

/* Who has memory is of now: a recording does not have it. */
static void gpu_next_view(struct gpu_state *s, struct app *app) {
    if (!s->shows_processes && data_is_recorded(&app->data)) {
        app_message(app, true, "a recording does not have who else had memory on its GPUs");
        return;
    }
    s->shows_processes = !s->shows_processes;
    if (s->shows_processes)
        app_feed_ask(app, FEED_GPU_PROCESSES, GPU_PROCESSES_QUERY);
    gpu_update(s, app);
}

static bool gpu_act(void *state, struct app *app, enum action action) {
    struct gpu_state *s = state;
    switch ((int)action) {
    case ACTION_REFRESH:
        app_feed_ask(app, FEED_GPU, GPUS_QUERY);
        if (s->shows_processes && !data_is_recorded(&app->data))
            app_feed_ask(app, FEED_GPU_PROCESSES, GPU_PROCESSES_QUERY);
        return true;
    case ACTION_GROUP:
        gpu_next_view(s, app);
        return true;
    default:
        return browser_act(&s->browser, gpu_outline_of(s), action, ACTION_OPEN_GPU);
    }
}

static bool gpu_mouse(void *state, struct app *app, const struct input_event *e) {
    struct gpu_state *s = state;
    return browser_mouse(&s->browser, gpu_outline_of(s), app, e);
}

static struct view *gpu_view(void *state) {
    struct gpu_state *s = state;
    return browser_view(&s->browser, gpu_outline_of(s));
}

const struct screen_def screen_gpu = {
    .name = "gpu",
    .title = "GPU",
    .is_tab = true,
    .needs_gpu = true,
    .opens = {SCREEN_TAB_KEY(GPU, "gpu", "0", "the GPU screen: load, memory, power; where there is a GPU")},
    .is_kept = true,
    .state_size = sizeof(struct gpu_state),
    .init = gpu_init,
    .fini = gpu_fini,
    .keys = CONTEXT_GPU,
    .view = gpu_view,
    .draw = gpu_draw,
    .act = gpu_act,
    .mouse = gpu_mouse,
    .update = gpu_update,
    .status = gpu_status,
};
