/* SPDX-License-Identifier: Apache-2.0 */
/* app_magic: see app_magic.h. */
#include "tui/core/app_magic.h"

#include <stdio.h>
#include <string.h>

#include "client/sql/magic_query.h"
#include "tui/core/app.h"
#include "tui/core/app_message.h"
#include "tui/core/app_repl.h"
#include "tui/core/app_screen.h"
#include "tui/view/pager.h"

/* Have code run that is not what was typed. */
static void app_magic_run_code(struct app *a, const struct magic *m) {
    const char *why = app_repl_why_not(a);
    if (why)
        app_repl_say(a, PAGER_BAD, why);
    else if (app_repl_begin(a, APP_REPL_RUN, strbuf_str(&m->text), m->text.len))
        a->repl.timed = m->timed;
}

static void app_magic_query(struct app *a, struct magic *m, int cols) {
    if (!app_repl_begin(a, APP_REPL_QUERY, "", 0))
        return;
    a->host.run_magic(a->host.arg, m, cols);
}

bool app_magic_run(struct app *a, const char *line, int cols) {
    const char *why = app_repl_why_busy(a);
    size_t len = strlen(line);
    struct magic m;
    struct err e;
    if (why) {
        app_refuse(a, "%s", why);
        return false;
    }
    while (len > 0 && strchr(" \t\n", line[len - 1]))
        len--;
    app_repl_typed(a, line, len);
    if (magic_read(&m, line, &a->repl.want, &e) != 0)
        app_repl_say(a, PAGER_BAD, err_text(&e));
    else if (m.kind == MAGIC_RUN)
        app_magic_run_code(a, &m);
    else if (magic_is_query(&m))
        app_magic_query(a, &m, cols);
    else
        app_repl_say(a, PAGER_PLAIN, strbuf_str(&m.text));
    magic_fini(&m);
    app_update_screens(a);
    return true;
}

/* Whole lines of it, as many as there is room for. */
static void app_magic_put(struct app *a, struct strbuf *text) {
    bool cut = text->len > APP_MAGIC_TEXT || text->failed;
    size_t len = text->len > APP_MAGIC_TEXT ? APP_MAGIC_TEXT : text->len;
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

void app_magic_take(struct app *a, struct querier_answer *answer) {
    struct app_repl *r = &a->repl;
    bool is_well = answer->error.code == ERR_OK && !answer->cancelled;
    if (r->asked == APP_REPL_QUERY) {
        if (answer->cancelled)
            app_repl_say(a, PAGER_BAD, "interrupted");
        else if (!is_well)
            app_repl_say(a, PAGER_BAD, err_text(&answer->error));
        else
            app_magic_put(a, &answer->text);
        if (is_well && answer->note[0])
            app_repl_say(a, PAGER_MUTED, answer->note);
        app_repl_end(a, is_well ? APP_REPL_ANSWERED : APP_REPL_REFUSED);
    }
    querier_answer_fini(answer);
}
