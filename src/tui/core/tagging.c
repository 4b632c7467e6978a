/* SPDX-License-Identifier: Apache-2.0 */
/* tagging: see tagging.h. */
#include "tui/core/tagging.h"

#include <stdio.h>
#include <stdlib.h>

#include "tui/core/app.h"
#include "tui/core/app_screen.h"
#include "tui/view/pick.h"
#include "tui/view/view.h"

/* The screen whose rows are meant: the one below overlays. */
static struct app_screen *tagging_screen(struct app *app) {
    int at = app->n_screens - 1;
    while (at > 0 && app->screens[at].def->is_overlay)
        at--;
    const struct view *v = app_screen_view(&app->screens[at]);
    return (v && v->tags) || app->screens[at].def->rows ? &app->screens[at] : NULL;
}

static struct tags *tagging_tags(struct app *app, const struct app_screen *s) {
    const struct view *v = s ? app_screen_view(s) : NULL;
    return v ? v->tags : s ? s->def->rows->tags(s->state, app) : NULL;
}

static int tagging_selected(struct app *app, const struct app_screen *s) {
    const struct view *v = app_screen_view(s);
    if (!v)
        return s->def->rows->selected(s->state, app);
    return view_row(v) && !v->in_pane ? v->list.selected : -1;
}

static uint64_t tagging_key(struct app *app, const struct app_screen *s, int row) {
    const struct view *v = app_screen_view(s);
    return v ? view_tag_key(v, v->def->row(v->owner, row)) : s->def->rows->key(s->state, app, row);
}

static void tagging_renew(struct app *app, const struct app_screen *s) {
    const struct view *v = app_screen_view(s);
    if (v)
        v->def->rebuild(v->owner, app);
    else
        s->def->rows->renew(s->state, app);
}

size_t tagging_count(struct app *app) {
    const struct tags *t = tagging_tags(app, tagging_screen(app));
    return t ? t->n : 0;
}

/* Tag the selected row and go on to the next one. */
static void tagging_toggle(struct app *app, struct app_screen *s, struct tags *t) {
    int row = tagging_selected(app, s);
    if (row < 0) {
        app_message(app, false, "select a row first");
        return;
    }
    if (!tags_toggle(t, tagging_key(app, s, row))) {
        app_refuse(app, "no more than %zu rows can be tagged", TAGS_MAX);
        return;
    }
    if (t->only)
        tagging_renew(app, s);
    else if (!s->def->rows || !s->def->rows->stays)
        app_screen_act(s, app, ACTION_DOWN);
}

bool tagging_act(struct app *app, enum action action) {
    struct app_screen *s = tagging_screen(app);
    struct tags *t = tagging_tags(app, s);
    if (!t || (action != ACTION_TAG && action != ACTION_UNTAG && action != ACTION_TAGGED))
        return false;
    if (action == ACTION_TAG) {
        tagging_toggle(app, s, t);
        return true;
    }
    if (t->n == 0) {
        app_message(app, false, "no row is tagged");
        return true;
    }
    if (action == ACTION_UNTAG)
        tags_clear(t);
    else
        t->only = !t->only;
    tagging_renew(app, s);
    app_screen_update_all(app); /* others may have the same rows */
    return true;
}

int tagging_collect(struct app *app, struct tagged *out, struct strbuf *one, struct strbuf *whole) {
    const struct app_screen *s = tagging_screen(app);
    const struct tags *t = tagging_tags(app, s);
    struct strbuf unread[2];
    *out = (struct tagged){.n = 0};
    if (!t || t->n == 0)
        return 0;
    const struct view *v = app_screen_view(s);
    const struct screen_rows *rows = s->def->rows;
    int n = v ? v->def->count(v->owner) : rows->count(s->state, app);
    out->picks = calloc((size_t)(n > 0 ? n : 0) + 1, sizeof *out->picks);
    if (!out->picks)
        return -1;
    strbuf_init(&unread[0], 1);
    strbuf_init(&unread[1], 1);
    for (int i = 0; i < n; i++) {
        if (!tags_has(t, tagging_key(app, s, i)))
            continue;
        struct screen_pick *what = &out->picks[out->n++];
        struct strbuf *short_text = one ? one : &unread[0], *long_text = whole ? whole : &unread[1];
        if (v)
            v->def->put(v->owner, v->def->row(v->owner, i), what, short_text, long_text);
        else
            rows->put(s->state, app, i, what, short_text, long_text);
        if (one)
            strbuf_addc(one, '\n');
        if (whole)
            strbuf_addc(whole, '\n');
    }
    out->hidden = t->n > out->n ? t->n - out->n : 0;
    strbuf_fini(&unread[0]);
    strbuf_fini(&unread[1]);
    return (one && one->failed) || (whole && whole->failed) ? -1 : 0;
}

void tagged_fini(struct tagged *t) {
    free(t->picks);
    *t = (struct tagged){.n = 0};
}

bool tagged_has_threads(const struct tagged *t) { return t->n && t->picks[0].tid; }

bool tagged_has_frames(const struct tagged *t) { return t->n && t->picks[0].frame; }

bool tagged_has_thread(const struct tagged *t, int64_t tid) {
    for (size_t i = 0; i < t->n; i++)
        if (t->picks[i].tid == tid && !t->picks[i].pid)
            return true;
    return false;
}

bool tagged_has_frame(const struct tagged *t, const struct model_frame *f) {
    for (size_t i = 0; i < t->n; i++) {
        const struct screen_pick *own = &t->picks[i];
        if (own->frame && pick_frame_key(own->frame, own->by) == pick_frame_key(f, own->by))
            return true;
    }
    return false;
}

void tagging_text(const struct tagged *t, char *buf, size_t cap) {
    int n = snprintf(buf, cap, "%zu tagged row%s", t->n, t->n == 1 ? "" : "s");
    if (t->hidden && n > 0 && (size_t)n < cap)
        snprintf(buf + n, cap - (size_t)n, "; %zu more %s not shown", t->hidden,
                 t->hidden == 1 ? "is" : "are");
}

bool tagging_show_only(struct app *app, bool only) {
    struct app_screen *s = tagging_screen(app);
    struct tags *t = tagging_tags(app, s);
    if (!t || t->n == 0)
        return false;
    bool was = t->only;
    t->only = only;
    if (was != only)
        tagging_renew(app, s);
    return was;
}
