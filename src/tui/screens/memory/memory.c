/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory: where the job's memory goes: how much it takes and has taken, the lines that allocate what
 * lives, as a list or as a flame graph, what variables hold, and what torch holds on GPUs.
 *
 * Lines are known while allocations are traced, which costs the job something and begins with a key.
 * What variables hold is found by walking the job's objects, as for the Tensors screen: only while
 * that list is shown.
 */
#include "tui/core/app.h"
#include "tui/core/app_arm.h"
#include "tui/core/app_feed.h"
#include "tui/core/app_screen.h"
#include "tui/core/screen.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "tui/core/action_keys.h"
#include "tui/screens/browser.h"
#include "tui/screens/memory/memory_flame.h"
#include "tui/screens/memory/memory_rows.h"
#include "tui/view/meter_draw.h"

#define MEMORY_EVERY_S 2.0
#define MEMORY_HOLDERS_EVERY_S 5.0
#define MEMORY_METER_LEAST 12 /* rows from which on there are meters, */
#define MEMORY_METER_PART 4   /* which take this part of them at most */
#define MEMORY_LABEL 34       /* columns beside a meter, */
#define MEMORY_VALUE 9        /* the column where its value begins, */
#define MEMORY_FULL 20        /* and the column for its peak or limit */
#define MEMORY_SAME_S 3.0     /* tracing that began within so long of another is the same */

static const char memory_history_query[] =
    "SELECT timestamp, memory_mb, rss_mb, gpu_allocated_mb, gc_objects FROM python.memory WHERE timestamp > "
    "now() - interval '4 minutes' ORDER BY timestamp";
static const char memory_process_query[] =
    "SELECT timestamp, pss_bytes, cgroup_memory_bytes, cgroup_limit_bytes FROM system.process_history WHERE "
    "timestamp > now() - interval '4 minutes' ORDER BY timestamp";
static const char memory_holders_query[] = "SELECT * FROM python.memory_growth";

/* The last row of a stack has what of it lives. */
#define MEMORY_LAST                                                                                          \
    "SELECT stack_id, function_name, file, lineno, domain, live_bytes, max(timestamp), "                     \
    "sum(allocated_bytes) AS allocated, sum(calls) AS n FROM memory_allocations WHERE timestamp >= %.0f "    \
    "GROUP BY stack_id, domain, function_name, file, lineno"
static const char memory_sites_query[] =
    "SELECT function_name, file, lineno, domain, sum(live_bytes) AS live_bytes, sum(allocated) AS "
    "allocated_bytes, sum(n) AS calls, CASE WHEN count(*) = 1 THEN max(stack_id) END AS stack_id FROM "
    "(" MEMORY_LAST ") GROUP BY function_name, file, lineno, domain ORDER BY 5 DESC LIMIT 1000";
static const char memory_stacks_query[] =
    "SELECT fold(stack_id) AS stack, sum(live_bytes) AS bytes FROM (" MEMORY_LAST
    ") WHERE stack_id IS NOT NULL GROUP BY stack_id HAVING bytes > 0 ORDER BY bytes DESC LIMIT 300";

/* One look each: torch keeps the GIL while it lists its blocks. */
static const char memory_gpu_query[] =
    "SELECT 'GPU ' || device || ';' || coalesce(stack, '(stack not recorded)') AS stack, sum(bytes) AS bytes "
    "FROM python.gpu_blocks WHERE state <> 'inactive' GROUP BY 1 ORDER BY bytes DESC LIMIT 300";

static const char *const memory_not_facts[] = {"rank", "host", "pid", NULL};

enum memory_view { MEMORY_SITES = 0, MEMORY_FLAME, MEMORY_HOLDERS, MEMORY_GPU, MEMORY_VIEWS };

struct memory_state {
    struct browser browser;
    struct memory_history history;
    struct memory_rows sites_rows, holders_rows;
    struct memory_mark mark;
    struct outline sites, holders;
    struct memory_flame flame, gpu_flame;
    enum memory_view shown;
    unsigned history_version, process_version; /* of the feeds, as shown */
    unsigned sites_version, stacks_version, holders_version, gpu_version;
};

static struct outline *memory_outline(struct memory_state *s) {
    return s->shown == MEMORY_HOLDERS ? &s->holders : &s->sites;
}

/* The flame graph that is shown; NULL: none, or it has nothing. */
static struct memory_flame *memory_shown_flame(struct memory_state *s) {
    struct memory_flame *f = s->shown == MEMORY_FLAME ? &s->flame : &s->gpu_flame;
    return (s->shown == MEMORY_FLAME || s->shown == MEMORY_GPU) && memory_flame_is_there(f) ? f : NULL;
}

