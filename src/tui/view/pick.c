/* SPDX-License-Identifier: Apache-2.0 */
/* pick: see pick.h. */
#include "tui/view/pick.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "tui/model/data.h"

void pick_put_text(struct strbuf *out, const char *text) {
    size_t cap = strlen(text) * 3 + 1; /* a byte may become U+FFFD */
    char *clean = malloc(cap);
    if (!clean) {
        out->failed = true;
        return;
    }
    strbuf_add(out, clean, text_sanitize(clean, cap, text));
    free(clean);
}

void pick_put_frame(struct strbuf *out, const struct model_frame *f) {
    const char *where = f->file ? f->file : f->module;
    if (where) {
        pick_put_text(out, where);
        if (f->file && f->line > 0)
            strbuf_addf(out, ":%d", f->line);
        else if (!f->file && !f->func)
            strbuf_addf(out, "+0x%" PRIx64, f->address);
    }
    if (f->func) {
        strbuf_adds(out, where ? " " : "");
        pick_put_text(out, f->func);
    } else if (!where)
        strbuf_addf(out, "0x%" PRIx64, f->address);
}

static uint64_t pick_hash(uint64_t h, const char *text) {
    return hash_mix(h ^ (text ? hash_bytes(text, strlen(text)) : 1));
}

uint64_t pick_frame_key(const struct model_frame *f, enum flame_by by) {
    if (by == FLAME_BY_MODULE)
        return pick_hash((uint64_t)by, sample_flame_module(f));
    uint64_t h = pick_hash(hash_mix((uint64_t)by << 8 | (uint64_t)f->kind), f->func);
    h = pick_hash(h, f->file);
    if (f->kind == MODEL_FRAME_NATIVE) /* without a name, the address identifies it */
        h = hash_mix(pick_hash(h, f->module) ^ (f->func ? 0 : f->address));
    return by == FLAME_BY_LINE ? hash_mix(h ^ (uint64_t)f->line) : h;
}

void pick_put_stack(struct strbuf *out, const struct model_thread *t) {
    strbuf_addf(out, "%" PRId64 " ", t->tid);
    pick_put_text(out, data_thread_name(t));
    strbuf_addf(out, " %c%s\n", t->state,
                t->torn ? ", moved while it was read" : (t->truncated ? ", outermost frames left out" : ""));
    for (size_t i = 0; i < t->n_frames; i++) {
        if (t->frames[i].kind == MODEL_FRAME_ENTRY)
            continue;
        strbuf_adds(out, "  ");
        pick_put_frame(out, &t->frames[i]);
        strbuf_addc(out, '\n');
    }
}
