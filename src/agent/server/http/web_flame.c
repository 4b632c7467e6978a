/* SPDX-License-Identifier: Apache-2.0 */
/* web_flame: see web_flame.h. */
#include "agent/server/http/web_flame.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/server/http/web_flame_internal.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/path.h"
#include "base/text.h"

#define WEB_FLAME_NAMES ((size_t)2 * 1024 * 1024) /* bytes of names */
#define WEB_FLAME_IDS ((size_t)1 << 18)           /* of stacks and of frames that one epoch may have */
#define WEB_FLAME_BUCKETS 4096
#define WEB_FLAME_NAME 1024

struct web_flame *web_flame_new(int64_t tid) {
    struct web_flame *f = calloc(1, sizeof *f);
    if (!f)
        return NULL;
    f->tid = tid;
    arena_init(&f->names, WEB_FLAME_NAMES);
    f->nodes = calloc(WEB_FLAME_NODES, sizeof *f->nodes);
    f->buckets = calloc(WEB_FLAME_BUCKETS, sizeof *f->buckets);
    if (!f->nodes || !f->buckets) {
        web_flame_free(f);
        return NULL;
    }
    f->n_nodes = 1; /* the root */
    return f;
}

void web_flame_free(struct web_flame *f) {
    if (!f)
        return;
    arena_fini(&f->names);
    free(f->nodes);
    free(f->buckets);
    free(f->frames.of);
    free(f->stacks.of);
    free(f);
}

size_t web_flame_bytes(const struct web_flame *f) {
    return f ? sizeof *f + f->names.used + WEB_FLAME_NODES * sizeof *f->nodes +
                   WEB_FLAME_BUCKETS * sizeof *f->buckets + (f->frames.cap + f->stacks.cap) * sizeof(uint32_t)
             : 0;
}

/* ---- ids of the stream, and what they are here ---- */

static uint32_t web_flame_of(const struct web_flame_ids *ids, uint32_t id) {
    return id < ids->cap ? ids->of[id] : WEB_FLAME_NONE;
}

static int web_flame_set(struct web_flame_ids *ids, uint32_t id, uint32_t what) {
    if (id >= WEB_FLAME_IDS)
        return 0; /* it stays unknown, and what uses it is left out */
    if (id >= ids->cap) {
        size_t cap = ids->cap ? ids->cap : 1024;
        while (cap <= id)
            cap *= 2;
        uint32_t *of = realloc(ids->of, cap * sizeof *of);
        if (!of)
            return -1;
        memset(of + ids->cap, 0, (cap - ids->cap) * sizeof *of);
        ids->of = of;
        ids->cap = cap;
    }
    ids->of[id] = what;
    return 0;
}

static void web_flame_forget(struct web_flame_ids *ids) {
    if (ids->of)
        memset(ids->of, 0, ids->cap * sizeof *ids->of);
}

/* ---- functions ---- */

static uint64_t web_flame_hash(const char *s) { return s ? hash_bytes(s, strlen(s)) : 0; }

/* The number of a function among those that are known, counted from 1; NONE: there is no room. */
static uint32_t web_flame_function(struct web_flame *f, const struct model_frame *frame) {
    uint64_t hash = web_flame_hash(frame->func) * 31 + web_flame_hash(frame->file);
    for (uint32_t i = 0; i < f->n_functions; i++) /* few, and asked for once each */
        if (f->functions[i].hash == hash && text_compare(f->functions[i].func, frame->func) == 0 &&
            text_compare(f->functions[i].file, frame->file) == 0)
            return i + 1;
    if (f->n_functions == WEB_FLAME_FUNCTIONS)
        return WEB_FLAME_NONE;
    struct web_flame_function *g = &f->functions[f->n_functions];
    g->func = arena_strdup(&f->names, frame->func);
    g->file = arena_strdup(&f->names, frame->file);
    if ((frame->func && !g->func) || (frame->file && !g->file))
        return WEB_FLAME_NONE;
    g->hash = hash;
    return ++f->n_functions;
}

/* The callee `function` of a node, which is made where there is none; NONE: there is no room. */
static uint32_t web_flame_callee(struct web_flame *f, uint32_t parent, uint32_t function) {
    uint32_t *bucket = &f->buckets[(parent * 31 + function * 2654435761U) % WEB_FLAME_BUCKETS];
    for (uint32_t i = *bucket; i; i = f->nodes[i].in_bucket)
        if (f->nodes[i].parent == parent && f->nodes[i].function == function)
            return i;
    if (f->n_nodes == WEB_FLAME_NODES || f->nodes[parent].depth + 1 >= WEB_FLAME_DEPTH)
        return WEB_FLAME_NONE;
    uint32_t n = f->n_nodes++;
    f->nodes[n] = (struct web_flame_node){.parent = parent,
                                          .function = function,
                                          .depth = f->nodes[parent].depth + 1,
                                          .in_bucket = *bucket,
                                          .sibling = f->nodes[parent].child};
    f->nodes[parent].child = n;
    *bucket = n;
    return n;
}