static enum app_feed_id memory_feed(const struct memory_state *s) {
    return s->shown == MEMORY_HOLDERS ? FEED_MEMORY_HOLDERS
           : s->shown == MEMORY_GPU   ? FEED_GPU_BLOCKS
           : s->shown == MEMORY_FLAME ? FEED_MEMORY_STACKS
                                      : FEED_MEMORY_SITES;
}

static const struct memory_row *memory_selected(struct memory_state *s) {
    const struct outline_node *n = outline_selected(memory_outline(s));
    return n ? n->row : NULL;
}

/* The query of the list that is shown. What was allocated before tracing began is of another. */
static void memory_put_query(const struct memory_state *s, const struct app *app, char *buf, size_t cap) {
    if (s->shown == MEMORY_HOLDERS || s->shown == MEMORY_GPU)
        snprintf(buf, cap, "%s", s->shown == MEMORY_GPU ? memory_gpu_query : memory_holders_query);
    else
        snprintf(buf, cap, s->shown == MEMORY_FLAME ? memory_stacks_query : memory_sites_query,
                 app->data.arms.kinds[ARM_ALLOC].begun_s);
}

/* ---- data ---- */

/* Note when tracing began, if it goes on; with the target, as another one has its own. */
static void memory_find_beginning(struct app *app) {
    struct arm *arm = &app->data.arms.kinds[ARM_ALLOC];
    double begun = app->epoch_s - arm->held_s;
    if (arms_is_on(&app->data.arms, ARM_ALLOC) && arm->held_s >= 0 &&
        fabs(begun - arm->begun_s) > MEMORY_SAME_S)
        arm->begun_s = begun;
}

static void memory_follow(struct memory_state *s, struct app *app) {
    char text[APP_FEED_TEXT];
    memory_find_beginning(app);
    app_feed_follow(app, FEED_MEMORY, memory_history_query, MEMORY_EVERY_S);
    app_feed_follow(app, FEED_MEMORY_PROCESS, memory_process_query, MEMORY_EVERY_S);
    memory_put_query(s, app, text, sizeof text);
    app_feed_follow(app, memory_feed(s), text,
                    s->shown == MEMORY_GPU       ? INFINITY
                    : s->shown == MEMORY_HOLDERS ? MEMORY_HOLDERS_EVERY_S
                                                 : MEMORY_EVERY_S);
}

static bool memory_is_new(const struct app_feed *f, unsigned *version, bool frozen) {
    if (f->version == *version || frozen)
        return false;
    *version = f->version;
    return true;
}

/* Take new data; while the view is frozen the display stays. */
static void memory_take(struct memory_state *s, const struct app *app) {
    const struct app_feed *past = app_feed_get(app, FEED_MEMORY),
                          *process = app_feed_get(app, FEED_MEMORY_PROCESS),
                          *sites = app_feed_get(app, FEED_MEMORY_SITES),
                          *stacks = app_feed_get(app, FEED_MEMORY_STACKS),
                          *holders = app_feed_get(app, FEED_MEMORY_HOLDERS),
                          *gpu = app_feed_get(app, FEED_GPU_BLOCKS);
    bool frozen = app->data.paused;
    bool newer = memory_is_new(past, &s->history_version, frozen && s->history_version != UINT32_MAX);
    newer |= memory_is_new(process, &s->process_version, frozen && s->process_version != UINT32_MAX);
    if (newer)
        memory_history_read(&s->history, past->rows, process->rows);
    if (memory_is_new(sites, &s->sites_version, frozen && s->sites_rows.rows)) {
        if (!sites->rows) { /* another target */
            tags_clear(&s->sites.view.own_tags);
            memory_mark_fini(&s->mark);
        }
        memory_sites_build(&s->sites_rows, sites->rows, &s->mark, &s->sites);
    }
    if (memory_is_new(stacks, &s->stacks_version, frozen && memory_flame_is_there(&s->flame)))
        memory_flame_build(&s->flame, stacks->rows);
    if (memory_is_new(gpu, &s->gpu_version, frozen && memory_flame_is_there(&s->gpu_flame)))
        memory_flame_build(&s->gpu_flame, gpu->rows);
    if (memory_is_new(holders, &s->holders_version, frozen && s->holders_rows.rows)) {
        if (!holders->rows)
            tags_clear(&s->holders.view.own_tags);
        memory_holders_build(&s->holders_rows, holders->rows, &s->holders);
    }
}

