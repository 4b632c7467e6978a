/* SPDX-License-Identifier: Apache-2.0 */
/* row_actions: see row_actions.h. */
#include "tui/core/row_actions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/core/action_table.h"
#include "tui/core/app.h"
#include "tui/core/app_screen.h"
#include "tui/view/pick.h"
#include "tui/core/tagging.h"

void row_actions_init(struct row_actions *h) { h->menu_row = h->menu_col = -1; }

/* What is selected on a screen, and its texts; false: nothing. The caller frees the texts in any
 * case. */
static bool row_actions_pick(struct app *app, const struct app_screen *s, struct screen_pick *what,
                             struct strbuf *one, struct strbuf *whole) {
    *what = (struct screen_pick){.tid = 0};
    strbuf_init(one, PICK_MAX);
    strbuf_init(whole, PICK_MAX);
    return app_screen_pick(s, app, what, one, whole);
}

bool row_actions_can(struct app *app, const struct app_screen *s, enum action action) {
    struct screen_pick what;
    struct strbuf one, whole;
    bool picked = row_actions_pick(app, s, &what, &one, &whole), can;
    switch ((int)action) {
    case ACTION_COPY:
        can = picked && one.len > 0;
        break;
    case ACTION_COPY_ROW:
        can = picked && whole.len > 0;
        break;
    case ACTION_EDIT_FILE:
        can = picked && what.frame && what.frame->file;
        break;
    case ACTION_ROW_IN_FLAME:
    case ACTION_ROW_IN_TOP:
        can = picked && !what.pid && (what.tid || what.frame);
        break;
    case ACTION_UNTAG:
    case ACTION_TAGGED:
        can = tagging_count(app) > 0;
        break;
    case ACTION_ROW_IN_THREADS:
        can = picked && what.tid;
        break;
    case ACTION_OPEN_CHILD:
        can = what.pid > 0 || app->came_from > 0;
        break;
    default:
        can = picked;
    }
    strbuf_fini(&one);
    strbuf_fini(&whole);
    return can;
}

static bool row_actions_copy(struct app *app, const char *what, const struct strbuf *text) {
    if (!text->len || text->failed)
        return false;
    app->host.copy(app->host.arg, what, strbuf_str(text), text->len);
    return true;
}

static bool row_actions_edit(struct app *app, const struct screen_pick *what) {
    if (!what->frame)
        return false;
    if (!what->frame->file) {
        app_refuse(app, "the file of this frame is not known");
        return true;
    }
    pid_t pid = data_is_recorded(&app->data) || data_is_over(&app->data) ? 0
                : what->pid                                              ? what->pid
                                                                         : app->pid;
    app->host.edit(app->host.arg, pid, what->frame->file, what->frame->line);
    return true;
}

/* Copy tagged rows; false: there are none. */
static bool row_actions_copy_tagged(struct app *app, enum action action) {
    struct tagged t;
    struct strbuf one, whole;
    char what[64];
    strbuf_init(&one, PICK_MAX);
    strbuf_init(&whole, PICK_MAX);
    bool is_short = tagging_collect(app, &t, &one, &whole) != 0;
    const struct strbuf *text = action == ACTION_COPY || !whole.len ? &one : &whole;
    tagging_text(&t, what, sizeof what);
    bool done = t.n + t.hidden > 0;
    if (done && is_short)
        app_message(app, true, "memory is short for %s", what);
    else if (done && !row_actions_copy(app, what, text))
        app_message(app, false, "none of the tagged rows is shown: A shows all");
    tagged_fini(&t);
    strbuf_fini(&one);
    strbuf_fini(&whole);
    return done;
}

/* Open another screen and show there what is selected here. */
static bool row_actions_show(struct app *app, const struct screen_pick *what, enum action screen) {
    if (!what->tid && (!what->frame || screen == ACTION_SHOW_THREADS))
        return false;
    if (what->pid) {
        app_refuse(app, "samples are of the target alone: C opens the child that this thread is of");
        return true;
    }
    if (!app_screen_open(app, screen))
        return true;
    struct app_screen *s = app_screen_top(app);
    bool is_hidden =
        what->frame && what->frame->kind == MODEL_FRAME_NATIVE && !app_screen_shows_native(app, s->def->keys);
    if (!s->def->show || !s->def->show(s->state, app, what))
        app_message(app, false,
                    screen == ACTION_SHOW_THREADS ? "the thread has ended"
                    : is_hidden                   ? "native frames are hidden here: c shows them"
                                                  : "there are no samples of it yet");
    return true;
}

bool row_actions_act(struct app *app, enum action action) {
    struct app_screen *s = app_screen_top(app);
    struct screen_pick what;
    struct strbuf one, whole;
    bool done;
    if (action != ACTION_COPY && action != ACTION_COPY_ROW && action != ACTION_EDIT_FILE &&
        action != ACTION_ROW_IN_FLAME && action != ACTION_ROW_IN_TOP && action != ACTION_ROW_IN_THREADS)
        return false;
    if ((action == ACTION_COPY || action == ACTION_COPY_ROW) && row_actions_copy_tagged(app, action))
        return true;
    bool picked = row_actions_pick(app, s, &what, &one, &whole);
    if (!picked)
        done = false;
    else if (action == ACTION_COPY)
        done = row_actions_copy(app, what.frame ? "the frame" : "the value", &one);
    else if (action == ACTION_COPY_ROW)
        done = row_actions_copy(app, what.frame ? "the stack" : "the row", &whole);
    else if (action == ACTION_EDIT_FILE)
        done = row_actions_edit(app, &what);
    else
        done = row_actions_show(app, &what,
                                action == ACTION_ROW_IN_FLAME ? ACTION_SHOW_FLAME
                                : action == ACTION_ROW_IN_TOP ? ACTION_SHOW_TOP
                                                              : ACTION_SHOW_THREADS);
    strbuf_fini(&one);
    strbuf_fini(&whole);
    if (!done)
        app_message(app, false, "select a row first");
    return true;
}

bool row_actions_refuses(struct app *app, enum action action) {
    struct app_screen *s = app_screen_top(app);
    const struct action_def *row = action_row(action, screen_context(s->def, s->state));
    if (!app->row_actions.readonly || !row || !(row->contexts & ACTION_CHANGES))
        return false;
    app_refuse(app, "--readonly: %s would run code in the job or change it", row->name);
    return true;
}
