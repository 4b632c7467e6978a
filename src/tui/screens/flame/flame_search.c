/* SPDX-License-Identifier: Apache-2.0 */
/* flame_search: what is searched for in the Flame screen, and how much of the time it covers; see flame_state.h. Pure. */
#include <stdlib.h>
#include <string.h>

#include "tui/screens/flame/flame_state.h"

enum flame_hit { FLAME_HIT_UNKNOWN = 0, FLAME_HIT_NO, FLAME_HIT_YES };

bool flame_filter_matches(const void *arg, const struct model_frame *frame) {
    const struct match *m = arg;
    return match_text(m, frame->func) || match_text(m, frame->file);
}

/* By module the function is that of any frame: it is not looked at. */
static bool flame_matches(const struct flame_state *s, const struct model_frame *frame) {
    bool by_module = s->query.by == FLAME_BY_MODULE;
    return (!by_module && match_text(&s->search, frame->func)) || match_text(&s->search, frame->file) ||
           (frame->kind == MODEL_FRAME_NATIVE && match_text(&s->search, frame->module));
}

bool flame_is_hit(const struct flame_state *s, uint32_t node) {
    const struct model_frame *frame = flame_frame(s->flame, node);
    uint32_t at = flame_node(s->flame, node)->frame;
    if (!frame || !s->search.active)
        return false;
    if (at >= s->hits.cap)
        return flame_matches(s, frame);
    if (s->hits.known[at] == FLAME_HIT_UNKNOWN)
        s->hits.known[at] = flame_matches(s, frame) ? FLAME_HIT_YES : FLAME_HIT_NO;
    return s->hits.known[at] == FLAME_HIT_YES;
}

void flame_forget_hits(struct flame_state *s) {
    free(s->hits.known);
    memset(&s->hits, 0, sizeof s->hits);
}

/* Room for what is known of each frame; without memory each is looked at again. */
static void flame_grow_hits(struct flame_state *s) {
    size_t most = 0;
    for (uint32_t i = FLAME_FRAMELESS + 1; i < flame_count(s->flame); i++)
        if (flame_node(s->flame, i)->frame >= most)
            most = flame_node(s->flame, i)->frame + 1;
    if (most <= s->hits.cap)
        return;
    unsigned char *known = realloc(s->hits.known, 2 * most);
    if (!known)
        return;
    memset(known + s->hits.cap, FLAME_HIT_UNKNOWN, 2 * most - s->hits.cap);
    s->hits.known = known;
    s->hits.cap = 2 * most;
}

void flame_find_hits(struct flame_state *s) {
    s->hits.n = 0;
    s->hits.covered = (struct flame_weight){0, 0};
    if (!s->search.active || !flame_is_there(s))
        return;
    flame_grow_hits(s);
    uint32_t outer = FLAME_NO_NODE; /* the hit that is walked through */
    for (uint32_t at = s->zoom; at != FLAME_NO_NODE;) {
        const struct flame_node *n = flame_node(s->flame, at);
        bool is_empty = flame_amount(s->flame, n->total) <= 0;
        if (!is_empty && flame_is_hit(s, at)) {
            s->hits.n++;
            if (outer == FLAME_NO_NODE || !flame_is_above(s->flame, outer, at)) {
                outer = at;
                s->hits.covered.ns += n->total.ns;
                s->hits.covered.samples += n->total.samples;
            }
        }
        at = flame_walk(s->flame, s->zoom, at, is_empty);
    }
}

bool flame_search_step(struct flame_state *s, int step) {
    uint32_t first = FLAME_NO_NODE, before = FLAME_NO_NODE, after = FLAME_NO_NODE, last = FLAME_NO_NODE;
    bool is_passed = false;
    if (!flame_is_there(s))
        return false;
    for (uint32_t at = s->zoom; at != FLAME_NO_NODE;) {
        bool is_empty = flame_amount(s->flame, flame_node(s->flame, at)->total) <= 0;
        bool is_hit = !is_empty && flame_is_hit(s, at);
        if (at == s->selected && is_hit && step == 0)
            return true;
        if (is_hit && first == FLAME_NO_NODE)
            first = at;
        if (is_hit && at != s->selected && !is_passed)
            before = at;
        if (is_hit && is_passed && after == FLAME_NO_NODE)
            after = at;
        is_passed = is_passed || at == s->selected;
        last = is_hit ? at : last;
        at = flame_walk(s->flame, s->zoom, at, is_empty);
    }
    if (first == FLAME_NO_NODE)
        return false;
    uint32_t to = step < 0 ? (is_passed && before != FLAME_NO_NODE ? before : last)
                           : (after != FLAME_NO_NODE ? after : first);
    flame_select(s, to);
    return true;
}
