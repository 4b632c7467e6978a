/* SPDX-License-Identifier: Apache-2.0 */
/* app_repl: see app_repl.h. */
#include "tui/core/app_repl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/core/app.h"
#include "tui/core/app_screen.h"

void app_repl_init(struct app_repl *r) {
    memset(r, 0, sizeof *r);
    repl_engine_init(&r->engine, APP_REPL_TIMEOUT_S, (int64_t)REPL_ENGINE_OUTPUT_KIB * 1024);
    strbuf_init(&r->names, 1 << 20);
    strbuf_init(&r->log, 4 * APP_REPL_LOG);
    strbuf_init(&r->last, APP_REPL_LOG);
}

void app_repl_fini(struct app_repl *r) {
    repl_engine_fini(&r->engine);
    strbuf_fini(&r->names);
    strbuf_fini(&r->log);
    strbuf_fini(&r->last);
}

/* ---- what was said ---- */

/* Lines of a text, the first after `first`, the next ones after `more`. */
static void app_repl_log(struct app_repl *r, enum pager_mark mark, const char *first, const char *more,
                         const char *text, size_t len) {
    const char *before = first;
    while (len > 0) {
        const char *end = memchr(text, '\n', len);
        size_t n = end ? (size_t)(end - text) : len;
        strbuf_addc(&r->log, (char)mark);
        strbuf_adds(&r->log, before);
        strbuf_add(&r->log, text, n);
        strbuf_addc(&r->log, '\n');
        n += end != NULL;
        text += n;
        len -= n;
        before = more;
    }
    r->logged++;
}

static void app_repl_note(struct app_repl *r, enum pager_mark mark, const char *text) {
    app_repl_log(r, mark, "", "", text, strlen(text));
}

/* Above the limit, drop the older half in whole lines. */
static void app_repl_trim(struct app_repl *r) {
    if (r->log.len <= APP_REPL_LOG && !r->log.failed)
        return;
    struct strbuf kept;
    const char *text = strbuf_str(&r->log), *from = text + r->log.len / 2;
    const char *line = memchr(from, '\n', (size_t)(text + r->log.len - from));
    strbuf_init(&kept, 4 * APP_REPL_LOG);
    strbuf_addf(&kept, "%cearlier output is no longer kept\n", PAGER_MUTED);
    if (line)
        strbuf_add(&kept, line + 1, (size_t)(text + r->log.len - line - 1));
    strbuf_fini(&r->log);
    r->log = kept;
}

/* ---- asking ---- */

const char *app_repl_why_not(const struct app *a) {
    static char why[400];
    const struct data *d = &a->data;
    if (a->row_actions.readonly)
        return "--readonly: no code is run in the job";
    if (data_is_over(d))
        return "the job has ended: no code can be run in it";
    if (d->state != SESSION_CONNECTED || !d->has_target)
        return "not connected to the job: no code can be run now";
    if (d->target.mode == MODEL_MODE_AGENT)
        return NULL;
    snprintf(why, sizeof why, "running code needs an agent in the job, and there is none%s%.300s",
             d->target.mode_reason ? ": " : "", d->target.mode_reason ? d->target.mode_reason : "");
    return why;
}

const char *app_repl_why_busy(const struct app *a) {
    if (!a->repl.engine.asked)
        return NULL;
    return a->repl.engine.asked == REPL_QUERY ? "a request is running: ctrl-c ends it"
                                              : "code runs: ctrl-c ends it";
}

void app_repl_typed(struct app *a, const char *text, size_t len) {
    struct err e;
    app_repl_log(&a->repl, PAGER_STRONG, ">>> ", "... ", text, len);
    app_repl_trim(&a->repl);
    if (repl_engine_remember(&a->repl.engine, text, len, &e) != 0)
        app_message(a, true, "%s", e.text);
}

