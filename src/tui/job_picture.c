/* SPDX-License-Identifier: Apache-2.0 */
/* job_picture: see job_picture.h. */
#include "tui/job_picture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "client/fleet/fleet_open.h"
#include "client/output.h"
#include "client/verdict/verdict.h"
#include "tui/core/app_draw.h"
#include "tui/core/app_job.h"
#include "tui/core/app_life.h"
#include "tui/core/app_take.h"
#include "tui/core/screen.h"
#include "tui/model/job_shot.h"
#include "tui/screen_picture.h"
#include "tui/view/layout.h"
#include "tui/view/rank_filter.h"
#include "tui/view/rank_others.h"
#include "tui/view/rank_text.h"

#define JOB_PICTURE_ROUNDS 2 /* CPU is known from the second on */
#define JOB_PICTURE_LIMIT_S 20.0
#define JOB_PICTURE_TEXT 4096
#define JOB_PICTURE_LINE 8192
#define JOB_PICTURE_SCHEMA_VERSION 1
#define JOB_PICTURE_MIB 1048576.0

const struct screen_def *job_picture_find(const char *name, const char *target) {
    const struct screen_def *tab;
    bool has_tables = target && fleet_open_is_database(target);
    for (int i = 0; name && (tab = screen_tab(i)); i++)
        if (strcmp(tab->name, name) == 0 &&
            (tab->of_job || (has_tables && (tab->shows_job || (tab->reads_job && !tab->of_session)))))
            return tab;
    return NULL;
}

/* ---- JSON ---- */

/* NULL where it is not known. */
static void job_picture_put_int(struct json *j, const char *key, int64_t v, bool is_known) {
    if (is_known)
        json_kv_int(j, key, v);
    else
        json_kv_null(j, key);
}

static void job_picture_put_rank(struct json *j, const struct job_shot *s, const struct job_shot_rank *r) {
    struct strbuf where;
    char class[RANK_FILTER_CLASS], sign[2] = {rank_text_sign(r)->sign, '\0'};
    strbuf_init(&where, JOB_PICTURE_TEXT);
    rank_text_put_where(s, r, &where);
    rank_filter_name_class(s, r->class_number, class);
    json_object_begin(j);
    json_kv_int(j, "rank", r->rank);
    json_kv_string(j, "host", job_shot_host_name(s, r));
    job_picture_put_int(j, "pid", r->pid, r->pid > 0);
    json_kv_string(j, "sign", sign);
    json_kv_string(j, "state", rank_text_signs[r->state].word);
    json_kv_string(j, "operation", r->what);
    json_kv_number(j, "since_s", r->since_s, 1);
    json_kv_bool(j, "late", r->is_late);
    json_kv_string(j, "where", where.len ? strbuf_str(&where) : NULL);
    json_kv_string(j, "class", r->class_number >= 0 ? class : NULL);
    job_picture_put_int(j, "step", r->step, r->step >= 0);
    json_kv_number(j, "step_ms", r->step_ms, 3);
    json_kv_number(j, "own_ms", r->own_ms, 3);
    json_kv_number(j, "lag_ms", r->lag_ms, 3);
    json_kv_number(j, "cpu_pct", r->cpu_pct, 1);
    job_picture_put_int(j, "rss_bytes", r->rss_bytes, r->rss_bytes >= 0);
    json_kv_number(j, "gpu_util_pct", r->gpu_util, 1);
    json_kv_number(j, "gpu_mem_bytes", r->gpu_mem_mb * JOB_PICTURE_MIB, 0);
    json_kv_bool(j, "agent", r->has_agent);
    json_kv_string(j, "note", r->note);
    json_object_end(j);
    strbuf_fini(&where);
}

static void job_picture_put_frame(struct json *j, const struct stack_node *n) {
    json_object_begin(j);
    json_kv_string(j, "func", *n->func ? n->func : NULL);
    json_kv_string(j, "file", *n->file ? n->file : NULL);
    job_picture_put_int(j, "line", n->line, n->line > 0);
    json_object_end(j);
}

/* What ranks with a stack, and those without, have in common: begins an object. The ranks are freed. */
static void job_picture_put_ranks(struct json *j, const char *class, struct rank_set *ranks, double since_s,
                                  bool is_majority) {
    struct strbuf text;
    strbuf_init(&text, RANK_SET_TEXT_MAX);
    rank_set_put(ranks, 0, &text);
    json_object_begin(j);
    json_kv_string(j, "class", class);
    json_kv_int(j, "n", rank_set_count(ranks));
    json_kv_string(j, "ranks", strbuf_str(&text));
    json_kv_number(j, "since_s", since_s, 1);
    json_kv_bool(j, "majority", is_majority);
    rank_set_fini(ranks);
    strbuf_fini(&text);
}

