/* SPDX-License-Identifier: Apache-2.0 */
/* app_repl: see app_repl.h. */
#include "tui/core/app_repl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/core/app.h"
#include "tui/core/app_message.h"
#include "tui/core/app_screen.h"

void app_repl_init(struct app_repl *r) {
    memset(r, 0, sizeof *r);
    strbuf_init(&r->code, WIRE_EVAL_CODE_MAX);
    strbuf_init(&r->answer, 1 << 20);
    strbuf_init(&r->log, 4 * APP_REPL_LOG);
    strbuf_init(&r->last, APP_REPL_LOG);
    r->want = (struct wire_eval){
        .name = "<repl>", .timeout_s = APP_REPL_TIMEOUT_S, .output_bytes = APP_REPL_OUTPUT, .keep = true};
}

void app_repl_fini(struct app_repl *r) {
    strbuf_fini(&r->code);
    strbuf_fini(&r->answer);
    strbuf_fini(&r->log);
    strbuf_fini(&r->last);
    history_fini(&r->history);
}

/* ---- what was said ---- */

/* Lines of a text, each with `first` (the next ones with `more`) before it. */
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

/* The older half goes when there is too much, whole lines of it. */
static void app_repl_trim(struct app_repl *r) {
    if (r->log.len <= APP_REPL_LOG && !r->log.failed)
        return;
    struct strbuf kept;
    const char *text = strbuf_str(&r->log), *from = text + r->log.len / 2;
    const char *line = memchr(from, '\n', (size_t)(text + r->log.len - from));
    strbuf_init(&kept, 4 * APP_REPL_LOG);
    strbuf_addf(&kept, "%cwhat was before is no longer kept\n", PAGER_MUTED);
    if (line)
        strbuf_add(&kept, line + 1, (size_t)(text + r->log.len - line - 1));
    strbuf_fini(&r->log);
    r->log = kept;
}

/* ---- asking ---- */

const char *app_repl_why_not(const struct app *a) {
    static char why[400];
    const struct data *d = &a->data;
    if (a->hands.readonly)
        return "--readonly: no code is run in the job";
    if (data_is_over(d))
        return "the job has ended: no code can be run in it";
    if (d->state != SESSION_CONNECTED || !d->has_target)
        return "not connected to the job: no code can be run now";
    if (d->target.mode == MODEL_MODE_AGENT)
        return NULL;
    snprintf(why, sizeof why, "code is run by an agent in the job, and there is none%s%.300s",
             d->target.mode_reason ? ": " : "", d->target.mode_reason ? d->target.mode_reason : "");
    return why;
}

const char *app_repl_why_busy(const struct app *a) {
    if (!a->repl.asked)
        return NULL;
    return a->repl.asked == APP_REPL_QUERY ? "a look is under way: ctrl-c ends it"
                                           : "code runs: ctrl-c ends it";
}

static void app_repl_remember(struct app *a, const char *text) {
    struct app_repl *r = &a->repl;
    struct err e;
    if (history_add(&r->history, text, &e) == 0 || r->history_failed)
        return;
    r->history_failed = true;
    app_message(a, true, "%s", e.text);
}

void app_repl_typed(struct app *a, const char *text, size_t len) {
    char *line = strndup(text, len);
    app_repl_log(&a->repl, PAGER_STRONG, ">>> ", "... ", text, len);
    app_repl_trim(&a->repl);
    if (line)
        app_repl_remember(a, line);
    free(line);
}

bool app_repl_begin(struct app *a, enum app_repl_ask what, const char *code, size_t len) {
    struct app_repl *r = &a->repl;
    const char *why = what == APP_REPL_QUERY ? NULL : app_repl_why_not(a);
    if (!why)
        why = app_repl_why_busy(a);
    if (!why && len > WIRE_EVAL_CODE_MAX)
        why = "the code is too long";
    if (!why) { /* else what is asked already keeps its own */
        strbuf_clear(&r->code);
        why = strbuf_add(&r->code, code, len) == 0 ? NULL : "out of memory for the code";
    }
    if (why) {
        app_refuse(a, "%s", why);
        return false;
    }
    r->asked = what;
    r->interrupted = r->timed = false;
    r->began_s = a->now_s;
    a->dirty = true;
    if (what == APP_REPL_DEBUG)
        a->host.debug(a->host.arg, a->told.def->method, &a->told.want);
    else if (what != APP_REPL_QUERY) {
        struct wire_eval want = app_repl_question(a);
        a->host.eval(a->host.arg, &want);
    }
    return true;
}

bool app_repl_ask(struct app *a, enum app_repl_ask what, const char *code, size_t len) {
    if (!app_repl_begin(a, what, code, len))
        return false;
    if (what == APP_REPL_RUN)
        app_repl_typed(a, code, len);
    return true;
}

bool app_repl_runs(const struct app *a) { return a->repl.asked >= APP_REPL_RUN; }

void app_repl_say(struct app *a, enum pager_mark mark, const char *text) {
    app_repl_note(&a->repl, mark, text);
    app_repl_trim(&a->repl);
}

