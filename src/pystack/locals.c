/* SPDX-License-Identifier: Apache-2.0 */
/*
 * locals: see locals.h.
 *
 * Variables lie in the frame in the order of the code's names (Include/cpython/code.h,
 * co_varnames; from 3.11 on co_localsplusnames and co_localspluskinds). Those of modules and
 * classes lie in a dict.
 */
#include "pystack/locals.h"

#include <stdlib.h>
#include <string.h>

#include "pystack/values.h"

#define LOCALS_SLOTS_MAX 1024 /* variables accepted of a code object */
#define LOCALS_NAME_MAX 128
#define LOCALS_RETRIES 3 /* readings of a variable that keeps changing */
#define LOCALS_ALL_VARIABLES 16384
#define LOCALS_ALL_BYTES ((size_t)1024 * 1024)
#define LOCALS_ONE_VARIABLES 1024
#define LOCALS_ONE_BYTES ((size_t)128 * 1024)

#define LOCALS_CO_OPTIMIZED 0x1U /* Include/cpython/code.h */
#define LOCALS_CO_VARARGS 0x4U
#define LOCALS_CO_VARKEYWORDS 0x8U
#define LOCALS_CELL 0x40U /* CO_FAST_CELL, CO_FAST_FREE: Include/internal/pycore_code.h */
#define LOCALS_FREE 0x80U
#define LOCALS_TAG_INT 3U /* Py_INT_TAG: Include/internal/pycore_stackref.h */

/* Where a code object has its names. */
struct locals_code {
    uint32_t flags;
    size_t n_arguments;
    uint64_t names[3]; /* tuples, one after the other: all, or locals, cells, free ones */
    size_t n[3];
    size_t n_all;
    uint8_t kinds[LOCALS_SLOTS_MAX]; /* as of 3.11 */
};

/* A frame being read. */
struct locals_work {
    struct pystack *ps;
    struct values *values;
    uint64_t tstate;
    struct arena *arena;
    struct pystack_locals_budget *budget;
    struct locals_code code;
    struct model_local items[LOCALS_PER_FRAME];
    size_t n;
    bool running; /* the thread is on a processor */
    bool full;    /* variables were left out */
    bool cut;     /* the budget ended */
    bool moved;   /* something changed during the read */
};

struct pystack_locals_budget pystack_locals_budget(bool one_thread) {
    return one_thread ? (struct pystack_locals_budget){LOCALS_ONE_VARIABLES, LOCALS_ONE_BYTES}
                      : (struct pystack_locals_budget){LOCALS_ALL_VARIABLES, LOCALS_ALL_BYTES};
}

/* ---- names ---- */

static int locals_read_tuple(struct pystack_reader *r, uint64_t tuple, size_t *n) {
    uint64_t size;
    if (!pystack_is_pointer(tuple) || pystack_read_u64_at(r, tuple, r->off.var_size, &size) != 0 ||
        size > LOCALS_SLOTS_MAX)
        return -1;
    *n = (size_t)size;
    return 0;
}

static int locals_read_kinds(struct pystack_reader *r, uint64_t kinds, struct locals_code *c) {
    size_t n;
    /* a bytes object has its length there too */
    if (locals_read_tuple(r, kinds, &n) != 0 || n != c->n_all)
        return -1;
    return mem_read(&r->mem, kinds + (uint64_t)r->off.bytes_data, c->kinds, n);
}

static int locals_read_code(struct pystack_reader *r, uint64_t addr, struct locals_code *c) {
    const struct pystack_offsets *o = &r->off;
    uint8_t bytes[PYSTACK_STRUCT_MAX];
    if (!pystack_is_pointer(addr) || mem_read(&r->mem, addr, bytes, (size_t)o->code_size) != 0)
        return -1;
    *c = (struct locals_code){.flags = (uint32_t)pystack_get_i32(bytes, o->code_flags)};
    int32_t named = pystack_get_i32(bytes, o->code_argcount),
            only = pystack_get_i32(bytes, o->code_kwonlyargcount);
    if (named < 0 || only < 0 || named > LOCALS_SLOTS_MAX || only > LOCALS_SLOTS_MAX)
        return -1;
    c->n_arguments = (size_t)named + (size_t)only + !!(c->flags & LOCALS_CO_VARARGS) +
                     !!(c->flags & LOCALS_CO_VARKEYWORDS);
    const int32_t at[] = {o->code_names, o->code_cellvars, o->code_freevars};
    for (size_t i = 0; i < (o->code_kinds ? 1 : 3); i++) {
        c->names[i] = pystack_get_u64(bytes, at[i]);
        if (locals_read_tuple(r, c->names[i], &c->n[i]) != 0 || c->n_all + c->n[i] > LOCALS_SLOTS_MAX)
            return -1;
        memset(c->kinds + c->n_all, i == 1 ? LOCALS_CELL : i == 2 ? LOCALS_FREE : 0, c->n[i]);
        c->n_all += c->n[i];
    }
    return o->code_kinds ? locals_read_kinds(r, pystack_get_u64(bytes, o->code_kinds), c) : 0;
}

