/* SPDX-License-Identifier: Apache-2.0 */
/* tagging: see tagging.h. */
#include "tui/core/tagging.h"

#include <stdio.h>
#include <stdlib.h>

#include "tui/core/app.h"
#include "tui/core/pick.h"

/* The screen whose rows are meant: what lies over it asks about it. */
static struct app_screen *tagging_screen(struct app *app) {
    int at = app->n_screens - 1;
    while (at > 0 && app->screens[at].def->is_overlay)
        at--;
    return app->screens[at].def->rows ? &app->screens[at] : NULL;
}

static struct tags *tagging_tags(struct app *app, const struct app_screen *s) {
    return s ? s->def->rows->tags(s->state, app) : NULL;
}

size_t tagging_count(struct app *app) {
    const struct tags *t = tagging_tags(app, tagging_screen(app));
    return t ? t->n : 0;
}

/* Tag the selected row and go on to the next one. */
static void tagging_toggle(struct app *app, struct app_screen *s, struct tags *t) {
    const struct screen_rows *rows = s->def->rows;
    int row = rows->selected(s->state, app);
    if (row < 0) {
        app_message(app, false, "nothing is selected that could be tagged");
        return;
    }
    if (!tags_toggle(t, rows->key(s->state, app, row))) {
        app_refuse(app, "no more than %zu rows can be tagged", TAGS_MAX);
        return;
    }
    if (t->only)
        rows->renew(s->state, app);
    else if (s->def->act && !rows->stays)
        (void)s->def->act(s->state, app, ACTION_DOWN);
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
    s->def->rows->renew(s->state, app);
    app_update_screens(app); /* others may have the same rows */
    return true;
}

int tagging_collect(struct app *app, struct tagged *out, struct strbuf *one, struct strbuf *whole) {
    const struct app_screen *s = tagging_screen(app);
    const struct tags *t = tagging_tags(app, s);
    struct strbuf unread[2];
    *out = (struct tagged){.n = 0};
    if (!t || t->n == 0)
        return 0;
    const struct screen_rows *rows = s->def->rows;
    int n = rows->count(s->state, app);
    out->picks = calloc((size_t)(n > 0 ? n : 0) + 1, sizeof *out->picks);
    if (!out->picks)
        return -1;
    strbuf_init(&unread[0], 1);
    strbuf_init(&unread[1], 1);
    for (int i = 0; i < n; i++) {
        if (!tags_has(t, rows->key(s->state, app, i)))
            continue;
        rows->put(s->state, app, i, &out->picks[out->n++], one ? one : &unread[0],
                  whole ? whole : &unread[1]);
        if (one)
            (void)strbuf_addc(one, '\n');
        if (whole)
            (void)strbuf_addc(whole, '\n');
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
        (void)snprintf(buf + n, cap - (size_t)n, "; %zu more %s not shown", t->hidden,
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
        s->def->rows->renew(s->state, app);
    return was;
}