void app_repl_interrupt(struct app *a) {
    struct app_repl *r = &a->repl;
    r->interrupted = app_repl_runs(a);
    a->dirty = true;
    if (r->asked == APP_REPL_QUERY)
        a->host.cancel_magic(a->host.arg);
    else if (r->interrupted)
        a->host.request(a->host.arg, WIRE_INTERRUPT);
}

struct wire_eval app_repl_question(const struct app *a) {
    const struct app_repl *r = &a->repl;
    struct wire_eval want = r->want;
    want.code = strbuf_str(&r->code);
    want.code_len = r->code.len;
    want.complete = r->asked != APP_REPL_RUN;
    want.whole = r->asked == APP_REPL_WHOLE;
    if (r->asked == APP_REPL_NAMES)
        want.timeout_s = APP_REPL_TYPED_S;
    return want;
}

/* ---- answers ---- */

void app_repl_end(struct app *a, enum app_repl_end end) {
    struct app_repl *r = &a->repl;
    r->ended = r->asked;
    r->end = end;
    r->asked = APP_REPL_NOTHING;
    r->answers++;
    app_repl_trim(r);
    app_update_screens(a);
}

static void app_repl_put(struct app_repl *r, const struct wire_evaluated *v) {
    char text[160];
    bool said = v->traceback.s && !v->timed_out && !v->unended;
    app_repl_log(r, PAGER_PLAIN, "", "", v->output.s, v->output.len);
    app_repl_log(r, PAGER_PLAIN, "", "", v->result.s, v->result.len);
    app_repl_log(r, PAGER_BAD, "", "", v->traceback.s, v->traceback.len);
    if (v->unended)
        app_repl_note(r, PAGER_BAD,
                      "not ended by interrupting it: it catches KeyboardInterrupt, or is in C code; it is "
                      "interrupted until it ends, and no other code is run before that");
    else if (v->timed_out) {
        snprintf(text, sizeof text, "not done within %g s: it was interrupted; %%timeout S gives it longer",
                 r->want.timeout_s);
        app_repl_note(r, PAGER_BAD, text);
    } else if (v->type.s && !said)
        app_repl_log(r, PAGER_BAD, "the code has raised ", "", v->type.s, v->type.len);
    if (r->timed) {
        snprintf(text, sizeof text, v->duration_ms < 999.5 ? "%.3g ms in the job" : "%.0f ms in the job",
                 v->duration_ms);
        app_repl_note(r, PAGER_PLAIN, text);
    }
    if (v->truncated) {
        snprintf(text, sizeof text, "what there is was cut at %d KiB", (int)(APP_REPL_OUTPUT / 1024));
        app_repl_note(r, PAGER_MUTED, text);
    }
    strbuf_clear(&r->last);
    strbuf_add(&r->last, v->output.s, v->output.len);
    strbuf_add(&r->last, v->result.s, v->result.len);
    strbuf_add(&r->last, v->traceback.s, v->traceback.len);
}

void app_repl_take(struct app *a, const struct wire_evaluated *what) {
    struct app_repl *r = &a->repl;
    if (r->asked == APP_REPL_NOTHING || r->asked == APP_REPL_QUERY || r->asked == APP_REPL_DEBUG)
        return; /* nobody waits for it any more */
    strbuf_clear(&r->answer);
    if (r->asked == APP_REPL_RUN)
        app_repl_put(r, what);
    else if (strbuf_add(&r->answer, what->result.s, what->result.len) != 0)
        strbuf_clear(&r->answer);
    app_repl_end(a, APP_REPL_ANSWERED);
}

void app_repl_refused(struct app *a, const struct err *why) {
    struct app_repl *r = &a->repl;
    if (r->asked == APP_REPL_NOTHING)
        return;
    if (r->asked != APP_REPL_NAMES)
        app_repl_note(r, PAGER_BAD, err_text(why));
    app_repl_end(a, APP_REPL_REFUSED);
}

void app_repl_broke(struct app *a) {
    struct app_repl *r = &a->repl;
    bool over = data_is_over(&a->data), ran = app_repl_runs(a) && r->asked != APP_REPL_QUERY;
    struct err why;
    if (over)
        err_set(&why, ERR_LOST, "the job has ended%s", ran ? " while this ran" : "");
    else
        err_set(&why, ERR_LOST, "the connection broke%s; _ is forgotten",
                ran ? ": what ran is interrupted" : "");
    bool looks = r->asked == APP_REPL_QUERY; /* by a connection of its own */
    if (r->log.len && (!r->asked || looks))
        app_repl_note(r, PAGER_MUTED, err_text(&why));
    if (!looks)
        app_repl_refused(a, &why);
}

void app_repl_forget(struct app *a) {
    struct err why;
    err_set(&why, ERR_LOST, "another target is shown: what ran in the one before is interrupted");
    app_repl_refused(a, &why);
    a->repl.want.tid = a->repl.want.depth = 0; /* a frame of that one */
}

bool app_repl_needs_tick(const struct app *a) { return app_repl_runs(a); }