bool app_repl_begin(struct app *a, enum repl_ask what, const char *code, size_t len) {
    struct app_repl *r = &a->repl;
    struct err e;
    const char *why = what == REPL_QUERY ? NULL : app_repl_why_not(a);
    if (!why)
        why = app_repl_why_busy(a);
    if (!why && repl_engine_ask(&r->engine, what, code, len, &e) != 0)
        why = e.text;
    if (why) {
        app_refuse(a, "%s", why);
        return false;
    }
    r->began_s = a->now_s;
    a->dirty = true;
    if (what == REPL_DEBUG)
        a->host.debug(a->host.arg, a->debug.def->method, &a->debug.want);
    else if (what != REPL_QUERY) {
        struct wire_eval want = repl_engine_question(&r->engine);
        a->host.eval(a->host.arg, &want);
    }
    return true;
}

bool app_repl_ask(struct app *a, enum repl_ask what, const char *code, size_t len) {
    if (!app_repl_begin(a, what, code, len))
        return false;
    if (what == REPL_RUN)
        app_repl_typed(a, code, len);
    return true;
}

bool app_repl_runs(const struct app *a) { return a->repl.engine.asked >= REPL_RUN; }

void app_repl_say(struct app *a, enum pager_mark mark, const char *text) {
    app_repl_note(&a->repl, mark, text);
    app_repl_trim(&a->repl);
}

void app_repl_interrupt(struct app *a) {
    struct repl_engine *r = &a->repl.engine;
    r->interrupted = app_repl_runs(a);
    a->dirty = true;
    if (r->asked == REPL_QUERY)
        a->host.cancel_magic(a->host.arg);
    else if (r->interrupted)
        a->host.request(a->host.arg, WIRE_INTERRUPT);
}

/* ---- lines with % ---- */

struct app_repl_line {
    struct app *app;
    int cols;
};

static void app_repl_put(void *arg, enum repl_mark mark, const char *text, size_t len) {
    static const enum pager_mark marks[] = {[REPL_VALUE] = PAGER_PLAIN,
                                            [REPL_TRACEBACK] = PAGER_BAD,
                                            [REPL_ERROR] = PAGER_BAD,
                                            [REPL_NOTE] = PAGER_MUTED};
    struct app_repl_line *line = arg;
    app_repl_log(&line->app->repl, marks[mark], "", "", text, len);
}

static int app_repl_run_other(void *arg, const char *code, size_t len, bool timed, struct err *e) {
    struct app *a = ((struct app_repl_line *)arg)->app;
    const char *why = app_repl_why_not(a);
    if (why)
        return err_set(e, ERR_FAILED, "%s", why);
    if (app_repl_begin(a, REPL_RUN, code, len))
        a->repl.engine.timed = timed;
    return 0;
}

static int app_repl_query(void *arg, struct magic *m, struct err *e) {
    struct app_repl_line *line = arg;
    (void)e;
    if (app_repl_begin(line->app, REPL_QUERY, "", 0))
        line->app->host.run_magic(line->app->host.arg, m, line->cols);
    return 0;
}

static struct repl_face app_repl_face(struct app_repl_line *line) {
    return (struct repl_face){
        .arg = line, .put = app_repl_put, .run = app_repl_run_other, .query = app_repl_query};
}

bool app_repl_run_magic(struct app *a, const char *text, int cols) {
    struct app_repl_line line = {a, cols};
    const struct repl_face face = app_repl_face(&line);
    const char *why = app_repl_why_busy(a);
    size_t len = strlen(text);
    struct err e;
    if (why) {
        app_refuse(a, "%s", why);
        return false;
    }
    while (len > 0 && strchr(" \t\n", text[len - 1]))
        len--;
    app_repl_typed(a, text, len);
    if (repl_engine_run_magic(&a->repl.engine, text, &face, &e) != 0)
        app_repl_note(&a->repl, PAGER_BAD, err_text(&e));
    app_repl_trim(&a->repl);
    app_screen_update_all(a);
    return true;
}

/* As many whole lines of it as fit. */
static void app_repl_put_query(struct app *a, struct strbuf *text) {
    bool cut = text->len > APP_REPL_QUERY_TEXT || text->failed;
    size_t len = text->len > APP_REPL_QUERY_TEXT ? APP_REPL_QUERY_TEXT : text->len;
    while (cut && len > 0 && text->data[len - 1] != '\n')
        len--;
    if (cut && text->data)
        text->data[len] = '\0';
    app_repl_say(a, PAGER_PLAIN, strbuf_str(text));
    if (cut)
        app_repl_say(a, PAGER_MUTED, "there is more than is kept here: the SQL screen has all rows");
    strbuf_clear(&a->repl.last);
    strbuf_adds(&a->repl.last, strbuf_str(text));
}