static void memory_update(void *state, struct app *app) {
    struct memory_state *s = state;
    if (app_screen_top(app)->state == state)
        memory_follow(s, app);
    memory_take(s, app);
}

static void memory_init(void *state, struct app *app) {
    struct memory_state *s = state;
    outline_init(&s->sites, &memory_sites_outline, app->config.ascii);
    outline_init(&s->holders, &memory_holders_outline, app->config.ascii);
    s->sites.view.sort = (struct table_sort){memory_column_bytes(), true};
    s->holders.view.sort = (struct table_sort){memory_column_growth(), true};
    if (app->config.filter)
        match_set(&s->sites.view.filter, app->config.filter, true);
    s->holders.view.filter = s->sites.view.filter;
    s->history = (struct memory_history){.limit = NAN, .a_minute = NAN};
    s->history_version = s->process_version = s->sites_version = s->stacks_version = s->holders_version =
        s->gpu_version = UINT32_MAX; /* none were seen */
    memory_update(state, app);
}

static void memory_fini(void *state) {
    struct memory_state *s = state;
    outline_fini(&s->sites);
    outline_fini(&s->holders);
    memory_rows_fini(&s->sites_rows);
    memory_rows_fini(&s->holders_rows);
    memory_mark_fini(&s->mark);
    memory_flame_fini(&s->flame);
    memory_flame_fini(&s->gpu_flame);
}

/* ---- drawing ---- */

static void memory_put_totals(const struct memory_state *s, struct strbuf *out) {
    char size[32], more[32];
    double now = meter_at(&s->history.meters[MEMORY_METER_ALL], 0);
    if (!isnan(now)) {
        text_human_bytes(size, sizeof size, now);
        strbuf_addf(out, "%s", size);
    }
    if (!isnan(s->history.a_minute)) {
        text_human_bytes(more, sizeof more, fabs(s->history.a_minute));
        strbuf_addf(out, "   %c%s a minute", s->history.a_minute < 0 ? '-' : '+', more);
    }
    double cgroup = meter_at(&s->history.meters[MEMORY_METER_CGROUP], 0);
    if (s->history.limit > 0 && !isnan(cgroup))
        strbuf_addf(out, "   %.0f %% of its limit", 100 * cgroup / s->history.limit);
    if (s->shown == MEMORY_HOLDERS && s->holders_rows.n)
        strbuf_addf(out, "   %zu holder%s", s->holders_rows.n, s->holders_rows.n == 1 ? "" : "s");
    if (s->shown == MEMORY_HOLDERS && s->holders_rows.looked >= 0)
        strbuf_addf(out, ", of %.0f objects", s->holders_rows.looked);
    if ((s->shown == MEMORY_SITES || s->shown == MEMORY_FLAME) && s->sites_rows.n) {
        text_human_bytes(size, sizeof size, s->sites_rows.live);
        text_human_bytes(more, sizeof more, s->sites_rows.allocated);
        strbuf_addf(out, "   traced: %s live of %s", size, more);
    }
}

static void memory_put_meter(double v, bool is_count, char *buf, size_t cap) {
    if (is_count)
        snprintf(buf, cap, "%.0f", v);
    else
        text_human_bytes(buf, cap, v);
}

/* Its last minutes: a line for each that is known, as far as there is room. */
static void memory_draw_meters(const struct memory_state *s, struct grid *g, struct rect *area) {
    static const struct {
        const char *name;
        enum theme_role role;
    } kinds[MEMORY_METERS] = {
        [MEMORY_METER_ALL] = {"memory", ROLE_METER_CPU},
        [MEMORY_METER_RSS] = {"in RAM", ROLE_METER_CPU},
        [MEMORY_METER_PSS] = {"its own", ROLE_METER_CPU},
        [MEMORY_METER_CGROUP] = {"cgroup", ROLE_METER_GIL},
        [MEMORY_METER_GPU] = {"on GPUs", ROLE_METER_GIL},
        [MEMORY_METER_OBJECTS] = {"objects", ROLE_METER_GIL},
    };
    char text[32];
    int width = area->cols - MEMORY_LABEL - 2, room = area->rows / MEMORY_METER_PART, row = 0;
    if (area->rows < MEMORY_METER_LEAST || width < 8)
        return;
    width = width > METER_MAX ? METER_MAX : width;
    for (int i = 0; i < MEMORY_METERS && row < room; i++) {
        const struct meter *m = &s->history.meters[i];
        double now = meter_at(m, 0);
        if (isnan(now))
            continue;
        bool has_limit = i == MEMORY_METER_CGROUP && s->history.limit > 0;
        struct meter_scale scale =
            has_limit ? (struct meter_scale){0, s->history.limit} : meter_trend(m, METER_MAX);
        grid_text(g, *area, row, 1, ROLE_LABEL, kinds[i].name);
        memory_put_meter(now, i == MEMORY_METER_OBJECTS, text, sizeof text);
        grid_text(g, *area, row, MEMORY_VALUE, ROLE_VALUE, text);
        memory_put_meter(has_limit ? s->history.limit : meter_max(m, METER_MAX, 0), i == MEMORY_METER_OBJECTS,
                         text, sizeof text);
        grid_printf(g, *area, row, MEMORY_FULL, ROLE_MUTED, "%s %s", has_limit ? "limit" : "peak", text);
        meter_draw(m, g, *area, row, MEMORY_LABEL, width, scale, kinds[i].role);
        row++;
    }
    area->row += row;
    area->rows -= row;
}

