/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flame_tags: frames that are tagged in the Flame screen, wherever they are in the tree: a function, or a line or a module where cells are
 * those; they are the same as in Top. Shown alone, it is stacks with one of them, as exports have them. Pure.
 */
#include <stdlib.h>

#include "tui/core/pick.h"
#include "tui/screens/flame/flame_state.h"

bool flame_is_tagged(const struct flame_state *s, uint32_t node) {
    const struct model_frame *f = s->tags->n ? flame_frame(s->flame, node) : NULL;
    return f && tags_has(s->tags, pick_frame_key(f, s->query.by));
}

static bool flame_keeps(const void *arg, const struct model_frame *f) {
    const struct flame_state *s = arg;
    return tags_has(s->tags, pick_frame_key(f, s->query.by));
}

bool flame_has_other_tags(const struct flame_state *s) {
    return s->tagged_only != s->tags->only || (s->tagged_only && s->tag_changes != s->tags->changes);
}

void flame_choose_tagged(struct flame_state *s) {
    s->tagged_only = s->tags->only;
    s->tag_changes = s->tags->changes;
    s->query.kept = (struct flame_filter){0};
    if (s->tagged_only) /* what is kept depends on both */
        s->query.kept = (struct flame_filter){
            .matches = flame_keeps, .arg = s, .version = s->tag_changes * FLAME_BYS + s->query.by};
}

/* ---- rows: frames that have time ---- */

static int flame_compare_frames(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void flame_find_shown(struct flame_state *s) {
    size_t n = flame_is_there(s) ? flame_count(s->flame) : 0, kept = 0;
    free(s->shown.frames);
    s->shown.frames = malloc((n + 1) * sizeof *s->shown.frames);
    s->shown.n = 0;
    if (!s->shown.frames)
        return;
    for (uint32_t i = FLAME_FRAMELESS + 1; i < n; i++)
        if (flame_amount(s->flame, flame_node(s->flame, i)->total) > 0)
            s->shown.frames[s->shown.n++] = flame_node(s->flame, i)->frame;
    if (s->shown.n)
        qsort(s->shown.frames, s->shown.n, sizeof *s->shown.frames, flame_compare_frames);
    for (size_t i = 0; i < s->shown.n; i++)
        if (i == 0 || s->shown.frames[i] != s->shown.frames[i - 1])
            s->shown.frames[kept++] = s->shown.frames[i];
    s->shown.n = kept;
}

static struct tags *flame_tags(void *state, struct app *app) {
    flame_find_shown(state);
    return &app->functions;
}

static int flame_count_shown(const void *state, const struct app *app) {
    (void)app;
    return (int)((const struct flame_state *)state)->shown.n;
}

static int flame_selected_shown(const void *state, const struct app *app) {
    const struct flame_state *s = state;
    (void)app;
    if (!s->shown.n || !flame_is_there(s) || !flame_frame(s->flame, s->selected))
        return -1;
    const uint32_t *at = bsearch(&flame_node(s->flame, s->selected)->frame, s->shown.frames, s->shown.n,
                                 sizeof *s->shown.frames, flame_compare_frames);
    return at ? (int)(at - s->shown.frames) : -1;
}

static const struct model_frame *flame_shown_frame(const struct flame_state *s, int row) {
    return flame_known_frame(s->flame, s->shown.frames[row]);
}

static uint64_t flame_key(const void *state, const struct app *app, int row) {
    const struct flame_state *s = state;
    (void)app;
    return pick_frame_key(flame_shown_frame(s, row), s->query.by);
}

/* Has a node a caller that is the same? */
static bool flame_recurs(const struct flame_state *s, uint32_t node) {
    uint32_t frame = flame_node(s->flame, node)->frame;
    for (uint32_t at = flame_node(s->flame, node)->parent; at != FLAME_ROOT;
         at = flame_node(s->flame, at)->parent)
        if (flame_node(s->flame, at)->frame == frame)
            return true;
    return false;
}

/* What all its cells have, what is below one of them once. */
static void flame_weigh_frame(const struct flame_state *s, uint32_t frame, struct flame_weight *own,
                              struct flame_weight *total) {
    *own = *total = (struct flame_weight){0, 0};
    for (uint32_t i = FLAME_FRAMELESS + 1; i < flame_count(s->flame); i++) {
        const struct flame_node *n = flame_node(s->flame, i);
        if (n->frame != frame)
            continue;
        own->ns += n->self.ns;
        own->samples += n->self.samples;
        if (flame_recurs(s, i))
            continue;
        total->ns += n->total.ns;
        total->samples += n->total.samples;
    }
}

static void flame_put(const void *state, const struct app *app, int row, struct screen_pick *what,
                      struct strbuf *one, struct strbuf *whole) {
    const struct flame_state *s = state;
    const struct model_frame *f = flame_shown_frame(s, row);
    struct flame_weight own, total, all = flame_node(s->flame, FLAME_ROOT)->total;
    struct strbuf name;
    (void)app;
    *what = (struct screen_pick){.frame = f, .by = s->query.by};
    strbuf_init(&name, PICK_MAX);
    if (s->query.by == FLAME_BY_MODULE)
        pick_put_text(&name, flame_module_text(f) ? flame_module_text(f) : "?");
    else
        pick_put_frame(&name, f);
    flame_weigh_frame(s, s->shown.frames[row], &own, &total);
    (void)strbuf_adds(one, strbuf_str(&name));
    (void)strbuf_addf(whole, "own %.1f%% total %.1f%% %s", flame_share(s, own, all),
                      flame_share(s, total, all), strbuf_str(&name));
    strbuf_fini(&name);
}

static void flame_renew(void *state, struct app *app) { flame_rebuild(state, app); }

const struct screen_rows flame_tagged = {.tags = flame_tags,
                                         .count = flame_count_shown,
                                         .selected = flame_selected_shown,
                                         .key = flame_key,
                                         .put = flame_put,
                                         .stays = true,
                                         .renew = flame_renew};