void app_repl_take_query(struct app *a, struct querier_answer *answer) {
    bool is_well = answer->error.code == ERR_OK && !answer->cancelled;
    if (a->repl.engine.asked == REPL_QUERY) {
        if (answer->cancelled)
            app_repl_say(a, PAGER_BAD, "interrupted");
        else if (!is_well)
            app_repl_say(a, PAGER_BAD, err_text(&answer->error));
        else
            app_repl_put_query(a, &answer->text);
        if (is_well && answer->note[0])
            app_repl_say(a, PAGER_MUTED, answer->note);
        app_repl_end(a, is_well ? APP_REPL_ANSWERED : APP_REPL_REFUSED);
    }
    querier_answer_fini(answer);
}

/* ---- answers ---- */

void app_repl_end(struct app *a, enum app_repl_end end) {
    struct app_repl *r = &a->repl;
    r->ended = repl_engine_end(&r->engine);
    r->end = end;
    r->answers++;
    app_repl_trim(r);
    app_screen_update_all(a);
}

static void app_repl_take_result(struct app *a, const struct wire_evaluated *v) {
    struct app_repl *r = &a->repl;
    struct app_repl_line line = {a, 0};
    const struct repl_face face = app_repl_face(&line);
    struct err e;
    repl_engine_put(&r->engine, v, &face, &e);
    strbuf_clear(&r->last);
    strbuf_add(&r->last, v->output.s, v->output.len);
    strbuf_add(&r->last, v->result.s, v->result.len);
    strbuf_add(&r->last, v->traceback.s, v->traceback.len);
}

void app_repl_take(struct app *a, const struct wire_evaluated *what) {
    struct app_repl *r = &a->repl;
    enum repl_ask asked = r->engine.asked;
    if (asked != REPL_WHOLE && asked != REPL_NAMES && asked != REPL_RUN)
        return; /* nobody waits for it now */
    strbuf_clear(&r->names);
    if (asked == REPL_RUN)
        app_repl_take_result(a, what);
    else if (asked == REPL_WHOLE)
        r->code_state = repl_engine_read_code(&what->result);
    else if (strbuf_add(&r->names, what->result.s, what->result.len) != 0)
        strbuf_clear(&r->names);
    app_repl_end(a, APP_REPL_ANSWERED);
}

void app_repl_refused(struct app *a, const struct err *why) {
    struct app_repl *r = &a->repl;
    if (r->engine.asked == REPL_NOTHING)
        return;
    if (r->engine.asked != REPL_NAMES)
        app_repl_note(r, PAGER_BAD, err_text(why));
    app_repl_end(a, APP_REPL_REFUSED);
}

void app_repl_broke(struct app *a) {
    struct app_repl *r = &a->repl;
    bool over = data_is_over(&a->data), ran = app_repl_runs(a) && r->engine.asked != REPL_QUERY;
    struct err why;
    if (over)
        err_set(&why, ERR_LOST, "the job has ended%s", ran ? " while this ran" : "");
    else
        err_set(&why, ERR_LOST, "the connection broke%s; _ is forgotten",
                ran ? ": what ran is interrupted" : "");
    bool looks = r->engine.asked == REPL_QUERY; /* uses a connection of its own */
    if (r->log.len && (!r->engine.asked || looks))
        app_repl_note(r, PAGER_MUTED, err_text(&why));
    if (!looks)
        app_repl_refused(a, &why);
}

void app_repl_forget(struct app *a) {
    struct err why;
    err_set(&why, ERR_LOST, "another target is shown: what ran in the one before is interrupted");
    app_repl_refused(a, &why);
    a->repl.engine.want.tid = a->repl.engine.want.depth = 0; /* that was a frame of the last target */
}

bool app_repl_needs_tick(const struct app *a) { return app_repl_runs(a); }