/* The text in place of rows. */
static void memory_put_empty(struct memory_state *s, const struct app *app, char *buf, size_t cap) {
    char nothing[160];
    bool is_on = arms_is_on(&app->data.arms, ARM_ALLOC);
    if (s->shown == MEMORY_GPU)
        snprintf(nothing, sizeof nothing, "torch holds nothing on GPUs");
    else if (memory_outline(s)->things)
        snprintf(nothing, sizeof nothing, "nothing matches: A shows all");
    else if (s->shown == MEMORY_HOLDERS)
        snprintf(nothing, sizeof nothing, "no variable holds much");
    else if (data_is_recorded(&app->data) || data_is_over(&app->data))
        snprintf(nothing, sizeof nothing, "its allocations were not traced");
    else if (is_on)
        snprintf(nothing, sizeof nothing, "allocations are traced: none is live yet");
    else
        snprintf(nothing, sizeof nothing,
                 "allocations are not traced: X starts it (1 %% of a core, or more)");
    app_feed_put_empty(app, memory_feed(s), nothing, buf, cap);
    if ((s->shown == MEMORY_SITES || s->shown == MEMORY_FLAME) &&
        app_feed_get(app, memory_feed(s))->is_answered)
        snprintf(buf, cap, "%s", nothing); /* the note of the table is about the command line */
}

static void memory_fill_facts(struct memory_state *s) {
    const struct memory_row *r = memory_selected(s);
    const struct memory_rows *of = s->shown == MEMORY_HOLDERS ? &s->holders_rows : &s->sites_rows;
    facts_clear(&s->browser.facts);
    if (r && of->rows)
        facts_add_row(&s->browser.facts, of->rows, r->line, memory_not_facts);
    else
        facts_add(&s->browser.facts, "", ROLE_MUTED, "nothing is selected");
}

static void memory_draw(void *state, struct app *app, struct grid *g, struct rect area) {
    struct memory_state *s = state;
    char empty[sizeof((struct err *)0)->text + 160], arms[2 * ARMS_TEXT], more[2 * ARMS_TEXT + 16];
    struct strbuf line;
    strbuf_init(&line, 512);
    memory_put_totals(s, &line);
    app_arm_put(app, ARM_ALLOC, arms, sizeof arms);
    snprintf(more, sizeof more, "%s%s", arms[0] ? "tracing: " : "", arms);
    browser_draw_head(app, memory_feed(s), strbuf_str(&line), more, g, &area);
    strbuf_fini(&line);
    memory_draw_meters(s, g, &area);
    memory_put_empty(s, app, empty, sizeof empty);
    if (memory_shown_flame(s)) {
        memory_flame_draw(memory_shown_flame(s), g, area);
        return;
    }
    if (s->shown == MEMORY_GPU) { /* it has no list */
        grid_fill(g, area, ROLE_TEXT);
        grid_text(g, area, 1, 1, ROLE_MUTED, empty);
        return;
    }
    if (s->browser.open)
        memory_fill_facts(s);
    browser_draw(&s->browser, memory_outline(s), s->shown == MEMORY_HOLDERS ? " Holder " : " Line ", empty, g,
                 area);
}

static void memory_status(const void *state, const struct app *app, struct strbuf *out) {
    const struct memory_state *s = state;
    (void)app;
    if (s->shown == MEMORY_GPU)
        strbuf_adds(out, "torch's memory on GPUs, by stack: r reads it again");
    else if (s->shown == MEMORY_FLAME && memory_flame_is_there(&s->flame))
        strbuf_adds(out, "Bytes that live, by stack");
    else
        outline_status(s->shown == MEMORY_HOLDERS ? &s->holders : &s->sites,
                       s->shown == MEMORY_HOLDERS ? "Holders" : "Lines", out);
}

