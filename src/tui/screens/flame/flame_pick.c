/* SPDX-License-Identifier: Apache-2.0 */
/* flame_pick: what is selected in the flame graph, for other parts of the program; and going to what they have selected. */
#include <string.h>

#include "tui/core/pick.h"
#include "tui/screens/flame/flame_state.h"

#define FLAME_PICK_DEPTH 2048 /* frames of a stack; the innermost when there are more */

/* A node and its callers, innermost first, a line each. */
static void flame_put_stack(const struct flame_state *s, uint32_t node, struct strbuf *out) {
    for (int i = 0; node != FLAME_NO_NODE && node != FLAME_ROOT && i < FLAME_PICK_DEPTH; i++) {
        const struct model_frame *f = flame_frame(s->flame, node);
        if (f)
            pick_put_frame(out, f);
        (void)strbuf_addc(out, '\n');
        node = flame_node(s->flame, node)->parent;
    }
}

bool flame_pick(const void *state, const struct app *app, struct screen_pick *what, struct strbuf *one,
                struct strbuf *whole) {
    const struct flame_state *s = state;
    const struct model_frame *f = flame_is_there(s) ? flame_frame(s->flame, s->selected) : NULL;
    (void)app;
    if (!f)
        return false;
    what->tid = s->query.tid;
    what->frame = f;
    pick_put_frame(one, f);
    flame_put_stack(s, s->selected, whole);
    return true;
}

void flame_choose(const void *state, struct screen_choice *out) {
    const struct flame_state *s = state;
    out->query = s->query;
    out->filter = s->filter.active ? s->filter.text : NULL;
    out->name_module = flame_module_name;
}

static bool flame_same(const char *a, const char *b) { return strcmp(a ? a : "", b ? b : "") == 0; }

/* The widest node of a frame's function; FLAME_NO_NODE when there is none. */
static uint32_t flame_find_function(const struct flame_state *s, const struct model_frame *f) {
    uint32_t found = FLAME_NO_NODE;
    int64_t widest = 0;
    for (uint32_t i = FLAME_FRAMELESS + 1; flame_is_there(s) && i < flame_count(s->flame); i++) {
        const struct model_frame *own = flame_frame(s->flame, i);
        int64_t amount = flame_amount(s->flame, flame_node(s->flame, i)->total);
        if (own && amount > widest && own->kind == f->kind && flame_same(own->file, f->file) &&
            (s->query.by == FLAME_BY_MODULE || flame_same(own->func, f->func))) {
            found = i;
            widest = amount;
        }
    }
    return found;
}

bool flame_show(void *state, struct app *app, const struct screen_pick *what) {
    struct flame_state *s = state;
    s->query.tid = what->tid;
    flame_rebuild(s, app);
    uint32_t node = what->frame ? flame_find_function(s, what->frame) : s->selected;
    if (what->frame && node == FLAME_NO_NODE && s->query.time != FLAME_ALL_TIME) {
        s->query.time = FLAME_ALL_TIME; /* it may only wait */
        flame_rebuild(s, app);
        node = flame_find_function(s, what->frame);
    }
    if (!flame_is_there(s) || node == FLAME_NO_NODE)
        return false;
    if (!flame_is_above(s->flame, s->zoom, node))
        flame_zoom_to(s, FLAME_ROOT);
    flame_select(s, node);
    return true;
}