/* A class: its ranks, and its frames, innermost first. */
static void job_picture_put_class(struct json *j, const struct job_shot *s, int32_t number) {
    struct rank_set ranks = {.n = 0};
    char class[RANK_FILTER_CLASS];
    uint32_t node = s->stacks.classes[number];
    stack_classes_ranks(&s->stacks, node, true, &ranks);
    rank_filter_name_class(s, number, class);
    job_picture_put_ranks(j, class, &ranks, s->classes[number].since_s, s->classes[number].is_majority);
    json_kv_null(j, "state");
    json_kv_null(j, "host");
    json_kv_null(j, "note");
    json_key(j, "frames");
    json_array_begin(j);
    for (; node != STACK_CLASSES_ROOT; node = s->stacks.nodes[node].parent)
        job_picture_put_frame(j, &s->stacks.nodes[node]);
    json_array_end(j);
    json_object_end(j);
}

/* Ranks without a stack: what is known of them in its place. */
static void job_picture_put_others(struct json *j, const struct job_shot *s, const struct rank_others *o) {
    struct rank_set ranks = {.n = 0};
    rank_others_ranks(s, o, &ranks);
    job_picture_put_ranks(j, NULL, &ranks, o->since_s, false);
    json_kv_string(j, "state", rank_text_signs[o->state].word);
    json_kv_string(j, "host", o->silent >= 0 && *s->hosts[o->silent].name ? s->hosts[o->silent].name : NULL);
    json_kv_string(j, "note", o->note);
    json_key(j, "frames");
    json_array_begin(j);
    json_array_end(j);
    json_object_end(j);
}

static void job_picture_put_stacks(struct json *j, const struct job_shot *s) {
    struct rank_others *others;
    for (size_t i = 0; i < s->stacks.n_classes; i++)
        job_picture_put_class(j, s, (int32_t)i);
    size_t n = rank_others_list(s, &others);
    for (size_t i = 0; i < n; i++)
        job_picture_put_others(j, s, &others[i]);
    free(others);
}

/* Whether somebody judged for whom ranks wait, and what is known to be wrong. */
static void job_picture_put_verdicts(struct json *j, const struct job_shot *s) {
    static const enum verdict_level levels[] = {
        [JOB_SHOT_NOTE] = VERDICT_NOTE, [JOB_SHOT_WARNING] = VERDICT_WARN, [JOB_SHOT_BAD] = VERDICT_BAD};
    json_kv_bool(j, "judged", s->is_judged);
    json_key(j, "verdicts");
    json_array_begin(j);
    for (size_t i = 0; i < s->n_verdicts; i++) {
        const struct job_shot_verdict *v = &s->verdicts[i];
        struct strbuf ranks;
        strbuf_init(&ranks, RANK_SET_TEXT_MAX);
        rank_set_put(&v->ranks, 0, &ranks);
        json_object_begin(j);
        json_kv_string(j, "code", v->code);
        json_kv_string(j, "level", verdict_level_name(levels[v->level]));
        json_kv_string(j, "brief", v->brief);
        json_kv_string(j, "text", v->text);
        json_kv_string(j, "ranks", v->ranks.n ? strbuf_str(&ranks) : NULL);
        json_object_end(j);
        strbuf_fini(&ranks);
    }
    json_array_end(j);
}

/* Hosts of whose ranks there is no news: what the document has nothing of, or only something old. */
static void job_picture_put_silent(struct json *j, const struct job_shot *s) {
    json_key(j, "silent_hosts");
    json_array_begin(j);
    for (size_t i = 0; i < s->n_hosts; i++) {
        if (!s->hosts[i].silent)
            continue;
        json_object_begin(j);
        json_kv_string(j, "host", s->hosts[i].name);
        json_kv_string(j, "reason", s->hosts[i].silent);
        json_object_end(j);
    }
    json_array_end(j);
}