static bool memory_is_on(const void *state, const struct app *app, enum action action) {
    (void)state;
    return action == ACTION_TRACE_MEMORY && arms_is_on(&app->data.arms, ARM_ALLOC);
}

/* ---- actions ---- */

static void memory_set_mark(struct memory_state *s, struct app *app) {
    const struct app_feed *f = app_feed_get(app, FEED_MEMORY_SITES);
    if (!s->sites_rows.n) {
        app_message(app, false, "there are no allocations yet to compare with");
        return;
    }
    memory_mark_set(&s->mark, &s->sites_rows);
    memory_sites_build(&s->sites_rows, f->rows, &s->mark, &s->sites);
    app_message(app, false, "mark set: GROWTH counts from here");
}

/* torch's blocks on GPUs are of now: a recording has none. */
static bool memory_has_gpu(const struct memory_state *s, const struct app *app) {
    return !data_is_recorded(&app->data) && !isnan(meter_at(&s->history.meters[MEMORY_METER_GPU], 0));
}

static void memory_next_view(struct memory_state *s, struct app *app) {
    static const char *const names[] = {[MEMORY_SITES] = "the lines that allocate what lives",
                                        [MEMORY_FLAME] = "bytes that live, as a flame graph",
                                        [MEMORY_HOLDERS] = "what variables hold",
                                        [MEMORY_GPU] = "what torch holds on GPUs, as a flame graph"};
    s->shown = (enum memory_view)((s->shown + 1) % (memory_has_gpu(s, app) ? MEMORY_VIEWS : MEMORY_GPU));
    if (s->shown == MEMORY_GPU)
        app_feed_ask(app, FEED_GPU_BLOCKS, memory_gpu_query);
    app_message(app, false, "%s", names[s->shown]);
    memory_update(s, app);
}

static bool memory_act_flame(struct memory_flame *f, enum action action) {
    switch ((int)action) {
    case ACTION_UP:
        return memory_flame_move(f, 0, -1) || true;
    case ACTION_DOWN:
        return memory_flame_move(f, 0, 1) || true;
    case ACTION_LEFT:
        return memory_flame_move(f, -1, 0) || true;
    case ACTION_RIGHT:
        return memory_flame_move(f, 1, 0) || true;
    default:
        return false;
    }
}

static bool memory_act(void *state, struct app *app, enum action action) {
    struct memory_state *s = state;
    char text[APP_FEED_TEXT];
    switch ((int)action) {
    case ACTION_REFRESH:
        memory_find_beginning(app);
        memory_put_query(s, app, text, sizeof text);
        app_feed_ask(app, memory_feed(s), text);
        return true;
    case ACTION_GROUP:
        memory_next_view(s, app);
        return true;
    case ACTION_MARK:
        memory_set_mark(s, app);
        return true;
    default:
        break;
    }
    if (memory_shown_flame(s) && memory_act_flame(memory_shown_flame(s), action))
        return true;
    if (s->shown == MEMORY_GPU) /* the list is not shown */
        return false;
    return browser_act(&s->browser, memory_outline(s), action, ACTION_OPEN_MEMORY);
}

static bool memory_mouse(void *state, struct app *app, const struct input_event *e) {
    struct memory_state *s = state;
    if (memory_shown_flame(s))
        return memory_flame_click(memory_shown_flame(s), e->row, e->col);
    if (s->shown == MEMORY_GPU)
        return false;
    return browser_mouse(&s->browser, memory_outline(s), app, e);
}

static struct view *memory_view(void *state) {
    struct memory_state *s = state;
    return browser_view(&s->browser, memory_outline(s));
}

const struct screen_def screen_memory = {
    .name = "memory",
    .title = "Memory",
    .is_tab = true,
    .opens = {SCREEN_TAB_KEY(MEMORY, "memory", "M",
                             "the Memory screen: which lines allocate, what holds it")},
    .is_kept = true,
    .tells_arms = true,
    .state_size = sizeof(struct memory_state),
    .init = memory_init,
    .fini = memory_fini,
    .keys = CONTEXT_MEMORY,
    .view = memory_view,
    .draw = memory_draw,
    .act = memory_act,
    .mouse = memory_mouse,
    .update = memory_update,
    .is_on = memory_is_on,
    .status = memory_status,
};