static int locals_read_name(struct pystack_reader *r, const struct locals_code *c, size_t slot, char *buf,
                            size_t cap) {
    uint64_t name;
    size_t i = 0;
    for (; slot >= c->n[i]; i++)
        slot -= c->n[i];
    if (mem_read_u64(&r->mem, c->names[i] + (uint64_t)r->off.tuple_items + 8 * slot, &name) != 0)
        return -1;
    return pystack_read_str(r, name, buf, cap) > 0 ? 0 : -1;
}

int pystack_locals_each_name(struct pystack_reader *r, uint64_t code,
                             bool (*fn)(void *arg, size_t slot, const char *name, bool cell), void *arg) {
    struct locals_code c;
    char name[LOCALS_NAME_MAX];
    if (locals_read_code(r, code, &c) != 0)
        return -1;
    if (!(c.flags & LOCALS_CO_OPTIMIZED))
        return 1;
    for (size_t i = 0; i < c.n_all; i++)
        if (locals_read_name(r, &c, i, name, sizeof name) == 0 &&
            !fn(arg, i, name, c.kinds[i] & (LOCALS_CELL | LOCALS_FREE)))
            break;
    return 0;
}

int pystack_locals_read_name(struct pystack_reader *r, uint64_t code, size_t slot, char *buf, size_t cap) {
    const struct pystack_offsets *o = &r->off;
    const int32_t at[] = {o->code_names, o->code_cellvars, o->code_freevars};
    uint64_t tuple, name;
    for (size_t i = 0, n; i < (o->code_kinds ? 1 : 3); i++, slot -= n) {
        if (pystack_read_u64_at(r, code, at[i], &tuple) != 0 || locals_read_tuple(r, tuple, &n) != 0)
            return -1;
        if (slot < n)
            return mem_read_u64(&r->mem, tuple + (uint64_t)o->tuple_items + 8 * slot, &name) == 0 &&
                           pystack_read_str(r, name, buf, cap) > 0
                       ? 0
                       : -1;
    }
    return -1;
}

/* ---- values ---- */

/* The object of the variable at `slot`: 0 if it is unbound. 0, or -1 if it cannot be read. */
static int locals_get_object(struct locals_work *w, uint64_t slot, uint8_t kind, struct model_place *at) {
    struct pystack_reader *r = &w->ps->reader;
    uint64_t word, *object = &at->object;
    *at = (struct model_place){.slot = slot};
    if (mem_read_u64(&r->mem, slot, &word) != 0)
        return -1;
    *object = word & ~(uint64_t)r->off.tag_bits;
    /* The cell of an argument is made by the first instructions: until then the argument itself
     * is there. */
    if (*object && (kind & (LOCALS_CELL | LOCALS_FREE)) &&
        values_kind_of(w->values, *object) == VALUES_CELL) {
        at->cell = *object;
        if (pystack_read_u64_at(r, *object, r->off.cell_value, object) != 0)
            return -1;
        *object &= ~(uint64_t)r->off.tag_bits;
    }
    return 0;
}

static bool locals_is_definition(struct values *v, uint64_t object) {
    enum values_kind kind = values_kind_of(v, object);
    return kind == VALUES_MODULE || kind == VALUES_FUNCTION || kind == VALUES_BUILTIN || kind == VALUES_TYPE;
}

/* True if an object of this kind contains others. */
static bool locals_is_holder(enum values_kind kind) {
    return kind == VALUES_TUPLE || kind == VALUES_LIST || kind == VALUES_DICT || kind == VALUES_SET ||
           kind == VALUES_TENSOR;
}

/* Where to ask more about an object; NULL if nothing more can be known of it, nor of its
 * contents. */
static const struct model_place *locals_place(struct locals_work *w, const struct model_place *at,
                                              const char *text) {
    bool made, informative = values_is_informative(w->values, at->object, text, &made);
    if (informative && !made && !locals_is_holder(values_kind_of(w->values, at->object)))
        return NULL;
    struct model_place *p = arena_alloc(w->arena, sizeof *p);
    if (p)
        *p = (struct model_place){
            .slot = at->slot, .cell = at->cell, .object = at->object, .told = informative, .made = made};
    return p;
}