static int web_flame_define(struct web_flame *f, const struct model_sample_batch *b) {
    if (b->epoch != f->epoch) {
        web_flame_forget(&f->frames);
        web_flame_forget(&f->stacks);
        f->epoch = b->epoch;
    }
    for (size_t i = 0; i < b->n_frames; i++)
        if (web_flame_set(&f->frames, b->frames[i].frame_id, web_flame_function(f, &b->frames[i].frame)) != 0)
            return -1;
    for (size_t i = 0; i < b->n_stacks; i++) {
        const struct model_stack_def *d = &b->stacks[i];
        uint32_t above = d->parent_id ? web_flame_of(&f->stacks, d->parent_id) : WEB_FLAME_ROOT + 1;
        uint32_t function = web_flame_of(&f->frames, d->frame_id), node = WEB_FLAME_NONE;
        if (above != WEB_FLAME_NONE && function != WEB_FLAME_NONE)
            node = web_flame_callee(f, above - 1, function);
        if (web_flame_set(&f->stacks, d->stack_id, node == WEB_FLAME_NONE ? 0 : node + 1) != 0)
            return -1;
    }
    return 0;
}

static void web_flame_count(struct web_flame *f, const struct model_sample *s, double us) {
    if (f->tid && s->tid != f->tid)
        return;
    f->samples++;
    us = us > 0 && us <= 1e9 ? us : 0;
    if (s->torn) {
        f->torn++;
        return;
    }
    if (!s->stack_id) {
        f->frameless++;
        return;
    }
    uint32_t node = web_flame_of(&f->stacks, s->stack_id);
    if (node == WEB_FLAME_NONE) {
        f->left_out++;
        return;
    }
    f->nodes[node - 1].samples++;
    f->nodes[node - 1].on_cpu += s->on_cpu == 1;
    f->nodes[node - 1].us += us;
}

int web_flame_add(struct web_flame *f, const struct model_sample_batch *b) {
    if (web_flame_define(f, b) != 0)
        return -1;
    for (size_t i = 0; i < b->n_samples; i++)
        web_flame_count(f, &b->samples[i], b->us ? b->us[i] : b->period_us);
    f->dropped = b->dropped;
    return 0;
}

/* ---- as text ---- */

void web_flame_name(const struct web_flame *f, uint32_t node, struct strbuf *out) {
    const struct web_flame_function *g = &f->functions[f->nodes[node].function - 1];
    (void)strbuf_addf(out, "%s (%s)", g->func ? g->func : "?", g->file ? path_short(g->file) : "?");
}

/* Nodes from the outermost to this one, at most WEB_FLAME_DEPTH. */
static size_t web_flame_path(const struct web_flame *f, uint32_t node, uint32_t *path) {
    size_t depth = f->nodes[node].depth, i = depth;
    for (uint32_t at = node; at != WEB_FLAME_ROOT && i > 0; at = f->nodes[at].parent)
        path[--i] = at;
    return depth;
}

/* A name as the form has it: a line a stack, parts between semicolons. */
static void web_flame_put_part(const struct web_flame *f, uint32_t node, struct strbuf *out) {
    char clean[WEB_FLAME_NAME];
    struct strbuf name;
    strbuf_init(&name, WEB_FLAME_NAME);
    web_flame_name(f, node, &name);
    (void)text_sanitize(clean, sizeof clean, strbuf_str(&name));
    for (char *c = strchr(clean, ';'); c; c = strchr(c, ';'))
        *c = ':';
    (void)strbuf_adds(out, clean);
    strbuf_fini(&name);
}

void web_flame_put_folded(const struct web_flame *f, struct strbuf *out) {
    uint32_t path[WEB_FLAME_DEPTH];
    for (uint32_t n = 1; n < f->n_nodes; n++) {
        size_t depth = f->nodes[n].samples ? web_flame_path(f, n, path) : 0;
        for (size_t i = 0; i < depth; i++) {
            if (i)
                (void)strbuf_addc(out, ';');
            web_flame_put_part(f, path[i], out);
        }
        if (depth)
            (void)strbuf_addf(out, " %" PRIu64 "\n", f->nodes[n].samples);
    }
}

static void web_flame_put_stack(const struct web_flame *f, uint32_t node, struct json *j) {
    uint32_t path[WEB_FLAME_DEPTH];
    size_t depth = web_flame_path(f, node, path);
    json_object_begin(j);
    json_kv_uint(j, "samples", f->nodes[node].samples);
    json_kv_uint(j, "on_cpu_samples", f->nodes[node].on_cpu);
    json_kv_number(j, "duration_us", f->nodes[node].us, 0);
    json_key(j, "frames");
    json_array_begin(j);
    for (size_t i = depth; i-- > 0;) { /* innermost first, as everywhere */
        const struct web_flame_function *g = &f->functions[f->nodes[path[i]].function - 1];
        json_object_begin(j);
        json_kv_string(j, "func", g->func);
        json_kv_string(j, "file", g->file);
        json_object_end(j);
    }
    json_array_end(j);
    json_object_end(j);
}

void web_flame_put_json(const struct web_flame *f, const struct model_target *t, double elapsed_s,
                        struct strbuf *out) {
    struct json j;
    json_init(&j, out, 0);
    json_object_begin(&j);
    json_kv_int(&j, "schema_version", 1);
    json_kv_int(&j, "pid", t->pid);
    json_kv_number(&j, "duration_s", elapsed_s, 3);
    json_kv_uint(&j, "samples", f->samples);
    json_kv_uint(&j, "torn", f->torn);
    json_kv_uint(&j, "without_python", f->frameless);
    json_kv_uint(&j, "left_out", f->left_out);
    json_kv_uint(&j, "dropped", f->dropped);
    json_key(&j, "stacks");
    json_array_begin(&j);
    for (uint32_t n = 1; n < f->n_nodes; n++)
        if (f->nodes[n].samples)
            web_flame_put_stack(f, n, &j);
    json_array_end(&j);
    json_object_end(&j);
    (void)strbuf_addc(out, '\n');
}