int job_picture_put_json(const struct job_picture *p, const struct job_shot *s, struct strbuf *out) {
    struct rank_filter filter = {.is_read = false};
    struct match m = {.active = false};
    struct json j;
    if (p->filter)
        match_set(&m, p->filter, true);
    json_init(&j, out, 2);
    json_object_begin(&j);
    json_kv_int(&j, "schema_version", JOB_PICTURE_SCHEMA_VERSION);
    json_kv_string(&j, "job", s->job);
    job_picture_put_int(&j, "world", s->world, s->world > 0);
    json_kv_number(&j, "timestamp", s->at_s, 3);
    job_picture_put_verdicts(&j, s);
    job_picture_put_silent(&j, s);
    json_key(&j, p->screen->name);
    json_array_begin(&j);
    if (p->screen == &screen_ranks) {
        for (size_t i = 0; i < s->n_ranks; i++)
            if (!m.active || rank_filter_matches(&filter, &m, s, &s->ranks[i]) != m.negated)
                job_picture_put_rank(&j, s, &s->ranks[i]);
    } else
        job_picture_put_stacks(&j, s);
    json_array_end(&j);
    json_object_end(&j);
    strbuf_addc(out, '\n');
    rank_filter_fini(&filter);
    return json_finish(&j);
}

/* ---- text ---- */

/* The shot is taken over. */
static int job_picture_put_text(const struct job_picture *p, struct job_shot *s,
                                const struct app_config *config, struct strbuf *out) {
    struct app *app = app_new(config);
    struct grid g;
    char line[JOB_PICTURE_LINE];
    int rows = p->rows < LAYOUT_MIN_ROWS ? LAYOUT_MIN_ROWS : p->rows,
        cols = p->cols < LAYOUT_MIN_COLS ? LAYOUT_MIN_COLS : p->cols;
    if (!app || grid_init(&g, rows + 1, cols) != 0) {
        job_shot_free(s);
        app_free(app);
        return -1;
    }
    app_set_time(app, (double)clock_mono_ns() / 1e9, clock_epoch_s());
    app_job_take(app, s);
    if (app->job.has_past)
        screen_picture_read_feeds(app, NULL, p->target);
    app_draw(app, &g);
    /* without the last row: its keys mean nothing in a file */
    for (int y = 0; y < rows; y++) {
        grid_row_text(&g, grid_rect(&g), y, line, sizeof line, NULL);
        strbuf_addf(out, "%s\n", line);
    }
    grid_fini(&g);
    app_free(app);
    return out->failed ? -1 : 0;
}

/* The picture has no news of some hosts. */
static void job_picture_note(const struct fleet_source *source) {
    struct strbuf text;
    strbuf_init(&text, JOB_PICTURE_TEXT);
    fleet_source_put_silent(source, &text);
    if (text.len)
        output_say("probing-top: partial: no news from %s\n", strbuf_str(&text));
    strbuf_fini(&text);
}

static int job_picture_put_fixed(const struct job_picture *p, const struct app_config *app,
                                 struct strbuf *out, struct err *e) {
    struct app_config config = *app;
    struct fleet_source *source = fleet_open(p->target, p->reach, e);
    if (!source)
        return -1;
    int rc = fleet_source_fill(source, JOB_PICTURE_ROUNDS, JOB_PICTURE_LIMIT_S, NULL, NULL, e);
    struct job_shot *s = rc == 0 ? job_shot_new(fleet_source_get(source)) : NULL;
    if (s) {
        s->is_final = source->is_final;
        s->is_judged = false; /* its verdicts are those of the steps alone */
    }
    if (rc == 0)
        job_picture_note(source);
    fleet_source_close(source);
    if (rc != 0)
        return -1;
    if (!s)
        return err_set(e, ERR_FAILED, "out of memory for the ranks");
    config.job = p->target;
    config.filter = p->filter;
    config.screen = p->screen;
    if (p->json) {
        rc = job_picture_put_json(p, s, out);
        job_shot_free(s);
    } else
        rc = job_picture_put_text(p, s, &config, out);
    return rc == 0 ? 0 : err_set(e, ERR_FAILED, "out of memory for the screen");
}

int job_picture_put(const struct job_picture *p, const struct app_config *app, struct strbuf *out,
                    struct err *e) {
    struct job_picture fixed = *p;
    struct strbuf target;
    int rc = 0;
    strbuf_init(&target, 0);
    /* all that is read is of one moment, which "10m" is not */
    if (fleet_open_is_database(p->target))
        rc = fleet_open_put_at(p->target, fleet_open_at(p->target), &target, e);
    if (target.len)
        fixed.target = strbuf_str(&target);
    rc = rc == 0 ? job_picture_put_fixed(&fixed, app, out, e) : -1;
    strbuf_fini(&target);
    return rc;
}