/* Add a variable. A NULL text: its value is unknown. False if there is no room. */
static bool locals_add(struct locals_work *w, const char *name, const char *type, const char *text,
                       enum model_local_kind kind, const struct model_place *at) {
    size_t bytes = strlen(name) + (text ? strlen(text) : 0) + 2;
    if (w->n == LOCALS_PER_FRAME) {
        w->full = true;
        return false;
    }
    if (w->budget->variables == 0 || w->budget->bytes < bytes) {
        w->full = w->cut = true;
        return false;
    }
    struct model_local l = {.name = arena_strdup(w->arena, name), .kind = kind};
    if (text) {
        l.type = arena_strdup(w->arena, type);
        l.text = arena_strdup(w->arena, text);
        l.place = locals_place(w, at, text);
    }
    if (w->arena->failed) {
        w->full = w->cut = true;
        return false;
    }
    w->budget->variables--;
    w->budget->bytes -= bytes;
    w->items[w->n++] = l;
    return true;
}

/* Type and text of an object. Freed memory is soon reused: if a second reading of a running
 * thread differs, it moved. False if there is no object. */
static bool locals_read_value(struct locals_work *w, uint64_t object, char *type, char *text) {
    char again_type[VALUES_TYPE_MAX], again[VALUES_TEXT_MAX];
    if (values_read(w->values, object, type, text) != 0)
        return false;
    if (w->running && (values_read(w->values, object, again_type, again) != 0 ||
                       strcmp(type, again_type) != 0 || strcmp(text, again) != 0))
        w->moved = true;
    return true;
}

/* One variable of a function. It is read again if it came to refer to another object in between. */
static bool locals_put_slot(struct locals_work *w, uint64_t slot, size_t index) {
    char name[LOCALS_NAME_MAX], type[VALUES_TYPE_MAX], text[VALUES_TEXT_MAX];
    uint8_t bits = w->code.kinds[index];
    struct model_place at, after;
    bool known = false;
    enum model_local_kind kind = index < w->code.n_arguments ? MODEL_LOCAL_ARGUMENT
                                 : bits & LOCALS_FREE        ? MODEL_LOCAL_FREE
                                 : bits & LOCALS_CELL        ? MODEL_LOCAL_CELL
                                                             : MODEL_LOCAL_VARIABLE;
    /* made by the compiler */
    if (locals_read_name(&w->ps->reader, &w->code, index, name, sizeof name) != 0 || name[0] == '.')
        return true;
    if (locals_get_object(w, slot, bits, &at) != 0)
        return true;
    for (int i = 0; i < LOCALS_RETRIES && at.object && !known; i++) {
        known = locals_read_value(w, at.object, type, text);
        if (locals_get_object(w, slot, bits, &after) != 0 || after.object != at.object) {
            w->moved = true;
            known = false;
            at = after;
        } else if (!known)
            break;
    }
    return !at.object || locals_add(w, name, type, known ? text : NULL, kind, &at);
}

static void locals_put_slots(struct locals_work *w, uint64_t frame) {
    uint64_t slot = frame + (uint64_t)w->ps->reader.off.frame_localsplus;
    for (size_t i = 0; i < w->code.n_all; i++, slot += 8)
        if (!locals_put_slot(w, slot, i))
            return;
}

/* ---- modules and classes ---- */

static int locals_put_entry(struct pystack_reader *r, uint32_t index, uint64_t key, uint64_t value,
                            void *arg) {
    struct locals_work *w = arg;
    char name[LOCALS_NAME_MAX], type[VALUES_TYPE_MAX], text[VALUES_TEXT_MAX];
    (void)index;
    ssize_t n = pystack_read_str(r, key, name, sizeof name);
    /* The source shows what is imported and defined there. */
    if (n <= 0 || (n > 4 && strncmp(name, "__", 2) == 0 && strcmp(name + n - 2, "__") == 0) ||
        locals_is_definition(w->values, value))
        return 0;
    bool known = locals_read_value(w, value, type, text);
    return locals_add(w, name, type, known ? text : NULL, MODEL_LOCAL_VARIABLE,
                      &(struct model_place){.object = value})
               ? 0
               : 1;
}

static void locals_put_dict(struct locals_work *w, uint64_t frame) {
    struct pystack_reader *r = &w->ps->reader;
    uint64_t dict;
    if (pystack_read_u64_at(r, frame, r->off.frame_locals, &dict) == 0 &&
        values_kind_of(w->values, dict &= ~(uint64_t)r->off.tag_bits) == VALUES_DICT)
        pystack_dict_each(r, dict, locals_put_entry, w);
}

/* ---- frames ---- */

/* Shows whether a frame is still where it was. */
struct locals_mark {
    uint64_t code, previous, instr;
};

static int locals_read_mark(struct pystack *ps, uint64_t frame, struct locals_mark *m) {
    const struct pystack_offsets *o = &ps->reader.off;
    uint8_t bytes[PYSTACK_STRUCT_MAX];
    if (!pystack_is_pointer(frame) || mem_read(&ps->reader.mem, frame, bytes, (size_t)o->frame_size) != 0)
        return -1;
    m->code = pystack_get_u64(bytes, o->frame_code) & ~(uint64_t)o->tag_bits;
    m->previous = pystack_get_u64(bytes, o->frame_previous);
    m->instr = o->frame_style == PYSTACK_FRAME_OBJECT
                   ? (uint64_t)(int64_t)pystack_get_i32(bytes, o->frame_instr)
                   : pystack_get_u64(bytes, o->frame_instr);
    return 0;
}

static bool locals_same_text(const char *a, const char *b) { return a && b && (a == b || strcmp(a, b) == 0); }

/* True if the frame is of the function that the walk found. Usually its strings are the same
 * ones, but a code object that the walk believed may have been read again for this. */
static bool locals_is_frame_of(struct pystack *ps, const struct model_frame *f, uint64_t code_addr) {
    struct pystack_code *code = pystack_codes_get(&ps->codes, &ps->reader, code_addr);
    return code && locals_same_text(pystack_code_func(&ps->codes, code), f->func) &&
           locals_same_text(pystack_code_file(&ps->codes, code), f->file);
}

/* The variables, in the arena; NULL without memory. */
static struct model_locals *locals_keep(struct locals_work *w, uint64_t frame, const struct locals_mark *m) {
    struct model_locals *out = arena_calloc(w->arena, 1, sizeof *out);
    struct model_local *items = arena_calloc(w->arena, w->n ? w->n : 1, sizeof *items);
    if (!out || !items)
        return NULL;
    memcpy(items, w->items, w->n * sizeof *items);
    *out = (struct model_locals){.items = items,
                                 .n = w->n,
                                 .truncated = w->full,
                                 .tstate = w->tstate,
                                 .frame = frame,
                                 .code = m->code,
                                 .instr = m->instr};
    return out;
}

/* The locals of frame `f` at `addr`, or NULL. */
static const struct model_locals *locals_read_frame(struct locals_work *w, const struct model_frame *f,
                                                    uint64_t addr) {
    struct pystack *ps = w->ps;
    struct locals_mark before, after;
    w->n = 0;
    w->full = false;
    if (locals_read_mark(ps, addr, &before) != 0 || !locals_is_frame_of(ps, f, before.code)) {
        w->moved = true;
        return NULL;
    }
    if (locals_read_code(&ps->reader, before.code, &w->code) != 0)
        return NULL;
    if (w->code.flags & LOCALS_CO_OPTIMIZED)
        locals_put_slots(w, addr);
    else
        locals_put_dict(w, addr);
    bool there = locals_read_mark(ps, addr, &after) == 0 && after.code == before.code &&
                 after.previous == before.previous;
    w->moved = w->moved || !there || after.instr != before.instr;
    return there ? locals_keep(w, addr, &after) : NULL;
}

int pystack_locals_find_object(struct pystack *ps, uint64_t frame, const struct model_local *local,
                               uint64_t *object) {
    struct pystack_reader *r = &ps->reader;
    uint64_t tags = (uint64_t)r->off.tag_bits, word, dict;
    if (local->place->slot == 0) {
        if (pystack_read_u64_at(r, frame, r->off.frame_locals, &dict) != 0 ||
            pystack_dict_find(r, dict & ~tags, local->name, NULL, &word) != 0)
            return -1;
        *object = word;
        return 0;
    }
    if (mem_read_u64(&r->mem, local->place->slot, &word) != 0 ||
        (tags == LOCALS_TAG_INT && (word & tags) == LOCALS_TAG_INT))
        return -1; /* a number, not an object */
    if (local->place->cell && ((word & ~tags) != local->place->cell ||
                               pystack_read_u64_at(r, local->place->cell, r->off.cell_value, &word) != 0))
        return -1;
    *object = word & ~tags;
    return 0;
}

const struct model_locals **pystack_locals_read(struct pystack *ps, uint64_t tstate,
                                                const struct model_frame *frames, size_t n, bool running,
                                                struct arena *arena, struct pystack_locals_budget *budget,
                                                bool *moved, bool *cut) {
    const struct model_locals **out = arena_calloc(arena, n ? n : 1, sizeof *out);
    struct locals_work *w = calloc(1, sizeof *w);
    struct values *values = calloc(1, sizeof *values);
    if (out && w && values) {
        w->ps = ps;
        w->values = values;
        w->tstate = tstate;
        w->running = running;
        w->arena = arena;
        w->budget = budget;
        values_begin(values, &ps->reader, ps->pid);
        /* 3.4 and 3.5: the places of values were never determined. */
        for (size_t i = 0; i < n && !w->cut && ps->reader.off.type_name; i++)
            if (frames[i].kind == MODEL_FRAME_PYTHON)
                out[i] = locals_read_frame(w, &frames[i], ps->places[i]);
        *moved = *moved || w->moved;
        *cut = *cut || w->cut;
    } else
        *cut = true;
    free(values);
    free(w);
    return out;
}
